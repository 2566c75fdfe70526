//! A line at the bottom of the terminal that is written anew again and again, and gone when it is no longer needed.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::terminal_style::is_dumb;

/// Least time between two drawings: who reads the line needs no more, and a slow terminal takes no more.
const BETWEEN: Duration = Duration::from_millis(100);
/// Characters that turn while something goes on.
const TURNS: [char; 4] = ['|', '/', '-', '\\'];
/// Back to the begin of the line, and nothing on it.
const ANEW: &str = "\r\x1b[2K";
/// Width of a terminal that does not tell.
const USUAL_WIDTH: usize = 80;

/// The line, on standard error.
pub struct StatusLine {
    shown: bool,
    begin: String,
    /// The last drawing, and how many there were.
    drawn: Option<(Instant, usize)>,
}

impl StatusLine {
    /// A line that begins with `begin`; silent if `quiet`, or if standard error is no terminal, or one that cannot write a
    /// line anew.
    pub fn new(begin: String, quiet: bool) -> StatusLine {
        let shown = !quiet && std::io::stderr().is_terminal() && !is_dumb();
        StatusLine { shown, begin, drawn: None }
    }

    /// Shows this behind its begin, if enough time has passed since the last.
    pub fn show(&mut self, message: &str) {
        let now = Instant::now();
        let count = match self.drawn {
            Some((last, _)) if now.duration_since(last) < BETWEEN => return,
            Some((_, count)) => count + 1,
            None => 0,
        };
        if !self.shown {
            return;
        }
        let told = terminal_size::terminal_size_of(std::io::stderr());
        let width = told.map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0));
        write(&format!("{ANEW}{}", line(&self.begin, message, count, width)));
        self.drawn = Some((now, count));
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            write(ANEW);
        }
    }
}

/// The line as it is shown, cut to one character less than the terminal is wide: a longer line could not be written anew.
fn line(begin: &str, message: &str, count: usize, width: usize) -> String {
    let whole = format!("{begin} {} {message}", TURNS[count % TURNS.len()]);
    whole.chars().take(width.saturating_sub(1)).collect()
}

/// Writes to the terminal. If it is gone, what a run must tell is lost with it elsewhere.
fn write(text: &str) {
    let mut terminal = std::io::stderr().lock();
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_the_terminal_and_turns() {
        assert_eq!(line("map run", "5 of 10", 0, 80), "map run | 5 of 10");
        assert_eq!(line("map run", "5 of 10", 5, 80), "map run / 5 of 10");
        assert_eq!(line("map run", "µ5 of 10", 0, 13), "map run | µ5");
        assert_eq!(line("map run", "5", 0, 0), "");
    }
}
