//! One request slot of a cache and of the store behind it. Which request goes where, and what the
//! answer is if one of the two fails: see `cache/mod.rs`.

use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::measure::now;
use kvdyno_core::store::{
    Answer, BoxedClient, Certainty, Client, OperationId, Put, Reading, Rows, Value,
};

use super::noticed::{Counts, Noticed};
use super::{Mode, Settings};

/// A client of a [`super::CacheStore`].
pub struct CacheClient {
    cache: BoxedClient,
    store: BoxedClient,
    settings: Settings,
    counts: Counts,
    noticed: Arc<Noticed>,
}

impl Drop for CacheClient {
    fn drop(&mut self) {
        self.noticed.add(&self.counts);
    }
}

/// Returns the put with its record as one value: a cache holds whole records only.
fn whole(put: Put<'_>) -> Put<'_> {
    Put { value: Value::new(put.value.whole(), &[]), record_fields: 1, partial: false, ..put }
}

/// Returns the put of a value into the cache.
fn fill<'a>(key: &'a [u8], value: &'a [u8], ttl: Option<Duration>) -> Put<'a> {
    let value = Value::new(value, &[]);
    Put { key, value, insert: false, partial: false, record_fields: 1, ttl }
}

impl CacheClient {
    pub(super) fn new(
        cache: BoxedClient,
        store: BoxedClient,
        settings: Settings,
        noticed: Arc<Noticed>,
    ) -> Self {
        CacheClient { cache, store, settings, counts: Counts::default(), noticed }
    }

    /// Counts a request to the cache that failed. The store's answer stands, whatever it is.
    fn note<T>(&mut self, answer: Answer<T>) -> Option<T> {
        answer.inspect_err(|error| self.counts.cache_failed(error)).ok()
    }

    /// Brings the cache up to date after a put that the store has acknowledged: takes the old value out, or puts the new one
    /// in.
    async fn after_put(&mut self, put: &Put<'_>) {
        let answer = match self.settings.mode {
            Mode::Aside => self.cache.delete(put.key).await.map(drop),
            Mode::Through => {
                self.cache.put(fill(put.key, put.value.whole(), self.settings.ttl)).await
            }
        };
        self.note(answer);
    }

    /// Takes a record out of the cache whose write the store may have applied, or may yet: the cached value may be old by
    /// then.
    async fn invalidate(&mut self, key: &[u8]) {
        let answer = self.cache.delete(key).await;
        self.note(answer);
    }
}

impl Client for CacheClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let begun = now();
        let answer = self.cache.get(key, into).await;
        let asked = now();
        self.counts.cache_get(asked - begun, answer.as_ref().ok().copied());
        if self.note(answer) == Some(true) {
            return Ok(true);
        }
        into.clear();
        let asked = now();
        let found = self.store.get(key, into).await?;
        self.counts.store_get(now() - asked);
        if found {
            let answer = self.cache.put(fill(key, into.bytes(), self.settings.ttl)).await;
            self.note(answer);
        }
        Ok(found)
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let put = whole(put);
        match self.store.put(put).await {
            Ok(()) => {
                self.after_put(&put).await;
                Ok(())
            }
            Err(error) => {
                if error.certainty == Certainty::Indeterminate {
                    self.invalidate(put.key).await;
                }
                Err(error)
            }
        }
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let answer = self.store.delete(key).await;
        if answer.as_ref().err().is_none_or(|f| f.certainty == Certainty::Indeterminate) {
            self.invalidate(key).await;
        }
        answer
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        self.store.scan(from, count, into).await
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        let mut cached = Rows::default();
        let begun = now();
        let answer = self.cache.get_batch(keys, &mut cached).await;
        let took = now() - begun;
        let whole = answer.is_ok() && cached.len() == keys.len();
        let hits = cached.iter().filter(|(_, value)| whole && value.is_some()).count();
        self.counts.cache_batch(took, keys.len(), whole.then_some(hits));
        self.note(answer);
        if !whole {
            cached.clear();
        }
        let mut hit: Vec<bool> = cached.iter().map(|(_, value)| value.is_some()).collect();
        hit.resize(keys.len(), false);
        let missed: Vec<&[u8]> =
            keys.iter().zip(&hit).filter(|(_, hit)| !**hit).map(|(key, _)| *key).collect();
        let mut read = Rows::default();
        if !missed.is_empty() {
            let begun = now();
            self.store.get_batch(&missed, &mut read).await?;
            self.counts.store_get(now() - begun);
        }
        let (mut cached, mut stored) = (cached.iter(), read.iter());
        for (key, hit) in keys.iter().zip(&hit) {
            let from_cache = cached.next();
            let row = if *hit { from_cache } else { stored.next() };
            into.push(key, row.and_then(|(_, value)| value));
        }
        for (key, value) in read.iter().filter_map(|(key, value)| Some((key, value?))) {
            let answer = self.cache.put(fill(key, value, self.settings.ttl)).await;
            self.note(answer);
        }
        Ok(())
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        let puts: Vec<Put<'_>> = puts.iter().copied().map(whole).collect();
        let answer = self.store.put_batch(&puts).await;
        for put in &puts {
            match &answer {
                Ok(()) => self.after_put(put).await,
                Err(error) if error.certainty == Certainty::Indeterminate => {
                    self.invalidate(put.key).await;
                }
                Err(_) => {}
            }
        }
        answer
    }

    fn begin(&mut self, operation: OperationId) {
        self.cache.begin(operation);
        self.store.begin(operation);
    }
}
