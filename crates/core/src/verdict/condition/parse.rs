//! Parser of conditions: one pass over the text. It tells of every mistake its place and what to
//! write instead.

use crate::ground::hints::hint;
use crate::ground::units;
use crate::workload::Kind;

use super::figure::{ConditionFigure, Dimension, FIGURES};
use super::{Amount, Condition, Operations, Operator, Subject};

/// Longest text that is read, bytes.
const LONGEST: usize = 10_000;

/// Error of a text that is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ConditionError {
    /// Description of the mistake.
    pub problem: String,
    /// Advice on what to write instead; may be empty.
    pub hint: String,
    /// Index of the first byte of the mistake in the text.
    pub start: usize,
    /// Index of the byte after its last one.
    pub end: usize,
}

impl ConditionError {
    pub(super) fn more_than_one(text: &str) -> ConditionError {
        let problem = "write one condition here".to_owned();
        let hint = "give the others in options of their own".to_owned();
        ConditionError { problem, hint, start: 0, end: text.len() }
    }

    /// Returns problem and advice in one line.
    #[must_use]
    pub fn line(&self) -> String {
        match self.hint.as_str() {
            "" => self.problem.clone(),
            hint => format!("{}; {hint}", self.problem),
        }
    }
}

/// The operators, longer ones first: `<=` begins with `<`.
const OPERATORS: [(&str, Operator); 7] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::More),
    ("=", Operator::Equal),
];

