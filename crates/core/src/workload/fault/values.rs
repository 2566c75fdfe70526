//! Values that are written with a fault beside its targets and times, wherever it is written: in a suite, on the
//! command line, in the plan of a result. And the error for a fault that makes no sense.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cut::Sides;

/// Field that may be written with faults of a kind.
#[derive(Debug)]
pub struct FaultField {
    /// Its key in suites; on the command line, with two dashes before it.
    pub key: &'static str,
    /// Its meaning, for the command line.
    pub help: &'static str,
    /// A value that it may have.
    pub example: &'static str,
    /// Form of its values.
    pub form: FieldForm,
}

/// Form of the values of a [`FaultField`].
#[derive(Debug)]
pub enum FieldForm {
    /// One of several words, each with its meaning; the first is the default.
    Word {
        /// Description of the words, to stand after "is not".
        what: &'static str,
        /// The words.
        words: &'static [(&'static str, &'static str)],
    },
    /// A share above 0, at most 1.
    Share,
    /// Bytes a second.
    Bandwidth,
    /// A time above 0.
    Time,
    /// Sides that are cut off from each other, each with names.
    Sides,
}

/// Value of a [`FaultField`]. In JSON each variant looks different.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FieldValue {
    /// Value of a [`FieldForm::Word`].
    Word(String),
    /// Value of a [`FieldForm::Bandwidth`], bytes a second.
    Whole(u64),
    /// Value of a [`FieldForm::Share`].
    Number(f64),
    /// Value of a [`FieldForm::Time`].
    Time(Duration),
    /// Value of a [`FieldForm::Sides`].
    Lists(Vec<Vec<String>>),
}

impl From<&str> for FieldValue {
    fn from(word: &str) -> FieldValue {
        FieldValue::Word(word.to_owned())
    }
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> FieldValue {
        FieldValue::Whole(number)
    }
}

impl From<f64> for FieldValue {
    fn from(number: f64) -> FieldValue {
        FieldValue::Number(number)
    }
}

impl From<Duration> for FieldValue {
    fn from(time: Duration) -> FieldValue {
        FieldValue::Time(time)
    }
}

impl From<Sides> for FieldValue {
    fn from(sides: Sides) -> FieldValue {
        FieldValue::Lists(sides.lists().to_vec())
    }
}

/// Values that were written with a fault, by the keys of their fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FaultValues(BTreeMap<String, Option<FieldValue>>);

impl FaultValues {
    /// Adds this value of a field, if there is one.
    #[must_use]
    pub fn with(mut self, field: &FaultField, value: Option<impl Into<FieldValue>>) -> FaultValues {
        if let Some(value) = value {
            self.0.insert(field.key.to_owned(), Some(value.into()));
        }
        self
    }

    /// Returns the value of a field; `None` if none was written.
    #[must_use]
    pub fn get(&self, field: &FaultField) -> Option<&FieldValue> {
        self.0.get(field.key)?.as_ref()
    }

    pub(super) fn word(&self, field: &FaultField) -> Option<&str> {
        match self.get(field)? {
            FieldValue::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn whole(&self, field: &FaultField) -> Option<u64> {
        match self.get(field)? {
            FieldValue::Whole(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn number(&self, field: &FaultField) -> Option<f64> {
        match self.get(field)? {
            FieldValue::Number(number) => Some(*number),
            FieldValue::Whole(number) => Some(*number as f64),
            _ => None,
        }
    }

    pub(super) fn time(&self, field: &FaultField) -> Option<Duration> {
        match self.get(field)? {
            FieldValue::Time(time) => Some(*time),
            _ => None,
        }
    }

    pub(super) fn sides(&self, field: &FaultField) -> Option<Sides> {
        match self.get(field)? {
            FieldValue::Lists(lists) => Sides::new(lists.clone()),
            _ => None,
        }
    }

    /// Returns the values that stand in plans although nothing was given: each plan has these keys.
    fn unsaid() -> [(&'static str, Option<FieldValue>); 6] {
        let lists = FieldValue::Lists(Vec::new());
        [
            ("from", Some("all".into())),
            ("sides", Some(lists)),
            ("way", Some("both".into())),
            ("loss", None),
            ("bandwidth", None),
            ("delay", None),
        ]
    }

    /// Returns the values as plans have them, with those of all keys that each plan has.
    pub(super) fn written(self) -> FaultValues {
        let mut all: BTreeMap<String, Option<FieldValue>> =
            FaultValues::unsaid().into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        all.extend(self.0);
        FaultValues(all)
    }

    /// Returns the values of a plan that were given.
    pub(super) fn given(mut self) -> FaultValues {
        let unsaid = FaultValues::unsaid();
        self.0.retain(|key, value| {
            value.is_some() && unsaid.iter().all(|(known, none)| known != key || none != value)
        });
        self
    }
}

/// Error that tells why a fault makes no sense.
#[derive(Clone, Debug)]
pub struct InvalidFault {
    /// The error, in one sentence without a stop.
    pub message: String,
    advice: String,
    /// Fields of which at least one is to be given.
    missing: &'static [&'static FaultField],
}

impl InvalidFault {
    pub(super) fn new(message: impl Into<String>, advice: impl Into<String>) -> InvalidFault {
        InvalidFault { message: message.into(), advice: advice.into(), missing: &[] }
    }

    /// Makes the error that `word` does not say how much; a field of `missing` would.
    pub(super) fn how_much(word: &str, missing: &'static [&'static FaultField]) -> InvalidFault {
        let message = format!("the fault `{word}` needs an amount");
        InvalidFault { missing, ..InvalidFault::new(message, "") }
    }

    /// Returns advice on what to do; `write` writes a field as the place of the fault does.
    #[must_use]
    pub fn advice(&self, write: impl Fn(&FaultField) -> String) -> String {
        let missing: Vec<String> = self.missing.iter().map(|field| write(field)).collect();
        match &missing[..] {
            [] => self.advice.clone(),
            [one] => format!("give {one}"),
            [one, other] => format!("give {one}, {other}, or both"),
            several => format!("give one or more of {}", several.join(", ")),
        }
    }
}
