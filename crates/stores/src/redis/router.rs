//! Where a client's requests go: to one server, to the one that has the key, to a primary and its
//! replica, or into a cluster. The commands are those of `client.rs` in each case.

use std::future::{Future, ready};

use futures_util::future::Either;
use kvdyno_core::store::{Answer, ErrorClass, Fault, Put, Rows};

use super::client::{EXEC, MULTI, milliseconds, read_transaction};
use super::cluster::View;
use super::codec::{Token, Tokens, push_command, push_number, push_word};
use super::errors;
use super::sharded::ShardView;
use super::store::ReadFrom;
use super::wire::Wire;
use crate::placement::Split;
use crate::wire::{Effect, Link, outcome_of_all, unexpected};

/// How the member for a request is found.
#[derive(Clone)]
pub(super) enum Route {
    /// All on one server.
    Single,
    /// By the key.
    Sharded(ShardView),
    /// Member 0 is the primary, member 1 a replica of it where reads go there.
    Watched(ReadFrom),
    /// By the key's slot.
    Cluster(View),
}

/// One client's way to the servers.
pub(super) struct Router {
    link: Link<Wire>,
    route: Route,
}

impl Router {
    pub(super) fn new(link: Link<Wire>, route: Route) -> Self {
        Router { link, route }
    }

    /// Sends what `encode` appends to the server of `key` and reads its answer of `parts` replies.
    #[inline]
    pub(super) fn send<'a, T, E, R>(
        &'a mut self,
        key: &'a [u8],
        (effect, parts): (Effect, u32),
        encode: E,
        mut read: R,
    ) -> impl Future<Output = Answer<T>> + use<'a, T, E, R>
    where
        E: Fn(&mut Vec<u8>) + 'a,
        R: FnMut(Token, &[u8]) -> Answer<T> + Unpin + 'a,
        T: 'a,
    {
        let (member, watched) = match &mut self.route {
            Route::Single => (0, false),
            Route::Sharded(view) => match view.placement(&mut self.link) {
                Ok(placement) => (placement.of(key), false),
                Err(fault) => return Either::Right(Either::Left(ready(Err(fault)))),
            },
            Route::Watched(from) => (watched_member(*from, effect), true),
            Route::Cluster(view) => {
                let (link, what) = (&mut self.link, (effect, parts));
                return Either::Right(Either::Right(view.send(link, key, what, encode, read)));
            }
        };
        let read = move |first: Token, answer: &[u8]| match read(first, answer) {
            Err(fault) if watched => Err(demoted(fault)),
            answer => answer,
        };
        Either::Left(self.link.request(member, effect, parts, encode, read))
    }

    /// Reads several records.
    pub(super) async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        let link = &mut self.link;
        let split = match &mut self.route {
            Route::Cluster(view) => return view.get_batch(link, keys, into).await,
            Route::Single => Split::new(keys.iter().map(|_| 0)),
            Route::Sharded(view) => {
                let placement = view.placement(link)?;
                Split::new(keys.iter().map(|key| placement.of(key)))
            }
            Route::Watched(from) => {
                Split::new(keys.iter().map(|_| watched_member(*from, Effect::Read)))
            }
        };
        for (position, &member) in split.servers().iter().enumerate() {
            link.submit(member, Effect::Read, 1, |out| {
                push_command(out, 1 + split.records(position).count());
                push_word(out, b"MGET");
                split.records(position).for_each(|record| push_word(out, keys[record]));
            });
        }
        link.gather(split.servers(), |answers| read_rows(keys, &split, answers, into)).await
    }

    /// Writes several records.
    pub(super) async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        let link = &mut self.link;
        let split = match &mut self.route {
            Route::Cluster(view) => return view.put_batch(link, puts).await,
            Route::Single => Split::new(puts.iter().map(|_| 0)),
            Route::Sharded(view) => {
                let placement = view.placement(link)?;
                Split::new(puts.iter().map(|put| placement.of(put.key)))
            }
            Route::Watched(from) => {
                Split::new(puts.iter().map(|_| watched_member(*from, Effect::Write)))
            }
        };
        let watched = matches!(self.route, Route::Watched(_));
        let expiring = puts.iter().any(|put| put.ttl.is_some());
        for (position, &member) in split.servers().iter().enumerate() {
            let count = split.records(position).count();
            let parts = if expiring { count as u32 + 2 } else { 1 };
            let puts = || split.records(position).map(|record| &puts[record]);
            link.submit(member, Effect::Write, parts, |out| match expiring {
                true => push_transaction(out, puts()),
                false => push_mset(out, count, puts()),
            });
        }
        let read = |answers: Vec<Answer<(Token, &[u8])>>| {
            let outcomes = answers.into_iter().map(|answer| match answer? {
                (_, replies) if expiring => read_transaction(replies),
                (Token::Error(text), replies) => Err(errors::fault(text.of(replies))),
                (first, _) => set_answer(first),
            });
            let outcome = outcome_of_all(outcomes);
            if watched { outcome.map_err(demoted) } else { outcome }
        };
        link.gather(split.servers(), read).await
    }
}

