//! Typed reading of a suite's tables: each value is asked for by key and type, and whatever is
//! wrong is reported at the place where it was written.

use std::path::PathBuf;
use std::time::Duration;

use super::document::{Document, Entry, Item, Mark, Node};
use super::error::{Problem, SuiteError};
use crate::ground::hints;
use crate::ground::units::{self, UnitError};

/// A table whose keys are all known.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    document: &'a Document,
    entries: &'a [Entry],
    /// Place of the table.
    pub(super) mark: Mark,
    what: &'static str,
}

impl<'a> Fields<'a> {
    /// Reads the whole file as a table with only known keys.
    pub(super) fn root(
        document: &'a Document,
        what: &'static str,
        keys: &[&str],
    ) -> Result<Self, SuiteError> {
        Value { document, node: &document.root, key: what }.fields(what, keys)
    }

    /// Returns the value at `key`; `None` if it is not there.
    pub(super) fn get(&self, key: &'a str) -> Option<Value<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(Value { document: self.document, node: &entry.node, key })
    }

    /// Reads the value at `key` by `read`; `None` if it is not there.
    pub(super) fn read<T>(
        &self,
        key: &'a str,
        read: impl FnOnce(Value<'a>) -> Result<T, SuiteError>,
    ) -> Result<Option<T>, SuiteError> {
        self.get(key).map(read).transpose()
    }

    /// Returns the value at `key`, which must be there.
    pub(super) fn need(&self, key: &'static str) -> Result<Value<'a>, SuiteError> {
        self.get(key).ok_or_else(|| {
            let table = self.what.to_owned();
            self.document.error(self.mark, Problem::Missing { key, table }, "")
        })
    }

    /// Iterates over every key with its value.
    pub(super) fn all(&self) -> impl Iterator<Item = Value<'a>> {
        let document = self.document;
        self.entries.iter().map(move |e| Value { document, node: &e.node, key: &e.key })
    }

    /// Returns the only key with its value: for tables that choose one of several kinds.
    pub(super) fn only(&self) -> Result<Value<'a>, SuiteError> {
        let mut all = self.all();
        match (all.next(), all.next()) {
            (Some(value), None) => Ok(value),
            _ => Err(self.conflict(format!("{} takes exactly one key", self.what), "")),
        }
    }

    /// Makes the error of settings of this table that do not go together.
    pub(super) fn conflict(&self, message: String, hint: &str) -> SuiteError {
        self.document.error(self.mark, Problem::Conflict(message), hint)
    }
}

/// A value and the key that it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    document: &'a Document,
    node: &'a Node,
    /// Its key, for messages.
    pub(super) key: &'a str,
}

impl<'a> Value<'a> {
    /// Returns the place at which it was written.
    pub(super) fn mark(&self) -> Mark {
        self.node.mark
    }

