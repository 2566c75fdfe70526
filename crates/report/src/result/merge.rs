//! Parts of one load, carried by several processes, become one result: histograms and counts are
//! added, the wall clock is the union. Nothing is averaged.

use std::collections::BTreeSet;
use std::time::SystemTime;

use kvdyno_core::workload::Part;

use super::{
    ANOMALIES_SHOWN, ErrorResult, HistogramError, Latency, MergedPart, PhaseResult, RunResult,
    SeriesResult, Status, StoreRun, Verdict, rfc3339,
};

/// What to do about parts that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Refuse to merge.
    Refuse,
    /// Merge what there is; `merged_from` tells which parts those are.
    Allow,
}

/// Results that are not parts of one load.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Fewer than two results.
    #[error("merge needs the results of two or more parts; name each part's folder")]
    TooFew,
    /// They differ in something that all parts share.
    #[error("part {part} differs from the first in its {what}: they are not one load")]
    Differs {
        /// Number of the part, from 1.
        part: u32,
        /// What differs.
        what: String,
    },
    /// The same part twice.
    #[error("part {part}/{count} is there twice; name each part's folder once")]
    Twice {
        /// Number of the part, from 1.
        part: u32,
        /// Number of parts.
        count: u32,
    },
    /// A part is missing.
    #[error("part {part}/{count} is missing; add its folder, or allow missing parts")]
    Missing {
        /// Number of the part, from 1.
        part: u32,
        /// Number of parts.
        count: u32,
    },
    /// A histogram cannot be decoded.
    #[error("phase {phase}: {source}")]
    Histogram {
        /// Name of the phase.
        phase: String,
        /// What is wrong.
        source: HistogramError,
    },
}

/// Makes one result of the parts of a load.
///
/// # Errors
/// [`MergeError`] if suite, seed, stores or phases differ, or parts overlap or are missing.
pub fn merge(parts: &[RunResult], absent: Absent) -> Result<RunResult, MergeError> {
    let [first, rest @ ..] = parts else { return Err(MergeError::TooFew) };
    if rest.is_empty() {
        return Err(MergeError::TooFew);
    }
    check_parts(parts, absent)?;
    for other in rest {
        check_same_load(first, other)?;
    }
    let mut whole = first.clone();
    for other in rest {
        for (run, theirs) in whole.runs.iter_mut().zip(&other.runs) {
            merge_run(run, theirs)?;
        }
        whole.started = whole.started.min(other.started.clone());
        whole.ended = latest(whole.ended.take(), other.ended.clone());
        whole.status = worse(whole.status, other.status.clone());
        whole.kvdyno.debug |= other.kvdyno.debug;
    }
    set_offsets(&mut whole);
    judge_claims(&mut whole);
    whole.part = Part::WHOLE;
    whole.merged_from = parts
        .iter()
        .map(|p| MergedPart { part: p.part, started: p.started.clone(), host: p.host.clone() })
        .collect();
    Ok(whole)
}

/// What the parts claim together is judged by what they measured together.
fn judge_claims(whole: &mut RunResult) {
    let Ok(plan) = serde_json::from_value(whole.suite.plan.clone()) else { return };
    for run in &mut whole.runs {
        run.claims = crate::claims::judge(&plan, run);
    }
}

fn check_parts(parts: &[RunResult], absent: Absent) -> Result<(), MergeError> {
    let count = parts[0].part.count;
    let mut seen = BTreeSet::new();
    for Part { index, count: theirs } in parts.iter().map(|p| p.part) {
        if theirs != count || index >= count {
            return Err(differs(index, "number of parts"));
        }
        if !seen.insert(index) {
            return Err(MergeError::Twice { part: index + 1, count });
        }
    }
    match (0..count).find(|index| !seen.contains(index)) {
        Some(index) if absent == Absent::Refuse => {
            Err(MergeError::Missing { part: index + 1, count })
        }
        _ => Ok(()),
    }
}

