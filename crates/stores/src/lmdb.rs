//! `lmdb:` drives LMDB in this process through heed. Reads copy out of the memory map; each write
//! is a transaction of its own, as a careful user would have it.

use std::path::Path;
use std::sync::Arc;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, MdbError};
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
    schemes: &["lmdb"],
    name: "LMDB",
    summary: "a memory-mapped B+ tree with one writer at a time",
    options: &[
        ("durability", DURABILITY_OPTION),
        ("size", "largest size of the data file, reserved as addresses only; default 64GiB"),
        ("readers", "most threads that read at once; default 1022"),
        ("readahead", "let the system read ahead of a page fault; default true"),
        (
            "sync",
            "what durability=process leaves to the system: all (MDB_NOSYNC, default), meta \
                  (MDB_NOMETASYNC) or map (MDB_MAPASYNC, with writemap)",
        ),
        ("writemap", "write through the memory map; a full disk then ends kvdyno; default false"),
    ],
    operations: "get: mdb_txn_begin (read only), mdb_get, mdb_txn_abort; put: mdb_txn_begin, \
                 mdb_put, mdb_txn_commit; delete: the same with mdb_del; scan: a cursor in one \
                 read transaction; get batch: one read transaction; put batch: one write \
                 transaction",
    durability: "power: LMDB's default, each commit is synced; process: MDB_NOSYNC, each commit \
                 is handed to the system; none: as process, for LMDB has nothing faster",
    consistency: "linearizable: one writer at a time, each read sees the last commit",
    example: "lmdb:?durability=process",
    lacks: &[Need::Ttl, Need::Pipeline],
    threading: threading_of::<LmdbStore>(),
    request: |r| r.calls("mdb_get", "mdb_put", "mdb_del", "cursor"),
    check: |url| LmdbOptions::take(url).map(drop),
    open: |url| Ok(Arc::new(LmdbStore::open(url)?)),
};

/// Longest key, in bytes: LMDB's compiled-in limit (MDB_MAXKEYSIZE).
const LONGEST_KEY: usize = 511;

#[derive(Debug)]
struct Shared {
    env: Env,
    records: Database<'static, Bytes, Bytes>,
    durability: Durability,
    settings: Vec<(String, String)>,
    /// Folder of the environment. Last, so that a temporary folder goes after LMDB has closed its files.
    folder: Folder,
}

/// The store behind `lmdb:`.
#[derive(Debug)]
pub struct LmdbStore {
    shared: Arc<Shared>,
}

impl LmdbStore {
    /// Opens the environment in the folder that the URL names, or makes it.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option is wrong, [`StoreError::Open`] if LMDB declines.
    pub fn open(url: &mut StoreUrl) -> Result<LmdbStore, StoreError> {
        let LmdbOptions { durability, size, readers, flags } = LmdbOptions::take(url)?;
        let folder = Folder::open(url, durability, &EVERY_LEVEL)?;
        let advice = "use an empty folder, or one of LMDB that no other process has open";
        let mut options = EnvOpenOptions::new();
        options.map_size(size as usize).max_readers(readers);
        // SAFETY: none of the flags turns off LMDB's locking or shares a map with code that
        // writes into it; the files are changed by LMDB alone, as the user is told to see to.
        let env = unsafe { options.flags(flags).open(folder.path()) }
            .map_err(|e| folder.cannot_open(url, e, advice))?;
        let records = env
            .write_txn()
            .and_then(|txn| {
                env.create_databases_and_commit(txn, |opener, txn| {
                    let records = opener.create_database::<Bytes, Bytes>(txn, None)?;
                    Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(records))
                })
            })
            .map_err(|e| folder.cannot_open(url, e, advice))?
            .unwrap_commit();
        let settings = vec![
            folder.setting(),
            ("map size, bytes".to_owned(), size.to_string()),
            ("readers".to_owned(), env.max_readers().to_string()),
            ("flags".to_owned(), format!("{flags:?}")),
        ];
        let shared = Shared { env, records, durability, settings, folder };
        Ok(LmdbStore { shared: Arc::new(shared) })
    }
}

/// Options of the URL for LMDB.
struct LmdbOptions {
    durability: Durability,
    /// Size of the map, in bytes.
    size: u64,
    readers: u32,
    flags: EnvFlags,
}

