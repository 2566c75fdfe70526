//! Colour and width of the terminal on which tables are printed.

use std::ffi::OsStr;
use std::io::IsTerminal;

use kvdyno_report::terminal::Style;

/// Widest text, columns: longer lines are hard to read.
const WIDEST: usize = 140;
/// Narrowest text, columns: a table needs so many.
const NARROWEST: usize = 60;

/// Returns the style of the terminal: colour only on a terminal that knows colours, and not if NO_COLOR
/// (no-color.org) asks for none; as wide as the terminal is.
pub fn style_of_terminal(verbose: bool) -> Style {
    let shown = std::io::stdout().is_terminal();
    let color = shown && std::env::var_os("NO_COLOR").is_none() && !is_dumb();
    let told = terminal_size::terminal_size_of(std::io::stdout());
    let width = told.map_or(Style::PLAIN.width, |(width, _)| usize::from(width.0));
    Style { color, width: width.clamp(NARROWEST, WIDEST), whole: !shown, verbose }
}

/// Returns true if the terminal declares that it only prints: such a terminal shows escape sequences as text.
pub fn is_dumb() -> bool {
    knows_nothing(std::env::var_os("TERM").as_deref())
}

fn knows_nothing(term: Option<&OsStr>) -> bool {
    term.is_some_and(|term| term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_gets_no_escape_sequences() {
        assert!(knows_nothing(Some(OsStr::new("dumb"))));
        for term in [None, Some(OsStr::new("xterm-256color")), Some(OsStr::new(""))] {
            assert!(!knows_nothing(term), "{term:?}");
        }
    }
}
