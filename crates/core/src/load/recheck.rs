//! Reads again, after the load of a phase. Records that were to be read back and were not answered are asked for
//! again. All records with wrong reads are read again once the load has quiesced, in passes of the one load loop: a
//! record that is still missing then is lost, not late. A record that is still wrong is named once, however many
//! reads have found it; a read that was wrong while its record is right now keeps the name that it got. Records that
//! could not be read again are counted as just that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::any_store::AnyStore;
use super::backoff::Backoff;
use super::job::{Again, Job};
use super::observer::{Observer, Progress};
use super::phase::carry;
use crate::measure::{self, Interval, Nanos, PhaseMeasure, StopReason};
use crate::store::Consistency;
use crate::verify::{ANOMALIES_KEPT, Anomaly, Behind, RIGHT_AGAIN, Suspects, Tally, WordFinding};
use crate::workload::{Marked, Marks};

/// Time for which suspects are asked for while none of them is answered, ns.
const PATIENCE: Nanos = 10_000_000_000;
/// Time for which records that were to be read back are asked for while none of them is answered, ns.
const INSISTING: Nanos = 30_000_000_000;
/// Looks at a record once the store has had its time to settle: one right answer clears the
/// record, so that a store which is wrong now and then is not said to have lost it.
const LOOKS: u32 = 3;
/// Shortest pause between two looks at all suspects while an eventually consistent store settles.
const PAUSE: Duration = Duration::from_millis(100);
/// Reason for a missing answer where the user stopped the run.
const STOPPED: &str = "kvdyno was stopped";

/// Reads again what was not answered, and then each suspect's record, and enters the results into `measure`. A record
/// or field that is still old or absent is named lost, once.
pub(super) fn recheck(
    store: &Arc<dyn AnyStore>,
    job: &Job,
    measure: &mut PhaseMeasure,
    observer: &mut dyn Observer,
) {
    let Some(suspects) = &job.suspects else { return };
    let mut passes = Passes { store, job, observer: Aside(observer), first: 0 };
    if let Some(unread) = &job.unread {
        let asked = passes.ask(unread.copy(), INSISTING, suspects);
        measure.unread = asked.unread.count();
        measure.tally.add(&asked.tally);
        measure.behind.add(&asked.behind);
        let room = ANOMALIES_KEPT.saturating_sub(measure.anomalies.len());
        measure.anomalies.extend(asked.anomalies.into_iter().take(room));
    }
    let idle_since = measure.end.max(measure.last_end);
    let looks = passes.look(suspects, idle_since.saturating_add(settle(job)));
    looks.count(measure, job.plan.inserted_from.unwrap_or(u64::MAX));
    looks.name(&mut measure.anomalies);
    let unknown = measure.unread + measure.tally.not_read_again;
    if unknown > 0 && job.context.interrupt.is_raised() {
        measure.stopped = StopReason::Interrupted;
    }
}

/// Returns the time that the store may take to settle, ns.
fn settle(job: &Job) -> Nanos {
    let settle = match job.context.profile.consistency.level {
        Consistency::Eventual => job.context.options.settle,
        Consistency::BoundedStaleness(longest) => longest,
        Consistency::ReadAfterWrite | Consistency::Linearizable => Duration::ZERO,
    };
    Nanos::try_from(settle.as_nanos()).unwrap_or(Nanos::MAX / 2)
}

/// Observer of a pass: it passes the progress on, and leaves the phase's timeline as it is.
struct Aside<'a>(&'a mut dyn Observer);

impl Observer for Aside<'_> {
    fn interval(&mut self, _: &Interval) {}

    fn progress(&mut self, progress: &Progress) {
        self.0.again(progress);
    }
}

/// Results of asking for records.
struct RecheckResult {
    /// Records that were not answered.
    unread: Marks,
    /// The reason for that in the store's words.
    why: String,
    tally: Tally,
    anomalies: Vec<Anomaly>,
    behind: Behind,
}

/// Passes over records that were marked.
struct Passes<'a> {
    store: &'a Arc<dyn AnyStore>,
    job: &'a Job,
    observer: Aside<'a>,
    /// Number of the next pass's first operation.
    first: u64,
}

