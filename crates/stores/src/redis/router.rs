//! Routes a client's requests: to one server, to the one that has the key, to a primary and its replica, or into a cluster.
//! The commands are those of `commands.rs` in each case.

use std::task::Poll;

use kvdyno_core::store::{Answer, ErrorClass, Put, RequestError, Rows};

use super::cluster::View;
use super::codec::{Token, Tokens, push_command, push_word};
use super::commands::{EXEC, MULTI, push_set, read_transaction, set_answer};
use super::errors;
use super::request::Read;
use super::sharded::ShardView;
use super::wire::{ReadFrom, Wire};
use crate::placement::Split;
use crate::wire::{Effect, Link, outcome_of_all, unexpected};

/// Way to find the member for a request. Large parts lie elsewhere: it is part of each client's state, which has to come
/// into the caches for each of its requests.
#[derive(Clone)]
pub(super) enum Route {
    /// All on one server.
    Single,
    /// By the key.
    Sharded(Box<ShardView>),
    /// Member 0 is the primary, member 1 a replica of it where reads go there.
    Watched(ReadFrom),
    /// By the key's slot.
    Cluster(Box<View>),
}

/// One client's way to the servers.
pub(super) struct Router {
    pub(super) link: Link<Wire>,
    pub(super) route: Route,
}

impl Router {
    pub(super) fn new(link: Link<Wire>, route: Route) -> Self {
        Router { link, route }
    }

    /// Returns the server of `key`.
    #[inline(always)]
    pub(super) fn member(&mut self, key: &[u8], effect: Effect) -> Answer<usize> {
        match &mut self.route {
            Route::Single => Ok(0),
            Route::Sharded(view) => Ok(view.placement(&mut self.link)?.of(key)),
            Route::Watched(from) => Ok(watched_member(*from, effect)),
            Route::Cluster(view) => view.member(&mut self.link, key, effect),
        }
    }

    /// Returns the answer to what was sent to a member, once it has come.
    #[inline(always)]
    pub(super) fn poll_answer<T>(&self, member: usize, read: &mut impl Read<T>) -> Poll<Answer<T>> {
        let watched = matches!(self.route, Route::Watched(_));
        self.link.poll_answer(member, |first, answer| match read(first, answer) {
            Err(error) if watched => Err(demoted(error)),
            answer => answer,
        })
    }

    /// Drops the answer to what was sent to a member, when it comes.
    pub(super) fn abandon(&self, member: usize) {
        self.link.abandon(member);
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
                (Token::Error(text), replies) => Err(errors::request_error(text.of(replies))),
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

/// Gives up the connection to a primary that has become a replica, for it refuses writes: the next request asks the
/// sentinels for the new one.
#[cold]
fn demoted(mut error: RequestError) -> RequestError {
    if !error.message.starts_with("READONLY") {
        return error;
    }
    error.class = ErrorClass::Unavailable;
    error.message =
        "READONLY: the server is the primary no more; the sentinels are asked again".into();
    error.losing_connection()
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

/// Reads one row for each key, out of each server's list of values.
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
            Token::Error(text) => return Err(errors::request_error(text.of(bytes))),
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
