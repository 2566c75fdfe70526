//! Rows of comma-separated values, for spreadsheets and terminals alike: whatever a server or a user named
//! something, no text in them moves a cursor, and a row is a line.

use kvdyno_core::shown::plain;
use serde::Serialize;

/// The line with the names of a row's columns.
pub(crate) fn header<R: Serialize + Default>() -> Vec<u8> {
    let both = csv_text(&R::default(), true);
    let end = both.find('\n').map_or(both.len(), |at| at + 1);
    both.as_bytes()[..end].to_vec()
}

/// Adds a row.
pub(crate) fn push(to: &mut Vec<u8>, row: &impl Serialize) {
    let text = csv_text(row, false);
    to.extend_from_slice(plain(text.trim_end_matches('\n')).as_bytes());
    to.push(b'\n');
}

fn csv_text(row: &impl Serialize, headers: bool) -> String {
    let mut writer = csv::WriterBuilder::new().has_headers(headers).from_writer(Vec::new());
    writer.serialize(row).expect("writing to memory succeeds");
    let bytes = writer.into_inner().expect("writing to memory succeeds");
    String::from_utf8(bytes).expect("rows are made of text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::resources_csv::ResourceRow;
    use crate::files::timeline_csv::TimelineRow;

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m,\"b\"\r\nc\u{202e}\u{7}";
    const HARMLESS: &str = "a\\u001b[2J\\u009b31m,\"b\"  c\\u202e\\u0007";

    fn written<R: Serialize + Default>(row: &R) -> String {
        let mut bytes = header::<R>();
        push(&mut bytes, row);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            !text.chars().any(|c| c != '\n' && kvdyno_core::shown::is_unprintable(c)),
            "{text}"
        );
        text
    }

    #[test]
    fn no_text_of_any_column_moves_a_cursor() {
        let text = || HOSTILE.to_owned();
        let row = TimelineRow {
            store: text(),
            phase_name: text(),
            kind: text(),
            ..TimelineRow::default()
        };
        let written_row = written(&row);
        let mut reader = csv::Reader::from_reader(written_row.as_bytes());
        let read: TimelineRow = reader.deserialize().next().unwrap().unwrap();
        for told in [read.store, read.phase_name, read.kind] {
            assert_eq!(told, HARMLESS);
        }
        let row = ResourceRow {
            store: text(),
            phase_name: text(),
            process: text(),
            ..ResourceRow::default()
        };
        let written_row = written(&row);
        let mut reader = csv::Reader::from_reader(written_row.as_bytes());
        let read: ResourceRow = reader.deserialize().next().unwrap().unwrap();
        for told in [read.store, read.phase_name, read.process] {
            assert_eq!(told, HARMLESS);
        }
    }
}
