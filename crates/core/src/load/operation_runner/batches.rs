//! Batches: several records read or written with one wire request. The buffers of a batch are kept from one to the
//! next, so that none allocates.

use super::{Ended, OperationRunner};
use crate::store::{Client, Put};
use crate::verify::{ReadTickets, WriteKind};

use super::super::lane::IssuedOperation;
use super::super::request_clock::RequestClock;

/// The buffers of a batch.
#[derive(Default)]
pub(super) struct Batch {
    /// One entry for each record of the largest batch so far.
    entries: Vec<Entry>,
    /// Kept for its memory only: empty between batches.
    keys: Vec<&'static [u8]>,
    /// Kept for its memory only: empty between batches.
    puts: Vec<Put<'static>>,
}

/// One record of a batch.
#[derive(Default)]
struct Entry {
    record: u64,
    key: Vec<u8>,
    reads: ReadTickets,
}

impl<P: RequestClock> OperationRunner<'_, P> {
    pub async fn get_batch<C: Client>(
        &mut self,
        client: &mut C,
        issued: &IssuedOperation,
    ) -> Ended {
        let count = self.name_batch(issued);
        for entry in &mut self.batch.entries[..count] {
            self.worker.examiner().begin_read(entry.record, &mut entry.reads);
        }
        let mut keys = emptied(std::mem::take(&mut self.batch.keys));
        keys.extend(self.batch.entries[..count].iter().map(|entry| entry.key.as_slice()));
        self.rows.clear();
        let sent = self.leave(issued.operation.record);
        let answer = client.get_batch(&keys, &mut self.rows).await;
        let mut ended = self.ended(answer.map(|()| true), count as u64, sent);
        ended.missed = self.rows.iter().filter(|(_, value)| value.is_none()).count() as u32;
        self.batch.keys = emptied(keys);
        self.judge_batch(issued, &ended);
        ended
    }

    #[inline]
    fn judge_batch(&mut self, issued: &IssuedOperation, ended: &Ended) {
        let mut entries = std::mem::take(&mut self.batch.entries);
        let mut examiner = self.worker.examiner();
        let mut rows = self.rows.iter().filter(|_| ended.error.is_none());
        for entry in &mut entries[..ended.records as usize] {
            let Some((_, value)) = rows.next() else {
                examiner.abandon_read(&mut entry.reads);
                continue;
            };
            value.iter().for_each(|value| self.reading.set_whole(value));
            let read = self.read_of(issued, entry.record, &entry.key, ended);
            examiner.end_read(&read, &mut entry.reads, value.map(|_| &self.reading));
        }
        drop(rows);
        self.batch.entries = entries;
    }

    pub async fn put_batch<C: Client>(
        &mut self,
        client: &mut C,
        issued: &IssuedOperation,
    ) -> Ended {
        let (count, operation) = (self.name_batch(issued), &issued.operation);
        self.writes.clear();
        self.composer.clear();
        for entry in &self.batch.entries[..count] {
            let (record, first) = (entry.record, self.writes.count());
            let mut examiner = self.worker.examiner();
            examiner.begin_write(record, None, WriteKind::Put, &mut self.writes);
            self.composer.compose(operation, record, &self.writes, first);
        }
        let mut puts = emptied(std::mem::take(&mut self.batch.puts));
        puts.extend(
            self.batch.entries[..count]
                .iter()
                .enumerate()
                .map(|(i, entry)| self.composer.put(i, &entry.key, operation, self.lane.plan.ttl)),
        );
        let sent = self.leave(operation.record);
        let answer = client.put_batch(&puts).await.map(|()| true);
        let ended = self.ended(answer, count as u64, sent);
        self.batch.puts = emptied(puts);
        self.end_write(ended)
    }

    /// Notes the records of the batch, writes their keys, and returns their number. Where the records have several
    /// owners, each process sends the part of its own records.
    #[inline]
    fn name_batch(&mut self, issued: &IssuedOperation) -> usize {
        let count = issued.operation.count;
        let entries = &mut self.batch.entries;
        if entries.len() < count as usize {
            entries.resize_with(count as usize, Entry::default);
        }
        let mut named = 0;
        for i in 0..count {
            let record = self.lane.batch_record(issued, i);
            if self.lane.sends(issued.operation.kind, record) {
                let entry = &mut entries[named];
                entry.record = record;
                self.lane.workload.keys().write(record, &mut entry.key);
                named += 1;
            }
        }
        named
    }
}

/// Returns an empty list in the memory of `used`. Its items may differ from those of `used` in nothing but how long
/// they are borrowed: where sizes are equal, the standard library collects in place.
fn emptied<T, U>(mut used: Vec<T>) -> Vec<U> {
    used.clear();
    used.into_iter().map(|_| unreachable!("the list is empty")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emptied_list_keeps_its_memory() {
        let mut keys: Vec<&[u8]> = Vec::with_capacity(100);
        keys.push(b"key");
        let memory = keys.as_ptr();
        let keys: Vec<&'static [u8]> = emptied(keys);
        assert_eq!((keys.len(), keys.capacity(), keys.as_ptr()), (0, 100, memory));
    }
}
