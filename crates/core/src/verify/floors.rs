//! Judges reads of records that another process writes. Each owner tells which versions were acknowledged, and
//! thereby the oldest version that may still be read: the floor.
//!
//! # No false alarm
//!
//! A read is called wrong only by floors that were here before it was sent. What was told of an acknowledgement came
//! after it, and the read was sent after that, so the order is one of cause and effect, and does not depend on any
//! clock.
//!
//! # Reads that count as judged
//!
//! The other processes hear only later of what an owner acknowledged shortly before a read was sent. So a read waits
//! until every owner has told all that it acknowledged up to then, and as long again as clocks may differ. If it found
//! no less than the floor of that later view it was right by all that is known, and is judged; if it found something
//! between the two floors nobody can tell, and it is counted by its stamp only. That a version was never written, or
//! its write failed, is seen by the owner alone.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::anomaly::{ANOMALIES_KEPT, Anomaly, AnomalyKind, Behind, Tally};
use super::ledger::Ledger;
use super::stamp::{SeenStamp, WriterRun};
use crate::measure::Nanos;
use crate::store::OperationId;
use crate::workload::{Dataset, Ownership};

/// Highest number of reads that wait to be judged; more are counted by their stamp only.
const MOST_READS: usize = 1 << 22;
/// Highest number of words that may be written in a phase whose reads are judged to its end.
const MOST_FLOORS: usize = 1 << 22;
/// Longest time of a read that is surely judged, ns: one that takes longer may be judged by its stamp only.
const LONGEST: Nanos = 5_000_000_000;
/// Highest number of acknowledgements between two reports of an owner. Further ones are not reported, and reads of that
/// time are not judged.
const MOST_ACKS: usize = 1 << 18;
/// Highest number of runs of equal floors that a process reports at the begin of a phase.
const MOST_RUNS: usize = 1 << 20;
/// Time within which an answered write is surely entered here, ns. It decides how many reads count as judged, and never
/// raises an alarm.
const ENTERING: Nanos = 10_000_000;

/// Acknowledgement of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack(
    /// Number of the word that was written: of the record, and of its field where fields are written apart.
    pub u64,
    /// Oldest version that may be read from then on.
    pub u32,
    /// Time at which it was answered, ns.
    pub Nanos,
);

/// Periodic report of one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acks {
    /// Acknowledgements since the last report.
    pub acks: Vec<Ack>,
    /// Time before which the owner has told every acknowledgement, ns.
    pub until: Nanos,
    /// Time before which reads have no complete view, ns: more was acknowledged than is told. 0 if all is told.
    pub incomplete_until: Nanos,
}

impl Acks {
    /// Returns the same report by another clock.
    #[must_use]
    pub fn moved(mut self, time: impl Fn(Nanos) -> Nanos) -> Acks {
        let moved = |at: Nanos| if at == 0 || at == Nanos::MAX { at } else { time(at) };
        self.acks.iter_mut().for_each(|ack| ack.2 = moved(ack.2));
        (self.until, self.incomplete_until) = (moved(self.until), moved(self.incomplete_until));
        self
    }
}

/// Floors of one owner's words at the begin of a phase, in order, as runs: number of words in a row, and their floor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloorRuns(Vec<(u64, u32)>);

impl FloorRuns {
    /// Reads the floors of the first `slots` slots of `ledger`, in which nothing is in flight. Where they differ too
    /// much the rest is left out, which is as if nothing had been written there.
    #[must_use]
    pub fn of(ledger: &Ledger, slots: u64) -> FloorRuns {
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for slot in 0..slots.min(ledger.slots()) {
            let floor = ledger.state(slot).floor;
            let full = runs.len() == MOST_RUNS;
            match runs.last_mut() {
                Some((count, last)) if *last == floor => *count += 1,
                _ if full => break,
                _ => runs.push((1, floor)),
            }
        }
        FloorRuns(runs)
    }
}

/// Floors of one owner's words at the begin of a phase as (end of the run, floor), to look one up.
#[derive(Debug, Default)]
struct Base(Vec<(u64, u32)>);

impl Base {
    fn of(runs: FloorRuns) -> Base {
        let mut end = 0;
        let ends = runs.0.into_iter().map(|(count, floor)| {
            end += count;
            (end, floor)
        });
        Base(ends.collect())
    }

    fn floor(&self, slot: u64) -> u32 {
        let run = self.0.partition_point(|(end, _)| *end <= slot);
        self.0.get(run).map_or(0, |(_, floor)| *floor)
    }
}

