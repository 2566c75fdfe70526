//! Which operation made a write that is gone. Nothing was kept to tell it: operations are pure
//! functions of their ids, so the phases are drawn again and the record's writes counted.

use std::collections::HashMap;

use super::job::LoadError;
use crate::store::OperationId;
use crate::workload::{Dataset, Kind, Part, PhasePlan, Workload};

/// A phase that was run, and how many operation ids each of its groups began.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a> {
    /// Its plan.
    pub plan: &'a PhasePlan,
    /// As [`crate::measure::PhaseMeasure::issued`].
    pub issued: &'a [u64],
}

/// The writes of one wanted record, counted so far.
#[derive(Debug, Default)]
struct Writes {
    count: u32,
    /// Last phase and group that wrote it.
    last: Option<(u16, u16)>,
    writer: Option<OperationId>,
    ambiguous: bool,
}

/// For each (record, version) in `wanted`, the operation that wrote that version, where the order
/// of the record's writes is beyond doubt: versions are counted in the order of operation ids,
/// which holds while only one group of a phase writes the record and its writes do not overlap.
///
/// # Errors
/// [`LoadError::Plan`] if a phase cannot be compiled again.
pub fn writers(
    phases: &[Ran<'_>],
    dataset: &Dataset,
    part: Part,
    wanted: &HashMap<u64, u32>,
) -> Result<HashMap<u64, OperationId>, LoadError> {
    let mut writes: HashMap<u64, Writes> = HashMap::new();
    for ran in phases {
        for (group, &issued) in (0u16..).zip(ran.issued) {
            let Some(plan) = ran.plan.groups.get(usize::from(group)) else { continue };
            let workload = Workload::new(plan, dataset, part)?;
            let place = OperationId { phase: ran.plan.index, group, id: issued };
            visit_writes(&workload, part, place, |record, operation| {
                if let Some(&version) = wanted.get(&record) {
                    writes.entry(record).or_default().add(operation, version);
                }
            });
        }
    }
    let told = writes.into_iter().filter(|(_, writes)| !writes.ambiguous);
    Ok(told.filter_map(|(record, writes)| Some((record, writes.writer?))).collect())
}

/// Calls `visit` for every record written by the operations before `end`.
fn visit_writes(
    workload: &Workload,
    part: Part,
    end: OperationId,
    mut visit: impl FnMut(u64, OperationId),
) {
    let mut drawer = workload.drawer();
    for id in (u64::from(part.index)..end.id).step_by(part.count as usize) {
        let operation = drawer.draw(id);
        let at = OperationId { id, ..end };
        match operation.kind {
            kind if kind.read_only() => {}
            Kind::PutBatch | Kind::InsertBatch => {
                for i in 0..operation.count {
                    visit(drawer.batch_record(id, &operation, i), at);
                }
            }
            _ => visit(operation.record, at),
        }
    }
}

impl Writes {
    fn add(&mut self, operation: OperationId, wanted: u32) {
        let place = (operation.phase, operation.group);
        let same_phase = self.last.filter(|last| last.0 == place.0);
        self.ambiguous |= same_phase.is_some_and(|last| last != place);
        self.last = Some(place);
        self.count += 1;
        if self.count == wanted {
            self.writer = Some(operation);
        }
    }
}
