//! One client's view of a cluster: sends each request to the node of its slot and follows
//! redirections. A request is sent again only after `MOVED` or `ASK`, which say that it was not applied.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kvdyno_core::store::{Answer, ErrorClass, Put, RequestError, Rows};

use super::Cluster;
use super::redirect::Redirect;
use super::slots::{Map, slot_of};
use crate::placement::Split;
use crate::redis::codec::{Token, Tokens, push_word, token};
use crate::redis::commands::{push_set, set_answer};
use crate::redis::errors;
use crate::redis::request::{Encode, Read, Request};
use crate::redis::wire::Wire;
use crate::wire::{Effect, Link, outcome_of_all, unexpected};

/// Redirections of one request before it is given up: the cluster is being rebuilt.
const MOST_REDIRECTIONS: usize = 5;
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// A client's view.
#[derive(Clone)]
pub(in crate::redis) struct View {
    cluster: Arc<Cluster>,
    map: Arc<Map>,
    version: u64,
    /// Counter by which replicas take turns.
    turn: usize,
}

/// Node that a request goes to.
#[derive(Clone, Copy, Debug)]
struct Hop {
    member: usize,
    /// True if `ASKING` goes first: the node has the slot for this request only.
    asking: bool,
}

impl Hop {
    fn parts(self) -> u32 {
        1 + u32::from(self.asking)
    }

    fn push_asking(self, out: &mut Vec<u8>) {
        if self.asking {
            out.extend_from_slice(ASKING);
        }
    }

    /// Returns the answer to the request itself, which comes after that to `ASKING`.
    fn past_asking(self, first: Token, answer: &[u8]) -> (Token, &[u8]) {
        if self.asking
            && let Ok(Some((_, length))) = token(answer)
            && let Ok(Some((next, _))) = token(&answer[length..])
        {
            return (next, &answer[length..]);
        }
        (first, answer)
    }
}

/// A request that a node has refused, or did not answer.
pub(in crate::redis) struct Refused {
    /// Number of the node.
    pub(in crate::redis) member: usize,
    /// Error that the node answered with, or that came in place of an answer.
    pub(in crate::redis) error: RequestError,
}

/// Outcome of a put that may be redirected.
enum Reached<T> {
    Answer(T),
    Redirected(Redirect),
}

impl View {
    pub(in crate::redis) fn new(cluster: &Arc<Cluster>, map: Arc<Map>) -> View {
        // One that is changed meanwhile is noticed with the first request.
        View { cluster: cluster.clone(), map, version: u64::MAX, turn: 0 }
    }

    /// Returns a member for each node, and whether to connect to it at once.
    pub(in crate::redis) fn members(&self) -> Vec<(Wire, bool)> {
        let mut used = self.map.primary_numbers();
        if self.cluster.reads_replicas() {
            used.extend(self.map.replica_numbers());
        }
        let nodes = self.map.nodes.iter().enumerate();
        nodes.map(|(number, node)| (self.wire(node), used.contains(&number))).collect()
    }

    /// Returns the node to which a request about `key` goes first.
    #[inline]
    pub(in crate::redis) fn member(
        &mut self,
        link: &mut Link<Wire>,
        key: &[u8],
        effect: Effect,
    ) -> Answer<usize> {
        self.update(link);
        Ok(self.hop(key, effect)?.member)
    }

    /// Sends a request that was refused once more, where its refusal says.
    pub(in crate::redis) async fn send_elsewhere<T, E, R>(
        &mut self,
        link: &mut Link<Wire>,
        refused: Refused,
        request: &mut Request<'_, E, R>,
    ) -> Answer<T>
    where
        E: Encode,
        R: Read<T>,
    {
        let Request { key, effect, parts, hash, encode, read, .. } = request;
        let Refused { member, mut error } = refused;
        let mut hop = Hop { member, asking: false };
        for _ in 0..MOST_REDIRECTIONS {
            let Some(elsewhere) = Redirect::of(&error) else { return Err(self.noted(error)) };
            // Elsewhere lies another copy.
            if self.cluster.copy.is_some() {
                return Err(no_copy());
            }
            hop = self.follow(link, hop, &elsewhere);
            let encode = |out: &mut Vec<u8>| {
                hop.push_asking(out);
                encode(out, key, *hash);
            };
            let read = |first: Token, answer: &[u8]| {
                let (first, answer) = hop.past_asking(first, answer);
                read(first, answer)
            };
            let answer = link.request(hop.member, *effect, *parts - 1 + hop.parts(), encode, read);
            match answer.await {
                Ok(value) => return Ok(value),
                Err(again) => error = again,
            }
        }
        Err(if Redirect::of(&error).is_some() { lost_on_the_way() } else { self.noted(error) })
    }

