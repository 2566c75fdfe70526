//! Sentences of reasons that depend on what was found.

use super::grouped;
use crate::measure::StopReason;
use crate::verify::AnomalyKind;

/// What ended a phase.
pub(super) fn of_cut(stopped: StopReason) -> &'static str {
    match stopped {
        StopReason::Requests | StopReason::Duration => "the phase ended as planned",
        StopReason::TimeLimit => "the phase reached its time limit with requests left",
        StopReason::Interrupted => "the phase was interrupted",
        StopReason::StoreLost => "no client could go on: the store was lost",
    }
}

/// By kind alone: what is lost is one anomaly, however many reads have found it, and so is each field that
/// is wrong.
pub(super) fn of_anomalies(counts: [u64; 5]) -> String {
    let kinds: Vec<_> = (AnomalyKind::ALL.iter().zip(counts))
        .filter(|&(_, count)| count > 0)
        .map(|(kind, count)| format!("{} {}", grouped(count), kind.name()))
        .collect();
    format!("the store answered reads wrongly: {}", kinds.join(", "))
}
