//! Reads the end of a server's log, which tells why it does not serve: one line for an error's message. Where a program in
//! Java died, hundreds of lines say how it came there; they are left out, so that those that say why are seen.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Number of bytes that an error shows.
const SHOWN: usize = 600;
/// Number of bytes of the log that are read for them.
const READ: u64 = 32 << 10;

/// Returns the last lines of a log that say something, one after the other.
pub fn of(log: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(READ)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(last_words(&String::from_utf8_lossy(&bytes)))
    };
    read().unwrap_or_else(|error| format!("(no log: {error})"))
}

fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !is_frame(line)).collect();
    let whole = lines.join(" | ");
    let from = whole.len().saturating_sub(SHOWN);
    let from = (from..whole.len()).find(|at| whole.is_char_boundary(*at)).unwrap_or(whole.len());
    whole[from..].to_owned()
}

/// Returns true for a line that tells how a program came to its end: `at java.lang.Thread.run(Thread.java:840)`, `... 12
/// common frames omitted`.
fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    let place = line.strip_prefix("at ").is_some_and(|place| place.ends_with(')'));
    place || (line.starts_with("... ") && (line.ends_with(" more") || line.ends_with(" omitted")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_server_ended_is_told_and_not_how_it_came_there() {
        let mut log = "INFO starting\nERROR Exiting due to error while processing commit log during initialization.\n\
                       org.apache.cassandra.CommitLogReadException: Mutation checksum failure at 8388 in CommitLog-8.log\n"
            .to_owned();
        for at in 0..40 {
            log +=
                &format!("\tat org.apache.cassandra.db.commitlog.Reader.read(Reader.java:{at})\n");
        }
        log += "\t... 3 common frames omitted\nCaused by: java.io.IOException: zeros\n\tat a.B.c(B.java)\n\t... 12 more\n";
        let end = last_words(&log);
        assert!(
            end.contains(
                "Mutation checksum failure at 8388 in CommitLog-8.log | Caused by: java.io"
            ),
            "{end}"
        );
        assert!(!end.contains("Reader.java") && end.ends_with("zeros"), "{end}");
    }

    #[test]
    fn a_long_log_is_cut_at_a_letter_and_a_missing_one_said() {
        let end = last_words(&"é".repeat(2_000));
        assert!(end.len() <= SHOWN && end.len() > SHOWN - 4 && end.starts_with('é'));
        assert!(of(Path::new("no-such-folder/log")).starts_with("(no log: "));
    }
}
