//! The clients of one connection, polled together in one task: each queues its request, then the
//! connection's transport writes them all at once. No waker and no task of a client's own.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::cache;
use crate::store::Transport;

/// Polls the transport and every client by turns, until all clients have ended.
pub(super) struct Crew<'a, T> {
    clients: Vec<Option<Pin<Box<dyn Future<Output = ()> + 'a>>>>,
    transport: T,
    left: usize,
}

impl<'a, T: Transport + Unpin> Crew<'a, T> {
    pub fn new(clients: Vec<Pin<Box<dyn Future<Output = ()> + 'a>>>, transport: T) -> Self {
        let left = clients.len();
        Crew { clients: clients.into_iter().map(Some).collect(), transport, left }
    }

    /// Asks for a client's state: a kilobyte that was last touched when all others' turns were before it.
    #[inline]
    fn expect(&self, number: usize) {
        if let Some(Some(client)) = self.clients.get(number) {
            cache::prefetch(&**client);
        }
    }

    fn poll_clients(&mut self, context: &mut Context<'_>) {
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
}

impl<T: Transport + Unpin> Future for Crew<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let crew = &mut *self;
        // What woke this task is most often an answer: clients that wait for one need not be asked first.
        let mut asked = false;
        crew.expect(0);
        loop {
            let answered = crew.transport.poll(context);
            if asked && !answered {
                return Poll::Pending;
            }
            crew.poll_clients(context);
            asked = true;
            if crew.left == 0 {
                return Poll::Ready(());
            }
        }
    }
}
