//! Processors, memory and storage that each phase used.

use super::subject::StoreSubject;
use super::{Block, DataColumn, DataRow, DataTable};
use crate::cell::Cell;
use kvdyno_core::ground::numbers::bytes_text;
use kvdyno_core::measure::ProcessUse;

/// Builds the table of what machine, kvdyno and servers used.
pub(super) fn blocks(store: &StoreSubject<'_>) -> Vec<Block> {
    let rows = store.run.phases.iter().filter_map(|phase| {
        let used = phase.resources.as_ref()?;
        let servers = used.servers.iter().filter_map(|server| {
            let node = store.run.testbed.as_ref().and_then(|testbed| testbed.node_of(server.pid));
            let who = node.map_or(format!("server {}", server.pid), |node| node.name.clone());
            Some(format!("{who}: {}", used_text(&server.used?)))
        });
        let servers = servers.collect::<Vec<_>>().join("; ");
        Some(DataRow::new([
            Cell::Text(phase.name.clone()),
            Cell::Share(used.busy, 1),
            Cell::Share(used.iowait, 1),
            Cell::Share(used.steal, 1),
            Cell::Text(used_text(&used.own)),
            if servers.is_empty() { Cell::Blank } else { Cell::Text(servers) },
        ]))
    });
    let table = DataTable {
        columns: vec![
            DataColumn::words("Phase"),
            DataColumn::figures("Machine busy"),
            DataColumn::figures("Waiting for storage"),
            DataColumn::figures("Stolen"),
            DataColumn::words("kvdyno"),
            DataColumn::words("Servers"),
        ],
        rows: rows.collect(),
        ..DataTable::default()
    };
    table.block().into_iter().collect()
}

fn used_text(used: &ProcessUse) -> String {
    let bytes = |bytes: Option<u64>, what: &str| {
        bytes.map(|bytes| format!(", {} {what}", bytes_text(bytes as f64))).unwrap_or_default()
    };
    format!(
        "{:.2} CPUs, at most {}{}{}",
        used.processors,
        bytes_text(used.peak_rss as f64),
        bytes(used.read_bytes, "read"),
        bytes(used.written_bytes, "written")
    )
}
