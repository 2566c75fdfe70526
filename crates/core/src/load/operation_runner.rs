//! Runs the operations of one client, with that client's buffers: each is built, sent, timed,
//! recorded and judged. Everything but the request itself lies outside the two clock readings.
//!
//! Each request of one record is awaited at one place, and what stands around it is no future: the
//! compiler then keeps it in registers, where nested futures hand structures from one to the next
//! (measured: 40 ns for each operation).

mod batches;
mod seen;

use crate::cache;
use crate::measure::{Ending, Nanos, Series, Timing};
use crate::store::{Answer, Certainty, Client, OperationId, Put, Reading, RequestError, Rows};
use crate::verify::{AnsweredRead, ReadTickets, WriteEnd, WriteKind, WriteSlots};
use crate::workload::{Kind, Operation};

use self::batches::Batch;
use super::compose::Composer;
use super::lane::{IssuedOperation, Lane};
use super::request_clock::{Departure, RequestClock, Touched};
use super::worker::Worker;

/// Outcome of an operation as far as the loop needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct After {
    /// Time at which it was answered.
    pub done: Nanos,
    /// The client has lost its connection.
    pub connection_lost: bool,
}

/// One request of an operation; an operation makes one, or several one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Single(Single),
    Scan,
    GetBatch,
    PutBatch,
}

/// A request about one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Single {
    Get,
    Put,
    Delete,
}

impl Request {
    #[inline]
    pub fn first_of(kind: Kind) -> Request {
        match kind {
            Kind::Get | Kind::GetAbsent | Kind::ReadModifyWrite => Request::Single(Single::Get),
            Kind::Insert | Kind::Update | Kind::PutGet | Kind::PutSeen => {
                Request::Single(Single::Put)
            }
            Kind::Delete => Request::Single(Single::Delete),
            Kind::Scan => Request::Scan,
            Kind::GetBatch => Request::GetBatch,
            Kind::PutBatch | Kind::InsertBatch => Request::PutBatch,
        }
    }

    /// Returns the request of an operation that follows this one if this one succeeds. The gets of a `put-seen` have no
    /// last one here: [`OperationRunner::has_seen`] ends them.
    #[inline]
    pub fn next_of(self, kind: Kind) -> Option<Request> {
        match (kind, self) {
            (Kind::PutGet, Request::Single(Single::Put)) | (Kind::PutSeen, _) => {
                Some(Request::Single(Single::Get))
            }
            (Kind::ReadModifyWrite, Request::Single(Single::Get)) => {
                Some(Request::Single(Single::Put))
            }
            _ => None,
        }
    }
}

/// A request that was answered.
pub(super) struct Ended {
    /// Records that were not there, if nothing failed. It is kept apart from the error, so that it stays in a register.
    pub missed: u32,
    pub error: Option<RequestError>,
    /// Records that were read or written, if it succeeded.
    records: u64,
    pub sent: Nanos,
    pub done: Nanos,
}

impl Ended {
    /// Makes it of the answer to the request that left at `sent`.
    #[inline(always)]
    fn with(answer: Answer<bool>, records: u64, sent: Departure, done: Nanos) -> Self {
        let (found, error) = match answer {
            Ok(found) => (found, None),
            Err(error) => (false, Some(error)),
        };
        Ended { missed: u32::from(!found), error, records, sent: sent.at, done }
    }
}

/// The buffers of one client, with its worker, lane and clock.
pub(super) struct OperationRunner<'a, P> {
    worker: &'a Worker,
    lane: &'a Lane,
    clock: &'a P,
    composer: Composer,
    pub key: Vec<u8>,
    pub reading: Reading,
    reads: ReadTickets,
    writes: WriteSlots,
    /// Rows of a scan or batch. Like `batch` they lie in another place of memory, because few operations need them
    /// and a client's state is fetched anew for each of its operations.
    rows: Box<Rows>,
    batch: Box<Batch>,
}

