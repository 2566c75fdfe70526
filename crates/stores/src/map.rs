//! `map:` is a correct store in this process: what a sound store answers, to hold others and
//! kvdyno itself against. Every operation takes effect at one instant, under a lock.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Capabilities, Client, Connection, Consistency, Durability, FieldSpan, NoTransport,
    Profile, Promise, Put, Reading, Rows, Store, Threading, ThreadingOf,
};

use crate::entry::{Entry, threading_of};
use crate::error::StoreError;
use crate::in_process::{PATIENCE, refuse_place};
use crate::shards::Shards;
use crate::url::StoreUrl;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["map"],
    name: "map",
    summary: "a correct in-memory map in this process, the reference",
    options: &[],
    operations: "get, put (whole or single fields), delete, scan, batches, time to live; 64 \
                 BTreeMaps behind a mutex each; a scan locks all of them, a batch each in turn",
    durability: "none: all is gone when kvdyno ends",
    consistency: "linearizable for each record and each scan; a batch is not atomic",
    example: "map:",
    lacks: &[Need::Pipeline],
    threading: threading_of::<MapStore>(),
    request: |request| request.plain(),
    check: |url| MapStore::open(url).map(drop),
    open: |url| Ok(Arc::new(MapStore::open(url)?)),
};

/// Record as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    bytes: Vec<u8>,
    /// Places of the fields, by number; none if the record is one value.
    spans: Vec<FieldSpan>,
    /// Instant from which the record is gone; `None`: never.
    expires: Option<Instant>,
}

impl Record {
    /// Makes this record what it is after `put`. A partial put keeps the other fields, and the
    /// time to live unless it brings one.
    pub(crate) fn apply(&mut self, put: &Put<'_>) {
        if put.partial && put.record_fields > 1 {
            put.value.fields().for_each(|(index, bytes)| self.set_field(index, bytes));
            if put.ttl.is_some() {
                self.expires = deadline(put.ttl);
            }
            return;
        }
        self.expires = deadline(put.ttl);
        self.bytes.clear();
        self.bytes.extend_from_slice(put.value.whole());
        self.spans.clear();
        if put.record_fields > 1 {
            let mut start = 0;
            self.spans.extend(put.value.fields().map(|(index, bytes)| {
                let end = start + bytes.len() as u32;
                let span = FieldSpan { index, start, end };
                start = end;
                span
            }));
        }
    }

    fn set_field(&mut self, index: u16, bytes: &[u8]) {
        let at = self.spans.partition_point(|span| span.index < index);
        if self.spans.get(at).is_none_or(|span| span.index != index) {
            let start = self.spans.get(at).map_or(self.bytes.len() as u32, |next| next.start);
            self.spans.insert(at, FieldSpan { index, start, end: start });
        }
        let FieldSpan { start, end, .. } = self.spans[at];
        self.bytes.splice(start as usize..end as usize, bytes.iter().copied());
        self.spans[at].end = start + bytes.len() as u32;
        let shift = i64::from(self.spans[at].end) - i64::from(end);
        for span in &mut self.spans[at + 1..] {
            span.start = (i64::from(span.start) + shift) as u32;
            span.end = (i64::from(span.end) + shift) as u32;
        }
    }

    /// Returns true while the record is there.
    pub(crate) fn is_live(&self) -> bool {
        self.expires.is_none_or(|end| Instant::now() < end)
    }

    /// Returns all bytes, fields end to end.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns this record with one bit flipped, whose place comes from `random`.
    pub(crate) fn with_flipped_bit(&self, random: u64) -> Record {
        let mut wrong = self.clone();
        let bit = (random % (wrong.bytes.len() as u64 * 8)) as usize;
        wrong.bytes[bit / 8] ^= 1 << (bit % 8);
        wrong
    }

    /// Copies the record out.
    pub(crate) fn read(&self, into: &mut Reading) {
        if self.spans.is_empty() {
            return into.set_whole(&self.bytes);
        }
        for span in &self.spans {
            into.push_field(span.index, &self.bytes[span.start as usize..span.end as usize]);
        }
    }
}

fn deadline(ttl: Option<Duration>) -> Option<Instant> {
    ttl.and_then(|ttl| Instant::now().checked_add(ttl))
}

/// The store behind `map:`.
#[derive(Debug, Default)]
pub struct MapStore {
    records: Arc<Shards<Record>>,
}

