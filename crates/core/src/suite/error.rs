//! Errors in suites, with their place: every error names its file, line and column (or the command-line option),
//! shows the offending line and gives advice.

use std::fmt::{self, Write as _};

use crate::ground::units::UnitError;

/// Advice to compare a wrong suite with a right one.
const EXAMPLE_SUITE: &str = "compare it with a suite that `kvdyno new FILE` writes";
/// Most characters of a line that an excerpt shows.
const EXCERPT: usize = 120;

/// Place of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    Line {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The line itself.
        text: String,
        /// Number of characters from the column on that are wrong, 1 or more.
        width: usize,
    },
    /// In a command-line option, such as `--set put.clients=x`.
    Argument(String),
    /// In the suite as a whole.
    Suite(String),
    /// In a file of another kind as a whole.
    File(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { file, line, column, .. } => write!(f, "{file}:{line}:{column}"),
            Place::Argument(text) | Place::File(text) => f.write_str(text),
            Place::Suite(name) => write!(f, "suite {name}"),
        }
    }
}

/// Problem of a suite.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Text that is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that the format does not have.
    #[error("unknown key `{key}` in {table}")]
    UnknownKey {
        /// The key that was written.
        key: String,
        /// Name of the table.
        table: String,
    },
    /// A word that is not one of the choices.
    #[error("`{word}` is not {what}")]
    UnknownWord {
        /// The word that was written.
        word: String,
        /// Description of the words that are allowed, such as "an operation".
        what: String,
    },
    /// A value of another type.
    #[error("`{key}` must be {expected}, not {found}")]
    WrongType {
        /// Key of the value.
        key: String,
        /// Type that the key takes.
        expected: &'static str,
        /// Type of the value that was written.
        found: &'static str,
    },
    /// A quantity that cannot be read.
    #[error("`{key}`: {error}")]
    Quantity {
        /// Key of the value.
        key: String,
        /// Error of the quantity.
        error: UnitError,
    },
    /// A value outside what makes sense.
    #[error("`{key}` must be {range}, not {value}")]
    OutOfRange {
        /// Key of the value.
        key: String,
        /// The value that was written.
        value: String,
        /// Values that are allowed, in words.
        range: String,
    },
    /// A key that must be there.
    #[error("{table} lacks `{key}`")]
    Missing {
        /// The key that is missing.
        key: &'static str,
        /// Name of the table.
        table: String,
    },
    /// Shares of a mix that do not make a whole.
    #[error("the mix sums to {0} %, not to 100 %")]
    MixSum(String),
    /// Settings that do not go together.
    #[error("{0}")]
    Conflict(String),
    /// A file that cannot be read.
    #[error("cannot read it: {0}")]
    Unreadable(String),
}

/// Error because of which a suite cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct SuiteError(Box<Detail>);

#[derive(Clone, Debug, PartialEq)]
struct Detail {
    place: Place,
    problem: Problem,
    hint: Option<String>,
}

impl std::error::Error for Detail {}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = match (&self.place, &self.problem) {
            // The option names the key already.
            (Place::Argument(option), Problem::Quantity { key, error }) if sets(option, key) => {
                format!("{option}: {error}")
            }
            (place, problem) => format!("{place}: {problem}"),
        };
        if let Some(hint) = &self.hint {
            line += &format!("; {hint}");
        }
        // One line, whatever stands in the file.
        line.chars().try_for_each(|c| match c {
            c if c.is_control() => write!(f, "{}", c.escape_default()),
            c => f.write_char(c),
        })
    }
}

/// Returns true if an option such as `--value 3X` or `--set put.value=3X` names the key that it sets.
fn sets(option: &str, key: &str) -> bool {
    let words = option.strip_prefix("--set ").or_else(|| option.strip_prefix("--"));
    let named = words.and_then(|words| words.split([' ', '=']).next());
    named.is_some_and(|named| named.rsplit('.').next() == Some(key))
}

impl SuiteError {
    /// Makes an error with advice on what to do; an empty `hint` is none.
    #[must_use]
    pub fn new(place: Place, problem: Problem, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into()).filter(|h| !h.is_empty());
        let hint = hint.or_else(|| match &problem {
            Problem::Quantity { error, .. } => Some(error.hint()),
            Problem::MixSum(_) => Some("make its parts sum to 100".to_owned()),
            Problem::Unreadable(_) => Some("name a file that can be read".to_owned()),
            Problem::Syntax(_)
            | Problem::UnknownKey { .. }
            | Problem::UnknownWord { .. }
            | Problem::Missing { .. } => Some(EXAMPLE_SUITE.to_owned()),
            // These say what must be instead.
            Problem::WrongType { .. } | Problem::OutOfRange { .. } | Problem::Conflict(_) => None,
        });
        SuiteError(Box::new(Detail { place, problem, hint }))
    }

    /// Adapts the error to a file that is no suite and that `page` describes: advice about suites does not help there.
    #[must_use]
    pub(super) fn described_in(mut self, page: &str) -> Self {
        let detail = &mut *self.0;
        if let Place::Suite(name) = &mut detail.place {
            detail.place = Place::File(std::mem::take(name));
        }
        if matches!(detail.problem, Problem::Unreadable(_)) {
            detail.hint = Some("name a file that can be read".to_owned());
        } else if detail.hint.as_deref() == Some(EXAMPLE_SUITE) {
            detail.hint = Some(format!("compare it with the example in {page}"));
        }
        self
    }

    /// Returns its place.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Returns the problem.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// Returns advice on what to do, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Returns the offending line with marks under the wrong part; `None` outside a file.
    #[must_use]
    pub fn excerpt(&self) -> Option<String> {
        let Place::Line { line, column, text, width, .. } = &self.0.place else { return None };
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        // Of a long line only the part around the mistake is shown.
        let first = (column - 1).saturating_sub(EXCERPT / 2);
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let text: String = text.chars().skip(first).take(EXCERPT).map(printable).collect();
        let skip = " ".repeat(column - 1 - first);
        let mark = "^".repeat((*width).min(EXCERPT - skip.len()));
        Some(format!("{number} | {text}\n{margin} | {skip}{mark}"))
    }
}
