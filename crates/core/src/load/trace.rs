//! Finds the operation that made a write which is gone. Nothing was kept to tell it: operations are pure functions of
//! their ids, so the phases are drawn again and the record's writes counted.

use std::collections::{HashMap, HashSet};

use super::error::LoadError;
use crate::measure::StopReason;
use crate::store::OperationId;
use crate::workload::{Dataset, Kind, Part, PhasePlan, Workload};

/// A phase that was run, with the number of operation ids that each of its groups began.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its plan.
    pub plan: PhasePlan,
    /// Operation ids that each group began; see [`crate::measure::PhaseMeasure::issued`].
    pub issued: Vec<u64>,
    /// Reason for its end.
    pub stopped: StopReason,
}

/// Writes that are to be traced.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Pairs (record, version) whose operation is wanted.
    pub versions: HashSet<(u64, u32)>,
    /// For each record among them, the number of versions that were sent in all.
    pub sent: HashMap<u64, u32>,
}

/// A record's writes in one phase, in the order of their ids.
#[derive(Debug)]
struct Stretch {
    writers: Vec<OperationId>,
    /// The order of the ids is the order of the versions.
    ordered: bool,
    /// Each of these operations sent a version, beyond doubt.
    whole: bool,
}

/// Returns, for each (record, version) wanted, the operation that wrote that version, where it is beyond doubt:
///
/// - within a phase, the record's writes are one, or all of one group of one client, so that
///   versions follow operation ids;
/// - in this and all earlier phases every operation drawn was carried out, or as many versions
///   were sent in all as operations are drawn now. A phase that a deadline ended may have left
///   gaps between its clients' ids, and a read-modify-write whose read failed sends no version.
///
/// # Errors
/// [`LoadError::Plan`] if a phase cannot be compiled again.
pub fn writers(
    phases: &[Ran],
    dataset: &Dataset,
    part: Part,
    wanted: &Wanted,
) -> Result<HashMap<(u64, u32), OperationId>, LoadError> {
    let mut writes: HashMap<u64, Vec<Stretch>> = HashMap::new();
    for ran in phases {
        for (group, &issued) in (0u16..).zip(&ran.issued) {
            let Some(plan) = ran.plan.groups.get(usize::from(group)) else { continue };
            let workload = Workload::new(plan, dataset, part)?;
            let end = OperationId { phase: ran.plan.index, group, id: issued };
            let (one_client, all) = (plan.clients == 1, ran.stopped == StopReason::Requests);
            visit_writes(&workload, part, end, |record, operation, kind| {
                if !wanted.sent.contains_key(&record) {
                    return;
                }
                let whole = (one_client || all) && kind != Kind::ReadModifyWrite;
                add(writes.entry(record).or_default(), operation, one_client, whole);
            });
        }
    }
    let told = wanted.versions.iter().filter_map(|&(record, version)| {
        let sent = *wanted.sent.get(&record)?;
        Some(((record, version), writer(writes.get(&record)?, version, sent)?))
    });
    Ok(told.collect())
}

/// Calls `visit` for every record written by the operations before `end`.
fn visit_writes(
    workload: &Workload,
    part: Part,
    end: OperationId,
    mut visit: impl FnMut(u64, OperationId, Kind),
) {
    let mut drawer = workload.drawer();
    for id in (u64::from(part.index)..end.id).step_by(part.count as usize) {
        let operation = drawer.draw(id);
        let at = OperationId { id, ..end };
        match operation.kind {
            kind if kind.read_only() => {}
            Kind::PutBatch | Kind::InsertBatch => {
                for i in 0..operation.count {
                    visit(drawer.batch_record(id, &operation, i), at, operation.kind);
                }
            }
            kind => visit(operation.record, at, kind),
        }
    }
}

fn add(stretches: &mut Vec<Stretch>, operation: OperationId, one_client: bool, whole: bool) {
    match stretches.last_mut() {
        Some(last) if last.writers[0].phase == operation.phase => {
            last.ordered &= one_client && last.writers[0].group == operation.group;
            last.whole &= whole;
            last.writers.push(operation);
        }
        _ => {
            stretches.push(Stretch { writers: vec![operation], ordered: one_client, whole });
        }
    }
}

/// Returns the operation that wrote `version`, the first being 1; `None` where there is doubt. `sent` is the number
/// of versions that were sent of the record in all.
fn writer(stretches: &[Stretch], version: u32, sent: u32) -> Option<OperationId> {
    let drawn: usize = stretches.iter().map(|stretch| stretch.writers.len()).sum();
    let mut sure = true;
    let mut at = (version as usize).checked_sub(1)?;
    for stretch in stretches {
        sure &= stretch.whole;
        if let Some(&writer) = stretch.writers.get(at) {
            let in_order = stretch.ordered || stretch.writers.len() == 1;
            return (in_order && (sure || drawn == sent as usize)).then_some(writer);
        }
        at -= stretch.writers.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(phase: u16, ids: &[u64], ordered: bool, whole: bool) -> Stretch {
        let writers = ids.iter().map(|&id| OperationId { phase, group: 0, id }).collect();
        Stretch { writers, ordered, whole }
    }

    #[test]
    fn a_writer_is_told_only_where_it_is_beyond_doubt() {
        let told = |stretches: &[Stretch], version, sent| {
            writer(stretches, version, sent).map(|writer| (writer.phase, writer.id))
        };
        let clear = [stretch(0, &[7], false, true), stretch(1, &[3, 9], true, true)];
        assert_eq!(told(&clear, 1, 3), Some((0, 7)));
        assert_eq!(told(&clear, 3, 3), Some((1, 9)));
        assert_eq!((told(&clear, 0, 3), told(&clear, 4, 3)), (None, None));
        // Which of two clients' writes came first is not known; nor what a deadline cut off.
        let unclear = [stretch(0, &[7], false, true), stretch(1, &[3, 9], false, false)];
        assert_eq!((told(&unclear, 1, 2), told(&unclear, 2, 3)), (Some((0, 7)), None));
        let cut = [stretch(0, &[7], false, false), stretch(1, &[4], false, false)];
        assert_eq!((told(&cut, 1, 1), told(&cut, 2, 2)), (None, Some((1, 4))));
    }
}
