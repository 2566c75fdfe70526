//! `plugin:PATH.so` drives an engine that kvdyno does not know, in this process, through the nine C
//! functions of `plugin/kvdyno.h`.
//!
//! A plug-in is not trusted to keep its contract: what it declares is checked when it is opened, and
//! every answer, length and row when it comes. What is wrong ends in an error that names the function.
//! It is compiled code in this process all the same, and can crash it.

mod contract;
mod interface;

use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Capabilities, Client, Connection, Consistency, Durability, NoTransport, Profile,
    Promise, Put, Reading, Rows, Store, Threading, ThreadingOf,
};

use self::contract::{Contract, Room};
use self::interface::{Calls, RawError, RawProfile, RawSettings};
use crate::engine::{DURABILITY_OPTION, EVERY_LEVEL, Folder, take_durability};
use crate::entry::{Entry, threading_of};
use crate::error::StoreError;
use crate::in_process::{PATIENCE, refuse_hosts};
use crate::url::StoreUrl;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["plugin"],
    name: "plugin",
    summary: "an engine of your own: a shared library with nine C functions (kvdyno.h)",
    options: &[
        ("durability", DURABILITY_OPTION),
        ("folder", "folder for the engine's files; default a temporary one"),
        ("config", "text that the plug-in is given as it is; default none"),
    ],
    operations: "get: kvdyno_get; put: kvdyno_put; delete: kvdyno_delete; scan, where the plug-in \
                 has it: kvdyno_scan",
    durability: "as the plug-in declares, at least what is asked for",
    consistency: "as the plug-in declares",
    example: "plugin:./sqlite.so?durability=process",
    lacks: &[Need::BatchGet, Need::BatchPut, Need::Ttl, Need::Pipeline],
    threading: threading_of::<PluginStore>(),
    request: |r| r.calls("kvdyno_get", "kvdyno_put", "kvdyno_delete", "kvdyno_scan"),
    check: |url| PluginOptions::take(url).map(drop),
    open: |url| Ok(Arc::new(PluginStore::open(url)?)),
};

/// Declaration of the plug-in about itself.
#[derive(Clone, Debug)]
struct Declared {
    name: String,
    version: String,
    scan: bool,
    durability: Durability,
    consistency: Consistency,
}

struct Shared {
    store: *mut c_void,
    contract: Contract,
    declared: Declared,
    settings: Vec<(String, String)>,
    calls: Calls,
    /// Folder of the engine. Last, so that a temporary folder goes after the engine has closed its files.
    folder: Folder,
}

// SAFETY: the store is only given to `kvdyno_connect`, which by its contract may be called from
// several threads at once, and to `kvdyno_close` when nobody else has it.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the store came from `kvdyno_open`, and each client, which holds this, is gone.
        unsafe { (self.calls.close)(self.store) }
    }
}

/// The store behind `plugin:`.
pub struct PluginStore {
    shared: Arc<Shared>,
}

impl PluginStore {
    /// Loads the library that the URL names and opens its engine.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option is wrong, [`StoreError::Open`] if the file is no plug-in, the
    /// engine declines, or it declares what it may not.
    pub fn open(url: &mut StoreUrl) -> Result<PluginStore, StoreError> {
        let PluginOptions { durability, folder, config } = PluginOptions::take(url)?;
        let path = library_path(url)?;
        let calls = Calls::load(&path).map_err(|no| url.cannot_open(no.problem, no.advice))?;
        let folder = Folder::at(url, &folder, durability, &EVERY_LEVEL)?;
        let contract = Contract::new(&path);
        let (store, declared) =
            open_engine(url, &calls, &contract, (&folder, &config, durability))?;
        let settings = vec![
            ("library".to_owned(), path.display().to_string()),
            ("folder".to_owned(), folder.setting().1),
            ("config".to_owned(), config.to_string_lossy().into_owned()),
        ];
        let shared = Shared { store, contract, declared, settings, calls, folder };
        Ok(PluginStore { shared: Arc::new(shared) })
    }
}

/// Options of the URL, beside its library.
struct PluginOptions {
    durability: Durability,
    /// Folder for the engine's files. Empty: a temporary one.
    folder: String,
    config: CString,
}

impl PluginOptions {
    fn take(url: &mut StoreUrl) -> Result<PluginOptions, StoreError> {
        let durability = take_durability(url, &EVERY_LEVEL)?;
        let folder = url.take("folder").unwrap_or_default();
        let config = url.take("config").unwrap_or_default();
        url.finish()?;
        refuse_hosts(url)?;
        let config = CString::new(config)
            .map_err(|_| url.wrong("a zero byte in `config`", "write text without one"))?;
        if url.path().is_empty() {
            return Err(url.wrong("no library", "write it like `plugin:./mine.so`"));
        }
        Ok(PluginOptions { durability, folder, config })
    }
}

/// Returns the file that the URL names, with its whole path: without a `/` it would be looked for among the
/// system's libraries.
fn library_path(url: &StoreUrl) -> Result<PathBuf, StoreError> {
    std::fs::canonicalize(url.path())
        .map_err(|error| url.cannot_open(error, "name the file of a shared library"))
}

