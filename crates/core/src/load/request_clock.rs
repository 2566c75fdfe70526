//! By which readings of the clock a client's requests are timed.
//!
//! A client that has a thread to itself reads the clock before each request and after each answer. The
//! clients of one connection have their answers from one read and their requests leave in one write:
//! there the read's end is when all of these answers came, and what kvdyno does about the first of them
//! is no time of the last. One reading serves them all, and one the requests that follow.
//!
//! Where a driver that waits by itself stands behind a transport of kvdyno's (`cache` may mix them), its answer
//! may be found in a turn that the transport's answers began: then it came some µs later than is told.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Context;

use crate::measure::{self, Nanos};
use crate::store::Transport;

use super::worker::Worker;

/// When a request left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// Never later than its bytes left.
    pub at: Nanos,
    /// Number of the connection's turn in which it was.
    turn: u64,
}

/// What a client will touch when its answer has come, for others to ask for in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touched {
    /// The record that its request is about.
    pub record: u64,
    /// Where the key of its next request will be written.
    pub key: *const u8,
    /// Where what it reads will be written.
    pub reading: *const u8,
    /// Where the value that it writes will be put together.
    pub value: *const u8,
}

/// Times a client's requests.
pub(super) trait RequestClock {
    /// A request is about to be made.
    fn leave(&self, touched: Touched) -> Departure;

    /// When the answer came to the client's request; asked right after it.
    fn answered(&self, departure: Departure) -> Nanos;

    /// What the client will touch whose turn is next, if there is one.
    fn next(&self) -> Option<Touched>;
}

/// The clock of a client whose calls do all there is to do: read before each request and after each answer.
pub(super) struct OwnClock;

impl RequestClock for OwnClock {
    #[inline(always)]
    fn leave(&self, _touched: Touched) -> Departure {
        Departure { at: measure::departure(), turn: 0 }
    }

    #[inline(always)]
    fn answered(&self, _departure: Departure) -> Nanos {
        measure::now()
    }

    #[inline(always)]
    fn next(&self) -> Option<Touched> {
        None
    }
}

/// What the clients of one connection share: its turns, each of which begins when the transport has
/// been polled.
pub(super) struct ConnectionClock {
    number: Cell<u64>,
    /// When this turn's answers came, if there were any.
    answered: Cell<Option<Nanos>>,
    /// When the first request of this turn was made, if there was one.
    departure: Cell<Option<Nanos>>,
    /// Of each client, once it has made a request.
    touched: Vec<Cell<Option<Touched>>>,
}

impl ConnectionClock {
    /// Of so many clients.
    #[inline]
    pub fn of(clients: usize) -> Rc<ConnectionClock> {
        Rc::new(ConnectionClock {
            number: Cell::new(0),
            answered: Cell::new(None),
            departure: Cell::new(None),
            touched: vec![Cell::new(None); clients],
        })
    }

    /// The transport has been polled, and brought answers or not.
    #[inline]
    fn begin(&self, answered: bool) {
        self.number.set(self.number.get() + 1);
        self.answered.set(answered.then(measure::now));
        self.departure.set(None);
    }

    /// The records that requests were made about. Their ledger words are asked for when the answers have
    /// been read, and not one client ahead, which leaves less time than memory takes.
    #[inline]
    fn records(&self) -> impl Iterator<Item = u64> {
        self.touched.iter().filter_map(|touched| touched.get().map(|touched| touched.record))
    }

    /// The clock of one of the clients.
    #[inline]
    pub fn of_client(self: &Rc<Self>, client: usize) -> SharedClock {
        SharedClock { turns: Rc::clone(self), client }
    }
}

/// A transport whose polls begin the turns.
pub(super) struct Ticking<T> {
    pub transport: T,
    pub turns: Rc<ConnectionClock>,
    pub worker: Rc<Worker>,
}

impl<T: Transport> Transport for Ticking<T> {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let answered = self.transport.poll(context);
        self.turns.begin(answered);
        if answered {
            let examiner = self.worker.examiner();
            self.turns.records().for_each(|record| examiner.prefetch(record));
        }
        answered
    }
}

/// The clock of a client that shares a connection, or whose driver waits by itself: read once for all that
/// leave or are answered together.
pub(super) struct SharedClock {
    turns: Rc<ConnectionClock>,
    client: usize,
}

impl RequestClock for SharedClock {
    #[inline(always)]
    fn leave(&self, touched: Touched) -> Departure {
        let turns = &*self.turns;
        turns.touched[self.client].set(Some(touched));
        let at = turns.departure.get().unwrap_or_else(|| {
            let now = measure::departure();
            turns.departure.set(Some(now));
            now
        });
        Departure { at, turn: turns.number.get() }
    }

    #[inline(always)]
    fn answered(&self, departure: Departure) -> Nanos {
        let turns = &*self.turns;
        match turns.answered.get() {
            Some(answered) if turns.number.get() > departure.turn => answered,
            _ => {
                // Answered by the driver itself, perhaps at once: the next request leaves after that.
                turns.departure.set(None);
                measure::now()
            }
        }
    }

    #[inline(always)]
    fn next(&self) -> Option<Touched> {
        self.turns.touched.get(self.client + 1).and_then(Cell::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(record: u64) -> Touched {
        let nowhere = std::ptr::null();
        Touched { record, key: nowhere, reading: nowhere, value: nowhere }
    }

    #[test]
    fn answers_of_one_read_came_together_and_the_requests_after_them_leave_together() {
        let turns = ConnectionClock::of(2);
        let (first, second) = (turns.of_client(0), turns.of_client(1));
        let sent = [first.leave(about(7)), second.leave(about(8))];
        assert_eq!(sent[0].at, sent[1].at);
        assert_eq!((first.next(), second.next()), (Some(about(8)), None));
        turns.begin(true);
        let answered = first.answered(sent[0]);
        assert!(answered > sent[0].at);
        let next = first.leave(about(9));
        assert!(next.at >= answered, "a request leaves after the answer before it");
        assert_eq!(second.answered(sent[1]), answered, "whatever the first has done meanwhile");
        assert_eq!(second.leave(about(10)).at, next.at);
    }

    #[test]
    fn what_a_driver_answers_by_itself_is_timed_by_itself() {
        let turns = ConnectionClock::of(1);
        let clock = turns.of_client(0);
        // Another client's answer came in this turn.
        turns.begin(true);
        let sent = clock.leave(about(7));
        let answered = clock.answered(sent);
        assert!(answered >= sent.at, "at once, and not when that other answer came");
        assert!(clock.leave(about(8)).at >= answered, "the next one leaves later");
        // The driver's own waker, and no transport, brought this turn about.
        let sent = clock.leave(about(9));
        turns.begin(false);
        let before = measure::now();
        assert!(clock.answered(sent) >= before);
    }
}
