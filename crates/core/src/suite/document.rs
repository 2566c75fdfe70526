//! A suite's TOML with the place of every key and value, so that an error found at any stage can
//! show its line; and edits of it by command-line options, which keep their own place.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, Problem, SuiteError};

/// Place at which a key or a value was written: bytes `start..end` of source number `source`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    source: usize,
    start: usize,
    end: usize,
}

/// A value and the place at which it was written.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) mark: Mark,
    pub(super) item: Item,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// A date, which no key takes.
    Date,
}

impl Item {
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Item::Text(_) => "text",
            Item::Integer(_) | Item::Float(_) => "a number",
            Item::Flag(_) => "true or false",
            Item::List(_) => "a list",
            Item::Table(_) => "a table",
            Item::Date => "a date",
        }
    }
}

/// A key of a table with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) mark: Mark,
    pub(super) node: Node,
}

#[derive(Clone, Debug)]
enum Source {
    File { name: String, text: String },
    Argument(String),
}

/// A parsed suite file, with the changes of the command line.
#[derive(Clone, Debug)]
pub(super) struct Document {
    sources: Vec<Source>,
    pub(super) root: Node,
}

impl Document {
    pub(super) fn parse(name: &str, text: &str) -> Result<Document, SuiteError> {
        let source = Source::File { name: name.to_owned(), text: text.to_owned() };
        let empty = Node { mark: Mark::default(), item: Item::Table(Vec::new()) };
        let mut document = Document { sources: vec![source], root: empty };
        let (table, mistakes) = DeTable::parse_recoverable(text);
        // One missing quote makes many mistakes: the first is the one that was made.
        let first = mistakes.iter().min_by_key(|error| error.span().map(|span| span.start));
        if let Some(error) = first {
            let span = error.span().unwrap_or(0..0);
            let mark = Mark { source: 0, start: span.start, end: span.end };
            let message = error.message().trim().replace('\n', ", ");
            return Err(document.error(mark, Problem::Syntax(message), ""));
        }
        document.root = Node { mark: Mark::default(), item: table_item(table.get_ref(), 0) };
        Ok(document)
    }

    /// Makes an error at `mark`.
    pub(super) fn error(
        &self,
        mark: Mark,
        problem: Problem,
        hint: impl Into<String>,
    ) -> SuiteError {
        let place = match &self.sources[mark.source] {
            Source::Argument(text) => Place::Argument(text.clone()),
            Source::File { name, text } => line_of(name, text, mark.start..mark.end),
        };
        SuiteError::new(place, problem, hint)
    }

    /// Returns the folder of the files that are named at `mark`: that of the suite's file, or the present one.
    pub(super) fn folder(&self, mark: Mark) -> PathBuf {
        match &self.sources[mark.source] {
            Source::File { name, .. } => Path::new(name).parent().map(PathBuf::from),
            Source::Argument(_) => None,
        }
        .unwrap_or_default()
    }

    /// Returns the place of the bytes `part` of the text `text` that stands at `mark`: all of the text where it is
    /// written with escapes.
    pub(super) fn within(&self, mark: Mark, text: &str, part: Range<usize>) -> Mark {
        let Source::File { text: file, .. } = &self.sources[mark.source] else { return mark };
        let start = mark.start + 1;
        match file.get(start..start + text.len()) {
            Some(written) if written == text => {
                Mark { start: start + part.start, end: start + part.end, ..mark }
            }
            _ => mark,
        }
    }

    /// Sets the value at `path` below the table at `at` (indices of entries and list elements, from the root) to what
    /// `value` parses to; `option` is the option as typed, for messages.
    pub(super) fn set(
        &mut self,
        option: String,
        at: &[usize],
        path: &[&str],
        value: &str,
    ) -> Result<(), SuiteError> {
        let source = self.sources.len();
        self.sources.push(Source::Argument(option));
        let mark = Mark { source, start: 0, end: 0 };
        let mut new = Node { mark, item: argument(value, source) };
        let mut table = &mut self.root;
        for index in at {
            table = match &mut table.item {
                Item::Table(entries) => &mut entries[*index].node,
                Item::List(nodes) => &mut nodes[*index],
                _ => unreachable!("paths are made by looking into tables and lists"),
            };
        }
        for (depth, key) in path.iter().enumerate() {
            let last = depth + 1 == path.len();
            widen(table, path, depth);
            let found = table.item.describe();
            let Item::Table(entries) = &mut table.item else {
                let key = path[..depth].join(".");
                let problem = Problem::WrongType { key, expected: "a table here", found };
                return Err(self.error(mark, problem, ""));
            };
            let index = entries.iter().position(|e| e.key == *key).unwrap_or_else(|| {
                let node = Node { mark, item: Item::Table(Vec::new()) };
                entries.push(Entry { key: (*key).to_owned(), mark, node });
                entries.len() - 1
            });
            table = &mut entries[index].node;
            if last {
                std::mem::swap(table, &mut new);
            }
        }
        Ok(())
    }
}

