//! `fjall:` drives fjall, a log-structured merge tree, in this process.

use std::path::Path;
use std::sync::Arc;

use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};
use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Certainty, Client, Connection, Durability, ErrorClass, NoTransport, Profile, Put,
    Reading, RequestError, Rows, Store, Threading, ThreadingOf,
};

use crate::engine::{self, DURABILITY_OPTION, EVERY_LEVEL, Folder, io_class, take_durability};
use crate::entry::{Entry, threading_of};
use crate::error::StoreError;
use crate::in_process::refuse_hosts;
use crate::url::StoreUrl;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["fjall"],
    name: "fjall",
    summary: "a log-structured merge tree written in Rust",
    options: &[
        ("durability", DURABILITY_OPTION),
        ("cache", "bytes of the block cache; default fjall's own, 32 MiB"),
        ("compression", "of a new database's blocks: default (fjall's own), none or lz4"),
        (
            "bloom",
            "bits for each key of a new database's bloom filters, 0 for none; default fjall's",
        ),
        ("block", "bytes of a new database's data blocks; default fjall's own, 4 KiB"),
        ("memtable", "bytes of a new database's memtable; default fjall's own, 64 MiB"),
        ("workers", "threads that flush and compact, at least 2; default fjall's own, 2 to 4"),
    ],
    operations: "get: Keyspace::get; put: Keyspace::insert; delete: Keyspace::remove, which does \
                 not tell whether there was a record: it answers yes; scan: Keyspace::range; get \
                 batch: one snapshot; put batch: one write batch",
    durability: "power: after each write Database::persist(SyncData); process: PersistMode::Buffer, \
                 fjall's default; none: manual_journal_persist, the journal stays in a buffer",
    consistency: "linearizable: a write is seen when it is acknowledged, reads see the newest",
    example: "fjall:?durability=process",
    lacks: &[Need::Ttl, Need::Pipeline],
    threading: threading_of::<FjallStore>(),
    request: |r| {
        r.calls("Keyspace::get", "Keyspace::insert", "Keyspace::remove", "Keyspace::range")
    },
    check: |url| FjallOptions::take(url).map(drop),
    open: |url| Ok(Arc::new(FjallStore::open(url)?)),
};

/// Name of the keyspace that holds the records.
const KEYSPACE: &str = "kvdyno";

struct Shared {
    records: Keyspace,
    database: Database,
    durability: Durability,
    /// Sync that must follow a single write, where the keyspace does not do it by itself.
    persist: Option<PersistMode>,
    settings: Vec<(String, String)>,
    /// Folder of the database. Last, so that a temporary folder goes after fjall has closed its files.
    folder: Folder,
}

/// The store behind `fjall:`.
pub struct FjallStore {
    shared: Arc<Shared>,
}

impl FjallStore {
    /// Opens the database in the folder that the URL names, or makes it.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option is wrong, [`StoreError::Open`] if fjall declines.
    pub fn open(url: &mut StoreUrl) -> Result<FjallStore, StoreError> {
        let asked = FjallOptions::take(url)?;
        let durability = asked.durability;
        let folder = Folder::open(url, durability, &EVERY_LEVEL)?;
        let mut builder = Database::builder(folder.path());
        if let Some(bytes) = asked.cache {
            builder = builder.cache_size(bytes);
        }
        if let Some(count) = asked.workers {
            builder = builder.worker_threads(count);
        }
        let advice = "use an empty folder, or one of fjall that no other process has open";
        let database = builder.open().map_err(|e| folder.cannot_open(url, e, advice))?;
        // An existing keyspace keeps the setting that it was made with.
        let existed = database.keyspace_exists(KEYSPACE);
        let options =
            || asked.keyspace().manual_journal_persist(durability != Durability::ProcessKill);
        let records =
            database.keyspace(KEYSPACE, options).map_err(|e| folder.cannot_open(url, e, advice))?;
        let persist = match durability {
            Durability::PowerLoss => Some(PersistMode::SyncData),
            Durability::ProcessKill if existed => Some(PersistMode::Buffer),
            Durability::ProcessKill | Durability::None => None,
        };
        let mut settings = vec![
            folder.setting(),
            ("block cache, bytes".to_owned(), database.cache_capacity().to_string()),
        ];
        settings.extend(asked.settings());
        let shared = Shared { records, database, durability, persist, settings, folder };
        Ok(FjallStore { shared: Arc::new(shared) })
    }
}

/// Least number of workers. A worker that has put a full memtable aside asks for its flush over the workers' own queue,
/// which holds 1,000 requests of the writers': where it is full, only another worker can make room.
const FEWEST_WORKERS: usize = 2;

/// Returns the number of workers to set on a machine with one processor: fjall takes as many workers as there are
/// processors.
fn for_one_processor() -> Option<usize> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors < FEWEST_WORKERS).then_some(FEWEST_WORKERS)
}

