//! Linearizability of a record's history: there is an order of its requests, each at one instant
//! between its begin and its end, in which every read finds what was written last (Herlihy and Wing,
//! "Linearizability: A Correctness Condition for Concurrent Objects", ACM TOPLAS 12(3), 1990).
//!
//! If no two writes write the same, this can be checked in the time of a sort (Gibbons and Korach,
//! "Testing Shared Memories", SIAM Journal on Computing 26(4), 1997). A write and the reads that found
//! its value stand together in such an order, for no other write can come between. Of such a cluster
//! only two moments count: the first end and the last begin of its requests. Where the end comes first,
//! the cluster takes up all the time between them (a forward zone), else it can shrink to a point in it
//! (a backward zone). An order exists if and only if no read ends before its write begins, no two
//! forward zones overlap, and no backward zone lies within a forward zone.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::history::{Call, CallKind, Content, History, RecordHistory};
use super::judgement::WriteEnd;
use crate::measure::Nanos;

/// Verdict on a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linearizability {
    /// Every record's history is linearizable.
    Ok,
    /// The history of one record is not.
    Violated(Violation),
    /// It cannot be told, for this reason.
    Unknown(String),
}

/// Requests that no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Number of the record.
    pub record: u64,
    /// Fault, in words.
    pub why: &'static str,
    /// Requests of the violation, by begin. Without any one of them the rest could be explained.
    pub calls: Vec<Call>,
}

/// A history with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// History of the sampled records.
    pub history: History,
    /// Verdict on it.
    pub answer: Linearizability,
}

/// Judges every record; of several violations it returns one of those with the fewest requests.
#[must_use]
pub fn judge(history: &History) -> Linearizability {
    if history.records.iter().all(|record| record.calls.is_empty()) {
        return Linearizability::Unknown("no operation went to a sampled record".to_owned());
    }
    let violations = history.records.iter().filter_map(check);
    match violations.min_by_key(|violation| violation.calls.len()) {
        Some(violation) => Linearizability::Violated(violation),
        None => Linearizability::Ok,
    }
}

/// Finds a violation in a record's history, if it has one.
#[must_use]
pub fn check(history: &RecordHistory) -> Option<Violation> {
    let written = history.written();
    let informative = |&call: &usize| !history.is_mute(&history.calls[call], &written);
    let all: Vec<usize> = (0..history.calls.len()).filter(informative).collect();
    let violation = find(history, &all)?;
    let (why, calls) = shortest(history, violation);
    let calls = calls.into_iter().map(|call| history.calls[call]).collect();
    Some(Violation { record: history.record, why, calls })
}

