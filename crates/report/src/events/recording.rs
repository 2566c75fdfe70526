//! Writes events to a file, one JSON object a line, and folds them into a result when they are read again.

use std::io::{self, BufRead, Write};

use super::Event;
use super::fold::{Fold, FoldError};
use super::stream::Subscriber;
use crate::result::RunResult;

/// Name of the events in the folder of a result.
pub const EVENTS_FILE: &str = "events.jsonl";

/// Errors of reading recorded events.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("cannot read the events: {0}; name the events.jsonl of a result")]
    Unreadable(#[from] io::Error),
    /// A line is no event that this kvdyno knows.
    #[error("line {line} of the events: {problem}; read them with the kvdyno that wrote them")]
    Malformed {
        /// Number of the line, from 1.
        line: usize,
        /// Problem with the line.
        problem: String,
    },
    /// The events are not those of a run.
    #[error("line {line} of the events: {source}")]
    Unfounded {
        /// Number of the line, from 1.
        line: usize,
        /// Problem with the event.
        source: FoldError,
    },
    /// The file has no events.
    #[error("there are no events: name the events.jsonl of a result")]
    Empty,
}

/// Subscriber that writes every event to a file.
#[derive(Debug)]
pub struct Recording<W> {
    to: W,
    /// Error that stopped it, if any.
    failed: Option<io::Error>,
}

impl<W: Write> Recording<W> {
    /// Creates a recording that writes to `to`.
    pub fn new(to: W) -> Recording<W> {
        Recording { to, failed: None }
    }

    /// Flushes all that was written.
    ///
    /// # Errors
    /// The error for which the file does not hold all events.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.to.flush(),
        }
    }

    fn write(&mut self, event: &Event) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, event)?;
        self.to.write_all(b"\n")
    }
}

impl<W: Write + Send> Subscriber for Recording<W> {
    fn on_event(&mut self, event: &Event) {
        if self.failed.is_none() {
            self.failed = self.write(event).err();
        }
    }
}

/// Reads recorded events, and folds them into their result.
///
/// # Errors
/// [`RecordingError`] if they are not those of a run: an event that this kvdyno does not know may matter.
pub fn replay(events: impl BufRead) -> Result<RunResult, RecordingError> {
    let mut fold = Fold::default();
    for (index, text) in events.lines().enumerate() {
        let line = index + 1;
        let event: Event = serde_json::from_str(&text?)
            .map_err(|error| RecordingError::Malformed { line, problem: error.to_string() })?;
        fold.apply(&event).map_err(|source| RecordingError::Unfounded { line, source })?;
    }
    fold.result().cloned().ok_or(RecordingError::Empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn recorded() -> Vec<u8> {
        let mut recording = Recording::new(Vec::new());
        sample::events().iter().for_each(|event| recording.on_event(event));
        assert!(recording.failed.is_none());
        recording.to
    }

    #[test]
    fn recorded_events_come_to_the_same_result() {
        let text = recorded();
        assert_eq!(replay(text.as_slice()).unwrap(), sample::two_stores());
        let read: Vec<Event> =
            text.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        assert_eq!(read, sample::events(), "with every histogram");
    }

    #[test]
    fn what_is_not_known_or_missing_is_an_error_with_its_line() {
        let text = String::from_utf8(recorded()).unwrap();
        let with = |line: &str| text.replacen('\n', &format!("\n{line}\n"), 1);
        let error = replay(with("{\"event\":\"earthquake\"}").as_bytes()).unwrap_err().to_string();
        assert!(
            error.starts_with("line 2 of the events: ") && error.contains("earthquake"),
            "{error}"
        );
        let headless = text.split_once('\n').unwrap().1;
        assert!(replay(headless.as_bytes()).unwrap_err().to_string().starts_with("line 1 of"));
        assert!(matches!(replay(&b""[..]), Err(RecordingError::Empty)));
    }
}