fn check_same_load(first: &RunResult, other: &RunResult) -> Result<(), MergeError> {
    let part = other.part.index;
    let same = |same: bool, what: &str| if same { Ok(()) } else { Err(differs(part, what)) };
    same(first.suite == other.suite, "suite")?;
    same(first.seed == other.seed, "seed")?;
    same(first.kvdyno.version == other.kvdyno.version, "version of kvdyno")?;
    same(first.runs.len() == other.runs.len(), "number of stores")?;
    for (mine, theirs) in first.runs.iter().zip(&other.runs) {
        let (a, b) = (&mine.store, &theirs.store);
        same(a.name == b.name && a.version == b.version, "store")?;
        same(a.durability == b.durability && a.consistency == b.consistency, "promises")?;
        let dataset = |run: &StoreRun| run.dataset.map(|d| (d.id, d.fields, d.key, d.capacity));
        same(dataset(mine) == dataset(theirs), "dataset")?;
        let phases = |run: &StoreRun| -> Vec<(u16, String, usize)> {
            run.phases.iter().map(|p| (p.index, p.name.clone(), p.groups.len())).collect()
        };
        same(phases(mine) == phases(theirs), "phases")?;
    }
    Ok(())
}

fn differs(index: u32, what: &str) -> MergeError {
    MergeError::Differs { part: index.saturating_add(1), what: what.to_owned() }
}

fn merge_run(run: &mut StoreRun, other: &StoreRun) -> Result<(), MergeError> {
    run.started = run.started.clone().min(other.started.clone());
    run.ended = latest(run.ended.take(), other.ended.clone());
    run.status = worse(run.status.clone(), other.status.clone());
    run.verdict = match (run.verdict.take(), &other.verdict) {
        (Some(mine), Some(theirs)) => {
            Some(Verdict::of(mine.reasons.into_iter().chain(theirs.reasons.clone()).collect()))
        }
        _ => None,
    };
    for (phase, theirs) in run.phases.iter_mut().zip(&other.phases) {
        merge_phase(phase, theirs)
            .map_err(|source| MergeError::Histogram { phase: phase.name.clone(), source })?;
    }
    Ok(())
}

fn merge_phase(phase: &mut PhaseResult, other: &PhaseResult) -> Result<(), HistogramError> {
    unite_wall(phase, other);
    for (mine, theirs) in phase.groups.iter_mut().zip(&other.groups) {
        mine.clients = mine.clients.saturating_add(theirs.clients);
        mine.rate = mine.rate.zip(theirs.rate).map(|(a, b)| a + b);
    }
    phase.offered = phase.offered.saturating_add(other.offered);
    phase.started_operations = phase.started_operations.saturating_add(other.started_operations);
    phase.unstarted = sum(&phase.unstarted, &other.unstarted)?;
    phase.send_lag = sum(&phase.send_lag, &other.send_lag)?;
    merge_series(phase, other)?;
    merge_errors(&mut phase.errors, &other.errors);
    phase.workers.extend(&other.workers);
    for (mine, theirs) in phase.issued.iter_mut().zip(&other.issued) {
        *mine = mine.saturating_add(*theirs);
    }
    phase.records = phase.records.max(other.records);
    if let Some(theirs) = &other.tally {
        phase.tally.get_or_insert_default().add(theirs);
    }
    phase.anomalies.extend(other.anomalies.iter().cloned());
    phase.anomalies.truncate(ANOMALIES_SHOWN);
    // Each part's machine is another, and shares of its own requests do not add up; their results
    // keep both.
    phase.resources = None;
    phase.figures.clear();
    // Each part saw its own clients only: when nobody succeeded cannot be told of all of them.
    (phase.unavailable, phase.stale) = (None, None);
    phase.account.clear();
    phase.writes =
        phase.writes.take().zip(other.writes.as_ref()).map(|(mine, theirs)| mine.and(theirs));
    Ok(())
}

