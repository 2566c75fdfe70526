//! The whole history of a few records, kept as the load runs: each request with what it read or
//! wrote, its begin and its end. Linearizability is judged by it, and it can be handed to other
//! checkers.

mod edn;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::judgement::WriteEnd;
use super::ledger::Ledger;
use super::stamp::{SeenStamp, WriterRun};
use crate::measure::{Nanos, now};
use crate::workload::{OPERATIONS_KEPT, Sampled};

/// Content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Content {
    /// Nothing: the record was not there.
    Nothing,
    /// A version of this run; no two writes of a record have the same.
    Version(u32),
    /// A version of an earlier run.
    Earlier(u32),
}

/// Kind of a request, with what it read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallKind {
    /// A read, with the content that it found.
    Read(Content),
    /// A write, with the content that it wrote.
    Write(Content),
}

/// One request about a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Time right before it was sent, ns.
    pub begun: Nanos,
    /// Time at which it was answered, ns; [`Nanos::MAX`] for a write whose outcome is not known.
    pub ended: Nanos,
    /// Kind of the request, with what it read or wrote.
    pub action: CallKind,
    /// Outcome. Reads that failed are in no history: they say nothing.
    pub end: WriteEnd,
}

/// All that happened to a record from a moment on. A read says nothing if it found a value that
/// may have been written by a request which is not in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHistory {
    /// Number of the record.
    pub record: u64,
    /// Time at which the history begins, ns.
    pub from: Nanos,
    /// First version of the history. Lower ones were written before `from`, as were
    /// [`Content::Nothing`] and all values of earlier runs.
    pub first_version: u32,
    /// True if nothing that was written before can still take effect.
    pub settled: bool,
    /// Time at which the first request was sent that is missing because the history is full, ns;
    /// `None` if none is.
    pub cut: Option<Nanos>,
    /// Requests, by begin.
    pub calls: Vec<Call>,
}

impl RecordHistory {
    /// Returns the contents that its writes wrote, or may have written.
    pub(crate) fn written(&self) -> HashSet<Content> {
        let writes = self.calls.iter().filter_map(|call| match call.action {
            CallKind::Write(content) => Some(content),
            CallKind::Read(_) => None,
        });
        writes.collect()
    }

    /// Returns true if this content was there before the history began, provided that no write in it
    /// wrote it.
    pub(crate) fn is_from_before(&self, content: Content) -> bool {
        match content {
            Content::Nothing | Content::Earlier(_) => true,
            Content::Version(version) => version < self.first_version,
        }
    }

    /// Returns true if the call is a read that says nothing; `written` is
    /// [`RecordHistory::written`].
    pub(crate) fn is_mute(&self, call: &Call, written: &HashSet<Content>) -> bool {
        match call.action {
            // A delete from before may have taken effect, or the record's absence from before that.
            CallKind::Read(Content::Nothing) => !self.settled,
            CallKind::Read(content) => {
                !written.contains(&content)
                    && !self.is_from_before(content)
                    && self.cut.is_some_and(|cut| call.ended >= cut)
            }
            CallKind::Write(_) => false,
        }
    }
}

/// Histories of a phase's sampled records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// One history for each sampled record.
    pub records: Vec<RecordHistory>,
}

/// The sampled records of a phase, shared by its workers.
#[derive(Debug)]
pub(crate) struct SampledRecords {
    sampled: Sampled,
    records: Vec<SampledRecord>,
}

#[derive(Debug)]
struct SampledRecord {
    first_version: u32,
    settled: bool,
    /// Number of requests begun that are kept.
    begun: AtomicU32,
    /// Begin of the first request that is not kept, ns; [`Nanos::MAX`] if all are kept.
    cut: AtomicU64,
}

impl SampledRecords {
    /// Creates the sample of records 0..`records`, as `ledger` knows them before the phase begins.
    pub fn new(records: u64, ledger: &Ledger) -> SampledRecords {
        let sampled = Sampled::of(records);
        let records = (0..sampled.count()).map(|i| {
            let state = ledger.state(sampled.record(i));
            SampledRecord {
                first_version: state.next,
                settled: state.floor + 1 == state.next,
                begun: AtomicU32::new(0),
                cut: AtomicU64::new(Nanos::MAX),
            }
        });
        SampledRecords { sampled, records: records.collect() }
    }

