//! `kvdyno stores` and `kvdyno suites`.

use kvdyno_core::suite::builtins;
use kvdyno_stores::registry;

use crate::exit::{Exit, Failure};

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

/// Lists the built-in suites.
///
/// # Errors
/// None; the type is that of all commands.
pub fn suites() -> Result<Exit, Failure> {
    let longest = builtins().iter().map(|suite| suite.name.len()).max().unwrap_or(0);
    for builtin in builtins() {
        let title = builtin.suite().map_err(Failure::internal)?.title().to_owned();
        say!("{:longest$}  {title}", builtin.name);
    }
    say!("\nkvdyno run NAME, or a suite file, or ycsb:FILE; docs/SUITES.md has the format");
    Ok(Exit::Done)
}
