//! The `kvdyno` command: reads its arguments, does one thing, ends with a documented exit code.

mod added;
mod args;
mod check;
mod dry_run;
mod existing;
mod exit;
mod list;
mod output;
mod progress;
mod results;
mod run;
mod session;
mod signals;
mod stamps;
mod terminal_style;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use exit::{Exit, Failure};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            // Nothing can be done about a closed terminal.
            let _ = error.print();
            return ExitCode::from(exit as u8);
        }
    };
    let ended = carry_out(arguments.command);
    let exit = ended.unwrap_or_else(|failure| {
        eprintln!("kvdyno: {failure}");
        failure.exit
    });
    ExitCode::from(exit as u8)
}

fn carry_out(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(arguments) => results::report(&arguments),
        Command::Rerun(arguments) => run::rerun(&arguments),
        Command::Merge(arguments) => results::merge(&arguments),
        Command::Stores => list::stores(),
        Command::Suites => list::suites(),
        Command::Check(arguments) => check::check(&arguments),
    }
}
