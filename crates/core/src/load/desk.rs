//! One client's place of work: its buffers, and how one operation is carried out: built, sent,
//! timed, recorded, judged. Everything but the request itself lies outside the two clock readings.
//!
//! Each request of one record is awaited at one place, and what stands around it is no future: the
//! compiler then keeps it in registers, where nested futures hand structures from one to the next
//! (measured: 40 ns for each operation).

mod batches;

use crate::measure::{Ending, Nanos, Series, Timing, departure, now};
use crate::store::{Answer, Certainty, Client, OperationId, Put, Reading, Rows};
use crate::verify::{AnsweredRead, ReadTickets, WriteEnd, WriteKind, WriteSlot};
use crate::workload::{Kind, Operation};

use self::batches::Batch;
use super::compose::Composer;
use super::lane::{Lane, Turn};
use super::worker::Worker;

/// What the loop must know after an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct After {
    /// When it was answered.
    pub done: Nanos,
    /// The client has no connection now.
    pub connection_lost: bool,
}

/// What goes over the wire for an operation: one of these, or one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Get,
    Put,
    Delete,
    Scan,
    GetBatch,
    PutBatch,
}

impl Request {
    #[inline]
    fn first_of(kind: Kind) -> Request {
        match kind {
            Kind::Get | Kind::GetAbsent | Kind::ReadModifyWrite => Request::Get,
            Kind::Insert | Kind::Update | Kind::PutGet => Request::Put,
            Kind::Delete => Request::Delete,
            Kind::Scan => Request::Scan,
            Kind::GetBatch => Request::GetBatch,
            Kind::PutBatch | Kind::InsertBatch => Request::PutBatch,
        }
    }

    /// What follows this request of an operation, if this one succeeds.
    #[inline]
    fn next_of(self, kind: Kind) -> Option<Request> {
        match (kind, self) {
            (Kind::PutGet, Request::Put) => Some(Request::Get),
            (Kind::ReadModifyWrite, Request::Get) => Some(Request::Put),
            _ => None,
        }
    }
}

/// A request that was answered.
struct Ended {
    answer: Answer<bool>,
    /// Records moved if it succeeded.
    records: u64,
    sent: Nanos,
    done: Nanos,
}

/// The buffers of one client, and whose client it is.
pub(super) struct Desk<'a> {
    worker: &'a Worker,
    lane: &'a Lane,
    composer: Composer,
    key: Vec<u8>,
    reading: Reading,
    rows: Rows,
    reads: ReadTickets,
    writes: Vec<WriteSlot>,
    batch: Batch,
}

impl<'a> Desk<'a> {
    pub fn new(worker: &'a Worker, lane: &'a Lane) -> Self {
        Desk {
            worker,
            lane,
            composer: Composer::new(worker.job().dataset(), &lane.workload),
            key: Vec::with_capacity(256),
            reading: Reading::default(),
            rows: Rows::default(),
            reads: ReadTickets::default(),
            writes: Vec::new(),
            batch: Batch::default(),
        }
    }

    /// Carries out one operation from first byte to verdict.
    #[inline]
    pub async fn operate<C: Client>(&mut self, client: &mut C, turn: &Turn) -> After {
        let operation = &turn.operation;
        client.begin(self.id(turn));
        self.lane.workload.keys().write(operation.record, &mut self.key);
        let mut request = Request::first_of(operation.kind);
        let mut first_sent = None;
        loop {
            let ended = match request {
                Request::Get => {
                    self.begin_get(operation);
                    let sent = departure();
                    let answer = client.get(&self.key, &mut self.reading).await;
                    let ended = Ended { answer, records: 1, sent, done: now() };
                    self.end_get(turn, &ended);
                    ended
                }
                Request::Put => {
                    let put = self.begin_put(operation);
                    let sent = departure();
                    let answer = client.put(put).await.map(|()| true);
                    self.end_write(Ended { answer, records: 1, sent, done: now() })
                }
                Request::Delete => {
                    self.begin_delete(operation);
                    let sent = departure();
                    let answer = client.delete(&self.key).await;
                    self.end_write(Ended { answer, records: 1, sent, done: now() })
                }
                Request::Scan => self.scan(client, turn).await,
                Request::GetBatch => self.get_batch(client, turn).await,
                Request::PutBatch => self.put_batch(client, turn).await,
            };
            let sent = *first_sent.get_or_insert(ended.sent);
            match request.next_of(operation.kind) {
                Some(next) if ended.answer.is_ok() => request = next,
                _ => return self.record(turn, sent, ended),
            }
        }
    }

