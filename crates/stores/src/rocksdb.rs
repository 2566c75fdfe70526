//! `rocksdb:` drives RocksDB in this process, through the system's librocksdb, which is loaded when such a store is
//! opened: kvdyno itself needs none to be built or to run.

pub mod database;
pub mod error;
pub mod library;
pub mod options;

mod functions;
mod journal;
mod statistics;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Certainty, Client, Connection, Durability, ErrorClass, Figure, NoTransport, Profile,
    Put, Reading, RequestError, Rows, Store, Threading, ThreadingOf, Work,
};

use self::database::{Database, ReadOptions, WriteBatch, WriteOptions};
use self::error::{RocksError, RocksErrorKind};
use self::library::Library;
use self::options::{Compression, Options, TableOptions};
use self::statistics::LastTickers;
use crate::engine::{self, DURABILITY_OPTION, EVERY_LEVEL, Folder, take_durability};
use crate::entry::{Entry, threading_of};
use crate::error::StoreError;
use crate::in_process::refuse_hosts;
use crate::url::StoreUrl;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["rocksdb"],
    name: "RocksDB",
    summary: "a log-structured merge tree, the system's librocksdb",
    options: &[
        ("durability", DURABILITY_OPTION),
        ("cache", "bytes of the block cache, 0 for none; default RocksDB's own, 8 MiB"),
        ("cache-index", "hold index and filter blocks in the block cache too; default false"),
        ("bloom", "bits for each key of a bloom filter, such as 10; default none"),
        ("block", "bytes of a block before compression; default RocksDB's own, 4 KiB"),
        ("direct", "read and write tables past the system's page cache; default false"),
        ("statistics", "count cache and filter hits, which costs some time; default false"),
        ("compression", "of blocks: none, snappy, lz4 or zstd; default RocksDB's own, snappy"),
        ("memtable", "bytes of a memtable; default RocksDB's own, 64 MiB"),
        ("jobs", "threads that flush and compact; default RocksDB's own, 2"),
    ],
    operations: "get: GetPinned; put: Put; delete: Delete, which does not tell whether there was a \
                 record: it answers yes; scan: an iterator; get batch: MultiGet; put batch: one \
                 WriteBatch",
    durability: "power: WriteOptions.sync; process: RocksDB's default, the log is handed to the \
                 system; none: WriteOptions.disableWAL",
    consistency: "linearizable: a write is seen when it is acknowledged, reads see the newest",
    example: "rocksdb:?durability=process",
    lacks: &[Need::Ttl, Need::Pipeline],
    threading: threading_of::<RocksStore>(),
    request: |r| r.calls("Get", "Put", "Delete", "iterator"),
    check: |url| RocksDbOptions::take(url).map(drop),
    open: |url| Ok(Arc::new(RocksStore::open(url)?)),
};

struct Shared {
    database: Database,
    library: Library,
    version: Option<String>,
    last_tickers: LastTickers,
    durability: Durability,
    settings: Vec<(String, String)>,
    /// Folder of the database. Last, so that a temporary folder goes after RocksDB has closed its files.
    folder: Folder,
}

/// The store behind `rocksdb:`.
pub struct RocksStore {
    shared: Arc<Shared>,
}

impl RocksStore {
    /// Opens the database in the folder that the URL names, or makes it.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option is wrong, [`StoreError::Open`] if this machine has no librocksdb or RocksDB
    /// declines.
    pub fn open(url: &mut StoreUrl) -> Result<RocksStore, StoreError> {
        let asked = RocksDbOptions::take(url)?;
        let library = Library::load().map_err(|e| url.cannot_open(&e, &e.advice()))?;
        let durability = asked.durability;
        let folder = Folder::open(url, durability, &EVERY_LEVEL)?;
        let advice = "use an empty folder, or one of RocksDB that no other process has open";
        let mut settings = vec![folder.setting()];
        let options = asked
            .options(library, &mut settings)
            .map_err(|e| folder.cannot_open(url, e, advice))?;
        let database = Database::open(options, folder.path()).map_err(|e| {
            let no_direct = asked.direct && e.to_string().contains("irect I/O");
            folder.cannot_open(
                url,
                e,
                if no_direct { "leave `direct` out on this file system" } else { advice },
            )
        })?;
        let (version, last_tickers) = (journal::version(folder.path()), LastTickers::default());
        let shared =
            Shared { database, library, version, last_tickers, durability, settings, folder };
        Ok(RocksStore { shared: Arc::new(shared) })
    }
}

/// Options of the URL for RocksDB; `None`: its own default.
struct RocksDbOptions {
    durability: Durability,
    cache: Option<u64>,
    cache_index: bool,
    bloom: Option<f64>,
    block: Option<u64>,
    direct: bool,
    statistics: bool,
    compression: Option<Compression>,
    memtable: Option<u64>,
    jobs: Option<u16>,
}

impl RocksDbOptions {
    fn take(url: &mut StoreUrl) -> Result<RocksDbOptions, StoreError> {
        let types = [
            ("none", Compression::None),
            ("snappy", Compression::Snappy),
            ("lz4", Compression::Lz4),
            ("zstd", Compression::Zstd),
        ];
        let asked = RocksDbOptions {
            durability: take_durability(url, &EVERY_LEVEL)?,
            cache: url.take_bytes("cache")?,
            cache_index: url.take_flag("cache-index")?.unwrap_or(false),
            bloom: url.take_number("bloom")?,
            block: url.take_bytes("block")?,
            direct: url.take_flag("direct")?.unwrap_or(false),
            statistics: url.take_flag("statistics")?.unwrap_or(false),
            compression: url.take_choice("compression", &types)?,
            memtable: url.take_bytes("memtable")?,
            jobs: url.take_number("jobs")?,
        };
        if asked.bloom.is_some_and(|bits| !(1.0..=100.0).contains(&bits)) {
            return Err(url.wrong("a `bloom` out of its range", "give 1 to 100 bits for each key"));
        }
        if asked.block.is_some_and(|bytes| !(256..=1 << 30).contains(&bytes)) {
            return Err(url.wrong("a `block` out of its range", "give 256B to 1GiB"));
        }
        url.finish()?;
        refuse_hosts(url)?;
        Ok(asked)
    }

