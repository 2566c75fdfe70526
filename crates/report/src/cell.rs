//! A cell of a table: what it holds, before an output makes text of it. Terminal, page and Markdown write the same cells, and
//! tests hold what they hold.

use kvdyno_core::evidence::EvidenceStatus;
use kvdyno_core::ground::numbers::{bytes_text, duration_text, grouped, significant};

use crate::evidence;
use crate::result::{StretchResult, Undecided};
use crate::terminal::Style;

/// What a cell holds. Times are ns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// There is none.
    Nothing,
    /// Words.
    Text(String),
    /// Status of a claim.
    Status(EvidenceStatus),
    /// Number of things.
    Count(u64),
    /// Operations a second, to three digits or more.
    Rate(f64),
    /// The same, whole ones.
    WholeRate(f64),
    /// Part of a whole, 1 is all, with so many digits of a percentage.
    Share(f64, usize),
    /// Size in memory.
    Bytes(u64),
    /// How long something took.
    Time(u64),
    /// When something was, since the phase began.
    Moment(u64),
    /// When something was as before.
    Recovery(Recovery),
    /// Stretches after a recovery, and the longest of them.
    Dips(u64, StretchResult),
}

/// A return to what was before, in ns since a fault's begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// Why it is not decided.
    pub undecided: Option<Undecided>,
    /// 0 if nothing was otherwise than before; `None` if it was not seen.
    pub after_ns: Option<u64>,
    /// The last time at which it could have been seen.
    pub watched_ns: u64,
    /// What nothing at all is called.
    pub unaffected: &'static str,
}

impl Cell {
    /// A cell for what may be missing.
    pub fn of<T>(value: Option<T>, cell: impl Fn(T) -> Cell) -> Cell {
        value.map_or(Cell::Nothing, cell)
    }

    /// Returns it as text, without colour.
    pub fn text(&self) -> String {
        match self {
            Cell::Nothing => "-".to_owned(),
            Cell::Text(text) => text.clone(),
            Cell::Status(status) => status.name().to_owned(),
            Cell::Count(count) => grouped(*count as f64),
            Cell::Rate(rate) => significant(*rate),
            Cell::WholeRate(rate) => grouped(*rate),
            Cell::Share(share, digits) => format!("{:.digits$} %", share * 100.0),
            Cell::Bytes(bytes) => bytes_text(*bytes as f64),
            Cell::Time(0) => "0".to_owned(),
            Cell::Time(ns) => duration_text(*ns as f64),
            Cell::Moment(ns) => format!("{:.3} s", *ns as f64 / 1e9),
            Cell::Recovery(recovery) => match (recovery.undecided, recovery.after_ns) {
                (Some(_), _) => "not decided".to_owned(),
                (None, Some(0)) => recovery.unaffected.to_owned(),
                (None, Some(after)) => duration_text(after as f64),
                (None, None) => format!("> {}", duration_text(recovery.watched_ns as f64)),
            },
            Cell::Dips(count, longest) => {
                format!("{count} (≤ {})", duration_text(longest.length_ns as f64))
            }
        }
    }

    /// Returns it as text for a terminal: a status in capitals, with its colour.
    pub fn painted(&self, style: Style) -> String {
        let Cell::Status(status) = self else { return self.text() };
        let word = status.name().to_uppercase();
        evidence::level(*status).map_or(word.clone(), |level| style.rated(level, &word))
    }

    /// Returns the class of a cell of a page, by which it is coloured; empty where nothing is.
    pub fn class(&self) -> String {
        match self {
            Cell::Status(status) => status.name().replace(' ', "-"),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_cell_has_its_text() {
        let recovery = |undecided, after_ns| {
            let (watched_ns, unaffected) = (10_000_000_000, "unaffected");
            Cell::Recovery(Recovery { undecided, after_ns, watched_ns, unaffected })
        };
        let longest = StretchResult { from_ns: 1, length_ns: 1_500_000_000 };
        for (cell, text) in [
            (Cell::of(None, Cell::Count), "-"),
            (Cell::of(Some(48_211), Cell::Count), "48,211"),
            (Cell::Rate(1_000.0), "1,000"),
            (Cell::Share(0.501, 1), "50.1 %"),
            (Cell::Time(0), "0"),
            (Cell::Moment(10_000_000_000), "10.000 s"),
            (recovery(Some(Undecided::TooVaried), Some(7)), "not decided"),
            (recovery(None, Some(0)), "unaffected"),
            (recovery(None, Some(2_000_000_000)), "2.00 s"),
            (recovery(None, None), "> 10.0 s"),
            (Cell::Dips(3, longest), "3 (≤ 1.50 s)"),
        ] {
            assert_eq!(cell.text(), text);
            assert_eq!(
                (cell.painted(Style::PLAIN), cell.class()),
                (text.to_owned(), String::new())
            );
        }
        let status = Cell::Status(EvidenceStatus::NothingToShow);
        let told = (status.text(), status.painted(Style::PLAIN), status.class());
        let words = ["nothing to show", "NOTHING TO SHOW", "nothing-to-show"].map(str::to_owned);
        assert_eq!(told, words.into());
    }
}
