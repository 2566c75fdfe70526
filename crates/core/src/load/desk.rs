//! One client's place of work: its buffers, and how one operation is carried out: built, sent,
//! timed, recorded, judged. Everything but the request itself lies outside the two clock readings.

use crate::measure::{self, Ending, Nanos, Series, Timing};
use crate::store::{Answer, Certainty, Client, Fault, OperationId, Put, Reading, Rows};
use crate::verify::{AnsweredRead, ReadTickets, WriteEnd, WriteKind, WriteSlot};
use crate::workload::{Kind, Operation};

use super::compose::Composer;
use super::job::Job;
use super::lane::Lane;
use super::worker::Worker;

/// What the loop must know after an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct After {
    /// When it was answered.
    pub done: Nanos,
    /// The client has no connection now.
    pub connection_lost: bool,
}

/// Answers of the requests of one operation, brought to one ending.
struct Ended {
    ending: Ending,
    /// Records moved if it succeeded.
    records: u64,
    sent: Nanos,
    done: Nanos,
    fault: Option<Fault>,
}

impl Ended {
    fn of(answer: Answer<bool>, records: u64, sent: Nanos, done: Nanos) -> Self {
        let (ending, fault) = match answer {
            Ok(found) => (Ending::Ok { found }, None),
            Err(fault) => {
                let ending = match fault.certainty {
                    Certainty::Failed => Ending::Failed,
                    Certainty::Indeterminate => Ending::Indeterminate,
                };
                (ending, Some(fault))
            }
        };
        Ended { ending, records, sent, done, fault }
    }

    /// This request and the `next` one of the same operation; the first that did not succeed ends it.
    fn then(self, next: Ended) -> Self {
        Ended { sent: self.sent, ..next }
    }

    fn succeeded(&self) -> bool {
        self.fault.is_none()
    }
}

/// The buffers of one client.
pub(super) struct Desk {
    composer: Composer,
    key: Vec<u8>,
    reading: Reading,
    rows: Rows,
    reads: ReadTickets,
    writes: Vec<WriteSlot>,
}

impl Desk {
    pub fn new(job: &Job, lane: &Lane) -> Self {
        Desk {
            composer: Composer::new(job.dataset(), &lane.workload),
            key: Vec::with_capacity(256),
            reading: Reading::default(),
            rows: Rows::default(),
            reads: ReadTickets::default(),
            writes: Vec::new(),
        }
    }

    /// Carries out one operation from first byte to verdict.
    #[inline]
    pub async fn operate<C: Client>(
        &mut self,
        worker: &Worker,
        lane: &Lane,
        client: &mut C,
        id: OperationId,
        operation: &Operation,
        due: Option<Nanos>,
    ) -> After {
        let ended = match operation.kind {
            Kind::Get | Kind::GetAbsent => self.get(worker, lane, client, id, operation).await,
            Kind::Insert | Kind::Update => self.put(worker, lane, client, operation).await,
            Kind::Delete => self.delete(worker, lane, client, operation).await,
            Kind::PutGet => {
                let put = self.put(worker, lane, client, operation).await;
                if put.succeeded() {
                    put.then(self.get(worker, lane, client, id, operation).await)
                } else {
                    put
                }
            }
            Kind::ReadModifyWrite => {
                let get = self.get(worker, lane, client, id, operation).await;
                if get.succeeded() {
                    get.then(self.put(worker, lane, client, operation).await)
                } else {
                    get
                }
            }
            Kind::Scan => self.scan(worker, lane, client, id, operation).await,
            Kind::GetBatch => self.get_batch(worker, lane, client, id, operation).await,
            Kind::PutBatch | Kind::InsertBatch => {
                self.put_batch(worker, lane, client, id, operation).await
            }
        };
        let series = Series { group: lane.group, kind: operation.kind };
        let timing = Timing { due, sent: ended.sent, done: ended.done };
        worker.record(series, ended.ending, ended.records, timing, ended.fault.as_ref());
        let connection_lost = ended.fault.is_some_and(|fault| fault.connection_lost);
        After { done: ended.done, connection_lost }
    }

    #[inline]
    async fn get<C: Client>(
        &mut self,
        worker: &Worker,
        lane: &Lane,
        client: &mut C,
        id: OperationId,
        operation: &Operation,
    ) -> Ended {
        lane.workload.keys().write(operation.record, &mut self.key);
        self.reading.clear();
        let expects_nothing = operation.kind == Kind::GetAbsent;
        if !expects_nothing {
            worker.examiner().begin_read(operation.record, &mut self.reads);
        }
        let sent = measure::now();
        let answer = client.get(&self.key, &mut self.reading).await;
        let done = measure::now();
        let found = answer.as_ref().is_ok_and(|&found| found).then_some(&self.reading);
        let read = answered(id, operation.record, &self.key, sent, done);
        let mut examiner = worker.examiner();
        match (&answer, expects_nothing) {
            (Err(_), false) => examiner.abandon_read(&mut self.reads),
            (Err(_), true) => {}
            (Ok(_), false) => examiner.end_read(&read, &mut self.reads, found),
            (Ok(_), true) => examiner.judge_absent(&read, found),
        }
        Ended::of(answer, 1, sent, done)
    }

