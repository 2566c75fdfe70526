//! Hands events to subscribers. Each subscriber has a queue and a thread of its own: one that is slow or fails disturbs
//! neither the load nor the others.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Event;
use super::fold::Fold;
use crate::result::RunResult;

/// Memory that the events waiting for one subscriber may take, bytes: beyond it, events that the result does not depend
/// on are left out, and counted.
pub const MOST_WAITING: usize = 256 << 20;

/// Receiver of events. It gets them in their order and cannot change them.
pub trait Subscriber: Send {
    /// Takes the next event.
    fn on_event(&mut self, event: &Event);
}

/// Stream of a run's events; its clones are one and the same stream.
#[derive(Clone, Debug, Default)]
pub struct EventStream(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    fold: Fold,
    queues: Vec<Arc<Queue>>,
}

impl EventStream {
    /// Lets `subscriber` hear all events from now on.
    pub fn subscribe<S: Subscriber + 'static>(&self, subscriber: S) -> Subscription<S> {
        self.subscribe_within(subscriber, MOST_WAITING)
    }

    fn subscribe_within<S: Subscriber + 'static>(
        &self,
        mut subscriber: S,
        most_waiting: usize,
    ) -> Subscription<S> {
        let queue = Arc::new(Queue { most_waiting, ..Queue::default() });
        locked(&self.0).queues.push(Arc::clone(&queue));
        let queue_of_thread = Arc::clone(&queue);
        let thread = std::thread::spawn(move || {
            let _gone = Gone(&queue_of_thread);
            while let Some(event) = queue_of_thread.next() {
                subscriber.on_event(&event);
            }
            subscriber
        });
        Subscription { queue, thread }
    }

    /// Publishes an event. Never waits for a subscriber.
    ///
    /// # Panics
    /// If the event does not follow from those before: that is a mistake in kvdyno.
    pub fn publish(&self, event: Event) {
        let mut state = locked(&self.0);
        state.fold.apply(&event).expect("events follow from those before");
        let event = Arc::new(event);
        state.queues.retain(|queue| queue.push(&event));
    }

    /// Returns the result of the events so far.
    ///
    /// # Panics
    /// Before the run's begin.
    #[must_use]
    pub fn result(&self) -> RunResult {
        self.look(|fold| fold.result().cloned()).expect("the run has begun")
    }

    /// Reads from the fold of the events so far.
    pub fn look<T>(&self, at: impl FnOnce(&Fold) -> T) -> T {
        at(&locked(&self.0).fold)
    }
}

/// Handle of a subscriber that runs.
#[derive(Debug)]
pub struct Subscription<S> {
    queue: Arc<Queue>,
    thread: JoinHandle<S>,
}

/// A subscriber that has received all of its events.
#[derive(Debug)]
pub struct FinishedSubscription<S> {
    /// The subscriber.
    pub subscriber: S,
    /// Events that it missed, because too many waited for it.
    pub missed: u64,
}

impl<S> Subscription<S> {
    /// Waits until the subscriber has taken all events so far, and no longer than `patience`.
    pub fn catch_up(&self, patience: Duration) {
        let give_up = Instant::now() + patience;
        let mut waiting = locked(&self.queue.waiting);
        while !waiting.is_caught_up() {
            let Some(left) = give_up.checked_duration_since(Instant::now()) else { return };
            let changed = self.queue.changed.wait_timeout(waiting, left);
            waiting = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets the subscriber take the events that still wait, and then no more. Does not wait for it.
    pub fn leave(self) {
        self.close();
    }

    fn close(&self) {
        locked(&self.queue.waiting).is_closed = true;
        self.queue.changed.notify_all();
    }

    /// Lets the subscriber take the events that still wait, and then no more, and waits for its end. `None` if it has
    /// failed.
    #[must_use]
    pub fn end(self) -> Option<FinishedSubscription<S>> {
        self.close();
        let subscriber = self.thread.join().ok()?;
        let missed = locked(&self.queue.waiting).missed;
        Some(FinishedSubscription { subscriber, missed })
    }
}

/// Events that wait for one subscriber.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    most_waiting: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Arc<Event>>,
    /// Memory that they take, bytes.
    weight: usize,
    missed: u64,
    /// True while the subscriber waits for the next event.
    is_idle: bool,
    /// True if no further event comes.
    is_closed: bool,
    /// True if the subscriber is done or has failed.
    is_gone: bool,
}

impl Waiting {
    /// Returns true if no event waits and the subscriber is idle, or if it is gone.
    fn is_caught_up(&self) -> bool {
        self.is_gone || (self.is_idle && self.events.is_empty())
    }
}

impl Queue {
    /// Adds an event; `false` if the subscriber takes no more.
    fn push(&self, event: &Arc<Event>) -> bool {
        let mut waiting = locked(&self.waiting);
        if waiting.is_gone || waiting.is_closed {
            return false;
        }
        let weight = event.weight();
        if waiting.weight + weight > self.most_waiting && event.may_be_missed() {
            waiting.missed += 1;
            return true;
        }
        waiting.weight += weight;
        waiting.events.push_back(Arc::clone(event));
        self.changed.notify_all();
        true
    }

