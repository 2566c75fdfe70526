//! The two ends of a connection inside this process: a [`Link`] for each client, which queues
//! requests and waits for answers, and the [`WireTransport`], which moves their bytes.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use kvdyno_core::store::{Answer, ErrorClass, Fault, Transport};

use super::connection::{Connection, Effect};
use super::{Endpoint, Protocol};

/// One request slot of a connection.
pub(crate) struct Link<P: Protocol> {
    connection: Rc<RefCell<Connection<P>>>,
    slot: usize,
}

/// Moves the bytes of all clients of a connection.
pub(crate) struct WireTransport<P: Protocol> {
    connection: Rc<RefCell<Connection<P>>>,
}

impl<P: Protocol> Transport for WireTransport<P> {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.connection.borrow_mut().poll(context)
    }
}

/// Opens one connection and gives its `slots` ends.
pub(crate) async fn open<P: Protocol>(
    protocol: P,
    endpoint: &Endpoint,
    slots: usize,
) -> Answer<(Vec<Link<P>>, WireTransport<P>)> {
    let stream = protocol.open().await?;
    let connection = Connection::new(protocol, endpoint, stream, slots);
    let connection = Rc::new(RefCell::new(connection));
    let links = (0..slots).map(|slot| Link { connection: connection.clone(), slot }).collect();
    Ok((links, WireTransport { connection }))
}

impl<P: Protocol> Link<P> {
    /// Sends what `encode` appends and reads the answer of `parts` replies with `read`, which gets
    /// what the protocol knows of it and its bytes.
    ///
    /// A fault from `read` that is marked as losing the connection closes it.
    #[inline]
    pub(crate) fn request<T, E, R>(
        &mut self,
        effect: Effect,
        parts: u32,
        encode: E,
        read: R,
    ) -> impl Future<Output = Answer<T>>
    where
        E: FnOnce(&mut Vec<u8>),
        R: FnOnce(P::Reply, &[u8]) -> Answer<T> + Unpin,
    {
        self.connection.borrow_mut().submit(self.slot, effect, parts, encode);
        Wait { link: self, read: Some(read) }
    }
}

/// A request in flight. Dropped before its answer, that answer is dropped too.
struct Wait<'a, P: Protocol, R> {
    link: &'a Link<P>,
    /// `None` once the answer is read.
    read: Option<R>,
}

impl<P, R, T> Future for Wait<'_, P, R>
where
    P: Protocol,
    R: FnOnce(P::Reply, &[u8]) -> Answer<T> + Unpin,
{
    type Output = Answer<T>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer<T>> {
        // No waker is kept: the transport is polled from the same task and tells when to poll again.
        let link = self.link;
        let mut connection = link.connection.borrow_mut();
        let Some(claimed) = connection.claim(link.slot) else { return Poll::Pending };
        let (arrived, read) = match (claimed, self.read.take()) {
            (Err(fault), _) => return Poll::Ready(Err(fault)),
            (Ok(_), None) => return Poll::Pending,
            (Ok(arrived), Some(read)) => (arrived, read),
        };
        let answer = read(arrived.reply, connection.bytes(&arrived));
        if let Err(fault) = &answer
            && fault.connection_lost
        {
            connection.close(ErrorClass::Protocol, fault.message.clone());
        }
        Poll::Ready(answer)
    }
}

impl<P: Protocol, R> Drop for Wait<'_, P, R> {
    fn drop(&mut self) {
        if self.read.is_some() {
            self.link.connection.borrow_mut().abandon(self.link.slot);
        }
    }
}

/// The answer is well-formed, but is none that the request can have: requests and answers may be
/// out of step, so the connection is given up.
pub(crate) fn unexpected(effect: Effect) -> Fault {
    const MESSAGE: &str = "an answer of a kind that the request cannot have";
    let fault = match effect {
        Effect::Read => Fault::failed(ErrorClass::Protocol, MESSAGE),
        Effect::Write => Fault::indeterminate(ErrorClass::Protocol, MESSAGE),
    };
    fault.losing_connection()
}
