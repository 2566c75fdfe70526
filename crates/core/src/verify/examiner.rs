//! One worker's inspector: gives writes their versions, checks every value that is read, asks the
//! ledger whether it may be there, and keeps what may not.

use std::sync::Arc;
use std::time::Duration;

use super::anomaly::{ANOMALIES_KEPT, Anomaly, AnomalyKind, Tally};
use super::history::{Kept, Noted, Sample, Scribe};
use super::judgement::{self, Judgement, WriteEnd, WriteKind};
use super::ledger::{Hand, Ledger, ReadTicket, WriteTicket};
use super::stamp::{self, Expected, Seen};
use crate::measure::Nanos;
use crate::store::{FieldSpan, OperationId, Reading, Rows};
use crate::workload::{Dataset, KeyWriter, Part};

/// What examiners of a phase go by.
#[derive(Clone)]
pub struct Examination {
    /// Which records there are and how they are named.
    pub dataset: Dataset,
    /// What records may hold; `None`: verification is off for the run.
    pub ledger: Option<Arc<Ledger>>,
    /// Each field has a ledger word of its own.
    pub fields_apart: bool,
    /// Check what is read.
    pub check_reads: bool,
    /// Whose records are our own.
    pub part: Part,
    /// The store makes values up (`null:`): their stamp is all there is to check.
    pub fabricated: bool,
    /// Records whose history is kept, if any.
    pub(crate) sample: Option<Arc<Sample>>,
}

/// One word of the ledger while a write on it is in flight. Plain, and no ticket that can be taken: this is
/// stored and loaded for each write.
#[derive(Clone, Copy, Debug)]
struct WriteSlot {
    slot: u64,
    /// 0 if there is no ledger.
    version: u32,
    kind: WriteKind,
    noted: Option<Noted>,
}

/// The words of the ledger that writes in flight are about; a buffer to use again.
#[derive(Debug, Default)]
pub struct WriteSlots {
    /// The only one of most writes: not behind a pointer, which would be waited for.
    first: Option<WriteSlot>,
    others: Vec<WriteSlot>,
}

impl WriteSlots {
    /// Forgets them.
    #[inline]
    pub fn clear(&mut self) {
        self.first = None;
        self.others.clear();
    }

    /// How many there are.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// The version to write to the word of this number; 0 if there is no ledger.
    #[inline]
    #[must_use]
    pub fn version(&self, number: usize) -> u32 {
        let slot = match number {
            0 => self.first.as_ref(),
            _ => self.others.get(number - 1),
        };
        slot.map_or(0, |slot| slot.version)
    }

    #[inline]
    fn push(&mut self, slot: WriteSlot) {
        match self.first {
            None => self.first = Some(slot),
            Some(_) => self.others.push(slot),
        }
    }
}

/// The words of the ledger that a read in flight is about; a buffer to use again.
#[derive(Debug, Default)]
pub struct ReadTickets {
    /// The first of the words, one after the other.
    slot: u64,
    /// Of the first word, the only one of most records: not behind a pointer, which would be waited for.
    first: Option<ReadTicket>,
    /// Of those after it, where each field has a word of its own.
    others: Vec<Option<ReadTicket>>,
    noted: Option<Noted>,
}

impl ReadTickets {
    /// How many words there are; none if the read is not to be judged by the ledger.
    fn count(&self) -> usize {
        if self.first.is_some() { 1 + self.others.len() } else { 0 }
    }

    /// The word of a field, and its ticket: each is taken once.
    #[inline(always)]
    fn take(&mut self, field: usize) -> Option<(u64, ReadTicket)> {
        let ticket = match field {
            0 => self.first.take(),
            _ => self.others.get_mut(field - 1).and_then(Option::take),
        };
        Some((self.slot + field as u64, ticket?))
    }
}

/// A read that was answered.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredRead<'a> {
    /// Which operation read.
    pub operation: OperationId,
    /// Number of the record.
    pub record: u64,
    /// Its key.
    pub key: &'a [u8],
    /// When it was sent.
    pub sent: Nanos,
    /// When it was answered.
    pub answered: Nanos,
}

