//! Examples of reads that the ledger does not allow.

use super::subject::StoreSubject;
use super::{Block, DataColumn, DataRow, DataTable};
use crate::cell::Cell;
use crate::result::AnomalyResult;
use kvdyno_core::verify::AnomalyKind;

/// Headings.
const COLUMNS: [&str; 8] =
    ["Kind", "Phase", "Operation", "Record", "Seen", "Legal", "Behind", "Read again"];

/// Builds the table of those that were kept as examples.
pub(super) fn blocks(store: &StoreSubject<'_>) -> Vec<Block> {
    let run = store.run;
    let found = run
        .phases
        .iter()
        .flat_map(|phase| phase.anomalies.iter().map(move |anomaly| row(&phase.name, anomaly)));
    let table = DataTable {
        columns: COLUMNS.map(DataColumn::words).into(),
        rows: found.collect(),
        ..DataTable::default()
    };
    let shown = table.rows.len() as u64;
    let all = run.tally().map_or(0, |tally| tally.illegal());
    let more = "these are the first ones; anomalies.jsonl holds those that were kept";
    let more = (shown > 0 && all > shown).then(|| Block::sentence(more));
    let none = Block::sentence("no read was found that the ledger does not allow");
    std::iter::once(table.block().unwrap_or(none)).chain(more).collect()
}

fn row(phase: &str, anomaly: &AnomalyResult) -> DataRow {
    let text = |text: String| Cell::Text(text);
    let again = [anomaly.again.as_str(), anomaly.detail.as_str()];
    let again: Vec<&str> = again.into_iter().filter(|text| !text.is_empty()).collect();
    DataRow::new([
        text(anomaly.kind.name().to_owned()),
        text(phase.to_owned()),
        text(format!("{}/{}/{}", anomaly.phase, anomaly.group, anomaly.operation)),
        text(match anomaly.field {
            0 => anomaly.record.to_string(),
            field => format!("{} field {field}", anomaly.record),
        }),
        text(match (anomaly.seen, anomaly.kind) {
            (Some(version), _) => format!("version {version}"),
            (None, AnomalyKind::Corrupt) => "nothing readable".to_owned(),
            (None, _) => "nothing".to_owned(),
        }),
        text(format!("version {} or later", anomaly.floor)),
        Cell::of(anomaly.behind_ns, Cell::AtLeast),
        if again.is_empty() { Cell::Blank } else { text(again.join("; ")) },
    ])
}
