//! Readings of the clock by which a client's requests are timed.
//!
//! A client that has a thread to itself reads the clock before each request and after each answer. The clients of one
//! connection get their answers from one read, and their requests leave in one write: there the end of the read is
//! the time at which all of these answers came, and the time that kvdyno spends on the first of them does not count
//! for the last. One reading of the clock serves all these answers, and one the requests that follow.
//!
//! A driver that waits by itself may stand behind a transport of kvdyno's (`cache` may mix them). Its answer may be
//! found in a turn that began with the transport's answers: then it came some µs later than recorded.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Context;

use crate::measure::{self, Nanos};
use crate::store::Transport;

use super::worker::Worker;

/// Departure of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// Time of it, never later than its bytes left.
    pub at: Nanos,
    /// Number of the connection's turn in which the request left.
    turn: u64,
}

/// Memory that a client will touch when its answer has come, so that others can prefetch it in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touched {
    /// The record that its request is about.
    pub record: u64,
    /// Address at which the key of its next request will be written.
    pub key: *const u8,
    /// Address at which the value that it reads will be written.
    pub reading: *const u8,
    /// Address at which the value that it writes will be composed.
    pub value: *const u8,
}

/// Clock by which a client's requests are timed.
pub(super) trait RequestClock {
    /// Reads the clock for a request that is about to be made.
    fn leave(&self, touched: Touched) -> Departure;

    /// Returns the time at which the answer to the client's request came; called right after the answer.
    fn answered(&self, departure: Departure) -> Nanos;

    /// Returns the memory that the next client will touch; `None` if there is no next one.
    fn next(&self) -> Option<Touched>;
}

/// Clock of a client whose calls return with the answer: read before each request and after each answer.
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

/// Clock shared by the clients of one connection. It counts the connection's turns; a turn begins when the transport
/// has been polled.
pub(super) struct ConnectionClock {
    number: Cell<u64>,
    /// Time at which this turn's answers came; `None` if there were none.
    answered: Cell<Option<Nanos>>,
    /// Time at which the first request of this turn was made; `None` if there was none.
    departure: Cell<Option<Nanos>>,
    /// Memory that each client will touch; `None` until it has made a request.
    touched: Vec<Cell<Option<Touched>>>,
}

impl ConnectionClock {
    /// Makes the clock of a connection of so many clients.
    #[inline]
    pub fn of(clients: usize) -> Rc<ConnectionClock> {
        Rc::new(ConnectionClock {
            number: Cell::new(0),
            answered: Cell::new(None),
            departure: Cell::new(None),
            touched: vec![Cell::new(None); clients],
        })
    }

    /// Begins a turn: the transport has been polled, and has brought answers if `answered`.
    #[inline]
    fn begin(&self, answered: bool) {
        self.number.set(self.number.get() + 1);
        self.answered.set(answered.then(measure::now));
        self.departure.set(None);
    }

    /// Returns the records that requests were made about. Their ledger words are prefetched when the answers have
    /// been read, and not one client ahead, which leaves less time than memory takes.
    #[inline]
    fn records(&self) -> impl Iterator<Item = u64> {
        self.touched.iter().filter_map(|touched| touched.get().map(|touched| touched.record))
    }

    /// Returns the clock of one of the clients.
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

/// Clock of a client that shares a connection, or whose driver waits by itself: read once for all requests that leave
/// together, and once for all that are answered together.
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
