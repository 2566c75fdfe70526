//! The way of a connection to one server at a time, for drivers that wrap an official client of a cluster. When it is lost,
//! the next request makes one attempt, at the next server; clients that wait for it share its end.

use std::cell::{Cell, RefCell};

use kvdyno_core::store::{Answer, RequestError};
use tokio::sync::Mutex;

/// A link that an attempt has made, with the attempt's number.
#[derive(Clone)]
pub(crate) struct Attempted<L> {
    pub link: L,
    generation: u64,
}

/// Attempts of one connection, and the end of the last one.
pub(crate) struct Attempts<L> {
    /// Number of the server for the next attempt, modulo their count.
    next: Cell<usize>,
    last: RefCell<LastAttempt<L>>,
    /// Held during an attempt.
    under_way: Mutex<()>,
}

struct LastAttempt<L> {
    /// Counts attempts.
    generation: u64,
    link: Option<Attempted<L>>,
    refusal: Option<RequestError>,
}

impl<L: Clone> Attempts<L> {
    /// Begins with the server of this number.
    pub fn new(first: usize) -> Attempts<L> {
        let last = LastAttempt { generation: 0, link: None, refusal: None };
        Attempts { next: Cell::new(first), last: RefCell::new(last), under_way: Mutex::new(()) }
    }

    /// Gives the server of `servers` whose turn it is.
    pub fn turn<'a, S>(&self, servers: &'a [S]) -> &'a S {
        let turn = self.next.replace(self.next.get().wrapping_add(1));
        &servers[turn % servers.len()]
    }

    /// Returns true if `link` is the one of now.
    pub fn holds(&self, link: &Attempted<L>) -> bool {
        let last = self.last.borrow();
        last.link.as_ref().is_some_and(|current| current.generation == link.generation)
    }

    /// Gives `link` up. Returns true if it was the one of now.
    pub fn lose(&self, link: &Attempted<L>) -> bool {
        let held = self.holds(link);
        if held {
            self.last.borrow_mut().link = None;
        }
        held
    }

    /// Gives the link of now; if there is none, after one attempt to connect.
    pub async fn link(&self, connect: impl AsyncFnOnce() -> Answer<L>) -> Answer<Attempted<L>> {
        let seen = self.last.borrow().generation;
        let _under_way = self.under_way.lock().await;
        let generation = {
            let last = self.last.borrow();
            if let Some(link) = &last.link {
                return Ok(link.clone());
            }
            // Somebody made an attempt while this one waited.
            if let Some(refusal) = last.refusal.as_ref().filter(|_| last.generation != seen) {
                return Err(refusal.clone());
            }
            last.generation.wrapping_add(1)
        };
        let end = connect().await.map(|link| Attempted { link, generation });
        *self.last.borrow_mut() = LastAttempt {
            generation,
            link: end.as_ref().ok().cloned(),
            refusal: end.as_ref().err().cloned(),
        };
        end
    }
}

/// Makes attempts until one of `servers` answers.
///
/// # Errors
/// The first refusal.
pub(crate) async fn any<L>(servers: usize, attempt: impl AsyncFn() -> Answer<L>) -> Answer<()> {
    let mut refusal = None;
    for _ in 0..servers {
        match attempt().await {
            Ok(_) => return Ok(()),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    refusal.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{Future, poll_fn};
    use std::task::Poll;

    use kvdyno_core::store::ErrorClass;

    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    /// Waits for one round of the runtime.
    async fn a_moment() {
        let mut waited = false;
        poll_fn(|context| match std::mem::replace(&mut waited, true) {
            true => Poll::Ready(()),
            false => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
        })
        .await;
    }

    #[test]
    fn clients_that_wait_share_the_end_of_one_attempt() {
        run(async {
            let (attempts, made) = (Attempts::new(1), Cell::new(0));
            let connect = async || {
                a_moment().await;
                made.set(made.get() + 1);
                match made.get() {
                    1 => Err(RequestError::failed(ErrorClass::Refused, "closed")),
                    _ => Ok(*attempts.turn(&["a", "b", "c"])),
                }
            };
            let (one, two) = tokio::join!(attempts.link(connect), attempts.link(connect));
            assert!(one.is_err() && two.is_err());
            assert_eq!(made.get(), 1, "one attempt for both");
            let (one, two) = tokio::join!(attempts.link(connect), attempts.link(connect));
            let (one, two) = (one.unwrap(), two.unwrap());
            assert_eq!((one.link, two.link, made.get()), ("b", "b", 2));
            assert!(attempts.lose(&one) && !attempts.lose(&two), "one link, lost once");
            assert!(!attempts.holds(&one));
            let three = attempts.link(connect).await.unwrap();
            assert_eq!(three.link, "c");
            assert!(!attempts.lose(&one) && attempts.holds(&three), "an old link loses no new one");
        });
    }

    #[test]
    fn servers_are_tried_one_after_the_other_until_one_answers() {
        run(async {
            let tried = Cell::new(0);
            let until = async |good: u32| {
                tried.set(0);
                any(3, async || {
                    tried.set(tried.get() + 1);
                    let refused = format!("server {}", tried.get());
                    let refused = RequestError::failed(ErrorClass::Refused, refused);
                    if tried.get() == good { Ok(()) } else { Err(refused) }
                })
                .await
            };
            assert!(until(2).await.is_ok() && tried.get() == 2);
            assert_eq!(until(9).await.unwrap_err().message, "server 1");
            assert_eq!(tried.get(), 3);
        });
    }
}
