//! The operations of one Tarantool client: which requests each sends and what their answers mean.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kvdyno_core::store::{Answer, Client, Put, Reading, Rows};

use super::codec::{self, Reader, Reply};
use super::{Place, Wire, errors};
use crate::wire::{Effect, Link, unexpected};

/// The one member: whichever server the connection leads to.
const SERVER: usize = 0;

/// Gets of several keys, in the order asked.
const GET_ALL: &str = "local s, keys = box.space[...], select(2, ...) local found = {} \
     for i = 1, #keys do local t = s:get(keys[i]) found[i] = t and t[2] or box.NULL end return found";

/// Puts of several records: all or none.
const PUT_ALL: &str = "local s, tuples = box.space[...], select(2, ...) \
     box.atomic(function() for i = 1, #tuples do s:replace(tuples[i]) end end)";

/// The one request slot of a connection to a server.
pub struct TarantoolClient {
    link: Link<Wire>,
    place: Arc<Place>,
}

impl TarantoolClient {
    pub(super) fn new(link: Link<Wire>, place: Arc<Place>) -> Self {
        TarantoolClient { link, place }
    }

    fn space(&self) -> u32 {
        self.place.space_id.load(Ordering::Relaxed)
    }

    async fn request<T>(
        &mut self,
        effect: Effect,
        encode: impl FnOnce(&mut Vec<u8>),
        read: impl FnOnce(Reader<'_>) -> Option<T> + Unpin,
    ) -> Answer<T> {
        let read = |reply: Reply, answer: &[u8]| match reply.error {
            0 => read(Reader::of(answer, reply)).ok_or_else(|| unexpected(effect)),
            _ => Err(errors::request_error(effect, reply, answer)),
        };
        self.link.request(SERVER, effect, 1, encode, read).await
    }
}

impl Client for TarantoolClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let space = self.space();
        let read = |mut data: Reader<'_>| {
            let found = data.array()? > 0;
            if found {
                into.set_whole(data.record()?.1);
            }
            Some(found)
        };
        let encode = |out: &mut Vec<u8>| codec::push_select(out, space, key, false, 1);
        self.request(Effect::Read, encode, read).await
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let space = self.space();
        let encode =
            |out: &mut Vec<u8>| codec::push_replace(out, space, put.key, put.value.whole());
        self.request(Effect::Write, encode, |mut data| data.array().map(drop)).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let space = self.space();
        let encode = |out: &mut Vec<u8>| codec::push_delete(out, space, key);
        // It answers with what it removed, and vinyl with nothing.
        let found = self.place.is_vinyl.load(Ordering::Relaxed);
        self.request(Effect::Write, encode, |mut data| Some(data.array()? > 0 || found)).await
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        let (space, limit) = (self.space(), u32::try_from(count).unwrap_or(u32::MAX));
        let encode = |out: &mut Vec<u8>| codec::push_select(out, space, from, true, limit);
        let read = |mut data: Reader<'_>| {
            for _ in 0..data.array()? {
                let (key, value) = data.record()?;
                into.push(key, Some(value));
            }
            Some(())
        };
        self.request(Effect::Read, encode, read).await
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        let space = self.space();
        let encode = |out: &mut Vec<u8>| {
            codec::push_eval(out, GET_ALL, 2, |out| {
                codec::push_number(out, space);
                codec::push_array(out, keys.len());
                keys.iter().for_each(|key| codec::push_text(out, key));
            });
        };
        let read = |mut data: Reader<'_>| {
            data.array()?;
            if data.array()? != keys.len() as u64 {
                return None;
            }
            for key in keys {
                let value = if data.nil() { None } else { Some(data.text()?) };
                into.push(key, value);
            }
            Some(())
        };
        self.request(Effect::Read, encode, read).await
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        let space = self.space();
        let encode = |out: &mut Vec<u8>| {
            codec::push_eval(out, PUT_ALL, 2, |out| {
                codec::push_number(out, space);
                codec::push_array(out, puts.len());
                for put in puts {
                    codec::push_array(out, 2);
                    codec::push_text(out, put.key);
                    codec::push_text(out, put.value.whole());
                }
            });
        };
        self.request(Effect::Write, encode, |mut data| data.array().map(drop)).await
    }
}
