//! `resources.csv`: resources that the machine, kvdyno and each node of a testbed used from one sample to the next, for
//! spreadsheets and for the report's charts.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::rows::{Cells, ColumnReader};
use super::{IntervalPlace, rows};
use crate::events::{ProcessUsed, Used};

/// A row: resources that one process used during a stretch of time. Times are seconds since the run began.
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
    /// Memory held at the end of the stretch, bytes.
    pub rss_bytes: Option<u64>,
    /// Bytes read from storage during the stretch, where the system tells.
    pub read_bytes: Option<u64>,
    /// Bytes sent to storage during the stretch, where the system tells.
    pub written_bytes: Option<u64>,
    /// Bytes received during the stretch, by a node with a network namespace of its own.
    pub received_bytes: Option<u64>,
    /// Bytes sent during the stretch, by a node with a network namespace of its own.
    pub sent_bytes: Option<u64>,
}

/// Part of a row that charts show.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DrawnUse<'a> {
    pub run: usize,
    pub phase: u16,
    pub start_s: f64,
    pub length_s: f64,
    pub process: &'a str,
    pub processors: f64,
    pub rss_bytes: u64,
    pub written_bytes: Option<u64>,
    pub received_bytes: Option<u64>,
    pub sent_bytes: Option<u64>,
}

/// Names of the columns of a [`DrawnUse`], in its order.
const DRAWN: [&str; 10] = [
    "run",
    "phase",
    "start_s",
    "length_s",
    "process",
    "processors",
    "rss_bytes",
    "written_bytes",
    "received_bytes",
    "sent_bytes",
];

/// Hands on the drawn part of each row of a file, at most `most` rows; none if there is no file. Broken rows leave gaps.
pub(crate) fn each_drawn(path: &Path, most: usize, mut each: impl FnMut(&DrawnUse<'_>)) {
    let Some(mut reader) = ColumnReader::open(path, DRAWN) else { return };
    for _ in 0..most {
        let Some(cells) = reader.next() else { return };
        if let Some(used) = drawn(&cells) {
            each(&used);
        }
    }
}

fn drawn<'a>(cells: &Cells<'a, 10>) -> Option<DrawnUse<'a>> {
    Some(DrawnUse {
        run: cells.value(0)?,
        phase: cells.value(1)?,
        start_s: cells.value(2)?,
        length_s: cells.value(3)?,
        process: cells.text(4),
        processors: cells.value(5)?,
        rss_bytes: cells.count(6),
        written_bytes: cells.value(7),
        received_bytes: cells.value(8),
        sent_bytes: cells.value(9),
    })
}

/// Adds the rows of the resources that were used from one sample to the next.
pub(crate) fn write(to: &mut Vec<u8>, place: IntervalPlace<'_>, used: &Used) {
    for process in &used.processes {
        let ProcessUsed { processors, rss_bytes, read_bytes, written_bytes, .. } = *process;
        let row = ResourceRow {
            run: place.run,
            store: place.store.to_owned(),
            phase: place.phase,
            phase_name: place.phase_name.to_owned(),
            start_s: used.from_ns as f64 / 1e9,
            length_s: used.to_ns.saturating_sub(used.from_ns) as f64 / 1e9,
            process: process.process.clone(),
            processors,
            rss_bytes,
            read_bytes,
            written_bytes,
            received_bytes: process.received_bytes,
            sent_bytes: process.sent_bytes,
        };
        rows::push(to, &row);
    }
}
