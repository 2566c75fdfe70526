//! `null:` answers at once and stores nothing: what remains is kvdyno's own cost. Reads bring
//! values that carry a sound stamp for the key asked for, so that they are checked as any other.
//!
//! A get does its work before its future, which is so small that both are compiled into the load loop.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Capabilities, Client, Connection, Consistency, Durability, NoTransport, Profile,
    Promise, Put, Reading, Rows, Store, Threading, ThreadingOf,
};
use kvdyno_core::verify::stamp::{fabricate_for, fabricate_template};

use crate::entry::{Entry, threading_of};
use crate::error::StoreError;
use crate::in_process::{PATIENCE, refuse_place};
use crate::url::StoreUrl;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["null"],
    name: "null",
    summary: "answers at once and stores nothing, to measure kvdyno itself",
    options: &[("length", "bytes of each value read; default 100")],
    operations: "get: a value fabricated for the key; put: OK; delete: yes; batches alike; no scan",
    durability: "none: nothing is stored",
    consistency: "none: a read never sees a write",
    example: "null:?length=100",
    lacks: &[Need::Scan, Need::Ttl, Need::Pipeline, Need::Storage],
    threading: threading_of::<NullStore>(),
    request: |request| request.plain(),
    check: |url| take_length(url).map(drop),
    open: |url| Ok(Arc::new(NullStore::open(url)?)),
};

/// Longest value, so that a slip of the pen does not take all memory.
const LONGEST: u64 = 1 << 30;

/// The store behind `null:`.
#[derive(Debug)]
pub struct NullStore {
    template: Arc<[u8]>,
}

impl NullStore {
    /// Prepares the value that reads bring.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option is wrong.
    pub fn open(url: &mut StoreUrl) -> Result<NullStore, StoreError> {
        let mut template = vec![0; take_length(url)?];
        fabricate_template(&mut template);
        Ok(NullStore { template: template.into() })
    }
}

/// Takes the length of values, all that a URL can say.
fn take_length(url: &mut StoreUrl) -> Result<usize, StoreError> {
    refuse_place(url)?;
    let length = url.take_bytes("length")?.unwrap_or(100);
    url.finish()?;
    if length > LONGEST {
        return Err(url.wrong("`length` is too large", "give at most 1GiB"));
    }
    Ok(length as usize)
}

impl Store for NullStore {
    type Client = NullClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    async fn profile(&self) -> Answer<Profile> {
        Ok(Profile {
            store: "null".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            capabilities: Capabilities {
                batch_get: true,
                batch_put: true,
                fabricates: true,
                ..Capabilities::default()
            },
            durability: Promise::set_up(Durability::None),
            consistency: Promise::set_up(Consistency::Eventual),
            ttl_precision: Duration::ZERO,
            timeout: PATIENCE,
            settings: vec![("length, bytes".to_owned(), self.template.len().to_string())],
        })
    }

    async fn connect(&self, _slots: usize) -> Answer<Connection<NullClient, NoTransport>> {
        let (template, value) = (Arc::clone(&self.template), self.template.to_vec());
        Ok(Connection::direct(NullClient { template, value }))
    }

    fn folder(&self) -> Option<&Path> {
        None
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

/// A client of a [`NullStore`].
#[derive(Debug)]
pub struct NullClient {
    template: Arc<[u8]>,
    /// Memory for the value of a batch's key.
    value: Vec<u8>,
}

impl Client for NullClient {
    #[inline]
    fn get(&mut self, key: &[u8], into: &mut Reading) -> impl Future<Output = Answer<bool>> {
        // Copied before the key is entered: a copy would have to wait for what was just written.
        into.set_whole(&self.template);
        fabricate_for(into.whole_mut(), key);
        async { Ok(true) }
    }

    async fn put(&mut self, _put: Put<'_>) -> Answer<()> {
        Ok(())
    }

    async fn delete(&mut self, _key: &[u8]) -> Answer<bool> {
        Ok(true)
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        for key in keys {
            fabricate_for(&mut self.value, key);
            into.push(key, Some(&self.value));
        }
        Ok(())
    }

    async fn put_batch(&mut self, _puts: &[Put<'_>]) -> Answer<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::verify::stamp::{Expected, check};

    use super::*;

    fn open(options: &str) -> Result<NullStore, StoreError> {
        NullStore::open(&mut StoreUrl::parse(&format!("null:?{options}")).unwrap())
    }

    fn expected(key: &[u8]) -> Expected<'_> {
        Expected { dataset: 1, session: 2, record: 3, field: 0, fabricated_key: Some(key) }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_it_answers_passes_the_check_for_its_key_and_no_other() {
        for length in [8, 16, 31, 32, 100, 4096] {
            let store = open(&format!("length={length}")).unwrap();
            let mut client = store.connect(1).await.unwrap().clients.remove(0);
            let mut reading = Reading::default();
            for key in [&b"key00001"[..], b"key00002", b"key00001"] {
                assert_eq!(client.get(key, &mut reading).await, Ok(true));
                assert_eq!(reading.bytes().len(), length);
                assert!(check(reading.bytes(), &expected(key)).unwrap().is_fabricated());
                assert!(check(reading.bytes(), &expected(b"key00003")).is_err());
            }
            let mut rows = Rows::default();
            client.get_batch(&[b"key00001", b"key00002"], &mut rows).await.unwrap();
            assert_eq!(rows.len(), 2);
            for (key, value) in rows.iter() {
                assert!(check(value.unwrap(), &expected(key)).is_ok());
            }
        }
    }

    #[test]
    fn a_wrong_length_is_refused() {
        assert!(open("length=2GiB").is_err());
        assert!(open("length=x").is_err());
        assert_eq!(open("").unwrap().template.len(), 100);
    }
}
