//! Records that are in the store before a run: refused, reused or wiped, as the user says. kvdyno only ever touches
//! keys that it would write itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kvdyno_core::load::{AnyStore, Job, Observer, Progress, StoreContext};
use kvdyno_core::measure::{Interval, PhaseMeasure, StopReason};
use kvdyno_core::suite::Plan;
use kvdyno_core::verify::Sightings;
use kvdyno_core::workload::{Distribution, KeyWriter, Kind, PhasePlan};

use crate::added::Pass;
use crate::args::DataPolicy;
use crate::exit::Failure;
use crate::progress::PhaseLine;
use crate::run_options::RunOptions;

/// Number of keys looked at to learn whether records exist.
const PROBES: u64 = 1_000;
/// Largest number of records taken to exist if no phase of the plan has a number of records.
const AT_MOST: u64 = 100_000;
/// If no more records than this are planned, every one is looked at before a run writes over them.
const LOOKED_AT_ALL: u64 = 100_000;
/// Clients that look at records and delete them.
const CLIENTS: u32 = 8;

/// Reads that a store must answer before it counts as repaired.
const ANSWERS: u64 = 200;
/// Longest wait for that.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of the phases that look and delete: no phase of a plan has it.
const PHASE: u16 = u16::MAX;

/// Extent to which the records that were looked for exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// No record exists.
    None,
    /// Some exist, and some do not.
    Some,
    /// All records exist.
    All,
}

/// Returns the number of records that the plan reads or writes over without making them first, or makes in all.
pub fn planned_records(plan: &Plan) -> u64 {
    let of_group = plan.phases.iter().flat_map(|phase| &phase.groups).map(|group| group.records);
    of_group.max().filter(|&records| records > 0).unwrap_or(plan.dataset.capacity.min(AT_MOST))
}

/// Returns the number of records that the plan's loading phases reach.
fn loaded(plan: &Plan) -> u64 {
    let groups = plan.phases.iter().filter(|phase| phase.load).flat_map(|phase| &phase.groups);
    let ends = groups.map(|group| {
        let inserts = group.requests.unwrap_or(0).saturating_mul(group.batch.into());
        group.insert_first.saturating_add(inserts.saturating_mul(group.insert_stride))
    });
    ends.max().unwrap_or(0).min(plan.dataset.capacity)
}

/// Records that existed before the run, once they were dealt with as the user wants.
pub struct Found {
    /// Extent to which the records exist.
    pub existing: Existing,
    /// Existence of each record, if some are to be loaded and others exist.
    pub sightings: Option<Arc<Sightings>>,
}

/// No record exists.
const NOTHING: Found = Found { existing: Existing::None, sightings: None };

/// Looks for existing records and deals with them as the user says.
///
/// # Errors
/// [`Failure`] if there are records that must not be there, or values that are not kvdyno's where the run
/// would write, or the store cannot be asked.
pub fn prepare(
    options: &RunOptions<'_>,
    store: &Arc<dyn AnyStore>,
    url: &str,
    context: &StoreContext,
) -> Result<Found, Failure> {
    let records = planned_records(options.plan);
    // Values that a store makes up do not exist.
    if context.profile.capabilities.fabricates || context.profile.store == "null" {
        return Ok(NOTHING);
    }
    let looks = Looks { store, url, context };
    let (existing, sample) = looks.probe(records)?;
    match (options.data, existing) {
        (_, Existing::None) => Ok(NOTHING),
        (DataPolicy::Fresh, _) => Err(Failure::usage(format!(
            "{url} holds records of this dataset already; use --data reuse to measure over them, \
             or --data wipe to delete them first"
        ))),
        (DataPolicy::Wipe, _) => {
            wipe(options, store, url, context, records)?;
            Ok(NOTHING)
        }
        (DataPolicy::Reuse, existing) => {
            if existing == Existing::All && records > LOOKED_AT_ALL {
                looks.refuse_foreign(sample.as_ref().filter(|_| writes(options.plan, false)))?;
                return Ok(Found { existing, sightings: None });
            }
            let (seen, unknown) = looks.at_all(records.max(loaded(options.plan)))?;
            let missing = seen.missing() > 0;
            if writes(options.plan, missing) {
                unknown.map_or(Ok(()), Err)?;
                looks.refuse_foreign(Some(&seen))?;
            }
            match missing {
                false => Ok(Found { existing: Existing::All, sightings: None }),
                true => Ok(Found { existing: Existing::Some, sightings: Some(seen) }),
            }
        }
    }
}

