//! How much the terminal that tables are printed on can show.

use std::io::IsTerminal;

use kvdyno_report::terminal::Style;

/// Widest text: longer lines are hard to read.
const WIDEST: usize = 140;
/// Narrowest text: a table wants so much.
const NARROWEST: usize = 60;

/// Colour only on a terminal, and not where NO_COLOR (no-color.org) asks for none; as wide as the terminal is.
pub fn style_of_terminal(verbose: bool) -> Style {
    let shown = std::io::stdout().is_terminal();
    let color = shown && std::env::var_os("NO_COLOR").is_none();
    let told = terminal_size::terminal_size_of(std::io::stdout());
    let width = told.map_or(Style::PLAIN.width, |(width, _)| usize::from(width.0));
    Style { color, width: width.clamp(NARROWEST, WIDEST), whole: !shown, verbose }
}
