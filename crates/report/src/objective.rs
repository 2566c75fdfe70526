//! Whether a phase met its conditions. What failed, or was due and never started, counts as never
//! answered.

use hdrhistogram::Histogram;
use kvdyno_core::capacity::Seen;
use kvdyno_core::verdict::{Condition, ConditionFigure as Figure, Dimension, Measured, Subject};
use kvdyno_core::verify::AnomalyKind;

use crate::lines::{duration_text, significant};
use crate::result::{HistogramError, Latency, PhaseResult, SeriesResult, add, rate};

/// More than this share of the due requests was never started: the rate was not carried.
const NOT_CARRIED: f64 = 0.01;

/// What a phase says of conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Met {
    /// Whether all hold.
    pub seen: Seen,
    /// Which do not, with the figure; empty if all hold.
    pub why: String,
}

/// Holds a phase against `conditions`. A figure that a phase does not have meets nothing.
///
/// # Errors
/// [`HistogramError`] if a histogram of the phase cannot be decoded.
pub fn met(conditions: &[Condition], phase: &PhaseResult) -> Result<Met, HistogramError> {
    let never = phase.unstarted.as_ref().map_or(0, |unstarted| unstarted.count);
    if phase.open() && never as f64 > phase.offered as f64 * NOT_CARRIED {
        let share = significant(never as f64 / phase.offered as f64 * 100.0);
        let why = format!("{share} % of the due requests were never started");
        return Ok(Met { seen: Seen::Overloaded, why });
    }
    let mut why = Vec::new();
    for condition in conditions {
        let measured = measured(&condition.subject, phase)?;
        if measured.and_then(|measured| condition.holds(measured)) != Some(true) {
            why.push(format!("{}: {}", condition.subject, told(&condition.subject, measured)));
        }
    }
    let seen = if why.is_empty() { Seen::Meets } else { Seen::Misses };
    Ok(Met { seen, why: why.join(", ") })
}

fn told(subject: &Subject, measured: Option<Measured>) -> String {
    let (value, least) = match measured {
        None => return "not measured".to_owned(),
        Some(Measured::Exactly(value)) => (value, ""),
        Some(Measured::AtLeast(value)) => (value, "≥ "),
    };
    let value = match subject.figure.dimension() {
        _ if value.is_infinite() => "never answered".to_owned(),
        Dimension::Time => duration_text(value),
        Dimension::Share => format!("{} %", significant(value * 100.0)),
        Dimension::Rate | Dimension::Count | Dimension::Any => significant(value),
    };
    format!("{least}{value}")
}

/// The value of a figure in a phase; `None` if a phase alone does not have it.
///
/// # Errors
/// As [`met`].
pub fn measured(
    subject: &Subject,
    phase: &PhaseResult,
) -> Result<Option<Measured>, HistogramError> {
    let series: Vec<&SeriesResult> =
        phase.series.iter().filter(|series| subject.operations.include(series.kind)).collect();
    let sum = |count: fn(&SeriesResult) -> u64| series.iter().map(|s| count(s)).sum::<u64>() as f64;
    let (ok, errors) = (sum(|s| s.ok), sum(SeriesResult::unsuccessful));
    let of_tally = |kind| phase.tally.as_ref().map(|tally| tally.of(kind) as f64);
    let value = match &subject.figure {
        Figure::Percentile(part) => {
            return quantile(phase, &series, f64::from(*part) / 1e5);
        }
        Figure::Max => return quantile(phase, &series, 1.0),
        Figure::Mean if errors > 0.0 => Some(f64::INFINITY),
        Figure::Mean => answered(phase, &series)?.map(|histogram| histogram.mean()),
        Figure::Rate => rate(ok as u64, phase.wall_ns),
        Figure::Operations => Some(ok + errors),
        Figure::Errors => Some(errors),
        Figure::Failed => Some(sum(|s| s.failed)),
        Figure::Indeterminate => Some(sum(|s| s.indeterminate)),
        Figure::ErrorRatio => (ok + errors > 0.0).then(|| errors / (ok + errors)),
        Figure::Misses => phase.tally.as_ref().map(|tally| tally.unexpected_misses as f64),
        Figure::Anomalies => phase.tally.as_ref().map(|tally| tally.illegal() as f64),
        Figure::Stale => of_tally(AnomalyKind::Stale),
        Figure::Corrupt => of_tally(AnomalyKind::Corrupt),
        Figure::Phantom => of_tally(AnomalyKind::Phantom),
        Figure::Resurrected => of_tally(AnomalyKind::Resurrected),
        Figure::AckedLost => of_tally(AnomalyKind::Lost),
        Figure::Unknown => phase.tally.as_ref().map(|tally| tally.unknown as f64),
        Figure::Acked => phase.tally.as_ref().map(|tally| tally.writes_acknowledged as f64),
        Figure::Noticed(name) => {
            phase.figures.iter().find(|figure| figure.name == *name).and_then(|figure| figure.value)
        }
        _ => None,
    };
    Ok(value.map(Measured::Exactly))
}