pub(super) fn conditions(text: &str) -> Result<Vec<Condition>, ConditionError> {
    let mut reader = Reader { text, at: 0 };
    if text.len() > LONGEST {
        return Err(reader.error(0..text.len(), "it is longer than 10,000 bytes".to_owned(), ""));
    }
    let mut all = Vec::new();
    loop {
        all.push(reader.condition()?);
        if reader.is_at_end() {
            return Ok(all);
        }
        reader.at += ",".len();
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn error(
        &self,
        span: std::ops::Range<usize>,
        problem: String,
        hint: impl Into<String>,
    ) -> ConditionError {
        ConditionError { problem, hint: hint.into(), start: span.start, end: span.end }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.rest().is_empty()
    }

    /// Reads the longest run of characters that a word may have, `more` among them, and returns it
    /// with its place.
    fn word(&mut self, more: &str) -> (&'a str, usize) {
        self.skip_space();
        let rest = self.rest();
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || more.contains(c);
        let end = rest.find(|c| !fine(c)).unwrap_or(rest.len());
        let start = self.at;
        self.at += end;
        (&rest[..end], start)
    }

    /// Goes past `text` if it is next.
    fn takes(&mut self, text: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn condition(&mut self) -> Result<Condition, ConditionError> {
        let (name, start) = self.word(".");
        if name == "recovers" {
            return self.recovery();
        }
        let figure = match ConditionFigure::of_name(name) {
            _ if name == "figure" => ConditionFigure::Noticed(self.noticed(start)?),
            Some(figure) => figure,
            None => return Err(self.unknown_figure(name, start)),
        };
        let operations = match figure {
            ConditionFigure::Noticed(_) => Operations::All,
            _ => self.operations(&figure)?,
        };
        let phase = self.place()?;
        let operator = self.operator()?;
        let bound = self.amount(figure.dimension())?;
        Ok(Condition { subject: Subject { figure, operations, phase }, operator, bound })
    }

    fn unknown_figure(&self, name: &str, start: usize) -> ConditionError {
        let names: Vec<&str> = FIGURES.iter().map(|known| known.name).collect();
        let others = ["p50", "p99", "p99.9", "recovers", "figure"];
        let hint = hint(&name.replace('-', "_"), &[&names[..], &others[..]].concat());
        let problem = match name {
            "" => "a figure is missing here".to_owned(),
            name => format!("`{name}` is not a figure"),
        };
        self.error(start..(start + name.len()).max(start), problem, hint)
    }

    /// Parses a condition such as `recovers(writes) in PHASE to 95% within 10s`, after its first
    /// word.
    fn recovery(&mut self) -> Result<Condition, ConditionError> {
        let operations = self.operations(&ConditionFigure::Recovery(1.0))?;
        let phase = self.place()?;
        let (to, start) = self.word("");
        if to != "to" {
            let problem = "`recovers` needs `to` and a share of the former throughput".to_owned();
            let hint = "for example recovers to 95% within 10s";
            return Err(self.error(start..start + to.len(), problem, hint));
        }
        let (share, start) = self.word("%._");
        let read = units::parse_share(share)
            .map_err(|error| self.error(start..self.at, error.to_string(), error.hint()))?;
        let operator = match self.word("") {
            ("within", _) => Operator::AtMost,
            ("", _) => self.operator()?,
            (word, start) => {
                let problem = format!("`{word}` is neither `within` nor an operator");
                let hint = "for example recovers to 95% within 10s";
                return Err(self.error(start..self.at, problem, hint));
            }
        };
        let bound = self.amount(Dimension::Time)?;
        let figure = ConditionFigure::Recovery(read);
        Ok(Condition { subject: Subject { figure, operations, phase }, operator, bound })
    }

    /// Reads the text between parentheses, and returns it with its place; `None` if none come next.
    fn parenthesis(&mut self) -> Result<Option<(&'a str, usize)>, ConditionError> {
        if !self.takes("(") {
            return Ok(None);
        }
        let Some(length) = self.rest().find(')') else {
            let (span, hint) = (self.at - 1..self.text.len(), "write `)` at its end");
            return Err(self.error(span, "a parenthesis is not closed".to_owned(), hint));
        };
        let inner = &self.rest()[..length];
        let start = self.at + inner.len() - inner.trim_start().len();
        self.at += length + 1;
        Ok(Some((inner.trim(), start)))
    }

    /// Reads the name of a figure that a driver noticed.
    fn noticed(&mut self, start: usize) -> Result<String, ConditionError> {
        match self.parenthesis()? {
            Some((name, _)) if !name.is_empty() && !name.contains(char::is_control) => {
                Ok(name.to_owned())
            }
            _ => {
                let problem = "`figure` lacks the name of what the store's driver noticed";
                let hint = "for example figure(hit ratio) > 0.9";
                Err(self.error(start..self.at, problem.to_owned(), hint))
            }
        }
    }

    fn operations(&mut self, figure: &ConditionFigure) -> Result<Operations, ConditionError> {
        let Some((word, start)) = self.parenthesis()? else { return Ok(Operations::All) };
        let span = start..start + word.len();
        let operations = match word {
            "all" => Operations::All,
            "reads" => Operations::Reads,
            "writes" => Operations::Writes,
            "hits" => Operations::Hits,
            "misses" => Operations::Misses,
            "hits-and-misses" => Operations::HitsAndMisses,
            word => match Kind::ALL.into_iter().find(|kind| kind.name() == word) {
                Some(kind) => Operations::Kind(kind),
                None => {
                    let mut words: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                    words.extend(["reads", "writes", "all", "hits", "misses", "hits-and-misses"]);
                    let problem = format!("`{word}` is not an operation");
                    return Err(self.error(span, problem, hint(word, &words)));
                }
            },
        };
        if operations != Operations::All && figure.is_of_whole_phase() {
            let problem = format!("`{}` is one figure for all operations", figure.name());
            return Err(self.error(span, problem, "leave out what is in parentheses"));
        }
        Ok(operations)
    }

    /// Reads `in PHASE`, if it comes next.
    fn place(&mut self) -> Result<Option<String>, ConditionError> {
        let before = self.at;
        let (word, _) = self.word("");
        if word != "in" {
            self.at = before;
            return Ok(None);
        }
        let (name, start) = self.word("@:");
        if name.is_empty() {
            let problem = "`in` lacks the name of a phase".to_owned();
            return Err(self.error(start..start, problem, ""));
        }
        Ok(Some(name.to_owned()))
    }

    fn operator(&mut self) -> Result<Operator, ConditionError> {
        for (symbol, operator) in OPERATORS {
            if self.takes(symbol) {
                return Ok(operator);
            }
        }
        let (start, found) = (self.at, self.rest().chars().next());
        let problem = match found {
            Some(other) => {
                format!("an operator is missing here, `{}` is none", other.escape_default())
            }
            None => "an operator is missing here".to_owned(),
        };
        let end = start + found.map_or(0, char::len_utf8);
        Err(self.error(start..end, problem, "write < <= > >= == or !="))
    }

    fn amount(&mut self, dimension: Dimension) -> Result<Amount, ConditionError> {
        self.skip_space();
        let (start, rest) = (self.at, self.rest());
        let length = rest.find(',').unwrap_or(rest.len());
        let text = rest[..length].trim_end();
        self.at += length;
        let span = start..start + text.len();
        if text.starts_with(['+', '-']) {
            return change(text, dimension).ok_or_else(|| {
                let problem = format!("`{text}` is not a change");
                let hint = "write it in per cent, such as +10% or -5%, or a time or a rate with its \
                            unit, such as +0.2ms; without a sign for an amount";
                self.error(span, problem, hint)
            });
        }
        let read = match dimension {
            Dimension::Time => units::parse_duration(text).map(|time| time.as_nanos() as f64),
            Dimension::Rate => units::parse_rate(text),
            Dimension::Share => units::parse_share(text),
            Dimension::Count => units::parse_count(text).map(|count| count as f64),
            Dimension::Any => any(text),
        };
        match read {
            Ok(value) => Ok(Amount::Value(value)),
            Err(error) => Err(self.error(span, error.to_string(), error.hint())),
        }
    }
}

/// Parses a change such as `+10%`, or of times and rates `-0.2ms` as well.
fn change(text: &str, dimension: Dimension) -> Option<Amount> {
    if let Some(percent) = text.strip_suffix('%') {
        let number: f64 = percent.trim().parse().ok()?;
        return number.is_finite().then_some(Amount::Change(number / 100.0));
    }
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let by = match dimension {
        Dimension::Time => units::parse_duration(&text[1..]).ok()?.as_nanos() as f64,
        Dimension::Rate => units::parse_rate(&text[1..]).ok()?,
        Dimension::Share | Dimension::Count | Dimension::Any => return None,
    };
    Some(Amount::Shift(sign * by))
}

/// Parses a number, a share in per cent, or a time, which becomes seconds.
fn any(text: &str) -> Result<f64, units::UnitError> {
    if let Ok(number) = text.parse::<f64>()
        && number.is_finite()
    {
        return Ok(number);
    }
    if text.ends_with('%') {
        return units::parse_share(text);
    }
    match units::parse_duration(text) {
        Ok(time) => Ok(time.as_secs_f64()),
        Err(_) => units::parse_count(text).map(|count| count as f64),
    }
}