    #[inline]
    async fn put<C: Client>(
        &mut self,
        worker: &Worker,
        lane: &Lane,
        client: &mut C,
        operation: &Operation,
    ) -> Ended {
        lane.workload.keys().write(operation.record, &mut self.key);
        self.writes.clear();
        let kind = WriteKind::Put;
        worker.examiner().begin_write(operation.record, operation.field, kind, &mut self.writes);
        self.composer.clear();
        self.composer.compose(operation, operation.record, &self.writes);
        let put = Put {
            key: &self.key,
            value: self.composer.value(0),
            insert: operation.kind == Kind::Insert,
            partial: operation.field.is_some(),
            record_fields: self.composer.record_fields(),
            ttl: lane.plan.ttl,
        };
        let sent = measure::now();
        let answer = client.put(put).await.map(|()| true);
        let done = measure::now();
        worker.examiner().end_write(&mut self.writes, write_end(&answer), done);
        Ended::of(answer, 1, sent, done)
    }

    async fn delete<C: Client>(
        &mut self,
        worker: &Worker,
        lane: &Lane,
        client: &mut C,
        operation: &Operation,
    ) -> Ended {
        lane.workload.keys().write(operation.record, &mut self.key);
        self.writes.clear();
        worker.examiner().begin_write(operation.record, None, WriteKind::Delete, &mut self.writes);
        let sent = measure::now();
        let answer = client.delete(&self.key).await;
        let done = measure::now();
        worker.examiner().end_write(&mut self.writes, write_end(&answer), done);
        Ended::of(answer, 1, sent, done)
    }

    async fn scan<C: Client>(
        &mut self,
        worker: &Worker,
        lane: &Lane,
        client: &mut C,
        id: OperationId,
        operation: &Operation,
    ) -> Ended {
        lane.workload.keys().write(operation.record, &mut self.key);
        self.rows.clear();
        let sent = measure::now();
        let answer = client.scan(&self.key, operation.count as usize, &mut self.rows).await;
        let done = measure::now();
        if answer.is_ok() {
            let read = answered(id, operation.record, &self.key, sent, done);
            worker.examiner().judge_scan(&read, lane.workload.keys(), &self.rows);
        }
        let rows = self.rows.len() as u64;
        Ended::of(answer.map(|()| rows > 0), rows, sent, done)
    }

    async fn get_batch<C: Client>(
        &mut self,
        worker: &Worker,
        lane: &Lane,
        client: &mut C,
        id: OperationId,
        operation: &Operation,
    ) -> Ended {
        let mut batch = Vec::with_capacity(operation.count as usize);
        for i in 0..operation.count {
            let record = lane.batch_record(id.id, operation, i);
            let mut tickets = ReadTickets::default();
            worker.examiner().begin_read(record, &mut tickets);
            let mut key = Vec::new();
            lane.workload.keys().write(record, &mut key);
            batch.push((record, key, tickets));
        }
        let keys: Vec<&[u8]> = batch.iter().map(|(_, key, _)| key.as_slice()).collect();
        self.rows.clear();
        let sent = measure::now();
        let answer = client.get_batch(&keys, &mut self.rows).await;
        let done = measure::now();
        let mut examiner = worker.examiner();
        let mut rows = self.rows.iter();
        for (record, key, tickets) in &mut batch {
            match rows.next().filter(|_| answer.is_ok()) {
                Some((_, value)) => {
                    if let Some(value) = value {
                        self.reading.set_whole(value);
                    }
                    let read = answered(id, *record, key, sent, done);
                    examiner.end_read(&read, tickets, value.map(|_| &self.reading));
                }
                None => examiner.abandon_read(tickets),
            }
        }
        let found = self.rows.iter().any(|(_, value)| value.is_some());
        Ended::of(answer.map(|()| found), u64::from(operation.count), sent, done)
    }

    async fn put_batch<C: Client>(
        &mut self,
        worker: &Worker,
        lane: &Lane,
        client: &mut C,
        id: OperationId,
        operation: &Operation,
    ) -> Ended {
        self.writes.clear();
        self.composer.clear();
        let mut keys = Vec::with_capacity(operation.count as usize);
        for i in 0..operation.count {
            let record = lane.batch_record(id.id, operation, i);
            let mut key = Vec::new();
            lane.workload.keys().write(record, &mut key);
            keys.push(key);
            let first = self.writes.len();
            worker.examiner().begin_write(record, None, WriteKind::Put, &mut self.writes);
            self.composer.compose(operation, record, &self.writes[first..]);
        }
        let puts: Vec<Put<'_>> = keys
            .iter()
            .enumerate()
            .map(|(i, key)| Put {
                key,
                value: self.composer.value(i),
                insert: operation.kind == Kind::InsertBatch,
                partial: false,
                record_fields: self.composer.record_fields(),
                ttl: lane.plan.ttl,
            })
            .collect();
        let sent = measure::now();
        let answer = client.put_batch(&puts).await.map(|()| true);
        let done = measure::now();
        worker.examiner().end_write(&mut self.writes, write_end(&answer), done);
        Ended::of(answer, u64::from(operation.count), sent, done)
    }
}

fn answered(
    operation: OperationId,
    record: u64,
    key: &[u8],
    sent: Nanos,
    answered: Nanos,
) -> AnsweredRead<'_> {
    AnsweredRead { operation, record, key, sent, answered }
}

fn write_end(answer: &Answer<bool>) -> WriteEnd {
    match answer {
        Ok(_) => WriteEnd::Acknowledged,
        Err(fault) => match fault.certainty {
            Certainty::Failed => WriteEnd::Failed,
            Certainty::Indeterminate => WriteEnd::Indeterminate,
        },
    }
}
