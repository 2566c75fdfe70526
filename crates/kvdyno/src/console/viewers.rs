//! Viewers of a page. Each has a queue; a viewer that reads too slowly loses what waits for it, and gets all that
//! there is anew. Nobody waits for a viewer.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kvdyno_report::live::Zoom;

/// Most bytes that wait for a viewer.
const MOST_WAITING: usize = 1 << 20;

/// The story that viewers look at.
pub trait Story: Send + 'static {
    /// Makes the whole page.
    ///
    /// # Errors
    /// The reason why it cannot be made.
    fn page(&self) -> Result<String, String>;

    /// Returns all that a page must know to show the story so far.
    fn snapshot(&self) -> String;

    /// Returns the points of a stretch, as finely as there are any.
    ///
    /// # Errors
    /// The reason why they cannot be told.
    fn stretch(&self, asked: &Zoom) -> Result<String, String>;
}

/// A story and its viewers.
pub struct Viewers<S> {
    state: Mutex<State<S>>,
}

struct State<S> {
    story: S,
    queues: Vec<Arc<Queue>>,
    is_over: bool,
}

/// Messages that wait for one viewer.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Arc<str>>,
    bytes: usize,
    /// True if the viewer has lost messages, or has had none yet: it needs a snapshot.
    needs_all: bool,
    /// True if nothing more will come.
    is_over: bool,
    is_gone: bool,
}

/// A viewer's place; it leaves when this is dropped.
pub struct Seat<S: Story> {
    viewers: Arc<Viewers<S>>,
    queue: Arc<Queue>,
}

/// Next thing that a viewer gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A message.
    Message(Arc<str>),
    /// Nothing came in this time.
    Nothing,
    /// Nothing more will come.
    Over,
}

impl<S: Story> Viewers<S> {
    /// Makes a story without viewers.
    pub fn new(story: S) -> Viewers<S> {
        Viewers { state: Mutex::new(State { story, queues: Vec::new(), is_over: false }) }
    }

    /// Changes the story, and sends every viewer the message that `change` returns; `change` is told whether there
    /// are viewers.
    pub fn change(&self, change: impl FnOnce(&mut S, bool) -> Option<String>) {
        let mut state = locked(&self.state);
        let is_seen = !state.queues.is_empty();
        let Some(message) = change(&mut state.story, is_seen) else { return };
        let message: Arc<str> = message.into();
        state.queues.retain(|queue| queue.push(&message));
    }

    /// Makes the whole page.
    ///
    /// # Errors
    /// The reason why it cannot be made.
    pub fn page(&self) -> Result<String, String> {
        locked(&self.state).story.page()
    }

    /// Returns the points of a stretch.
    ///
    /// # Errors
    /// The reason why they cannot be told.
    pub fn stretch(&self, asked: &Zoom) -> Result<String, String> {
        locked(&self.state).story.stretch(asked)
    }

    /// Adds a viewer, whose first message is all that there is.
    pub fn join(self: &Arc<Self>) -> Seat<S> {
        let mut state = locked(&self.state);
        let waiting = Waiting { needs_all: true, is_over: state.is_over, ..Waiting::default() };
        let queue = Arc::new(Queue { waiting: Mutex::new(waiting), changed: Condvar::new() });
        state.queues.push(Arc::clone(&queue));
        Seat { viewers: Arc::clone(self), queue }
    }

