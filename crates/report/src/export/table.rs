//! Tables for other tools, independent of the file format: columns with names and types, and rows of cells.

use kvdyno_core::redact::plain;

use crate::files::rows::no_formula;

/// Type of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Text,
    Count,
    Real,
    Truth,
}

/// A column's name and type.
pub(super) type Column = (&'static str, ColumnType);

/// A value, or a missing one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Text(Option<&'a str>),
    Count(Option<u64>),
    Real(Option<f64>),
    Truth(bool),
}

/// Writer of a table's rows, one by one, each with a cell for every column, of the column's type.
pub(super) trait TableWriter {
    fn row(&mut self, cells: &[Cell<'_>]);
}

/// Table as comma-separated values, with the names in the first line; missing values are empty.
pub(super) struct CsvTable {
    writer: csv::Writer<Vec<u8>>,
}

impl CsvTable {
    pub fn new(columns: &[Column]) -> CsvTable {
        let mut table = CsvTable { writer: csv::Writer::from_writer(Vec::new()) };
        table.line(columns.iter().map(|(name, _)| (*name).to_owned()));
        table
    }

    pub fn end(self) -> Vec<u8> {
        self.writer.into_inner().expect("memory takes it")
    }

    fn line(&mut self, cells: impl Iterator<Item = String>) {
        self.writer.write_record(cells.map(String::into_bytes)).expect("memory takes it");
    }
}

impl TableWriter for CsvTable {
    fn row(&mut self, cells: &[Cell<'_>]) {
        self.line(cells.iter().map(|cell| match cell {
            Cell::Text(text) => {
                text.map_or(String::new(), |text| no_formula(&plain(text)).into_owned())
            }
            Cell::Count(count) => count.map_or(String::new(), |count| count.to_string()),
            Cell::Real(real) => real.map_or(String::new(), |real| real.to_string()),
            Cell::Truth(truth) => truth.to_string(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_version_is_no_formula() {
        let mut table =
            CsvTable::new(&[("version", ColumnType::Text), ("offset", ColumnType::Real)]);
        table.row(&[Cell::Text(Some("=HYPERLINK(\"http://h\")")), Cell::Real(Some(-2.5))]);
        let text = String::from_utf8(table.end()).unwrap();
        assert_eq!(text, "version,offset\n\"'=HYPERLINK(\"\"http://h\"\")\",-2.5\n");
    }
}
