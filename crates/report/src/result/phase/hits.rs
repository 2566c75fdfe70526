//! Gets that found a record, apart from those that did not. A miss is answered sooner than a hit, so rates and latencies
//! are of gets that found something, unless none did.

use kvdyno_core::measure::Drained;
use kvdyno_core::workload::Kind;
use serde::{Deserialize, Serialize};

use super::{PhaseResult, SeriesResult, rate};

/// Gets that ended after the phase, and count in no rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DrainedGets {
    /// Number of gets that found nothing.
    pub found_nothing: u64,
    /// Records that they found.
    pub hits: u64,
    /// Records that they did not find.
    pub misses: u64,
}

impl DrainedGets {
    pub(super) fn of(kind: Kind, drained: Drained) -> DrainedGets {
        let Drained { records, found_nothing, missed, .. } = drained;
        match kind.gets() {
            true => DrainedGets { found_nothing, hits: records - missed, misses: missed },
            false => DrainedGets::default(),
        }
    }
}

impl SeriesResult {
    /// Returns the number of operations that succeeded, without gets that found nothing.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.ok.saturating_sub(self.found_nothing())
    }

    /// Returns the number of gets that succeeded and found nothing; a batch of gets counts if all of its records were
    /// missed. Other operations have none.
    #[must_use]
    pub fn found_nothing(&self) -> u64 {
        self.missed_service.as_ref().map_or(0, |latency| latency.count)
    }

    /// Returns the part of [`SeriesResult::found`] that ended before the phase did, from which its rate is computed.
    #[must_use]
    pub fn found_in_time(&self) -> u64 {
        self.in_time().saturating_sub(self.found_nothing_in_time())
    }

    /// Returns the part of [`SeriesResult::found_nothing`] that ended before the phase did.
    #[must_use]
    pub fn found_nothing_in_time(&self) -> u64 {
        self.found_nothing().saturating_sub(self.drained_gets.found_nothing)
    }

    /// Returns the records that gets found, and those that they did not find; none for other operations.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        match self.kind.gets() {
            true => (self.records.saturating_sub(self.missed), self.missed),
            false => (0, 0),
        }
    }

    /// Returns the share of the records asked for by gets that they found; `None` if they asked for none.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        ratio(self.hits_and_misses())
    }

    /// Computes all rates from the counts.
    pub(super) fn set_rates(&mut self, wall_ns: u64) {
        let (hits, misses) = self.hits_and_misses();
        let DrainedGets { hits: late_hits, misses: late_misses, .. } = self.drained_gets;
        let of_gets = |count| rate(count, wall_ns).filter(|_| self.kind.gets());
        let (hit_rate, miss_rate) =
            (of_gets(hits.saturating_sub(late_hits)), of_gets(misses.saturating_sub(late_misses)));
        (self.hit_rate, self.miss_rate) = (hit_rate, miss_rate);
        self.rate = rate(self.in_time(), wall_ns);
    }
}

impl PhaseResult {
    /// Returns the number of operations that succeeded, without gets that found nothing.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.series.iter().fold(0, |sum, series| sum.saturating_add(series.found()))
    }

    /// Returns true if the phase had nothing but gets that found nothing: then they are all that it measured.
    #[must_use]
    pub fn only_misses(&self) -> bool {
        self.found() == 0 && self.ok() > 0
    }

    /// Returns the operations that succeeded, a second, without gets that found nothing, unless there are no others.
    #[must_use]
    pub fn found_rate(&self) -> Option<f64> {
        let counted = match self.only_misses() {
            true => SeriesResult::in_time,
            false => SeriesResult::found_in_time,
        };
        let count = self.series.iter().map(counted).fold(0, u64::saturating_add);
        rate(count, self.wall_ns)
    }

    /// Returns the records that gets found, and those that they did not find.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        let all = self.series.iter().map(SeriesResult::hits_and_misses);
        all.fold((0, 0), |sum, (hits, misses)| {
            (sum.0.saturating_add(hits), sum.1.saturating_add(misses))
        })
    }

    /// Returns the share of the records asked for by gets that they found; `None` if they asked for none.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        ratio(self.hits_and_misses())
    }
}

fn ratio((hits, misses): (u64, u64)) -> Option<f64> {
    let all = hits.saturating_add(misses);
    (all > 0).then(|| hits as f64 / all as f64)
}

#[cfg(test)]
mod tests;
