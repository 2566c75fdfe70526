//! The notice of deployments that a kvdyno which was killed has left behind: the next one says so, and offers to destroy
//! them.

use std::io::{IsTerminal, Write};

use super::environment::moment;
use super::record::{self, Record, RecordEntry};
use super::undoing::undo;

/// Tells of each deployment that was left behind. At a terminal the user may have it destroyed at once.
pub fn tell_of_the_forgotten() {
    for found in record::all().into_iter().filter(record::FoundRecord::is_left_behind) {
        let Some(record) = found.record else { continue };
        warn_user!("kvdyno: {}: `kvdyno deployment sweep` destroys it", sentence(&found.entry));
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            offer(record);
        }
    }
}

/// Returns what was left behind, in words.
pub fn sentence(entry: &RecordEntry) -> String {
    format!(
        "{} of {} was left behind at `{}`, and ends by itself at {} at the earliest",
        entry.tag,
        entry.file.display(),
        entry.stage.word(),
        moment(entry.expires)
    )
}

fn offer(record: Record) {
    eprint!("Destroy it now? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    if read.is_ok()
        && matches!(answer.trim(), "y" | "Y" | "yes")
        && let Err(failure) = undo(record, None)
    {
        failure.print();
    }
}