fn watched_member(from: ReadFrom, effect: Effect) -> usize {
    match (from, effect) {
        (ReadFrom::Replica, Effect::Read) => 1,
        _ => 0,
    }
}

/// A primary that has become a replica refuses writes. The connection to it is given up, so that the
/// next request asks the sentinels for the new one.
#[cold]
fn demoted(fault: Fault) -> Fault {
    if !fault.message.starts_with("READONLY") {
        return fault;
    }
    let message = "READONLY: the server is the primary no more; the sentinels are asked again";
    Fault { class: ErrorClass::Unavailable, message: message.into(), ..fault }.losing_connection()
}

/// `SET key value`, with `PX milliseconds` for a time to live.
pub(super) fn push_set(out: &mut Vec<u8>, put: &Put<'_>) {
    let head: &[u8] =
        if put.ttl.is_some() { b"*5\r\n$3\r\nSET\r\n" } else { b"*3\r\n$3\r\nSET\r\n" };
    out.extend_from_slice(head);
    push_word(out, put.key);
    push_word(out, put.value.whole());
    if let Some(ttl) = put.ttl {
        out.extend_from_slice(b"$2\r\nPX\r\n");
        push_number(out, milliseconds(ttl));
    }
}

/// What `SET` and `MSET` answer if they are not refused.
pub(super) fn set_answer(first: Token) -> Answer<()> {
    match first {
        Token::Status(_) => Ok(()),
        _ => Err(unexpected(Effect::Write)),
    }
}

fn push_mset<'a>(out: &mut Vec<u8>, count: usize, puts: impl Iterator<Item = &'a Put<'a>>) {
    push_command(out, 1 + 2 * count);
    push_word(out, b"MSET");
    for put in puts {
        push_word(out, put.key);
        push_word(out, put.value.whole());
    }
}

fn push_transaction<'a>(out: &mut Vec<u8>, puts: impl Iterator<Item = &'a Put<'a>>) {
    out.extend_from_slice(MULTI);
    puts.for_each(|put| push_set(out, put));
    out.extend_from_slice(EXEC);
}

/// One row for each key, out of each server's list of values.
fn read_rows(
    keys: &[&[u8]],
    split: &Split,
    answers: Vec<Answer<(Token, &[u8])>>,
    into: &mut Rows,
) -> Answer<()> {
    let mut values = Vec::with_capacity(answers.len());
    for (position, answer) in answers.into_iter().enumerate() {
        let (first, bytes) = answer?;
        match first {
            Token::Array(count) if count == split.records(position).count() => {
                values.push(Tokens::new(bytes).skip(1));
            }
            Token::Error(text) => return Err(errors::fault(text.of(bytes))),
            _ => return Err(unexpected(Effect::Read)),
        }
    }
    for (key, position) in keys.iter().zip(split.positions()) {
        match values[position].next() {
            Some((Token::Bulk(_), value)) => into.push(key, Some(value)),
            Some((Token::Nil, _)) => into.push(key, None),
            _ => return Err(unexpected(Effect::Read)),
        }
    }
    Ok(())
}
