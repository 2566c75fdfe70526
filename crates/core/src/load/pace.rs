//! Waiting until a request is due, exactly and without burning a core.
//!
//! Tokio's own timer ticks once a millisecond, far too coarse. A worker's waiting clients stand in
//! one queue; a timer of the kernel wakes the worker shortly before the first is due, and the rest
//! is a bounded spin that lets other tasks of the worker run in between. In process, where a client
//! is a thread, the thread sleeps and spins by itself.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::task::{Poll, Waker};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::timer::Timer;

use crate::measure::{Nanos, now};

/// Time before a due time at which the spin begins, ns: the kernel's timers are rarely later than this.
const SPIN: Nanos = 60_000;
/// Longest sleep at a stretch, ns, so that a stop is noticed.
const LONGEST_SLEEP: Nanos = 50_000_000;
/// Longest turn of the spin that counts as spun, ns. A turn that took longer than this, and than twice the shortest,
/// ran other tasks.
const SPIN_TURN: Nanos = 2_000;

/// Processor time that a client may spend on being on time: the option `--pace`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// Sleeps until shortly before a request is due, then polls the clock.
    #[default]
    Both,
    /// Polls the clock all the time: takes a whole processor, and needs nothing to wake it up.
    Spin,
    /// Only sleeps: takes next to no processor time, and sends as late as the system wakes it up.
    Timer,
}

impl Pacing {
    /// Returns the time before a due time from which on the clock is polled, ns.
    #[inline]
    fn spin(self) -> Nanos {
        match self {
            Pacing::Both => SPIN,
            Pacing::Spin => Nanos::MAX,
            Pacing::Timer => 0,
        }
    }
}

/// A client's way to wait.
pub(super) trait Pace {
    /// Waits until `due`; returns false if the load stops before.
    fn until(&self, due: Nanos) -> impl Future<Output = bool>;

    /// Waits for `wait` or until the load stops.
    fn rest(&self, wait: Duration) -> impl Future<Output = ()>;
}

/// Pace of clients that are threads: it blocks.
pub(super) struct ThreadPace<D: Fn() -> Nanos> {
    /// Time from which no operation starts.
    pub deadline: D,
    /// Processor time that waiting may cost.
    pub pacing: Pacing,
    /// Time spent spinning, ns.
    pub spun: Cell<Nanos>,
}

impl<D: Fn() -> Nanos> Pace for ThreadPace<D> {
    async fn until(&self, due: Nanos) -> bool {
        loop {
            let now = now();
            if due >= (self.deadline)() {
                return false;
            }
            let Some(left) = due.checked_sub(now).filter(|&left| left > 0) else { return true };
            let asleep = left.saturating_sub(self.pacing.spin());
            if asleep > 0 {
                std::thread::sleep(Duration::from_nanos(asleep.min(LONGEST_SLEEP)));
            } else {
                let spun = left.min(LONGEST_SLEEP);
                spin_until(now + spun);
                self.spun.set(self.spun.get() + spun);
            }
        }
    }

    async fn rest(&self, wait: Duration) {
        let end = now() + wait.as_nanos() as Nanos;
        while let Some(left) = end.checked_sub(now()).filter(|&left| left > 0) {
            if now() >= (self.deadline)() {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left.min(LONGEST_SLEEP)));
        }
    }
}

#[inline]
fn spin_until(due: Nanos) {
    while now() < due {
        std::hint::spin_loop();
    }
}

/// Pace of clients that share a worker's runtime: a queue of due times, served by [`RuntimePace::run`].
pub(super) struct RuntimePace<D: Fn() -> Nanos> {
    deadline: D,
    pacing: Pacing,
    waiting: RefCell<BinaryHeap<Reverse<Waiting>>>,
    server: RefCell<Option<Waker>>,
    spun: Cell<Nanos>,
}

struct Waiting {
    due: Nanos,
    waker: Waker,
}

impl PartialEq for Waiting {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

impl<D: Fn() -> Nanos> RuntimePace<D> {
    pub fn new(deadline: D, pacing: Pacing) -> Self {
        RuntimePace {
            deadline,
            pacing,
            waiting: RefCell::default(),
            server: RefCell::new(None),
            spun: Cell::new(0),
        }
    }

    /// Returns the time spent spinning, ns.
    pub fn spun(&self) -> Nanos {
        self.spun.get()
    }

    /// Wakes clients as they fall due; runs beside them on the worker's runtime and never ends.
    pub async fn run(&self, mut timer: Timer) {
        // Each turn looks at the sockets: how long that takes depends on the machine.
        let mut shortest = Nanos::MAX;
        loop {
            let due = self.first_due().await;
            let before = now();
            let asleep = due.saturating_sub(before).saturating_sub(self.pacing.spin());
            if before >= due || before >= (self.deadline)() {
                self.wake_due(before);
            } else if asleep == 0 {
                tokio::task::yield_now().await;
                let turn = now() - before;
                shortest = shortest.min(turn);
                if turn <= SPIN_TURN.max(2 * shortest) {
                    self.spun.set(self.spun.get() + turn);
                }
            } else {
                tokio::select! {
                    () = timer.sleep(asleep.min(LONGEST_SLEEP)) => {}
                    () = self.earlier_than(due) => {}
                }
            }
        }
    }

    /// Waits until a client waits for a time before `due`.
    async fn earlier_than(&self, due: Nanos) {
        std::future::poll_fn(|context| {
            if self.waiting.borrow().peek().is_some_and(|Reverse(first)| first.due < due) {
                return Poll::Ready(());
            }
            *self.server.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Returns the earliest due time; waits while no client waits.
    async fn first_due(&self) -> Nanos {
        std::future::poll_fn(|context| match self.waiting.borrow().peek() {
            Some(Reverse(first)) => Poll::Ready(first.due),
            None => {
                *self.server.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }

    /// Wakes all clients that are due at `when`, and after the deadline all.
    fn wake_due(&self, when: Nanos) {
        let stopped = when >= (self.deadline)();
        let mut waiting = self.waiting.borrow_mut();
        while let Some(Reverse(first)) = waiting.peek()
            && (stopped || first.due <= when)
        {
            let Some(Reverse(first)) = waiting.pop() else { break };
            first.waker.wake();
        }
    }
}

impl<D: Fn() -> Nanos> Pace for RuntimePace<D> {
    async fn until(&self, due: Nanos) -> bool {
        let mut queued = false;
        std::future::poll_fn(|context| {
            let now = now();
            if due >= (self.deadline)() {
                return Poll::Ready(false);
            }
            if now >= due {
                return Poll::Ready(true);
            }
            // A connection's clients are polled together, so a poll may come before the time.
            if !queued {
                queued = true;
                let waker = context.waker().clone();
                self.waiting.borrow_mut().push(Reverse(Waiting { due, waker }));
                if let Some(server) = self.server.borrow_mut().take() {
                    server.wake();
                }
            }
            Poll::Pending
        })
        .await
    }

    async fn rest(&self, wait: Duration) {
        let end = now() + wait.as_nanos() as Nanos;
        while let Some(left) = end.checked_sub(now()).filter(|&left| left > 0) {
            if now() >= (self.deadline)() {
                return;
            }
            tokio::time::sleep(Duration::from_nanos(left.min(LONGEST_SLEEP))).await;
        }
    }
}
