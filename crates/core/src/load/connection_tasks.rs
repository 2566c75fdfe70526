//! The clients of one connection, polled together: each queues its request, then the connection's
//! transport writes them all at once. No waker and no task of a client's own.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::cache;
use crate::store::Transport;

/// The clients of one connection, as one future that is over when all have ended.
pub(super) struct ConnectionTasks<'a, T> {
    clients: Vec<Option<Pin<Box<dyn Future<Output = ()> + 'a>>>>,
    transport: T,
    /// The transport has handed over answers that no client has looked at yet.
    answered: bool,
    left: usize,
}

impl<'a, T: Transport> ConnectionTasks<'a, T> {
    pub fn new(clients: Vec<Pin<Box<dyn Future<Output = ()> + 'a>>>, transport: T) -> Self {
        let left = clients.len();
        ConnectionTasks {
            clients: clients.into_iter().map(Some).collect(),
            transport,
            answered: false,
            left,
        }
    }

    /// Prefetches a client's state: a kilobyte that was last touched one round of all clients ago.
    #[inline]
    pub fn expect(&self, number: usize) {
        if let Some(Some(client)) = self.clients.get(number) {
            cache::prefetch(&**client);
        }
    }

    /// Reads what has come for the clients, unless they have answers to look at: those came when they were read, not later.
    pub fn receive(&mut self, context: &mut Context<'_>) {
        if !std::mem::take(&mut self.answered) {
            self.transport.poll(context);
        }
    }

    /// Lets every client go on as far as it can.
    pub fn poll_clients(&mut self, context: &mut Context<'_>) {
        for number in 0..self.clients.len() {
            self.expect(number + 1);
            let slot = &mut self.clients[number];
            if let Some(client) = slot
                && client.as_mut().poll(context).is_ready()
            {
                *slot = None;
                self.left -= 1;
            }
        }
    }

    /// Sends what the clients have asked for. Returns true if an answer is there already, so that the clients are to
    /// be polled again.
    pub fn send(&mut self, context: &mut Context<'_>) -> bool {
        self.answered = self.left > 0 && self.transport.poll(context);
        self.answered
    }

    /// Returns true if every client has ended.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }
}

impl<T: Transport + Unpin> Future for ConnectionTasks<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // What woke this task is most often an answer: clients that wait for one need not be asked first.
        self.receive(context);
        self.poll_clients(context);
        while self.send(context) {
            self.poll_clients(context);
        }
        if self.is_over() { Poll::Ready(()) } else { Poll::Pending }
    }
}
