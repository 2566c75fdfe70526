//! `kvdyno new FILE`: a suite with comments, to begin from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::exit::{Exit, Failure};

/// Text of the file; a test runs it.
const SUITE: &str = include_str!("new/suite.toml");

/// Writes the file; an existing file stays as it is.
///
/// # Errors
/// [`Failure`] if it cannot be written.
pub fn new(file: &Path) -> Result<Exit, Failure> {
    let shown = file.display();
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let mut written = opened.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::usage(format!("{shown} is there already; name another file"))
        }
        _ => Failure::usage(format!(
            "cannot write {shown}: {error}; name a file in a folder of yours"
        )),
    })?;
    let text = SUITE.replace("run FILE", &format!("run {shown}"));
    written
        .write_all(text.as_bytes())
        .map_err(|error| Failure::internal(format!("cannot write {shown}: {error}; make room")))?;
    say!("{shown} is a suite; look at it, change it, then");
    say!("  kvdyno run {shown} --store map: --dry-run    shows its plan, and runs nothing");
    say!(
        "  kvdyno run {shown} --store URL               runs it (`kvdyno stores` lists the stores)"
    );
    Ok(Exit::Done)
}