impl Passes<'_> {
    fn is_stopped(&self) -> bool {
        self.job.context.interrupt.is_raised()
    }

    /// Asks for `records` until each was answered once, with longer and longer pauses; gives up when none was
    /// answered for as long as `patience`, ns. Marks records with wrong reads in `suspects`.
    fn ask(&mut self, records: Marks, patience: Nanos, suspects: &Arc<Suspects>) -> RecheckResult {
        let mut result = RecheckResult {
            unread: records,
            why: String::new(),
            tally: Tally::default(),
            anomalies: Vec::new(),
            behind: Behind::default(),
        };
        let (mut backoff, mut answered_at) = (Backoff::default(), measure::now());
        let mut left = result.unread.count();
        while left > 0 && !self.is_stopped() {
            self.pass(&mut result, suspects);
            let before = std::mem::replace(&mut left, result.unread.count());
            if left < before {
                answered_at = measure::now();
                backoff.reset();
            }
            if left > 0 {
                if measure::now() >= answered_at.saturating_add(patience) {
                    return result;
                }
                std::thread::sleep(backoff.wait());
            }
        }
        if left > 0 {
            STOPPED.clone_into(&mut result.why);
        }
        result
    }

    /// Asks once for the records that are unread.
    fn pass(&mut self, result: &mut RecheckResult, suspects: &Arc<Suspects>) {
        let marked = Arc::new(Marked::of(&result.unread));
        let answered = Arc::new(result.unread.none_of_these());
        let again = Again {
            marked: Arc::clone(&marked),
            suspects: Arc::clone(suspects),
            answered: Arc::clone(&answered),
            first: self.first,
        };
        let measured = self.job.again(again).map(Arc::new).and_then(|job| {
            self.first += job.plan.groups.iter().filter_map(|group| group.requests).sum::<u64>();
            carry(self.store, &job, &mut self.observer)
        });
        match measured {
            Ok(measure) => {
                result.unread = result.unread.without(&answered);
                result.tally.add(&measure.tally);
                result.behind.add(&measure.behind);
                let room = ANOMALIES_KEPT.saturating_sub(result.anomalies.len());
                result.anomalies.extend(measure.anomalies.into_iter().take(room));
                if let Some(error) = measure.errors.into_iter().max_by_key(|error| error.last_at) {
                    result.why = error.first_message;
                }
            }
            Err(error) => result.why = error.to_string(),
        }
    }

    /// Looks at every suspect until it is right, or until there were [`LOOKS`] looks since the time `settled`.
    fn look<'s>(&mut self, suspects: &'s Suspects, settled: Nanos) -> Looks<'s> {
        let mut looks = Looks {
            suspects,
            unread: suspects.marks().none_of_these(),
            why: String::new(),
            still: None,
            examples: Vec::new(),
        };
        let mut wrong = suspects.marks().copy();
        let mut made = 0;
        while wrong.count() > 0 && made < LOOKS && !self.is_stopped() {
            made += u32::from(measure::now() >= settled);
            let found = match suspects.none_of_these() {
                Ok(found) => Arc::new(found),
                Err(error) => {
                    looks.why = error.to_string();
                    break;
                }
            };
            let began = measure::now();
            let asked = self.ask(wrong, PATIENCE, &found);
            asked.unread.records().for_each(|record| looks.unread.set(record));
            if !asked.why.is_empty() {
                looks.why = asked.why;
            }
            wrong = found.marks().copy();
            (looks.still, looks.examples) = (Some(found), asked.anomalies);
            if made == 0 && wrong.count() > 0 {
                let took = Duration::from_nanos(measure::now().saturating_sub(began));
                std::thread::sleep(took.max(PAUSE));
            }
        }
        if made < LOOKS {
            // It was not looked at as often as it would have to be.
            wrong.records().for_each(|record| looks.unread.set(record));
        }
        if self.is_stopped() {
            STOPPED.clone_into(&mut looks.why);
        }
        looks
    }
}

/// Results of looking at all suspects again.
struct Looks<'a> {
    suspects: &'a Suspects,
    /// Records that were not read again as often as needed.
    unread: Marks,
    why: String,
    /// Suspects of the last look; `None` if there was no look.
    still: Option<Arc<Suspects>>,
    /// Anomalies of the last look; some are left out if there are many.
    examples: Vec<Anomaly>,
}

/// Result for one of the ledger's words with wrong reads.
#[derive(Clone, Copy)]
enum RecheckOutcome {
    /// Its record was not read again as often as needed.
    Unread,
    Right,
    Still(WordFinding),
}

