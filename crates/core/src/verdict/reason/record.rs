//! What is known of a reason beside its sentence: one value, of which results, reports and searches read their part.

use crate::verdict::Level;

/// Everything that is told of a reason but its sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReasonRecord {
    /// Stable name in results, suites and the documentation.
    pub id: &'static str,
    /// Who may have caused it.
    pub cause: Cause,
    /// It delays requests for a while, so that what is missed beside it may be its doing, and may be met the next time.
    pub excuses_store: bool,
    /// What was measured, in its unit; held against the bounds.
    pub figure: f64,
    /// What the figure counts.
    pub unit: Unit,
    /// From where on the figure speaks against the measurement.
    pub bounds: Bounds,
    /// What it must rest on: below it nothing is said.
    pub least: Least,
    /// The next step to take, in one sentence without a stop.
    pub advice: &'static str,
}

impl ReasonRecord {
    /// A reason of facts, which nobody estimates, without advice.
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

    /// Takes what it must rest on.
    pub(super) const fn on(self, number: u64, of: SampleUnit) -> ReasonRecord {
        ReasonRecord { least: Least { number, of }, ..self }
    }

    pub(super) const fn excusing_store(self) -> ReasonRecord {
        ReasonRecord { excuses_store: true, ..self }
    }

    pub(super) const fn advising(self, advice: &'static str) -> ReasonRecord {
        ReasonRecord { advice, ..self }
    }

    /// Takes what was measured.
    pub(super) fn at(self, figure: f64) -> ReasonRecord {
        ReasonRecord { figure, ..self }
    }

    /// Takes the cause that was found.
    pub(super) fn caused_by(self, cause: Cause) -> ReasonRecord {
        ReasonRecord { cause, ..self }
    }

    /// Returns the worst level whose bound the figure has crossed, with that bound; `None` if the figure is good, which is then
    /// no reason at all.
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
    /// The machine that kvdyno runs on, and what else it does.
    Machine,
    /// Processes that carry the load, and their machines.
    Agents,
    /// Faults that the run injected.
    Faults,
    /// What was asked for.
    Plan,
    /// Somebody who intervened, or another run.
    User,
    /// It is not known.
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

    /// The worst level whose bound the figure has crossed, with that bound.
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
    /// In a sentence, after a number.
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

/// The least that a reason rests on: a share of too little is a share of nothing. One tick of a clock that ticks a hundred times
/// a second is half of a phase of 20 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// How much.
    pub number: u64,
    /// Of what.
    pub of: SampleUnit,
}
