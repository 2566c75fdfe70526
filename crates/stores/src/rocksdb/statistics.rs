//! Turns RocksDB's counters into figures of a phase: how often its block cache and its bloom filter spared a read, and how
//! many blocks a get had to read. Only with the option `statistics`, for counting costs time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kvdyno_core::store::{Figure, FigureUnit};

/// RocksDB's counters ("tickers") by name.
type Tickers = HashMap<String, u64>;

/// Reads lines such as `rocksdb.block.cache.miss COUNT : 12`; histograms have more on theirs.
fn read(text: &str) -> Tickers {
    let counter = |line: &str| {
        let (name, count) = line.split_once(" COUNT : ")?;
        Some((name.to_owned(), count.trim().parse().ok()?))
    };
    text.lines().filter_map(counter).collect()
}

/// The counters when they were last told.
#[derive(Debug, Default)]
pub(super) struct LastTickers(Mutex<Tickers>);

impl LastTickers {
    /// Returns the figures of what was counted since the last call, from the text of RocksDB's statistics.
    pub(super) fn figures(&self, text: &str) -> Vec<Figure> {
        let now = read(text);
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *last, now.clone());
        let since = |name: &str| {
            let count = |tickers: &Tickers| tickers.get(name).copied().unwrap_or(0);
            count(&now).saturating_sub(count(&before))
        };
        figures(since)
    }
}

fn figures(since: impl Fn(&str) -> u64) -> Vec<Figure> {
    let (hits, misses) = (since("rocksdb.block.cache.hit"), since("rocksdb.block.cache.miss"));
    let gets = since("rocksdb.number.keys.read") + since("rocksdb.number.multiget.keys.read");
    let (no, yes) =
        (since("rocksdb.bloom.filter.useful"), since("rocksdb.bloom.filter.full.positive"));
    let bytes = since("rocksdb.block.cache.bytes.write");
    let mut figures = Vec::new();
    let mut add = |name: &str, value: f64, unit, detail: String| {
        let name = name.to_owned();
        figures.push(Figure { name, value, unit, detail, warning: None });
    };
    if hits + misses > 0 {
        let share = hits as f64 / (hits + misses) as f64;
        let detail = format!("{hits} hits, {misses} misses, {bytes} bytes brought in");
        add("block cache hit ratio", share, FigureUnit::Share, detail);
    }
    // A scan reads blocks too, and they are counted together.
    if gets > 0 && since("rocksdb.number.db.seek") == 0 {
        let detail = format!("{misses} blocks read from files, {gets} gets");
        add("blocks read per get", misses as f64 / gets as f64, FigureUnit::Ratio, detail);
    }
    if no + yes > 0 {
        let share = no as f64 / (no + yes) as f64;
        let detail = format!("it said no {no} times, perhaps {yes} times");
        add("table lookups spared by the bloom filter", share, FigureUnit::Share, detail);
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_told_since_the_last_time() {
        let text = |hits: u64, gets: u64| {
            format!(
                "rocksdb.block.cache.miss COUNT : 30\nrocksdb.block.cache.hit COUNT : {hits}\n\
                 rocksdb.number.keys.read COUNT : {gets}\n\
                 rocksdb.db.get.micros P50 : 1.0 P95 : 2.0 COUNT : 5 SUM : 6\nnonsense\n"
            )
        };
        let last = LastTickers::default();
        let first = last.figures(&text(70, 60));
        let values: Vec<_> = first.iter().map(|f| (f.name.as_str(), f.value)).collect();
        assert_eq!(values, [("block cache hit ratio", 0.7), ("blocks read per get", 0.5)]);
        let second = last.figures(&text(80, 70));
        let values: Vec<_> = second.iter().map(|f| (f.name.as_str(), f.value)).collect();
        assert_eq!(values, [("block cache hit ratio", 1.0), ("blocks read per get", 0.0)]);
        assert!(last.figures("").is_empty());
    }
}