/// Answered read of a record that another process owns.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForeignRead {
    pub operation: OperationId,
    pub record: u64,
    pub field: u16,
    /// Stamp that was found; `None` if the record was absent.
    pub seen: Option<SeenStamp>,
    pub sent: Nanos,
    pub answered: Nanos,
}

/// Number of reads of records that other processes own, and how many of them were judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignReads {
    /// Words read.
    pub reads: u64,
    /// Words of them that were judged by their owner's floors.
    pub judged: u64,
}

impl ForeignReads {
    /// Adds the counts of another process.
    pub fn add(&mut self, other: ForeignReads) {
        self.reads += other.reads;
        self.judged += other.judged;
    }
}

/// Result of judging reads of records that other processes own.
#[derive(Clone, Debug, Default)]
pub struct JudgedReads {
    /// Counts of judged, open and wrong ones.
    pub tally: Tally,
    /// Wrong ones, as examples.
    pub anomalies: Vec<Anomaly>,
    /// Staleness of the wrong ones.
    pub behind: Behind,
    /// Number of reads in all, and of those judged.
    pub counts: ForeignReads,
}

/// Facts of a phase by which its floors are judged.
#[derive(Clone, Copy, Debug)]
pub struct FloorRules {
    /// Records of the run.
    pub dataset: Dataset,
    /// True if each field has a word of its own.
    pub fields_apart: bool,
    /// Number of processes that own records.
    pub owners: u32,
    /// True if records may hold data of earlier runs.
    pub existing_data: bool,
    /// True if a record that was written may be gone: the run deletes, or the store may forget.
    pub may_be_gone: bool,
}

/// Floors of one phase, as one process tells and hears them. Its workers share it with the thread that talks to other
/// processes.
pub struct Floors {
    rules: FloorRules,
    outgoing: Mutex<Acks>,
    reads: Mutex<Vec<ForeignRead>>,
    judging: Mutex<Judging>,
}

impl Floors {
    /// Creates floors of which nothing is known yet.
    #[must_use]
    pub fn new(rules: FloorRules) -> Floors {
        let owners = rules.owners as usize;
        let judging = Judging {
            bases: (0..owners).map(|_| Base::default()).collect(),
            until: vec![0; owners],
            ..Judging::default()
        };
        let (outgoing, reads) = (Mutex::default(), Mutex::default());
        Floors { rules, outgoing, reads, judging: Mutex::new(judging) }
    }

    fn words(&self) -> u64 {
        if self.rules.fields_apart { self.rules.dataset.fields.into() } else { 1 }
    }

    /// Notes a write of this process: it was acknowledged at `at`, and its slot has this floor.
    pub(super) fn acknowledge(&self, ownership: &Ownership, slot: u64, floor: u32, at: Nanos) {
        let words = self.words();
        let word = ownership.record(slot / words) * words + slot % words;
        let mut outgoing = lock(&self.outgoing);
        if outgoing.acks.len() < MOST_ACKS {
            outgoing.acks.push(Ack(word, floor, at));
        } else {
            outgoing.incomplete_until = Nanos::MAX;
        }
    }

    /// Keeps an answered read of a record that another process owns, to be judged later.
    pub(super) fn read(&self, read: ForeignRead) {
        lock(&self.reads).push(read);
    }

    /// Takes what this process has to tell at `now`. `over` says that all of its writes have ended.
    #[must_use]
    pub fn take_acks(&self, now: Nanos, over: bool) -> Acks {
        let mut acks = std::mem::take(&mut *lock(&self.outgoing));
        acks.until = if over { Nanos::MAX } else { now.saturating_sub(ENTERING) };
        if acks.incomplete_until > 0 {
            acks.incomplete_until = now;
        }
        acks
    }

    /// Enters the floors that an owner's words have at the begin of the phase.
    pub fn on_base(&self, owner: u32, runs: FloorRuns) {
        if let Some(base) = lock(&self.judging).bases.get_mut(owner as usize) {
            *base = Base::of(runs);
        }
    }

    /// Enters what an owner tells, heard at `now`. Its clock differs from this one by `off` at most, ns.
    pub fn on_acks(&self, owner: u32, acks: Acks, off: Nanos, now: Nanos) {
        let judging = &mut *lock(&self.judging);
        let Some(until) = judging.until.get_mut(owner as usize) else { return };
        *until = acks.until.max(*until);
        judging.off = judging.off.max(off);
        judging.incomplete_until = judging.incomplete_until.max(acks.incomplete_until);
        judging.received.extend(acks.acks.iter().map(|ack| Ack(ack.0, ack.1, now)));
        judging.acked.extend(acks.acks);
    }