impl Document {
    /// Returns true if the table at `at` has `key`.
    pub(super) fn has(&self, at: &[usize], key: &str) -> bool {
        self.value(at, key).is_some()
    }

    /// Returns true if the table at `at` has `key`, with a table as its value.
    pub(super) fn has_table(&self, at: &[usize], key: &str) -> bool {
        matches!(self.value(at, key), Some(Item::Table(_)))
    }

    fn value(&self, at: &[usize], key: &str) -> Option<&Item> {
        let mut node = &self.root;
        for index in at {
            node = match &node.item {
                Item::Table(entries) => &entries[*index].node,
                Item::List(nodes) => &nodes[*index],
                _ => return None,
            };
        }
        let Item::Table(entries) = &node.item else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node.item)
    }

    /// Removes the list element at `at`.
    pub(super) fn remove(&mut self, at: &[usize]) {
        let mut node = &mut self.root;
        for (depth, index) in at.iter().enumerate() {
            node = match &mut node.item {
                Item::Table(entries) => &mut entries[*index].node,
                Item::List(nodes) if depth + 1 == at.len() => {
                    nodes.remove(*index);
                    return;
                }
                Item::List(nodes) => &mut nodes[*index],
                _ => return,
            };
        }
    }
}

/// Spells out `value = "100B"`, which is short for `value = { size = "100B" }`, when a part of it is set.
fn widen(node: &mut Node, path: &[&str], depth: usize) {
    if depth > 0 && path[depth - 1] == "value" && !matches!(node.item, Item::Table(_)) {
        let mark = node.mark;
        let size = std::mem::replace(&mut node.item, Item::Table(Vec::new()));
        let node_of_size = Node { mark, item: size };
        let entry = Entry { key: "size".to_owned(), mark, node: node_of_size };
        node.item = Item::Table(vec![entry]);
    }
}

/// Parses what was typed on the command line: as TOML if it is, else as a bare word such as `30s`.
fn argument(value: &str, source: usize) -> Item {
    let parsed = DeValue::parse(value.trim());
    let item = parsed.ok().map(|value| item(value.get_ref(), source));
    let mut item = item.unwrap_or_else(|| Item::Text(value.trim().to_owned()));
    if matches!(item, Item::Date) {
        item = Item::Text(value.trim().to_owned());
    }
    item
}

fn line_of(name: &str, text: &str, span: Range<usize>) -> Place {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let mut stop = span.end.clamp(start, end);
    while !text.is_char_boundary(stop) {
        stop -= 1;
    }
    Place::Line {
        file: name.to_owned(),
        line: text[..begin].matches('\n').count() + 1,
        column: text[begin..start].chars().count() + 1,
        text: text[begin..end].trim_end().to_owned(),
        width: text[start..stop.max(start)].chars().count().max(1),
    }
}

fn node(value: &Spanned<DeValue<'_>>, source: usize) -> Node {
    let span = value.span();
    let mark = Mark { source, start: span.start, end: span.end };
    Node { mark, item: item(value.get_ref(), source) }
}

fn item(value: &DeValue<'_>, source: usize) -> Item {
    match value {
        DeValue::String(text) => Item::Text(text.to_string()),
        DeValue::Integer(number) => {
            match i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
                Ok(number) => Item::Integer(number),
                // Beyond 64 bits: kept as the nearest number, which every range check refuses.
                Err(_) => Item::Float(number.as_str().parse().unwrap_or(f64::MAX)),
            }
        }
        DeValue::Float(number) => {
            Item::Float(number.as_str().replace('_', "").parse().unwrap_or(f64::NAN))
        }
        DeValue::Boolean(flag) => Item::Flag(*flag),
        DeValue::Datetime(_) => Item::Date,
        DeValue::Array(list) => Item::List(list.iter().map(|v| node(v, source)).collect()),
        DeValue::Table(table) => table_item(table, source),
    }
}

/// Returns a table whose entries are in the order in which they were written.
fn table_item(table: &DeTable<'_>, source: usize) -> Item {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let span = key.span();
        let mark = Mark { source, start: span.start, end: span.end };
        let key = key.get_ref().to_string();
        entries.push(Entry { key, mark, node: node(value, source) });
    }
    entries.sort_by_key(|entry| entry.mark.start);
    Item::Table(entries)
}
