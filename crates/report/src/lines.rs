//! The one list of report lines. The terminal's table, the page, Markdown and comparisons are all
//! made from it: a line is a label, a unit, which direction is better, and where its value is.

use kvdyno_core::store::FigureUnit;

use crate::capacity::capacity_lines;
use crate::cost::cost_lines;
use crate::result::{
    FaultResult, FigureResult, LinearizabilityAnswer, LinearizabilityResult, RequestResult,
    RunResult, StoreRun,
};
use crate::scorecard::scorecard_lines;
use crate::view::{PhaseView, main_row};

/// Which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: it describes the test.
    Neither,
}

/// What a value is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Operations a second.
    PerSecond,
    /// Milliseconds, whole.
    Milliseconds,
    /// A latency, ns; printed in the table's [`LatencyUnit`].
    Latency,
    /// A count.
    Count,
    /// A number that names something; printed without separators.
    Name,
}

/// A column of the table.
#[derive(Clone, Copy, Debug)]
pub struct ReportLine {
    /// Heading.
    pub label: &'static str,
    /// What it is, for the page's hints and comparisons.
    pub meaning: &'static str,
    /// What the value is counted in.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// The value; `None` where a row has none.
    pub value: fn(&PhaseView) -> Option<f64>,
}

const fn latency(
    label: &'static str,
    meaning: &'static str,
    value: fn(&PhaseView) -> Option<f64>,
) -> ReportLine {
    ReportLine { label, meaning, unit: Unit::Latency, better: Better::Lower, value }
}

/// Every column after the first, which names the test.
pub const REPORT_LINES: [ReportLine; 13] = [
    ReportLine {
        label: "Req/Sec",
        meaning: "successful operations a second",
        unit: Unit::PerSecond,
        better: Better::Higher,
        value: |view| view.rate,
    },
    ReportLine {
        label: "Millis",
        meaning: "duration of the phase in ms",
        unit: Unit::Milliseconds,
        better: Better::Neither,
        value: |view| view.wall_ms,
    },
    latency("50%", "median latency", |view| view.latency.p50),
    latency("90%", "90th percentile of the latencies", |view| view.latency.p90),
    latency("99%", "99th percentile of the latencies", |view| view.latency.p99),
    latency("99.5%", "99.5th percentile of the latencies", |view| view.latency.p99_5),
    latency("99.9%", "99.9th percentile of the latencies", |view| view.latency.p99_9),
    latency("Max", "longest latency", |view| view.latency.max),
    latency("Mean", "mean latency", |view| view.latency.mean),
    ReportLine {
        label: "Err",
        meaning: "operations that ended in an error",
        unit: Unit::Count,
        better: Better::Lower,
        value: |view| view.errors.map(|n| n as f64),
    },
    ReportLine {
        label: "Fail",
        meaning: "reads that failed verification, and unexpected misses",
        unit: Unit::Count,
        better: Better::Lower,
        value: |view| view.failures.map(|n| n as f64),
    },
    ReportLine {
        label: "Thr",
        meaning: "clients: requests in flight at most",
        unit: Unit::Count,
        better: Better::Neither,
        value: |view| view.clients.map(f64::from),
    },
    ReportLine {
        label: "ValSeed",
        meaning: "seed of the value sizes, where they have their own",
        unit: Unit::Name,
        better: Better::Neither,
        value: |view| view.value_seed.map(|seed| seed as f64),
    },
];

impl ReportLine {
    /// The value of a row as text; empty where it has none.
    #[must_use]
    pub fn text(&self, view: &PhaseView, unit: LatencyUnit) -> String {
        match (self.value)(view).filter(|value| value.is_finite()) {
            Some(value) => self.value_text(value, unit),
            None => String::new(),
        }
    }

    /// A value of this line as text.
    #[must_use]
    pub fn value_text(&self, value: f64, unit: LatencyUnit) -> String {
        match self.unit {
            Unit::Latency => unit.text(value),
            Unit::PerSecond => significant(value),
            Unit::Milliseconds | Unit::Count => grouped(value.round()),
            Unit::Name => format!("{value:.0}"),
        }
    }
}

/// Unit of the latencies in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyUnit {
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
}

impl LatencyUnit {
    /// The unit that suits all tables of a result: ms where published figures stand beside or
    /// medians are above 1 ms, else µs.
    #[must_use]
    pub fn for_result(result: &RunResult) -> LatencyUnit {
        let phases = || result.runs.iter().flat_map(|run| &run.phases);
        if shows_published(result) && phases().any(|phase| !phase.published.is_empty()) {
            return LatencyUnit::Millis;
        }
        let medians = phases().filter_map(|phase| main_row(phase).ok()?.latency.p50);
        match medians.reduce(f64::min) {
            Some(shortest) if shortest >= 1e6 => LatencyUnit::Millis,
            _ => LatencyUnit::Micros,
        }
    }

    /// Name of the unit.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LatencyUnit::Micros => "µs",
            LatencyUnit::Millis => "ms",
        }
    }

    /// A latency in this unit with three or more significant digits.
    #[must_use]
    pub fn text(self, nanos: f64) -> String {
        significant(match self {
            LatencyUnit::Micros => nanos / 1e3,
            LatencyUnit::Millis => nanos / 1e6,
        })
    }
}