/// Checks one worker's reads. Those of all workers of a phase are made before any of them begins.
pub struct Examiner {
    by: Examination,
    ledger: Option<Hand>,
    tally: Tally,
    anomalies: Vec<Anomaly>,
    scribe: Option<Scribe>,
}

impl Examiner {
    /// An examiner that has seen nothing yet.
    #[must_use]
    pub fn new(mut by: Examination) -> Self {
        let scribe = by.sample.clone().map(Scribe::new);
        let ledger = by.ledger.take().map(Hand::new);
        Examiner { by, ledger, tally: Tally::default(), anomalies: Vec::new(), scribe }
    }

    /// The requests about sampled records; none from then on.
    pub(crate) fn take_kept(&mut self) -> Vec<Kept> {
        self.scribe.take().map_or_else(Vec::new, Scribe::into_kept)
    }

    /// What was seen, and what should not have been.
    #[must_use]
    pub fn into_findings(self) -> (Tally, Vec<Anomaly>) {
        (self.tally, self.anomalies)
    }

    /// Illegal reads so far.
    #[must_use]
    pub fn illegal(&self) -> u64 {
        self.tally.illegal()
    }

    #[inline]
    fn slots(&self, record: u64, field: Option<u16>) -> std::ops::Range<u64> {
        if !self.by.fields_apart {
            return record..record + 1;
        }
        let fields = u64::from(self.by.dataset.fields);
        match field {
            Some(field) => {
                record * fields + u64::from(field)..record * fields + u64::from(field) + 1
            }
            None => record * fields..(record + 1) * fields,
        }
    }

    /// A record that will soon be read or written; any number is allowed.
    #[inline]
    pub fn prefetch(&self, record: u64) {
        if let Some(ledger) = &self.ledger {
            let words = if self.by.fields_apart { self.by.dataset.fields } else { 1 };
            ledger.prefetch(record.wrapping_mul(words.into()));
        }
    }

    /// Gives a write its versions, before it is sent; adds them to `writes`.
    #[inline(always)]
    pub fn begin_write(
        &mut self,
        record: u64,
        field: Option<u16>,
        kind: WriteKind,
        writes: &mut WriteSlots,
    ) {
        let slots = self.slots(record, field);
        if self.by.fields_apart {
            slots.for_each(|slot| writes.push(self.begin_slot(record, slot, kind)));
        } else {
            writes.push(self.begin_slot(record, slots.start, kind));
        }
    }

    #[inline(always)]
    fn begin_slot(&mut self, record: u64, slot: u64, kind: WriteKind) -> WriteSlot {
        let version = match &self.ledger {
            Some(ledger) => ledger.begin_write(slot, kind).version,
            None => 0,
        };
        let scribe = self.scribe.as_mut();
        let noted = scribe.and_then(|scribe| scribe.begin_write(record, version));
        WriteSlot { slot, version, kind, noted }
    }

    /// Tells the ledger how writes ended, after their answer; `writes` is empty then.
    #[inline]
    pub fn end_write(&mut self, writes: &mut WriteSlots, end: WriteEnd, answered: Nanos) {
        match end {
            WriteEnd::Acknowledged => self.tally.writes_acknowledged += 1,
            WriteEnd::Failed => self.tally.writes_failed += 1,
            WriteEnd::Indeterminate => self.tally.writes_indeterminate += 1,
        }
        if let Some(first) = writes.first.take() {
            self.end_slot(first, end, answered);
        }
        if !writes.others.is_empty() {
            writes.others.drain(..).for_each(|slot| self.end_slot(slot, end, answered));
        }
    }

    #[inline]
    fn end_slot(&mut self, slot: WriteSlot, end: WriteEnd, answered: Nanos) {
        let WriteSlot { slot, version, kind, noted } = slot;
        if let (Some(scribe), Some(noted)) = (&mut self.scribe, noted) {
            scribe.end_write(noted, end, answered);
        }
        if let Some(ledger) = &self.ledger {
            ledger.end_write(slot, WriteTicket { version, kind }, end, answered);
        }
    }

