//! A report before an output makes text of it: sections of sentences, tables and charts, built once ([`sections`]) and
//! written by the terminal, the page and Markdown. All text in it is as it came; what is escaped, cut or wrapped is the
//! writers' affair, and so is how a figure looks.

mod agents;
mod anomalies;
mod claims;
mod course;
mod differences;
mod disclosure;
mod drivers;
mod errors;
mod faults;
mod figures;
mod findings;
mod heading;
mod ranking;
mod resources;
pub(crate) mod sections;
pub(crate) mod subject;
mod verdict;

#[cfg(test)]
mod tests;

use crate::cell::Cell;

pub(crate) use figures::columns;

/// Most characters of a sentence that an output shows: a reason that is cut tells nothing.
pub(crate) const LONGEST_SENTENCE: usize = 2_000;
/// Most characters of a cell of a table that an output shows.
pub(crate) const LONGEST_CELL: usize = 400;

/// Level of detail of an output, the least first: each output shows all that those before it show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// Every output.
    Always,
    /// A terminal on demand.
    Demand,
    /// Files: Markdown and pages.
    Written,
    /// Pages.
    Page,
}

/// Judgement that a sentence passes on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing good or bad.
    Plain,
    /// It was as it should be.
    Good,
    /// It is in doubt.
    Doubtful,
    /// It was not as it should be.
    Bad,
}