/// From the earliest begin to the latest end, by the machines' calendars.
fn unite_wall(phase: &mut PhaseResult, other: &PhaseResult) {
    let bounds = |p: &PhaseResult| {
        let start = p.started_at()?;
        Some((start, start.checked_add(std::time::Duration::from_nanos(p.wall_ns))?))
    };
    let (Some(mine), Some(theirs)) = (bounds(phase), bounds(other)) else { return };
    let (start, end) = (mine.0.min(theirs.0), mine.1.max(theirs.1));
    let idle = |end: std::time::SystemTime, p: &PhaseResult| {
        end + std::time::Duration::from_nanos(p.drain_ns)
    };
    let idle = idle(mine.1, phase).max(idle(theirs.1, other));
    phase.started = rfc3339(start);
    phase.wall_ns = nanos_between(start, end);
    phase.drain_ns = nanos_between(end, idle);
}

fn merge_series(phase: &mut PhaseResult, other: &PhaseResult) -> Result<(), HistogramError> {
    for theirs in &other.series {
        let same = |s: &&mut SeriesResult| s.group == theirs.group && s.kind == theirs.kind;
        match phase.series.iter_mut().find(same) {
            Some(mine) => add_series(mine, theirs)?,
            None => phase.series.push(theirs.clone()),
        }
    }
    phase.series.sort_by_key(|s| (s.group, s.kind));
    for series in &mut phase.series {
        series.set_rates(phase.wall_ns);
    }
    Ok(())
}

fn add_series(mine: &mut SeriesResult, theirs: &SeriesResult) -> Result<(), HistogramError> {
    mine.ok = mine.ok.saturating_add(theirs.ok);
    mine.missing = mine.missing.saturating_add(theirs.missing);
    mine.missed = mine.missed.saturating_add(theirs.missed);
    mine.failed = mine.failed.saturating_add(theirs.failed);
    mine.indeterminate = mine.indeterminate.saturating_add(theirs.indeterminate);
    mine.records = mine.records.saturating_add(theirs.records);
    mine.drained = mine.drained.saturating_add(theirs.drained);
    mine.drained_gets.add(theirs.drained_gets);
    mine.service = sum(&mine.service, &theirs.service)?;
    mine.response = sum(&mine.response, &theirs.response)?;
    mine.missed_service = sum(&mine.missed_service, &theirs.missed_service)?;
    mine.missed_response = sum(&mine.missed_response, &theirs.missed_response)?;
    mine.unsuccessful_service = sum(&mine.unsuccessful_service, &theirs.unsuccessful_service)?;
    mine.unsuccessful_response = sum(&mine.unsuccessful_response, &theirs.unsuccessful_response)?;
    Ok(())
}

fn merge_errors(mine: &mut Vec<ErrorResult>, theirs: &[ErrorResult]) {
    for error in theirs {
        match mine.iter_mut().find(|e| (e.class, e.certainty) == (error.class, error.certainty)) {
            Some(known) => {
                known.count = known.count.saturating_add(error.count);
                known.of_client = known.of_client.saturating_add(error.of_client);
                if error.first_at_ns < known.first_at_ns {
                    known.first_at_ns = error.first_at_ns;
                    known.first_message.clone_from(&error.first_message);
                }
                known.last_at_ns = known.last_at_ns.max(error.last_at_ns);
            }
            None => mine.push(error.clone()),
        }
    }
    mine.sort_by_key(|e| std::cmp::Reverse(e.count));
}

fn sum(a: &Option<Latency>, b: &Option<Latency>) -> Result<Option<Latency>, HistogramError> {
    Latency::sum(a.iter().chain(b))
}

/// Offsets count from the earliest part's begin.
fn set_offsets(whole: &mut RunResult) {
    let Ok(origin) = humantime::parse_rfc3339(&whole.started) else { return };
    for phase in whole.runs.iter_mut().flat_map(|run| &mut run.phases) {
        if let Some(start) = phase.started_at() {
            phase.offset_ns = nanos_between(origin, start);
        }
    }
}

