//! Conditions on reported figures, such as `p99(get) < 10ms`: one little language for the claims of a
//! suite, for gates between results and for the objectives of a capacity search. This file has its
//! grammar and its meaning; the caller provides the values.
//!
//! ```text
//! conditions := condition { "," condition }
//! condition  := subject OPERATOR amount
//!             | "recovers" [ scope ] [ place ] "to" share ( "within" | OPERATOR ) amount
//! subject    := FIGURE [ scope ] [ place ]
//! scope      := "(" "reads" | "writes" | "all" | "hits" | "misses" | "hits-and-misses" | KIND ")"
//!                                                            the name of a driver's figure for `figure`
//! place      := "in" PHASE
//! OPERATOR   := "<" | "<=" | ">" | ">=" | "==" | "=" | "!="
//! amount     := what the figure is counted in, or a change such as `+10%`, `-5%` or `+0.2ms`
//! ```

mod figure;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ground::units;
use crate::workload::Kind;

pub use figure::{ConditionFigure, Dimension, FIGURES, KnownFigure};
pub use parse::ConditionError;

/// Condition on one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Figure that is looked at, with its operations and phase.
    pub subject: Subject,
    /// Operator by which it is compared.
    pub operator: Operator,
    /// Amount with which it is compared.
    pub bound: Amount,
}

/// Figure of some operations in a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// Figure that is looked at.
    pub figure: ConditionFigure,
    /// Operations that it is about.
    pub operations: Operations,
    /// Name of the phase; `None` for the phase that the condition stands in, or the one that the caller
    /// takes.
    pub phase: Option<String>,
}

/// Operations that a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operations {
    /// All operations.
    All,
    /// Operations that only read.
    Reads,
    /// Operations that write.
    Writes,
    /// Gets that found a record.
    Hits,
    /// Gets that found nothing.
    Misses,
    /// Gets, whatever they found.
    HitsAndMisses,
    /// Operations of one kind.
    Kind(Kind),
}

impl Operations {
    /// Returns true if operations of `kind` are among them.
    #[must_use]
    pub fn include(self, kind: Kind) -> bool {
        match self {
            Operations::All => true,
            Operations::Reads => kind.read_only(),
            Operations::Writes => !kind.read_only(),
            Operations::Hits | Operations::Misses | Operations::HitsAndMisses => kind.gets(),
            Operations::Kind(only) => only == kind,
        }
    }

    /// Returns true if gets that found a record are among them.
    #[must_use]
    pub fn include_hits(self) -> bool {
        self != Operations::Misses
    }

    /// Returns true if gets that found nothing are among them. These are answered sooner than the
    /// others, so they are in one figure with them only where the condition asks for it.
    #[must_use]
    pub fn include_misses(self) -> bool {
        matches!(self, Operations::Misses | Operations::HitsAndMisses)
    }

    /// Returns the word for them.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operations::Hits => "hits",
            Operations::Misses => "misses",
            Operations::HitsAndMisses => "hits-and-misses",
            Operations::All => "all",
            Operations::Reads => "reads",
            Operations::Writes => "writes",
            Operations::Kind(kind) => kind.name(),
        }
    }
}

/// Operator by which a figure is compared with the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl Operator {
    /// Returns the operator as it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Less => "<",
            Operator::AtMost => "<=",
            Operator::More => ">",
            Operator::AtLeast => ">=",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
        }
    }

    /// Returns true if `value` stands in this relation to `bound`.
    #[must_use]
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Operator::Less => value < bound,
            Operator::AtMost => value <= bound,
            Operator::More => value > bound,
            Operator::AtLeast => value >= bound,
            Operator::Equal => value == bound,
            Operator::NotEqual => value != bound,
        }
    }
}

/// Amount with which a figure is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A value in the base unit of the figure's [`Dimension`]: ns, operations a second, a share of 1,
    /// a count.
    Value(f64),
    /// A change against another result, as a share: `+10%` is 0.1, `-5%` is -0.05.
    Change(f64),
    /// A change against another result, in the same unit as a value: `+0.2ms` is 200,000.
    Shift(f64),
}