/// Place of a section on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the card of its store, at the top.
    Card,
    /// Below the cards.
    Summary,
    /// Below the summary.
    Figures,
    /// Among the charts.
    Charts,
    /// Below the charts.
    Tables,
}

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Document {
    /// Name of what it is about.
    pub title: String,
    /// The same in a line; may be empty.
    pub subtitle: String,
    /// Facts that it begins with; some have no name.
    pub facts: Vec<(String, Cell)>,
    /// Warnings that stand before everything else.
    pub stamps: Vec<String>,
    /// Each store, with its version.
    pub stores: Vec<String>,
    /// Sections: of the run, then those of one store after the other, then of the run again.
    pub sections: Vec<Section>,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section {
    /// Name that no other kind of section has.
    pub id: &'static str,
    /// Heading; may be empty.
    pub title: &'static str,
    /// Place on a page.
    pub place: Place,
    /// Least detail of the outputs that show it.
    pub detail: Detail,
    /// Order of its kind among all kinds: those of an output that puts the stores together are in it.
    pub rank: usize,
    /// Index of its store; `None` of what is about the run.
    pub store: Option<usize>,
    /// Content, in order.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Block {
    /// A sentence that stands alone.
    Paragraph(Sentence),
    /// Sentences of one kind.
    List(Vec<Sentence>),
    /// Rows and columns.
    Table(DataTable),
    /// Names and values.
    Facts(Vec<(String, Cell)>),
    /// Text for machines.
    Code(String),
    /// Blocks that a reader opens by their name.
    Folded(String, Vec<Block>),
    /// Charts that the page's script draws; empty ones are hidden until they have something to show.
    Chart {
        /// Name of the charts.
        id: &'static str,
        /// There is nothing to draw yet.
        is_empty: bool,
    },
}

/// A sentence without a stop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sentence {
    /// Phase, status or name that it is about; [`Cell::Blank`] if the text says so itself.
    pub lead: Cell,
    /// The statement.
    pub text: Cell,
    /// Judgement that it passes.
    pub tone: Tone,
    /// Least detail of the outputs that show it.
    pub detail: Detail,
    /// Sentences that give its reasons.
    pub under: Vec<Sentence>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DataTable {
    /// Heading; may be empty.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<DataColumn>,
    /// Its rows, each with a cell for each column.
    pub rows: Vec<DataRow>,
    /// True if the first cell stands above its row, whole, where there is no room for all columns.
    pub names_above: bool,
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DataColumn {
    /// Heading.
    pub label: String,
    /// Explanation for hints; may be empty.
    pub meaning: &'static str,
    /// It holds words, not figures.
    pub has_words: bool,
    /// Left out where there is no room for all columns.
    pub is_spare: bool,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DataRow {
    /// Subject of the row.
    pub kind: RowKind,
    /// Least detail of the outputs that show it.
    pub detail: Detail,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// Subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// Something by itself.
    Whole,
    /// A part of what stands above it.
    Part,
    /// Preparations.
    Preparation,
    /// Figures that somebody published.
    Published,
}

impl Document {
    /// Returns what an output of this detail shows.
    pub fn at(&self, detail: Detail) -> Document {
        let shown = self.sections.iter().filter(|section| section.detail <= detail);
        let sections = shown.map(|section| Section {
            blocks: section.blocks.iter().filter_map(|block| block.at(detail)).collect(),
            ..section.clone()
        });
        let sections = sections.filter(|section| !section.blocks.is_empty()).collect();
        Document { sections, ..self.clone() }
    }

    /// Returns the sections of one store.
    pub fn of_store(self, store: usize) -> Document {
        let sections = self.sections.into_iter().filter(|section| section.store == Some(store));
        Document { sections: sections.collect(), facts: Vec::new(), ..self }
    }
}

impl Section {
    /// Returns a section without a title that every output shows.
    pub fn untitled(id: &'static str, store: Option<usize>, blocks: Vec<Block>) -> Section {
        let (title, place, detail, rank) = ("", Place::Figures, Detail::Always, 0);
        Section { id, title, place, detail, rank, store, blocks }
    }
}

impl Block {
    /// Returns a paragraph without a lead.
    pub fn sentence(text: impl Into<String>) -> Block {
        Block::Paragraph(Sentence::new(text))
    }

    /// Returns a list; nothing if nobody says anything.
    pub fn list(sentences: impl IntoIterator<Item = Sentence>) -> Option<Block> {
        let sentences: Vec<Sentence> = sentences.into_iter().collect();
        (!sentences.is_empty()).then_some(Block::List(sentences))
    }

    fn at(&self, detail: Detail) -> Option<Block> {
        let shown = |sentences: &[Sentence]| {
            sentences.iter().filter(|one| one.detail <= detail).cloned().collect::<Vec<_>>()
        };
        Some(match self {
            Block::Paragraph(sentence) => {
                Block::Paragraph(shown(std::slice::from_ref(sentence)).pop()?)
            }
            Block::List(sentences) => return Block::list(shown(sentences)),
            Block::Table(table) => {
                let rows = table.rows.iter().filter(|row| row.detail <= detail);
                let rows: Vec<DataRow> = rows.cloned().collect();
                (!rows.is_empty()).then(|| Block::Table(DataTable { rows, ..table.clone() }))?
            }
            block => block.clone(),
        })
    }
}

impl Sentence {
    /// Returns a plain sentence that every output shows.
    pub fn new(text: impl Into<String>) -> Sentence {
        let (lead, text) = (Cell::Blank, Cell::Text(text.into()));
        Sentence { lead, text, tone: Tone::Plain, detail: Detail::Always, under: Vec::new() }
    }

    /// Returns the same about a phase, or whatever else has a name.
    pub fn of(lead: impl Into<String>, text: impl Into<String>) -> Sentence {
        Sentence { lead: Cell::Text(lead.into()), ..Sentence::new(text) }
    }

    /// Returns the same with what it means.
    pub fn toned(self, tone: Tone) -> Sentence {
        Sentence { tone, ..self }
    }

    /// Returns the same for outputs of this detail.
    pub fn shown(self, detail: Detail) -> Sentence {
        Sentence { detail, ..self }
    }

    /// Returns the same with what stands behind it.
    pub fn over(self, under: impl IntoIterator<Item = Sentence>) -> Sentence {
        Sentence { under: under.into_iter().collect(), ..self }
    }
}

impl DataTable {
    /// Returns a table without the columns that have a value in no row; nothing if it has no row.
    pub fn block(mut self) -> Option<Block> {
        let is_empty = |cell: &Cell| matches!(cell, Cell::Nothing | Cell::Blank);
        for column in (1..self.columns.len()).rev() {
            if self.rows.iter().all(|row| is_empty(&row.cells[column])) {
                self.columns.remove(column);
                self.rows.iter_mut().for_each(|row| drop(row.cells.remove(column)));
            }
        }
        (!self.rows.is_empty()).then_some(Block::Table(self))
    }
}

impl DataColumn {
    /// Returns a column of figures.
    pub fn figures(label: impl Into<String>) -> DataColumn {
        DataColumn { label: label.into(), ..DataColumn::default() }
    }

    /// Returns a column of words.
    pub fn words(label: impl Into<String>) -> DataColumn {
        DataColumn { has_words: true, ..DataColumn::figures(label) }
    }
}

impl DataRow {
    /// Returns a row of its own that every output shows.
    pub fn new(cells: impl IntoIterator<Item = Cell>) -> DataRow {
        let cells = cells.into_iter().collect();
        DataRow { kind: RowKind::Whole, detail: Detail::Always, cells }
    }
}

/// The begin and the end of a text that has no room: the end of a log says why a server ended.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    let length = text.chars().count();
    if length <= longest {
        return text.to_owned();
    }
    let (head, tail) = (longest / 2, longest - longest / 2);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}
