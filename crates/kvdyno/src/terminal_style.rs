//! How much the terminal that tables are printed on can show.

use std::io::IsTerminal;

use kvdyno_report::terminal::Style;

/// Colour only on a terminal, and not where NO_COLOR (no-color.org) asks for none.
pub fn style_of_terminal() -> Style {
    let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    Style { color, ..Style::PLAIN }
}
