//! One timer for all requests of a connection, set again only when it has gone off: a request
//! that is answered in time costs no work on the timer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use kvdyno_core::measure::{Nanos, now};
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that is set to when the oldest request in flight at that time was to be given up.
pub(super) struct Deadline {
    sleep: Pin<Box<Sleep>>,
    /// Task that is woken when the timer goes off; `None` while it is not set.
    waker: Option<Waker>,
}

impl Deadline {
    pub(super) fn new() -> Self {
        Deadline { sleep: Box::pin(sleep_until(Instant::now())), waker: None }
    }

    /// Sees to it that `context` is woken at `due` or earlier. Returns `true` if the timer has gone off: look whether a
    /// request is overdue, and then call this again.
    pub(super) fn watch(&mut self, context: &mut Context<'_>, due: Nanos) -> bool {
        let known = match &self.waker {
            Some(waker) => waker.will_wake(context.waker()),
            None => {
                let left = Duration::from_nanos(due.saturating_sub(now()));
                self.sleep.as_mut().reset(Instant::now() + left);
                false
            }
        };
        let elapsed = if known {
            self.sleep.is_elapsed()
        } else {
            self.waker = Some(context.waker().clone());
            // Outside Tokio's budget: a timer that is not polled for want of budget would not be set.
            Pin::new(&mut tokio::task::unconstrained(self.sleep.as_mut())).poll(context).is_ready()
        };
        if elapsed {
            self.waker = None;
        }
        elapsed
    }
}
