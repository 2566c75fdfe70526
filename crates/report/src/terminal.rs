//! A report on the terminal: sentences are wrapped and tables fit its width. What explains the figures without changing
//! what they say is told on demand, and is always in the report.

pub(crate) mod layout;

use crate::cell::Cell;
use crate::document::sections::of_result;
use crate::document::{
    Block, DataColumn, DataRow, DataTable, Detail, Document, LONGEST_CELL, LONGEST_SENTENCE,
    RowKind, Section, Sentence, Tone,
};
use crate::evidence;
use crate::result::{HistogramError, Level, RunResult};
use layout::{columns, printable, wrapped};

/// Style of the output on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colour and weight by ANSI escapes; only for a terminal that is not told otherwise.
    pub color: bool,
    /// Columns of the terminal; below 100 tables leave columns out.
    pub width: usize,
    /// It goes to a file or to another program: tables are whole, however wide they are.
    pub whole: bool,
    /// Remarks, what limited each phase, when it settled and what servers did beside are told, too.
    pub verbose: bool,
}

/// Columns that the whole table wants.
const WIDE: usize = 100;

impl Style {
    /// No colour, 120 columns: for files and pipes.
    pub const PLAIN: Style = Style { color: false, width: 120, whole: true, verbose: false };

    /// Columns that a table may take.
    pub(crate) fn table_width(self) -> usize {
        if self.whole { usize::MAX } else { self.width }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Returns how much is shown.
    fn detail(self) -> Detail {
        if self.verbose { Detail::Demand } else { Detail::Always }
    }

    /// Lines in the colour of what they say, where that is not good.
    fn toned(self, tone: Tone, lines: &str) -> String {
        match tone {
            Tone::Plain | Tone::Good => lines.to_owned(),
            Tone::Doubtful => self.paint("33", lines.trim_end()) + "\n",
            Tone::Bad => self.paint("1;31", lines.trim_end()) + "\n",
        }
    }

    fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// A word in the colour of what it says: good, doubtful or bad, as levels of a verdict are.
    pub(crate) fn rated(self, level: Level, word: &str) -> String {
        let code = match level {
            Level::Valid => "1;32",
            Level::Suspect => "1;33",
            Level::Invalid => "1;31",
        };
        self.paint(code, word)
    }
}

/// The whole result as text.
///
/// # Errors
/// [`HistogramError`] if a histogram of the result cannot be decoded.
pub fn render(result: &RunResult, style: Style) -> Result<String, HistogramError> {
    Ok(write(&of_result(result)?, style))
}

/// Renders the part of [`render`] that is about one store.
///
/// # Errors
/// As [`render`].
pub fn render_store(
    result: &RunResult,
    store: usize,
    style: Style,
) -> Result<String, HistogramError> {
    Ok(write(&of_result(result)?.of_store(store), style))
}

/// Writes a report.
pub(crate) fn write(document: &Document, style: Style) -> String {
    let document = document.at(style.detail());
    let mut text = String::new();
    if !document.facts.is_empty() {
        text = wrapped(&facts_text(&document.facts, " "), "", "  ", style.width);
    }
    for stamp in &document.stamps {
        text.push_str(&style.toned(Tone::Doubtful, &wrapped(&whole(stamp), "", "  ", style.width)));
    }
    let mut store = None;
    for section in &document.sections {
        if section.store != store {
            store = section.store;
            let heading =
                store.map(|at| style.bold(&printable(&document.stores[at], LONGEST_CELL)));
            text.extend(heading.map(|heading| format!("\n{heading}\n")));
        }
        text.push_str(&write_section(section, style));
    }
    text.trim_start_matches('\n').to_owned()
}

fn write_section(section: &Section, style: Style) -> String {
    let mut text = match section.title {
        "" => String::new(),
        title => format!("\n{}\n", style.bold(title)),
    };
    for block in &section.blocks {
        text.push_str(&match block {
            Block::Paragraph(sentence) => write_sentence(sentence, "", style),
            Block::List(sentences) => {
                sentences.iter().map(|sentence| write_sentence(sentence, "  ", style)).collect()
            }
            Block::Table(table) => write_table(table, style),
            Block::Facts(facts) => wrapped(&facts_text(facts, ": "), "", "  ", style.width),
            Block::Code(code) => format!("{}\n", whole(code)),
            Block::Folded(..) | Block::Chart { .. } => String::new(),
        });
    }
    text
}

/// A sentence with what stands behind it, which is farther to the right.
fn write_sentence(sentence: &Sentence, margin: &str, style: Style) -> String {
    let dash = if margin.is_empty() { "" } else { "- " };
    let lead = match &sentence.lead {
        Cell::Blank => format!("{margin}{dash}"),
        lead => format!("{margin}{}: ", painted(lead, style)),
    };
    let text = match &sentence.text {
        Cell::Text(text) => whole(text),
        cell => painted(cell, style),
    };
    let next = format!("{margin}  ");
    let told = style.toned(sentence.tone, &wrapped(&text, &lead, &next, style.width));
    let under = sentence.under.iter().map(|under| write_sentence(under, &next, style));
    std::iter::once(told).chain(under).collect()
}

/// A status in capitals, with its colour; anything else as it is.
fn painted(cell: &Cell, style: Style) -> String {
    let level = match cell {
        Cell::Status(status) => evidence::level(*status),
        Cell::Level(level, _) => *level,
        cell => return printable(&cell.text(), LONGEST_CELL),
    };
    let word = match (cell, level) {
        // Nobody has judged yet.
        (Cell::Level(..), None) => printable(&cell.text(), LONGEST_CELL),
        _ => cell.text().to_uppercase(),
    };
    level.map_or(word.clone(), |level| style.rated(level, &word))
}

/// Names and values in a line; `between` stands between a name and its value.
fn facts_text(facts: &[(String, Cell)], between: &str) -> String {
    let fact = |(name, value): &(String, Cell)| match name.as_str() {
        "" => whole(&value.text()),
        name => format!("{}{between}{}", whole(name), whole(&value.text())),
    };
    facts.iter().map(fact).collect::<Vec<_>>().join(" · ")
}

fn whole(text: &str) -> String {
    printable(text, LONGEST_SENTENCE)
}

fn write_table(table: &DataTable, style: Style) -> String {
    let mut text = match table.caption.as_str() {
        "" => String::new(),
        caption => format!("{}\n", style.bold(&printable(caption, LONGEST_CELL))),
    };
    let has_room = style.width >= WIDE;
    let shown = |column: &&(usize, &DataColumn)| has_room || !column.1.is_spare;
    let shown: Vec<(usize, &DataColumn)> =
        table.columns.iter().enumerate().filter(|column| shown(&column)).collect();
    let heading = shown.iter().map(|(_, column)| printable(&column.label, LONGEST_CELL)).collect();
    let row = |row: &DataRow| {
        shown.iter().map(|(at, _)| printable(&row.cells[*at].text(), LONGEST_CELL)).collect()
    };
    let cells: Vec<Vec<String>> =
        std::iter::once(heading).chain(table.rows.iter().map(row)).collect();
    let words: Vec<bool> = shown.iter().map(|(_, column)| column.has_words).collect();
    let mut lines = columns(&cells, &words, style.table_width(), table.names_above).into_iter();
    text.extend(lines.next().map(|line| style.bold(line.trim_end()) + "\n"));
    for (line, row) in lines.zip(&table.rows) {
        match row.kind {
            RowKind::Whole | RowKind::Preparation => text.push_str(&line),
            RowKind::Part | RowKind::Published => text.push_str(&style.paint("2", &line)),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
