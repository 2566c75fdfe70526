//! A connection and the requests in flight on it: encoded requests leave in one write, answers
//! come in one read and go to the clients in the order of the requests.
//!
//! The end of a connection is the point of this file. Whatever the cause, each request in flight is answered: a read as
//! failed, a write as indeterminate, unless not one of its bytes had left the output; then it is surely failed. The next
//! request makes one attempt to connect again.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use kvdyno_core::measure::{Nanos, departure, now};
use kvdyno_core::store::{Answer, ErrorClass, RequestError};

use super::deadline::Deadline;
use super::input::Input;
use super::stream::Stream;
use super::{LARGEST_ANSWER, MalformedAnswer, Protocol};

/// Effect of a request on the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It cannot change the store.
    Read,
    /// It can change the store.
    Write,
}

/// Answer that has come and was not yet read by its client.
#[derive(Clone, Copy)]
pub(super) struct Arrived<R> {
    pub(super) reply: R,
    start: usize,
    length: usize,
}

/// A client's place.
struct Slot<R> {
    /// Number of the client's last request: answers to earlier, abandoned ones are dropped.
    ticket: u32,
    state: State<R>,
}

enum State<R> {
    Idle,
    Waiting,
    Arrived(Arrived<R>),
    Failed(RequestError),
}

/// Request whose answer has not come.
struct Flight {
    slot: u32,
    ticket: u32,
    /// Number of replies that make up its answer.
    parts: u32,
    effect: Effect,
    /// Number of bytes put out on this connection before it.
    begins: u64,
    sent: Nanos,
}

enum Line {
    Open(Stream),
    Opening(Pin<Box<dyn Future<Output = Answer<Stream>>>>),
    Closed,
}

/// A connection that carries the requests of several clients.
pub(crate) struct Connection<P: Protocol> {
    protocol: P,
    peer: String,
    timeout: Nanos,
    line: Line,
    slots: Vec<Slot<P::Reply>>,
    flights: VecDeque<Flight>,
    /// Encoded requests, of which `written` bytes have left.
    output: Vec<u8>,
    written: usize,
    /// Number of bytes that left before those in `output`.
    written_before: u64,
    /// True if TLS may still hold bytes back.
    unflushed: bool,
    input: Input,
    /// Number of answers in `input` that clients have still to read.
    unclaimed: usize,
    progress: P::Progress,
    /// Time at which the requests since the last `poll` were made; one clock reading serves them all.
    batch: Option<Nanos>,
    deadline: Deadline,
    /// True if requests have failed since clients were last polled.
    failures: bool,
    /// Number of requests made in all.
    requests: u64,
    /// Number of requests for which no connection could be had.
    refused: u64,
}

impl<P: Protocol> Connection<P> {
    /// Returns a connection that the first request opens.
    pub(super) fn closed(protocol: P, slots: usize) -> Self {
        Connection {
            peer: protocol.peer(),
            timeout: protocol.timeout().as_nanos().try_into().unwrap_or(Nanos::MAX),
            protocol,
            line: Line::Closed,
            slots: (0..slots).map(|_| Slot { ticket: 0, state: State::Idle }).collect(),
            flights: VecDeque::with_capacity(slots),
            output: Vec::new(),
            written: 0,
            written_before: 0,
            unflushed: false,
            input: Input::new(),
            unclaimed: 0,
            progress: P::Progress::default(),
            batch: None,
            deadline: Deadline::new(),
            failures: false,
            requests: 0,
            refused: 0,
        }
    }

    /// Returns a connection over `stream`, which is ready for requests.
    pub(super) fn open(protocol: P, stream: Stream, slots: usize) -> Self {
        Connection { line: Line::Open(stream), ..Connection::closed(protocol, slots) }
    }

    /// Returns the number of requests sent since it was made, whatever became of them, and of those that were sent to no
    /// server, for no connection could be had.
    pub(super) fn requests(&self) -> (u64, u64) {
        (self.requests - self.refused, self.refused)
    }

    /// Puts a request out; `encode` appends it to the output. It leaves with the next `poll`.
    #[inline(always)]
    pub(super) fn submit(
        &mut self,
        slot: usize,
        effect: Effect,
        parts: u32,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        if matches!(self.line, Line::Closed) {
            self.begin_opening();
        }
        self.requests += 1;
        let sent = *self.batch.get_or_insert_with(departure);
        let begins = self.written_before + self.output.len() as u64;
        encode(&mut self.output);
        let place = &mut self.slots[slot];
        debug_assert!(
            matches!(place.state, State::Idle),
            "one-request-a-client: client {slot} has one already"
        );
        place.ticket = place.ticket.wrapping_add(1);
        place.state = State::Waiting;
        let (slot, ticket) = (slot as u32, place.ticket);
        self.flights.push_back(Flight { slot, ticket, parts, effect, begins, sent });
    }