    /// Records the operation, which `ended` has ended and whose first request was sent at `sent`.
    #[inline(always)]
    fn record(&mut self, turn: &Turn, sent: Nanos, ended: Ended) -> After {
        let series = Series { group: self.lane.group, kind: turn.operation.kind };
        let timing = Timing { due: turn.due, sent, done: ended.done };
        let (ending, fault) = match &ended.answer {
            Ok(found) => (Ending::Ok { found: *found }, None),
            Err(fault) => match fault.certainty {
                Certainty::Failed => (Ending::Failed, Some(fault)),
                Certainty::Indeterminate => (Ending::Indeterminate, Some(fault)),
            },
        };
        self.worker.record(series, ending, ended.records, timing, fault);
        let connection_lost = fault.is_some_and(|fault| fault.connection_lost);
        After { done: ended.done, connection_lost }
    }

    #[inline(always)]
    fn begin_get(&mut self, operation: &Operation) {
        self.reading.clear();
        if operation.kind != Kind::GetAbsent {
            self.worker.examiner().begin_read(operation.record, &mut self.reads);
        }
    }

    #[inline(always)]
    fn end_get(&mut self, turn: &Turn, ended: &Ended) {
        self.worker.expect(self.lane.soon());
        let read = self.read_of(turn, turn.operation.record, &self.key, ended);
        let mut examiner = self.worker.examiner();
        match (&ended.answer, turn.operation.kind == Kind::GetAbsent) {
            (Err(_), false) => {
                examiner.abandon_read(&mut self.reads);
                self.worker.note_unread(turn.operation.record);
            }
            (Err(_), true) => {}
            (&Ok(found), false) => {
                examiner.end_read(&read, &mut self.reads, found.then_some(&self.reading));
            }
            (&Ok(found), true) => examiner.judge_absent(&read, found.then_some(&self.reading)),
        }
    }

    #[inline(always)]
    fn begin_put(&mut self, operation: &Operation) -> Put<'_> {
        self.writes.clear();
        let mut examiner = self.worker.examiner();
        let kind = WriteKind::Put;
        examiner.begin_write(operation.record, operation.field, kind, &mut self.writes);
        self.composer.clear();
        self.composer.compose(operation, operation.record, &self.writes);
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
        self.worker.expect(self.lane.soon());
        if let Err(fault) = &mut ended.answer
            && self.worker.job().may_apply_again()
        {
            // What the driver says is true of its last attempt only.
            fault.certainty = Certainty::Indeterminate;
        }
        let end = match ended.answer.as_ref().map_err(|fault| fault.certainty) {
            Ok(_) => WriteEnd::Acknowledged,
            Err(Certainty::Failed) => WriteEnd::Failed,
            Err(Certainty::Indeterminate) => WriteEnd::Indeterminate,
        };
        self.worker.examiner().end_write(&mut self.writes, end, ended.done);
        ended
    }

    async fn scan<C: Client>(&mut self, client: &mut C, turn: &Turn) -> Ended {
        self.rows.clear();
        let sent = departure();
        let answer = client.scan(&self.key, turn.operation.count as usize, &mut self.rows).await;
        let done = now();
        let records = self.rows.len() as u64;
        let ended = Ended { answer: answer.map(|()| records > 0), records, sent, done };
        if ended.answer.is_ok() {
            let read = self.read_of(turn, turn.operation.record, &self.key, &ended);
            self.worker.examiner().judge_scan(&read, self.lane.workload.keys(), &self.rows);
        }
        ended
    }

    #[inline]
    fn id(&self, turn: &Turn) -> OperationId {
        OperationId { phase: self.worker.phase(), group: self.lane.group, id: turn.id }
    }

    #[inline]
    fn read_of<'r>(
        &self,
        turn: &Turn,
        record: u64,
        key: &'r [u8],
        ended: &Ended,
    ) -> AnsweredRead<'r> {
        let operation = self.id(turn);
        AnsweredRead { operation, record, key, sent: ended.sent, answered: ended.done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compositions_go_in_order_and_end() {
        for kind in Kind::ALL {
            let mut requests = vec![Request::first_of(kind)];
            while let Some(next) = requests[requests.len() - 1].next_of(kind) {
                requests.push(next);
            }
            let expected: &[Request] = match kind {
                Kind::PutGet => &[Request::Put, Request::Get],
                Kind::ReadModifyWrite => &[Request::Get, Request::Put],
                _ => &[Request::first_of(kind)],
            };
            assert_eq!(requests, expected, "{kind:?}");
        }
    }
}
