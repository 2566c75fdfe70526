//! List of the figures that are compared: one list for the tables, for gates and for requirements. The other figures of
//! conditions have no margin of error.

use kvdyno_core::cost::per_million;
use kvdyno_core::verdict::ConditionFigure;

use super::estimate::Estimate;

/// Figures of a table, in its order. Costs and errors are left out where there are none.
pub(super) static SHOWN: [ConditionFigure; 7] = [
    ConditionFigure::Rate,
    ConditionFigure::Percentile(50_000),
    ConditionFigure::Percentile(90_000),
    ConditionFigure::Percentile(99_000),
    ConditionFigure::Percentile(99_900),
    ConditionFigure::Cost,
    ConditionFigure::ErrorRatio,
];
/// Figures that are compared when they are asked for, as are all other percentiles.
static ASKED: [ConditionFigure; 2] = [ConditionFigure::Mean, ConditionFigure::Errors];

/// Returns true if a figure has a margin of error.
pub(super) fn is_compared(figure: &ConditionFigure) -> bool {
    matches!(figure, ConditionFigure::Percentile(_))
        || SHOWN.contains(figure)
        || ASKED.contains(figure)
}

/// Lists the names of all of them.
pub(super) fn words() -> String {
    let known = SHOWN.iter().chain(&ASKED).map(ConditionFigure::name);
    let named = known.filter(|name| !name.starts_with('p')).collect::<Vec<_>>().join(", ");
    format!("{named} and percentiles such as p99")
}

/// Returns the figure that is measured where `figure` is computed from it.
pub(super) fn measured_figure(figure: &ConditionFigure) -> ConditionFigure {
    match figure {
        ConditionFigure::Cost => ConditionFigure::Rate,
        other => other.clone(),
    }
}

/// Converts a rate to the cost of a million operations, for servers at `hourly`. Its logarithm is minus that of the rate
/// plus a constant, so the errors are the same.
pub(super) fn cost(rate: Estimate, hourly: f64) -> Estimate {
    let value = per_million(hourly, rate.value);
    Estimate { value, scaled: value.ln(), ..rate }
}
