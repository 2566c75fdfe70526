//! The two ends of connections inside this process: a [`Link`] for each client, which queues
//! requests and waits for answers, and the [`WireTransport`], which moves their bytes.
//!
//! A store of several servers has a connection to each, its *member*, and every client has the same
//! slot on all of them. So the load loop still has one transport, and pipelines stay whole.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::join_all;
use kvdyno_core::store::{Answer, ErrorClass, Figure, RequestError, Transport};

use super::Protocol;
use super::connection::{Connection, Effect};
use crate::placement::evenness;

/// Number of requests to each member, over all connections of a store that have ended.
#[derive(Debug, Default)]
pub(crate) struct Sent(Mutex<Requests>);

/// Counts of requests.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Number sent to each member; members that no connection knows are left out.
    sent: Vec<u64>,
    /// Number sent to no member, for no connection could be had.
    refused: u64,
}

impl Requests {
    /// Returns the number sent to a member.
    pub(crate) fn to(&self, member: usize) -> u64 {
        self.sent.get(member).copied().unwrap_or(0)
    }

    /// Returns the figures that tell how even the requests are over servers, each with its count. While one of them takes no
    /// connection the counts say nothing of how the keys are spread, and nobody is warned.
    pub(crate) fn figures(&self, servers: &[(String, u64)], advice: &str) -> Vec<Figure> {
        let mut all = evenness::figures("requests", servers, advice);
        if self.refused > 0 {
            all.iter_mut().for_each(|figure| figure.warning = None);
        }
        all
    }
}

impl Sent {
    /// Returns the counts since the last call.
    pub(crate) fn take(&self) -> Requests {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds `counts`: the number sent and the number refused, of each member.
    fn add(&self, counts: impl Iterator<Item = (u64, u64)>) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (member, (sent, refused)) in counts.enumerate() {
            sums.refused += refused;
            match sums.sent.get_mut(member) {
                Some(sum) => *sum += sent,
                None => sums.sent.push(sent),
            }
        }
    }
}

/// The connections to all members, shared by their clients and their transport.
struct Members<P: Protocol> {
    connections: Vec<Connection<P>>,
    sent: Arc<Sent>,
}

impl<P: Protocol> Drop for Members<P> {
    fn drop(&mut self) {
        self.sent.add(self.connections.iter().map(Connection::requests));
    }
}

/// One request slot, on the connections to all members.
pub(crate) struct Link<P: Protocol> {
    members: Rc<RefCell<Members<P>>>,
    slot: usize,
    slots: usize,
}

/// Moves the bytes of all clients of the connections.
pub(crate) struct WireTransport<P: Protocol> {
    members: Rc<RefCell<Members<P>>>,
}

impl<P: Protocol> Transport for WireTransport<P> {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let mut answered = false;
        for connection in &mut self.members.borrow_mut().connections {
            answered |= connection.poll(context);
        }
        answered
    }
}

/// Connects to each member that is marked to be, and returns the `slots` ends. The others, and those that cannot be reached,
/// are tried with the first request to them. It is an error if none can be reached, or one refuses us.
pub(crate) async fn open<P: Protocol>(
    members: Vec<(P, bool)>,
    slots: usize,
    sent: &Arc<Sent>,
) -> Answer<(Vec<Link<P>>, WireTransport<P>)> {
    let streams = join_all(members.iter().map(|(protocol, wanted)| {
        let opening = wanted.then(|| protocol.open());
        async move {
            match opening {
                Some(opening) => Some(opening.await),
                None => None,
            }
        }
    }));
    let streams = streams.await;
    let mut connections = Vec::with_capacity(members.len());
    let (mut reached, mut first) = (false, None);
    for ((protocol, _), stream) in members.into_iter().zip(streams) {
        let Some(stream) = stream else {
            connections.push(Connection::closed(protocol, slots));
            continue;
        };
        connections.push(match stream {
            Ok(stream) => {
                reached = true;
                Connection::open(protocol, stream, slots)
            }
            Err(error) if error.class == ErrorClass::Rejected => return Err(error),
            Err(error) => {
                first.get_or_insert(error);
                Connection::closed(protocol, slots)
            }
        });
    }
    if let Some(error) = first.filter(|_| !reached) {
        return Err(error);
    }
    let members = Rc::new(RefCell::new(Members { connections, sent: sent.clone() }));
    let links = (0..slots).map(|slot| Link { members: members.clone(), slot, slots }).collect();
    Ok((links, WireTransport { members }))
}

impl<P: Protocol> Link<P> {
    /// Sends what `encode` appends to a member and reads the answer of `parts` replies with `read`,
    /// which gets what the protocol knows of it and its bytes.
    ///
    /// An error from `read` that is marked as losing the connection closes it.
    #[inline]
    pub(crate) fn request<T, E, R>(
        &mut self,
        member: usize,
        effect: Effect,
        parts: u32,
        encode: E,
        read: R,
    ) -> impl Future<Output = Answer<T>>
    where
        E: FnOnce(&mut Vec<u8>),
        R: FnOnce(P::Reply, &[u8]) -> Answer<T> + Unpin,
    {
        self.submit(member, effect, parts, encode);
        Wait { link: self, member, read: Some(read) }
    }

    /// Puts a request out to a member; its answer comes with [`Link::gather`].
    #[inline(always)]
    pub(crate) fn submit(
        &mut self,
        member: usize,
        effect: Effect,
        parts: u32,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        let connections = &mut self.members.borrow_mut().connections;
        connections[member].submit(self.slot, effect, parts, encode);
    }