impl LmdbOptions {
    fn take(url: &mut StoreUrl) -> Result<LmdbOptions, StoreError> {
        let durability = take_durability(url, &EVERY_LEVEL)?;
        let size = url.take_bytes("size")?.unwrap_or(64 << 30);
        let readers = url.take_number::<u32>("readers")?.unwrap_or(1022).max(1);
        let readahead = url.take_flag("readahead")?.unwrap_or(true);
        let writemap = url.take_flag("writemap")?.unwrap_or(false);
        let mut flags = take_unsynced(url, durability, writemap)?;
        url.finish()?;
        refuse_hosts(url)?;
        // LMDB wants whole pages of the system; 64 KiB is a multiple of every page size in use.
        let size = size.next_multiple_of(1 << 16).max(1 << 20);
        flags.set(EnvFlags::NO_READ_AHEAD, !readahead);
        flags.set(EnvFlags::WRITE_MAP, writemap);
        Ok(LmdbOptions { durability, size, readers, flags })
    }
}

/// Takes the flag for what is not synced at each commit.
fn take_unsynced(
    url: &mut StoreUrl,
    durability: Durability,
    writemap: bool,
) -> Result<EnvFlags, StoreError> {
    let choices = [
        ("all", EnvFlags::NO_SYNC),
        ("meta", EnvFlags::NO_META_SYNC),
        ("map", EnvFlags::MAP_ASYNC),
    ];
    let asked = url.take_choice("sync", &choices)?;
    if asked.is_some() && durability != Durability::ProcessKill {
        return Err(url.wrong("`sync` without `durability=process`", "give both, or leave it out"));
    }
    if asked == Some(EnvFlags::MAP_ASYNC) && !writemap {
        return Err(url.wrong("`sync=map` without `writemap`", "give both, or another `sync`"));
    }
    Ok(match durability {
        Durability::PowerLoss => EnvFlags::empty(),
        Durability::ProcessKill | Durability::None => asked.unwrap_or(EnvFlags::NO_SYNC),
    })
}

impl Store for LmdbStore {
    type Client = LmdbClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    fn folder(&self) -> Option<&Path> {
        Some(self.shared.folder.path())
    }

    async fn profile(&self) -> Answer<Profile> {
        let version = heed::lmdb_version();
        let shared = &*self.shared;
        let version = Some(format!("{}.{}.{}", version.major, version.minor, version.patch));
        Ok(engine::profile("lmdb", version, shared.durability, &shared.settings))
    }