    /// Waits for the next event; `None` if no further event comes.
    fn next(&self) -> Option<Arc<Event>> {
        let mut waiting = locked(&self.waiting);
        loop {
            if let Some(event) = waiting.events.pop_front() {
                waiting.weight = waiting.weight.saturating_sub(event.weight());
                waiting.is_idle = false;
                return Some(event);
            }
            if waiting.is_closed {
                return None;
            }
            waiting.is_idle = true;
            self.changed.notify_all();
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Guard that marks the subscriber as gone, also when it has failed.
struct Gone<'a>(&'a Queue);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        locked(&self.0.waiting).is_gone = true;
        self.0.changed.notify_all();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use kvdyno_core::measure::Interval;

    use super::*;
    use crate::result::Status;
    use crate::sample;

    /// Subscriber that keeps its events.
    #[derive(Default)]
    struct Keeps(Vec<Event>);

    impl Subscriber for Keeps {
        fn on_event(&mut self, event: &Event) {
            self.0.push(event.clone());
        }
    }

    /// Subscriber that waits for a signal before it takes each event.
    struct Waits(Receiver<()>, Keeps);

    impl Subscriber for Waits {
        fn on_event(&mut self, event: &Event) {
            let _ = self.0.recv();
            self.1.on_event(event);
        }
    }

    struct Fails;

    impl Subscriber for Fails {
        fn on_event(&mut self, _: &Event) {
            panic!("a subscriber that fails");
        }
    }

    fn interval(index: u32) -> Event {
        Event::Interval(Box::new(Interval { index, ..Interval::default() }))
    }

    #[test]
    fn one_that_is_slow_or_fails_disturbs_nobody() {
        let stream = EventStream::default();
        let (go, wait) = channel();
        let slow = stream.subscribe_within(Waits(wait, Keeps::default()), 3 * interval(0).weight());
        let (fails, quick) = (stream.subscribe(Fails), stream.subscribe(Keeps::default()));
        let result = crate::result::RunResult { runs: Vec::new(), ..sample::two_stores() };
        let begin = Event::run_began(result);
        let ended = Event::RunEnded { status: Status::Complete, at: "then".to_owned() };
        let published = Instant::now();
        stream.publish(begin.clone());
        (0..100).for_each(|index| stream.publish(interval(index)));
        stream.publish(ended.clone());
        assert!(published.elapsed() < Duration::from_secs(5), "nobody is waited for");
        let all: Vec<Event> = [begin.clone()]
            .into_iter()
            .chain((0..100).map(interval))
            .chain([ended.clone()])
            .collect();
        let quick = quick.end().unwrap();
        assert_eq!((quick.subscriber.0, quick.missed), (all, 0), "in order, and all of it");
        assert!(fails.end().is_none());
        drop(go);
        let FinishedSubscription { subscriber: Waits(_, Keeps(received)), missed } =
            slow.end().unwrap();
        // Events that the result depends on are never left out, and the number of missed ones is told.
        assert_eq!((received.first(), received.last()), (Some(&begin), Some(&ended)));
        assert!(missed >= 95 && received.len() as u64 == 102 - missed, "{missed} missed");
        assert_eq!(stream.result().status, Status::Complete);
    }

    #[test]
    fn one_that_nobody_waits_for_ends_all_the_same() {
        let (here, gone) = channel();
        struct Ends(
            #[allow(dead_code, reason = "it closes the channel")] std::sync::mpsc::Sender<()>,
        );
        impl Subscriber for Ends {
            fn on_event(&mut self, _: &Event) {}
        }
        EventStream::default().subscribe(Ends(here)).leave();
        assert!(gone.recv().is_err(), "its thread is over");
    }

    #[test]
    fn catching_up_waits_for_what_was_told_and_no_longer() {
        let stream = EventStream::default();
        let (go, wait) = channel();
        let slow = stream.subscribe(Waits(wait, Keeps::default()));
        stream.publish(interval(0));
        let began = Instant::now();
        slow.catch_up(Duration::from_millis(20));
        assert!(began.elapsed() >= Duration::from_millis(20));
        go.send(()).unwrap();
        slow.catch_up(Duration::from_secs(60));
        assert!(began.elapsed() < Duration::from_secs(30));
        drop(go);
        assert_eq!(slow.end().unwrap().subscriber.1.0.len(), 1);
    }
}
