//! Whether a phase met its conditions. What failed, or was due and never started, counts as never
//! answered.

use kvdyno_core::capacity::Seen;
use kvdyno_core::verdict::{Condition, Dimension, Measured, Subject};

use crate::figures;
use crate::numbers::{duration_text, significant};
use crate::result::PhaseResult;

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
/// `may_forget`: the store may evict.
#[must_use]
pub fn met(conditions: &[Condition], phase: &PhaseResult, may_forget: bool) -> Met {
    let never = phase.unstarted.as_ref().map_or(0, |unstarted| unstarted.count);
    if phase.open() && never as f64 > phase.offered as f64 * NOT_CARRIED {
        let share = significant(never as f64 / phase.offered as f64 * 100.0);
        let why = format!("{share} % of the due requests were never started");
        return Met { seen: Seen::Overloaded, why };
    }
    let mut why = Vec::new();
    for condition in conditions {
        let measured = figures::measured(phase, &condition.subject, may_forget);
        if measured.as_ref().ok().and_then(|&measured| condition.holds(measured)) != Some(true) {
            why.push(format!("{}: {}", condition.subject, told(&condition.subject, measured)));
        }
    }
    let seen = if why.is_empty() { Seen::Meets } else { Seen::Misses };
    Met { seen, why: why.join(", ") }
}

fn told(subject: &Subject, measured: Result<Measured, String>) -> String {
    let (value, least) = match measured {
        Err(why) => return format!("not measured: {why}"),
        Ok(Measured::Exactly(value)) => (value, ""),
        Ok(Measured::AtLeast(value)) => (value, "≥ "),
    };
    let value = match subject.figure.dimension() {
        _ if value.is_infinite() => "never answered".to_owned(),
        Dimension::Time => duration_text(value),
        Dimension::Share => format!("{} %", significant(value * 100.0)),
        Dimension::Rate | Dimension::Count | Dimension::Any => significant(value),
    };
    format!("{least}{value}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Latency;
    use crate::sample;

    fn phase(name: &str) -> PhaseResult {
        let result = sample::two_stores();
        let mut phases = result.runs[0].phases.iter();
        phases.find(|phase| phase.name == name).expect("a phase of the sample").clone()
    }

    fn seen(text: &str, phase: &PhaseResult) -> Met {
        met(&Condition::parse_list(text).unwrap(), phase, false)
    }

    #[test]
    fn all_conditions_must_hold_and_those_that_do_not_are_told() {
        let phase = phase("load");
        assert_eq!(seen("p99 < 1h, errors == 0, rate > 1/s", &phase).seen, Seen::Meets);
        let missed = seen("p99 < 1ns, errors == 0", &phase);
        assert_eq!(missed.seen, Seen::Misses);
        assert!(missed.why.starts_with("p99: "), "{}", missed.why);
        let unmeasured = seen("unavailable < 1s", &phase);
        assert_eq!(unmeasured.seen, Seen::Misses);
        assert!(unmeasured.why.starts_with("unavailable: not measured: "), "{}", unmeasured.why);
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
