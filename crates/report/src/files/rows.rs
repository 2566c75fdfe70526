//! Rows of comma-separated values, for spreadsheets and terminals alike: no name that a server or a user has given moves
//! a cursor, and a row is always one line.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::str::FromStr;

use csv::{Reader, ReaderBuilder, StringRecord};
use kvdyno_core::redact::plain;
use serde::Serialize;

/// Returns the line with the names of a row's columns.
pub(crate) fn header<R: Serialize + Default>() -> Vec<u8> {
    let both = csv_text(&R::default(), true);
    let end = both.find('\n').map_or(both.len(), |at| at + 1);
    both.as_bytes()[..end].to_vec()
}

/// Returns the text of a cell so that no spreadsheet takes it for a formula: text that begins like one, and is no number,
/// gets an apostrophe before it.
pub(crate) fn no_formula(text: &str) -> Cow<'_, str> {
    match text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err() {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// Adds a row.
pub(crate) fn push(to: &mut Vec<u8>, row: &impl Serialize) {
    let text = without_formulas(csv_text(row, false));
    to.extend_from_slice(plain(text.trim_end_matches('\n')).as_bytes());
    to.push(b'\n');
}

/// Reader of some columns of a file, by their names: in files of millions of rows with dozens of columns it parses only
/// these.
pub(crate) struct ColumnReader<const N: usize> {
    reader: Reader<File>,
    record: StringRecord,
    places: [Option<usize>; N],
}

impl<const N: usize> ColumnReader<N> {
    /// Opens a file; `None` if there is none.
    pub(crate) fn open(path: &Path, names: [&str; N]) -> Option<ColumnReader<N>> {
        let mut reader = ReaderBuilder::new().flexible(true).from_path(path).ok()?;
        let header = reader.headers().ok()?;
        let places = names.map(|name| header.iter().position(|known| known == name));
        Some(ColumnReader { reader, record: StringRecord::new(), places })
    }

    /// Returns the next row; broken rows are passed over.
    pub(crate) fn next(&mut self) -> Option<Cells<'_, N>> {
        loop {
            match self.reader.read_record(&mut self.record) {
                Ok(true) => break,
                Ok(false) => return None,
                Err(error) if error.is_io_error() => return None,
                Err(_) => {}
            }
        }
        let record = &self.record;
        let cell = |place: Option<usize>| place.and_then(|at| record.get(at)).unwrap_or("");
        Some(Cells(self.places.map(cell)))
    }
}

/// Cells of a row; empty where the file has no such column.
pub(crate) struct Cells<'a, const N: usize>([&'a str; N]);

impl<'a, const N: usize> Cells<'a, N> {
    /// Returns the text of a cell.
    pub(crate) fn text(&self, at: usize) -> &'a str {
        self.0[at]
    }

    /// Parses a cell that must be present; `None` if it is missing or malformed.
    pub(crate) fn value<T: FromStr>(&self, at: usize) -> Option<T> {
        self.0[at].parse().ok()
    }

    /// Parses a count that may be missing; 0 then.
    pub(crate) fn count(&self, at: usize) -> u64 {
        self.value(at).unwrap_or(0)
    }
}

/// Rewrites a row so that no spreadsheet takes its cells for formulas.
fn without_formulas(text: String) -> String {
    let mut reader = ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let Some(Ok(cells)) = reader.records().next() else { return text };
    let changed = |cell| matches!(no_formula(cell), Cow::Owned(_));
    if !cells.iter().any(changed) {
        return text;
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let cells = cells.iter().map(|cell| no_formula(cell).into_owned());
    writer.write_record(cells).expect("writing to memory succeeds");
    let bytes = writer.into_inner().expect("writing to memory succeeds");
    String::from_utf8(bytes).expect("rows are made of text")
}

fn csv_text(row: &impl Serialize, headers: bool) -> String {
    let mut writer = csv::WriterBuilder::new().has_headers(headers).from_writer(Vec::new());
    writer.serialize(row).expect("writing to memory succeeds");
    let bytes = writer.into_inner().expect("writing to memory succeeds");
    String::from_utf8(bytes).expect("rows are made of text")
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::files::resources_csv::ResourceRow;
    use crate::files::timeline_csv::TimelineRow;

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m,\"b\"\r\nc\u{202e}\u{7}";
    const HARMLESS: &str = "a\\u001b[2J\\u009b31m,\"b\"  c\\u202e\\u0007";

    /// Reads the texts of a hostile row back from its line.
    fn read_back<R: Serialize + DeserializeOwned + Default>(
        hostile: &R,
        texts: impl Fn(R) -> [String; 3],
    ) -> [String; 3] {
        let mut bytes = header::<R>();
        push(&mut bytes, hostile);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            !text.chars().any(|c| c != '\n' && kvdyno_core::redact::is_unprintable(c)),
            "{text}"
        );
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        texts(reader.deserialize().next().unwrap().unwrap())
    }

    #[test]
    fn no_cell_is_a_formula() {
        for formula in ["=1+1", "+cmd|'/c calc'!A0", "-2+3", "@SUM(1,2)"] {
            assert_eq!(no_formula(formula), format!("'{formula}"));
            let [store, phase_name, kind] = [formula; 3].map(str::to_owned);
            let hostile = TimelineRow { store, phase_name, kind, ..TimelineRow::default() };
            let read = read_back(&hostile, |row| [row.store, row.phase_name, row.kind]);
            assert_eq!(read, [format!("'{formula}"), format!("'{formula}"), format!("'{formula}")]);
        }
        for harmless in ["-1.5", "+3", "7.4.9", "", "a=b", "-1e9"] {
            assert_eq!(no_formula(harmless), harmless);
        }
    }

    #[test]
    fn no_text_of_any_column_moves_a_cursor() {
        let [store, phase_name, kind] = [HOSTILE; 3].map(str::to_owned);
        let hostile = TimelineRow { store, phase_name, kind, ..TimelineRow::default() };
        let read = read_back(&hostile, |row| [row.store, row.phase_name, row.kind]);
        assert_eq!(read, [HARMLESS; 3]);
        let [store, phase_name, process] = [HOSTILE; 3].map(str::to_owned);
        let hostile = ResourceRow { store, phase_name, process, ..ResourceRow::default() };
        let read = read_back(&hostile, |row| [row.store, row.phase_name, row.process]);
        assert_eq!(read, [HARMLESS; 3]);
    }
}