    /// Begins to open a connection, out of the way of requests: opening takes kilobytes of stack before it is boxed.
    #[cold]
    #[inline(never)]
    fn begin_opening(&mut self) {
        let bytes = (self.output.len(), self.written, self.written_before);
        debug_assert!(
            self.flights.is_empty() && bytes == (0, 0, 0) && self.input.unread().is_empty(),
            "closed-is-empty: {} requests in flight, bytes {bytes:?}",
            self.flights.len()
        );
        self.line = Line::Opening(Box::pin(self.protocol.open()));
    }

    /// Returns true if the client's request has no answer yet.
    pub(super) fn is_waiting(&self, slot: usize) -> bool {
        matches!(self.slots[slot].state, State::Waiting)
    }

    /// Returns the answer to the client's request, once it is there. Its bytes, in [`Connection::bytes`], are to be read
    /// before the connection is polled again.
    pub(super) fn claim(&mut self, slot: usize) -> Option<Answer<Arrived<P::Reply>>> {
        let state = &mut self.slots[slot].state;
        match state {
            State::Idle | State::Waiting => None,
            State::Arrived(arrived) => {
                let arrived = *arrived;
                *state = State::Idle;
                self.unclaimed -= 1;
                Some(Ok(arrived))
            }
            State::Failed(_) => match std::mem::replace(state, State::Idle) {
                State::Failed(error) => Some(Err(error)),
                _ => None,
            },
        }
    }

    /// Returns all bytes of an answer.
    pub(super) fn bytes(&self, arrived: &Arrived<P::Reply>) -> &[u8] {
        self.input.at(arrived.start, arrived.length)
    }

    /// Drops the answer of a client that no longer waits for it, when it comes.
    pub(super) fn abandon(&mut self, slot: usize) {
        let old = std::mem::replace(&mut self.slots[slot].state, State::Idle);
        if matches!(old, State::Arrived(_)) {
            self.unclaimed -= 1;
        }
    }

    /// Returns the number of clients that wait for an answer.
    fn waiting(&self) -> usize {
        self.slots.iter().filter(|slot| matches!(slot.state, State::Waiting)).count()
    }

    /// Returns the number of requests in flight for whose answer a client waits.
    fn awaited(&self) -> usize {
        let awaited = |flight: &&Flight| {
            let slot = &self.slots[flight.slot as usize];
            slot.ticket == flight.ticket && matches!(slot.state, State::Waiting)
        };
        self.flights.iter().filter(awaited).count()
    }