    /// Reads the answer to what was submitted to a member with `read`, once it has come; `read` gets what
    /// the protocol knows of it and its bytes. To be polled after each turn of the transport, which is
    /// polled from the same task: no waker is kept.
    ///
    /// An error of `read`'s own that is marked as losing the connection closes it.
    #[inline(always)]
    pub(crate) fn poll_answer<T>(
        &self,
        member: usize,
        read: impl FnOnce(P::Reply, &[u8]) -> Answer<T>,
    ) -> Poll<Answer<T>> {
        let connection = &mut self.members.borrow_mut().connections[member];
        let arrived = match connection.claim(self.slot) {
            None => return Poll::Pending,
            Some(Err(error)) => return Poll::Ready(Err(error)),
            Some(Ok(arrived)) => arrived,
        };
        let answer = read(arrived.reply, connection.bytes(&arrived));
        if let Err(error) = &answer
            && error.connection_lost
        {
            connection.close(ErrorClass::Protocol, error.message.clone());
        }
        Poll::Ready(answer)
    }

    /// Drops the answer to what was submitted to a member, when it comes.
    pub(crate) fn abandon(&self, member: usize) {
        self.members.borrow_mut().connections[member].abandon(self.slot);
    }

    /// Waits until each of the members has answered what was submitted to it, and reads all answers
    /// with `read`, which gets them in the order of `members`.
    ///
    /// An error of `read`'s own that is marked as losing the connection closes all of them.
    pub(crate) fn gather<'a, T, R>(
        &'a mut self,
        members: &'a [usize],
        read: R,
    ) -> impl Future<Output = Answer<T>> + 'a
    where
        T: 'a,
        R: FnOnce(Vec<Answer<(P::Reply, &[u8])>>) -> Answer<T> + Unpin + 'a,
    {
        Gather { link: self, members, read: Some(read) }
    }

    /// Returns the number of members known by now.
    pub(crate) fn member_count(&self) -> usize {
        self.members.borrow().connections.len()
    }

    /// Adds a member, for all clients of these connections; its first request connects.
    pub(crate) fn add_member(&mut self, protocol: P) {
        let connection = Connection::closed(protocol, self.slots);
        self.members.borrow_mut().connections.push(connection);
    }
}

/// A request in flight. Dropped before its answer, that answer is dropped too.
struct Wait<'a, P: Protocol, R> {
    link: &'a Link<P>,
    member: usize,
    /// `None` once the answer is read.
    read: Option<R>,
}

impl<P, R, T> Future for Wait<'_, P, R>
where
    P: Protocol,
    R: FnOnce(P::Reply, &[u8]) -> Answer<T> + Unpin,
{
    type Output = Answer<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer<T>> {
        let Wait { link, member, read } = &mut *self;
        let polled = link.poll_answer(*member, |reply, bytes| match read.take() {
            Some(read) => read(reply, bytes),
            None => Err(unexpected(Effect::Write)),
        });
        if polled.is_ready() {
            *read = None;
        }
        polled
    }
}

impl<P: Protocol, R> Drop for Wait<'_, P, R> {
    fn drop(&mut self) {
        if self.read.is_some() {
            self.link.abandon(self.member);
        }
    }
}

/// Requests of one client to several members in flight.
struct Gather<'a, P: Protocol, R> {
    link: &'a Link<P>,
    members: &'a [usize],
    /// `None` once the answers are read.
    read: Option<R>,
}

impl<P, R, T> Future for Gather<'_, P, R>
where
    P: Protocol,
    R: FnOnce(Vec<Answer<(P::Reply, &[u8])>>) -> Answer<T> + Unpin,
{
    type Output = Answer<T>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer<T>> {
        let (link, members) = (self.link, self.members);
        let connections = &mut link.members.borrow_mut().connections;
        if members.iter().any(|&member| connections[member].is_waiting(link.slot)) {
            return Poll::Pending;
        }
        let Some(read) = self.read.take() else { return Poll::Pending };
        let claimed: Vec<_> = members
            .iter()
            .map(|&member| match connections[member].claim(link.slot) {
                Some(Ok(arrived)) => Ok((member, arrived)),
                Some(Err(error)) => Err(error),
                None => Err(unexpected(Effect::Write)),
            })
            .collect();
        let all_answered = claimed.iter().all(Result::is_ok);
        let answers = claimed.into_iter().map(|claimed| {
            let (member, arrived) = claimed?;
            Ok((arrived.reply, connections[member].bytes(&arrived)))
        });
        let answer = read(answers.collect());
        if let Err(error) = &answer
            && error.connection_lost
            && all_answered
        {
            for &member in members {
                connections[member].close(ErrorClass::Protocol, error.message.clone());
            }
        }
        Poll::Ready(answer)
    }
}

impl<P: Protocol, R> Drop for Gather<'_, P, R> {
    fn drop(&mut self) {
        if self.read.is_some() {
            self.members.iter().for_each(|&member| self.link.abandon(member));
        }
    }
}

/// Returns the error for an answer that is well-formed, but is none that the request can have: requests and answers may be
/// out of step, so the connection is given up.
pub(crate) fn unexpected(effect: Effect) -> RequestError {
    const MESSAGE: &str = "an answer of a kind that the request cannot have";
    let error = match effect {
        Effect::Read => RequestError::failed(ErrorClass::Protocol, MESSAGE),
        Effect::Write => RequestError::indeterminate(ErrorClass::Protocol, MESSAGE),
    };
    error.losing_connection()
}