/// Knowledge of a figure's value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "value")]
pub enum Measured {
    /// The value is this; infinite where operations that failed count as never done.
    Exactly(f64),
    /// The value is this or more.
    AtLeast(f64),
}

impl Condition {
    /// Returns true if the figure meets the condition; `None` if what is known of it does not decide
    /// that, or if the bound is a change, which needs another result.
    #[must_use]
    pub fn holds(&self, measured: Measured) -> Option<bool> {
        let Amount::Value(bound) = self.bound else { return None };
        let least = match measured {
            Measured::Exactly(value) => return Some(self.operator.holds(value, bound)),
            Measured::AtLeast(least) => least,
        };
        // Whatever the value is, it is `least` or more.
        match self.operator {
            Operator::Less => (least >= bound).then_some(false),
            Operator::AtMost | Operator::Equal => (least > bound).then_some(false),
            Operator::More | Operator::NotEqual => (least > bound).then_some(true),
            Operator::AtLeast => (least >= bound).then_some(true),
        }
    }

    /// Reads one condition.
    ///
    /// # Errors
    /// [`ConditionError`] with the place of the mistake.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        let mut all = Condition::parse_list(text)?;
        match (all.pop(), all.pop()) {
            (Some(only), None) => Ok(only),
            _ => Err(ConditionError::more_than_one(text)),
        }
    }

    /// Reads conditions that are separated by commas, at least one.
    ///
    /// # Errors
    /// [`ConditionError`] with the place of the first mistake.
    pub fn parse_list(text: &str) -> Result<Vec<Condition>, ConditionError> {
        parse::conditions(text)
    }
}

/// Formats the condition so that it can be parsed again.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dimension = self.subject.figure.dimension();
        if let ConditionFigure::Recovery(share) = self.subject.figure {
            self.subject.write_with(f, "recovers")?;
            write!(f, " to {}", units::format_share(share))?;
            if self.operator == Operator::AtMost {
                return write!(f, " within {}", self.bound.text(dimension));
            }
        } else {
            write!(f, "{}", self.subject)?;
        }
        write!(f, " {} {}", self.operator.symbol(), self.bound.text(dimension))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_with(f, &self.figure.name())
    }
}

impl Subject {
    fn write_with(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        f.write_str(name)?;
        match (&self.figure, self.operations) {
            (ConditionFigure::Noticed(name), _) => write!(f, "({name})")?,
            (_, Operations::All) => {}
            (_, operations) => write!(f, "({})", operations.name())?,
        }
        match &self.phase {
            Some(phase) => write!(f, " in {phase}"),
            None => Ok(()),
        }
    }
}

impl Amount {
    /// Returns true if it is a change, which needs another result.
    #[must_use]
    pub fn is_change(self) -> bool {
        !matches!(self, Amount::Value(_))
    }

    /// Returns the amount so that it can be parsed again.
    #[must_use]
    pub fn text(self, dimension: Dimension) -> String {
        match (self, dimension) {
            (Amount::Change(share), _) => format!("{:+}%", (share * 1e12).round() / 1e10),
            (Amount::Shift(by), _) => {
                let sign = if by < 0.0 { '-' } else { '+' };
                format!("{sign}{}", Amount::Value(by.abs()).text(dimension))
            }
            (Amount::Value(nanos), Dimension::Time) => {
                units::format_duration(Duration::from_nanos(nanos as u64))
            }
            (Amount::Value(rate), Dimension::Rate) => units::format_rate(rate),
            (Amount::Value(share), Dimension::Share) => units::format_share(share),
            (Amount::Value(count), Dimension::Count) => units::format_count(count as u64),
            (Amount::Value(number), Dimension::Any) => format!("{number}"),
        }
    }
}

impl Serialize for Condition {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Condition, D::Error> {
        let text = String::deserialize(deserializer)?;
        Condition::parse(&text).map_err(serde::de::Error::custom)
    }
}
