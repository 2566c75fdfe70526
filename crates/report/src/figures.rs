//! The value of each figure that a condition may be about, from a phase of a result: claims, searches and
//! requirements ask here. An operation that did not succeed took for ever, in every latency here.

use hdrhistogram::Histogram;
use kvdyno_core::measure::percentile;
use kvdyno_core::store::FigureUnit;
use kvdyno_core::verdict::{ConditionFigure, Measured, Operations, Subject};
use kvdyno_core::verify::{AnomalyKind, Tally};

use crate::result::{
    Latency, LinearizabilityAnswer, PhaseResult, SeriesResult, SideAccount, StretchResult,
    WriteAccount, add, rate,
};

/// Returns the value of a figure, or the reason why it is not known. `may_forget`: the store may evict.
pub(crate) fn measured(
    phase: &PhaseResult,
    subject: &Subject,
    may_forget: bool,
) -> Result<Measured, String> {
    let of = subject.operations;
    match &subject.figure {
        ConditionFigure::Rate
        | ConditionFigure::Percentile(_)
        | ConditionFigure::Max
        | ConditionFigure::Mean
        | ConditionFigure::Operations
        | ConditionFigure::Errors
        | ConditionFigure::Failed
        | ConditionFigure::Indeterminate
        | ConditionFigure::ErrorRatio
        | ConditionFigure::HitRatio => {
            let (series, unstarted) = (&phase.series[..], phase.unstarted.as_ref());
            of_operations(Operated { series, wall_ns: phase.wall_ns, unstarted }, subject)
        }
        ConditionFigure::Misses => tally(phase, Tally::missed),
        ConditionFigure::Anomalies => anomalies(phase, &AnomalyKind::ALL),
        ConditionFigure::Stale => anomalies(phase, &[AnomalyKind::Stale]),
        ConditionFigure::Corrupt => anomalies(phase, &[AnomalyKind::Corrupt]),
        ConditionFigure::Phantom => anomalies(phase, &[AnomalyKind::Phantom]),
        ConditionFigure::Resurrected => anomalies(phase, &[AnomalyKind::Resurrected]),
        ConditionFigure::Unknown => {
            let after = phase.writes.as_ref().map_or(0, |writes| writes.unknown);
            let unknown = |tally: &Tally| tally.unknown.saturating_add(tally.not_read_again);
            tally(phase, |tally| unknown(tally).saturating_add(after))
        }
        ConditionFigure::Acked | ConditionFigure::AckedLost | ConditionFigure::Recovered => {
            writes(phase, subject, may_forget)
        }
        ConditionFigure::CopiesDiffer => copies_differ(phase),
        ConditionFigure::Unavailable => unavailable(phase, of),
        ConditionFigure::FirstError
        | ConditionFigure::LastError
        | ConditionFigure::Recovery(_)
        | ConditionFigure::Calm => after_faults(phase, subject),
        ConditionFigure::StaleVersions | ConditionFigure::StaleFor => stale(phase, &subject.figure),
        ConditionFigure::Violations => violations(phase),
        ConditionFigure::Cost => {
            Err("only `kvdyno compare --servers KIND=N` knows what operations cost".to_owned())
        }
        ConditionFigure::Noticed(name) => noticed(phase, name),
    }
}

