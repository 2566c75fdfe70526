//! Table of requirements against stores: on the terminal, as Markdown and as a page.

use super::{Column, RequirementStatus};
use crate::cell::Cell;
use crate::document::{Block, DataColumn, DataRow, DataTable, Document, Section, Sentence};
use crate::html::page::plain_page;
use crate::terminal::{self, Style};

/// Requirements down, stores across; then of each store its run and the reasons.
fn document(title: &str, columns: &[Column]) -> Document {
    let word = |standing: RequirementStatus| {
        Cell::Level(Some(standing.level()), standing.name().to_owned())
    };
    let rows = columns.first().map_or(&[][..], |column| &column.cells).iter().enumerate();
    let rows = rows.map(|(at, first)| {
        let standings = columns.iter().map(|column| word(column.cells[at].standing));
        DataRow::new([Cell::Text(first.requirement.clone())].into_iter().chain(standings))
    });
    let stores = columns.iter().map(|column| DataColumn::words(&column.store));
    let table = DataTable {
        columns: std::iter::once(DataColumn::words("Requirement")).chain(stores).collect(),
        rows: rows.collect(),
        ..DataTable::default()
    };
    let reasons = columns.iter().enumerate().map(|(at, column)| {
        let run = match column.result.as_str() {
            "" => Sentence::of("run that shows it", "none"),
            run => Sentence {
                text: Cell::Report(run.to_owned()),
                ..Sentence::of("run that shows it", "")
            },
        };
        let why = column.cells.iter().map(|cell| {
            let place = match cell.phase.as_str() {
                "" => String::new(),
                phase => format!(" [{phase}]"),
            };
            let why = format!("{}: {}{place}", cell.standing.name(), cell.why);
            Sentence::of(&cell.requirement, why)
        });
        Section::untitled(
            "reasons",
            Some(at),
            vec![Block::List(std::iter::once(run).chain(why).collect())],
        )
    });
    let table = Section::untitled("requirements", None, vec![Block::Table(table)]);
    Document {
        title: title.to_owned(),
        facts: vec![("".to_owned(), Cell::Text(title.to_owned()))],
        stores: columns.iter().map(|column| column.store.clone()).collect(),
        sections: std::iter::once(table).chain(reasons).collect(),
        ..Document::default()
    }
}

/// For the terminal.
#[must_use]
pub fn terminal(title: &str, columns: &[Column], style: Style) -> String {
    terminal::write(&document(title, columns), style)
}

/// Formats the same table as Markdown.
#[must_use]
pub fn markdown(title: &str, columns: &[Column]) -> String {
    crate::markdown::write(&document(title, columns))
}

/// The same as a page that works offline.
#[must_use]
pub fn html(title: &str, columns: &[Column]) -> String {
    let document = Document { facts: Vec::new(), ..document(title, columns) };
    plain_page(&document, "winnow")
}
