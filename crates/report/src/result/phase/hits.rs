//! Gets that found a record and gets that did not, told apart. A miss is sooner answered than a hit, so
//! rates and latencies are of what found something, unless nothing did.

use kvdyno_core::measure::Drained;
use kvdyno_core::workload::Kind;
use serde::{Deserialize, Serialize};

use super::{PhaseResult, SeriesResult, rate};

/// Gets that ended after the phase, and are in no rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DrainedGets {
    /// Those that found nothing.
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
    /// Operations that succeeded, without gets that found nothing.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.ok.saturating_sub(self.found_nothing())
    }

    /// Gets that succeeded and found nothing; a batch of gets if all of its records were missed. Other
    /// operations have none.
    #[must_use]
    pub fn found_nothing(&self) -> u64 {
        self.missed_service.as_ref().map_or(0, |latency| latency.count)
    }

    /// As [`SeriesResult::found`], of what ended before the phase did: what its rate is made of.
    #[must_use]
    pub fn found_in_time(&self) -> u64 {
        self.in_time().saturating_sub(self.found_nothing_in_time())
    }

    /// As [`SeriesResult::found_nothing`], of what ended before the phase did.
    #[must_use]
    pub fn found_nothing_in_time(&self) -> u64 {
        self.found_nothing().saturating_sub(self.drained_gets.found_nothing)
    }

    /// Records that gets found, and that they did not find; none of other operations.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        match self.kind.gets() {
            true => (self.records.saturating_sub(self.missed), self.missed),
            false => (0, 0),
        }
    }

    /// Share of the records asked for by gets that they found; `None` if there was none.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        ratio(self.hits_and_misses())
    }

    /// Sets the rates, all of them, from the counts.
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
    /// Operations that succeeded, without gets that found nothing.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.series.iter().fold(0, |sum, series| sum.saturating_add(series.found()))
    }

    /// Its gets found nothing, and it did nothing else: they are all that it measured.
    #[must_use]
    pub fn only_misses(&self) -> bool {
        self.found() == 0 && self.ok() > 0
    }

    /// Operations that succeeded a second, without gets that found nothing, unless they are all there is.
    #[must_use]
    pub fn found_rate(&self) -> Option<f64> {
        let counted = match self.only_misses() {
            true => SeriesResult::in_time,
            false => SeriesResult::found_in_time,
        };
        let count = self.series.iter().map(counted).fold(0, u64::saturating_add);
        rate(count, self.wall_ns)
    }

    /// Records that gets found, and that they did not find.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        let all = self.series.iter().map(SeriesResult::hits_and_misses);
        all.fold((0, 0), |sum, (hits, misses)| {
            (sum.0.saturating_add(hits), sum.1.saturating_add(misses))
        })
    }

    /// Share of the records asked for by gets that they found; `None` if there was none.
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