/// Options of the URL for fjall; `None`: its own default.
struct FjallOptions {
    durability: Durability,
    cache: Option<u64>,
    compression: Option<CompressionType>,
    bloom: Option<f32>,
    block: Option<u64>,
    memtable: Option<u64>,
    workers: Option<usize>,
}

impl FjallOptions {
    fn take(url: &mut StoreUrl) -> Result<FjallOptions, StoreError> {
        let policies = [
            ("default", None),
            ("none", Some(CompressionType::None)),
            ("lz4", Some(CompressionType::Lz4)),
        ];
        let asked = FjallOptions {
            durability: take_durability(url, &EVERY_LEVEL)?,
            cache: url.take_bytes("cache")?,
            compression: url.take_choice("compression", &policies)?.flatten(),
            bloom: url.take_number("bloom")?,
            block: url.take_bytes("block")?,
            memtable: url.take_bytes("memtable")?,
            workers: url.take_number("workers")?.or_else(for_one_processor),
        };
        if asked.workers.is_some_and(|workers| workers < FEWEST_WORKERS) {
            return Err(
                url.wrong("fewer than 2 `workers`", "give at least 2: one may wait for itself")
            );
        }
        if asked.bloom.is_some_and(|bits| bits != 0.0 && !(1.0..=100.0).contains(&bits)) {
            let advice = "give 1 to 100 bits for each key, or 0 for no filter";
            return Err(url.wrong("a `bloom` out of its range", advice));
        }
        // fjall panics beyond these bounds.
        if asked.block.is_some_and(|bytes| !(1 << 10..=1 << 20).contains(&bytes)) {
            return Err(url.wrong("a `block` out of its range", "give 1KiB to 1MiB"));
        }
        url.finish()?;
        refuse_hosts(url)?;
        Ok(asked)
    }

    /// Returns the options of a new keyspace.
    fn keyspace(&self) -> KeyspaceCreateOptions {
        let mut options = KeyspaceCreateOptions::default();
        if let Some(compression) = self.compression {
            options = options.data_block_compression_policy(CompressionPolicy::all(compression));
        }
        if let Some(bits) = self.bloom {
            let filter = match bits {
                0.0 => FilterPolicyEntry::None,
                bits => FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(bits)),
            };
            options = options.filter_policy(FilterPolicy::all(filter));
        }
        if let Some(bytes) = self.block {
            options = options.data_block_size_policy(BlockSizePolicy::all(bytes as u32));
        }
        match self.memtable {
            Some(bytes) => options.max_memtable_size(bytes),
            None => options,
        }
    }

    /// Returns the settings that the result discloses.
    fn settings(&self) -> [(String, String); 4] {
        fn setting(name: &str, given: Option<impl ToString>) -> (String, String) {
            (name.to_owned(), given.map_or("default".to_owned(), |value| value.to_string()))
        }
        [
            setting("compression", self.compression),
            setting("bloom, bits per key", self.bloom),
            setting("block, bytes", self.block),
            setting("memtable, bytes", self.memtable),
        ]
    }
}

impl Store for FjallStore {
    type Client = FjallClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    fn folder(&self) -> Option<&Path> {
        Some(self.shared.folder.path())
    }

    async fn profile(&self) -> Answer<Profile> {
        let shared = &*self.shared;
        let version = Some(VERSION.to_owned());
        Ok(engine::profile("fjall", version, shared.durability, &shared.settings))
    }

    async fn connect(&self, _slots: usize) -> Answer<Connection<FjallClient, NoTransport>> {
        Ok(Connection::direct(FjallClient { shared: Arc::clone(&self.shared) }))
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

/// Version of the fjall crate, which does not tell it; a test holds it against Cargo.toml.
const VERSION: &str = "3.1.13";

/// A client of a [`FjallStore`].
pub struct FjallClient {
    shared: Arc<Shared>,
}

impl FjallClient {
    /// Makes a write durable. The journal has it already, so a write whose call fails here may yet survive.
    fn persist(&self) -> Answer<()> {
        let Some(mode) = self.shared.persist else { return Ok(()) };
        self.shared.database.persist(mode).map_err(|e| self.shared.unsure(&e))
    }
}

impl Client for FjallClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        check_key(key)?;
        let found = self.shared.records.get(key).map_err(|e| self.shared.failed(&e))?;
        if let Some(value) = &found {
            into.set_whole(value);
        }
        Ok(found.is_some())
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        check_key(put.key)?;
        self.shared
            .records
            .insert(put.key, put.value.whole())
            .map_err(|e| self.shared.unsure(&e))?;
        self.persist()
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        check_key(key)?;
        self.shared.records.remove(key).map_err(|e| self.shared.unsure(&e))?;
        self.persist()?;
        Ok(true)
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        for row in self.shared.records.range(from..).take(count) {
            let (key, value) = row.into_inner().map_err(|e| self.shared.failed(&e))?;
            into.push(&key, Some(&value));
        }
        Ok(())
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        let snapshot = self.shared.database.snapshot();
        for key in keys {
            check_key(key)?;
            let found =
                snapshot.get(&self.shared.records, key).map_err(|e| self.shared.failed(&e))?;
            into.push(key, found.as_deref());
        }
        Ok(())
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        puts.iter().try_for_each(|put| check_key(put.key))?;
        let shared = &self.shared;
        let mode = match shared.durability {
            Durability::PowerLoss => Some(PersistMode::SyncData),
            Durability::ProcessKill => Some(PersistMode::Buffer),
            Durability::None => None,
        };
        let mut batch = shared.database.batch().durability(mode);
        for put in puts {
            batch.insert(&shared.records, put.key, put.value.whole());
        }
        batch.commit().map_err(|e| self.shared.unsure(&e))
    }
}

