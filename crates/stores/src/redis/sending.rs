//! A request about one key, and the one future that awaits its answer. Written out and not `async`:
//! each future in a future costs an operation about 100 instructions of handing things over.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

use kvdyno_core::store::Answer;

use super::cluster::Refused;
use super::codec::Token;
use super::router::Router;
use crate::wire::Effect;

/// Appends the request about a key to the output; `true`: for a record that is kept as a hash.
pub(super) trait Encode: Fn(&mut Vec<u8>, &[u8], bool) + Unpin {}
impl<F: Fn(&mut Vec<u8>, &[u8], bool) + Unpin> Encode for F {}

/// Reads an answer, whose first token and whose bytes it gets.
pub(super) trait Read<T>: FnMut(Token, &[u8]) -> Answer<T> + Unpin {}
impl<T, F: FnMut(Token, &[u8]) -> Answer<T> + Unpin> Read<T> for F {}

/// What is asked about one key.
pub(super) struct Request<'a, E, R> {
    pub(super) key: &'a [u8],
    pub(super) effect: Effect,
    /// Replies that make up the answer.
    pub(super) parts: u32,
    /// The record is thought to be kept as a hash.
    pub(super) hash: bool,
    /// What to tell if it is not so, before the request is sent again.
    pub(super) learns: Option<&'a AtomicBool>,
    pub(super) encode: E,
    pub(super) read: R,
}

/// A request on its way, to be polled at once and then after each turn of the transport. Dropped before its
/// answer, that answer is dropped too.
pub(super) struct Sending<'a, T, E, R> {
    /// `None` once the first server has answered.
    first: Option<First<'a, E, R>>,
    /// What is rare, and large: all that goes on after a refusal, or before the first server is known.
    aside: Option<Pin<Box<dyn Future<Output = Answer<T>> + 'a>>>,
}

/// Where a request went first.
struct First<'a, E, R> {
    router: &'a mut Router,
    /// `None` if it was put out to nobody yet.
    member: Option<usize>,
    /// It was put out just now: the transport has had no turn since, and there can be no answer.
    fresh: bool,
    request: Request<'a, E, R>,
}

impl<'a, T, E, R> Sending<'a, T, E, R> {
    /// `request` was put out to `member`, or has still to be. Made in one way in either case, so that
    /// it is put together where it stays.
    #[inline(always)]
    pub(super) fn to(
        router: &'a mut Router,
        member: Option<usize>,
        request: Request<'a, E, R>,
    ) -> Self {
        Sending { first: Some(First { router, member, fresh: true, request }), aside: None }
    }
}

impl<'a, T, E, R> Sending<'a, T, E, R>
where
    E: Encode + 'a,
    R: Read<T> + 'a,
    T: 'a,
{
    /// Leaves the common way: after the refusal by a server, or with no server asked yet.
    #[cold]
    fn go_aside(&mut self, refused: Option<Refused>, context: &mut Context<'_>) -> Poll<Answer<T>> {
        if let Some(First { router, request, .. }) = self.first.take() {
            self.aside = Some(match refused {
                Some(refused) => Box::pin(router.send_again(refused, request)),
                None => Box::pin(router.send_anew(request)),
            });
        }
        self.poll_aside(context)
    }

    #[cold]
    fn poll_aside(&mut self, context: &mut Context<'_>) -> Poll<Answer<T>> {
        self.aside.as_mut().map_or(Poll::Pending, |aside| aside.as_mut().poll(context))
    }
}

impl<'a, T, E, R> Future for Sending<'a, T, E, R>
where
    E: Encode + 'a,
    R: Read<T> + 'a,
    T: 'a,
{
    type Output = Answer<T>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer<T>> {
        let Some(first) = &mut self.first else { return self.poll_aside(context) };
        let Some(member) = first.member else { return self.go_aside(None, context) };
        if std::mem::take(&mut first.fresh) {
            return Poll::Pending;
        }
        match first.router.poll_answer(member, &mut first.request.read) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(value)) => {
                self.first = None;
                Poll::Ready(Ok(value))
            }
            Poll::Ready(Err(fault)) => self.go_aside(Some(Refused { member, fault }), context),
        }
    }
}

impl<T, E, R> Drop for Sending<'_, T, E, R> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(First { router, member: Some(member), .. }) = &self.first {
            router.abandon(*member);
        }
    }
}
