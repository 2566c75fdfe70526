//! All connections of a worker, in one task. Connections whose answers have come take their turns together, step by
//! step: each reads, then every client is polled, then each writes. So whatever a step needs in the processor's
//! caches, above all code of the operating system, is fetched once for all of them, and no answer waits to be read
//! while requests of others are sent.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::yield_now;

use super::connection_tasks::ConnectionTasks;
use crate::store::Transport;

/// All connections of a worker, as one future that is over when every client has ended.
pub(super) struct WorkerConnections<'a, T> {
    /// `None` once its clients have ended.
    connections: Vec<Option<ConnectionTasks<'a, T>>>,
    wakers: Vec<Waker>,
    ready: Arc<ReadySet>,
    /// The connections whose turn it is; a buffer.
    turn: Vec<usize>,
    left: usize,
}

impl<'a, T: Transport> WorkerConnections<'a, T> {
    pub fn new(connections: Vec<ConnectionTasks<'a, T>>) -> Self {
        let ready = Arc::new(ReadySet::all_ready(connections.len()));
        let waker =
            |number| Waker::from(Arc::new(ReadyWaker { ready: Arc::clone(&ready), number }));
        WorkerConnections {
            wakers: (0..connections.len()).map(waker).collect(),
            left: connections.len(),
            turn: Vec::with_capacity(connections.len()),
            connections: connections.into_iter().map(Some).collect(),
            ready,
        }
    }

    /// Takes one step of every connection whose turn it is, and returns true if a step is to be taken again for any
    /// of them.
    #[inline]
    fn each(
        &mut self,
        step: impl Fn(&mut ConnectionTasks<'a, T>, &mut Context<'_>) -> bool,
    ) -> bool {
        let mut again = false;
        for (position, &number) in self.turn.iter().enumerate() {
            if let Some(Some(next)) =
                self.turn.get(position + 1).map(|&next| &self.connections[next])
            {
                next.expect(0);
            }
            let slot = &mut self.connections[number];
            let Some(connection) = slot else { continue };
            let mut context = Context::from_waker(&self.wakers[number]);
            // A driver that panics takes the clients of its connection with it, and no others.
            let stepped = catch_unwind(AssertUnwindSafe(|| step(connection, &mut context)));
            if stepped.is_err() || connection.is_over() {
                *slot = None;
                self.left -= 1;
            } else if let Ok(true) = stepped {
                self.ready.mark(number);
                again = true;
            }
        }
        again
    }
}

impl<T: Transport + Unpin> Future for WorkerConnections<'_, T> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let connections = &mut *self;
        connections.ready.take_ready(context.waker(), &mut connections.turn);
        connections.each(|connection, context| {
            connection.receive(context);
            false
        });
        connections.each(|connection, context| {
            connection.poll_clients(context);
            false
        });
        if connections.each(ConnectionTasks::send) {
            // A server that answers at once keeps neither timers nor other connections waiting: the runtime
            // looks at them before it polls this again.
            let _ = pin!(yield_now()).poll(context);
        }
        if connections.left == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Set of the connections that have something to do: one bit for each.
struct ReadySet {
    words: Vec<AtomicU64>,
    /// The task has been woken since it looked last.
    is_reported: AtomicBool,
    task: Mutex<Waker>,
}

impl ReadySet {
    #[inline]
    fn all_ready(connections: usize) -> Self {
        let word = |first: usize| {
            let bits = (connections - first).min(64) as u32;
            AtomicU64::new(u64::MAX >> (64 - bits))
        };
        ReadySet {
            words: (0..connections).step_by(64).map(word).collect(),
            is_reported: AtomicBool::new(false),
            task: Mutex::new(Waker::noop().clone()),
        }
    }

    /// Marks a connection that has something to do, whenever the task is polled next.
    #[inline]
    fn mark(&self, number: usize) {
        self.words[number / 64].fetch_or(1 << (number % 64), Ordering::SeqCst);
    }

