//! Files of a result's folder: their names, and the formats of those that grow while a run goes on.

pub(crate) mod interval_log;
pub(crate) mod resources_csv;
pub(crate) mod rows;
pub(crate) mod timeline_csv;

use crate::events::PhaseBegan;

/// Name of the file with the histograms by interval, in HdrHistogram's log format.
pub const INTERVALS_FILE: &str = "intervals.hlog";
/// Name of the file with the timeline, as comma-separated values.
pub const TIMELINE_FILE: &str = "timeline.csv";
/// Name of the file with the resources that machine, kvdyno and nodes used over time, as comma-separated values.
pub const RESOURCES_FILE: &str = "resources.csv";
/// Name of the file with the anomalies, one JSON object a line.
pub const ANOMALIES_FILE: &str = "anomalies.jsonl";
/// Begin of the names of histories in Jepsen's EDN; after it, number of the run and name of the phase.
pub const HISTORY_FILE: &str = "history-";
/// Name of the report's file.
pub const REPORT_FILE: &str = "report.html";

/// Store's run and phase that an interval belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntervalPlace<'a> {
    /// Number of the store's run, from 0.
    pub run: usize,
    /// Name of the store.
    pub store: &'a str,
    /// Number of the phase, from 0.
    pub phase: u16,
    /// Name of the phase.
    pub phase_name: &'a str,
}

impl<'a> From<&'a PhaseBegan> for IntervalPlace<'a> {
    fn from(began: &'a PhaseBegan) -> IntervalPlace<'a> {
        let PhaseBegan { run, store, plan, .. } = began;
        IntervalPlace { run: *run, store, phase: plan.index, phase_name: &plan.name }
    }
}

/// Turns a name into one for files and tags: letters, digits, `.`, `_` and `-` stay, all else becomes `-`.
pub(crate) fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(60).collect();
    if name.is_empty() { "-".to_owned() } else { name }
}