    /// Judges the reads of which enough is known at `now`; all of them when it is `over`.
    pub fn judge(&self, ownership: &Ownership, now: Nanos, over: bool) {
        let reads = std::mem::take(&mut *lock(&self.reads));
        let judging = &mut *lock(&self.judging);
        let took = reads.iter().map(|read| read.answered.saturating_sub(read.sent)).max();
        judging.longest = judging.longest.max(took.unwrap_or(0)).min(LONGEST);
        judging.waiting.extend(reads);
        let known = judging.known(ownership.index());
        // A slow read that is still in flight is to be judged by the floors of when it was sent.
        let in_flight = now.saturating_sub(2 * judging.longest);
        let all = over || judging.waiting.len() > MOST_READS;
        let until = if all { Nanos::MAX } else { known.min(in_flight) };
        let (mut ready, waiting): (Vec<ForeignRead>, Vec<ForeignRead>) =
            judging.waiting.drain(..).partition(|read| read.sent < until);
        judging.waiting = waiting;
        ready.sort_by_key(|read| read.sent);
        judging.received.sort_by_key(|ack| ack.2);
        judging.acked.sort_by_key(|ack| ack.2);
        let (words, off) = (self.words(), judging.off);
        let (mut received, mut acked) = (0, 0);
        for read in &ready {
            if read.sent < judging.judged_to {
                judging.leave_open();
                continue;
            }
            received += judging.pass_received(received, read.sent);
            acked += judging.pass_acked(acked, read.sent.saturating_add(off));
            let owner = ownership.owner(read.record);
            let [word, slot] = [read.record, ownership.slot(read.record)]
                .map(|of| of.saturating_mul(words).saturating_add(read.field.into()));
            let base = judging.bases.get(owner as usize).map_or(0, |base| base.floor(slot));
            let (low, high) = judging.floors.get(&word).copied().unwrap_or_default();
            let complete = read.sent < known && read.sent >= judging.incomplete_until;
            let view = View { low: low.max(base), high: high.max(base), complete };
            let verdict = view.judge(read.seen, &self.rules);
            judging.count(read, verdict, view, self.rules.dataset.session);
        }
        // Where reads were given up the floors stay behind with them.
        let until = if over || !all { until } else { known.min(in_flight) };
        received += judging.pass_received(received, until);
        acked += judging.pass_acked(acked, until.saturating_add(off));
        judging.judged_to = ready.last().map_or(0, |read| read.sent).max(judging.judged_to);
        judging.judged_to = until.max(judging.judged_to);
        judging.received.drain(..received);
        judging.acked.drain(..acked);
        if judging.floors.len() > MOST_FLOORS {
            // A floor that is forgotten accuses nobody, and from now on no view is complete.
            judging.floors.clear();
            judging.incomplete_until = Nanos::MAX;
        }
    }

    /// Takes the result of judging, once, when the phase is over. Reads that were found wrong are not read again: their
    /// owner reads its records back.
    #[must_use]
    pub fn take(&self) -> JudgedReads {
        let judging = &mut *lock(&self.judging);
        let mut tally = std::mem::take(&mut judging.tally);
        tally.not_read_again += std::mem::take(&mut judging.places).len() as u64;
        let (anomalies, behind) = (std::mem::take(&mut judging.anomalies), judging.behind);
        JudgedReads { tally, anomalies, behind, counts: judging.counts }
    }
}

/// Floors of other processes as this one knows them, and the reads that it has judged by them.
#[derive(Default)]
struct Judging {
    bases: Vec<Base>,
    /// Time up to which each owner has told all, ns.
    until: Vec<Nanos>,
    /// Most by which clocks differ, ns.
    off: Nanos,
    incomplete_until: Nanos,
    /// Acknowledgements, each with the time at which it was heard.
    received: Vec<Ack>,
    /// The same, each with the time of the acknowledgement.
    acked: Vec<Ack>,
    /// Floors of words up to the read that was judged last: by what was heard, and by what was acknowledged.
    floors: HashMap<u64, (u32, u32)>,
    waiting: Vec<ForeignRead>,
    /// Time up to which reads are judged, ns: one that was sent before it can no longer be, because floors have gone
    /// on.
    judged_to: Nanos,
    /// Longest time that a read took, ns, at most [`LONGEST`].
    longest: Nanos,
    tally: Tally,
    counts: ForeignReads,
    anomalies: Vec<Anomaly>,
    behind: Behind,
    places: BTreeSet<(u64, u16)>,
}

