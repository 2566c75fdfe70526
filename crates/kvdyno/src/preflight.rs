//! The checks before a run: made before anything is opened, set up or loaded, and by `--dry-run` alike.

use kvdyno_core::load::{LoadError, Need, sees_what_it_puts};
use kvdyno_core::suite::Plan;
use kvdyno_core::workload::PhasePlan;
use kvdyno_stores::{Entry, StoreUrl, registry};

use crate::args::DataPolicy;
use crate::cost;
use crate::exit::Failure;
use crate::run_config::RunConfig;
use crate::stamps;
use crate::target::Target;
use crate::testbed;

/// A plan and its targets that have passed the checks.
pub struct Preflight {
    /// The targets; a testbed with the settings that the plan's faults need.
    pub targets: Vec<Target>,
    /// Sentences, one for each gap that values too short for a full stamp leave in the checks.
    pub unseen: Vec<String>,
}

/// Checks everything that needs no store.
///
/// # Errors
/// [`Failure`] with the first obstacle.
pub fn preflight(
    plan: &Plan,
    targets: Vec<Target>,
    config: &RunConfig,
) -> Result<Preflight, Failure> {
    if config.trials > 1 && config.data == DataPolicy::Reuse {
        return Err(Failure::usage(
            "--trials needs an empty store for each trial, but --data reuse keeps records; leave out one",
        ));
    }
    cost::of_servers(&config.price)?;
    let targets = targets.into_iter().map(|target| fitting(plan, target));
    let targets = targets.collect::<Result<_, Failure>>()?;
    let unseen = if config.verify { stamps::cannot_see(plan)? } else { Vec::new() };
    Ok(Preflight { targets, unseen })
}

/// Returns the target, if the plan can be carried out on it.
fn fitting(plan: &Plan, target: Target) -> Result<Target, Failure> {
    match target {
        Target::Store(url) => {
            let mut parsed = StoreUrl::parse(&url).map_err(Failure::usage)?;
            let entry = registry::entry(parsed.scheme()).map_err(Failure::usage)?;
            registry::check(&mut parsed).map_err(Failure::usage)?;
            let on_store = |phase: &&PhasePlan| !plan.needs_nodes.contains(&phase.index);
            let phases = || plan.phases.iter().filter(on_store);
            if let Some(phase) = phases().find(|phase| !phase.faults.is_empty()) {
                return Err(Failure::usage(format!(
                    "phase {} injects faults into servers, so it needs a testbed (--testbed NAME; `kvdyno \
                     testbed kinds` lists them)",
                    phase.name
                )));
            }
            has_what_is_needed(phases(), entry, parsed.redacted())?;
            Ok(Target::Store(url))
        }
        Target::Testbed(words) => {
            let words = testbed::fitted(&words, plan)?;
            if let Some(entry) = testbed::store_of(&words)? {
                has_what_is_needed(plan.phases.iter(), entry, &words)?;
            }
            Ok(Target::Testbed(words))
        }
    }
}

/// Refuses a phase that needs a feature that no store of the kind has.
fn has_what_is_needed<'a>(
    phases: impl Iterator<Item = &'a PhasePlan>,
    entry: &Entry,
    at: &str,
) -> Result<(), Failure> {
    let lacks = |phase: &'a PhasePlan| {
        let needs = phase.groups.iter().flat_map(Need::of);
        needs.into_iter().find(|need| entry.lacks.contains(need)).map(|need| (phase, need))
    };
    for phase in phases {
        sees_what_it_puts(phase).map_err(|error| Failure::of_load(at, &error))?;
        if let Some((phase, need)) = lacks(phase) {
            let (phase, store) = (phase.name.clone(), entry.schemes[0].to_owned());
            let operation = need.name();
            return Err(Failure::of_load(at, &LoadError::Unsupported { phase, store, operation }));
        }
    }
    Ok(())
}
