//! The operations of one Redis client.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kvdyno_core::store::{Answer, Client, Put, Reading, RequestError, Rows};

use super::codec::Token;
use super::commands::{Writing, push_del, push_get, read_number, read_record};
use super::learned::{Learned, learn};
use super::request::Request;
use super::router::Router;
use crate::wire::Effect;

/// One request slot of a connection to Redis, or of connections to several of its servers.
pub struct RedisClient {
    router: Router,
    learned: Arc<Learned>,
}

impl RedisClient {
    pub(super) fn new(router: Router, learned: Arc<Learned>) -> Self {
        RedisClient { router, learned }
    }
}

impl Client for RedisClient {
    #[inline(always)]
    fn get<'a>(
        &'a mut self,
        key: &'a [u8],
        into: &'a mut Reading,
    ) -> impl Future<Output = Answer<bool>> {
        let hashes = &self.learned.hashes;
        let request = Request {
            key,
            effect: Effect::Read,
            parts: 1,
            hash: hashes.load(Ordering::Acquire),
            // The first read of a run that has written nothing does not know yet how records are kept.
            learns: Some(hashes),
            encode: push_get,
            read: |first: Token, answer: &[u8]| read_record(first, answer, into),
        };
        self.router.send(request)
    }

    #[inline(always)]
    fn put<'a>(&'a mut self, put: Put<'a>) -> impl Future<Output = Answer<()>> {
        let hash = put.record_fields > 1;
        learn(&self.learned.hashes, hash);
        let expiring = &self.learned.expiring_hashes;
        if hash && put.ttl.is_some() {
            learn(expiring, true);
        }
        let writing = Writing::of(&put, hash && expiring.load(Ordering::Acquire));
        let request = Request {
            key: put.key,
            effect: Effect::Write,
            parts: writing.parts(),
            hash,
            learns: None,
            encode: move |out: &mut Vec<u8>, _: &[u8], _| writing.push(out, &put),
            read: move |first: Token, answer: &[u8]| writing.read(first, answer),
        };
        self.router.send(request)
    }

    #[inline(always)]
    fn delete<'a>(&'a mut self, key: &'a [u8]) -> impl Future<Output = Answer<bool>> {
        let request = Request {
            key,
            effect: Effect::Write,
            parts: 1,
            hash: false,
            learns: None,
            encode: |out: &mut Vec<u8>, key: &[u8], _| push_del(out, key),
            read: |first: Token, answer: &[u8]| Ok(read_number(first, answer)? > 0),
        };
        self.router.send(request)
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        if self.learned.hashes.load(Ordering::Acquire) {
            return Err(RequestError::unsupported("get-batch of records with several fields"));
        }
        if keys.is_empty() {
            return Ok(());
        }
        // Boxed, as in `put_batch`: its state would double that of each client, which is fetched from
        // memory for each of its requests.
        Box::pin(self.router.get_batch(keys, into)).await
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        if puts.iter().any(|put| put.record_fields > 1) {
            return Err(RequestError::unsupported("put-batch of records with several fields"));
        }
        if puts.is_empty() {
            return Ok(());
        }
        learn(&self.learned.hashes, false);
        Box::pin(self.router.put_batch(puts)).await
    }
}