    /// Returns the value that was written.
    pub(super) fn item(&self) -> &'a Item {
        &self.node.item
    }

    /// Makes an error at this value.
    pub(super) fn error(&self, problem: Problem, hint: impl Into<String>) -> SuiteError {
        self.document.error(self.node.mark, problem, hint)
    }

    /// Returns the folder of the files that it names.
    pub(super) fn folder(&self) -> PathBuf {
        self.document.folder(self.node.mark)
    }

    /// Makes an error at the bytes `part` of this text.
    pub(super) fn error_within(
        &self,
        part: std::ops::Range<usize>,
        problem: Problem,
        hint: impl Into<String>,
    ) -> SuiteError {
        let mark = match &self.node.item {
            Item::Text(text) => self.document.within(self.node.mark, text, part),
            _ => self.node.mark,
        };
        self.document.error(mark, problem, hint)
    }

    /// Makes the error "must be …, not …" for a value of a wrong type.
    pub(super) fn wrong_type(&self, expected: &'static str) -> SuiteError {
        let (key, found) = (self.key.to_owned(), self.node.item.describe());
        self.error(Problem::WrongType { key, expected, found }, "")
    }

    /// Makes the error "must be …, not …" for a value of the right type.
    pub(super) fn out_of_range(&self, value: impl ToString, range: &str) -> SuiteError {
        let (key, range) = (self.key.to_owned(), range.to_owned());
        self.error(Problem::OutOfRange { key, value: value.to_string(), range }, "")
    }

    fn unit<T>(&self, read: Result<T, UnitError>) -> Result<T, SuiteError> {
        read.map_err(|error| self.error(Problem::Quantity { key: self.key.to_owned(), error }, ""))
    }

    /// Reads this value as a table that has only known keys.
    pub(super) fn fields(
        &self,
        what: &'static str,
        keys: &[&str],
    ) -> Result<Fields<'a>, SuiteError> {
        let fields = self.table(what)?;
        for entry in fields.entries {
            if !keys.contains(&entry.key.as_str()) {
                let (key, table) = (entry.key.clone(), what.to_owned());
                let hint = hints::hint(&key, keys);
                return Err(self.document.error(
                    entry.mark,
                    Problem::UnknownKey { key, table },
                    hint,
                ));
            }
        }
        Ok(fields)
    }

    /// Reads this value as a table with any keys.
    pub(super) fn table(&self, what: &'static str) -> Result<Fields<'a>, SuiteError> {
        let Item::Table(entries) = &self.node.item else { return Err(self.wrong_type("a table")) };
        Ok(Fields { document: self.document, entries, mark: self.node.mark, what })
    }

    /// Reads the elements of a list.
    pub(super) fn list(&self) -> Result<Vec<Value<'a>>, SuiteError> {
        let Item::List(nodes) = &self.node.item else { return Err(self.wrong_type("a list")) };
        let (document, key) = (self.document, self.key);
        Ok(nodes.iter().map(|node| Value { document, node, key }).collect())
    }

    /// Reads text.
    pub(super) fn text(&self) -> Result<&'a str, SuiteError> {
        match &self.node.item {
            Item::Text(text) => Ok(text),
            _ => Err(self.wrong_type("text")),
        }
    }

    /// Reads text without line breaks and control characters, for titles and names.
    pub(super) fn line(&self) -> Result<String, SuiteError> {
        let text = self.text()?.trim();
        if text.chars().any(char::is_control) {
            return Err(self.out_of_range(format!("{text:?}"), "one line of text"));
        }
        Ok(text.to_owned())
    }

    /// Reads a name: letters, digits, `-` and `_`.
    pub(super) fn name(&self) -> Result<String, SuiteError> {
        let text = self.text()?;
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if text.is_empty() || text.len() > 64 || !text.chars().all(fine) {
            let range = "a name of 1 to 64 letters, digits, - and _";
            return Err(self.out_of_range(format!("{text:?}"), range));
        }
        Ok(text.to_owned())
    }

    /// Reads `true` or `false`.
    pub(super) fn flag(&self) -> Result<bool, SuiteError> {
        match self.node.item {
            Item::Flag(flag) => Ok(flag),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    /// Reads one of several words.
    pub(super) fn word<T: Copy>(
        &self,
        what: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, SuiteError> {
        let word = self.text()?.trim();
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == word) {
            return Ok(*choice);
        }
        Err(self.unknown(word, what, &choices.iter().map(|(name, _)| *name).collect::<Vec<_>>()))
    }

    /// Makes the error that `word`, which stands in this value, is none of `choices`.
    pub(super) fn unknown(&self, word: &str, what: &str, choices: &[&str]) -> SuiteError {
        let hint = hints::hint(word, choices);
        self.error(Problem::UnknownWord { word: word.to_owned(), what: what.to_owned() }, hint)
    }

    /// Reads a whole number of any sign.
    pub(super) fn integer(&self) -> Result<i64, SuiteError> {
        match &self.node.item {
            Item::Integer(number) => Ok(*number),
            _ => Err(self.wrong_type("a whole number")),
        }
    }

    /// Reads a finite number.
    pub(super) fn number(&self) -> Result<f64, SuiteError> {
        match self.node.item {
            Item::Integer(number) => Ok(number as f64),
            Item::Float(number) if number.is_finite() => Ok(number),
            Item::Float(number) => Err(self.out_of_range(number, "a finite number")),
            _ => Err(self.wrong_type("a number")),
        }
    }

    /// Reads a count of at least `least` and at most `most`.
    pub(super) fn count(&self, least: u64, most: u64) -> Result<u64, SuiteError> {
        let count = match &self.node.item {
            Item::Text(text) => self.unit(units::parse_count(text))?,
            _ => self.whole("a count such as 10M")?,
        };
        self.within(count, least, most, units::format_count)
    }

    /// Reads a count of 32 bits, as [`Value::count`] does.
    pub(super) fn small_count(&self, least: u32, most: u32) -> Result<u32, SuiteError> {
        self.count(least.into(), most.into()).map(|count| count as u32)
    }

    /// Reads bytes, at most 1 GiB (a value lies in memory whole); a bare number is a number of bytes.
    pub(super) fn bytes(&self) -> Result<u32, SuiteError> {
        let bytes = match &self.node.item {
            Item::Text(text) => self.unit(units::parse_bytes(text))?,
            _ => self.whole("a number of bytes such as \"100B\"")?,
        };
        self.within(bytes, 1, 1 << 30, units::format_bytes).map(|bytes| bytes as u32)
    }

    /// Reads bytes a second.
    pub(super) fn bandwidth(&self) -> Result<u64, SuiteError> {
        let bytes = self.unit(units::parse_bandwidth(self.text()?))?;
        self.within(bytes, 1_000, 100_000_000_000, units::format_bytes)
    }

    /// Reads a duration, at most 10 years.
    pub(super) fn duration(&self) -> Result<Duration, SuiteError> {
        let Item::Text(text) = &self.node.item else {
            return Err(self.wrong_type("a duration such as \"30s\""));
        };
        let duration = self.unit(units::parse_duration(text))?;
        if duration > Duration::from_secs(3_650 * 86_400) {
            return Err(self.out_of_range(text, "at most 3650d"));
        }
        Ok(duration)
    }

    /// Reads a duration above 0.
    pub(super) fn some_time(&self) -> Result<Duration, SuiteError> {
        let duration = self.duration()?;
        if duration.is_zero() {
            return Err(self.out_of_range("0s", "longer than 0s"));
        }
        Ok(duration)
    }

    /// Reads requests a second, above 0 and at most 1G/s.
    pub(super) fn rate(&self) -> Result<f64, SuiteError> {
        let rate = match &self.node.item {
            Item::Text(text) => self.unit(units::parse_rate(text))?,
            Item::Integer(_) | Item::Float(_) => self.number()?,
            _ => return Err(self.wrong_type("a rate such as \"50k/s\"")),
        };
        if rate <= 0.0 || rate > 1e9 {
            return Err(self.out_of_range(units::format_rate(rate), "above 0 and at most 1G/s"));
        }
        Ok(rate)
    }

    /// Reads a share as a number from 0 to 1.
    pub(super) fn share(&self) -> Result<f64, SuiteError> {
        match &self.node.item {
            Item::Text(text) => self.unit(units::parse_share(text)),
            Item::Integer(_) | Item::Float(_) => match self.number()? {
                share if (0.0..=1.0).contains(&share) => Ok(share),
                share => Err(self.out_of_range(share, "from 0 to 1, or a text such as \"20%\"")),
            },
            _ => Err(self.wrong_type("a share such as \"20%\"")),
        }
    }

    fn whole(&self, expected: &'static str) -> Result<u64, SuiteError> {
        match &self.node.item {
            Item::Integer(number) => u64::try_from(*number)
                .map_err(|_| self.out_of_range(number, "a whole number from 0")),
            Item::Float(number) => Err(self.out_of_range(number, "a whole number from 0")),
            _ => Err(self.wrong_type(expected)),
        }
    }

    fn within(
        &self,
        amount: u64,
        least: u64,
        most: u64,
        print: fn(u64) -> String,
    ) -> Result<u64, SuiteError> {
        if (least..=most).contains(&amount) {
            return Ok(amount);
        }
        Err(self.out_of_range(print(amount), &format!("{} to {}", print(least), print(most))))
    }
}
