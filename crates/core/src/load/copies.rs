//! Compares replicas: every copy of every record is read by itself and held against the others. Replication may still
//! be under way, so records whose copies differ are looked at again until they agree, for as long as a store may take
//! to settle.

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hasher};
use std::pin::Pin;
use std::thread::sleep;
use std::time::Duration;

use super::backoff::Backoff;
use super::connection_tasks::ConnectionTasks;
use super::error::LoadError;
use super::job::StoreContext;
use crate::measure::{Nanos, now};
use crate::store::{Answer, Client, Copies, NodeCopy, OperationId, Reading, Store};
use crate::verify::stamp;
use crate::workload::KeyWriter;

/// Clients that read a copy, where a connection carries several.
const CLIENTS: usize = 64;
/// Records read of each copy before the next copy is turned to.
const CHUNK: u64 = 8_192;
/// Longest time to read every copy once, ns. Records that are left then are neither compared nor counted.
const LONGEST: Nanos = 120_000_000_000;
/// Attempts to reach a node, or to have a record answered.
const ATTEMPTS: u32 = 6;
/// Pause between two looks at records whose copies differ.
const PAUSE: Duration = Duration::from_millis(200);
/// Number of phase and group of the reads made here; no phase or group of a plan has it.
const NUMBER: u16 = u16::MAX;

/// Most records whose differing copies are described in full.
pub const DIFFERENCES_SHOWN: usize = 10;

/// Result of comparing the copies of each record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Each record has one copy.
    One,
    /// The copies could not be compared, for this reason.
    NotShown(String),
    /// The copies were compared.
    Compared(Compared),
}

/// Figures of a comparison of the copies of each record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Names of the copies that were read.
    pub copies: Vec<String>,
    /// Copies that could not be read, each as `name: reason`.
    pub left_out: Vec<String>,
    /// Records of which at least two copies were read.
    pub records: u64,
    /// Records among `records` of which some copy was not answered.
    pub partly: u64,
    /// Records whose copies differed until the end of the wait.
    pub differ: u64,
    /// Records whose copies differed at first and agreed later.
    pub late: u64,
    /// Time from the first read until all copies agreed or the comparison gave up.
    pub waited: Duration,
    /// Some of the records whose copies differ.
    pub examples: Vec<CopyDifference>,
}

/// A record whose copies differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyDifference {
    /// Number of the record.
    pub record: u64,
    /// Its key.
    pub key: String,
    /// Pairs of a node and what it has for the record.
    pub found: Vec<(String, String)>,
}

/// Content of one copy of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Unread,
    Nothing,
    /// A value, with the digest of its bytes.
    Value(u64),
}

/// A copy with the connection that it is read by.
struct Reader<S: Store> {
    copy: NodeCopy<S>,
    clients: Vec<S::Client>,
    transport: S::Transport,
}

/// Compares the copies of records 0..`records`.
pub(super) async fn compare<S: Store>(
    copies: Copies<S>,
    context: &StoreContext,
    records: u64,
) -> Result<Agreement, LoadError> {
    let each = match copies {
        Copies::One => return Ok(Agreement::One),
        Copies::NotShown(why) => return Ok(Agreement::NotShown(why)),
        Copies::Each(each) => each,
    };
    let keys = KeyWriter::new(context.dataset.key, context.dataset.id)?;
    let mut compared = Compared::default();
    let mut readers = Vec::new();
    for copy in each {
        match Reader::open(copy, context).await {
            Ok(reader) => readers.push(reader),
            Err(why) => compared.left_out.push(why),
        }
    }
    let mut comparison = Comparison { context, keys, readers, compared };
    let began = now();
    let suspects = comparison.read_all(records, began + LONGEST).await;
    if comparison.readers.len() < 2 {
        let why = match comparison.compared.left_out.as_slice() {
            [] => "there is one copy to be read".to_owned(),
            left_out => format!("less than two copies could be read: {}", left_out.join("; ")),
        };
        return Ok(Agreement::NotShown(why));
    }
    comparison.settle(suspects).await;
    let Comparison { readers, mut compared, .. } = comparison;
    compared.copies = readers.into_iter().map(|reader| reader.copy.name).collect();
    compared.waited = Duration::from_nanos(now().saturating_sub(began));
    Ok(Agreement::Compared(compared))
}

struct Comparison<'a, S: Store> {
    context: &'a StoreContext,
    keys: KeyWriter,
    readers: Vec<Reader<S>>,
    compared: Compared,
}

