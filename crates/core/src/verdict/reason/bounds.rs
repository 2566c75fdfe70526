//! What a figure counts, and from where on it speaks against a measurement.

use crate::verdict::Level;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A part of a whole; 1 is all of it.
    Share,
    /// A number of things.
    Count,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// The word used in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unit::Share => "share",
            Unit::Count => "count",
            Unit::Seconds => "seconds",
        }
    }
}

/// From where on a figure counts as a reason. Each bound itself is still good.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Figures below these speak against the measurement; else figures above them do.
    pub below: bool,
    /// Worth telling, and no reason to doubt.
    pub remark: Option<f64>,
    /// Suspect from here on.
    pub suspect: Option<f64>,
    /// Invalid from here on.
    pub invalid: Option<f64>,
}

impl Bounds {
    pub(super) fn above(suspect: f64, invalid: f64) -> Bounds {
        Bounds { suspect: Some(suspect), invalid: Some(invalid), ..Bounds::default() }
    }

    pub(super) fn suspect_above(bound: f64) -> Bounds {
        Bounds { suspect: Some(bound), ..Bounds::default() }
    }

    pub(super) fn suspect_below(bound: f64) -> Bounds {
        Bounds { below: true, ..Bounds::suspect_above(bound) }
    }

    /// The worst level whose bound the figure has crossed, with that bound.
    pub(super) fn crossed_by(&self, figure: f64) -> Option<(Level, f64)> {
        [
            (Level::Invalid, self.invalid),
            (Level::Suspect, self.suspect),
            (Level::Valid, self.remark),
        ]
        .into_iter()
        .filter_map(|(level, bound)| Some((level, bound?)))
        .find(|&(_, bound)| if self.below { figure < bound } else { figure > bound })
    }
}
