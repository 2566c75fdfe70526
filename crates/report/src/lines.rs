//! The one list of report lines. The terminal's table, the page, Markdown and comparisons are all
//! made from it: a line is a label, a unit, and where its value is.

use crate::capacity::capacity_lines;
use crate::cell::{Cell, LatencyUnit};
use crate::cost::cost_lines;
use crate::result::{RunResult, StoreRun};
use crate::scorecard::scorecard_lines;
use crate::view::{PhaseView, main_row};
use crate::wording::shows_published;

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineUnit {
    /// Operations a second.
    PerSecond,
    /// Milliseconds, whole.
    Milliseconds,
    /// A latency, ns; printed in the table's [`LatencyUnit`].
    Latency,
    /// A count.
    Count,
    /// A part of a whole, printed in per cent.
    Share,
    /// A number that names something; printed without separators.
    Name,
}

/// A column of the table.
#[derive(Clone, Copy, Debug)]
pub struct ReportLine {
    /// Heading.
    pub label: &'static str,
    /// Explanation, for the page's hints and comparisons.
    pub meaning: &'static str,
    /// Unit of the value.
    pub unit: LineUnit,
    /// The value; `None` where a row has none.
    pub value: fn(&PhaseView) -> Option<f64>,
    /// Operations that a row has at least if they are to carry the value.
    pub least: u64,
    /// Left out where there is no room for all columns.
    pub spare: bool,
}

/// Defaults of a line beside its label, its meaning and its value.
const PLAIN: ReportLine = ReportLine {
    label: "",
    meaning: "",
    unit: LineUnit::Count,
    value: |_| None,
    least: 0,
    spare: false,
};

/// A percentile wants ten operations beyond it, to be more than chance: `least` says how many there are then.
const fn latency(
    label: &'static str,
    meaning: &'static str,
    value: fn(&PhaseView) -> Option<f64>,
    least: u64,
) -> ReportLine {
    let unit = LineUnit::Latency;
    ReportLine { label, meaning, unit, value, least, ..PLAIN }
}

/// The latency that rankings go by.
pub const P99: ReportLine =
    latency("99%", "99th percentile of the latencies", |view| view.latency.p99, 1_000);

/// The column that stands behind the others in a table of which some row has a miss.
const HIT: ReportLine = ReportLine {
    label: "Hit",
    meaning: "share of the records asked for by gets that they found; rates and latencies are of those",
    unit: LineUnit::Share,
    value: |view| view.hit_ratio,
    ..PLAIN
};

/// The columns of a table: [`REPORT_LINES`], and the hit ratio where there was a miss.
static WITH_HITS: [ReportLine; 14] = {
    let mut all = [HIT; 14];
    let mut at = 0;
    while at < REPORT_LINES.len() {
        all[at] = REPORT_LINES[at];
        at += 1;
    }
    all
};

/// The columns after the first of the tables of results in which gets missed a record, or did not.
#[must_use]
pub fn report_lines(missed: bool) -> &'static [ReportLine] {
    if missed { &WITH_HITS } else { &WITH_HITS[..REPORT_LINES.len()] }
}

/// Some get of the result missed a record.
#[must_use]
pub fn has_misses(result: &RunResult) -> bool {
    result.runs.iter().any(run_has_misses)
}

/// Some get of the store's run missed a record.
#[must_use]
pub fn run_has_misses(run: &StoreRun) -> bool {
    run.phases.iter().any(|phase| phase.hits_and_misses().1 > 0)
}

/// Every column after the first, which names the test, of a table without a miss.
pub const REPORT_LINES: [ReportLine; 13] = [
    ReportLine {
        label: "Req/Sec",
        meaning: "successful operations a second; gets that found nothing stand in rows of their own",
        unit: LineUnit::PerSecond,
        value: |view| view.rate,
        ..PLAIN
    },
    ReportLine {
        label: "Millis",
        meaning: "duration of the phase in ms",
        unit: LineUnit::Milliseconds,
        value: |view| view.wall_ms,
        spare: true,
        ..PLAIN
    },
    latency("50%", "median latency", |view| view.latency.p50, 20),
    latency("90%", "90th percentile of the latencies", |view| view.latency.p90, 100),
    P99,
    ReportLine {
        spare: true,
        ..latency("99.5%", "99.5th percentile of the latencies", |view| view.latency.p99_5, 2_000)
    },
    latency("99.9%", "99.9th percentile of the latencies", |view| view.latency.p99_9, 10_000),
    latency("Max", "longest latency", |view| view.latency.max, 0),
    ReportLine { spare: true, ..latency("Mean", "mean latency", |view| view.latency.mean, 0) },
    ReportLine {
        label: "Errors",
        meaning: "operations that ended in an error",
        unit: LineUnit::Count,
        value: |view| view.errors.map(|n| n as f64),
        ..PLAIN
    },
    ReportLine {
        label: "Wrong reads",
        meaning: "reads that failed verification, and unexpected misses",
        unit: LineUnit::Count,
        value: |view| view.failures.map(|n| n as f64),
        ..PLAIN
    },
    ReportLine {
        label: "Clients",
        meaning: "requests in flight at most",
        unit: LineUnit::Count,
        value: |view| view.clients.map(f64::from),
        spare: true,
        ..PLAIN
    },
    ReportLine {
        label: "ValSeed",
        meaning: "seed of the value sizes, where they have their own",
        unit: LineUnit::Name,
        value: |view| view.value_seed.map(|seed| seed as f64),
        spare: true,
        ..PLAIN
    },
];