    /// Ends the story: nothing more will be told. Viewers have `patience` to read the rest.
    pub fn end(&self, patience: Duration) {
        let queues = {
            let mut state = locked(&self.state);
            state.is_over = true;
            state.queues.clone()
        };
        for queue in &queues {
            locked(&queue.waiting).is_over = true;
            queue.changed.notify_all();
        }
        let give_up = Instant::now() + patience;
        for queue in queues {
            let mut waiting = locked(&queue.waiting);
            while !waiting.is_gone {
                let Some(left) = give_up.checked_duration_since(Instant::now()) else { return };
                let changed = queue.changed.wait_timeout(waiting, left);
                waiting = changed.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

impl Queue {
    /// Adds a message. Returns false if the viewer is gone.
    fn push(&self, message: &Arc<str>) -> bool {
        let mut waiting = locked(&self.waiting);
        if waiting.needs_all || waiting.is_gone {
            return !waiting.is_gone;
        }
        waiting.bytes += message.len();
        waiting.messages.push_back(Arc::clone(message));
        if waiting.bytes > MOST_WAITING {
            *waiting = Waiting { needs_all: true, ..Waiting::default() };
        }
        self.changed.notify_all();
        true
    }
}

impl<S: Story> Seat<S> {
    /// Waits for the next message, no longer than `patience`.
    pub fn next(&self, patience: Duration) -> Next {
        let give_up = Instant::now() + patience;
        let mut waiting = locked(&self.queue.waiting);
        loop {
            if waiting.needs_all {
                drop(waiting);
                return Next::Message(self.all());
            }
            if let Some(message) = waiting.messages.pop_front() {
                waiting.bytes -= message.len();
                return Next::Message(message);
            }
            if waiting.is_over {
                return Next::Over;
            }
            let Some(left) = give_up.checked_duration_since(Instant::now()) else {
                return Next::Nothing;
            };
            let changed = self.queue.changed.wait_timeout(waiting, left);
            waiting = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns all that there is; messages from now on follow it.
    fn all(&self) -> Arc<str> {
        let state = locked(&self.viewers.state);
        let all = state.story.snapshot().into();
        locked(&self.queue.waiting).needs_all = false;
        all
    }
}

impl<S: Story> Drop for Seat<S> {
    fn drop(&mut self) {
        locked(&self.queue.waiting).is_gone = true;
        self.queue.changed.notify_all();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A story that counts; its page is the count.
    struct Counts(u32);

    impl Story for Counts {
        fn page(&self) -> Result<String, String> {
            Ok(self.0.to_string())
        }

        fn snapshot(&self) -> String {
            format!("all {}", self.0)
        }

        fn stretch(&self, _: &Zoom) -> Result<String, String> {
            Err("a count has none".to_owned())
        }
    }

    const SOON: Duration = Duration::from_millis(10);

    fn count(viewers: &Viewers<Counts>, length: usize) {
        viewers.change(|counts, is_seen| {
            counts.0 += 1;
            if !is_seen {
                return None;
            }
            // Longer than the width in a format string may be.
            let number = counts.0.to_string();
            Some("0".repeat(length.saturating_sub(number.len())) + &number)
        });
    }

    fn text(next: Next) -> String {
        let Next::Message(text) = next else { panic!("{next:?}") };
        text.to_string()
    }

    #[test]
    fn one_that_stops_reading_delays_nobody_and_gets_all_when_it_reads_again() {
        let viewers = Arc::new(Viewers::new(Counts(0)));
        let (reads, sleeps) = (viewers.join(), viewers.join());
        assert_eq!([text(reads.next(SOON)), text(sleeps.next(SOON))], ["all 0", "all 0"]);
        let megabytes = 64 << 10;
        let began = Instant::now();
        for number in 1..=100_u32 {
            count(&viewers, megabytes);
            assert_eq!(text(reads.next(SOON)).parse(), Ok(number), "each, in order");
        }
        assert!(began.elapsed() < Duration::from_secs(5), "nobody is waited for");
        let held = locked(&sleeps.queue.waiting).bytes;
        assert!(held <= MOST_WAITING, "{held} bytes wait");
        assert_eq!(text(sleeps.next(SOON)), "all 100", "not what it has missed");
        count(&viewers, 1);
        assert_eq!([text(reads.next(SOON)), text(sleeps.next(SOON))], ["101", "101"]);
        assert_eq!(reads.next(SOON), Next::Nothing);
    }

    #[test]
    fn who_comes_late_or_again_sees_all_and_who_left_is_forgotten() {
        let viewers = Arc::new(Viewers::new(Counts(0)));
        drop(viewers.join());
        (0..5).for_each(|_| count(&viewers, 1));
        assert!(locked(&viewers.state).queues.is_empty());
        viewers.change(|_, is_seen| {
            assert!(!is_seen, "nothing is drawn for nobody");
            None
        });
        let late = viewers.join();
        assert_eq!(text(late.next(SOON)), "all 5");
        count(&viewers, 1);
        viewers.end(Duration::ZERO);
        assert_eq!(text(late.next(SOON)), "6", "the rest is heard");
        assert_eq!(late.next(SOON), Next::Over);
    }
}