    /// Notes what a read may return, before it is sent.
    #[inline(always)]
    pub fn begin_read(&mut self, record: u64, reads: &mut ReadTickets) {
        reads.first = None;
        if !self.by.check_reads || !self.is_own(record) {
            return;
        }
        if let Some(ledger) = &self.ledger {
            let slots = self.slots(record, None);
            reads.slot = slots.start;
            reads.first = Some(ledger.begin_read(slots.start));
            if self.by.fields_apart {
                reads.others.clear();
                reads.others.extend(slots.skip(1).map(|slot| Some(ledger.begin_read(slot))));
            }
            reads.noted = self.scribe.as_mut().and_then(|scribe| scribe.begin_read(record));
        }
    }

    /// The read failed: it says nothing.
    pub fn abandon_read(&mut self, reads: &mut ReadTickets) {
        if let Some(ledger) = &self.ledger {
            for field in 0..reads.count() {
                if let Some((slot, ticket)) = reads.take(field) {
                    ledger.abandon_read(slot, ticket);
                }
            }
        }
    }

    /// Judges an answered read; `found` is what it brought, `None` if the record was absent.
    #[inline]
    pub fn end_read(
        &mut self,
        read: &AnsweredRead<'_>,
        reads: &mut ReadTickets,
        found: Option<&Reading>,
    ) {
        let words = if self.by.fields_apart { self.by.dataset.fields } else { 1 };
        self.tally.reads += u64::from(words);
        match found {
            _ if !self.by.check_reads => {}
            None => self.judge_missing(read, reads),
            // One value with one stamp: what nearly all reads bring.
            Some(reading)
                if words == 1 && self.by.dataset.fields <= 1 && reading.spans().is_empty() =>
            {
                let seen = self.check_field(read, 0, reading.bytes());
                self.ask_ledger(read, reads, 0, Sight::of(seen));
            }
            Some(reading) => self.judge_fields(read, reads, reading),
        }
    }

    /// Judges a read of a key that was never written.
    pub fn judge_absent(&mut self, read: &AnsweredRead<'_>, found: Option<&Reading>) {
        self.tally.reads += 1;
        if !self.by.check_reads {
            return;
        }
        match found {
            None => {
                self.tally.judged += 1;
                self.tally.legal_misses += 1;
            }
            Some(_) if self.by.fabricated => self.tally.stamp_only += 1,
            Some(_) => {
                self.tally.judged += 1;
                let detail = "a key that was never written has a value".to_owned();
                self.note(read, AnomalyKind::Phantom, 0, None, Bounds::default(), detail);
            }
        }
    }

    /// Judges the rows of a scan that began at `read.key`: their order, their stamps, and, as far
    /// as the clock allows without a ticket, their versions.
    pub fn judge_scan(&mut self, read: &AnsweredRead<'_>, keys: &KeyWriter, rows: &Rows) {
        if !self.by.check_reads {
            return;
        }
        let mut last: &[u8] = &[];
        for (key, value) in rows.iter() {
            if key < read.key || (!last.is_empty() && key <= last) {
                let detail = format!("scan out of order at {}", key.escape_ascii());
                self.note(read, AnomalyKind::Corrupt, 0, None, Bounds::default(), detail);
            }
            last = key;
            // Keys that are not of this dataset's making are somebody else's.
            let (Some(record), Some(value)) = (keys.parse(key), value) else { continue };
            self.tally.reads += 1;
            let row = AnsweredRead { record, key, ..*read };
            if let Some(seen) = self.check_whole(&row, value)
                && self.is_own(record)
                && let Some(ledger) = &self.ledger
            {
                let judgement = ledger.judge_late(record, seen.into(), read.sent);
                self.count(&row, 0, Some(seen.version()), judgement);
            }
        }
    }

