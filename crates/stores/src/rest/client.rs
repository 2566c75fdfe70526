//! The operations of one client of a REST store: which requests each sends and what their answers mean.

use std::sync::Arc;

use kvdyno_core::store::{Answer, Client, ErrorClass, Put, Reading, RequestError};

use super::codec::{Body, Chunks, Reply};
use super::template::{self, Template};
use super::{Wire, errors};
use crate::wire::{Effect, Link};

/// The one server.
const ONLY: usize = 0;

/// The one request slot of a connection to a REST store.
pub struct RestClient {
    link: Link<Wire>,
    template: Arc<Template>,
}

impl RestClient {
    pub(super) fn new(link: Link<Wire>, template: Arc<Template>) -> Self {
        RestClient { link, template }
    }
}

impl Client for RestClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        check_key(key)?;
        let RestClient { link, template } = self;
        let read = |reply: Reply, answer: &[u8]| match reply.status {
            200 | 203 if reply.encoded => Err(errors::encoded(answer)),
            200 | 203 | 204 => {
                read_body(&reply, answer, into);
                Ok(true)
            }
            404 | 410 => Ok(false),
            _ => Err(errors::request_error(Effect::Read, &reply, answer)),
        };
        link.request(ONLY, Effect::Read, 1, |out| template.push_get(out, key), read).await
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        check_key(put.key)?;
        let RestClient { link, template } = self;
        if put.ttl.is_some() && !template.takes_ttl() {
            return Err(RequestError::unsupported(
                "a time to live, without the option `ttl=HEADER`",
            ));
        }
        let encode =
            |out: &mut Vec<u8>| template.push_put(out, put.key, put.value.whole(), put.ttl);
        let read = |reply: Reply, answer: &[u8]| match reply.status {
            200 | 201 | 204 => Ok(()),
            _ => Err(errors::request_error(Effect::Write, &reply, answer)),
        };
        link.request(ONLY, Effect::Write, 1, encode, read).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        check_key(key)?;
        let RestClient { link, template } = self;
        let read = |reply: Reply, answer: &[u8]| match reply.status {
            200 | 204 => Ok(true),
            404 | 410 => Ok(false),
            _ => Err(errors::request_error(Effect::Write, &reply, answer)),
        };
        link.request(ONLY, Effect::Write, 1, |out| template.push_delete(out, key), read).await
    }
}

fn read_body(reply: &Reply, answer: &[u8], into: &mut Reading) {
    match reply.body {
        Body::Whole { start, end } => into.set_whole(&answer[start..end]),
        Body::Chunked { start } => {
            into.clear();
            Chunks::new(answer, start).for_each(|piece| into.whole_mut().extend_from_slice(piece));
        }
    }
}

fn check_key(key: &[u8]) -> Answer<()> {
    if template::is_key(key) {
        return Ok(());
    }
    const MESSAGE: &str = "an empty key, `.` and `..` cannot be segments of a path";
    Err(RequestError::failed(ErrorClass::Rejected, MESSAGE))
}
