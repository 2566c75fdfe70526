//! Whether the measurement of a whole load may be believed. What adds up over the parts is judged by its
//! sum, by the rules and thresholds of every run; what one process or machine alone can tell stays that
//! part's, and says whose it is.

use std::collections::BTreeMap;
use std::time::Duration;

use kvdyno_core::store::Consistency;
use kvdyno_core::suite::Plan;
use kvdyno_core::verdict::{self, Basis, Finding};
use kvdyno_core::workload::Kind;

use super::super::{Latency, PhaseResult, Reason, SeriesResult, StoreRun, Verdict};

/// The verdict on `run`, the whole; `parts` are its parts' numbers and verdicts.
pub(super) fn verdict(run: &StoreRun, parts: &[(u32, &Verdict)], plan: Option<&Plan>) -> Verdict {
    let mut reasons = Vec::new();
    let mut judged = Vec::new();
    for phase in &run.phases {
        for reason in figures(run, phase, plan) {
            judged.push((reason.name(), phase.name.as_str()));
            let least = reason.least();
            let enough = match least.of {
                Basis::Operations => {
                    phase.ok().saturating_add(phase.unsuccessful()) >= least.number
                }
                _ => true,
            };
            if enough && reason.threshold().is_some() {
                let finding = Finding { phase: Some(phase.name.clone()), reason };
                reasons.push(Reason::from(&finding));
            }
        }
    }
    for (part, verdict) in parts {
        for reason in &verdict.reasons {
            let phase = reason.phase.as_deref().unwrap_or_default();
            if judged.contains(&(reason.name.as_str(), phase)) {
                continue;
            }
            let said_by_all = parts.iter().all(|(_, other)| other.reasons.contains(reason));
            let text = match said_by_all {
                true => reason.text.clone(),
                false => format!("part {part}: {}", reason.text),
            };
            let reason = Reason { text, ..reason.clone() };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    Verdict::of(reasons)
}

/// The figures of a phase that can be judged from all parts together, good or bad.
fn figures(run: &StoreRun, phase: &PhaseResult, plan: Option<&Plan>) -> Vec<verdict::Reason> {
    use verdict::Reason as R;
    let faulty = !phase.faults.is_empty();
    let mut figures = vec![R::CutShort { stopped: phase.stopped }];
    if !faulty {
        let failed = phase.unsuccessful();
        let completed = phase.ok().saturating_add(failed);
        let of_client = phase.errors.iter().map(|error| error.of_client).sum();
        figures.push(R::ErrorRatio { failed, completed, of_client });
    }
    if let Some(tally) = &phase.tally {
        figures.push(R::Unjudged { unknown: tally.unknown, reads: tally.reads });
        figures.push(R::Anomalies { illegal: tally.illegal(), counts: tally.anomalies });
    }
    if phase.prepares() || phase.probe.is_some() {
        return figures;
    }
    let span = Duration::from_nanos(phase.wall_ns);
    figures.push(R::TooShort { span });
    figures.extend(phase.apart.map(|share| R::Apart { share, span }));
    figures.extend(misses(run, phase, plan).filter(|_| !faulty));
    let fewest = samples(phase, plan).into_iter().min_by_key(|(_, samples)| *samples);
    figures.extend(fewest.map(|(kind, samples)| R::TooFewSamples { kind, samples }));
    let clients = phase.clients();
    if clients > 0 && phase.wall_ns > 0 {
        let in_service: f64 = phase.series.iter().map(in_service).sum();
        let until_answered = phase.wall_ns.saturating_add(phase.drain_ns) as f64;
        figures.push(R::LittlesLaw { in_flight: in_service / until_answered, clients });
    }
    figures
}

/// Gets that found nothing where verification expected a record; what only the parts themselves can
/// tell, outside a fault's window or without verification, stays theirs.
fn misses(run: &StoreRun, phase: &PhaseResult, plan: Option<&Plan>) -> Option<verdict::Reason> {
    let tally = phase.tally.as_ref()?;
    let planned = plan?.phases.iter().find(|planned| planned.name == phase.name)?;
    let store = &run.store;
    let lenient = store.capabilities.may_forget || store.consistency.level == Consistency::Eventual;
    let hits: u64 = phase.series.iter().map(|series| series.hits_and_misses().0).sum();
    Some(verdict::Reason::UnexpectedMisses {
        missed: tally.missed(),
        reads: hits.saturating_add(tally.missed()),
        expected: lenient.then_some(planned.expect_hits),
        beside_faults: false,
        restarted: String::new(),
    })
}

/// How many operations of each kind succeeded, of those that the plan asks for too.
fn samples(phase: &PhaseResult, plan: Option<&Plan>) -> BTreeMap<Kind, u64> {
    let planned = plan.iter().flat_map(|plan| &plan.phases).filter(|p| p.name == phase.name);
    let kinds = planned.flat_map(|p| &p.groups).flat_map(|group| &group.mix.parts);
    let mut samples: BTreeMap<Kind, u64> = kinds.map(|(kind, _)| (*kind, 0)).collect();
    for series in &phase.series {
        let sum = samples.entry(series.kind).or_default();
        let found = series.found();
        *sum = sum.saturating_add(if found > 0 { found } else { series.ok });
    }
    samples
}

/// Time that requests were in flight, ns.
fn in_service(series: &SeriesResult) -> f64 {
    let times = [&series.service, &series.missed_service, &series.unsuccessful_service];
    let sum = |latency: &Latency| latency.mean_ns.unwrap_or(0.0) * latency.count as f64;
    times.into_iter().flatten().map(sum).sum()
}
