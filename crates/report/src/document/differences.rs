//! Differences from the suite as it is defined: each key that an option changed.

use super::subject::Subject;
use super::{Block, DataColumn, DataRow, DataTable};
use crate::cell::Cell;

/// Builds the table of what was changed; nothing if that is nothing.
pub(super) fn blocks(subject: &Subject<'_>) -> Vec<Block> {
    let suite = &subject.result.suite;
    // A result holds its plan after the change: the values before it stand in the suite only, and are not told here.
    let row = |key: &str, value: &str| {
        DataRow::new([Cell::Text(key.to_owned()), Cell::Text(value.to_owned())])
    };
    let scaled = suite.scale.map(|scale| row("scale", &scale.to_string()));
    let changed = suite.changes.iter().map(|change| {
        let (key, value) = changed_key(change);
        row(key, value)
    });
    let table = DataTable {
        columns: vec![DataColumn::words("Key"), DataColumn::words("This run")],
        rows: scaled.into_iter().chain(changed).collect(),
        ..DataTable::default()
    };
    table.block().into_iter().collect()
}

/// Returns key and value of an option as typed: `--clients 7`, `--set run.duration=10ms`, `--linearizability`.
fn changed_key(change: &str) -> (&str, &str) {
    let option = change.strip_prefix("--").unwrap_or(change);
    match option.strip_prefix("set ").and_then(|set| set.split_once('=')) {
        Some((key, value)) => (key.trim(), value.trim()),
        None => option.split_once(' ').unwrap_or((option, "true")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_change_is_a_row_and_a_suite_that_is_as_defined_has_none() {
        let mut result = sample::two_stores();
        let told = |result: &crate::result::RunResult| blocks(&Subject::of(result).unwrap());
        assert_eq!(told(&result), []);
        let changes = ["--clients 7", "--set run.keys=zipfian theta=0.9", "--linearizability"];
        result.suite.changes = changes.map(str::to_owned).into();
        let rows = |blocks: &[Block]| {
            let [Block::Table(table)] = blocks else { panic!("one table: {blocks:?}") };
            let text = |row: &DataRow| row.cells.iter().map(Cell::text).collect::<Vec<_>>();
            table.rows.iter().map(text).collect::<Vec<_>>()
        };
        let expected =
            [["clients", "7"], ["run.keys", "zipfian theta=0.9"], ["linearizability", "true"]];
        assert_eq!(rows(&told(&result)), expected);
        result.suite.scale = Some(0.001);
        assert_eq!(rows(&told(&result))[..2], [["scale", "0.001"], ["clients", "7"]]);
    }
}