impl ReportLine {
    /// Returns the name of the column in files, which stays when its heading is put otherwise: that of the published tables.
    #[must_use]
    pub fn id(&self) -> &'static str {
        match self.label {
            "Errors" => "Err",
            "Wrong reads" => "Fail",
            "Clients" => "Thr",
            label => label,
        }
    }

    /// Returns the cell of a row: blank where it has no value, nothing where its operations do not carry it.
    #[must_use]
    pub(crate) fn cell(&self, view: &PhaseView, unit: LatencyUnit) -> Cell {
        match (self.carried(view), (self.value)(view)) {
            (Some(value), _) => self.value_cell(value, unit),
            (None, Some(value)) if value.is_finite() => Cell::Nothing,
            (None, _) => Cell::Blank,
        }
    }

    /// The value of a row, where it has one that its operations carry.
    #[must_use]
    pub fn carried(&self, view: &PhaseView) -> Option<f64> {
        let few = view.latency.samples.is_some_and(|samples| samples < self.least);
        (self.value)(view).filter(|value| value.is_finite() && !few)
    }

    /// Returns the cell of a value of this line.
    #[must_use]
    pub(crate) fn value_cell(&self, value: f64, unit: LatencyUnit) -> Cell {
        match self.unit {
            LineUnit::Latency => Cell::Latency(value, unit),
            LineUnit::PerSecond => Cell::Rate(value),
            LineUnit::Milliseconds | LineUnit::Count => Cell::WholeRate(value.round()),
            LineUnit::Name => Cell::Name(value),
            LineUnit::Share => Cell::Hits(value),
        }
    }
}

/// Returns the unit that suits all tables of a result: ms where published figures stand beside or medians are above 1 ms,
/// else µs.
#[must_use]
pub(crate) fn latency_unit(result: &RunResult) -> LatencyUnit {
    let phases = || result.runs.iter().flat_map(|run| &run.phases);
    if shows_published(result) && phases().any(|phase| !phase.published.is_empty()) {
        return LatencyUnit::Millis;
    }
    // A phase's histograms are added for its median: the first short one decides.
    let mut medians = phases().filter_map(|phase| main_row(phase).ok()?.latency.p50).peekable();
    match medians.peek().is_some() && medians.all(|median| median >= 1e6) {
        true => LatencyUnit::Millis,
        false => LatencyUnit::Micros,
    }
}

/// Describes the findings about a store beyond its table, in sentences without stops: the headline and
/// the scorecard of a standard suite, the results of searches, the cost.
#[must_use]
pub fn findings(result: &RunResult, run: &StoreRun) -> Vec<String> {
    let skipped =
        run.skipped.iter().map(|phase| format!("phase {} was not run: {}", phase.name, phase.why));
    let searched = run.capacity.iter().flat_map(|found| capacity_lines(run, found));
    let standard = scorecard_lines(result, run).into_iter();
    skipped.chain(standard).chain(searched).chain(cost_lines(result, run)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_published_tables() {
        let labels: Vec<&str> = REPORT_LINES.iter().map(|line| line.label).collect();
        // Their authors called the three before the last one Err, Fail and Thr (docs/SUITES.md).
        let expected = "Req/Sec, Millis, 50%, 90%, 99%, 99.5%, 99.9%, Max, Mean, Errors, Wrong reads, \
                        Clients, ValSeed";
        assert_eq!(labels.join(", "), expected);
        let ids: Vec<&str> = REPORT_LINES.iter().map(ReportLine::id).collect();
        let expected = "Req/Sec Millis 50% 90% 99% 99.5% 99.9% Max Mean Err Fail Thr ValSeed";
        assert_eq!(ids.join(" "), expected);
    }
}