fn nanos_between(start: SystemTime, end: SystemTime) -> u64 {
    end.duration_since(start).map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

/// RFC 3339 moments of one precision sort as text; a part without an end has none for the whole.
fn latest(a: Option<String>, b: Option<String>) -> Option<String> {
    a.zip(b).map(|(a, b)| a.max(b))
}

fn worse(a: Status, b: Status) -> Status {
    let badness = |status: &Status| match status {
        Status::Complete => 0,
        Status::Running => 1,
        Status::Interrupted => 2,
        Status::Failed { .. } => 3,
    };
    if badness(&b) > badness(&a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn parts(count: u32) -> Vec<RunResult> {
        (0..count)
            .map(|index| {
                let mut part = sample::two_stores();
                part.part = Part { index, count };
                part
            })
            .collect()
    }

    #[test]
    fn counts_and_histograms_are_added() {
        let parts = parts(3);
        let whole = merge(&parts, Absent::Refuse).unwrap();
        let (one, all) = (&parts[0].runs[0].phases[0], &whole.runs[0].phases[0]);
        assert_eq!(all.ok(), 3 * one.ok());
        assert_eq!(all.clients(), 3 * one.clients());
        let (one, all) = (one.series[0].service.as_ref(), all.series[0].service.as_ref());
        let (one, all) = (one.unwrap(), all.unwrap());
        assert_eq!((all.count, all.p99_ns), (3 * one.count, one.p99_ns));
        assert_eq!(all.decode().unwrap().len(), all.count);
        assert_eq!(whole.part, Part::WHOLE);
        assert_eq!(whole.merged_from.len(), 3);
    }

    #[test]
    fn the_wall_clock_is_the_union() {
        let mut parts = parts(2);
        parts[1].runs[0].phases[0].started = "2026-03-01T12:00:05.000000Z".into();
        parts[0].runs[0].phases[0].started = "2026-03-01T12:00:00.000000Z".into();
        parts[0].runs[0].phases[0].wall_ns = 2_000_000_000;
        parts[1].runs[0].phases[0].wall_ns = 3_000_000_000;
        let whole = merge(&parts, Absent::Refuse).unwrap();
        let phase = &whole.runs[0].phases[0];
        assert_eq!(phase.wall_ns, 8_000_000_000);
        assert_eq!(phase.rate(), Some(phase.ok() as f64 / 8.0));
        assert_eq!(phase.series[0].rate, Some(phase.series[0].ok as f64 / 8.0));
    }

    #[test]
    fn parts_must_be_disjoint_and_all_there() {
        let all = parts(3);
        let twice = [all[0].clone(), all[0].clone()];
        assert_eq!(merge(&twice, Absent::Allow), Err(MergeError::Twice { part: 1, count: 3 }));
        let two = [all[2].clone(), all[0].clone()];
        assert_eq!(merge(&two, Absent::Refuse), Err(MergeError::Missing { part: 2, count: 3 }));
        let merged = merge(&two, Absent::Allow).unwrap();
        assert_eq!(merged.merged_from.iter().map(|p| p.part.index).collect::<Vec<_>>(), [2, 0]);
        assert_eq!(merge(&all[..1], Absent::Allow), Err(MergeError::TooFew));
    }

    #[test]
    fn different_loads_are_refused() {
        let refused = |change: fn(&mut RunResult), expected: &str| {
            let mut parts = parts(2);
            change(&mut parts[1]);
            let error = merge(&parts, Absent::Refuse).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused(|r| r.seed += 1, "seed");
        refused(|r| r.suite.scale = Some(0.5), "suite");
        refused(|r| r.part.count = 3, "number of parts");
        refused(|r| r.runs[0].store.version = Some("0".into()), "store");
        refused(|r| r.runs[0].dataset.as_mut().unwrap().id += 1, "dataset");
        refused(|r| r.runs[0].phases.truncate(1), "phases");
    }

    #[test]
    fn the_worst_status_and_verdict_win() {
        let mut parts = parts(2);
        parts[1].status = Status::Failed { message: "gone".into() };
        parts[1].runs[0].verdict = Some(Verdict::of(vec![sample::reason(2.0, 1.0)]));
        let whole = merge(&parts, Absent::Refuse).unwrap();
        assert_eq!(whole.status, Status::Failed { message: "gone".into() });
        let verdict = whole.runs[0].verdict.as_ref().unwrap();
        assert_eq!(verdict.level, sample::reason(2.0, 1.0).level);
    }
}