    /// Sends a `GET` of each key, in one write to each node.
    pub(in crate::redis) async fn get_batch(
        &mut self,
        link: &mut Link<Wire>,
        keys: &[&[u8]],
        into: &mut Rows,
    ) -> Answer<()> {
        self.make_ready(link).await;
        let hops = keys.iter().map(|key| self.hop(key, Effect::Read));
        let mut hops = hops.collect::<Answer<Vec<Hop>>>()?;
        for _ in 0..=MOST_REDIRECTIONS {
            let split = Split::new(hops.iter().map(|hop| hop.member));
            submit(link, &split, &hops, Effect::Read, |record, out| {
                out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
                push_word(out, keys[record]);
            });
            let read = |answers: Answers<'_>| read_rows(keys, &hops, &split, answers, into);
            let redirected = match link.gather(split.servers(), read).await {
                Ok(redirected) => redirected,
                Err(error) => return Err(self.noted(error)),
            };
            if redirected.is_empty() {
                return Ok(());
            }
            // Reads change nothing, so that all of them may be asked again.
            into.clear();
            for (record, redirect) in redirected {
                hops[record] = self.follow(link, hops[record], &redirect);
            }
        }
        Err(lost_on_the_way())
    }

    /// Sends a `SET` of each record, in one write to each node. Those that were redirected, and only those, are
    /// sent again.
    pub(in crate::redis) async fn put_batch(
        &mut self,
        link: &mut Link<Wire>,
        puts: &[Put<'_>],
    ) -> Answer<()> {
        self.make_ready(link).await;
        let mut left: Vec<usize> = (0..puts.len()).collect();
        let hops = puts.iter().map(|put| self.hop(put.key, Effect::Write));
        let mut hops = hops.collect::<Answer<Vec<Hop>>>()?;
        let mut ended = Vec::with_capacity(puts.len());
        for _ in 0..=MOST_REDIRECTIONS {
            let split = Split::new(hops.iter().map(|hop| hop.member));
            submit(link, &split, &hops, Effect::Write, |at, out| push_set(out, &puts[left[at]]));
            let read = |answers: Answers<'_>| Ok(read_puts(&hops, &split, answers));
            let outcomes = link.gather(split.servers(), read).await?;
            let (mut left_still, mut next_hops) = (Vec::new(), Vec::new());
            for (at, outcome) in outcomes.into_iter().enumerate() {
                match outcome {
                    Ok(Reached::Answer(())) => ended.push(Ok(())),
                    Ok(Reached::Redirected(redirect)) => {
                        left_still.push(left[at]);
                        next_hops.push(self.follow(link, hops[at], &redirect));
                    }
                    Err(error) => ended.push(Err(self.noted(error))),
                }
            }
            (left, hops) = (left_still, next_hops);
            if left.is_empty() {
                break;
            }
        }
        ended.extend(left.iter().map(|_| Err(lost_on_the_way())));
        outcome_of_all(ended)
    }

    /// Returns true if the map may be out of date.
    #[inline]
    pub(in crate::redis) fn is_in_doubt(&self) -> bool {
        self.cluster.stale.load(Ordering::Relaxed)
    }

    /// Has the map looked at again where it is in doubt, and takes over what has changed.
    pub(in crate::redis) async fn make_ready(&mut self, link: &mut Link<Wire>) {
        if self.is_in_doubt() {
            Box::pin(self.cluster.look_again()).await;
        }
        self.update(link);
    }

    #[inline]
    fn update(&mut self, link: &mut Link<Wire>) {
        let version = self.cluster.version.load(Ordering::Acquire);
        if version == self.version {
            return;
        }
        (self.map, self.version) = (self.cluster.map(), version);
        for node in &self.map.nodes[link.member_count()..] {
            link.add_member(self.wire(node));
        }
    }

    fn wire(&self, node: &crate::wire::Endpoint) -> Wire {
        Wire::server(&self.cluster.access, node.clone())
    }

    #[inline]
    fn hop(&mut self, key: &[u8], effect: Effect) -> Answer<Hop> {
        let slot = slot_of(key);
        let member = if let Some(number) = self.cluster.copy {
            self.map.copy(slot, number).ok_or_else(no_copy)?
        } else if effect == Effect::Read && self.cluster.reads_replicas() {
            self.turn = self.turn.wrapping_add(1);
            self.map.replica(slot, self.turn)
        } else {
            self.map.primary(slot)
        };
        Ok(Hop { member, asking: false })
    }

    #[cold]
    fn follow(&mut self, link: &mut Link<Wire>, from: Hop, redirect: &Redirect) -> Hop {
        if !redirect.ask {
            self.cluster.doubt();
        }
        let host = match redirect.host.as_str() {
            "" => self.map.nodes[from.member].host().to_owned(),
            host => host.to_owned(),
        };
        let member = self.cluster.number_of(&host, redirect.port);
        self.update(link);
        Hop { member, asking: redirect.ask }
    }

    /// Doubts the map after a lost connection or an answer of a cluster that is down: the slot may have another node by now.
    #[cold]
    fn noted(&self, error: RequestError) -> RequestError {
        if error.connection_lost || error.class == ErrorClass::Unavailable {
            self.cluster.doubt();
        }
        error
    }
}

type Answers<'a> = Vec<Answer<(Token, &'a [u8])>>;

