//! `redb:` drives redb, a copy-on-write B-tree in one file, in this process. Each write is a
//! transaction of its own.

use std::path::Path;
use std::sync::Arc;

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Certainty, Client, Connection, Durability, ErrorClass, NoTransport, Profile, Put,
    Reading, RequestError, Rows, Store, Threading, ThreadingOf,
};
use redb::{
    Database, Error, ReadOnlyTable, ReadableDatabase, StorageError, Table, TableDefinition,
};

use crate::engine::{self, DURABILITY_OPTION, Folder, io_class, take_durability};
use crate::entry::{Entry, threading_of};
use crate::error::StoreError;
use crate::in_process::refuse_hosts;
use crate::url::StoreUrl;

/// Levels of durability that redb can keep.
const LEVELS: [Durability; 2] = [Durability::PowerLoss, Durability::None];

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["redb"],
    name: "redb",
    summary: "a copy-on-write B-tree in one file, written in Rust, one writer at a time",
    options: &[
        ("durability", DURABILITY_OPTION),
        ("cache", "bytes of the page cache; default redb's own, 1 GiB"),
    ],
    operations: "get: begin_read, open_table, get; put: begin_write, open_table, insert, commit; \
                 delete: the same with remove; scan: a range in one read transaction; get batch: \
                 one read transaction; put batch: one write transaction",
    durability: "power: Durability::Immediate, redb's default; none: Durability::None, kept by \
                 the next synced commit or a clean end only; redb has nothing between",
    consistency: "linearizable: one writer at a time, each read sees the last commit",
    example: "redb:?durability=none",
    lacks: &[Need::Ttl, Need::Pipeline],
    threading: threading_of::<RedbStore>(),
    request: |r| r.calls("Table::get", "Table::insert", "Table::remove", "Table::range"),
    check: |url| take_options(url).map(drop),
    open: |url| Ok(Arc::new(RedbStore::open(url)?)),
};

const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("kvdyno");

/// Name of the file in the folder that the URL names.
const FILE: &str = "kvdyno.redb";

struct Shared {
    database: Database,
    durability: Durability,
    settings: Vec<(String, String)>,
    /// Folder of the database. Last, so that a temporary folder goes after redb has closed its file.
    folder: Folder,
}

/// The store behind `redb:`.
pub struct RedbStore {
    shared: Arc<Shared>,
}

impl RedbStore {
    /// Opens the database `kvdyno.redb` in the folder that the URL names, or makes it.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option is wrong, [`StoreError::Open`] if redb declines.
    pub fn open(url: &mut StoreUrl) -> Result<RedbStore, StoreError> {
        let (durability, cache) = take_options(url)?;
        let folder = Folder::open(url, durability, &LEVELS)?;
        let mut builder = Database::builder();
        builder.set_cache_size(cache as usize);
        let advice = "check that the file is redb's and that no other process has it open";
        let database = builder
            .create(folder.path().join(FILE))
            .map_err(|e| folder.cannot_open(url, e, advice))?;
        // A read before the first write must find the table.
        let make_table = || -> Result<(), Error> {
            let txn = database.begin_write()?;
            txn.open_table(RECORDS)?;
            Ok(txn.commit()?)
        };
        make_table().map_err(|e| folder.cannot_open(url, e, advice))?;
        let settings = vec![
            folder.setting(),
            ("cache, bytes".to_owned(), cache.to_string()),
            ("file".to_owned(), FILE.to_owned()),
        ];
        let shared = Shared { database, durability, settings, folder };
        Ok(RedbStore { shared: Arc::new(shared) })
    }
}

/// Takes what a write survives, and the bytes of the cache.
fn take_options(url: &mut StoreUrl) -> Result<(Durability, u64), StoreError> {
    let durability = take_durability(url, &LEVELS)?;
    // redb's own default, written out so that a result can tell it.
    let cache = url.take_bytes("cache")?.unwrap_or(1 << 30);
    url.finish()?;
    refuse_hosts(url)?;
    Ok((durability, cache))
}

impl Store for RedbStore {
    type Client = RedbClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    fn folder(&self) -> Option<&Path> {
        Some(self.shared.folder.path())
    }