/// Published figures stand beside measured ones only where nothing differs from the suite.
#[must_use]
pub fn shows_published(result: &RunResult) -> bool {
    result.suite.scale.is_none() && result.suite.changes.is_empty()
}

/// What was found out about a store beyond its table, in sentences without stops: the headline and
/// the scorecard of a standard suite, what searches found, what it costs.
#[must_use]
pub fn findings(result: &RunResult, run: &StoreRun) -> Vec<String> {
    let searched = run.capacity.iter().flat_map(capacity_lines);
    let standard = scorecard_lines(result, run).into_iter();
    standard.chain(searched).chain(cost_lines(result, run)).collect()
}

/// What a result that differs from its suite is stamped with.
#[must_use]
pub fn difference_stamp(result: &RunResult) -> Option<String> {
    let suite = &result.suite;
    match (suite.scale, suite.changes.is_empty()) {
        (Some(scale), _) => {
            Some(format!("scaled ×{scale}: not comparable with the published figures"))
        }
        (None, false) => {
            Some(format!("not the suite as it is defined: {}", suite.changes.join(" ")))
        }
        (None, true) => None,
    }
}

/// A latency in the unit that suits it, such as `8.19 µs`.
#[must_use]
pub fn duration_text(nanos: f64) -> String {
    let (value, unit) = match nanos {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", significant(value))
}

/// What a store's driver noticed, such as `hit ratio: 93.2 % (932 hits, 68 misses)`.
#[must_use]
pub fn figure_text(figure: &FigureResult) -> String {
    let detail = match figure.detail.as_str() {
        "" => String::new(),
        detail => format!(" ({detail})"),
    };
    format!("{}: {}{detail}", figure.name, figure_value(figure))
}

/// What was done to a node, such as `kill redis-1 (primary) at 10.0 s, done after 3.2 ms`.
#[must_use]
pub fn fault_text(fault: &FaultResult) -> String {
    let node = match (fault.node.as_str(), &fault.role) {
        ("", _) => String::new(),
        (node, Some(role)) => format!(" {node} ({role})"),
        (node, None) => format!(" {node}"),
    };
    let (at, took) = (fault.began_ns as f64 / 1e9, fault.ended_ns.saturating_sub(fault.began_ns));
    let end = match &fault.error {
        Some(error) => format!("not done: {error}"),
        None => format!("done after {}", duration_text(took as f64)),
    };
    let used = fault.used.as_deref().map_or(String::new(), |used| format!(" ({used})"));
    format!("{}{node} at {at:.3} s, {end}{used}", fault.what)
}

/// What the sampled histories say, such as `linearizable: 3,000 requests about 16 records`.
#[must_use]
pub fn linearizability_text(result: &LinearizabilityResult) -> String {
    let count = |n: u64| grouped(n as f64);
    let looked = format!("{} requests about {} records", count(result.requests), result.records);
    let why = &result.why;
    match (result.answer, &result.violation) {
        (LinearizabilityAnswer::Ok, _) => format!("linearizable: {looked}"),
        (LinearizabilityAnswer::Unknown, _) => format!("linearizable or not is unknown: {why}"),
        (LinearizabilityAnswer::Violated, None) => format!("NOT LINEARIZABLE: {why} ({looked})"),
        (LinearizabilityAnswer::Violated, Some(violation)) => {
            let requests: Vec<String> = violation.requests.iter().map(request_text).collect();
            let (record, requests) = (violation.record, requests.join("; "));
            format!("NOT LINEARIZABLE: {why}, record {record}: {requests} ({looked})")
        }
    }
}

/// Such as `write of version 3 from 1.000000 s to 1.000200 s`.
fn request_text(request: &RequestResult) -> String {
    let seconds = |ns: u64| format!("{:.6} s", ns as f64 / 1e9);
    let what = match request.version {
        Some(version) if version < 0 => format!("version {} of an earlier run", -version),
        Some(version) => format!("version {version}"),
        None => "nothing".to_owned(),
    };
    let failed = if request.failed { "failed " } else { "" };
    let verb = if request.write { "write of" } else { "read of" };
    let until = match request.answered_ns {
        Some(answered) => format!("to {}", seconds(answered)),
        None => "on, without an answer".to_owned(),
    };
    format!("{failed}{verb} {what} from {} {until}", seconds(request.sent_ns))
}

/// The value of a figure in its unit; `unknown` where there is none.
#[must_use]
pub fn figure_value(figure: &FigureResult) -> String {
    let Some(value) = figure.value else { return "unknown".to_owned() };
    match figure.unit {
        FigureUnit::Share => format!("{} %", significant(value * 100.0)),
        FigureUnit::Count | FigureUnit::Ratio => significant(value),
        FigureUnit::Seconds => duration_text(value * 1e9),
    }
}

/// Three significant digits or all digits before the point, in groups of three: `0.0123`, `1.23`,
/// `12.3`, `123`, `12,345`; at most five places after the point.
#[must_use]
pub fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v >= 99.95 => grouped(value.round()),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.09995 => format!("{value:.3}"),
        v if v >= 0.009_995 => format!("{value:.4}"),
        _ => format!("{value:.5}"),
    }
}

