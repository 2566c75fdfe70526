//! Each option does what it says, by RocksDB's own counters and by its files.

use std::path::Path;
use std::time::{Duration, Instant};

use kvdyno_core::store::{Figure, Store};

use super::*;
use crate::engine::trial::{Trial, now};

impl Trial<RocksStore> {
    /// Opens a database.
    fn at(url: &str) -> Self {
        Trial::new(RocksStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap())
    }

    /// Opens a temporary one with counters.
    fn open(options: &str) -> Self {
        Trial::at(&format!("rocksdb:?durability=process&statistics&{options}"))
    }

    /// Writes records, all of which are in tables then.
    fn load(&mut self, count: u32) {
        self.write(count);
        self.store.shared.database.flush().unwrap();
        now(self.store.figures());
    }

    /// Returns the figures of reads of records, or of absent ones.
    fn count(&mut self, gets: u32, there: bool) -> Vec<Figure> {
        self.get(gets, there);
        now(self.store.figures())
    }

    fn property(&self, name: &str) -> u64 {
        self.store.shared.database.property(name).unwrap()
    }
}

fn value(figures: &[Figure], name: &str) -> f64 {
    let found = figures.iter().find(|figure| figure.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {figures:?}")).value
}

const PER_GET: &str = "blocks read per get";

#[test]
fn a_bloom_filter_spares_absent_gets_the_reading() {
    // Without a cache each look into a table reads a block.
    let mut bare = Trial::open("cache=0");
    bare.load(1000);
    let figures = bare.count(1000, false);
    assert!(value(&figures, PER_GET) > 0.9, "{figures:?}");
    assert!(figures.iter().all(|figure| !figure.name.contains("bloom")));
    let mut bloom = Trial::open("cache=0&bloom=10");
    bloom.load(1000);
    let figures = bloom.count(1000, false);
    // 10 bits for each key let about 1 in 100 pass.
    assert!(value(&figures, PER_GET) < 0.2, "{figures:?}");
    assert!(value(&figures, "table lookups spared by the bloom filter") > 0.9, "{figures:?}");
}

#[test]
fn the_cache_holds_what_fits_into_it() {
    for (cache, hit) in [("64MiB", true), ("64KiB", false)] {
        let mut trial = Trial::open(&format!("cache={cache}&compression=none"));
        trial.load(4000);
        trial.get(4000, true);
        now(trial.store.figures());
        let ratio = value(&trial.count(4000, true), "block cache hit ratio");
        // 4 MB were read once: four records of 1,000 bytes lie in a block.
        assert_eq!(ratio > 0.99, hit, "{cache}: {ratio}");
        assert!(trial.property("rocksdb.block-cache-usage") > 0);
    }
}

#[test]
fn larger_blocks_hold_more_records() {
    let mut blocks = Vec::new();
    for block in ["4KiB", "64KiB"] {
        let mut trial = Trial::open(&format!("block={block}&cache=64MiB&compression=none"));
        trial.load(1000);
        let figures = trial.count(1000, true);
        blocks.push(value(&figures, PER_GET));
    }
    assert!(blocks[0] > 0.2 && blocks[1] < 0.05, "{blocks:?}");
}

#[test]
fn compression_makes_tables_smaller() {
    let size = |compression: &str| {
        let mut trial = Trial::open(&format!("compression={compression}"));
        trial.load(1000);
        trial.property("rocksdb.live-sst-files-size")
    };
    let none = size("none");
    assert!(none > 1_000_000, "{none}");
    for compression in ["snappy", "lz4", "zstd"] {
        let compressed = size(compression);
        assert!(compressed < none / 4, "{compression}: {compressed} of {none}");
    }
}

#[test]
fn a_small_memtable_goes_to_disk_early() {
    let tables = |trial: &Trial<RocksStore>| trial.property("rocksdb.live-sst-files-size");
    let mut large = Trial::open("");
    large.write(4000);
    assert_eq!(tables(&large), 0);
    let mut small = Trial::open("memtable=256KiB&jobs=2");
    small.write(4000);
    let begun = Instant::now();
    while tables(&small) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was flushed");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Files of `folder` that this process has open, with their flags (`man 5 proc`).
fn open_tables(folder: &Path) -> Vec<u32> {
    let mut flags = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let Ok(target) = std::fs::read_link(entry.path()) else { continue };
        if !target.starts_with(folder) || target.extension().is_none_or(|end| end != "sst") {
            continue;
        }
        let info = Path::new("/proc/self/fdinfo").join(entry.file_name());
        let info = std::fs::read_to_string(info).unwrap_or_default();
        let octal = info.lines().find_map(|line| line.strip_prefix("flags:"));
        flags.extend(octal.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()));
    }
    flags
}

#[test]
fn direct_input_and_output_passes_the_page_cache_by() {
    const O_DIRECT: u32 = rustix::fs::OFlags::DIRECT.bits();
    for (options, direct) in [("", false), ("direct", true)] {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let url = format!("rocksdb:{}?durability=process&{options}", folder.path().display());
        let mut trial = Trial::at(&url);
        trial.load(100);
        trial.get(2, true);
        let flags = open_tables(&folder.path().canonicalize().unwrap());
        assert!(!flags.is_empty());
        assert!(flags.iter().all(|flags| (flags & O_DIRECT != 0) == direct), "{flags:?}");
    }
}

#[test]
fn index_and_filters_are_held_in_the_cache_if_asked_for() {
    let usage = |options: &str| {
        let mut trial = Trial::open(&format!("bloom=100&cache=64MiB&{options}"));
        trial.load(4000);
        trial.get(2, true);
        trial.property("rocksdb.block-cache-usage")
    };
    // 100 bits for each of 4,000 keys.
    let (outside, inside) = (usage(""), usage("cache-index"));
    assert!(inside > outside + 40_000, "{outside} and {inside}");
}

#[test]
fn without_statistics_nothing_is_counted() {
    let mut trial = Trial::at("rocksdb:?durability=none");
    trial.load(10);
    assert!(trial.count(10, true).is_empty());
}

#[test]
fn filters_of_no_or_too_many_bits_are_refused() {
    for bits in ["0", "-1", "1000", "nan", "x"] {
        let mut url = StoreUrl::parse(&format!("rocksdb:?bloom={bits}")).unwrap();
        let error = RocksStore::open(&mut url).err().expect(bits);
        assert!(error.is_usage() && error.to_string().contains("bloom"), "{error}");
    }
}

#[test]
fn flushes_and_compactions_are_told_with_their_time() {
    let began = SystemTime::now();
    let mut trial = Trial::open("");
    // Four tables of the first level are merged.
    for _ in 0..5 {
        trial.load(500);
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    let told = |store: &RocksStore, what: &str| {
        store.work_since(began).into_iter().find(|work| work.what == what)
    };
    while told(&trial.store, "compaction").is_none() {
        assert!(Instant::now() < deadline, "{:?}", trial.store.work_since(began));
        std::thread::sleep(Duration::from_millis(20));
    }
    for what in ["flush of a memtable", "compaction"] {
        let work = told(&trial.store, what).expect(what);
        assert!(began <= work.from && work.from <= work.to, "{work:?} since {began:?}");
        assert!(work.to <= SystemTime::now(), "{work:?}");
    }
    assert!(trial.store.work_since(SystemTime::now() + Duration::from_secs(1)).is_empty());
}

#[test]
fn the_version_that_was_loaded_is_told() {
    let trial = Trial::at("rocksdb:?durability=none");
    let version = now(trial.store.profile()).unwrap().version.unwrap();
    assert!(version.split('.').count() == 3 && version.starts_with(char::is_numeric), "{version}");
}