/// All latencies of `series` that were answered, by the clock that the phase has.
fn answered(
    phase: &PhaseResult,
    series: &[&SeriesResult],
) -> Result<Option<Histogram<u64>>, HistogramError> {
    let clock = |series: &&SeriesResult| {
        if phase.open() { series.response.clone() } else { series.service.clone() }
    };
    together(series.iter().filter_map(clock))
}

fn together(
    parts: impl Iterator<Item = Latency>,
) -> Result<Option<Histogram<u64>>, HistogramError> {
    let mut total: Option<Histogram<u64>> = None;
    for part in parts {
        let part = part.decode()?;
        match &mut total {
            Some(total) => add(total, &part),
            None => total = Some(part),
        }
    }
    Ok(total)
}

/// The latency at `quantile` of what was due: what failed was never answered. What was due and never
/// started counts as never answered, too, so the value may be too high and is never too low; where
/// the quantile falls among them, their ages are its lower bound.
fn quantile(
    phase: &PhaseResult,
    series: &[&SeriesResult],
    quantile: f64,
) -> Result<Option<Measured>, HistogramError> {
    let Some(answered) = answered(phase, series)? else { return Ok(None) };
    let failed: u64 = series.iter().map(|series| series.unsuccessful()).sum();
    let never = phase.unstarted.as_ref().map_or(0, |unstarted| unstarted.count);
    let rank = ((answered.len() + never + failed) as f64 * quantile).ceil().max(1.0);
    if rank <= answered.len() as f64 {
        let value = answered.value_at_quantile(rank / answered.len() as f64);
        return Ok(Some(Measured::Exactly(value as f64)));
    }
    let mut all = answered;
    if let Some(unstarted) = &phase.unstarted {
        add(&mut all, &unstarted.decode()?);
    }
    if rank > all.len() as f64 {
        return Ok(Some(Measured::Exactly(f64::INFINITY)));
    }
    Ok(Some(Measured::AtLeast(all.value_at_quantile(rank / all.len() as f64) as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn phase(name: &str) -> PhaseResult {
        let result = sample::two_stores();
        let mut phases = result.runs[0].phases.iter();
        phases.find(|phase| phase.name == name).expect("a phase of the sample").clone()
    }

    fn seen(text: &str, phase: &PhaseResult) -> Met {
        met(&Condition::parse_list(text).unwrap(), phase).unwrap()
    }

    #[test]
    fn all_conditions_must_hold_and_those_that_do_not_are_told() {
        let phase = phase("load");
        assert_eq!(seen("p99 < 1h, errors == 0, rate > 1/s", &phase).seen, Seen::Meets);
        let missed = seen("p99 < 1ns, errors == 0", &phase);
        assert_eq!(missed.seen, Seen::Misses);
        assert!(missed.why.starts_with("p99: "), "{}", missed.why);
        let unmeasured = seen("unavailable < 1s", &phase);
        assert_eq!(
            (unmeasured.seen, &*unmeasured.why),
            (Seen::Misses, "unavailable: not measured")
        );
    }

    #[test]
    fn what_failed_took_for_ever() {
        let mut phase = phase("load");
        assert_eq!(seen("p90 < 1h, p99 < 1h", &phase).seen, Seen::Meets);
        let all = phase.ok();
        phase.series[0].failed = all / 20;
        let missed = seen("p90 < 1h, p99 < 1h", &phase);
        assert_eq!(missed.why, "p99: never answered");
    }

    #[test]
    fn a_rate_that_was_not_carried_is_no_miss_of_the_latency() {
        let mut phase = phase("open");
        phase.offered = 1_000;
        phase.unstarted = phase.series[0].response.clone();
        assert_eq!(seen("p99 < 1h", &phase).seen, Seen::Overloaded);
    }

    /// There are always a few requests that were due at the very end.
    #[test]
    fn a_few_that_were_never_started_leave_the_percentiles_below_them() {
        let mut phase = phase("open");
        let mut one = kvdyno_core::measure::latency_histogram::<u64>();
        one.saturating_record(1_000);
        phase.unstarted = Latency::of(&one);
        phase.offered = phase.ok() + 1;
        assert_eq!(seen("p90 < 1h", &phase).seen, Seen::Meets);
        let last = seen("max < 1h", &phase);
        assert!(last.seen == Seen::Misses && last.why.starts_with("max: ≥ "), "{last:?}");
    }
}
