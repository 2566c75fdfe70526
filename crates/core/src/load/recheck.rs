//! Suspects are read again once the load has quiesced: what is still missing then is lost, not
//! late.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use super::crew::Crew;
use super::job::Job;
use crate::measure::{self, Nanos, PhaseMeasure};
use crate::store::{Client, Connection, Consistency, OperationId, Reading, Store};
use crate::verify::{Anomaly, AnomalyKind, AnsweredRead, Examiner, ReadTickets, Tally};

/// Records read again at most; further suspects keep the name that their first read gave them.
const RECORDS: usize = 10_000;
/// Longest time for all of it, beyond what an eventually consistent store may take to settle, ns.
const LIMIT: Nanos = 10_000_000_000;
/// Pause between two looks at a record while an eventually consistent store settles.
const PAUSE: Duration = Duration::from_millis(100);

/// What a second look at a record gave.
enum SecondLook {
    /// Legal now.
    Healed,
    /// Still illegal, of this kind.
    Wrong(AnomalyKind),
    /// No answer.
    Unread(String),
}

/// Reads each suspect's record again and writes down what it gave. A record that is still old or
/// absent is named [`AnomalyKind::Lost`], once.
pub(super) async fn recheck<S: Store>(store: &S, job: &Job, measure: &mut PhaseMeasure) {
    if measure.anomalies.is_empty() {
        return;
    }
    match store.connect(1).await {
        Ok(Connection { mut clients, transport }) => {
            if let Some(client) = clients.first_mut() {
                let reading: Pin<Box<dyn Future<Output = ()> + '_>> =
                    Box::pin(read_again(job, client, measure));
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

async fn read_again<C: Client>(job: &Job, client: &mut C, measure: &mut PhaseMeasure) {
    let deadline = measure::now() + settle(job) + LIMIT;
    let mut suspects: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (i, anomaly) in measure.anomalies.iter().enumerate() {
        suspects.entry(anomaly.record).or_default().push(i);
    }
    for (record, of_record) in suspects.into_iter().take(RECORDS) {
        let look = if measure::now() < deadline {
            look(job, client, record).await
        } else {
            SecondLook::Unread("no time left".to_owned())
        };
        name(&mut measure.tally, &mut measure.anomalies, &of_record, &look);
    }
}

/// How long the store may take to settle, ns.
fn settle(job: &Job) -> Nanos {
    match job.context.profile.consistency.level {
        Consistency::Eventual => job.context.conduct.settle.as_nanos() as Nanos,
        _ => 0,
    }
}

async fn look<C: Client>(job: &Job, client: &mut C, record: u64) -> SecondLook {
    let Some((_, workload)) = job.groups.first() else {
        return SecondLook::Unread("no client group".to_owned());
    };
    if record >= job.dataset().capacity {
        return SecondLook::Unread("it is no record of the dataset".to_owned());
    }
    let mut key = Vec::new();
    workload.keys().write(record, &mut key);
    let (mut reading, mut tickets) = (Reading::default(), ReadTickets::default());
    let settled = measure::now() + settle(job);
    loop {
        let mut examiner = Examiner::new(job.examination());
        examiner.begin_read(record, &mut tickets);
        reading.clear();
        let sent = measure::now();
        let answer = client.get(&key, &mut reading).await;
        let answered = measure::now();
        let found = match answer {
            Ok(found) => found.then_some(&reading),
            Err(fault) => {
                examiner.abandon_read(&mut tickets);
                return SecondLook::Unread(fault.to_string());
            }
        };
        let operation = OperationId { phase: job.plan.index, group: 0, id: 0 };
        let read = AnsweredRead { operation, record, key: &key, sent, answered };
        examiner.end_read(&read, &mut tickets, found);
        let Some(wrong) = examiner.into_findings().1.first().map(|anomaly| anomaly.kind) else {
            return SecondLook::Healed;
        };
        if answered >= settled {
            return SecondLook::Wrong(wrong);
        }
        std::thread::sleep(PAUSE);
    }
}

fn name(tally: &mut Tally, anomalies: &mut [Anomaly], of_record: &[usize], look: &SecondLook) {
    let again = match look {
        SecondLook::Healed => "right when read again".to_owned(),
        SecondLook::Wrong(AnomalyKind::Stale) => "still old or absent".to_owned(),
        SecondLook::Wrong(kind) => format!("still {}", kind.name()),
        SecondLook::Unread(why) => format!("not read again: {why}"),
    };
    for &i in of_record {
        again.clone_into(&mut anomalies[i].again);
    }
    let stale = of_record.iter().find(|&&i| anomalies[i].kind == AnomalyKind::Stale);
    if let (SecondLook::Wrong(AnomalyKind::Stale), Some(&i)) = (look, stale) {
        anomalies[i].kind = AnomalyKind::Lost;
        tally.anomalies[AnomalyKind::Stale as usize] -= 1;
        tally.anomalies[AnomalyKind::Lost as usize] += 1;
    }
}