impl Judging {
    /// Returns the time up to which all acknowledgements of other processes are known, ns. The own part needs no
    /// telling.
    fn known(&self, own: u32) -> Nanos {
        let others = (0..).zip(&self.until).filter(|(owner, _)| *owner != own);
        let known = others.map(|(_, until)| *until).min().unwrap_or(Nanos::MAX);
        if known == Nanos::MAX { known } else { known.saturating_sub(self.off) }
    }

    fn leave_open(&mut self) {
        self.counts.reads += 1;
        self.tally.stamp_only += 1;
    }

    /// Enters what was heard before `sent`, from number `from` on, and returns how many acknowledgements that were.
    fn pass_received(&mut self, from: usize, sent: Nanos) -> usize {
        let passed = self.received[from..].iter().take_while(|ack| ack.2 < sent);
        let passed = passed.map(|ack| {
            let (low, high) = self.floors.entry(ack.0).or_default();
            (*low, *high) = (ack.1.max(*low), ack.1.max(*high));
        });
        passed.count()
    }

    /// Enters what was acknowledged up to `at`, from number `from` on, and returns how many acknowledgements that were.
    fn pass_acked(&mut self, from: usize, at: Nanos) -> usize {
        let passed = self.acked[from..].iter().take_while(|ack| ack.2 <= at);
        let passed = passed.map(|ack| {
            let (_, high) = self.floors.entry(ack.0).or_default();
            *high = ack.1.max(*high);
        });
        passed.count()
    }

    fn count(&mut self, read: &ForeignRead, verdict: ForeignVerdict, view: View, session: u32) {
        if verdict == ForeignVerdict::Open {
            return self.leave_open();
        }
        self.tally.judged += 1;
        (self.counts.reads, self.counts.judged) = (self.counts.reads + 1, self.counts.judged + 1);
        if verdict == ForeignVerdict::Stale {
            self.note(read, view, session);
        }
    }

    #[cold]
    fn note(&mut self, read: &ForeignRead, view: View, session: u32) {
        self.tally.anomalies[AnomalyKind::Stale as usize] += 1;
        self.tally.note_writer(read.seen, session);
        self.tally.wrong_misses += u64::from(read.seen.is_none());
        let earlier = read.seen.is_some_and(|seen| seen.session() == WriterRun::Earlier);
        let version = read.seen.map(SeenStamp::version);
        self.behind.reads += 1;
        match version {
            None => self.behind.absent += 1,
            Some(_) if earlier => self.behind.earlier += 1,
            Some(version) => self.behind.versions_of(view.low - version, view.low - version),
        }
        self.places.insert((read.record, read.field));
        if self.anomalies.len() == ANOMALIES_KEPT {
            return;
        }
        let detail = match read.seen {
            None => "absent, though a write was acknowledged",
            Some(_) if earlier => "what an earlier run wrote",
            Some(_) => "",
        };
        self.anomalies.push(Anomaly {
            kind: AnomalyKind::Stale,
            operation: read.operation,
            writer: None,
            record: read.record,
            field: read.field,
            seen: version,
            floor: view.low,
            next: view.high.max(view.low).saturating_add(1),
            sent: read.sent,
            answered: read.answered,
            behind: None,
            again: "not read again: another agent owns it".to_owned(),
            detail: detail.to_owned(),
        });
    }
}

/// Floors of a word when it was read.
#[derive(Clone, Copy, Debug)]
struct View {
    /// Floor by what was heard before the read was sent.
    low: u32,
    /// Floor by all that was acknowledged until then, as far as it is known now.
    high: u32,
    /// True if all of that is known.
    complete: bool,
}

/// Verdict on a read of a record that another process owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForeignVerdict {
    Right,
    Stale,
    /// Not decided: nobody can tell.
    Open,
}

impl View {
    fn judge(self, seen: Option<SeenStamp>, rules: &FloorRules) -> ForeignVerdict {
        let version = match seen.map(|seen| (seen.session(), seen.version())) {
            None if rules.may_be_gone => return ForeignVerdict::Open,
            // What was there before the first write, or nothing: as a version below all.
            None | Some((WriterRun::Earlier, _)) => 0,
            Some((WriterRun::Ours, version)) => version,
            Some((WriterRun::Unseen, version)) if !rules.existing_data => version,
            Some((WriterRun::Unseen | WriterRun::Newer, _)) => return ForeignVerdict::Open,
        };
        match version {
            _ if version < self.low => ForeignVerdict::Stale,
            _ if self.complete && self.high > 0 && version >= self.high => ForeignVerdict::Right,
            _ => ForeignVerdict::Open,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