    #[inline]
    fn is_own(&self, record: u64) -> bool {
        let part = self.by.part;
        part.count == 1 || record % u64::from(part.count) == u64::from(part.index)
    }

    fn judge_missing(&mut self, read: &AnsweredRead<'_>, reads: &mut ReadTickets) {
        match &self.ledger {
            None => self.tally.unexpected_misses += 1,
            Some(_) if reads.count() == 0 => self.tally.stamp_only += 1,
            Some(_) => {
                for field in 0..reads.count() {
                    self.ask_ledger(read, reads, field, Sight::Absent);
                }
            }
        }
    }

    fn judge_fields(
        &mut self,
        read: &AnsweredRead<'_>,
        reads: &mut ReadTickets,
        reading: &Reading,
    ) {
        let bytes = reading.bytes();
        let span_of = |span: &FieldSpan| &bytes[span.start as usize..span.end as usize];
        if !self.by.fields_apart {
            let seen = if reading.spans().is_empty() {
                self.check_whole(read, bytes)
            } else {
                self.check_together(read, reading.spans().iter().map(|s| (s.index, span_of(s))))
            };
            self.ask_ledger(read, reads, 0, Sight::of(seen));
            return;
        }
        for field in 0..self.by.dataset.fields {
            let seen = match reading.spans().iter().find(|span| span.index == field) {
                Some(span) => Sight::of(self.check_field(read, field, span_of(span))),
                None => Sight::Absent,
            };
            self.ask_ledger(read, reads, usize::from(field), seen);
        }
    }

    /// Brings what was seen of one word before the ledger.
    #[inline(always)]
    fn ask_ledger(
        &mut self,
        read: &AnsweredRead<'_>,
        reads: &mut ReadTickets,
        field: usize,
        sight: Sight,
    ) {
        let (Some(ledger), Some((slot, ticket))) = (&self.ledger, reads.take(field)) else {
            self.tally.stamp_only += u64::from(!matches!(sight, Sight::Unreadable));
            return;
        };
        let (found, version) = match sight {
            Sight::Absent => (judgement::Read::Absent, None),
            Sight::Value(seen) if !seen.is_fabricated() => (seen.into(), Some(seen.version())),
            Sight::Value(_) | Sight::Unreadable => {
                self.tally.stamp_only += u64::from(!matches!(sight, Sight::Unreadable));
                return ledger.abandon_read(slot, ticket);
            }
        };
        if let (Some(scribe), Some(noted)) = (&mut self.scribe, reads.noted) {
            let seen = if let Sight::Value(seen) = sight { Some(seen) } else { None };
            scribe.end_read(noted, seen, read.answered);
        }
        let judgement = ledger.end_read(slot, ticket, found, read.sent, read.answered);
        self.count(read, field as u16, version, judgement);
    }

    /// Checks a record that came as one value; `None` if it is unreadable, which is noted.
    fn check_whole(&mut self, read: &AnsweredRead<'_>, bytes: &[u8]) -> Option<Seen> {
        let fields = self.by.dataset.fields;
        if fields <= 1 {
            return self.check_field(read, 0, bytes);
        }
        let mut together = None;
        for (field, bytes) in (0..).zip(stamp::split(bytes, fields)) {
            let seen = match bytes {
                Ok(bytes) => self.check_field(read, field, bytes)?,
                Err(fault) => return self.unreadable(read, field, &fault),
            };
            if *together.get_or_insert(seen) != seen {
                return self.torn(read, field);
            }
        }
        together
    }

    /// Checks fields that are written together and came apart: all of one version.
    fn check_together<'a>(
        &mut self,
        read: &AnsweredRead<'_>,
        fields: impl Iterator<Item = (u16, &'a [u8])>,
    ) -> Option<Seen> {
        let (mut together, mut count) = (None, 0);
        for (field, bytes) in fields {
            let seen = self.check_field(read, field, bytes)?;
            count += 1;
            if *together.get_or_insert(seen) != seen {
                return self.torn(read, field);
            }
        }
        if count != self.by.dataset.fields { self.torn(read, count) } else { together }
    }

