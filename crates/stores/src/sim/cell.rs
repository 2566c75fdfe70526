//! One record of `sim:`: what it is now, what it was, and what will yet happen to it.

use std::time::{Duration, Instant};

use kvdyno_core::store::{FieldSpan, OperationId, Put, Value};

use super::log::{Imperfection, SimLog};
use crate::map::Record;

/// A record with its past and its future.
#[derive(Debug, Default)]
pub(super) struct Cell {
    current: Option<Record>,
    /// Counts changes, so that undoing knows whether anything has been written since.
    changes: u64,
    /// Versions written over, with the time of that, oldest first; none before a delete.
    past: Vec<(Instant, Record)>,
    pending: Vec<Pending>,
    /// When the current record should have been gone, if it is to be there longer.
    overdue: Option<Instant>,
}

/// Something that happens to the record later.
#[derive(Debug)]
struct Pending {
    due: Instant,
    operation: OperationId,
    change: Change,
}

#[derive(Debug)]
enum Change {
    /// Back to `before`, unless there was a change after number `of`; logged as `kind`.
    Undo { before: Option<Record>, of: u64, kind: Imperfection },
    /// A write that was given up takes effect.
    LatePut(OwnedPut),
    /// A delete that was given up takes effect.
    LateDelete,
}

impl Cell {
    /// Does what has come due by now. Call before anything else is done with the record.
    pub(super) fn settle(&mut self, key: &[u8], log: &SimLog) {
        if self.pending.is_empty() {
            return;
        }
        let now = Instant::now();
        self.pending.sort_by_key(|pending| pending.due);
        let due = self.pending.partition_point(|pending| pending.due <= now);
        let coming = self.pending.split_off(due);
        for pending in std::mem::replace(&mut self.pending, coming) {
            match pending.change {
                Change::Undo { before, of, kind } => {
                    if self.changes == of {
                        self.current = before;
                        self.changes += 1;
                        log.add(kind, pending.operation, key);
                    }
                }
                Change::LatePut(put) => put.lend(key, |put| self.put(&put, None)),
                Change::LateDelete => {
                    self.delete();
                }
            }
        }
    }

    /// The record, if it is there now.
    pub(super) fn live(&self) -> Option<&Record> {
        self.current.as_ref().filter(|record| record.is_live())
    }

    /// Applies a put; keeps the version written over for `keep`.
    pub(super) fn put(&mut self, put: &Put<'_>, keep: Option<Duration>) {
        self.changes += 1;
        self.overdue = None;
        if self.live().is_none() {
            self.current = None;
        }
        if let (Some(keep), Some(old)) = (keep, &self.current) {
            let now = Instant::now();
            let old_enough = self.past.partition_point(|(at, _)| *at + keep < now);
            self.past.drain(..old_enough);
            self.past.push((now, old.clone()));
        }
        self.current.get_or_insert_default().apply(put);
    }

    /// Applies a put that is undone after `after`.
    pub(super) fn put_for_a_while(
        &mut self,
        put: &Put<'_>,
        keep: Option<Duration>,
        after: Duration,
        operation: OperationId,
    ) {
        let before = self.live().cloned();
        self.put(put, keep);
        self.undo_later(before, Imperfection::Lose, after, operation);
    }

    /// Applies a put whose record is there for `longer` than its time to live.
    pub(super) fn put_outliving(
        &mut self,
        put: &Put<'_>,
        keep: Option<Duration>,
        longer: Duration,
    ) {
        let Some(ttl) = put.ttl else { return self.put(put, keep) };
        self.put(&Put { ttl: Some(ttl + longer), ..*put }, keep);
        self.overdue = Some(Instant::now() + ttl);
    }

    /// The record is there, and should have been gone before `begun`.
    pub(super) fn outlives(&self, begun: Instant) -> bool {
        self.live().is_some() && self.overdue.is_some_and(|due| due < begun)
    }

    /// Deletes the record; gives what was there.
    pub(super) fn delete(&mut self) -> Option<Record> {
        self.changes += 1;
        self.past.clear();
        self.current.take().filter(Record::is_live)
    }

    /// Brings `before` back after `after`, unless the record is written until then.
    pub(super) fn undo_later(
        &mut self,
        before: Option<Record>,
        kind: Imperfection,
        after: Duration,
        operation: OperationId,
    ) {
        let change = Change::Undo { before, of: self.changes, kind };
        self.pending.push(Pending { due: Instant::now() + after, operation, change });
    }

    /// Applies `put` at `due`.
    pub(super) fn put_late(&mut self, put: &Put<'_>, due: Instant, operation: OperationId) {
        let change = Change::LatePut(OwnedPut::of(put));
        self.pending.push(Pending { due, operation, change });
    }

    /// Deletes the record at `due`.
    pub(super) fn delete_late(&mut self, due: Instant, operation: OperationId) {
        self.pending.push(Pending { due, operation, change: Change::LateDelete });
    }

    /// The oldest version that was written over before `begun`, but no longer than `age` before,
    /// and that differs from the current one.
    pub(super) fn stale(&self, begun: Instant, age: Duration) -> Option<&Record> {
        let current = self.live()?;
        self.past
            .iter()
            .find(|(at, _)| *at < begun && *at + age >= begun)
            .map(|(_, old)| old)
            .filter(|old| old.is_live() && old.bytes() != current.bytes())
    }

    /// Nothing is, or will be, here.
    pub(super) fn is_empty(&self) -> bool {
        self.current.is_none() && self.pending.is_empty()
    }
}

/// A put that outlives its request.
#[derive(Debug)]
struct OwnedPut {
    bytes: Vec<u8>,
    spans: Vec<FieldSpan>,
    insert: bool,
    partial: bool,
    record_fields: u16,
    ttl: Option<Duration>,
}

impl OwnedPut {
    fn of(put: &Put<'_>) -> OwnedPut {
        let mut spans = Vec::with_capacity(put.value.field_count());
        let mut start = 0;
        for (index, bytes) in put.value.fields() {
            let end = start + bytes.len() as u32;
            spans.push(FieldSpan { index, start, end });
            start = end;
        }
        OwnedPut {
            bytes: put.value.whole().to_vec(),
            spans,
            insert: put.insert,
            partial: put.partial,
            record_fields: put.record_fields,
            ttl: put.ttl,
        }
    }

    fn lend(&self, key: &[u8], apply: impl FnOnce(Put<'_>)) {
        apply(Put {
            key,
            value: Value::new(&self.bytes, &self.spans),
            insert: self.insert,
            partial: self.partial,
            record_fields: self.record_fields,
            ttl: self.ttl,
        });
    }
}
