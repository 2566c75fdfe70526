//! An interval of the timeline: what one worker measured in it, and what all of them did together.

use super::clock::Nanos;
use super::series::{KindMeasure, Series};
use super::slots::Slot;

/// What one worker measured in one interval.
#[derive(Debug)]
pub struct Batch {
    /// Which worker.
    pub worker: usize,
    /// Which interval of the phase, from 0.
    pub interval: u32,
    /// Operations started.
    pub started: u64,
    /// Operations that fell due (open arrivals) or were started (closed).
    pub offered: u64,
    /// When the last operation of the batch ended; 0 if none did.
    pub last_end: Nanos,
    /// Sum of service times, ns.
    pub in_store: Nanos,
    /// Each series that had an operation.
    pub series: Vec<(Series, KindMeasure<u32>)>,
    /// What ended in each slot of 20 ms that had an operation, with its number in the phase; reads and
    /// writes. Only in a phase with faults.
    pub slots: Vec<(u32, [Slot; 2])>,
}

/// One interval of the timeline, all workers together. An operation belongs to the interval in
/// which it ended. Times are on [`super::now`]'s clock.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Number in the phase, from 0.
    pub index: u32,
    /// Begin.
    pub start: Nanos,
    /// End; the last one is cut where the phase ended.
    pub end: Nanos,
    /// Operations that fell due (open arrivals) or were started (closed).
    pub offered: u64,
    /// Operations started.
    pub started: u64,
    /// Operations that ended, in whatever way.
    pub completed: u64,
    /// Of these, the failed and the indeterminate.
    pub failed: u64,
    /// Due by the end of the interval and not started (open arrivals; else 0).
    pub backlog: u64,
    /// Each series that had an operation.
    pub series: Vec<(Series, KindMeasure<u32>)>,
}