/// Fault in words, and the calls between which it is.
type Fault = (&'static str, Vec<usize>);

/// A write and the reads of its value. A call is `None` where it is the write of a value that was
/// there before the history.
#[derive(Clone, Debug)]
struct Cluster {
    write: Option<usize>,
    /// Time at which the write began, ns.
    written: Nanos,
    /// First end (ns), and the call that ended then.
    end: (Nanos, Option<usize>),
    /// Last begin (ns), and the call that began then.
    begin: (Nanos, Option<usize>),
}

impl Cluster {
    fn of_write(call: &Call, index: usize) -> Cluster {
        let write = Some(index);
        Cluster { write, written: call.begun, end: (call.ended, write), begin: (call.begun, write) }
    }

    /// Creates the cluster of a value from before the history.
    fn before(history: &RecordHistory) -> Cluster {
        // It was complete before the first request of the history could begin.
        let end = if history.settled { history.from.saturating_sub(1) } else { Nanos::MAX };
        Cluster { write: None, written: 0, end: (end, None), begin: (0, None) }
    }

    fn add_read(&mut self, call: &Call, index: usize) {
        if call.ended < self.end.0 {
            self.end = (call.ended, Some(index));
        }
        if call.begun > self.begin.0 {
            self.begin = (call.begun, Some(index));
        }
    }

    fn is_forward(&self) -> bool {
        self.end.0 < self.begin.0
    }

    fn calls(&self) -> impl Iterator<Item = usize> {
        [self.write, self.end.1, self.begin.1].into_iter().flatten()
    }
}

/// Finds a violation among some of the calls.
fn find(history: &RecordHistory, calls: &[usize]) -> Option<Fault> {
    let clusters = match clusters(history, calls) {
        Ok(clusters) => clusters,
        Err(violation) => return Some(violation),
    };
    let (mut forward, backward): (Vec<&Cluster>, Vec<&Cluster>) =
        clusters.values().partition(|cluster| cluster.is_forward());
    forward.sort_by_key(|cluster| (cluster.end.0, cluster.begin.0));
    let between = |one: &Cluster, other: &Cluster| one.calls().chain(other.calls()).collect();
    // Sorted by their begin, zones that do not overlap end in the same order.
    if let Some(pair) = forward.windows(2).find(|pair| pair[1].end.0 < pair[0].begin.0) {
        let why = "reads found two values in turns, though each is written once";
        return Some((why, between(pair[0], pair[1])));
    }
    let mut violations = backward.into_iter().filter_map(|inner| {
        let after = forward.partition_point(|outer| outer.end.0 < inner.begin.0);
        let outer = forward[..after].last()?;
        (inner.end.0 < outer.begin.0).then_some((inner, *outer))
    });
    // The first one in time, so that the answer does not depend on the table's order.
    let first = violations.by_ref().min_by_key(|(inner, _)| (inner.begin.0, inner.end.0));
    first.map(|(inner, outer)| {
        ("a value was read after another had taken its place", between(inner, outer))
    })
}

/// Groups some of the calls into clusters; the error names a read that fits into none.
fn clusters(history: &RecordHistory, calls: &[usize]) -> Result<HashMap<Content, Cluster>, Fault> {
    let mut clusters = HashMap::new();
    let mut failed = HashMap::new();
    for &index in calls {
        let call = &history.calls[index];
        match (call.action, call.end) {
            (CallKind::Write(content), WriteEnd::Failed) => {
                failed.insert(content, index);
            }
            (CallKind::Write(content), WriteEnd::Acknowledged | WriteEnd::Indeterminate) => {
                clusters.insert(content, Cluster::of_write(call, index));
            }
            (CallKind::Read(_), _) => {}
        }
    }
    for &index in calls {
        let call = &history.calls[index];
        let CallKind::Read(content) = call.action else { continue };
        if let Some(&write) = failed.get(&content) {
            return Err(("a read found what a failed write wrote", vec![write, index]));
        }
        let cluster = match clusters.entry(content) {
            Entry::Occupied(cluster) => cluster.into_mut(),
            Entry::Vacant(place) if history.is_from_before(content) => {
                place.insert(Cluster::before(history))
            }
            Entry::Vacant(_) => {
                return Err(("a read found what nobody had written", vec![index]));
            }
        };
        if call.ended < cluster.written {
            let calls = cluster.write.into_iter().chain([index]).collect();
            return Err(("a read ended before what it found was written", calls));
        }
        cluster.add_read(call, index);
    }
    Ok(clusters)
}

/// Leaves out calls that the violation does not need. A write stays as long as a read of its value
/// does: only calls may be left out that could be left out of any history without making it wrong.
fn shortest(history: &RecordHistory, (mut why, mut calls): Fault) -> Fault {
    calls.sort_unstable();
    calls.dedup();
    let mut at = 0;
    while at < calls.len() {
        let mut rest = calls.clone();
        let left_out = &history.calls[rest.remove(at)];
        let is_read = |content: Content| {
            rest.iter().any(|&call| history.calls[call].action == CallKind::Read(content))
        };
        let needed = matches!(left_out.action, CallKind::Write(content) if is_read(content));
        match find(history, &rest).filter(|_| !needed) {
            Some((still, _)) => {
                (why, calls) = (still, rest);
                // What was needed before may not be any more.
                at = 0;
            }
            None => at += 1,
        }
    }
    (why, calls)
}
