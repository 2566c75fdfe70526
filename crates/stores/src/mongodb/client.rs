//! The operations of one MongoDB client: which commands each sends and what their answers mean.

use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::store::{Answer, Client, Put, Reading, Rows};
use mongodb::Cursor;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawArrayBuf, RawDocumentBuf, doc};
use mongodb::error::Error;
use mongodb::options::{Acknowledgment, WriteConcern};

use super::pool::Pool;
use super::{documents, errors};
use crate::wire::Effect;

/// A client of a MongoDB deployment: it has one request in flight, and so at most one connection
/// to each server.
pub struct MongoClient {
    pool: Arc<Pool>,
    timeout: Duration,
    reading: Reading,
}

impl MongoClient {
    pub(super) fn new(pool: Arc<Pool>, timeout: Duration) -> Self {
        MongoClient { pool, timeout, reading: Reading::default() }
    }

    /// Waits for the driver, no longer than the time allowed: it has no limit of its own. A
    /// connection whose answer was not waited for is closed.
    async fn bounded<T>(
        &self,
        effect: Effect,
        request: impl IntoFuture<Output = Result<T, Error>>,
    ) -> Answer<T> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(answer) => answer.map_err(|error| errors::request_error(&error, effect)),
            Err(_) => Err(effect.timed_out(self.timeout)),
        }
    }

    /// Inserts a record whose key is new, as users of MongoDB do. Returns `false` if the key was there all the same: only
    /// then a second request replaces the record.
    async fn insert(&self, record: &RawDocumentBuf) -> Answer<bool> {
        let insert = self.pool.records.insert_one(record);
        match tokio::time::timeout(self.timeout, insert).await {
            Ok(Ok(_)) => Ok(true),
            Ok(Err(error)) if errors::is_duplicate(&error) => Ok(false),
            Ok(Err(error)) => Err(errors::request_error(&error, Effect::Write)),
            Err(_) => Err(Effect::Write.timed_out(self.timeout)),
        }
    }

    /// Inserts many records like [`MongoClient::insert`].
    async fn insert_all(&self, puts: &[Put<'_>]) -> Answer<bool> {
        let records = puts.iter().map(documents::record).collect::<Answer<Vec<_>>>()?;
        let insert = self.pool.records.insert_many(records);
        match tokio::time::timeout(self.timeout, insert).await {
            Ok(Ok(_)) => Ok(true),
            Ok(Err(error)) if errors::is_duplicate(&error) => Ok(false),
            Ok(Err(error)) => Err(errors::request_error(&error, Effect::Write)),
            Err(_) => Err(Effect::Write.timed_out(self.timeout)),
        }
    }

    /// Returns one `update` command for all of them; the driver's own bulk writes need MongoDB 8.
    fn update_command(&self, puts: &[Put<'_>]) -> Answer<RawDocumentBuf> {
        let mut updates = RawArrayBuf::new();
        for put in puts {
            let mut update = RawDocumentBuf::new();
            update.append(cstr!("q"), raw(&documents::filter(put.key)?)?);
            let change =
                if put.partial { raw(&documents::changes(put))? } else { documents::record(put)? };
            update.append(cstr!("u"), change);
            update.append(cstr!("upsert"), true);
            updates.push(update);
        }
        let mut command = RawDocumentBuf::new();
        command.append(cstr!("update"), self.pool.records.name());
        command.append(cstr!("updates"), updates);
        command.append(cstr!("ordered"), true);
        if let Some(concern) = self.pool.records.write_concern() {
            command.append(cstr!("writeConcern"), raw(&write_concern(concern))?);
        }
        Ok(command)
    }

    /// Adds all that a cursor brings.
    async fn drain(
        &mut self,
        mut cursor: Cursor<RawDocumentBuf>,
        mut row: impl FnMut(&str, &[u8]),
    ) -> Answer<()> {
        while self.bounded(Effect::Read, cursor.advance()).await? {
            let (key, value) = documents::row(cursor.current(), &mut self.reading)?;
            row(key, value);
        }
        Ok(())
    }
}

fn raw(document: &Document) -> Answer<RawDocumentBuf> {
    RawDocumentBuf::try_from(document)
        .map_err(|error| errors::request_error(&error.into(), Effect::Read))
}

/// Returns the write concern as the driver writes it into its own commands.
fn write_concern(concern: &WriteConcern) -> Document {
    let mut out = Document::new();
    match &concern.w {
        None => {}
        Some(Acknowledgment::Nodes(nodes)) => drop(out.insert("w", i64::from(*nodes))),
        Some(Acknowledgment::Custom(name)) => drop(out.insert("w", name)),
        Some(_) => drop(out.insert("w", "majority")),
    }
    if let Some(journal) = concern.journal {
        out.insert("j", journal);
    }
    if let Some(timeout) = concern.w_timeout {
        out.insert("wtimeout", i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX));
    }
    out
}

impl Client for MongoClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let find = self.pool.records.find_one(documents::filter(key)?);
        let Some(record) = self.bounded(Effect::Read, find).await? else { return Ok(false) };
        documents::read(&record, into)?;
        Ok(true)
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let records = &self.pool.records;
        if put.partial {
            let (filter, change) = (documents::filter(put.key)?, documents::changes(&put));
            let update = records.update_one(filter, change).upsert(true);
            self.bounded(Effect::Write, update).await?;
            return Ok(());
        }
        let record = documents::record(&put)?;
        if put.insert && self.insert(&record).await? {
            return Ok(());
        }
        let replace = records.replace_one(documents::filter(put.key)?, record).upsert(true);
        self.bounded(Effect::Write, replace).await?;
        Ok(())
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let delete = self.pool.records.delete_one(documents::filter(key)?);
        Ok(self.bounded(Effect::Write, delete).await?.deleted_count > 0)
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        // A limit of 0 would be none.
        if count == 0 {
            return Ok(());
        }
        let filter = doc! { "_id": { "$gte": documents::id(from)? } };
        // All in the first answer, unless it grows above 16 MiB.
        let find = self.pool.records.find(filter).sort(doc! { "_id": 1 });
        let find = find.limit(count as i64).batch_size(count as u32);
        let cursor = self.bounded(Effect::Read, find).await?;
        self.drain(cursor, |key, value| into.push(key.as_bytes(), Some(value))).await
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        let ids = keys.iter().map(|key| documents::id(key)).collect::<Answer<Vec<_>>>()?;
        let filter = doc! { "_id": { "$in": &ids } };
        let find = self.pool.records.find(filter).batch_size(ids.len() as u32);
        let cursor = self.bounded(Effect::Read, find).await?;
        // They come in the order of the index, each once.
        let mut found = Rows::default();
        self.drain(cursor, |key, value| found.push(key.as_bytes(), Some(value))).await?;
        let mut sorted: Vec<_> = found.iter().collect();
        sorted.sort_unstable();
        for key in keys {
            let at = sorted.binary_search_by(|(known, _)| known.cmp(key));
            into.push(key, at.ok().and_then(|at| sorted[at].1));
        }
        Ok(())
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        if puts.iter().all(|put| put.insert && !put.partial) && self.insert_all(puts).await? {
            return Ok(());
        }
        let command = self.pool.database.run_raw_command(self.update_command(puts)?);
        let answer = self.bounded(Effect::Write, command).await?;
        errors::of_update(&answer).map_or(Ok(()), Err)
    }
}