/// Returns true if the plan writes over existing records: in its loading phases, if `loads` says that some records
/// are to be loaded, or in others.
pub fn writes(plan: &Plan, loads: bool) -> bool {
    let phases = plan.phases.iter().filter(|phase| loads || !phase.load);
    let kinds = phases.flat_map(|phase| &phase.groups).flat_map(|group| &group.mix.parts);
    kinds.into_iter().any(|&(kind, part)| part > 0 && !kind.read_only())
}

/// Looks at existing records, in one store.
struct Looks<'a> {
    store: &'a Arc<dyn AnyStore>,
    url: &'a str,
    context: &'a StoreContext,
}

impl Looks<'_> {
    /// Looks at some records, evenly from the first to the last. Returns what was seen; nothing if the plan has no
    /// records.
    fn probe(&self, records: u64) -> Result<(Existing, Option<Arc<Sightings>>), Failure> {
        let sampled = records.min(PROBES);
        let nth = |n: u64| (u128::from(n) * u128::from(records) / u128::from(sampled)) as u64;
        let these: Vec<u64> = (0..sampled).map(nth).collect();
        if these.is_empty() {
            return Ok((Existing::None, None));
        }
        let phase = Pass::over_all("probe", Kind::Get, records, CLIENTS).phase("Probe", PHASE);
        let (measure, seen) = self.look(phase, Some(&these), true)?;
        let answered = answered(&measure);
        Ok(match seen.missing() {
            0 if answered > 0 => (Existing::All, Some(seen)),
            missing if missing < answered => (Existing::Some, Some(seen)),
            _ => (Existing::None, None),
        })
    }

    /// Looks at every record. Returns what was seen, with the failure to report if the run would write to records
    /// that stayed unknown.
    fn at_all(&self, records: u64) -> Result<(Arc<Sightings>, Option<Failure>), Failure> {
        let phase = Pass::over_all("look", Kind::Get, records, CLIENTS).phase("Look", PHASE);
        let (measure, seen) = self.look(phase, None, false)?;
        let unknown = measure.errors.first().map(|error| {
            let failed: u64 = measure.errors.iter().map(|error| error.count).sum();
            Failure::unavailable(format!(
                "{}: kvdyno could not read {failed} of the {} keys that the run would write, and might overwrite \
                 foreign data; the first error: {}; --data wipe deletes these records",
                self.url, measure.started, error.first_message
            ))
        });
        Ok((seen, unknown))
    }

    fn look(
        &self,
        phase: PhasePlan,
        these: Option<&[u64]>,
        quiet: bool,
    ) -> Result<(PhaseMeasure, Arc<Sightings>), Failure> {
        let (job, seen) = Job::looking(phase.clone(), self.context.clone(), these)
            .map_err(|error| Failure::of_load(self.url, &error))?;
        let measure = carry(self.store, self.url, self.context, (&phase, job), quiet)?;
        Ok((measure, seen))
    }

    /// Refuses to write over values without a stamp of kvdyno's.
    fn refuse_foreign(&self, seen: Option<&Arc<Sightings>>) -> Result<(), Failure> {
        let Some((count, first)) = seen.and_then(|seen| seen.foreign()) else { return Ok(()) };
        let dataset = &self.context.dataset;
        let mut key = Vec::new();
        if let Ok(keys) = KeyWriter::new(dataset.key, dataset.id) {
            keys.write(first, &mut key);
        }
        Err(Failure::usage(format!(
            "{}: {count} of the keys that the run would write hold values that kvdyno did not write (the first key: \
             {}); --data wipe deletes them",
            self.url,
            key.escape_ascii()
        )))
    }
}

fn answered(measure: &PhaseMeasure) -> u64 {
    measure.series.iter().map(|(_, series)| series.ok).sum()
}