impl MapStore {
    /// Makes an empty map.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL holds a host, a path or an option.
    pub fn open(url: &mut StoreUrl) -> Result<MapStore, StoreError> {
        refuse_place(url)?;
        url.finish()?;
        Ok(MapStore::default())
    }
}

impl Store for MapStore {
    type Client = MapClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    async fn profile(&self) -> Answer<Profile> {
        Ok(Profile {
            store: "map".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            capabilities: Capabilities {
                scan: true,
                batch_get: true,
                batch_put: true,
                ttl: true,
                fields: true,
                ..Capabilities::default()
            },
            durability: Promise::set_up(Durability::None),
            consistency: Promise::set_up(Consistency::Linearizable),
            ttl_precision: Duration::ZERO,
            timeout: PATIENCE,
            settings: Vec::new(),
        })
    }

    async fn connect(&self, _slots: usize) -> Answer<Connection<MapClient, NoTransport>> {
        Ok(Connection::direct(MapClient { records: Arc::clone(&self.records) }))
    }

    fn folder(&self) -> Option<&Path> {
        None
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

/// A client of a [`MapStore`].
#[derive(Debug)]
pub struct MapClient {
    records: Arc<Shards<Record>>,
}

impl MapClient {
    fn write(&self, put: &Put<'_>) {
        let mut shard = self.records.lock(put.key);
        match shard.get_mut(put.key) {
            Some(record) => {
                if !record.is_live() {
                    *record = Record::default();
                }
                record.apply(put);
            }
            None => {
                let mut record = Record::default();
                record.apply(put);
                shard.insert(put.key.into(), record);
            }
        }
    }
}

impl Client for MapClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let shard = self.records.lock(key);
        let Some(record) = shard.get(key).filter(|record| record.is_live()) else {
            return Ok(false);
        };
        record.read(into);
        Ok(true)
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        self.write(&put);
        Ok(())
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        Ok(self.records.lock(key).remove(key).is_some_and(|record| record.is_live()))
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        self.records.scan(from, |key, record| {
            if into.len() < count && record.is_live() {
                into.push(key, Some(record.bytes()));
            }
            into.len() < count
        });
        Ok(())
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        for key in keys {
            let shard = self.records.lock(key);
            let record = shard.get(*key).filter(|record| record.is_live());
            into.push(key, record.map(Record::bytes));
        }
        Ok(())
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        puts.iter().for_each(|put| self.write(put));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Value;

    use super::*;

    fn put<'a>(fields: &'a [FieldSpan], bytes: &'a [u8], partial: bool) -> Put<'a> {
        Put {
            key: b"key",
            value: Value::new(bytes, fields),
            insert: false,
            partial,
            record_fields: 3,
            ttl: None,
        }
    }

    fn span(index: u16, start: u32, end: u32) -> FieldSpan {
        FieldSpan { index, start, end }
    }

    fn fields(record: &Record) -> Vec<(u16, Vec<u8>)> {
        let mut reading = Reading::default();
        record.read(&mut reading);
        let cut = |s: &FieldSpan| reading.bytes()[s.start as usize..s.end as usize].to_vec();
        reading.spans().iter().map(|s| (s.index, cut(s))).collect()
    }

    #[test]
    fn a_partial_put_changes_only_its_fields() {
        let mut record = Record::default();
        record.apply(&put(&[span(0, 0, 2), span(1, 2, 4), span(2, 4, 6)], b"aabbcc", false));
        record.apply(&put(&[span(1, 0, 5)], b"BBBBB", true));
        let expected: Vec<(u16, Vec<u8>)> =
            vec![(0, b"aa".to_vec()), (1, b"BBBBB".to_vec()), (2, b"cc".to_vec())];
        assert_eq!(fields(&record), expected);
        record.apply(&put(&[span(1, 0, 1), span(2, 1, 2)], b"bc", true));
        assert_eq!(record.bytes(), b"aabc");
    }

    #[test]
    fn fields_written_alone_fall_into_order() {
        let mut record = Record::default();
        record.apply(&put(&[span(2, 0, 2)], b"cc", true));
        record.apply(&put(&[span(0, 0, 1)], b"a", true));
        record.apply(&put(&[span(1, 0, 3)], b"bbb", true));
        assert_eq!(record.bytes(), b"abbbcc");
        assert_eq!(fields(&record)[1], (1, b"bbb".to_vec()));
    }
}
