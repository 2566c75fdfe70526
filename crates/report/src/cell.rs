//! A cell of a table: what it holds, before an output makes text of it. Terminal, page and Markdown write the same cells, and
//! tests hold what they hold.

use kvdyno_core::evidence::EvidenceStatus;
use kvdyno_core::ground::numbers::{bytes_text, duration_text, grouped, significant};
use kvdyno_core::store::FigureUnit;

use crate::result::{Level, StretchResult, Undecided};

/// Content of a cell. Times are ns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// There is none, or too little to tell it.
    Nothing,
    /// There cannot be one.
    Blank,
    /// Words.
    Text(String),
    /// Status of a claim.
    Status(EvidenceStatus),
    /// Level of a verdict, `None` before there is one, and its words.
    Level(Option<Level>, String),
    /// Folder of a result, whose page stands in it.
    Report(String),
    /// Latency in the unit of its table.
    Latency(f64, LatencyUnit),
    /// Number that names something.
    Name(f64),
    /// Part of a whole, rounded down: all of them is all of them, 99.996 % is not 100.
    Hits(f64),
    /// Figure of a store's driver, in its unit; `None` if it is not known.
    Figure(Option<f64>, FigureUnit),
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
    /// Length of time.
    Time(u64),
    /// The least that something took.
    AtLeast(u64),
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
    /// Word for no effect at all.
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
            Cell::Nothing => "–".to_owned(),
            Cell::Blank => String::new(),
            Cell::Text(text) | Cell::Report(text) | Cell::Level(_, text) => text.clone(),
            Cell::Status(status) => status.name().to_owned(),
            Cell::Latency(nanos, unit) => unit.text(*nanos),
            Cell::Name(number) => format!("{number:.0}"),
            Cell::Hits(share) => format!("{:.2}%", (share * 1e4).floor() / 1e2),
            Cell::Figure(value, unit) => {
                value.map_or("unknown".to_owned(), |value| figure(value, *unit))
            }
            Cell::Count(count) => grouped(*count as f64),
            Cell::Rate(rate) => significant(*rate),
            Cell::WholeRate(rate) => grouped(*rate),
            Cell::Share(share, digits) => format!("{:.digits$} %", share * 100.0),
            Cell::Bytes(bytes) => bytes_text(*bytes as f64),
            Cell::Time(0) => "0".to_owned(),
            Cell::Time(ns) => duration_text(*ns as f64),
            Cell::AtLeast(ns) => format!("≥ {}", duration_text(*ns as f64)),
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
}

fn figure(value: f64, unit: FigureUnit) -> String {
    match unit {
        FigureUnit::Share => format!("{} %", significant(value * 100.0)),
        FigureUnit::Count | FigureUnit::Ratio => significant(value),
        FigureUnit::Seconds => duration_text(value * 1e9),
    }
}

/// Unit of the latencies in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyUnit {
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
}

impl LatencyUnit {
    /// Returns the name of the unit.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LatencyUnit::Micros => "µs",
            LatencyUnit::Millis => "ms",
        }
    }

    /// Returns a latency in this unit with three or more significant digits.
    #[must_use]
    pub fn text(self, nanos: f64) -> String {
        significant(match self {
            LatencyUnit::Micros => nanos / 1e3,
            LatencyUnit::Millis => nanos / 1e6,
        })
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
            (Cell::of(None, Cell::Count), "–"),
            (Cell::Status(EvidenceStatus::NothingToShow), "nothing to show"),
            (Cell::Latency(1_234_000.0, LatencyUnit::Micros), "1,234"),
            (Cell::Hits(0.99996), "99.99%"),
            (Cell::Figure(Some(0.932), FigureUnit::Share), "93.2 %"),
            (Cell::Figure(Some(12_345.0), FigureUnit::Count), "12,345"),
            (Cell::Figure(Some(0.002), FigureUnit::Seconds), "2.00 ms"),
            (Cell::Figure(None, FigureUnit::Ratio), "unknown"),
            (Cell::AtLeast(800_000), "≥ 800 µs"),
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
        }
    }
}
