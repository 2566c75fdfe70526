//! The actions of `kvdyno testbed fault`: a subcommand for every fault, with the fields of that fault, and for every
//! repair, as core lists them.

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

/// Action on nodes.
#[derive(Clone, Debug)]
pub enum WantedAction {
    /// A fault.
    Fault {
        /// Kind of the fault.
        kind: &'static FaultKind,
        /// Values of its fields.
        values: FaultValues,
    },
    /// These repairs, as far as there is something to repair.
    Repairs(Vec<Repair>),
}

/// Returns the repairs that can be ordered by hand. `start` is not among them: `restart` does it.
fn repairs() -> impl Iterator<Item = Repair> {
    Repair::ALL.into_iter().filter(|repair| *repair != Repair::Start)
}

/// Returns each word with its meaning and its fields. A word may stand for several repairs.
fn words() -> Vec<(&'static str, &'static str, &'static [&'static FaultField])> {
    let faults = FaultKind::ALL.into_iter().map(|kind| (kind.word, kind.help, kind.fields));
    let repairs = repairs().map(Repair::word).map(|(word, help)| (word, help, &[][..]));
    let mut words: Vec<_> = faults.chain(repairs).collect();
    words.dedup_by_key(|(word, ..)| *word);
    words
}

fn possible((word, help): (&'static str, &'static str)) -> PossibleValue {
    PossibleValue::new(word).help(help)
}

/// Makes the option of a field: `--loss SHARE`.
fn option(field: &'static FaultField) -> Arg {
    let arg = Arg::new(field.key).long(field.key).help(field.help);
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

/// Returns the value that was typed; `None` if it is only the default.
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

/// Arguments that every fault and repair takes.
#[derive(Args, Clone, Debug)]
pub struct TargetArguments {
    /// Names of nodes; the action is done to all of them at one moment. None for `add`.
    pub nodes: Vec<String>,
    /// Name of the testbed, as `kvdyno testbed list` shows it [default: the only one].
    #[arg(long, value_name = "NAME")]
    pub testbed: Option<String>,
    /// Act on a deployment that a file describes, too, without asking first.
    #[arg(long)]
    pub yes: bool,
}

/// `kvdyno testbed fault`.
#[derive(Clone, Debug)]
pub struct FaultArguments {
    /// Action to do.
    pub wanted: WantedAction,
    /// Target of the action.
    pub target: TargetArguments,
}

impl Args for FaultArguments {
    fn augment_args(command: Command) -> Command {
        let words = words().into_iter().map(|(word, help, fields)| {
            let options = fields.iter().map(|field| option(field));
            TargetArguments::augment_args(Command::new(word).args(options))
                .about(help)
                .long_about(None)
        });
        let command = command.subcommand_required(true).subcommand_value_name("FAULT");
        command.subcommand_help_heading("Faults and repairs").subcommands(words)
    }

    fn augment_args_for_update(command: Command) -> Command {
        FaultArguments::augment_args(command)
    }
}

impl FromArgMatches for FaultArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<FaultArguments, Error> {
        let Some((word, matches)) = matches.subcommand() else {
            return Err(Error::new(ErrorKind::MissingSubcommand));
        };
        let target = TargetArguments::from_arg_matches(matches)?;
        let wanted = match FaultKind::of(word) {
            Some(kind) => {
                let values = kind.fields.iter().fold(FaultValues::default(), |values, field| {
                    values.with(field, said(matches, field))
                });
                WantedAction::Fault { kind, values }
            }
            None => {
                let all = repairs().filter(|repair| repair.word().0 == word).collect();
                WantedAction::Repairs(all)
            }
        };
        Ok(FaultArguments { wanted, target })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = FaultArguments::from_arg_matches(matches)?;
        Ok(())
    }
}