    async fn connect(&self, _slots: usize) -> Answer<Connection<LmdbClient, NoTransport>> {
        Ok(Connection::direct(LmdbClient { shared: Arc::clone(&self.shared) }))
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

impl Shared {
    fn failed(&self, error: &heed::Error) -> RequestError {
        self.folder.request_error(Certainty::Failed, class(error), message(error))
    }

    /// Returns the error of a commit that failed.
    fn unsure(&self, error: &heed::Error) -> RequestError {
        self.folder.request_error(Certainty::Indeterminate, class(error), message(error))
    }
}

/// A client of an [`LmdbStore`].
#[derive(Debug)]
pub struct LmdbClient {
    shared: Arc<Shared>,
}

impl LmdbClient {
    /// Runs `change` in a write transaction of its own. Before the commit nothing is applied; a
    /// commit that fails may have written its last page or not.
    fn write<T>(
        &mut self,
        change: impl FnOnce(&mut heed::RwTxn<'_>) -> Result<T, heed::Error>,
    ) -> Answer<T> {
        let mut txn = self.shared.env.write_txn().map_err(|e| self.shared.failed(&e))?;
        let result = change(&mut txn).map_err(|e| self.shared.failed(&e))?;
        txn.commit().map_err(|e| self.shared.unsure(&e))?;
        Ok(result)
    }
}

impl Client for LmdbClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        check_key(key)?;
        let txn = self.shared.env.read_txn().map_err(|e| self.shared.failed(&e))?;
        let found = self.shared.records.get(&txn, key).map_err(|e| self.shared.failed(&e))?;
        if let Some(value) = found {
            into.set_whole(value);
        }
        Ok(found.is_some())
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        check_key(put.key)?;
        let records = self.shared.records;
        self.write(|txn| records.put(txn, put.key, put.value.whole()))
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        check_key(key)?;
        let records = self.shared.records;
        self.write(|txn| records.delete(txn, key))
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        check_key(from)?;
        let txn = self.shared.env.read_txn().map_err(|e| self.shared.failed(&e))?;
        let range = (std::ops::Bound::Included(from), std::ops::Bound::Unbounded);
        let rows = self.shared.records.range(&txn, &range).map_err(|e| self.shared.failed(&e))?;
        for row in rows.take(count) {
            let (key, value) = row.map_err(|e| self.shared.failed(&e))?;
            into.push(key, Some(value));
        }
        Ok(())
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        let txn = self.shared.env.read_txn().map_err(|e| self.shared.failed(&e))?;
        for key in keys {
            check_key(key)?;
            into.push(key, self.shared.records.get(&txn, key).map_err(|e| self.shared.failed(&e))?);
        }
        Ok(())
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        puts.iter().try_for_each(|put| check_key(put.key))?;
        let records = self.shared.records;
        self.write(|txn| puts.iter().try_for_each(|p| records.put(txn, p.key, p.value.whole())))
    }
}

fn check_key(key: &[u8]) -> Answer<()> {
    if (1..=LONGEST_KEY).contains(&key.len()) {
        return Ok(());
    }
    Err(RequestError::failed(ErrorClass::Rejected, "LMDB takes keys of 1 to 511 bytes"))
}

fn class(error: &heed::Error) -> ErrorClass {
    match error {
        heed::Error::Mdb(MdbError::MapFull) => ErrorClass::Full,
        heed::Error::Io(io) => io_class(io),
        heed::Error::Mdb(MdbError::ReadersFull) => ErrorClass::Overloaded,
        // After a write or sync that failed, it takes no more.
        heed::Error::Mdb(MdbError::Panic) => ErrorClass::Unavailable,
        _ => ErrorClass::Rejected,
    }
}

fn message(error: &heed::Error) -> String {
    match error {
        heed::Error::Mdb(MdbError::MapFull) => {
            "the map is full: open it with a larger `size=`".to_owned()
        }
        heed::Error::Mdb(MdbError::ReadersFull) => {
            "too many threads read: open it with more `readers=`".to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Value;

    use super::*;

    fn store(options: &str) -> LmdbStore {
        LmdbStore::open(&mut StoreUrl::parse(&format!("lmdb:?{options}")).unwrap()).unwrap()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_full_map_says_what_to_do() {
        let store = store("size=1MiB&durability=none");
        let mut client = store.connect(1).await.unwrap().clients.remove(0);
        let value = vec![7; 100_000];
        let mut error = None;
        for number in 0..100 {
            let key = format!("key{number:05}");
            let put = Put {
                key: key.as_bytes(),
                value: Value::new(&value, &[]),
                insert: true,
                partial: false,
                record_fields: 1,
                ttl: None,
            };
            if let Err(found) = client.put(put).await {
                error = Some(found);
                break;
            }
        }
        let error = error.expect("100 values of 100 kB fit into 1 MiB");
        assert_eq!((error.certainty, error.class), (Certainty::Failed, ErrorClass::Full));
        assert!(error.message.contains("size="), "{error}");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn durability_sets_the_flags() {
        for (option, no_sync) in [("power", false), ("process", true), ("none", true)] {
            let store = store(&format!("durability={option}"));
            let flags = store.shared.env.flags().unwrap().unwrap();
            assert_eq!(flags.contains(EnvFlags::NO_SYNC), no_sync, "{option}");
        }
        let flags = store("readahead=false&writemap=true").shared.env.flags().unwrap().unwrap();
        assert!(flags.contains(EnvFlags::NO_READ_AHEAD | EnvFlags::WRITE_MAP));
    }

    #[test]
    fn sync_says_what_is_left_to_the_system() {
        for (options, flag) in [
            ("sync=all", EnvFlags::NO_SYNC),
            ("sync=meta", EnvFlags::NO_META_SYNC),
            ("sync=map&writemap", EnvFlags::MAP_ASYNC),
        ] {
            let store = store(&format!("durability=process&{options}"));
            let flags = store.shared.env.flags().unwrap().unwrap();
            let all = EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC | EnvFlags::MAP_ASYNC;
            assert_eq!(flags & all, flag, "{options}");
        }
        for options in ["sync=meta", "durability=none&sync=all", "durability=process&sync=map"] {
            let mut url = StoreUrl::parse(&format!("lmdb:?{options}")).unwrap();
            assert!(LmdbStore::open(&mut url).is_err_and(|error| error.is_usage()), "{options}");
        }
    }

    #[test]
    fn size_and_readers_are_the_environment_s() {
        let store = store("durability=none&size=2MiB&readers=7");
        assert_eq!(store.shared.env.info().map_size, 2 << 20);
        assert_eq!(store.shared.env.max_readers(), 7);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_key_too_long_is_refused_and_not_a_panic() {
        let store = store("");
        let mut client = store.connect(1).await.unwrap().clients.remove(0);
        for key in [vec![], vec![1; 512]] {
            let error = client.get(&key, &mut Reading::default()).await.unwrap_err();
            assert_eq!(error.class, ErrorClass::Rejected);
        }
    }
}