    async fn profile(&self) -> Answer<Profile> {
        let shared = &*self.shared;
        let version = Some(VERSION.to_owned());
        Ok(engine::profile("redb", version, shared.durability, &shared.settings))
    }

    async fn connect(&self, _slots: usize) -> Answer<Connection<RedbClient, NoTransport>> {
        Ok(Connection::direct(RedbClient { shared: Arc::clone(&self.shared) }))
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

/// Version of the redb crate, which does not tell it; a test holds it against Cargo.toml.
const VERSION: &str = "4.5.0";

type ReadTable = ReadOnlyTable<&'static [u8], &'static [u8]>;
type WriteTable<'t> = Table<'t, &'static [u8], &'static [u8]>;

/// A client of a [`RedbStore`].
pub struct RedbClient {
    shared: Arc<Shared>,
}

impl RedbClient {
    /// Runs `look` in a read transaction of its own.
    fn read<T>(&mut self, look: impl FnOnce(ReadTable) -> Result<T, StorageError>) -> Answer<T> {
        let read = || -> Result<T, Error> {
            let txn = self.shared.database.begin_read()?;
            Ok(look(txn.open_table(RECORDS)?)?)
        };
        read().map_err(|e| self.shared.request_error(Certainty::Failed, &e))
    }

    /// Runs `change` in a write transaction of its own. Before the commit nothing is applied; a
    /// commit that fails may have been written or not.
    fn write<T>(
        &mut self,
        change: impl FnOnce(&mut WriteTable<'_>) -> Result<T, StorageError>,
    ) -> Answer<T> {
        let prepare = || -> Result<_, Error> {
            let mut txn = self.shared.database.begin_write()?;
            if self.shared.durability == Durability::None {
                txn.set_durability(redb::Durability::None)?;
            }
            let result = change(&mut txn.open_table(RECORDS)?)?;
            Ok((txn, result))
        };
        let (txn, result) =
            prepare().map_err(|e| self.shared.request_error(Certainty::Failed, &e))?;
        txn.commit().map_err(|e| self.shared.request_error(Certainty::Indeterminate, &e.into()))?;
        Ok(result)
    }
}

impl Client for RedbClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        self.read(|table| {
            let found = table.get(key)?;
            if let Some(value) = &found {
                into.set_whole(value.value());
            }
            Ok(found.is_some())
        })
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        self.write(|table| table.insert(put.key, put.value.whole()).map(drop))
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        self.write(|table| Ok(table.remove(key)?.is_some()))
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        self.read(|table| {
            for row in table.range(from..)?.take(count) {
                let (key, value) = row?;
                into.push(key.value(), Some(value.value()));
            }
            Ok(())
        })
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        self.read(|table| {
            for key in keys {
                let found = table.get(*key)?;
                into.push(key, found.as_ref().map(|value| value.value()));
            }
            Ok(())
        })
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        self.write(|table| {
            puts.iter().try_for_each(|put| table.insert(put.key, put.value.whole()).map(drop))
        })
    }
}

impl Shared {
    fn request_error(&self, certainty: Certainty, error: &Error) -> RequestError {
        self.folder.request_error(certainty, class(error), error)
    }
}

fn class(error: &Error) -> ErrorClass {
    match error {
        Error::Io(io) => io_class(io),
        Error::ValueTooLarge(_) => ErrorClass::Rejected,
        _ => ErrorClass::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::trial::Trial;

    #[test]
    fn the_cache_holds_what_fits_into_it() {
        let read = |cache: &str| {
            let url = format!("redb:?durability=none&cache={cache}");
            let mut trial =
                Trial::new(RedbStore::open(&mut StoreUrl::parse(&url).unwrap()).unwrap());
            trial.write(4000);
            trial.read_again(4000)
        };
        let (large, small) = (read("64MiB"), read("64KiB"));
        assert!(large < 400_000 && small > 3_000_000, "{large} and {small} of 4 MB");
    }

    #[test]
    fn the_version_is_the_one_that_is_built() {
        let manifest = include_str!("../../../Cargo.toml");
        assert!(manifest.contains(&format!("redb = \"={VERSION}\"")), "{VERSION}");
    }
}