impl<S: Store> Comparison<'_, S> {
    /// Reads every copy of every record once, and returns the records whose copies differ.
    async fn read_all(&mut self, records: u64, deadline: Nanos) -> Vec<u64> {
        let mut suspects = Vec::new();
        let mut next = 0;
        while next < records && self.readers.len() > 1 && !self.is_over(deadline) {
            let chunk: Vec<u64> = (next..records.min(next + CHUNK)).collect();
            next += chunk.len() as u64;
            let sights = self.read(&chunk).await;
            let sights = self.without_silent(sights);
            for (at, &record) in chunk.iter().enumerate() {
                let of_record: Vec<Sight> = sights.iter().map(|copy| copy[at]).collect();
                let answered = of_record.iter().filter(|sight| **sight != Sight::Unread).count();
                self.compared.records += u64::from(answered > 1);
                self.compared.partly += u64::from(answered > 1 && answered < sights.len());
                if differ(&of_record) {
                    suspects.push(record);
                }
            }
        }
        suspects
    }

    /// Looks at `suspects` again until their copies agree, or the store has had its time to settle.
    async fn settle(&mut self, mut suspects: Vec<u64>) {
        let deadline = now() + self.context.options.settle.as_nanos() as Nanos;
        let first = suspects.len() as u64;
        while !suspects.is_empty() && !self.is_over(deadline) {
            sleep(PAUSE);
            let sights = self.read(&suspects).await;
            let mut at = 0;
            suspects.retain(|_| {
                let of_record: Vec<Sight> = sights.iter().map(|copy| copy[at]).collect();
                at += 1;
                // Who cannot be asked any more has not come to agree.
                differ(&of_record) || of_record.contains(&Sight::Unread)
            });
        }
        self.compared.differ = suspects.len() as u64;
        self.compared.late = first - self.compared.differ;
        let shown = suspects.len().min(DIFFERENCES_SHOWN);
        for number in 0..shown {
            let record = suspects[number * (suspects.len() - 1) / (shown - 1).max(1)];
            let difference = self.describe_difference(record).await;
            self.compared.examples.push(difference);
        }
    }

    fn is_over(&self, deadline: Nanos) -> bool {
        now() >= deadline || self.context.interrupt.is_raised()
    }

    /// Returns what each copy has for each of `records`.
    async fn read(&mut self, records: &[u64]) -> Vec<Vec<Sight>> {
        let mut sights = Vec::with_capacity(self.readers.len());
        for reader in &mut self.readers {
            sights.push(reader.read(&self.keys, records).await);
        }
        sights
    }

    /// Leaves out, from now on, each copy that answered nothing, and returns the sights of the others.
    fn without_silent(&mut self, sights: Vec<Vec<Sight>>) -> Vec<Vec<Sight>> {
        let readers = std::mem::take(&mut self.readers);
        let mut kept = Vec::with_capacity(sights.len());
        for (reader, seen) in readers.into_iter().zip(sights) {
            if seen.iter().all(|sight| *sight == Sight::Unread) {
                self.compared.left_out.push(format!("{}: it does not answer", reader.copy.name));
            } else {
                self.readers.push(reader);
                kept.push(seen);
            }
        }
        kept
    }

    /// Describes what each node has for a record.
    async fn describe_difference(&mut self, record: u64) -> CopyDifference {
        let mut key = Vec::new();
        self.keys.write(record, &mut key);
        let mut found = Vec::new();
        for reader in &mut self.readers {
            found.push((reader.copy.place_of(&key), reader.describe(&key).await));
        }
        CopyDifference { record, key: String::from_utf8_lossy(&key).into_owned(), found }
    }
}

fn differ(sights: &[Sight]) -> bool {
    let mut answered = sights.iter().filter(|sight| **sight != Sight::Unread);
    let first = answered.next();
    answered.any(|sight| Some(sight) != first)
}

impl<S: Store> Reader<S> {
    /// Connects to where the copy is. The error is the copy's name and why connecting failed again and again.
    async fn open(copy: NodeCopy<S>, context: &StoreContext) -> Result<Reader<S>, String> {
        let slots = if context.profile.capabilities.pipeline { CLIENTS } else { 1 };
        let mut backoff = Backoff::default();
        let mut refusal = String::new();
        for _ in 0..ATTEMPTS {
            match copy.store.connect(slots).await {
                Ok(connection) => {
                    let (clients, transport) = (connection.clients, connection.transport);
                    return Ok(Reader { copy, clients, transport });
                }
                Err(error) => refusal = error.to_string(),
            }
            sleep(backoff.wait());
        }
        Err(format!("{}: {refusal}", copy.name))
    }