    /// Lists the connections that have become ready since the last call; the next one that becomes ready wakes `task`.
    #[inline]
    fn take_ready(&self, task: &Waker, into: &mut Vec<usize>) {
        into.clear();
        let mut woken = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !woken.will_wake(task) {
            woken.clone_from(task);
        }
        drop(woken);
        // First: what becomes ready from here on wakes again.
        self.is_reported.store(false, Ordering::SeqCst);
        for (word, bits) in self.words.iter().enumerate() {
            let mut bits = bits.swap(0, Ordering::SeqCst);
            while bits != 0 {
                into.push(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

/// Waker of one connection: given to its transport and its clients.
struct ReadyWaker {
    ready: Arc<ReadySet>,
    number: usize,
}

impl Wake for ReadyWaker {
    #[inline]
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    #[inline]
    fn wake_by_ref(self: &Arc<Self>) {
        let ready = &*self.ready;
        ready.mark(self.number);
        if !ready.is_reported.swap(true, Ordering::SeqCst) {
            ready.task.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::rc::Rc;

    type Log = Rc<RefCell<Vec<String>>>;
    type Wakers = Rc<RefCell<Vec<Option<Waker>>>>;

    /// Notes each poll, and keeps the waker of its connection.
    struct Noting {
        number: usize,
        /// Predicate of the polls, counted from 1, in which there is an answer.
        answered: fn(usize) -> bool,
        polls: usize,
        log: Log,
        waker: Wakers,
    }

    impl Transport for Noting {
        fn poll(&mut self, context: &mut Context<'_>) -> bool {
            self.log.borrow_mut().push(format!("wire {}", self.number));
            self.waker.borrow_mut()[self.number] = Some(context.waker().clone());
            self.polls += 1;
            (self.answered)(self.polls)
        }
    }

    /// Makes so many connections of one client each, whose polls do `act`.
    fn connections(
        count: usize,
        answered: fn(usize) -> bool,
        act: fn(usize, usize) -> Poll<()>,
    ) -> (WorkerConnections<'static, Noting>, Log, Wakers) {
        let log = Log::default();
        let wakers = Rc::new(RefCell::new(vec![None; count]));
        let connection = |number| {
            let noted = Rc::clone(&log);
            let mut polls = 0;
            let client = poll_fn(move |_| {
                noted.borrow_mut().push(format!("client {number}"));
                polls += 1;
                act(number, polls)
            });
            let (log, waker) = (Rc::clone(&log), Rc::clone(&wakers));
            ConnectionTasks::new(
                vec![Box::pin(client) as Pin<Box<dyn Future<Output = ()>>>],
                Noting { number, answered, polls: 0, log, waker },
            )
        };
        (WorkerConnections::new((0..count).map(connection).collect()), log, wakers)
    }

    fn poll(connections: &mut WorkerConnections<'_, Noting>, log: &Log) -> (Poll<()>, Vec<String>) {
        let polled = Pin::new(connections).poll(&mut Context::from_waker(Waker::noop()));
        (polled, std::mem::take(&mut log.borrow_mut()))
    }

    #[test]
    fn connections_take_each_step_together_and_only_those_that_were_woken() {
        let (mut connections, log, wakers) = connections(3, |_| false, |_, _| Poll::Pending);
        let steps = |steps: &[&str]| steps.iter().map(|&step| step.to_owned()).collect::<Vec<_>>();
        let all = [
            "wire 0", "wire 1", "wire 2", "client 0", "client 1", "client 2", "wire 0", "wire 1",
            "wire 2",
        ];
        assert_eq!(poll(&mut connections, &log), (Poll::Pending, steps(&all)));
        assert_eq!(poll(&mut connections, &log), (Poll::Pending, vec![]));
        for number in [2, 0, 2] {
            wakers.borrow()[number].as_ref().unwrap().wake_by_ref();
        }
        let woken = ["wire 0", "wire 2", "client 0", "client 2", "wire 0", "wire 2"];
        assert_eq!(poll(&mut connections, &log), (Poll::Pending, steps(&woken)));
        assert_eq!(poll(&mut connections, &log), (Poll::Pending, vec![]));
    }

    #[test]
    fn an_answer_that_is_there_already_waits_for_the_runtime_and_is_not_forgotten() {
        let (mut connections, log, _) = connections(1, |polls| polls == 2, |_, _| Poll::Pending);
        let woken = Arc::new(Woken::default());
        let task = Waker::from(Arc::clone(&woken));
        let mut polled = || Pin::new(&mut connections).poll(&mut Context::from_waker(&task));
        for (steps, wakes) in
            [(&["wire 0", "client 0", "wire 0"][..], 1), (&["client 0", "wire 0"], 1), (&[], 1)]
        {
            assert_eq!(polled(), Poll::Pending);
            assert_eq!(std::mem::take(&mut *log.borrow_mut()), steps);
            assert_eq!(woken.0.load(Ordering::SeqCst), wakes);
        }
    }

    #[test]
    fn a_panic_ends_its_own_connection() {
        let (mut connections, log, wakers) = connections(
            2,
            |_| false,
            |number, polls| match (number, polls) {
                (0, _) => panic!("a driver's fault"),
                (_, 1) => Poll::Pending,
                _ => Poll::Ready(()),
            },
        );
        let (polled, steps) = poll(&mut connections, &log);
        assert_eq!((polled, steps.last().unwrap().as_str()), (Poll::Pending, "wire 1"));
        wakers.borrow()[1].as_ref().unwrap().wake_by_ref();
        assert_eq!(poll(&mut connections, &log).0, Poll::Ready(()));
    }

    #[test]
    fn each_of_many_ready_connections_wakes_the_task_once() {
        for count in [1, 63, 64, 65, 130] {
            let ready = Arc::new(ReadySet::all_ready(count));
            let mut taken = Vec::new();
            let woken = Arc::new(Woken::default());
            let task = Waker::from(Arc::clone(&woken));
            ready.take_ready(&task, &mut taken);
            assert_eq!(taken, (0..count).collect::<Vec<_>>());
            for number in [count - 1, 0, count - 1] {
                Waker::from(Arc::new(ReadyWaker { ready: Arc::clone(&ready), number })).wake();
            }
            assert_eq!(woken.0.load(Ordering::SeqCst), 1, "{count} connections");
            ready.take_ready(&task, &mut taken);
            assert_eq!(taken.iter().collect::<std::collections::BTreeSet<_>>().len(), 2.min(count));
            ready.take_ready(&task, &mut taken);
            assert!(taken.is_empty());
        }
    }

    /// Number of times that a task was woken.
    #[derive(Default)]
    struct Woken(AtomicU64);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}