impl<'a, P: RequestClock> OperationRunner<'a, P> {
    pub fn new(worker: &'a Worker, lane: &'a Lane, clock: &'a P) -> Self {
        OperationRunner {
            worker,
            lane,
            clock,
            composer: worker.job().composer(&lane.workload),
            key: Vec::with_capacity(256),
            reading: Reading::default(),
            reads: ReadTickets::default(),
            writes: WriteSlots::default(),
            rows: Box::default(),
            batch: Box::default(),
        }
    }

    /// Writes the key of the operation's record, and returns the first request of the operation.
    #[inline(always)]
    pub fn open(&mut self, operation: &Operation) -> Request {
        self.lane.workload.keys().write(operation.record, &mut self.key);
        Request::first_of(operation.kind)
    }

    /// Makes the ended request of its answer; the request left at `sent`.
    #[inline(always)]
    fn ended(&self, answer: Answer<bool>, records: u64, sent: Departure) -> Ended {
        Ended::with(answer, records, sent, self.clock.answered(sent))
    }

    /// Records the operation, which `ended` has ended and whose first request was sent at `sent`.
    #[inline(always)]
    pub fn record(&mut self, issued: &IssuedOperation, sent: Nanos, ended: Ended) -> After {
        let series = Series { group: self.lane.group, kind: issued.operation.kind };
        let timing = Timing { due: issued.due, sent, done: ended.done };
        let ending = match ended.error.as_ref().map(|error| error.certainty) {
            None => Ending::Ok { missed: ended.missed },
            Some(Certainty::Failed) => Ending::Failed,
            Some(Certainty::Indeterminate) => Ending::Indeterminate,
        };
        self.worker.record(series, ending, ended.records, timing, ended.error.as_ref());
        let connection_lost = ended.error.is_some_and(|error| error.connection_lost);
        After { done: ended.done, connection_lost }
    }

    /// Reads the clock for a request about `record` that is about to be made.
    #[inline(always)]
    fn leave(&self, record: u64) -> Departure {
        self.clock.leave(self.touched(record))
    }

    #[inline(always)]
    fn touched(&self, record: u64) -> Touched {
        let (key, reading) = (self.key.as_ptr(), self.reading.bytes().as_ptr());
        Touched { record, key, reading, value: self.composer.place() }
    }

    /// Prefetches memory that will be needed soon: the ledger's word of a request to come, and the buffers of the
    /// client whose answer is read next. It is called right after an answer: a prefetch whose address has to be
    /// looked up would hold up the clock's next reading, and lengthen the time that is measured.
    #[inline(always)]
    fn expect(&self) {
        let examiner = self.worker.examiner();
        examiner.prefetch(self.lane.soon());
        if let Some(next) = self.clock.next() {
            cache::prefetch_line(next.key);
            cache::prefetch_line(next.reading);
            cache::prefetch_line(next.reading.wrapping_add(cache::LINE));
            cache::prefetch_line(next.value);
            cache::prefetch_line(next.value.wrapping_add(cache::LINE));
        }
    }

    /// Prepares a request about one record, and returns its departure, which is now.
    #[inline(always)]
    pub fn begin(&mut self, call: Single, operation: &Operation) -> Departure {
        match call {
            Single::Get => self.begin_get(operation),
            Single::Put => self.begin_put(operation),
            Single::Delete => self.begin_delete(operation),
        }
        self.leave(operation.record)
    }

    /// Judges the answer of the request.
    #[inline(always)]
    pub fn end(
        &mut self,
        call: Single,
        issued: &IssuedOperation,
        answer: Answer<bool>,
        sent: Departure,
    ) -> Ended {
        let ended = self.ended(answer, 1, sent);
        self.expect();
        match call {
            Single::Get => {
                self.end_get(issued, &ended);
                ended
            }
            Single::Put | Single::Delete => self.end_write(ended),
        }
    }

    #[inline(always)]
    fn begin_get(&mut self, operation: &Operation) {
        self.reading.clear();
        if operation.kind != Kind::GetAbsent {
            self.worker.examiner().begin_read(operation.record, &mut self.reads);
        }
    }

