//! `kvdyno stores`, `kvdyno suites`, `kvdyno completions` and `kvdyno man`.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use kvdyno_core::ground::hints;
use kvdyno_core::suite::{builtin, builtins};
use kvdyno_stores::registry;

use crate::args::{Arguments, SuitesArguments, SuitesCommand};
use crate::exit::{Exit, Failure};
use crate::say::printed;

/// Lists the stores of this build, and those that it was built without.
///
/// # Errors
/// None; the type is that of all commands.
pub fn stores() -> Result<Exit, Failure> {
    for entry in registry::stores() {
        say!("{}  {}", entry.schemes.join(", "), entry.summary);
        say!("  example      {}", entry.example);
        say!("  operations   {}", entry.operations);
        say!("  durability   {}", entry.durability);
        say!("  consistency  {}", entry.consistency);
        for (name, meaning) in entry.options {
            say!("  ?{name}={}{meaning}", " ".repeat(12usize.saturating_sub(name.len())));
        }
        say!("");
    }
    for left_out in registry::left_out() {
        say!(
            "{}  left out of this build; build with --features {}",
            left_out.scheme,
            left_out.feature
        );
    }
    Ok(Exit::Done)
}

/// Lists the built-in suites, or shows one.
///
/// # Errors
/// [`Failure`] if there is none of that name.
pub fn suites(arguments: &SuitesArguments) -> Result<Exit, Failure> {
    if let Some(SuitesCommand::Show { name }) = &arguments.command {
        return show(name);
    }
    let longest = builtins().iter().map(|suite| suite.name.len()).max().unwrap_or(0);
    for builtin in builtins() {
        let title = builtin.suite().map_err(Failure::internal)?.title().to_owned();
        say!("{:longest$}  {title}", builtin.name);
    }
    say!("\nkvdyno run NAME, or a suite file, or ycsb:FILE; docs/SUITES.md has the format");
    say!(
        "kvdyno suites show NAME prints one; kvdyno new FILE writes one of your own to begin from"
    );
    Ok(Exit::Done)
}

fn show(name: &str) -> Result<Exit, Failure> {
    let Some(builtin) = builtin(name) else {
        let names: Vec<&str> = builtins().iter().map(|suite| suite.name).collect();
        let hint = hints::hint(name, &names);
        let line = format!("no suite is called `{name}`: {hint} (`kvdyno suites` lists them)");
        return Err(Failure::usage(line));
    };
    say!("{}", builtin.text.trim_end());
    Ok(Exit::Done)
}

/// Prints the completions of a shell.
///
/// # Errors
/// None; the type is that of all commands.
pub fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "kvdyno", &mut script);
    printed(std::io::stdout().write_all(&script));
    Ok(Exit::Done)
}

/// Writes the manual pages, from the definitions that `--help` shows.
///
/// # Errors
/// If they cannot be written.
pub fn man(folder: &Path) -> Result<Exit, Failure> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder))
        .map_err(|error| {
            let shown = folder.display();
            let line = format!(
                "cannot write the manual pages to {shown}: {error}; name a folder of yours"
            );
            Failure::usage(line)
        })?;
    Ok(Exit::Done)
}