/// Puts out one command for each record, `ASKING` before it where its hop wants that.
fn submit(
    link: &mut Link<Wire>,
    split: &Split,
    hops: &[Hop],
    effect: Effect,
    encode: impl Fn(usize, &mut Vec<u8>),
) {
    for (position, &member) in split.servers().iter().enumerate() {
        let parts = split.records(position).map(|record| hops[record].parts()).sum();
        link.submit(member, effect, parts, |out| {
            for record in split.records(position) {
                hops[record].push_asking(out);
                encode(record, out);
            }
        });
    }
}

/// Pushes a row for each key and gives the redirections by record; if there are any, the rows are
/// worth nothing.
fn read_rows(
    keys: &[&[u8]],
    hops: &[Hop],
    split: &Split,
    answers: Answers<'_>,
    into: &mut Rows,
) -> Answer<Vec<(usize, Redirect)>> {
    let mut replies = Vec::with_capacity(answers.len());
    for answer in answers {
        replies.push(Tokens::new(answer?.1));
    }
    let mut redirected = Vec::new();
    for (record, position) in split.positions().enumerate() {
        let replies = &mut replies[position];
        if hops[record].asking {
            replies.next();
        }
        match replies.next() {
            Some((Token::Bulk(_), value)) => into.push(keys[record], Some(value)),
            Some((Token::Nil, _)) => into.push(keys[record], None),
            Some((Token::Error(_), text)) => match Redirect::parse(text) {
                Some(redirect) => redirected.push((record, redirect)),
                None => return Err(errors::request_error(text)),
            },
            _ => return Err(unexpected(Effect::Read)),
        }
    }
    Ok(redirected)
}

/// Returns the outcome of each put.
fn read_puts(hops: &[Hop], split: &Split, answers: Answers<'_>) -> Vec<Answer<Reached<()>>> {
    let mut replies: Vec<Answer<Tokens<'_>>> =
        answers.into_iter().map(|answer| answer.map(|(_, bytes)| Tokens::new(bytes))).collect();
    let outcome = |(record, position): (usize, usize)| {
        let replies = replies[position].as_mut().map_err(|error| error.clone())?;
        if hops[record].asking {
            replies.next();
        }
        match replies.next() {
            Some((Token::Error(_), text)) => match Redirect::parse(text) {
                Some(redirect) => Ok(Reached::Redirected(redirect)),
                None => Err(errors::request_error(text)),
            },
            Some((first, _)) => set_answer(first).map(Reached::Answer),
            None => Err(unexpected(Effect::Write)),
        }
    };
    split.positions().enumerate().map(outcome).collect()
}

#[cold]
fn no_copy() -> RequestError {
    RequestError::failed(ErrorClass::Unavailable, "the slot has no such copy")
}

fn lost_on_the_way() -> RequestError {
    let message = "redirected again and again: the cluster is being changed";
    RequestError::failed(ErrorClass::Unavailable, message)
}
