//! `fjall:` drives fjall, a log-structured merge tree, in this process.

use std::path::Path;
use std::sync::Arc;

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};
use kvdyno_core::store::{
    Answer, Client, Connection, Durability, ErrorClass, Fault, NoTransport, Profile, Put, Reading,
    Rows, Store, Threading,
};

use crate::engine::{self, DURABILITY_OPTION, Folder, io_class, take_durability};
use crate::entry::Entry;
use crate::error::StoreError;
use crate::url::StoreUrl;

/// What `kvdyno stores` says of it.
pub const ENTRY: Entry = Entry {
    schemes: &["fjall"],
    name: "fjall",
    summary: "a log-structured merge tree written in Rust",
    options: &[
        ("durability", DURABILITY_OPTION),
        ("cache", "bytes of the block cache; default fjall's own, 32 MiB"),
        ("compression", "of a new database's blocks: default (fjall's own), none or lz4"),
        ("memtable", "bytes of a new database's memtable; default fjall's own, 64 MiB"),
        ("workers", "threads that flush and compact; default fjall's own, at most 4"),
    ],
    operations: "get: Keyspace::get; put: Keyspace::insert; delete: Keyspace::remove, which does \
                 not tell whether there was a record: it answers yes; scan: Keyspace::range; get \
                 batch: one snapshot; put batch: one write batch",
    durability: "power: after each write Database::persist(SyncData); process: PersistMode::Buffer, \
                 fjall's default; none: manual_journal_persist, the journal stays in a buffer",
    consistency: "linearizable: a write is seen when it is acknowledged, reads see the newest",
    example: "fjall:?durability=process",
    batch_put: true,
    request: |r| {
        r.calls("Keyspace::get", "Keyspace::insert", "Keyspace::remove", "Keyspace::range")
    },
    open: |url| Ok(Box::new(FjallStore::open(url)?)),
};

/// Name of the keyspace that holds the records.
const KEYSPACE: &str = "kvdyno";

struct Shared {
    records: Keyspace,
    database: Database,
    durability: Durability,
    /// What a single write must be followed by, where the keyspace does not do it by itself.
    persist: Option<PersistMode>,
    settings: Vec<(String, String)>,
    /// Last, so that a temporary folder goes after fjall has closed its files.
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
        let levels = [Durability::PowerLoss, Durability::ProcessKill, Durability::None];
        let durability = take_durability(url, &levels)?;
        let cache = url.take_bytes("cache")?;
        let policies = [
            ("default", None),
            ("none", Some(CompressionType::None)),
            ("lz4", Some(CompressionType::Lz4)),
        ];
        let compression = url.take_choice("compression", &policies)?.flatten();
        let memtable = url.take_bytes("memtable")?;
        let workers = url.take_number::<usize>("workers")?;
        url.finish()?;
        if workers == Some(0) {
            return Err(url.wrong("no `workers`", "give at least 1"));
        }
        let folder = Folder::open(url, durability)?;
        let mut builder = Database::builder(folder.path());
        if let Some(bytes) = cache {
            builder = builder.cache_size(bytes);
        }
        if let Some(count) = workers {
            builder = builder.worker_threads(count);
        }
        let advice = "name a folder that fjall made or an empty one, and no other process has open";
        let database = builder.open().map_err(|e| url.cannot_open(e, advice))?;
        // An existing keyspace keeps the setting that it was made with.
        let existed = database.keyspace_exists(KEYSPACE);
        let options = || {
            let mut options = KeyspaceCreateOptions::default()
                .manual_journal_persist(durability != Durability::ProcessKill);
            if let Some(compression) = compression {
                options =
                    options.data_block_compression_policy(CompressionPolicy::all(compression));
            }
            match memtable {
                Some(bytes) => options.max_memtable_size(bytes),
                None => options,
            }
        };
        let records =
            database.keyspace(KEYSPACE, options).map_err(|e| url.cannot_open(e, advice))?;
        let persist = match durability {
            Durability::PowerLoss => Some(PersistMode::SyncData),
            Durability::ProcessKill if existed => Some(PersistMode::Buffer),
            Durability::ProcessKill | Durability::None => None,
        };
        let settings = vec![
            folder.setting(),
            ("block cache, bytes".to_owned(), database.cache_capacity().to_string()),
            ("compression".to_owned(), compression.map_or("default".to_owned(), |c| c.to_string())),
        ];
        let shared = Shared { records, database, durability, persist, settings, folder };
        Ok(FjallStore { shared: Arc::new(shared) })
    }
}

impl Store for FjallStore {
    type Client = FjallClient;
    type Transport = NoTransport;

    fn threading(&self) -> Threading {
        Threading::InProcess
    }

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
}

/// Of the fjall crate, which does not tell it; a test holds it against Cargo.toml.
const VERSION: &str = "3.1.13";

/// A client of a [`FjallStore`].
pub struct FjallClient {
    shared: Arc<Shared>,
}

impl FjallClient {
    /// The journal has the write already, so what fails here may yet survive.
    fn persist(&self) -> Answer<()> {
        let Some(mode) = self.shared.persist else { return Ok(()) };
        self.shared.database.persist(mode).map_err(|e| unsure(&e))
    }
}

impl Client for FjallClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        check_key(key)?;
        let found = self.shared.records.get(key).map_err(|e| failed(&e))?;
        if let Some(value) = &found {
            into.set_whole(value);
        }
        Ok(found.is_some())
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        check_key(put.key)?;
        self.shared.records.insert(put.key, put.value.whole()).map_err(|e| unsure(&e))?;
        self.persist()
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        check_key(key)?;
        self.shared.records.remove(key).map_err(|e| unsure(&e))?;
        self.persist()?;
        Ok(true)
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        for row in self.shared.records.range(from..).take(count) {
            let (key, value) = row.into_inner().map_err(|e| failed(&e))?;
            into.push(&key, Some(&value));
        }
        Ok(())
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        let snapshot = self.shared.database.snapshot();
        for key in keys {
            check_key(key)?;
            let found = snapshot.get(&self.shared.records, key).map_err(|e| failed(&e))?;
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
        batch.commit().map_err(|e| unsure(&e))
    }
}

/// fjall panics on keys outside these bounds.
fn check_key(key: &[u8]) -> Answer<()> {
    if (1..=usize::from(u16::MAX)).contains(&key.len()) {
        return Ok(());
    }
    Err(Fault::failed(ErrorClass::Rejected, "fjall takes keys of 1 to 65,535 bytes"))
}

fn class(error: &fjall::Error) -> ErrorClass {
    match error {
        fjall::Error::Io(io) => io_class(io),
        _ => ErrorClass::Unavailable,
    }
}

fn failed(error: &fjall::Error) -> Fault {
    Fault::failed(class(error), error.to_string())
}

fn unsure(error: &fjall::Error) -> Fault {
    Fault::indeterminate(class(error), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_is_built() {
        let manifest = include_str!("../../../Cargo.toml");
        assert!(manifest.contains(&format!("fjall = \"={VERSION}\"")), "{VERSION}");
    }
}