    /// Returns RocksDB's options, and what of them is not its default, for the result.
    fn options(
        &self,
        library: Library,
        settings: &mut Vec<(String, String)>,
    ) -> Result<Options, RocksError> {
        let mut options = Options::new(library, true);
        let mut disclose = |name: &str, value: String| settings.push((name.to_owned(), value));
        let mut tables = TableOptions::new(library);
        if let Some(bytes) = self.cache {
            // One of no bytes keeps nothing and counts its misses; without one nobody counts.
            tables.set_cache(bytes as usize)?;
            disclose("block cache, bytes", bytes.to_string());
        }
        if self.cache_index {
            tables.cache_index();
            disclose("index and filters in the block cache", "true".to_owned());
        }
        if let Some(bytes) = self.block {
            tables.set_block(bytes as usize);
            disclose("block, bytes", bytes.to_string());
        }
        options.set_tables(&tables);
        if let Some(bits) = self.bloom {
            options.set_bloom_filter(bits)?;
            disclose("bloom filter, bits per key", bits.to_string());
        }
        if self.direct {
            options.set_direct();
            disclose("direct I/O", "true".to_owned());
        }
        if self.statistics {
            options.enable_statistics();
            disclose("statistics", "true".to_owned());
        }
        if let Some(kind) = self.compression {
            options.set_compression(kind);
            disclose("compression", format!("{kind:?}").to_lowercase());
        }
        if let Some(bytes) = self.memtable {
            options.set_memtable(bytes as usize);
            disclose("memtable, bytes", bytes.to_string());
        }
        if let Some(count) = self.jobs {
            options.set_jobs(count);
            disclose("jobs", count.to_string());
        }
        Ok(options)
    }
}

impl Store for RocksStore {
    type Client = RocksClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    fn folder(&self) -> Option<&Path> {
        Some(self.shared.folder.path())
    }

    fn work_since(&self, moment: SystemTime) -> Vec<Work> {
        journal::work_since(self.shared.folder.path(), moment)
    }

    async fn profile(&self) -> Answer<Profile> {
        let shared = &*self.shared;
        Ok(engine::profile("rocksdb", shared.version.clone(), shared.durability, &shared.settings))
    }

    async fn connect(&self, _slots: usize) -> Answer<Connection<RocksClient, NoTransport>> {
        let shared = Arc::clone(&self.shared);
        let sync = shared.durability == Durability::PowerLoss;
        let log = shared.durability != Durability::None;
        let writes = WriteOptions::new(shared.library, sync, log);
        let reads = ReadOptions::new(shared.library);
        Ok(Connection::direct(RocksClient { shared, reads, writes }))
    }

    async fn figures(&self) -> Vec<Figure> {
        let text = self.shared.database.statistics();
        text.map_or_else(Vec::new, |text| self.shared.last_tickers.figures(&text))
    }

    kvdyno_core::kept_once_in_this_process!();
}

/// A client of a [`RocksStore`].
pub struct RocksClient {
    shared: Arc<Shared>,
    reads: ReadOptions,
    writes: WriteOptions,
}

impl Client for RocksClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let found = self.shared.database.get(&self.reads, key);
        let found = found.map_err(|e| self.shared.failed(&e))?;
        if let Some(value) = &found {
            into.set_whole(value);
        }
        Ok(found.is_some())
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let done = self.shared.database.put(&self.writes, put.key, put.value.whole());
        done.map_err(|e| self.shared.unsure(&e))
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let done = self.shared.database.delete(&self.writes, key);
        done.map_err(|e| self.shared.unsure(&e)).map(|()| true)
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        let push = |key: &[u8], value: &[u8]| into.push(key, Some(value));
        let done = self.shared.database.scan(&self.reads, from, count, push);
        done.map_err(|e| self.shared.failed(&e))
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        let push = |number: usize, value: Option<&[u8]>| into.push(keys[number], value);
        let done = self.shared.database.get_several(&self.reads, keys, push);
        done.map_err(|e| self.shared.failed(&e))
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        let mut batch = WriteBatch::new(self.shared.library);
        for put in puts {
            batch.put(put.key, put.value.whole());
        }
        let done = self.shared.database.write(&self.writes, &mut batch);
        done.map_err(|e| self.shared.unsure(&e))
    }
}

fn class(error: &RocksError) -> ErrorClass {
    match error.kind() {
        RocksErrorKind::Io if error.to_string().contains("No space") => ErrorClass::Full,
        RocksErrorKind::Refused => ErrorClass::Rejected,
        RocksErrorKind::TimedOut => ErrorClass::Timeout,
        RocksErrorKind::Io | RocksErrorKind::Other => ErrorClass::Unavailable,
    }
}

impl Shared {
    fn failed(&self, error: &RocksError) -> RequestError {
        self.folder.request_error(Certainty::Failed, class(error), error)
    }

    /// Returns the error of a call that failed though the log may have the write.
    fn unsure(&self, error: &RocksError) -> RequestError {
        self.folder.request_error(Certainty::Indeterminate, class(error), error)
    }
}

#[cfg(all(test, feature = "server-tests"))]
mod tests;
