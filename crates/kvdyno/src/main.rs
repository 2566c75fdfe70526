//! The `kvdyno` command: reads its arguments, does one thing, ends with a documented exit code.

#[macro_use]
mod say;

mod account;
mod added;
mod args;
mod board;
mod check;
mod compare;
mod console;
mod cost;
mod deployment;
mod device;
mod dry_run;
mod existing;
mod exit;
mod fleet;
mod foreign_options;
mod list;
mod listen_address;
mod measurement;
mod metrics;
mod new;
mod open_store;
mod output;
mod preflight;
mod progress;
mod quantity;
mod replicas;
mod results;
mod run;
mod run_config;
mod run_options;
mod session;
mod sessions;
mod signals;
mod stamps;
mod status_line;
mod steering;
mod target;
mod terminal_style;
mod testbed;
mod trials;
mod winnow;
mod writers;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use kvdyno_core::redact;

use kvdyno_core::measure;

use args::{Arguments, Command};
use exit::{Exit, Failure};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let exit = about_arguments(&error);
            return ExitCode::from(exit.worse(of_printing()) as u8);
        }
    };
    // Where it cannot be raised, connections that are one too many say so.
    let _ = measure::raise_open_files();
    if arguments.command.may_tell() {
        deployment::tell_of_the_forgotten();
    }
    let ended = carry_out(arguments.command);
    let exit = ended.unwrap_or_else(|failure| {
        failure.print();
        failure.exit
    });
    ExitCode::from(exit.worse(of_printing()) as u8)
}

/// Output that was asked for and lost is a failure, whatever went well before.
fn of_printing() -> Exit {
    match say::lost() {
        None => Exit::Done,
        Some(why) => {
            warn_user!(
                "kvdyno: standard output lost what was printed: {why}; make room, or print elsewhere"
            );
            Exit::Internal
        }
    }
}

/// Prints the help that was asked for or is needed, or one line about what is wrong.
fn about_arguments(error: &clap::Error) -> Exit {
    let helps = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if helps {
        say::printed(error.print());
    } else {
        let hint = foreign_options::hint(error).unwrap_or_default();
        let line = one_line(&error.to_string(), &hint);
        warn_user!("kvdyno: {}", redact::redact(&line));
    }
    if error.use_stderr() { Exit::Usage } else { Exit::Done }
}

/// The parser's message of several paragraphs, without those that say the same each time, and a hint.
fn one_line(message: &str, hint: &str) -> String {
    let told = message.trim_start_matches("error: ").lines().map(str::trim);
    let told = told
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"));
    let mut line = told.collect::<Vec<_>>().join(" ").replace(" tip: ", "; ");
    line.push_str(hint);
    line.push_str("; --help shows all commands and options");
    line
}

fn carry_out(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(arguments) => deployment::run(*arguments),
        Command::Capacity(arguments) => deployment::run(run::capacity_run(*arguments)),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Report(arguments) => results::report(&arguments),
        Command::View(arguments) => console::view(&arguments),
        Command::Board(arguments) => board::board(&arguments),
        Command::Export(arguments) => board::export(&arguments),
        Command::Cost(arguments) => cost::cost(&arguments),
        Command::Rerun(arguments) => run::rerun(&arguments),
        Command::Stores => list::stores(),
        Command::Suites(arguments) => list::suites(&arguments),
        Command::New(arguments) => new::new(&arguments.file),
        Command::Completions(arguments) => list::completions(arguments.shell),
        Command::Man(arguments) => list::man(&arguments.folder),
        Command::Check(arguments) => check::check(&arguments),
        Command::Winnow(arguments) => winnow::winnow(&arguments),
        Command::Testbed(arguments) => testbed::testbed(&arguments),
        Command::Deployment(arguments) => deployment::deployment(&arguments),
        Command::Agent(arguments) if arguments.stay => fleet::stay(&arguments),
        Command::Agent(arguments) => fleet::agent(&arguments),
        #[cfg(feature = "simulated-agents")]
        Command::SimulatedAgents(arguments) => {
            fleet::simulated_agents(&arguments.conductor, arguments.count)
        }
    }
}
