//! Records that are in the store before a run: refused, reused or wiped, as the user says. kvdyno
//! only ever touches keys that it would write itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kvdyno_core::load::{AnyStore, Context, Job, Observer, Progress};
use kvdyno_core::measure::{Interval, PhaseMeasure, StopReason};
use kvdyno_core::suite::Plan;
use kvdyno_core::workload::{Distribution, Kind, PhasePlan};

use crate::added::Pass;
use crate::args::DataPolicy;
use crate::exit::Failure;
use crate::progress::ProgressLine;
use crate::setting::Setting;

/// Keys looked at to learn whether records exist.
const PROBES: u64 = 1_000;
/// Records taken to exist where a plan reads none that it did not make.
const AT_MOST: u64 = 100_000;
/// Clients that look and delete.
const CLIENTS: u32 = 8;

/// Reads that a store must answer before it counts as repaired.
const ANSWERS: u64 = 200;
/// Longest wait for that.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of the phases that look and delete: no phase of a plan has it.
const PHASE: u16 = u16::MAX;

/// How many of the records that were looked for exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// None.
    None,
    /// Some.
    Some,
    /// All.
    All,
}

/// Records that the plan reads or writes over without making them first, or makes in all.
pub fn planned_records(plan: &Plan) -> u64 {
    let of_group = plan.phases.iter().flat_map(|phase| &phase.groups).map(|group| group.records);
    of_group.max().filter(|&records| records > 0).unwrap_or(plan.dataset.capacity.min(AT_MOST))
}

/// Looks for existing records and deals with them as the user says.
///
/// # Errors
/// [`Failure`] if there are records that must not be there, or the store cannot be asked.
pub fn prepare(
    setting: &Setting<'_>,
    store: &Arc<dyn AnyStore>,
    url: &str,
    context: &Context,
) -> Result<Existing, Failure> {
    let records = planned_records(setting.plan);
    // Of a load in parts the others load their own records at this very time; and what a store
    // makes up is not there.
    if setting.conduct.part.count > 1 || context.profile.capabilities.fabricates {
        return Ok(Existing::None);
    }
    if context.profile.store == "null" {
        // It has no records: it makes up whatever is read.
        return Ok(Existing::None);
    }
    let found = probe(store, url, context, records)?;
    match (setting.data, found) {
        (_, Existing::None) | (DataPolicy::Reuse, _) => Ok(found),
        (DataPolicy::Fresh, _) => Err(Failure::usage(format!(
            "{url} holds records of this dataset already; use --data reuse to measure over them, \
             or --data wipe to delete them first"
        ))),
        (DataPolicy::Wipe, _) => {
            wipe(setting, store, url, context, records)?;
            Ok(Existing::None)
        }
    }
}

/// Waits until the store answers every one of some reads, for as long as [`PATIENCE`]. What comes
/// after a fault is to see the store as it is then, not the end of its repair.
pub fn wait_until_it_answers(store: &Arc<dyn AnyStore>, context: &Context, records: u64) {
    answers_within(PATIENCE, store, context, records);
}

/// The store answers every one of some reads, if not at once then within `patience`.
pub fn answers_within(
    patience: Duration,
    store: &Arc<dyn AnyStore>,
    context: &Context,
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
        let mut watcher = OnlyProgress(ProgressLine::new(&context.profile.store, &phase, true));
        let answered = Arc::clone(store).load(&Arc::new(job), &mut watcher);
        if answered.is_ok_and(|measure| measure.errors.is_empty()) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    false
}

fn probe(
    store: &Arc<dyn AnyStore>,
    url: &str,
    context: &Context,
    records: u64,
) -> Result<Existing, Failure> {
    let keys = if records <= PROBES { Distribution::Sequential } else { Distribution::Uniform };
    let requests = records.min(PROBES);
    let pass = Pass { keys, requests, ..Pass::over_all("probe", Kind::Get, records, CLIENTS) };
    let mut phase = pass.phase("Probe", PHASE);
    phase.verify = false;
    let measure = run(store, url, context, &phase, true)?;
    let (ok, missing) = measure
        .series
        .iter()
        .fold((0, 0), |(ok, missing), (_, series)| (ok + series.ok, missing + series.missing));
    Ok(match missing {
        0 if ok > 0 => Existing::All,
        missing if missing < ok => Existing::Some,
        _ => Existing::None,
    })
}

/// Deletes the records of the plan. Earlier runs may have made more: it goes on over twice as many
/// for as long as that finds any.
fn wipe(
    setting: &Setting<'_>,
    store: &Arc<dyn AnyStore>,
    url: &str,
    context: &Context,
    records: u64,
) -> Result<(), Failure> {
    let capacity = setting.plan.dataset.capacity.max(records);
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

/// Runs an added phase whose figures nobody keeps.
fn run(
    store: &Arc<dyn AnyStore>,
    url: &str,
    context: &Context,
    phase: &PhasePlan,
    quiet: bool,
) -> Result<PhaseMeasure, Failure> {
    let job =
        Arc::new(Job::new(phase.clone(), context.clone()).map_err(|e| Failure::of_load(url, &e))?);
    let mut watcher = OnlyProgress(ProgressLine::new(&context.profile.store, phase, quiet));
    let measure = Arc::clone(store)
        .load(&job, &mut watcher)
        .map_err(|error| Failure::of_load(url, &error))?;
    let failed: u64 = measure.errors.iter().map(|error| error.count).sum();
    match (measure.stopped, measure.errors.first()) {
        (StopReason::Interrupted, _) => Err(Failure::interrupted()),
        (_, Some(error)) if failed > tolerated(phase, &measure) => {
            Err(Failure::unavailable(format!(
                "{url}: {failed} of {} requests failed while kvdyno looked at existing records; \
                 the first: {}",
                measure.started, error.first_message
            )))
        }
        _ => Ok(measure),
    }
}

/// A sample of keys may have gaps, where half of it is answered; a wipe must not.
fn tolerated(phase: &PhasePlan, measure: &PhaseMeasure) -> u64 {
    if phase.groups.iter().all(|group| group.mix.parts.iter().all(|(kind, _)| kind.read_only())) {
        measure.started / 2
    } else {
        0
    }
}

struct OnlyProgress(ProgressLine);

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