/// Counts the things that a figure is about: a condition that nothing could have broken confirms nothing. 1 where it is
/// not counted.
pub(crate) fn stake(phase: &PhaseResult, subject: &Subject) -> u64 {
    let load = Operated {
        series: &phase.series,
        wall_ns: phase.wall_ns,
        unstarted: phase.unstarted.as_ref(),
    };
    let of_writes = |count: fn(&WriteAccount) -> u64| phase.writes.as_ref().map_or(0, count);
    let reads = || phase.tally.as_ref().map_or(0, |tally| tally.reads);
    match &subject.figure {
        ConditionFigure::AckedLost | ConditionFigure::Recovered => {
            of_writes(|writes| writes.acknowledged.max(writes.lost))
        }
        ConditionFigure::CopiesDiffer => {
            of_writes(|writes| writes.copies.as_ref().map_or(0, |copies| copies.compared))
        }
        ConditionFigure::Anomalies
        | ConditionFigure::Stale
        | ConditionFigure::Corrupt
        | ConditionFigure::Phantom
        | ConditionFigure::Resurrected
        | ConditionFigure::StaleVersions
        | ConditionFigure::StaleFor
        | ConditionFigure::Unknown => reads().saturating_add(of_writes(|writes| writes.read)),
        ConditionFigure::Misses => reads(),
        ConditionFigure::Errors
        | ConditionFigure::Failed
        | ConditionFigure::Indeterminate
        | ConditionFigure::ErrorRatio => {
            sum(load, subject.operations, completed).map_or(0, |all| all as u64)
        }
        ConditionFigure::Violations => {
            phase.linearizability.as_ref().map_or(0, |histories| histories.requests)
        }
        _ => 1,
    }
}

/// Operations of a phase, ended or so far.
#[derive(Clone, Copy)]
pub(crate) struct Operated<'a> {
    pub series: &'a [SeriesResult],
    pub wall_ns: u64,
    /// Operations that were due and never started, by their age when the phase stopped, ns.
    pub unstarted: Option<&'a Latency>,
}

/// Returns the value of a figure from operations alone, or the reason why it is not known.
pub(crate) fn of_operations(load: Operated<'_>, subject: &Subject) -> Result<Measured, String> {
    let of = subject.operations;
    match &subject.figure {
        ConditionFigure::Rate => {
            let ok = sum(load, of, move |series| counted(series, of))?;
            let rate = rate(ok as u64, load.wall_ns).ok_or_else(|| "no time passed".to_owned())?;
            Ok(Measured::Exactly(rate))
        }
        ConditionFigure::Percentile(_) | ConditionFigure::Max | ConditionFigure::Mean => {
            latency(load, subject)
        }
        ConditionFigure::Operations => sum(load, of, completed).map(Measured::Exactly),
        ConditionFigure::Errors => sum(load, of, unsuccessful).map(Measured::Exactly),
        ConditionFigure::Failed => sum(load, of, |series| series.failed).map(Measured::Exactly),
        ConditionFigure::Indeterminate => {
            sum(load, of, |series| series.indeterminate).map(Measured::Exactly)
        }
        ConditionFigure::ErrorRatio => {
            let all = sum(load, of, completed)?;
            Ok(Measured::Exactly(sum(load, of, unsuccessful)? / all.max(1.0)))
        }
        ConditionFigure::HitRatio => hit_ratio(load, of),
        _ => Err("known when the phase is over".to_owned()),
    }
}

/// Counts the operations done before the phase ended: of gets the hits, unless misses are asked for.
fn counted(series: &SeriesResult, of: Operations) -> u64 {
    let found = if of.include_hits() { series.found_in_time() } else { 0 };
    let nothing = if of.include_misses() { series.found_nothing_in_time() } else { 0 };
    found.saturating_add(nothing)
}

fn hit_ratio(load: Operated<'_>, of: Operations) -> Result<Measured, String> {
    let mut all = (0_u64, 0_u64);
    for (hits, misses) in included(load, of)?.into_iter().map(SeriesResult::hits_and_misses) {
        all = (all.0.saturating_add(hits), all.1.saturating_add(misses));
    }
    match all.0.saturating_add(all.1) {
        0 => Err("nothing was got".to_owned()),
        gets => Ok(Measured::Exactly(all.0 as f64 / gets as f64)),
    }
}

fn completed(series: &SeriesResult) -> u64 {
    series.ok.saturating_add(unsuccessful(series))
}

fn unsuccessful(series: &SeriesResult) -> u64 {
    series.failed.saturating_add(series.indeterminate)
}