    /// Brings together what the workers kept since `from`.
    pub fn history(&self, from: Nanos, kept: Vec<Vec<KeptRequest>>) -> History {
        let mut calls: Vec<Vec<Call>> = vec![Vec::new(); self.records.len()];
        for kept in kept.into_iter().flatten() {
            calls[kept.number].extend(kept.into_call());
        }
        let records = self.records.iter().zip(calls).zip(0..).map(|((record, mut calls), i)| {
            calls.sort_by_key(|call| (call.begun, call.ended));
            let cut = Some(record.cut.load(Ordering::Relaxed)).filter(|cut| *cut < Nanos::MAX);
            RecordHistory {
                record: self.sampled.record(i),
                from,
                first_version: record.first_version,
                settled: record.settled,
                cut,
                calls,
            }
        });
        History { records: records.collect() }
    }
}

/// A request in a worker's keeping.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeptRequest {
    number: usize,
    begun: Nanos,
    state: State,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum State {
    /// A read that has failed, or has no answer yet.
    Reading,
    /// A write that has not been answered.
    Writing(Content),
    Over(Call),
}

impl KeptRequest {
    /// Converts it to a call of the history. A write without an answer is indeterminate: it may yet
    /// take effect. A read without one gives none.
    fn into_call(self) -> Option<Call> {
        match self.state {
            State::Reading => None,
            State::Writing(content) => Some(Call {
                begun: self.begun,
                ended: Nanos::MAX,
                action: CallKind::Write(content),
                end: WriteEnd::Indeterminate,
            }),
            State::Over(call) => Some(call),
        }
    }
}

/// Place of a request in its worker's keeping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted(u32);

/// One worker's part of the history.
#[derive(Debug)]
pub(crate) struct Scribe {
    sample: Arc<SampledRecords>,
    kept: Vec<KeptRequest>,
}

impl Scribe {
    pub fn new(sample: Arc<SampledRecords>) -> Scribe {
        Scribe { sample, kept: Vec::new() }
    }

    pub fn into_kept(self) -> Vec<KeptRequest> {
        self.kept
    }

    /// Begins a read of `record` that is about to be sent; `None` if it is not kept.
    #[inline]
    pub fn begin_read(&mut self, record: u64) -> Option<Noted> {
        self.begin(self.sample.sampled.number(record)?, State::Reading)
    }

    /// Begins a write of `version` to `record` that is about to be sent; `None` if it is not kept.
    #[inline]
    pub fn begin_write(&mut self, record: u64, version: u32) -> Option<Noted> {
        let number = self.sample.sampled.number(record)?;
        self.begin(number, State::Writing(Content::Version(version)))
    }

    fn begin(&mut self, number: usize, state: State) -> Option<Noted> {
        let record = &self.sample.records[number];
        let begun = now();
        if record.begun.fetch_add(1, Ordering::Relaxed) >= OPERATIONS_KEPT {
            // Far from wrapping around: each request takes longer than it takes to come back.
            record.begun.fetch_sub(1, Ordering::Relaxed);
            record.cut.fetch_min(begun, Ordering::Relaxed);
            return None;
        }
        self.kept.push(KeptRequest { number, begun, state });
        Some(Noted(self.kept.len() as u32 - 1))
    }

    /// Ends a read that found a value with a sound stamp, or nothing.
    pub fn end_read(&mut self, noted: Noted, found: Option<SeenStamp>, answered: Nanos) {
        let kept = &mut self.kept[noted.0 as usize];
        let content = match found.map(|seen| (seen.session(), seen.version())) {
            None => Content::Nothing,
            Some((WriterRun::Earlier, version)) => Content::Earlier(version),
            // Another run's value: the history is not this run's alone, and the read says nothing.
            Some((WriterRun::Newer, _)) => return,
            // Too short a stamp to tell it from a value of an earlier run: the read says nothing.
            Some((WriterRun::Unseen, _)) if self.sample.records[kept.number].first_version == 1 => {
                return;
            }
            Some((_, version)) => Content::Version(version),
        };
        kept.state = State::Over(Call {
            begun: kept.begun,
            ended: answered,
            action: CallKind::Read(content),
            end: WriteEnd::Acknowledged,
        });
    }