    #[inline(always)]
    fn end_get(&mut self, issued: &IssuedOperation, ended: &Ended) {
        let read = self.read_of(issued, issued.operation.record, &self.key, ended);
        let mut examiner = self.worker.examiner();
        let found = (ended.missed == 0).then_some(&self.reading);
        match (&ended.error, issued.operation.kind == Kind::GetAbsent) {
            (None, false) => examiner.end_read(&read, &mut self.reads, found),
            (None, true) => examiner.judge_absent(&read, found),
            (Some(_), false) => {
                examiner.abandon_read(&mut self.reads);
                self.worker.note_unread(issued.operation.record);
            }
            (Some(_), true) => {}
        }
    }

    #[inline(always)]
    fn begin_put(&mut self, operation: &Operation) {
        self.writes.clear();
        let mut examiner = self.worker.examiner();
        let kind = WriteKind::Put;
        examiner.begin_write(operation.record, operation.field, kind, &mut self.writes);
        self.composer.clear();
        self.composer.compose(operation, operation.record, &self.writes, 0);
    }

    /// Returns the write that was prepared.
    #[inline(always)]
    pub fn put(&self, operation: &Operation) -> Put<'_> {
        self.composer.put(0, &self.key, operation, self.lane.plan.ttl)
    }

    #[inline(always)]
    fn begin_delete(&mut self, operation: &Operation) {
        self.writes.clear();
        let mut examiner = self.worker.examiner();
        examiner.begin_write(operation.record, None, WriteKind::Delete, &mut self.writes);
    }

    #[inline(always)]
    fn end_write(&mut self, mut ended: Ended) -> Ended {
        if let Some(error) = &mut ended.error
            && self.worker.job().may_apply_again()
        {
            // What the driver says is true of its last attempt only.
            error.certainty = Certainty::Indeterminate;
        }
        let end = match ended.error.as_ref().map(|error| error.certainty) {
            None => WriteEnd::Acknowledged,
            Some(Certainty::Failed) => WriteEnd::Failed,
            Some(Certainty::Indeterminate) => WriteEnd::Indeterminate,
        };
        self.worker.examiner().end_write(&mut self.writes, end, ended.done);
        ended
    }

    pub async fn scan<C: Client>(&mut self, client: &mut C, issued: &IssuedOperation) -> Ended {
        self.rows.clear();
        let sent = self.leave(issued.operation.record);
        let answer = client.scan(&self.key, issued.operation.count as usize, &mut self.rows).await;
        let mut ended = self.ended(answer.map(|()| true), 0, sent);
        ended.records = self.rows.len() as u64;
        ended.missed = u32::from(ended.records == 0);
        if ended.error.is_none() {
            let read = self.read_of(issued, issued.operation.record, &self.key, &ended);
            self.worker.examiner().judge_scan(&read, self.lane.workload.keys(), &self.rows);
        }
        ended
    }

    #[inline]
    pub fn id(&self, issued: &IssuedOperation) -> OperationId {
        self.lane.name(issued)
    }

    #[inline]
    fn read_of<'r>(
        &self,
        issued: &IssuedOperation,
        record: u64,
        key: &'r [u8],
        ended: &Ended,
    ) -> AnsweredRead<'r> {
        let operation = self.id(issued);
        AnsweredRead { operation, record, key, sent: ended.sent, answered: ended.done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compositions_go_in_order_and_end() {
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::PutSeen) {
            let mut requests = vec![Request::first_of(kind)];
            while let Some(next) = requests[requests.len() - 1].next_of(kind) {
                requests.push(next);
            }
            let expected: &[Request] = match kind {
                Kind::PutGet => &[Request::Single(Single::Put), Request::Single(Single::Get)],
                Kind::ReadModifyWrite => {
                    &[Request::Single(Single::Get), Request::Single(Single::Put)]
                }
                _ => &[Request::first_of(kind)],
            };
            assert_eq!(requests, expected, "{kind:?}");
        }
    }
}