impl Looks<'_> {
    fn outcome(&self, record: u64, slot: u64) -> RecheckOutcome {
        if self.unread.has(record) {
            return RecheckOutcome::Unread;
        }
        let still = self.still.as_ref().and_then(|still| still.found(slot));
        still.map_or(RecheckOutcome::Right, RecheckOutcome::Still)
    }

    /// Returns the number of reads that are named once all together, because what they found is there still.
    fn named_once(&self, slot: u64, still: WordFinding) -> u64 {
        let before = self.suspects.found(slot).filter(|before| before.is_same(still));
        before.map_or(0, WordFinding::reads)
    }

    /// Enters the result for every suspect into the counts; records from `inserted_from` on are the last inserts.
    fn count(&self, measure: &mut PhaseMeasure, inserted_from: u64) {
        let PhaseMeasure { tally, old, .. } = measure;
        for record in self.suspects.marks().records() {
            let (mut was_old, mut is_wrong, mut is_lost) = (false, false, false);
            for slot in self.suspects.slots(record) {
                let before = self.suspects.found(slot);
                was_old |= before.is_some_and(WordFinding::is_old);
                match self.outcome(record, slot) {
                    RecheckOutcome::Unread => tally.not_read_again += u64::from(before.is_some()),
                    RecheckOutcome::Right => {}
                    RecheckOutcome::Still(still) => {
                        let of_reads = &mut tally.anomalies[still.kind() as usize];
                        *of_reads = of_reads.saturating_sub(self.named_once(slot, still));
                        tally.anomalies[still.last_name() as usize] += 1;
                        is_wrong = true;
                        is_lost |= still.is_old();
                    }
                }
            }
            let unread = self.unread.has(record);
            old.lost += u64::from(is_lost);
            old.lost_inserts += u64::from(is_lost && record >= inserted_from);
            old.unread += u64::from(was_old && unread);
            old.late += u64::from(was_old && !unread && !is_wrong);
        }
    }

    /// Names the examples. Of several reads that found what is there still, only the first stays, and stands for all
    /// of them.
    fn name(mut self, anomalies: &mut Vec<Anomaly>) {
        anomalies.sort_by_key(|anomaly| anomaly.sent);
        let slot = |anomaly: &Anomaly| self.suspects.slot(anomaly.record, anomaly.field);
        let found = std::mem::take(&mut self.examples);
        let found: BTreeMap<u64, Anomaly> =
            found.into_iter().filter_map(|anomaly| Some((slot(&anomaly)?, anomaly))).collect();
        // By the ledger's word: how many of the reads among the examples are to be named once.
        let mut same: BTreeMap<u64, u64> = BTreeMap::new();
        for anomaly in &*anomalies {
            if let Some((slot, _)) = self.still_same(anomaly) {
                *same.entry(slot).or_default() += 1;
            }
        }
        let mut named: BTreeMap<u64, u64> = BTreeMap::new();
        let mut kept: Vec<Anomaly> = Vec::with_capacity(anomalies.len());
        for mut anomaly in anomalies.drain(..) {
            let Some((slot, still)) = self.still_same(&anomaly) else {
                anomaly.again = self.again(&anomaly);
                kept.push(anomaly);
                continue;
            };
            let reads = self.named_once(slot, still);
            let left = same.entry(slot).or_default();
            *left -= 1;
            // Another thing was found after it: it stands for itself.
            if *left >= reads {
                anomaly.again = self.again(&anomaly);
                kept.push(anomaly);
                continue;
            }
            if *named.entry(slot).and_modify(|n| *n += 1).or_insert(1) == 1 {
                kept.push(last(anomaly, still, reads, found.get(&slot)));
            }
        }
        self.add_found_last(found, &mut kept);
        *anomalies = kept;
    }

    /// Returns the slot of the ledger's word that an anomaly is about and its last finding, if that is the same as
    /// the anomaly's.
    fn still_same(&self, anomaly: &Anomaly) -> Option<(u64, WordFinding)> {
        let slot = self.suspects.slot(anomaly.record, anomaly.field)?;
        match self.outcome(anomaly.record, slot) {
            RecheckOutcome::Still(still) if still.is_same(self.suspects.finding(anomaly)) => {
                Some((slot, still))
            }
            _ => None,
        }
    }

    /// Describes the result of reading again, for an anomaly that keeps its name.
    fn again(&self, anomaly: &Anomaly) -> String {
        let Some(slot) = self.suspects.slot(anomaly.record, anomaly.field) else {
            return "not read again: it is no record of the dataset".to_owned();
        };
        match self.outcome(anomaly.record, slot) {
            RecheckOutcome::Unread => format!("not read again: {}", self.why),
            RecheckOutcome::Right => RIGHT_AGAIN.to_owned(),
            RecheckOutcome::Still(still) => format!("still {}", still.kind().name()),
        }
    }

    /// Adds anomalies that the last look has found and no read of the phase has.
    fn add_found_last(&self, found: BTreeMap<u64, Anomaly>, kept: &mut Vec<Anomaly>) {
        for (slot, mut anomaly) in found {
            let RecheckOutcome::Still(still) = self.outcome(anomaly.record, slot) else { continue };
            if kept.len() < ANOMALIES_KEPT && self.named_once(slot, still) == 0 {
                anomaly.kind = still.last_name();
                "found when read again".clone_into(&mut anomaly.again);
                kept.push(anomaly);
            }
        }
    }
}

/// Returns the example that stands for all `reads` which found what is there still, with the bounds of `found`, the
/// last look's anomaly.
fn last(mut anomaly: Anomaly, still: WordFinding, reads: u64, found: Option<&Anomaly>) -> Anomaly {
    anomaly.again = match still.is_old() {
        true => "still old or absent".to_owned(),
        false => format!("still {}", still.kind().name()),
    };
    if reads > 1 {
        anomaly.again.push_str(&format!("; {reads} reads found it so"));
    }
    anomaly.kind = still.last_name();
    if let Some(found) = found {
        (anomaly.floor, anomaly.next) = (found.floor, found.next);
    }
    anomaly
}
