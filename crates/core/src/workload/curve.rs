//! A rate as a function of time, as a suite or the command line writes it: as plain data and as text. [`Course`]
//! calculates with it: how many requests are due by a time, and when each is due.

mod course;
mod text;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use course::Course;
pub use text::{CurveError, CurveText, MOST_POINTS};

/// Requests a second over the time of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "shape")]
pub enum Curve {
    /// Always the same.
    Constant {
        /// Requests a second.
        rate: f64,
    },
    /// Changes evenly from one rate to another, then stays.
    Ramp {
        /// Requests a second at the start.
        from: f64,
        /// Requests a second at the end.
        to: f64,
        /// Time that the change takes.
        over: Duration,
    },
    /// Changes at once from time to time, up or down, until it has come to its last rate, then stays.
    Steps {
        /// Requests a second at the start.
        from: f64,
        /// Requests a second of the last step.
        to: f64,
        /// Size of a step, requests a second; the last may be smaller.
        by: f64,
        /// Time that a step lasts.
        every: Duration,
    },
    /// Goes up and down as a sine does, for ever; begins with the least.
    Sine {
        /// Least requests a second.
        least: f64,
        /// Most requests a second.
        most: f64,
        /// Time from one least to the next.
        every: Duration,
    },
    /// A rate that rises for a short time again and again; each period ends with its spike.
    Spikes {
        /// Requests a second between spikes.
        base: f64,
        /// Requests a second of a spike.
        peak: f64,
        /// Time that a spike lasts; less than `every`.
        length: Duration,
        /// Time from the end of one spike to the end of the next.
        every: Duration,
    },
    /// Points of a file, with straight lines between them; the rate of the last point stays.
    Points {
        /// Name of the file.
        file: String,
        /// Pairs of seconds since the start and requests a second then, in order of time, the first at 0; two pairs
        /// at one time are a leap.
        points: Vec<(f64, f64)>,
    },
}

impl Curve {
    /// Returns the same curve with `factor` times the rate at any time.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Curve {
        let mut scaled = self.clone();
        match &mut scaled {
            Curve::Constant { rate } => *rate *= factor,
            Curve::Ramp { from, to, .. } => (*from, *to) = (*from * factor, *to * factor),
            Curve::Steps { from, to, by, .. } => {
                (*from, *to, *by) = (*from * factor, *to * factor, *by * factor);
            }
            Curve::Sine { least, most, .. } => (*least, *most) = (*least * factor, *most * factor),
            Curve::Spikes { base, peak, .. } => (*base, *peak) = (*base * factor, *peak * factor),
            Curve::Points { points, .. } => points.iter_mut().for_each(|point| point.1 *= factor),
        }
        scaled
    }

    /// Returns the highest rate that it ever has, requests a second.
    #[must_use]
    pub fn highest(&self) -> f64 {
        match self {
            Curve::Constant { rate } => *rate,
            Curve::Ramp { from, to, .. } | Curve::Steps { from, to, .. } => from.max(*to),
            Curve::Sine { most, .. } => *most,
            Curve::Spikes { base, peak, .. } => base.max(*peak),
            Curve::Points { points, .. } => points.iter().map(|point| point.1).fold(0.0, f64::max),
        }
    }

    /// Returns the rate that it comes to and keeps, requests a second; for a curve that repeats itself for ever, the
    /// mean rate.
    #[must_use]
    pub fn comes_to(&self) -> f64 {
        match self {
            Curve::Constant { rate } => *rate,
            Curve::Ramp { to, .. } | Curve::Steps { to, .. } => *to,
            Curve::Sine { least, most, .. } => (least + most) / 2.0,
            Curve::Spikes { base, peak, length, every } => {
                base + (peak - base) * (length.as_secs_f64() / every.as_secs_f64())
            }
            Curve::Points { points, .. } => points.last().map_or(0.0, |point| point.1),
        }
    }

    /// Returns the rate for a warm-up, requests a second: the first rate, or [`Curve::comes_to`] if the first is 0.
    #[must_use]
    pub fn begins_with(&self) -> f64 {
        let first = Course::of(self).rate_at(0.0);
        if first > 0.0 { first } else { self.comes_to() }
    }

    /// Returns the time from which on it keeps its rate, or repeats itself.
    #[must_use]
    pub fn settles_after(&self) -> Duration {
        match self {
            Curve::Constant { .. } | Curve::Sine { .. } | Curve::Spikes { .. } => Duration::ZERO,
            Curve::Ramp { over, .. } => *over,
            Curve::Steps { from, to, by, every } => {
                every.saturating_mul(((to - from).abs() / by).ceil() as u32)
            }
            Curve::Points { points, .. } => {
                Duration::from_secs_f64(points.last().map_or(0.0, |point| point.0))
            }
        }
    }
}
