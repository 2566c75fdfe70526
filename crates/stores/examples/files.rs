//! A store of an outsider, whole: each record is a file in a folder. The walk through it is in
//! docs/ADD_A_STORE.md; `cargo run -p kvdyno-stores --example files` checks that it conforms.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Capabilities, Client, Connection, Consistency, Durability, ErrorClass, NoTransport,
    Profile, Promise, Put, Reading, RequestError, Store, Threading, ThreadingOf,
};
use kvdyno_stores::conformance::conformance;
use kvdyno_stores::{Entry, StoreError, StoreUrl, threading_of};

/// Line of the store in `kvdyno stores`, and the function that opens its URL: the registry's list names this.
pub const ENTRY: Entry = Entry {
    schemes: &["files"],
    name: "files",
    summary: "one file for each record",
    options: &[("create", "make the folder if it is not there; default true")],
    operations: "get: read; put: write to another file, then rename; delete: unlink",
    durability: "process: the system has each file, but nothing is synced",
    consistency: "linearizable: a rename takes effect at one instant",
    example: "files:/tmp/records",
    lacks: &Need::ALL,
    threading: threading_of::<FileStore>(),
    request: |request| request.plain(),
    check: |url| take_create(url).map(drop),
    open: |url| Ok(Arc::new(FileStore::open(url)?)),
};

struct FileStore {
    folder: PathBuf,
}

impl FileStore {
    fn open(url: &mut StoreUrl) -> Result<FileStore, StoreError> {
        let create = take_create(url)?;
        let folder = PathBuf::from(url.path());
        if create {
            fs::create_dir_all(&folder).map_err(|e| url.cannot_open(e, "name another folder"))?;
        }
        Ok(FileStore { folder })
    }
}

/// Takes all that a URL can say beside its path.
fn take_create(url: &mut StoreUrl) -> Result<bool, StoreError> {
    let create = url.take_flag("create")?.unwrap_or(true);
    // Refuses what is left over, so that a misspelt option is never ignored.
    url.finish()?;
    Ok(create)
}

impl Store for FileStore {
    type Client = FileClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    async fn profile(&self) -> Answer<Profile> {
        Ok(Profile {
            store: "files".to_owned(),
            version: None,
            capabilities: Capabilities::default(),
            durability: Promise::declared(Durability::ProcessKill),
            consistency: Promise::declared(Consistency::Linearizable),
            ttl_precision: Duration::ZERO,
            timeout: Duration::from_secs(60),
            settings: vec![("folder".to_owned(), self.folder.display().to_string())],
        })
    }

    async fn connect(&self, _slots: usize) -> Answer<Connection<FileClient, NoTransport>> {
        Ok(Connection::direct(FileClient { folder: self.folder.clone() }))
    }
    fn folder(&self) -> Option<&Path> {
        Some(&self.folder)
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

struct FileClient {
    folder: PathBuf,
}

impl FileClient {
    fn path(&self, key: &[u8]) -> PathBuf {
        // Keys are bytes, names of files are not: so hexadecimal, cut where a name gets too long.
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let parts: Vec<&str> = (0..digits.len())
            .step_by(200)
            .map(|at| &digits[at..digits.len().min(at + 200)])
            .collect();
        self.folder.join(parts.join("/")).with_extension("record")
    }
}

impl Client for FileClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        match fs::read(self.path(key)) {
            Ok(value) => {
                into.set_whole(&value);
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            // A read changes nothing, so it always fails surely.
            Err(e) => Err(RequestError::failed(ErrorClass::Unavailable, e.to_string())),
        }
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let path = self.path(put.key);
        let folder = path.parent().unwrap_or(&self.folder);
        let written = fs::create_dir_all(folder)
            .and_then(|()| tempfile::NamedTempFile::new_in(folder))
            .and_then(|mut file| file.write_all(put.value.whole()).map(|()| file));
        // Nothing is at the record's place yet: surely not applied.
        let file = written.map_err(|e| RequestError::failed(ErrorClass::Full, e.to_string()))?;
        // Whether a rename that failed has taken effect is not known: indeterminate.
        file.persist(path)
            .map(drop)
            .map_err(|e| RequestError::indeterminate(ErrorClass::Unavailable, e.to_string()))
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        match fs::remove_file(self.path(key)) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(RequestError::indeterminate(ErrorClass::Unavailable, e.to_string())),
        }
    }
}

fn check() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let mut url = StoreUrl::parse(&format!("{}:{}", ENTRY.schemes[0], folder.path().display()))?;
    print!("{}", conformance(&FileStore::open(&mut url)?)?);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    check()
}

#[test]
fn it_conforms() {
    check().unwrap();
}