/// Refuses keys outside these bounds: fjall panics on them.
fn check_key(key: &[u8]) -> Answer<()> {
    if (1..=usize::from(u16::MAX)).contains(&key.len()) {
        return Ok(());
    }
    Err(RequestError::failed(ErrorClass::Rejected, "fjall takes keys of 1 to 65,535 bytes"))
}

fn class(error: &fjall::Error) -> ErrorClass {
    match error {
        fjall::Error::Io(io) => io_class(io),
        _ => ErrorClass::Unavailable,
    }
}

impl Shared {
    fn failed(&self, error: &fjall::Error) -> RequestError {
        self.folder.request_error(Certainty::Failed, class(error), error)
    }

    fn unsure(&self, error: &fjall::Error) -> RequestError {
        self.folder.request_error(Certainty::Indeterminate, class(error), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::trial::Trial;

    fn trial(options: &str) -> Trial<FjallStore> {
        let url = format!("fjall:?durability=process&{options}");
        Trial::new(FjallStore::open(&mut StoreUrl::parse(&url).unwrap()).unwrap())
    }

    /// Returns the bytes of all files below a folder.
    fn bytes_below(folder: &std::path::Path) -> u64 {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let bytes = entries.map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => bytes_below(&entry.path()),
            data => data.map_or(0, |data| data.len()),
        });
        bytes.sum()
    }

    /// Returns the bytes of the tables that hold 4,000 records.
    fn size(options: &str) -> u64 {
        let mut trial = trial(options);
        trial.write(4000);
        let records = &trial.store.shared.records;
        records.rotate_memtable_and_wait().unwrap();
        bytes_below(records.path())
    }

    #[test]
    fn the_cache_holds_what_fits_into_it() {
        let read = |options: &str| {
            let mut trial = trial(options);
            trial.write(4000);
            trial.store.shared.records.rotate_memtable_and_wait().unwrap();
            trial.read_again(4000)
        };
        let (large, small) = (read("cache=64MiB"), read("cache=64KiB"));
        assert!(large < 400_000 && small > 3_000_000, "{large} and {small} of 4 MB");
    }

    #[test]
    fn compression_filters_and_blocks_show_in_the_tables() {
        let plain = size("compression=none&bloom=0");
        assert!(plain > 4_000_000, "{plain}");
        let compressed = size("compression=lz4&bloom=0");
        assert!(compressed < plain / 4, "lz4: {compressed} of {plain}");
        // 100 bits for each of 4,000 keys.
        let filtered = size("compression=none&bloom=100");
        assert!(filtered > plain + 40_000, "bloom: {filtered}, without {plain}");
        // One index entry for 32 kB and not for 4.
        let coarse = size("compression=none&bloom=0&block=32KiB");
        assert!(coarse < plain - 10_000, "large blocks: {coarse}, small {plain}");
    }

    #[test]
    fn a_small_memtable_goes_to_disk_early() {
        let mut large = trial("");
        large.write(4000);
        assert_eq!(large.store.shared.records.table_count(), 0);
        let mut small = trial("memtable=256KiB&workers=2");
        small.write(4000);
        let begun = std::time::Instant::now();
        while small.store.shared.records.table_count() == 0 {
            assert!(begun.elapsed().as_secs() < 60, "nothing was flushed");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        for option in
            ["bloom=0.5", "bloom=1000", "block=1B", "block=1GiB", "workers=0", "workers=1"]
        {
            let mut url = StoreUrl::parse(&format!("fjall:?{option}")).unwrap();
            let error = FjallStore::open(&mut url).err().expect(option);
            assert!(error.is_usage(), "{option}: {error}");
        }
    }

    #[test]
    fn the_version_is_the_one_that_is_built() {
        let manifest = include_str!("../../../Cargo.toml");
        assert!(manifest.contains(&format!("fjall = \"={VERSION}\"")), "{VERSION}");
    }
}
