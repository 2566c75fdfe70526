//! What was to be read back and was not answered is asked for again. Suspects are read again once
//! the load has quiesced: what is still missing then is lost, not
//! late. What is still wrong is named once, however many reads have found it; a read that was
//! wrong for itself, though its record is right, keeps the name that it got.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use super::backoff::Backoff;
use super::crew::Crew;
use super::job::Job;
use crate::measure::{self, Nanos, PhaseMeasure};
use crate::store::{Answer, Client, Connection, Consistency, OperationId, Reading, Store};
use crate::verify::{
    Anomaly, AnomalyKind, AnsweredRead, Examiner, RIGHT_AGAIN, ReadTickets, Tally,
};

/// Records read again at most; further suspects keep the name that their first read gave them.
const RECORDS: usize = 10_000;
/// Longest time for all of it, beyond what an eventually consistent store may take to settle, ns.
const LIMIT: Nanos = 10_000_000_000;
/// Longest time to have records answered that were not, ns.
const INSISTING: Nanos = 30_000_000_000;
/// Looks at a record once the store has had its time to settle: one right answer clears the
/// record, so that a store which is wrong now and then is not said to have lost it.
const LOOKS: u32 = 3;
/// Pause between two looks at all suspects while an eventually consistent store settles.
const PAUSE: Duration = Duration::from_millis(100);
/// Client group of the reads made here: no group of a plan has this number.
const GROUP: u16 = u16::MAX;

/// What is wrong with one field of a record, or with the record where it has one ledger word.
#[derive(Debug)]
struct Wrong {
    field: u16,
    kind: AnomalyKind,
    seen: Option<u32>,
    floor: u32,
    next: u32,
}

/// What the last look at a record gave.
enum Look {
    /// What is illegal still; empty: nothing.
    Answered(Vec<Wrong>),
    /// No answer.
    Unread(String),
}

/// Reads each suspect's record again and writes down what it gave. A record that is still old or
/// absent is named [`AnomalyKind::Lost`], once. Before that `unread` are read.
pub(super) async fn recheck<S: Store>(
    store: &S,
    job: &Job,
    measure: &mut PhaseMeasure,
    unread: Vec<u64>,
) {
    if measure.anomalies.is_empty() && unread.is_empty() {
        return;
    }
    match connect(store, job).await {
        Ok(Connection { mut clients, transport }) => {
            if let Some(client) = clients.first_mut() {
                let reading = async {
                    read_at_last(job, client, measure, unread).await;
                    read_again(job, client, measure).await;
                };
                let reading: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(reading);
                Crew::new(vec![reading], transport).await;
            }
        }
        Err(fault) => {
            for anomaly in &mut measure.anomalies {
                anomaly.again = format!("not read again: {fault}");
            }
        }
    }
}

/// A connection of one client. A store that has just lost a node may refuse for a while.
async fn connect<S: Store>(store: &S, job: &Job) -> Answer<Connection<S::Client, S::Transport>> {
    let deadline = measure::now() + LIMIT;
    let mut backoff = Backoff::default();
    loop {
        match store.connect(1).await {
            Err(_) if measure::now() < deadline && !job.context.interrupt.is_raised() => {
                std::thread::sleep(backoff.wait());
            }
            end => return end,
        }
    }
}

/// Asks for records that were not answered, all of them again and again, with longer and longer pauses.
async fn read_at_last<C: Client>(
    job: &Job,
    client: &mut C,
    measure: &mut PhaseMeasure,
    mut unread: Vec<u64>,
) {
    let deadline = measure::now() + INSISTING;
    let mut operation = OperationId { phase: job.plan.index, group: GROUP, id: 0 };
    let mut backoff = Backoff::default();
    while !unread.is_empty() && measure::now() < deadline && !job.context.interrupt.is_raised() {
        let mut still = Vec::new();
        for record in unread {
            if measure::now() >= deadline {
                break;
            }
            match read(job, client, record, operation).await {
                Ok((tally, anomalies)) => {
                    measure.tally.add(&tally);
                    measure.anomalies.extend(anomalies);
                    measure.unread = measure.unread.saturating_sub(1);
                }
                Err(_) => still.push(record),
            }
            operation.id += 1;
        }
        unread = still;
        if !unread.is_empty() {
            std::thread::sleep(backoff.wait());
        }
    }
}

async fn read_again<C: Client>(job: &Job, client: &mut C, measure: &mut PhaseMeasure) {
    let mut suspects: BTreeMap<u64, Look> = BTreeMap::new();
    for anomaly in &measure.anomalies {
        if suspects.len() < RECORDS {
            suspects.insert(anomaly.record, Look::Unread("no time left".to_owned()));
        }
    }
    let idle_since = measure.end.max(measure.last_end);
    look_at_all(job, client, &mut suspects, idle_since + settle(job)).await;
    name(job, &mut measure.tally, &mut measure.anomalies, &suspects);
}

/// How long the store may take to settle, ns.
fn settle(job: &Job) -> Nanos {
    let settle = match job.context.profile.consistency.level {
        Consistency::Eventual => job.context.conduct.settle,
        Consistency::BoundedStaleness(longest) => longest,
        Consistency::ReadAfterWrite | Consistency::Linearizable => Duration::ZERO,
    };
    Nanos::try_from(settle.as_nanos()).unwrap_or(Nanos::MAX / 2)
}

