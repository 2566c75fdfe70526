//! Asks before anything is done to nodes that are not kvdyno's own.

use std::io::{IsTerminal, Write};

use crate::exit::Failure;

/// Goes on only if the user has said so: by `--yes`, or by an answer at the terminal. `path` is the
/// file that describes the deployment, `doing` what is to be done to it.
///
/// # Errors
/// [`Failure`] if nobody says yes.
pub fn consent(path: &str, doing: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let question = format!("{path} is a deployment of your own; {doing}");
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!("{question}: add --yes to go on")));
    }
    eprint!("{question}. Go on? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    match read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
        true => Ok(()),
        false => Err(Failure::usage("cancelled, nothing was changed; answer y, or add --yes")),
    }
}
