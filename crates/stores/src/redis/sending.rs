//! A request about one key, and the one future that awaits its answer. Written out and not `async`:
//! each future in a future costs an operation about 100 instructions of handing things over.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use kvdyno_core::store::Answer;

use super::cluster::Refused;
use super::errors;
use super::learned::learn;
use super::request::{Encode, Read, Request};
use super::router::{Route, Router};

impl Router {
    /// Sends a request to the server of its key.
    #[inline(always)]
    pub(super) fn send<'a, T, E, R>(
        &'a mut self,
        request: Request<'a, E, R>,
    ) -> Sending<'a, T, E, R>
    where
        E: Encode + 'a,
        R: Read<T> + 'a,
        T: 'a,
    {
        let Request { key, effect, parts, hash, .. } = request;
        let in_doubt = matches!(&self.route, Route::Cluster(view) if view.is_in_doubt());
        let member = if in_doubt { None } else { self.member(key, effect).ok() };
        if let Some(member) = member {
            let encode = &request.encode;
            self.link.submit(member, effect, parts, |out| encode(out, key, hash));
        }
        Sending::to(self, member, request)
    }

    /// Sends a request for which no server was found at once: a cluster is asked first which node has what.
    pub(super) async fn send_anew<'a, T, E, R>(
        &'a mut self,
        mut request: Request<'a, E, R>,
    ) -> Answer<T>
    where
        E: Encode + 'a,
        R: Read<T> + 'a,
        T: 'a,
    {
        if let Route::Cluster(view) = &mut self.route {
            view.make_ready(&mut self.link).await;
        }
        let member = self.member(request.key, request.effect)?;
        let Request { key, effect, parts, hash, encode, read, .. } = &mut request;
        match self.link.request(member, *effect, *parts, |out| encode(out, key, *hash), read).await
        {
            Err(error) => self.send_again(Refused { member, error }, request).await,
            answer => answer,
        }
    }

    /// Sends a request that was refused once more: where the refusal says, or with the commands for how the record is kept.
    pub(super) async fn send_again<'a, T, E, R>(
        &'a mut self,
        refused: Refused,
        mut request: Request<'a, E, R>,
    ) -> Answer<T>
    where
        E: Encode + 'a,
        R: Read<T> + 'a,
        T: 'a,
    {
        let answer = match &mut self.route {
            Route::Cluster(view) => {
                view.send_elsewhere(&mut self.link, refused, &mut request).await
            }
            _ => Err(refused.error),
        };
        let Some(hashes) = request.learns.take() else { return answer };
        match answer {
            Err(error) if errors::is_wrong_type(&error) => {
                request.hash = !request.hash;
                learn(hashes, request.hash);
                self.send(request).await.map_err(errors::of_no_type)
            }
            answer => answer,
        }
    }
}

/// A request on its way, to be polled at once and then after each turn of the transport. Dropped before its
/// answer, that answer is dropped too.
pub(super) struct Sending<'a, T, E, R> {
    /// The request at its first server; `None` once that has answered.
    first: Option<First<'a, E, R>>,
    /// Rare and large ways of a request: all that goes on after a refusal, or before the first server is known.
    aside: Option<Pin<Box<dyn Future<Output = Answer<T>> + 'a>>>,
}

/// First place that a request went to.
struct First<'a, E, R> {
    router: &'a mut Router,
    /// Number of the member; `None` if the request was not yet put out to any.
    member: Option<usize>,
    /// True if it was put out just now: the transport has had no turn since, and there can be no answer.
    fresh: bool,
    request: Request<'a, E, R>,
}

impl<'a, T, E, R> Sending<'a, T, E, R> {
    /// Makes the future of a request that was put out to `member`, or has still to be. It is made in one way in either case,
    /// so that it is put together where it stays.
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
            Poll::Ready(Err(error)) => self.go_aside(Some(Refused { member, error }), context),
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