    /// Reads `records`; tries those that are not answered several times.
    async fn read(&mut self, keys: &KeyWriter, records: &[u64]) -> Vec<Sight> {
        let mut sights = vec![Sight::Unread; records.len()];
        let mut backoff = Backoff::default();
        for attempt in 0..ATTEMPTS {
            let left: Vec<usize> =
                (0..records.len()).filter(|&at| sights[at] == Sight::Unread).collect();
            if left.is_empty() {
                break;
            }
            if attempt > 0 {
                sleep(backoff.wait());
            }
            self.read_once(keys, records, &left, &mut sights).await;
        }
        sights
    }

    async fn read_once(
        &mut self,
        keys: &KeyWriter,
        records: &[u64],
        left: &[usize],
        sights: &mut [Sight],
    ) {
        let next = Cell::new(0);
        let seen = RefCell::new(sights);
        let one = async |client: &mut S::Client| {
            let (mut key, mut reading) = (Vec::new(), Reading::default());
            while let Some(&at) = left.get(next.replace(next.get() + 1)) {
                keys.write(records[at], &mut key);
                let answer = look(client, &key, records[at], &mut reading).await;
                seen.borrow_mut()[at] = match answer {
                    Ok(true) => Sight::Value(digest(&reading)),
                    Ok(false) => Sight::Nothing,
                    Err(error) if error.connection_lost => return,
                    Err(_) => Sight::Unread,
                };
            }
        };
        let all = self.clients.iter_mut().map(|client| {
            let reading: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(one(client));
            reading
        });
        ConnectionTasks::new(all.collect(), &mut self.transport).await;
    }

    /// Describes this copy of a record in words.
    async fn describe(&mut self, key: &[u8]) -> String {
        let mut reading = Reading::default();
        let Some(client) = self.clients.first_mut() else { return "no answer".to_owned() };
        let found = RefCell::new(None);
        let one = async {
            *found.borrow_mut() = Some(look(client, key, 0, &mut reading).await);
        };
        let one: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(one);
        ConnectionTasks::new(vec![one], &mut self.transport).await;
        match found.into_inner() {
            Some(Ok(true)) => value_text(&reading),
            Some(Ok(false)) => "nothing".to_owned(),
            Some(Err(error)) => error.to_string(),
            None => "no answer".to_owned(),
        }
    }
}

pub(super) async fn look<C: Client>(
    client: &mut C,
    key: &[u8],
    id: u64,
    reading: &mut Reading,
) -> Answer<bool> {
    reading.clear();
    client.begin(OperationId { phase: NUMBER, group: NUMBER, id });
    client.get(key, reading).await
}

fn digest(reading: &Reading) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(reading.bytes());
    for span in reading.spans() {
        hasher.write_u16(span.index);
        hasher.write_u32(span.start);
    }
    hasher.finish()
}

/// Describes a value by its version, or by the versions of its fields, and by a checksum that tells two values of the
/// same version apart.
fn value_text(reading: &Reading) -> String {
    let bytes = reading.bytes();
    let version = |bytes: &[u8]| match stamp::claim(bytes) {
        Some(claim) => format!("version {}", claim.version),
        None => format!("{} bytes without a stamp", bytes.len()),
    };
    let versions = match reading.spans() {
        [] => version(bytes),
        spans => {
            let each = spans.iter().map(|span| {
                let field = bytes.get(span.start as usize..span.end as usize).unwrap_or_default();
                format!("field {} {}", span.index, version(field))
            });
            each.collect::<Vec<_>>().join(", ")
        }
    };
    format!("{versions} (checksum {:08x})", crc32c::crc32c(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_differs_from_nothing() {
        use Sight::{Nothing, Unread, Value};
        for same in
            [&[Value(1), Value(1)][..], &[Unread, Value(1), Unread], &[Nothing, Nothing], &[]]
        {
            assert!(!differ(same), "{same:?}");
        }
        for others in
            [&[Value(1), Value(2)][..], &[Unread, Nothing, Value(1)], &[Value(1), Nothing]]
        {
            assert!(differ(others), "{others:?}");
        }
    }
}
