//! The most requests that a phase of a given duration may make: the room that is laid out for them.

use std::time::Duration;

use crate::suite::file::MOST;
use crate::workload::{Arrival, Course};

/// Records a second that no store exceeds: it bounds the requests of a phase that inserts for a time.
const MOST_A_SECOND: f64 = 5e6;
/// Least bound of the requests of a closed phase.
const LEAST_BOUND: u64 = 10_000_000;

/// Returns a number of requests that a phase cannot exceed in its duration.
pub(super) fn most_requests(arrival: &Arrival, duration: Duration) -> u64 {
    let rate = match arrival {
        Arrival::Closed => MOST_A_SECOND,
        Arrival::Constant { rate } => *rate,
        // Ten standard deviations above the mean, and some for small means.
        Arrival::Poisson { rate } => {
            let mean = rate * duration.as_secs_f64();
            return (mean + 10.0 * mean.sqrt() + 100.0).min(MOST as f64) as u64;
        }
        Arrival::Ramp { from, to, .. } => from.max(*to),
        Arrival::Curve { curve, poisson } => {
            let mean = Course::of(curve).due_by(duration.as_secs_f64());
            let spread = if *poisson { 10.0 * mean.sqrt() + 100.0 } else { 1.0 };
            return (mean + spread).min(MOST as f64) as u64;
        }
    };
    let requests = (rate * duration.as_secs_f64()).min(MOST as f64) as u64 + 1;
    if arrival.is_open() { requests } else { requests.max(LEAST_BOUND) }
}