/// Looks at every suspect until it is right, at least until `settled`.
async fn look_at_all<C: Client>(
    job: &Job,
    client: &mut C,
    suspects: &mut BTreeMap<u64, Look>,
    settled: Nanos,
) {
    let deadline = settled.max(measure::now()) + LIMIT;
    let mut operation = OperationId { phase: job.plan.index, group: GROUP, id: 0 };
    let mut looks = 0;
    while looks < LOOKS {
        looks += u32::from(measure::now() >= settled);
        let mut left = false;
        for (&record, look) in suspects.iter_mut() {
            let right = matches!(look, Look::Answered(wrong) if wrong.is_empty());
            if right || measure::now() >= deadline || job.context.interrupt.is_raised() {
                continue;
            }
            *look = look_at(job, client, record, operation).await;
            operation.id += 1;
            left |= !matches!(look, Look::Answered(wrong) if wrong.is_empty());
        }
        if !left {
            return;
        }
        if looks == 0 {
            std::thread::sleep(PAUSE);
        }
    }
}

async fn look_at<C: Client>(
    job: &Job,
    client: &mut C,
    record: u64,
    operation: OperationId,
) -> Look {
    match read(job, client, record, operation).await {
        Err(why) => Look::Unread(why),
        Ok((_, anomalies)) => {
            let wrong = anomalies.into_iter().map(|anomaly| {
                let Anomaly { field, kind, seen, floor, next, .. } = anomaly;
                Wrong { field, kind, seen, floor, next }
            });
            Look::Answered(wrong.collect())
        }
    }
}

/// Reads a record and judges what it brought; why that was not to be had.
async fn read<C: Client>(
    job: &Job,
    client: &mut C,
    record: u64,
    operation: OperationId,
) -> Result<(Tally, Vec<Anomaly>), String> {
    let (_, workload) = job.groups.first().ok_or("no client group")?;
    if record >= job.dataset().capacity {
        return Err("it is no record of the dataset".to_owned());
    }
    let mut key = Vec::new();
    workload.keys().write(record, &mut key);
    let (mut reading, mut tickets) = (Reading::default(), ReadTickets::default());
    let mut examiner = Examiner::new(job.examination());
    client.begin(operation);
    examiner.begin_read(record, &mut tickets);
    let sent = measure::now();
    let answer = client.get(&key, &mut reading).await;
    let answered = measure::now();
    let found = match answer {
        Ok(found) => found.then_some(&reading),
        Err(fault) => {
            examiner.abandon_read(&mut tickets);
            return Err(fault.to_string());
        }
    };
    let read = AnsweredRead { operation, record, key: &key, sent, answered };
    examiner.end_read(&read, &mut tickets, found);
    Ok(examiner.into_findings())
}

/// Writes down what the last looks gave. Of the reads that found what is there still, the first
/// stays, for all of them.
fn name(
    job: &Job,
    tally: &mut Tally,
    anomalies: &mut Vec<Anomaly>,
    suspects: &BTreeMap<u64, Look>,
) {
    anomalies.sort_by_key(|anomaly| anomaly.sent);
    let expires = job.context.ledger.as_ref().is_some_and(|ledger| ledger.expires());
    // By record and field: where the anomaly that stays is, and how many reads it stands for.
    let mut named: BTreeMap<(u64, u16), (usize, u64)> = BTreeMap::new();
    let mut kept: Vec<Anomaly> = Vec::with_capacity(anomalies.len());
    for mut anomaly in anomalies.drain(..) {
        let place = (anomaly.record, anomaly.field);
        let wrong = match suspects.get(&anomaly.record) {
            None => None,
            Some(Look::Unread(why)) => {
                anomaly.again = format!("not read again: {why}");
                None
            }
            Some(Look::Answered(wrong)) => {
                let still = wrong.iter().find(|wrong| wrong.field == anomaly.field);
                anomaly.again = still.map_or_else(
                    || RIGHT_AGAIN.to_owned(),
                    |wrong| format!("still {}", wrong.kind.name()),
                );
                still
            }
        };
        let same = wrong.filter(|w| (w.kind, w.seen) == (anomaly.kind, anomaly.seen));
        let Some(wrong) = same else {
            kept.push(anomaly);
            continue;
        };
        tally.anomalies[anomaly.kind as usize] -= 1;
        if let Some((_, reads)) = named.get_mut(&place) {
            *reads += 1;
            continue;
        }
        named.insert(place, (kept.len(), 1));
        // A value that outlived its time to live is no less than what was written last.
        let outlived = expires && wrong.seen.is_some_and(|seen| seen >= wrong.floor);
        if anomaly.kind == AnomalyKind::Stale && !outlived {
            anomaly.kind = AnomalyKind::Lost;
            anomaly.again = "still old or absent".to_owned();
        }
        (anomaly.floor, anomaly.next) = (wrong.floor, wrong.next);
        tally.anomalies[anomaly.kind as usize] += 1;
        kept.push(anomaly);
    }
    for (at, reads) in named.into_values().filter(|&(_, reads)| reads > 1) {
        kept[at].again.push_str(&format!("; {reads} reads found it so"));
    }
    *anomalies = kept;
}