    /// Writes what is to be written and reads what has come. Returns `true` if a client has an answer.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        debug_assert!(
            self.awaited() == self.waiting(),
            "waits-in-flight: {} clients wait for {} requests",
            self.waiting(),
            self.awaited()
        );
        self.batch = None;
        if let Line::Opening(attempt) = &mut self.line {
            match attempt.as_mut().poll(context) {
                Poll::Pending => return std::mem::take(&mut self.failures),
                Poll::Ready(opened) => self.opened(opened),
            }
        }
        let answered = match self.exchange(context) {
            Ok(answered) => answered,
            Err(End { class, message }) => {
                self.close(class, message);
                true
            }
        };
        std::mem::take(&mut self.failures) | answered
    }

    /// Ends the connection and answers every request in flight.
    pub(super) fn close(&mut self, class: ErrorClass, message: impl Into<Cow<'static, str>>) {
        let message = message.into();
        self.end_with(|effect, left| {
            let error = match effect {
                Effect::Write if left => RequestError::indeterminate(class, message.clone()),
                Effect::Write | Effect::Read => RequestError::failed(class, message.clone()),
            };
            error.losing_connection()
        });
    }

    fn end_with(&mut self, error: impl Fn(Effect, bool) -> RequestError) {
        let left = self.written_before + self.written as u64;
        for flight in self.flights.drain(..) {
            let slot = &mut self.slots[flight.slot as usize];
            if slot.ticket == flight.ticket && matches!(slot.state, State::Waiting) {
                slot.state = State::Failed(error(flight.effect, flight.begins < left));
                self.failures = true;
            }
        }
        self.line = Line::Closed;
        self.output.clear();
        (self.written, self.written_before, self.unflushed) = (0, 0, false);
        self.input.discard();
        self.progress = P::Progress::default();
    }

    fn opened(&mut self, opened: Answer<Stream>) {
        match opened {
            Ok(stream) => {
                self.line = Line::Open(stream);
                // The time to connect was bounded by itself.
                let now = now();
                self.flights.iter_mut().for_each(|flight| flight.sent = now);
            }
            Err(error) => {
                self.refused += self.flights.len() as u64;
                self.end_with(|_, _| error.clone().losing_connection());
            }
        }
    }

    /// Writes and reads. Returns `Ok(false)` only when there is nothing to do until the context is woken.
    fn exchange(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        self.write(context)?;
        if self.read(context)? {
            return Ok(true);
        }
        while let Some(oldest) = self.flights.front() {
            let due = oldest.sent.saturating_add(self.timeout);
            if !self.deadline.watch(context, due) {
                break;
            }
            if due <= now() {
                return Err(End { class: ErrorClass::Timeout, message: self.overdue() });
            }
        }
        Ok(false)
    }

    /// Returns the message about the oldest request, which was not answered in time.
    #[cold]
    fn overdue(&self) -> String {
        let begins = |flight: &Flight| flight.begins;
        let end = self.written_before + self.output.len() as u64;
        let end = self.flights.get(1).map_or(end, begins);
        let bytes = end - self.flights.front().map_or(end, begins);
        format!(
            "no answer from {} within {:?} to a request of {}; `?timeout=` allows more",
            self.peer,
            Duration::from_nanos(self.timeout),
            size_text(bytes)
        )
    }

    fn write(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let Line::Open(stream) = &mut self.line else { return Ok(()) };
        while self.written < self.output.len() {
            match stream.poll_write(context, &self.output[self.written..]) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(End::lost(&self.peer, None)),
                Poll::Ready(Ok(length)) => self.written += length,
                Poll::Ready(Err(e)) => return Err(End::lost(&self.peer, Some(&e))),
            }
            self.unflushed = true;
        }
        self.written_before += self.written as u64;
        self.written = 0;
        self.output.clear();
        if self.unflushed {
            match stream.poll_flush(context) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(e)) => return Err(End::lost(&self.peer, Some(&e))),
            }
        }
        Ok(())
    }

    fn read(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        loop {
            let Line::Open(stream) = &mut self.line else { return Ok(false) };
            let space = self.input.space(self.unclaimed == 0);
            match stream.poll_read(context, space) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(0)) => return Err(End::lost(&self.peer, None)),
                Poll::Ready(Ok(length)) => self.input.add(length),
                Poll::Ready(Err(e)) => return Err(End::lost(&self.peer, Some(&e))),
            }
            if self.deliver()? {
                return Ok(true);
            }
        }
    }

    /// Gives whole answers to their clients. Returns `true` if there was one.
    fn deliver(&mut self) -> Result<bool, End> {
        let mut delivered = false;
        while let Some(flight) = self.flights.front() {
            let unread = self.input.unread();
            let found = P::scan(&mut self.progress, flight.parts, unread);
            let Some((reply, length)) = found.map_err(|e| End::malformed(&self.peer, e))? else {
                if unread.len() > LARGEST_ANSWER {
                    return Err(End::malformed(
                        &self.peer,
                        MalformedAnswer("an answer is too large"),
                    ));
                }
                return Ok(delivered);
            };
            P::go_on(&mut self.progress);
            let start = self.input.take(length);
            let slot = &mut self.slots[flight.slot as usize];
            if slot.ticket == flight.ticket && matches!(slot.state, State::Waiting) {
                slot.state = State::Arrived(Arrived { reply, start, length });
                self.unclaimed += 1;
                delivered = true;
            }
            self.flights.pop_front();
            if P::closes(&reply) {
                // What has arrived stays where it is until it was read.
                self.close(ErrorClass::Disconnected, "the server closes after an earlier answer");
                return Ok(true);
            }
        }
        if !self.input.unread().is_empty() {
            return Err(End::malformed(&self.peer, MalformedAnswer("bytes that nobody asked for")));
        }
        Ok(delivered)
    }
}

/// Returns a size in words, such as `100 MB`.
fn size_text(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// Reason why a connection ended.
struct End {
    class: ErrorClass,
    message: String,
}

impl End {
    fn lost(peer: &str, error: Option<&io::Error>) -> Self {
        let message = match error {
            None => format!("{peer} closed the connection"),
            Some(error) => format!("the connection to {peer} is lost: {error}"),
        };
        End { class: ErrorClass::Disconnected, message }
    }

    fn malformed(peer: &str, malformed: MalformedAnswer) -> Self {
        let message = format!("kvdyno does not understand the answer of {peer}: {malformed}");
        End { class: ErrorClass::Protocol, message }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests;