/// A whole number in groups of three digits.
#[must_use]
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn columns_are_those_of_the_published_tables() {
        let labels: Vec<&str> = REPORT_LINES.iter().map(|line| line.label).collect();
        let expected = "Req/Sec Millis 50% 90% 99% 99.5% 99.9% Max Mean Err Fail Thr ValSeed";
        assert_eq!(labels.join(" "), expected);
    }

    #[test]
    fn numbers_have_sensible_digits() {
        let cases = [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (0.5, "0.500"),
            (1.234, "1.23"),
            (9.999, "10.0"),
            (12.34, "12.3"),
            (99.99, "100"),
            (1234.4, "1,234"),
            (5_706_060.0, "5,706,060"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value), text);
        }
        assert_eq!(grouped(-1_000.0), "-1,000");
        assert_eq!(duration_text(8_190.0), "8.19 µs");
        assert_eq!(duration_text(2.5e9), "2.50 s");
    }

    #[test]
    fn figures_of_stores_are_told_in_their_units() {
        let text = |unit, value| {
            let (name, detail) = ("f".to_owned(), String::new());
            figure_text(&FigureResult { name, value, unit, detail, warning: None })
        };
        assert_eq!(text(FigureUnit::Share, Some(0.932)), "f: 93.2 %");
        assert_eq!(text(FigureUnit::Count, Some(12_345.0)), "f: 12,345");
        assert_eq!(text(FigureUnit::Seconds, Some(0.002)), "f: 2.00 ms");
        assert_eq!(text(FigureUnit::Ratio, Some(1.5)), "f: 1.50");
        assert_eq!(text(FigureUnit::Ratio, None), "f: unknown");
    }

    #[test]
    fn faults_are_told_with_node_and_time() {
        let mut fault = FaultResult {
            what: "kill".to_owned(),
            node: "redis-1".to_owned(),
            role: Some("primary".to_owned()),
            began_ns: 10_000_000_000,
            ended_ns: 10_003_200_000,
            used: None,
            error: None,
        };
        assert_eq!(fault_text(&fault), "kill redis-1 (primary) at 10.000 s, done after 3.20 ms");
        fault.used = Some("SIGKILL".to_owned());
        assert!(fault_text(&fault).ends_with("done after 3.20 ms (SIGKILL)"));
        fault.used = None;
        (fault.node, fault.error) = (String::new(), Some("no node is a primary".to_owned()));
        assert_eq!(fault_text(&fault), "kill at 10.000 s, not done: no node is a primary");
    }

    #[test]
    fn histories_are_told_with_the_requests_that_contradict_each_other() {
        let request = |write, version, sent_ns, answered_ns| RequestResult {
            write,
            version,
            sent_ns,
            answered_ns,
            failed: false,
        };
        let mut result = LinearizabilityResult {
            answer: LinearizabilityAnswer::Ok,
            why: String::new(),
            records: 16,
            full: 0,
            requests: 3_000,
            indeterminate: 1,
            violation: None,
        };
        assert_eq!(linearizability_text(&result), "linearizable: 3,000 requests about 16 records");
        result.answer = LinearizabilityAnswer::Unknown;
        result.why = "verification is off".to_owned();
        let text = linearizability_text(&result);
        assert_eq!(text, "linearizable or not is unknown: verification is off");
        result.answer = LinearizabilityAnswer::Violated;
        result.why = "it went back".to_owned();
        let requests = vec![
            request(true, Some(2), 1_000_000_000, None),
            request(false, None, 1_500_000_000, Some(1_500_001_000)),
            request(false, Some(-4), 2_000_000_000, Some(2_100_000_000)),
        ];
        result.violation = Some(crate::result::ViolationResult { record: 62, requests });
        assert_eq!(
            linearizability_text(&result),
            "NOT LINEARIZABLE: it went back, record 62: \
             write of version 2 from 1.000000 s on, without an answer; \
             read of nothing from 1.500000 s to 1.500001 s; \
             read of version 4 of an earlier run from 2.000000 s to 2.100000 s \
             (3,000 requests about 16 records)"
        );
    }

    #[test]
    fn published_figures_are_shown_in_their_unit_and_at_full_scale_only() {
        let mut result = sample::two_stores();
        assert_eq!(LatencyUnit::for_result(&result), LatencyUnit::Micros);
        result.runs[0].phases[0].published.push(sample::published());
        assert_eq!(LatencyUnit::for_result(&result), LatencyUnit::Millis);
        result.suite.scale = Some(0.001);
        assert_eq!(LatencyUnit::for_result(&result), LatencyUnit::Micros);
        let stamp = difference_stamp(&result).unwrap();
        assert_eq!(stamp, "scaled ×0.001: not comparable with the published figures");
        result.suite.scale = None;
        result.suite.changes.push("--clients 7".into());
        assert!(!shows_published(&result));
        let stamp = difference_stamp(&result).unwrap();
        assert_eq!(stamp, "not the suite as it is defined: --clients 7");
    }
}