    /// Ends a write that was answered, or given up.
    pub fn end_write(&mut self, noted: Noted, end: WriteEnd, answered: Nanos) {
        let kept = &mut self.kept[noted.0 as usize];
        if let State::Writing(content) = kept.state {
            let ended = if end == WriteEnd::Indeterminate { Nanos::MAX } else { answered };
            let action = CallKind::Write(content);
            kept.state = State::Over(Call { begun: kept.begun, ended, action, end });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Initial, LedgerConfig, WriteKind};

    fn ledger() -> Ledger {
        Ledger::new(LedgerConfig {
            slots: 100,
            linearizable: true,
            staleness: std::time::Duration::ZERO,
            may_forget: false,
            overlap_capacity: 100,
            initial: Initial::Never,
            expiry: None,
            may_apply_again: false,
            taken_over: None,
        })
        .unwrap()
    }

    #[test]
    fn what_workers_keep_comes_together_by_begin_with_its_outcome() {
        let sample = Arc::new(SampledRecords::new(100, &ledger()));
        let mut scribes = [Scribe::new(Arc::clone(&sample)), Scribe::new(Arc::clone(&sample))];
        assert!(scribes[0].begin_read(1).is_none(), "record 1 of 100 is not in the sample");
        let write = scribes[0].begin_write(6, 1).unwrap();
        let read = scribes[1].begin_read(6).unwrap();
        let lost = scribes[1].begin_write(6, 2).unwrap();
        let _never_answered = scribes[0].begin_write(6, 3).unwrap();
        let _never_read = scribes[0].begin_read(6).unwrap();
        scribes[1].end_read(read, None, 7);
        scribes[0].end_write(write, WriteEnd::Acknowledged, 8);
        scribes[1].end_write(lost, WriteEnd::Indeterminate, 9);
        let history = sample.history(5, scribes.map(Scribe::into_kept).into());
        assert_eq!(history.records.len(), 16);
        let record = &history.records[1];
        assert_eq!((record.record, record.from, record.first_version), (6, 5, 1));
        assert!(record.settled && record.cut.is_none());
        assert!(record.calls.windows(2).all(|pair| pair[0].begun <= pair[1].begun));
        let told: Vec<(CallKind, WriteEnd, bool)> = (record.calls.iter())
            .map(|call| (call.action, call.end, call.ended == Nanos::MAX))
            .collect();
        assert_eq!(
            told,
            [
                (CallKind::Write(Content::Version(1)), WriteEnd::Acknowledged, false),
                (CallKind::Read(Content::Nothing), WriteEnd::Acknowledged, false),
                (CallKind::Write(Content::Version(2)), WriteEnd::Indeterminate, true),
                (CallKind::Write(Content::Version(3)), WriteEnd::Indeterminate, true),
            ]
        );
    }

    #[test]
    fn a_full_history_tells_when_it_was_cut() {
        let sample = Arc::new(SampledRecords::new(16, &ledger()));
        let mut scribe = Scribe::new(Arc::clone(&sample));
        let kept = (0..OPERATIONS_KEPT + 5).filter(|_| scribe.begin_read(3).is_some()).count();
        assert_eq!(kept, OPERATIONS_KEPT as usize);
        let last = scribe.kept.last().unwrap().begun;
        let history = sample.history(0, vec![scribe.into_kept()]);
        assert!(history.records[3].cut.unwrap() >= last);
        assert!(history.records[2].cut.is_none());
    }

    #[test]
    fn a_record_with_a_write_in_doubt_is_not_settled() {
        let ledger = ledger();
        let write = ledger.begin_write(0, WriteKind::Put);
        ledger.end_write(0, write, WriteEnd::Acknowledged, 1);
        let doubt = ledger.begin_write(6, WriteKind::Put);
        ledger.end_write(6, doubt, WriteEnd::Indeterminate, 1);
        let history = SampledRecords::new(100, &ledger).history(0, Vec::new());
        assert!(history.records[0].settled && !history.records[1].settled);
        assert_eq!((history.records[0].first_version, history.records[1].first_version), (2, 2));
    }
}