    #[inline(always)]
    fn check_field(&mut self, read: &AnsweredRead<'_>, field: u16, bytes: &[u8]) -> Option<Seen> {
        self.tally.bytes_checked += bytes.len() as u64;
        let expected = Expected {
            dataset: self.by.dataset.id,
            session: self.by.dataset.session,
            record: read.record,
            field,
            fabricated_key: self.by.fabricated.then_some(read.key),
        };
        match stamp::check(bytes, &expected) {
            Ok(seen) => Some(seen),
            Err(fault) => self.unreadable(read, field, &fault),
        }
    }

    #[cold]
    fn unreadable(
        &mut self,
        read: &AnsweredRead<'_>,
        field: u16,
        fault: &stamp::StampFault,
    ) -> Option<Seen> {
        self.note(read, AnomalyKind::Corrupt, field, None, Bounds::default(), fault.to_string());
        None
    }

    #[cold]
    fn torn(&mut self, read: &AnsweredRead<'_>, field: u16) -> Option<Seen> {
        let detail = "fields that are written together are of different versions".to_owned();
        self.note(read, AnomalyKind::Corrupt, field, None, Bounds::default(), detail);
        None
    }

    #[inline(always)]
    fn count(
        &mut self,
        read: &AnsweredRead<'_>,
        field: u16,
        version: Option<u32>,
        judgement: Judgement,
    ) {
        match judgement {
            Judgement::Legal => self.tally.judged += 1,
            rarer => self.count_rarer(read, field, version, rarer),
        }
    }

    fn count_rarer(
        &mut self,
        read: &AnsweredRead<'_>,
        field: u16,
        version: Option<u32>,
        judgement: Judgement,
    ) {
        match judgement {
            Judgement::Legal => {}
            Judgement::Early => {
                self.tally.judged += 1;
                self.tally.early += 1;
            }
            Judgement::LegalMiss => {
                self.tally.judged += 1;
                self.tally.legal_misses += 1;
            }
            Judgement::LegalStale => {
                self.tally.judged += 1;
                self.tally.legal_stale += 1;
            }
            Judgement::StampOnly => self.tally.stamp_only += 1,
            Judgement::UnexpectedMiss => {
                self.tally.stamp_only += 1;
                self.tally.unexpected_misses += 1;
            }
            Judgement::Unknown => self.tally.unknown += 1,
            Judgement::Illegal { kind, floor, next, behind } => {
                self.tally.judged += 1;
                let detail = match (kind, version) {
                    (AnomalyKind::Stale, None) => "absent, though a write was acknowledged",
                    _ => "",
                };
                let bounds = Bounds { floor, next, behind };
                self.note(read, kind, field, version, bounds, detail.to_owned());
            }
        }
    }

    #[cold]
    fn note(
        &mut self,
        read: &AnsweredRead<'_>,
        kind: AnomalyKind,
        field: u16,
        seen: Option<u32>,
        bounds: Bounds,
        detail: String,
    ) {
        self.tally.anomalies[kind as usize] += 1;
        if self.anomalies.len() >= ANOMALIES_KEPT {
            return;
        }
        self.anomalies.push(Anomaly {
            kind,
            operation: read.operation,
            writer: None,
            record: read.record,
            field,
            seen,
            floor: bounds.floor,
            next: bounds.next,
            sent: read.sent,
            answered: read.answered,
            behind: bounds.behind,
            again: String::new(),
            detail,
        });
    }
}

/// What a read showed of one word of the ledger.
#[derive(Clone, Copy, Debug)]
enum Sight {
    Absent,
    Value(Seen),
    /// Its stamp is wrong; noted already.
    Unreadable,
}

impl Sight {
    fn of(seen: Option<Seen>) -> Sight {
        seen.map_or(Sight::Unreadable, Sight::Value)
    }
}

/// What would have been legal to read.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    floor: u32,
    next: u32,
    behind: Option<Duration>,
}