/// The series that are meant.
fn included(load: Operated<'_>, of: Operations) -> Result<Vec<&SeriesResult>, String> {
    let series: Vec<_> = load.series.iter().filter(|series| of.include(series.kind)).collect();
    match (series.is_empty(), of) {
        (false, _) => Ok(series),
        (true, Operations::All) => Err("nothing was done in the phase".to_owned()),
        (true, of) => Err(format!("the phase has no {}", of.name())),
    }
}

fn sum(
    load: Operated<'_>,
    of: Operations,
    count: impl Fn(&SeriesResult) -> u64,
) -> Result<f64, String> {
    let counts = included(load, of)?.into_iter().map(count);
    Ok(counts.fold(0, u64::saturating_add) as f64)
}

/// The latencies of a series that are meant, by response time where there is one.
fn meant(series: &SeriesResult, of: Operations) -> impl Iterator<Item = &Latency> {
    let hits = series.response.as_ref().or(series.service.as_ref());
    let misses = series.missed_response.as_ref().or(series.missed_service.as_ref());
    let hits = hits.filter(|_| of.include_hits());
    hits.into_iter().chain(misses.filter(|_| of.include_misses()))
}

/// Returns a latency. An operation that was due and never started is of no kind: it counts against each, as never answered, so a
/// percentile may come out too high and never too low. Where it falls among them their ages at the end
/// are its lower bound.
fn latency(load: Operated<'_>, subject: &Subject) -> Result<Measured, String> {
    let included = included(load, subject.operations)?;
    let mut latencies: Option<Histogram<u64>> = None;
    for series in &included {
        meant(series, subject.operations).try_for_each(|latency| merge(&mut latencies, latency))?;
    }
    if latencies.is_none() && included.iter().any(|series| series.ok > 0) {
        return Err(match subject.operations {
            Operations::Misses => "no get missed".to_owned(),
            _ => "no get found a record; `(misses)` asks for those that found none".to_owned(),
        });
    }
    let failed = included.into_iter().map(unsuccessful).fold(0, u64::saturating_add);
    let unstarted = load.unstarted.map_or(0, |unstarted| unstarted.count);
    let share = match &subject.figure {
        ConditionFigure::Percentile(part) => f64::from(*part) / 100_000.0,
        ConditionFigure::Max => 1.0,
        _ if failed > 0 => return Ok(Measured::Exactly(f64::INFINITY)),
        _ => return mean(latencies, load.unstarted),
    };
    let without = failed.saturating_add(unstarted);
    let nothing = || "nothing was done".to_owned();
    let value = percentile(latencies.as_ref(), without, share).ok_or_else(nothing)?;
    let Some(ages) = load.unstarted.filter(|_| value.is_infinite()) else {
        return Ok(Measured::Exactly(value));
    };
    merge(&mut latencies, ages)?;
    let value = percentile(latencies.as_ref(), failed, share).ok_or_else(nothing)?;
    // Infinity is no lower bound of anything more.
    Ok(if value.is_finite() { Measured::AtLeast(value) } else { Measured::Exactly(value) })
}

fn mean(
    mut latencies: Option<Histogram<u64>>,
    unstarted: Option<&Latency>,
) -> Result<Measured, String> {
    if let Some(ages) = unstarted {
        merge(&mut latencies, ages)?;
    }
    let mean = latencies.ok_or_else(|| "nothing was done".to_owned())?.mean();
    Ok(if unstarted.is_some() { Measured::AtLeast(mean) } else { Measured::Exactly(mean) })
}

fn merge(sum: &mut Option<Histogram<u64>>, latency: &Latency) -> Result<(), String> {
    let histogram = latency.decode().map_err(|error| error.to_string())?;
    match sum {
        Some(sum) => add(sum, &histogram),
        None => *sum = Some(histogram),
    }
    Ok(())
}

fn tally(phase: &PhaseResult, count: impl Fn(&Tally) -> u64) -> Result<Measured, String> {
    match &phase.tally {
        Some(tally) => Ok(Measured::Exactly(count(tally) as f64)),
        None => Err("verification was off".to_owned()),
    }
}

