//! The history of one phase of one setup on one machine: all results in order, and the points at which their figures
//! changed.

use serde::Serialize;

use super::entries::{BoardEntry, BoardFigure, Class, Standing};
use super::steps::Steps;
use kvdyno_core::ground::numbers::{approximate_count, duration_text};

/// Conditions that the results of a history have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kin {
    pub suite: String,
    pub phase: String,
    pub setup: String,
    pub machine: String,
    pub class: Class,
}

impl Kin {
    pub fn of(entry: &BoardEntry) -> Kin {
        let BoardEntry { suite, phase, setup, machine, class, .. } = entry.clone();
        Kin { suite, phase, setup, machine, class }
    }
}

/// Figure that a chart shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawn {
    Rate,
    P99,
}

/// A chart of a history, as its page has it.
#[derive(Debug, Serialize)]
pub(super) struct HistoryChart {
    pub title: &'static str,
    /// Name of the axis: `amount` or `latency` (µs).
    axis: &'static str,
    /// Day, version and build of each result.
    names: Vec<String>,
    values: Vec<Option<f64>>,
    low: Vec<Option<f64>>,
    high: Vec<Option<f64>>,
    /// True if the result may be believed.
    valid: Vec<bool>,
    /// Stretches between steps: index of the first result, index behind the last one, and level.
    levels: Vec<(usize, usize, f64)>,
}

/// A lasting change of a figure, in words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StepDescription {
    /// Time at which the first result with it was measured.
    pub when: String,
    /// Figure that it is a step of.
    pub what: &'static str,
    pub text: String,
    pub is_worse: bool,
}

impl Drawn {
    fn of(self, entry: &BoardEntry) -> Option<BoardFigure> {
        match self {
            Drawn::Rate => entry.rate,
            // Latencies are in µs, as in all charts.
            Drawn::P99 => entry.p99.map(|figure| BoardFigure {
                value: figure.value / 1e3,
                interval: figure.interval.map(|(low, high)| (low / 1e3, high / 1e3)),
            }),
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Drawn::Rate => format!("{}/s", approximate_count(value)),
            Drawn::P99 => duration_text(value * 1e3),
        }
    }
}

/// Draws the chart of a figure over a history, and finds its steps.
pub(super) fn chart(
    entries: &[&BoardEntry],
    drawn: Drawn,
    steps: &Steps,
) -> (HistoryChart, Vec<StepDescription>) {
    let figures: Vec<Option<BoardFigure>> = entries.iter().map(|entry| drawn.of(entry)).collect();
    let valid: Vec<bool> = entries.iter().map(|entry| entry.verdict == Standing::Valid).collect();
    // Results that may be distorted are shown, but prove nothing.
    let judged: Vec<(usize, f64)> = figures
        .iter()
        .enumerate()
        .filter(|(at, _)| valid[*at])
        .filter_map(|(at, figure)| Some((at, figure.as_ref()?.value)))
        .collect();
    let values: Vec<f64> = judged.iter().map(|(_, value)| *value).collect();
    let found = steps.of(&values);
    let (mut levels, mut from) = (Vec::new(), 0);
    for end in found.iter().map(|step| step.at).chain([values.len()]) {
        if end > from {
            let mean =
                values[from..end].iter().map(|value| value.ln()).sum::<f64>() / (end - from) as f64;
            let behind = if end == values.len() { entries.len() } else { judged[end].0 };
            levels.push((judged[from].0, behind, mean.exp()));
        }
        from = end;
    }
    let descriptions = found.iter().enumerate().map(|(index, step)| {
        let (first, before) = (entries[judged[step.at].0], entries[judged[step.at - 1].0]);
        let is_worse = (step.change < 0.0) == (drawn == Drawn::Rate);
        let what = if drawn == Drawn::Rate { "throughput" } else { "p99" };
        let [old, new] = [levels[index].2, levels[index + 1].2].map(|level| drawn.text(level));
        let (change, since) = (100.0 * step.change, name(first));
        StepDescription {
            when: first.when.clone(),
            what,
            text: format!(
                "{what} {change:+.1} % ({old} → {new}) since {since}; before it {}",
                name(before)
            ),
            is_worse,
        }
    });
    let descriptions: Vec<StepDescription> = descriptions.collect();
    let rounded = |value: f64| format!("{value:.4e}").parse().unwrap_or(value);
    let interval = |at: fn((f64, f64)) -> f64| {
        let bound = |figure: &Option<BoardFigure>| figure.as_ref()?.interval.map(at).map(rounded);
        figures.iter().map(bound).collect()
    };
    let (title, axis) = match drawn {
        Drawn::Rate => ("Operations a second", "amount"),
        Drawn::P99 => ("99th percentile", "latency"),
    };
    let values = figures.iter().map(|figure| figure.as_ref().map(|figure| rounded(figure.value)));
    let chart = HistoryChart {
        title,
        axis,
        names: entries.iter().map(|entry| name(entry)).collect(),
        values: values.collect(),
        low: interval(|(low, _)| low),
        high: interval(|(_, high)| high),
        valid,
        levels: levels.into_iter().map(|(from, to, level)| (from, to, rounded(level))).collect(),
    };
    (chart, descriptions)
}

/// Names a result so that it differs from its neighbours.
fn name(entry: &BoardEntry) -> String {
    let BoardEntry { version, kvdyno, .. } = entry;
    let of = if version.is_empty() { String::new() } else { format!(" version {version},") };
    format!("{},{of} kvdyno {kvdyno}", day(entry))
}

/// Returns the day of an entry.
pub(super) fn day(entry: &BoardEntry) -> String {
    entry.when.chars().take(10).collect()
}
