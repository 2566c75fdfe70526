//! Record of a reason: all that is known of it beside its sentence, in one value, of which results, reports and
//! searches read their part.

use crate::verdict::Level;

/// Record of a reason: everything that is known of it but its sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReasonRecord {
    /// Stable name in results, suites and the documentation.
    pub id: &'static str,
    /// Possible cause.
    pub cause: Cause,
    /// True if it delays requests for a while: conditions that are missed beside it may be missed for this reason, and
    /// be met the next time.
    pub excuses_store: bool,
    /// Measured figure, in its unit; held against the bounds.
    pub figure: f64,
    /// Unit of the figure.
    pub unit: Unit,
    /// Bounds from which on the figure speaks against the measurement.
    pub bounds: Bounds,
    /// Least number of samples that it must rest on; below it the reason is left out.
    pub least: Least,
    /// Advice on the next step, in one sentence without a stop.
    pub advice: &'static str,
}

impl ReasonRecord {
    /// Creates the record of a reason that rests on facts, which are not estimated, without advice.
    pub(super) const fn new(
        id: &'static str,
        cause: Cause,
        unit: Unit,
        bounds: Bounds,
    ) -> ReasonRecord {
        let least = Least { number: 0, of: SampleUnit::Facts };
        ReasonRecord {
            id,
            cause,
            excuses_store: false,
            figure: 0.0,
            unit,
            bounds,
            least,
            advice: "",
        }
    }

    /// Sets the least number of samples that it must rest on.
    pub(super) const fn on(self, number: u64, of: SampleUnit) -> ReasonRecord {
        ReasonRecord { least: Least { number, of }, ..self }
    }

    pub(super) const fn excusing_store(self) -> ReasonRecord {
        ReasonRecord { excuses_store: true, ..self }
    }

    pub(super) const fn advising(self, advice: &'static str) -> ReasonRecord {
        ReasonRecord { advice, ..self }
    }

    /// Sets the figure that was measured.
    pub(super) fn at(self, figure: f64) -> ReasonRecord {
        ReasonRecord { figure, ..self }
    }

    /// Sets the cause that was found.
    pub(super) fn caused_by(self, cause: Cause) -> ReasonRecord {
        ReasonRecord { cause, ..self }
    }

    /// Returns the worst level whose bound the figure has crossed, with that bound; `None` if the figure is good: then
    /// it is no reason at all.
    #[must_use]
    pub fn crossed(&self) -> Option<(Level, f64)> {
        self.bounds.crossed_by(self.figure)
    }
}

/// Possible cause of what speaks against a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The store.
    Store,
    /// kvdyno itself.
    Client,
    /// The machine that kvdyno runs on, and other work on it.
    Machine,
    /// Processes that carry the load, and their machines.
    Agents,
    /// Faults that the run injected.
    Faults,
    /// The plan that the user asked for.
    Plan,
    /// A user who intervened, or another run.
    User,
    /// A cause that is not known.
    Unknown,
}

impl Cause {
    /// Returns the word used in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cause::Store => "store",
            Cause::Client => "client",
            Cause::Machine => "machine",
            Cause::Agents => "agents",
            Cause::Faults => "faults",
            Cause::Plan => "plan",
            Cause::User => "user",
            Cause::Unknown => "unknown",
        }
    }
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Part of a whole; 1 is all of it.
    Share,
    /// Number of things.
    Count,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Returns the word used in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unit::Share => "share",
            Unit::Count => "count",
            Unit::Seconds => "seconds",
        }
    }
}

/// Bounds beyond which a figure counts as a reason. The bound itself is still good.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// True if figures below the bounds speak against the measurement; else figures above them do.
    pub below: bool,
    /// Bound beyond which the figure is worth telling, though no reason to doubt.
    pub remark: Option<f64>,
    /// Bound beyond which the measurement is suspect.
    pub suspect: Option<f64>,
    /// Bound beyond which the measurement is invalid.
    pub invalid: Option<f64>,
}

impl Bounds {
    /// No bound at all.
    pub(super) const NONE: Bounds =
        Bounds { below: false, remark: None, suspect: None, invalid: None };

    pub(super) const fn above(suspect: f64, invalid: f64) -> Bounds {
        Bounds { suspect: Some(suspect), invalid: Some(invalid), ..Bounds::NONE }
    }

    pub(super) const fn invalid_above(bound: f64) -> Bounds {
        Bounds { invalid: Some(bound), ..Bounds::NONE }
    }

    pub(super) const fn suspect_above(bound: f64) -> Bounds {
        Bounds { suspect: Some(bound), ..Bounds::NONE }
    }

    pub(super) const fn suspect_below(bound: f64) -> Bounds {
        Bounds { below: true, ..Bounds::suspect_above(bound) }
    }

    /// Returns the worst level whose bound the figure has crossed, with that bound.
    fn crossed_by(&self, figure: f64) -> Option<(Level, f64)> {
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

/// Unit of the samples behind a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleUnit {
    /// Things that happened, each counted, or what the plan and the build say: nothing is estimated.
    Facts,
    /// Operations that ended.
    Operations,
    /// Requests that fell due.
    Due,
    /// Requests that a free client sent when they fell due, and answers to requests that had due times:
    /// whichever is less.
    Sends,
    /// Whole intervals of the timeline.
    Intervals,
    /// Ticks of the clock by which the system shares a processor's time out, 10 ms as a rule.
    Ticks,
    /// Milliseconds of a client thread's life, whose times the system counts in nanoseconds.
    ThreadTime,
}

impl SampleUnit {
    /// Returns its words in a sentence, after a number.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SampleUnit::Facts => "facts",
            SampleUnit::Operations => "operations",
            SampleUnit::Due => "requests due",
            SampleUnit::Sends => "timed sends",
            SampleUnit::Intervals => "whole intervals",
            SampleUnit::Ticks => "clock ticks",
            SampleUnit::ThreadTime => "ms of a client thread",
        }
    }
}

/// Least number of samples that a reason must rest on, because a share of too few says nothing. For example, one tick
/// of a clock that ticks a hundred times a second is half of a phase of 20 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// Number of samples.
    pub number: u64,
    /// Unit of the samples.
    pub of: SampleUnit,
}
