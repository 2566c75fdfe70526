//! `resources.csv`: what the machine, kvdyno and each node of a testbed used from one sample to the
//! next, for spreadsheets and for the report's charts.

use std::time::Duration;

use kvdyno_core::measure::{Nanos, ProcessCounters, Resources, Sample};
use serde::{Deserialize, Serialize};

use super::{IntervalPlace, rows};

/// Name of the rows about the whole machine.
pub(crate) const MACHINE: &str = "machine";
/// Name of the rows about this process.
pub(crate) const OWN: &str = "kvdyno";

/// A row: what one process used during a stretch of time. Times are seconds since the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResourceRow {
    pub run: usize,
    pub store: String,
    pub phase: u16,
    pub phase_name: String,
    pub start_s: f64,
    pub length_s: f64,
    /// `machine`, `kvdyno`, or the name of a node.
    pub process: String,
    /// Processors kept busy: 1.5 is one and a half.
    pub processors: f64,
    /// Memory held at the end of the stretch.
    pub rss_bytes: Option<u64>,
    /// Read from storage during the stretch, where that may be asked.
    pub read_bytes: Option<u64>,
    /// Sent to storage during the stretch, where that may be asked.
    pub written_bytes: Option<u64>,
    /// Received during the stretch, by a node with a network namespace of its own.
    pub received_bytes: Option<u64>,
    /// Sent during the stretch, by a node with a network namespace of its own.
    pub sent_bytes: Option<u64>,
}

/// Adds the rows of a phase. `nodes` are the names of the sampled servers, in their order.
pub(crate) fn write(
    to: &mut Vec<u8>,
    place: IntervalPlace<'_>,
    resources: &Resources,
    nodes: &[String],
    origin: Nanos,
) {
    for pair in resources.samples.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let length = Duration::from_nanos(after.at.saturating_sub(before.at));
        if length.is_zero() {
            continue;
        }
        let stretch = ResourceRow {
            run: place.run,
            store: place.store.to_owned(),
            phase: place.phase,
            phase_name: place.phase_name.to_owned(),
            start_s: before.at.saturating_sub(origin) as f64 / 1e9,
            length_s: length.as_secs_f64(),
            ..ResourceRow::default()
        };
        used_by_all(&stretch, before, after, nodes).iter().for_each(|row| rows::push(to, row));
    }
}

fn used_by_all(
    stretch: &ResourceRow,
    before: &Sample,
    after: &Sample,
    nodes: &[String],
) -> Vec<ResourceRow> {
    let machine = after.machine.since(&before.machine);
    let worked = (machine.user + machine.system).as_secs_f64();
    let mut rows = vec![
        ResourceRow {
            process: MACHINE.to_owned(),
            processors: worked / stretch.length_s,
            ..stretch.clone()
        },
        used(stretch, OWN, &before.own, &after.own),
    ];
    for ((name, before), after) in nodes.iter().zip(&before.servers).zip(&after.servers) {
        if let (Some(before), Some(after)) = (before, after) {
            rows.push(used(stretch, name, before, after));
        }
    }
    rows
}

fn used(
    stretch: &ResourceRow,
    name: &str,
    before: &ProcessCounters,
    after: &ProcessCounters,
) -> ResourceRow {
    let worked = (after.user + after.system).saturating_sub(before.user + before.system);
    let grown = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
    ResourceRow {
        process: name.to_owned(),
        processors: worked.as_secs_f64() / stretch.length_s,
        rss_bytes: Some(after.rss),
        read_bytes: grown(before.read_bytes, after.read_bytes),
        written_bytes: grown(before.written_bytes, after.written_bytes),
        received_bytes: grown(before.received_bytes, after.received_bytes),
        sent_bytes: grown(before.sent_bytes, after.sent_bytes),
        ..stretch.clone()
    }
}