/// Wrong reads of some kinds, in the phase and when its records were read back.
fn anomalies(phase: &PhaseResult, kinds: &[AnomalyKind]) -> Result<Measured, String> {
    let after = phase.writes.as_ref().map_or([0; 5], |writes| writes.anomalies);
    let of = |tally: &Tally, kind: AnomalyKind| tally.of(kind).saturating_add(after[kind as usize]);
    tally(phase, |tally| kinds.iter().fold(0, |sum, &kind| sum.saturating_add(of(tally, kind))))
}

fn writes(phase: &PhaseResult, subject: &Subject, may_forget: bool) -> Result<Measured, String> {
    let Some(writes) = &phase.writes else {
        return Err("the records were not read back".to_owned());
    };
    let WriteAccount { acknowledged, lost, recovered, .. } = *writes;
    match subject.figure {
        ConditionFigure::Acked => Ok(Measured::Exactly(acknowledged as f64)),
        _ if may_forget => {
            Err("the store may forget records: what is gone need not be lost".to_owned())
        }
        ConditionFigure::AckedLost if writes.exact && writes.unknown == 0 => {
            Ok(Measured::Exactly(lost as f64))
        }
        ConditionFigure::AckedLost => Ok(Measured::AtLeast(lost as f64)),
        _ if writes.exact => Ok(Measured::Exactly(recovered as f64)),
        _ => Ok(Measured::AtLeast(recovered as f64)),
    }
}

fn copies_differ(phase: &PhaseResult) -> Result<Measured, String> {
    let Some(writes) = &phase.writes else {
        return Err("the records were not read back".to_owned());
    };
    match &writes.copies {
        None => Err("there is one copy of each record".to_owned()),
        Some(copies) if !copies.not_shown.is_empty() => Err(copies.not_shown.clone()),
        Some(copies)
            if copies.compared == copies.asked
                && copies.partly == 0
                && copies.left_out.is_empty() =>
        {
            Ok(Measured::Exactly(copies.differ as f64))
        }
        Some(copies) => Ok(Measured::AtLeast(copies.differ as f64)),
    }
}

fn unavailable(phase: &PhaseResult, of: Operations) -> Result<Measured, String> {
    let Some(unavailable) = &phase.unavailable else {
        return Err("times without success were not recorded".to_owned());
    };
    let stretch = match of {
        Operations::All => Some(unavailable.all),
        Operations::Reads => unavailable.reads,
        Operations::Writes => unavailable.writes,
        Operations::Kind(_) | Operations::Hits | Operations::Misses | Operations::HitsAndMisses => {
            return Err("it is told for reads and for writes, not for one kind".to_owned());
        }
    };
    match stretch {
        Some(StretchResult { length_ns, .. }) => Ok(Measured::Exactly(length_ns as f64)),
        None => Err(format!("the phase has no {}", of.name())),
    }
}

/// The worst that any fault of the phase, or its repair, has led to.
fn after_faults(phase: &PhaseResult, subject: &Subject) -> Result<Measured, String> {
    if phase.account.is_empty() {
        return Err("no fault was done".to_owned());
    }
    let of = subject.operations;
    if !matches!(of, Operations::All | Operations::Reads | Operations::Writes) {
        return Err("it is told for reads and for writes, not for one kind".to_owned());
    }
    let mut worst: Option<Measured> = None;
    for fault in &phase.account {
        for (name, side) in fault.sides() {
            if of == Operations::All || of.name() == name {
                let measured = after_fault(side, &subject.figure)?;
                worst = [worst, measured].into_iter().flatten().reduce(worse);
            }
        }
    }
    match (worst, &subject.figure) {
        (Some(worst), _) => Ok(worst),
        (None, ConditionFigure::LastError) => Ok(Measured::Exactly(0.0)),
        (None, ConditionFigure::FirstError) => Err("there was no error".to_owned()),
        (None, _) => Err(format!("the phase has no {}", of.name())),
    }
}

