//! Counts what the clients of a cache notice and the load cannot: hits and misses, how long the cache and the store take for
//! a get each, and requests to the cache that failed.

use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use kvdyno_core::measure::{LONGEST, Nanos, latency_histogram};
use kvdyno_core::store::{Figure, FigureUnit, RequestError};

/// Counts of one client, or of all of them.
#[derive(Debug, Default)]
pub(super) struct Counts {
    hits: u64,
    misses: u64,
    /// Requests to the cache that failed, and what the first of them said.
    failed: u64,
    first_failure: Option<String>,
    /// Service times of gets by the cache, and by the store below, in ns; `None` until first used.
    cache: Option<Histogram<u64>>,
    store: Option<Histogram<u64>>,
}

impl Counts {
    /// Counts a get that the cache has answered; `found` is `None` if it failed.
    pub(super) fn cache_get(&mut self, took: Nanos, found: Option<bool>) {
        self.cache_batch(took, 1, found.map(usize::from));
    }

    /// Counts a get of `keys` records by the cache, which had `hits` of them; `None`: it failed.
    pub(super) fn cache_batch(&mut self, took: Nanos, keys: usize, hits: Option<usize>) {
        record(&mut self.cache, took);
        let hits = hits.unwrap_or(0).min(keys);
        self.hits += hits as u64;
        self.misses += (keys - hits) as u64;
    }

    /// Counts a get that the store has answered.
    pub(super) fn store_get(&mut self, took: Nanos) {
        record(&mut self.store, took);
    }

    pub(super) fn cache_failed(&mut self, error: &RequestError) {
        self.failed += 1;
        self.first_failure.get_or_insert_with(|| error.to_string());
    }

    fn add(&mut self, other: &Counts) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.failed += other.failed;
        if self.first_failure.is_none() {
            self.first_failure.clone_from(&other.first_failure);
        }
        add(&mut self.cache, other.cache.as_ref());
        add(&mut self.store, other.store.as_ref());
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        let gets = self.hits + self.misses;
        if gets > 0 {
            figures.push(Figure {
                name: "hit ratio".to_owned(),
                value: self.hits as f64 / gets as f64,
                unit: FigureUnit::Share,
                detail: format!("{} hits, {} misses", self.hits, self.misses),
                warning: None,
            });
        }
        for (name, histogram) in
            [("get of the cache", &self.cache), ("get of the store after a miss", &self.store)]
        {
            figures.extend(histogram.iter().flat_map(|histogram| latencies(name, histogram)));
        }
        if self.failed > 0 {
            figures.push(Figure {
                name: "requests to the cache that failed".to_owned(),
                value: self.failed as f64,
                unit: FigureUnit::Count,
                detail: self.first_failure.clone().unwrap_or_default(),
                warning: Some(
                    "the store answered alone, and an old value may have stayed in the cache until \
                     its time to live was over; see whether the cache runs"
                        .to_owned(),
                ),
            });
        }
        figures
    }
}

/// Returns median and 99th percentile.
fn latencies(name: &str, histogram: &Histogram<u64>) -> [Figure; 2] {
    [("median", 0.5), ("99th percentile", 0.99)].map(|(percentile, quantile)| Figure {
        name: format!("{name}, {percentile}"),
        value: histogram.value_at_quantile(quantile) as f64 / 1e9,
        unit: FigureUnit::Seconds,
        detail: format!("of {} gets", histogram.len()),
        warning: None,
    })
}

fn record(histogram: &mut Option<Histogram<u64>>, took: Nanos) {
    histogram.get_or_insert_with(latency_histogram).saturating_record(took.clamp(1, LONGEST));
}

fn add(sum: &mut Option<Histogram<u64>>, more: Option<&Histogram<u64>>) {
    if let Some(more) = more {
        // Never fails: both have the same bounds.
        let _ = sum.get_or_insert_with(latency_histogram).add(more);
    }
}

/// Counts of all clients since they were last told.
#[derive(Debug, Default)]
pub(super) struct Noticed(Mutex<Counts>);

impl Noticed {
    /// Adds the counts of a client that is done.
    pub(super) fn add(&self, counts: &Counts) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(counts);
    }

    pub(super) fn take(&self) -> Vec<Figure> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).figures()
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::ErrorClass;

    use super::*;

    #[test]
    fn figures_are_of_all_clients_and_told_once() {
        let noticed = Noticed::default();
        for micros in [10, 20] {
            let mut counts = Counts::default();
            counts.cache_get(micros * 1000, Some(true));
            counts.cache_batch(micros * 1000, 4, Some(1));
            counts.store_get(micros * 10_000);
            counts.cache_get(1, None);
            counts.cache_failed(&RequestError::failed(ErrorClass::Timeout, "too slow"));
            noticed.add(&counts);
        }
        let figures = noticed.take();
        let of = |name: &str| figures.iter().find(|figure| figure.name == name).expect(name);
        assert_eq!(of("hit ratio").value, 4.0 / 12.0);
        assert_eq!(of("hit ratio").detail, "4 hits, 8 misses");
        let near = |name: &str, seconds: f64| {
            let value = of(name).value;
            assert!((value / seconds - 1.0).abs() < 0.01, "{name}: {value}");
        };
        near("get of the cache, 99th percentile", 20e-6);
        near("get of the store after a miss, median", 100e-6);
        near("get of the store after a miss, 99th percentile", 200e-6);
        assert_eq!(of("requests to the cache that failed").value, 2.0);
        assert!(noticed.take().is_empty());
    }
}
