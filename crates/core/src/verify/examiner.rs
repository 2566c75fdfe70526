//! The examiner, one for each worker: gives writes their versions, checks every value that is read,
//! asks the ledger whether it may be there, and keeps what may not.

mod in_flight;
mod scan;
mod sight;
mod whose;
mod wrong;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::anomaly::{ANOMALIES_KEPT, Anomaly, AnomalyKind, Behind, Tally};
use super::floors::Floors;
use super::history::{KeptRequest, SampledRecords, Scribe};
use super::judgement::{self, Judgement, WriteEnd, WriteKind};
use super::ledger::{Ledger, WriteTicket};
use super::missing::{MissedAt, Missing};
use super::sightings::Sightings;
use super::stamp::{self, Expected, SeenStamp, WriterRun};
use super::suspects::Suspects;
use crate::measure::{FreshlyWrong, Nanos};
use crate::store::{FieldSpan, OperationId, Reading};
use crate::workload::{Dataset, Marks, Ownership, Part};
use in_flight::WriteSlot;
pub use in_flight::{ReadTickets, WriteSlots};
use sight::Sight;

/// Rules and shared state of the examiners of a phase.
#[derive(Clone)]
pub struct Examination {
    /// Records of the run, and how they are named.
    pub dataset: Dataset,
    /// Ledger of what records may hold; `None` if verification is off for the run.
    pub ledger: Option<Arc<Ledger>>,
    /// True if each field has a ledger word of its own.
    pub fields_apart: bool,
    /// True if reads are checked.
    pub check_reads: bool,
    /// Part of the records that this process judges as its own.
    pub part: Part,
    /// Owners of records, where they have owners: the ledger then has words for this process's own
    /// only.
    pub ownership: Ownership,
    /// True if the store makes values up (`null:`): their stamp is all there is to check.
    pub fabricated: bool,
    /// True if misses are counted by their time, too: the phase has faults.
    pub time_misses: bool,
    /// Records whose history is kept, if any are.
    pub(crate) sample: Option<Arc<SampledRecords>>,
    /// Marks of records with wrong reads, if they are kept.
    pub(crate) suspects: Option<Arc<Suspects>>,
    /// Marks of records whose read was answered, if the phase asks for them.
    pub(crate) answered: Option<Arc<Marks>>,
    /// Findings of the look at records before a run, while that is under way.
    pub(crate) sightings: Option<Arc<Sightings>>,
    /// Floors by which reads of records of other processes are judged, if they are.
    pub(crate) floors: Option<Arc<Floors>>,
}

/// An answered read.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredRead<'a> {
    /// Operation that read.
    pub operation: OperationId,
    /// Number of the record.
    pub record: u64,
    /// Its key.
    pub key: &'a [u8],
    /// Time at which it was sent, ns.
    pub sent: Nanos,
    /// Time at which it was answered, ns.
    pub answered: Nanos,
}

/// Examiner of one worker's requests. The examiners of all workers of a phase are made before any of
/// them begins.
pub struct Examiner {
    by: Examination,
    ledger: Option<Arc<Ledger>>,
    /// True if reads are checked, and the phase does not ask which were answered.
    usual: bool,
    /// True if every record is this process's own.
    alone: bool,
    /// True if a record has one word of the ledger.
    one_word: bool,
    tally: Tally,
    missing: Missing,
    anomalies: Vec<Anomaly>,
    /// Wrong reads that no interval has told yet.
    fresh: FreshlyWrong,
    behind: Behind,
    /// Fields beyond the first, of records whose fields are written apart.
    further_fields: u64,
    scribe: Option<Scribe>,
}

/// Findings of an examiner.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Findings {
    /// Counts of all that was checked.
    pub tally: Tally,
    /// Wrong reads: at most [`ANOMALIES_KEPT`], as examples.
    pub anomalies: Vec<Anomaly>,
    /// Staleness of those that found something old.
    pub behind: Behind,
}

impl Examiner {
    /// Creates an examiner that has seen nothing yet.
    #[must_use]
    pub fn new(mut by: Examination) -> Self {
        let scribe = by.sample.clone().map(Scribe::new);
        let ledger = by.ledger.take();
        let usual = by.check_reads && by.answered.is_none();
        let missing = Missing::new(by.time_misses);
        let alone = by.part.count == 1 && by.ownership.is_all();
        let one_word = !by.fields_apart;
        Examiner {
            by,
            ledger,
            usual,
            alone,
            one_word,
            tally: Tally::default(),
            missing,
            anomalies: Vec::new(),
            fresh: FreshlyWrong::default(),
            behind: Behind::default(),
            further_fields: 0,
            scribe,
        }
    }

