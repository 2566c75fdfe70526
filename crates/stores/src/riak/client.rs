//! The operations of one Riak client: which messages each sends and what their answers mean.

use kvdyno_core::store::{Answer, Client, ErrorClass, Put, Reading, RequestError};

use super::codec::{self, Object, code};
use super::messages::{RpbContent, RpbDelReq, RpbGetReq, RpbPutReq};
use super::options::{RiakOptions, Vclock};
use super::{Wire, errors, siblings};
use crate::wire::{Effect, Link, unexpected};

/// The one member: whichever node the connection leads to.
const NODE: usize = 0;

/// Media type of what kvdyno writes.
const CONTENT_TYPE: &[u8] = b"application/octet-stream";

/// One request slot of a connection to a node. Its messages are filled again for each request, so
/// that none is allocated.
pub struct RiakClient {
    link: Link<Wire>,
    get: RpbGetReq,
    /// A get of the vector clock alone.
    look: RpbGetReq,
    put: RpbPutReq,
    delete: RpbDelReq,
    vclock: Vclock,
    /// The vector clock that the next put takes along.
    clock: Vec<u8>,
}

impl RiakClient {
    pub(super) fn new(link: Link<Wire>, options: &RiakOptions, vclock: Vclock) -> Self {
        let bucket = options.bucket.clone().into_bytes();
        let bucket_type = options.bucket_type.clone().map(String::into_bytes);
        let (quorums, timeout) = (options.quorums, options.server_timeout);
        let get = RpbGetReq {
            bucket: bucket.clone(),
            r: quorums.r,
            pr: quorums.pr,
            timeout,
            r#type: bucket_type.clone(),
            ..RpbGetReq::default()
        };
        let look = RpbGetReq { head: Some(true), deletedvclock: Some(true), ..get.clone() };
        let content = RpbContent { value: Vec::new(), content_type: Some(CONTENT_TYPE.to_vec()) };
        let put = RpbPutReq {
            bucket: bucket.clone(),
            key: Some(Vec::new()),
            vclock: None,
            content,
            w: quorums.w,
            dw: quorums.dw,
            pw: quorums.pw,
            timeout,
            r#type: bucket_type.clone(),
        };
        let delete = RpbDelReq {
            bucket,
            key: Vec::new(),
            r: quorums.r,
            w: quorums.w,
            pr: quorums.pr,
            pw: quorums.pw,
            dw: quorums.dw,
            timeout,
            r#type: bucket_type,
        };
        RiakClient { link, get, look, put, delete, vclock, clock: Vec::new() }
    }

    /// Asks for the vector clock of a record, or of its tombstone. Empty if there is neither.
    async fn fetch_clock(&mut self, key: &[u8]) -> Answer<()> {
        fill(&mut self.look.key, key);
        let (look, clock) = (&self.look, &mut self.clock);
        let encode = |out: &mut Vec<u8>| codec::push(out, code::GET, look);
        let read = |reply: u8, answer: &[u8]| match reply {
            code::GOT => {
                let object = Object::read(codec::message(answer)).map_err(malformed)?;
                fill(clock, object.vclock().unwrap_or_default());
                Ok(())
            }
            other => Err(refused(Effect::Read, other, answer)),
        };
        self.link.request(NODE, Effect::Read, 1, encode, read).await
    }
}

impl Client for RiakClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        check_key(key)?;
        fill(&mut self.get.key, key);
        let get = &self.get;
        let encode = |out: &mut Vec<u8>| codec::push(out, code::GET, get);
        let read = |reply: u8, answer: &[u8]| match reply {
            code::GOT => {
                let object = Object::read(codec::message(answer)).map_err(malformed)?;
                let newest = siblings::newest(&object.contents());
                if let Some(content) = newest {
                    into.set_whole(content.value);
                }
                Ok(newest.is_some())
            }
            other => Err(refused(Effect::Read, other, answer)),
        };
        self.link.request(NODE, Effect::Read, 1, encode, read).await
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        check_key(put.key)?;
        // The vector's memory goes to and fro between the message and its place here.
        if let Some(clock) = self.put.vclock.take() {
            self.clock = clock;
        }
        if self.vclock == Vclock::Fetch {
            // An error of this get leaves nothing written.
            self.fetch_clock(put.key).await?;
            if !self.clock.is_empty() {
                self.put.vclock = Some(std::mem::take(&mut self.clock));
            }
        }
        fill(self.put.key.get_or_insert_default(), put.key);
        fill(&mut self.put.content.value, put.value.whole());
        let message = &self.put;
        let encode = |out: &mut Vec<u8>| codec::push(out, code::PUT, message);
        let read = |reply: u8, answer: &[u8]| match reply {
            code::DONE_PUT => Ok(()),
            other => Err(refused(Effect::Write, other, answer)),
        };
        self.link.request(NODE, Effect::Write, 1, encode, read).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        check_key(key)?;
        fill(&mut self.delete.key, key);
        let message = &self.delete;
        let encode = |out: &mut Vec<u8>| codec::push(out, code::DELETE, message);
        let read = |reply: u8, answer: &[u8]| match reply {
            // Riak says so whether there was a record or not.
            code::DONE_DELETE => Ok(true),
            other => Err(refused(Effect::Write, other, answer)),
        };
        self.link.request(NODE, Effect::Write, 1, encode, read).await
    }
}

/// Puts `bytes` where others were, in the same memory.
fn fill(place: &mut Vec<u8>, bytes: &[u8]) {
    place.clear();
    place.extend_from_slice(bytes);
}

fn check_key(key: &[u8]) -> Answer<()> {
    match key.is_empty() {
        false => Ok(()),
        true => Err(RequestError::failed(ErrorClass::Rejected, "Riak takes no empty key")),
    }
}

/// An answer that is not the one hoped for.
fn refused(effect: Effect, reply: u8, answer: &[u8]) -> RequestError {
    match reply {
        code::ERROR => errors::request_error(effect, codec::message(answer)),
        _ => unexpected(effect),
    }
}

/// A whole frame with a message that makes no sense, in the answer to a get.
fn malformed(problem: crate::wire::MalformedAnswer) -> RequestError {
    RequestError::failed(ErrorClass::Protocol, problem.0).losing_connection()
}