/// Waits until the store answers every one of some reads, for at most [`PATIENCE`]. A phase after a fault is to
/// measure the store as it is then, not the end of its repair.
pub fn wait_until_it_answers(store: &Arc<dyn AnyStore>, context: &StoreContext, records: u64) {
    answers_within(PATIENCE, store, context, records);
}

/// Returns true if the store answers every one of some reads, at once or within `patience`.
pub fn answers_within(
    patience: Duration,
    store: &Arc<dyn AnyStore>,
    context: &StoreContext,
    records: u64,
) -> bool {
    let give_up = Instant::now() + patience;
    let records = records.max(1);
    let pass = Pass {
        keys: Distribution::Uniform,
        requests: records.min(ANSWERS),
        ..Pass::over_all("wait", Kind::Get, records, CLIENTS)
    };
    let mut phase = pass.phase("Wait", PHASE);
    phase.verify = false;
    while Instant::now() < give_up && !context.interrupt.is_raised() {
        let Ok(job) = Job::new(phase.clone(), context.clone()) else { return false };
        let mut watcher = OnlyProgress(PhaseLine::new(&context.profile.store, &phase, true));
        let answered = store.run(&Arc::new(job), &mut watcher);
        if answered.is_ok_and(|measure| measure.errors.is_empty()) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    false
}

/// Deletes the records of the plan. Earlier runs may have made more: it goes on over twice as many for as long as it
/// finds any.
fn wipe(
    options: &RunOptions<'_>,
    store: &Arc<dyn AnyStore>,
    url: &str,
    context: &StoreContext,
    records: u64,
) -> Result<(), Failure> {
    let capacity = options.plan.dataset.capacity.max(records);
    let mut end = records;
    loop {
        let phase = Pass::over_all("wipe", Kind::Delete, end, CLIENTS).phase("Wipe", PHASE);
        let measure = run(store, url, context, &phase, false)?;
        let deleted: u64 = measure.series.iter().map(|(_, s)| s.ok - s.missing).sum();
        if end >= capacity || (end > records && deleted == 0) {
            return Ok(());
        }
        end = (end * 2).min(capacity);
    }
}

/// Runs an added phase whose figures are not kept.
fn run(
    store: &Arc<dyn AnyStore>,
    url: &str,
    context: &StoreContext,
    phase: &PhasePlan,
    quiet: bool,
) -> Result<PhaseMeasure, Failure> {
    let job = Job::new(phase.clone(), context.clone()).map_err(|e| Failure::of_load(url, &e))?;
    carry(store, url, context, (phase, job), quiet)
}

fn carry(
    store: &Arc<dyn AnyStore>,
    url: &str,
    context: &StoreContext,
    (phase, job): (&PhasePlan, Job),
    quiet: bool,
) -> Result<PhaseMeasure, Failure> {
    let mut watcher = OnlyProgress(PhaseLine::new(&context.profile.store, phase, quiet));
    let measure =
        store.run(&Arc::new(job), &mut watcher).map_err(|error| Failure::of_load(url, &error))?;
    let failed: u64 = measure.errors.iter().map(|error| error.count).sum();
    match (measure.stopped, measure.errors.first()) {
        (StopReason::Interrupted, _) => Err(Failure::interrupted()),
        (_, Some(error)) if failed > tolerated(phase, &measure) => {
            Err(Failure::unavailable(format!(
                "{url}: {failed} of {} requests failed while kvdyno looked at existing records; \
                 the first error: {}; repair the store, then run again",
                measure.started, error.first_message
            )))
        }
        _ => Ok(measure),
    }
}

/// Returns the number of requests that may fail: half of a sample of keys, none of a wipe.
fn tolerated(phase: &PhasePlan, measure: &PhaseMeasure) -> u64 {
    if phase.groups.iter().all(|group| group.mix.parts.iter().all(|(kind, _)| kind.read_only())) {
        measure.started / 2
    } else {
        0
    }
}

struct OnlyProgress(PhaseLine);

impl Observer for OnlyProgress {
    fn interval(&mut self, interval: &Interval) {
        self.0.interval(interval);
    }

    fn progress(&mut self, progress: &Progress) {
        self.0.show(progress);
    }

    fn again(&mut self, progress: &Progress) {
        self.0.show_again(progress);
    }
}