    /// Takes the times at which records were missed, where the phase asks for that; from then on
    /// none are kept.
    pub(crate) fn take_missed_at(&mut self) -> MissedAt {
        self.missing.take_at()
    }

    /// Takes the wrong reads that were answered before `end` and not taken yet, as a number for each
    /// kind.
    pub(crate) fn take_fresh(&mut self, end: Nanos) -> Vec<(AnomalyKind, u64)> {
        self.fresh.take_before(end)
    }

    /// Takes the requests about sampled records; from then on none are kept.
    pub(crate) fn take_kept(&mut self) -> Vec<KeptRequest> {
        self.scribe.take().map_or_else(Vec::new, Scribe::into_kept)
    }

    /// Converts the examiner to its findings.
    #[must_use]
    pub fn into_findings(self) -> Findings {
        let Examiner { mut tally, anomalies, behind, further_fields, .. } = self;
        debug_assert!(tally.is_within_reads(), "judged-once: {tally:?}");
        tally.records = tally.reads - further_fields;
        Findings { tally, anomalies, behind }
    }

    /// Returns the number of illegal reads so far.
    #[must_use]
    pub fn illegal(&self) -> u64 {
        self.tally.illegal()
    }

    /// Prefetches the ledger word of a record that will soon be read or written. Any number is
    /// allowed.
    #[inline]
    pub fn prefetch(&self, record: u64) {
        if let Some(ledger) = &self.ledger {
            ledger.prefetch(if self.one_word {
                self.by.ownership.slot(record)
            } else {
                self.slots(record, None).start
            });
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
        if self.one_word {
            writes.push(self.begin_slot(record, self.by.ownership.slot(record), kind));
        } else {
            let slots = self.slots(record, field);
            slots.for_each(|slot| writes.push(self.begin_slot(record, slot, kind)));
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
        // A batch writes as many records as it has words; one record of several fields is one write.
        let one = writes.others.is_empty() || self.by.fields_apart;
        let records = if one { 1 } else { writes.count() as u64 };
        match end {
            WriteEnd::Acknowledged => self.tally.writes_acknowledged += records,
            WriteEnd::Failed => self.tally.writes_failed += records,
            WriteEnd::Indeterminate => self.tally.writes_indeterminate += records,
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
            if self.by.floors.is_some() {
                self.publish_floor(slot, end, answered);
            }
        }
    }

    /// Notes what a read may return, before it is sent.
    #[inline(always)]
    pub fn begin_read(&mut self, record: u64, reads: &mut ReadTickets) {
        debug_assert!(reads.are_taken(), "tickets-taken: {reads:?}, and record {record} is read");
        reads.first = None;
        if !self.by.check_reads || !self.is_own(record) {
            return;
        }
        if let Some(ledger) = &self.ledger {
            let slots = self.slots(record, None);
            reads.slot = slots.start;
            reads.first = Some(ledger.begin_read(slots.start));
            if !self.one_word {
                reads.others.clear();
                reads.others.extend(slots.skip(1).map(|slot| Some(ledger.begin_read(slot))));
            }
            reads.noted = self.scribe.as_mut().and_then(|scribe| scribe.begin_read(record));
        }
    }

    /// Gives back the tickets of a read that failed: it says nothing.
    #[inline]
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
        if !self.usual && !self.is_checked(read.record) {
            return;
        }
        match found {
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

    /// Notes that the read was answered, where the phase asks for that. Returns true if reads are
    /// checked.
    #[inline]
    fn is_checked(&self, record: u64) -> bool {
        if let Some(answered) = &self.by.answered {
            answered.set(record);
        }
        self.by.check_reads
    }

    /// Judges a read of a key that was never written.
    #[inline]
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

    /// Counts the further fields of a record that was read, if each field has a word of the ledger.
    fn note_fields(&mut self) {
        if self.by.fields_apart {
            self.further_fields += u64::from(self.by.dataset.fields) - 1;
        }
    }

    #[inline]
    fn judge_missing(&mut self, read: &AnsweredRead<'_>, reads: &mut ReadTickets) {
        if let Some(sightings) = &self.by.sightings {
            sightings.miss(read.record);
        }
        self.note_fields();
        self.missing.begin();
        match &self.ledger {
            None => self.missing.expected(),
            Some(_) if reads.count() == 0 => self.see_without_ticket(read, 0, Sight::Absent),
            Some(_) => {
                for field in 0..reads.count() {
                    self.ask_ledger(read, reads, field, Sight::Absent);
                }
            }
        }
        self.missing.of_absent(read.answered, &mut self.tally);
    }

    #[inline]
    fn judge_fields(
        &mut self,
        read: &AnsweredRead<'_>,
        reads: &mut ReadTickets,
        reading: &Reading,
    ) {
        self.note_fields();
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
        self.missing.begin();
        for field in 0..self.by.dataset.fields {
            let seen = match reading.spans().iter().find(|span| span.index == field) {
                Some(span) => Sight::of(self.check_field(read, field, span_of(span))),
                None => Sight::Absent,
            };
            self.ask_ledger(read, reads, usize::from(field), seen);
        }
        self.missing.of_found(read.answered, &mut self.tally);
    }

    /// Asks the ledger to judge what was seen of one word.
    #[inline(always)]
    fn ask_ledger(
        &mut self,
        read: &AnsweredRead<'_>,
        reads: &mut ReadTickets,
        field: usize,
        sight: Sight,
    ) {
        let (Some(ledger), Some((slot, ticket))) = (&self.ledger, reads.take(field)) else {
            return self.see_without_ticket(read, field as u16, sight);
        };
        let (found, seen) = match sight {
            Sight::Absent => (judgement::Read::Absent, None),
            Sight::Value(seen) if !seen.is_fabricated() => (seen.into(), Some(seen)),
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
        self.count(read, field as u16, seen, judgement);
    }

    /// Checks a record that came as one value; `None` if it is unreadable, which is noted.
    #[inline]
    fn check_whole(&mut self, read: &AnsweredRead<'_>, bytes: &[u8]) -> Option<SeenStamp> {
        let fields = self.by.dataset.fields;
        if fields <= 1 {
            return self.check_field(read, 0, bytes);
        }
        let mut together = None;
        for (field, part) in (0..).zip(stamp::split(bytes, fields)) {
            let seen = match part {
                Ok(part) => self.check_field(read, field, part)?,
                Err(fault) => return self.unreadable(read, field, bytes, &fault),
            };
            if *together.get_or_insert(seen) != seen {
                return self.torn(read, field);
            }
        }
        together
    }

    /// Checks fields that are written together and came apart: all of one version.
    #[inline]
    fn check_together<'a>(
        &mut self,
        read: &AnsweredRead<'_>,
        fields: impl Iterator<Item = (u16, &'a [u8])>,
    ) -> Option<SeenStamp> {
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
    fn check_field(
        &mut self,
        read: &AnsweredRead<'_>,
        field: u16,
        bytes: &[u8],
    ) -> Option<SeenStamp> {
        self.tally.bytes_checked += bytes.len() as u64;
        let expected = Expected {
            dataset: self.by.dataset.id,
            session: self.session(read.record),
            record: read.record,
            field,
            fabricated_key: self.by.fabricated.then_some(read.key),
        };
        match stamp::check(bytes, &expected) {
            Ok(seen) => Some(seen),
            Err(fault) => self.unreadable(read, field, bytes, &fault),
        }
    }

    #[inline(always)]
    fn count(
        &mut self,
        read: &AnsweredRead<'_>,
        field: u16,
        seen: Option<SeenStamp>,
        judgement: Judgement,
    ) {
        match judgement {
            Judgement::Legal => self.tally.judged += 1,
            rarer => self.count_rarer(read, field, seen, rarer),
        }
    }

    #[inline]
    fn count_rarer(
        &mut self,
        read: &AnsweredRead<'_>,
        field: u16,
        seen: Option<SeenStamp>,
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
            Judgement::Forgotten => {
                self.tally.judged += 1;
                self.missing.expected();
            }
            Judgement::UnexpectedMiss => {
                self.tally.stamp_only += 1;
                self.missing.expected();
            }
            Judgement::Unknown => self.tally.unknown += 1,
            Judgement::OtherRun => self.tally.of_newer_run(seen, self.session(read.record)),
            Judgement::Illegal { kind, floor, next, behind } => {
                self.tally.judged += 1;
                self.tally.note_writer(seen, self.session(read.record));
                self.missing.demanded();
                let earlier = seen.is_some_and(|seen| seen.session() == WriterRun::Earlier);
                let detail = match (kind, seen) {
                    (AnomalyKind::Stale, None) => "absent, though a write was acknowledged",
                    _ if earlier => "what an earlier run wrote",
                    _ => "",
                };
                let bounds = Bounds { floor, next, behind };
                let version = seen.map(SeenStamp::version);
                if kind == AnomalyKind::Stale {
                    self.note_behind(version, earlier, bounds);
                }
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
        self.fresh.note(kind, read.answered);
        let anomaly = Anomaly {
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
        };
        if let Some(suspects) = &self.by.suspects {
            suspects.note(&anomaly);
        }
        if self.anomalies.len() < ANOMALIES_KEPT {
            self.anomalies.push(anomaly);
        }
    }
}

/// Bounds of what would have been legal to read.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    floor: u32,
    next: u32,
    behind: Option<Duration>,
}
