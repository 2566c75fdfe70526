//! What `kvdyno testbed fault` can be asked for: every fault with its fields, and every repair, as core
//! lists them.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use kvdyno_core::ground::units;
use kvdyno_core::workload::fault::{
    FaultField, FaultKind, FaultValues, FieldForm, FieldValue, Repair, Sides,
};

use crate::quantity::hinted;

/// Name of the argument that says what to do.
const FAULT: &str = "fault";

/// What is to be done to nodes.
#[derive(Clone, Debug)]
pub enum WantedAction {
    /// A fault.
    Fault {
        /// Its kind.
        kind: &'static FaultKind,
        /// What is said of it.
        values: FaultValues,
    },
    /// These repairs, as far as there is something to repair.
    Repairs(Vec<Repair>),
}

/// The repairs that are done by hand, by their words. `start` is not: `restart` does it.
fn repairs() -> impl Iterator<Item = Repair> {
    Repair::ALL.into_iter().filter(|repair| *repair != Repair::Start)
}

fn words() -> Vec<PossibleValue> {
    let faults = FaultKind::ALL.into_iter().map(|kind| (kind.word, kind.help));
    let mut words: Vec<(&str, &str)> = faults.chain(repairs().map(Repair::word)).collect();
    words.dedup();
    words.into_iter().map(possible).collect()
}

fn possible((word, help): (&'static str, &'static str)) -> PossibleValue {
    PossibleValue::new(word).help(help)
}

/// `--loss SHARE`.
fn option(field: &'static FaultField, kind: &FaultKind) -> Arg {
    let arg = Arg::new(field.key).long(field.key).help(format!("{}: {}", kind.word, field.help));
    match field.form {
        FieldForm::Word { words, .. } => {
            let parser = PossibleValuesParser::new(words.iter().copied().map(possible));
            arg.value_name("WORD").value_parser(parser).default_value(words[0].0)
        }
        FieldForm::Share => arg.value_name("SHARE").value_parser(hinted(units::parse_share)),
        FieldForm::Bandwidth => {
            arg.value_name("BYTES/s").value_parser(hinted(units::parse_bandwidth))
        }
        FieldForm::Time => arg.value_name("TIME").value_parser(hinted(units::parse_duration)),
        FieldForm::Sides => arg.value_name("NAME+NAME|NAME").value_parser(|text: &str| {
            Sides::parse(text)
                .ok_or("write two sides or more, a node first: redis-1+clients|redis-2")
        }),
    }
}

/// What was said, unless it is only the default.
fn said(matches: &ArgMatches, field: &FaultField) -> Option<FieldValue> {
    let key = field.key;
    if matches.value_source(key) != Some(ValueSource::CommandLine) {
        return None;
    }
    match field.form {
        FieldForm::Word { .. } => matches.get_one::<String>(key).map(|word| word.as_str().into()),
        FieldForm::Share => matches.get_one::<f64>(key).map(|share| (*share).into()),
        FieldForm::Bandwidth => matches.get_one::<u64>(key).map(|bytes| (*bytes).into()),
        FieldForm::Time => matches.get_one::<Duration>(key).map(|time| (*time).into()),
        FieldForm::Sides => matches.get_one::<Sides>(key).map(|sides| sides.clone().into()),
    }
}

impl Args for WantedAction {
    fn augment_args(command: Command) -> Command {
        let what = Arg::new(FAULT).required(true).value_name("FAULT").help("What to do");
        let command = command.arg(what.value_parser(PossibleValuesParser::new(words())));
        command.args(FaultKind::fields().map(|(field, kind)| option(field, kind)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        WantedAction::augment_args(command)
    }
}

impl FromArgMatches for WantedAction {
    fn from_arg_matches(matches: &ArgMatches) -> Result<WantedAction, Error> {
        let word = matches.get_one::<String>(FAULT).map_or("", String::as_str);
        let values = FaultKind::fields().fold(FaultValues::default(), |values, (field, _)| {
            values.with(field, said(matches, field))
        });
        if let Some(kind) = FaultKind::of(word) {
            return Ok(WantedAction::Fault { kind, values });
        }
        FaultKind::fit(word, &values).map_err(|nonsense| {
            let text = format!("{}; {}\n", nonsense.message, nonsense.advice(|_| String::new()));
            Error::raw(ErrorKind::ArgumentConflict, text)
        })?;
        Ok(WantedAction::Repairs(repairs().filter(|repair| repair.word().0 == word).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = WantedAction::from_arg_matches(matches)?;
        Ok(())
    }
}