/// The longer of two. Where one has an open end, so has the answer: that one may be longer than was seen.
fn worse(a: Measured, b: Measured) -> Measured {
    match (a, b) {
        (Measured::Exactly(a), Measured::Exactly(b)) => Measured::Exactly(a.max(b)),
        (
            Measured::Exactly(a) | Measured::AtLeast(a),
            Measured::Exactly(b) | Measured::AtLeast(b),
        ) => Measured::AtLeast(a.max(b)),
    }
}

fn after_fault(side: &SideAccount, figure: &ConditionFigure) -> Result<Option<Measured>, String> {
    let exactly = |ns: u64| Measured::Exactly(ns as f64);
    let or_longer = |after: Option<u64>, watched: u64| {
        Some(after.map_or(Measured::AtLeast(watched as f64), exactly))
    };
    let other_version = || "the result is of a version that told something else".to_owned();
    match figure {
        ConditionFigure::FirstError => Ok(side.first_error_ns.map(exactly)),
        ConditionFigure::LastError => Ok(side.last_error_ns.map(exactly)),
        ConditionFigure::Calm if side.former_p99_ns.is_none() => {
            Err("there is no percentile from before the fault: until then it was too short, or the load \
                 was catching up"
                .to_owned())
        }
        ConditionFigure::Calm => {
            let told = side.latency.as_ref().ok_or_else(other_version)?;
            match told.undecided {
                Some(why) => Err(why.text().to_owned()),
                None => Ok(or_longer(told.after_ns, told.watched_ns)),
            }
        }
        ConditionFigure::Recovery(share) => {
            let told = side.throughput.as_ref().ok_or_else(other_version)?;
            match (told.of(*share), told.undecided) {
                (Some(after), _) => Ok(or_longer(after, told.watched_ns)),
                (None, Some(why)) => Err(why.text().to_owned()),
                (None, None) => Err("it is told for 50, 80, 90, 95, 99 and 100 %".to_owned()),
            }
        }
        _ => Ok(None),
    }
}

fn stale(phase: &PhaseResult, figure: &ConditionFigure) -> Result<Measured, String> {
    tally(phase, |_| 0)?;
    let Some(stale) = &phase.stale else { return Ok(Measured::Exactly(0.0)) };
    match (figure, stale.most_behind_ns) {
        (ConditionFigure::StaleVersions, _)
            if stale.examined >= stale.reads && stale.by_versions() == stale.examined =>
        {
            Ok(Measured::Exactly(stale.most_versions as f64))
        }
        // Of what was absent no version tells how many it was behind, and it was one at least.
        (ConditionFigure::StaleVersions, _) => {
            Ok(Measured::AtLeast(stale.most_versions.max(1) as f64))
        }
        (_, Some(behind)) => Ok(Measured::AtLeast(behind as f64)),
        (_, None) => Err("how far behind they were is not known".to_owned()),
    }
}

/// One violation is told, and there may be more.
fn violations(phase: &PhaseResult) -> Result<Measured, String> {
    let Some(told) = &phase.linearizability else {
        return Err("the phase keeps no histories: it lacks `linearizability = true`".to_owned());
    };
    match told.answer {
        LinearizabilityAnswer::Ok => Ok(Measured::Exactly(0.0)),
        LinearizabilityAnswer::Violated => Ok(Measured::AtLeast(1.0)),
        LinearizabilityAnswer::Unknown => Err(told.why.clone()),
    }
}

fn noticed(phase: &PhaseResult, name: &str) -> Result<Measured, String> {
    let figure = phase.figures.iter().find(|figure| figure.name == name);
    let Some(figure) = figure else {
        let known: Vec<&str> = phase.figures.iter().map(|figure| figure.name.as_str()).collect();
        return Err(match known.is_empty() {
            true => "the store's driver noticed nothing".to_owned(),
            false => format!("the store's driver noticed: {}", known.join(", ")),
        });
    };
    match (figure.value, figure.unit) {
        (Some(value), _) => Ok(Measured::Exactly(value)),
        (None, FigureUnit::Seconds) => Err("no time was measured".to_owned()),
        (None, _) => Err("it has no value".to_owned()),
    }
}