type Opening<'a> = (&'a Folder, &'a CString, Durability);

/// Opens the engine and checks what it declares.
fn open_engine(
    url: &StoreUrl,
    calls: &Calls,
    contract: &Contract,
    (folder, config, asked): Opening<'_>,
) -> Result<(*mut c_void, Declared), StoreError> {
    let advice = "see what the plug-in asks for";
    let path = folder.path().to_string_lossy().into_owned();
    let path = CString::new(path).map_err(|error| url.cannot_open(error, advice))?;
    let settings =
        RawSettings { folder: path.as_ptr(), config: config.as_ptr(), durability: asked as i32 };
    let mut profile = RawProfile {
        name: [0; 64],
        version: [0; 64],
        operations: 0,
        durability: 0,
        consistency: 0,
    };
    let (mut store, mut error) = (ptr::null_mut(), RawError::new());
    // SAFETY: all pointers are to values of the header's types that outlive the call.
    let code = unsafe { (calls.open)(&settings, &mut store, &mut profile, &mut error) };
    contract
        .opened("kvdyno_open", code, store, &error)
        .map_err(|error| url.cannot_open(error.message.clone(), advice))?;
    let declared = contract.declared(&profile, calls.scan.is_some(), asked);
    declared.map(|declared| (store, declared)).map_err(|problem| {
        // SAFETY: the store came from `kvdyno_open`, and nobody else has it.
        unsafe { (calls.close)(store) };
        let advice = "ask for less with `durability=`, or mend the plug-in by kvdyno.h";
        url.cannot_open(problem, advice)
    })
}

impl Store for PluginStore {
    type Client = PluginClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    fn folder(&self) -> Option<&Path> {
        Some(self.shared.folder.path())
    }

    async fn profile(&self) -> Answer<Profile> {
        let Shared { declared, settings, .. } = &*self.shared;
        Ok(Profile {
            store: declared.name.clone(),
            version: Some(declared.version.clone()).filter(|version| !version.is_empty()),
            capabilities: Capabilities { scan: declared.scan, ..Capabilities::default() },
            durability: Promise::declared(declared.durability),
            consistency: Promise::declared(declared.consistency),
            ttl_precision: std::time::Duration::ZERO,
            timeout: PATIENCE,
            settings: settings.clone(),
        })
    }

    async fn connect(&self, _slots: usize) -> Answer<Connection<PluginClient, NoTransport>> {
        let shared = Arc::clone(&self.shared);
        let (mut client, mut error) = (ptr::null_mut(), RawError::new());
        // SAFETY: the store is open, and the other pointers are to values that outlive the call.
        let code = unsafe { (shared.calls.connect)(shared.store, &mut client, &mut error) };
        shared.contract.opened("kvdyno_connect", code, client, &error)?;
        Ok(Connection::direct(PluginClient { client, shared, room: Room::default() }))
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

/// A client of a [`PluginStore`].
pub struct PluginClient {
    client: *mut c_void,
    shared: Arc<Shared>,
    room: Room,
}

impl Drop for PluginClient {
    fn drop(&mut self) {
        // SAFETY: the client came from `kvdyno_connect`, and this is its only owner.
        unsafe { (self.shared.calls.disconnect)(self.client) }
    }
}

impl Client for PluginClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let Shared { calls, contract, .. } = &*self.shared;
        let found = self.room.read(contract, "kvdyno_get", |buffer, error| {
            // SAFETY: the client is this thread's alone; key, buffer and error outlive the call.
            unsafe { (calls.get)(self.client, key.into(), buffer, error) }
        })?;
        if let Some(value) = found {
            into.set_whole(value);
        }
        Ok(found.is_some())
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let Shared { calls, contract, .. } = &*self.shared;
        let mut error = RawError::new();
        let (key, value) = (put.key.into(), put.value.whole().into());
        // SAFETY: the client is this thread's alone; key, value and error outlive the call.
        let code = unsafe { (calls.put)(self.client, key, value, &mut error) };
        contract.written("kvdyno_put", code, false, &error).map(drop)
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let Shared { calls, contract, .. } = &*self.shared;
        let mut error = RawError::new();
        // SAFETY: the client is this thread's alone; key and error outlive the call.
        let code = unsafe { (calls.delete)(self.client, key.into(), &mut error) };
        contract.written("kvdyno_delete", code, true, &error)
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        let Shared { calls, contract, declared, .. } = &*self.shared;
        let Some(scan) = calls.scan.filter(|_| declared.scan) else {
            return Err(kvdyno_core::store::RequestError::unsupported("scan"));
        };
        let rows = self.room.read(contract, "kvdyno_scan", |buffer, error| {
            // SAFETY: the client is this thread's alone; key, buffer and error outlive the call.
            unsafe { scan(self.client, from.into(), count, buffer, error) }
        })?;
        contract.rows(rows, count, into)
    }
}
