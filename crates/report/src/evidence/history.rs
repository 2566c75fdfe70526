//! Faults of a run, as far as evidence depends on them: which fault was the gravest by then, which nodes were dark
//! together, and since when the disk was not to be trusted.

use std::collections::{BTreeMap, BTreeSet};

use kvdyno_core::evidence::{Exposure, FaultClass};
use kvdyno_core::store::Durability;
use kvdyno_core::workload::fault::{BIT_ROT, DISK_LIES, Lose, POWER, ProcessOutcome, Repair};

use crate::result::{CutResult, EndCause, FaultResult, PhaseResult, StoreRun, TestbedNode};

/// Role of a node that holds no data.
const OBSERVER: &str = "observer";

/// View of a run by its faults.
pub(super) struct FaultHistory<'a> {
    pub run: &'a StoreRun,
}

/// Returns the class of a fault that was done; `None` for repairs, and for faults that were not done.
pub(super) fn class_of(fault: &FaultResult) -> Option<FaultClass> {
    fault.kind().filter(|_| fault.error.is_none())?;
    Some(match fault.ends_processes() {
        true if is_cut(fault) => FaultClass::PowerLoss,
        true => FaultClass::ProcessEnd,
        false => FaultClass::Running,
    })
}

/// Returns true if the fault, done or not, is a cut of power.
pub(super) fn is_cut(fault: &FaultResult) -> bool {
    fault.kind() == Some(&POWER)
}

/// Returns true if the fault, done or not, ends a process and leaves its system alone.
pub(super) fn is_end(fault: &FaultResult) -> bool {
    let outcome = fault.kind().map(|kind| kind.outcome);
    !is_cut(fault) && matches!(outcome, Some(ProcessOutcome::Ended | ProcessOutcome::Renewed))
}

/// Returns the gravest fault that acknowledged writes survive, by the store's promise.
pub(super) fn promised(level: Durability) -> FaultClass {
    match level {
        Durability::None => FaultClass::Running,
        Durability::ProcessKill => FaultClass::ProcessEnd,
        Durability::PowerLoss => FaultClass::PowerLoss,
    }
}

impl<'a> FaultHistory<'a> {
    pub fn of(run: &'a StoreRun) -> FaultHistory<'a> {
        FaultHistory { run }
    }

    /// Returns the gravest fault that was done up to the end of a phase.
    pub fn gravest(&self, until: usize) -> FaultClass {
        self.up_to(until).filter_map(|(_, fault)| class_of(fault)).max().unwrap_or_default()
    }

    /// Returns true if a lie of the disk can explain what is missing at the end of a phase: bits rotted, or power was cut
    /// after flushes had been answered and not done. A lie after the last cut explains nothing.
    pub fn disk_lied(&self, until: usize) -> bool {
        let when = |(phase, fault): &(usize, &FaultResult)| (*phase, fault.began_ns);
        let lie =
            self.up_to(until).filter(|(_, fault)| fault.was(&DISK_LIES)).map(|of| when(&of)).min();
        let cut_after = |lie| {
            let mut cuts = self.up_to(until).filter(|(_, fault)| fault.was(&POWER));
            cuts.any(|cut| when(&cut) >= lie)
        };
        self.disk_rotted(until) || lie.is_some_and(cut_after)
    }

    /// Returns true if a part of kvdyno, or the machine below the nodes, had failed by the end of a phase. Such a failure
    /// ends the run, so it was in the last phase.
    pub fn machine_failed(&self, until: usize) -> bool {
        self.run.cause == Some(EndCause::Internal) && until + 1 >= self.run.phases.len()
    }

    /// Returns true if bits of the disk had flipped by the end of a phase.
    pub fn disk_rotted(&self, until: usize) -> bool {
        self.up_to(until).any(|(_, fault)| fault.was(&BIT_ROT))
    }

    /// Returns the index of the first phase with a fault of this kind, done or not.
    pub fn first(&self, is_of: fn(&FaultResult) -> bool) -> Option<usize> {
        self.run.phases.iter().position(|phase| phase.faults.iter().any(is_of))
    }

    /// Adds up the effects of faults of a kind in these phases.
    pub fn exposure(
        &self,
        phases: impl Iterator<Item = usize>,
        is_of: fn(&FaultResult) -> bool,
    ) -> Exposure {
        let mut exposure = Exposure { nodes: self.data_nodes(), ..Exposure::default() };
        let (mut with_stake, mut of_caches, mut fresh) = (Some(0), Some(0), Some(0));
        for phase in phases.filter_map(|at| self.run.phases.get(at)) {
            let done = || phase.faults.iter().filter(|f| is_of(f) && f.error.is_none());
            let moments: BTreeSet<u64> = done().map(|fault| fault.began_ns).collect();
            exposure.moments += moments.len() as u64;
            let stake = |fault: &FaultResult| fault.cut.as_ref().and_then(CutResult::had_stake);
            let stakes: BTreeMap<u64, Option<bool>> =
                done().map(|fault| (fault.began_ns, stake(fault))).collect();
            for stake in stakes.values() {
                with_stake = with_stake.zip(*stake).map(|(sum, had)| sum + u64::from(had));
            }
            let takes = |fault: &FaultResult| fault.cut.as_ref()?.lose;
            let taken: BTreeMap<u64, Option<Lose>> =
                done().map(|fault| (fault.began_ns, takes(fault))).collect();
            for lose in taken.values() {
                let took = |lose| u64::from(lose != Lose::Unwritten);
                of_caches = of_caches.zip(*lose).map(|(sum, lose)| sum + took(lose));
            }
            if !moments.is_empty() {
                fresh = fresh
                    .zip(fresh_writes(phase))
                    .map(|(sum, own): (u64, u64)| sum.saturating_add(own));
            }
            exposure.together = exposure.together.max(dark_together(phase, is_of));
        }
        exposure.with_stake = with_stake.filter(|_| exposure.moments > 0);
        exposure.of_caches = of_caches.filter(|_| exposure.moments > 0);
        exposure.fresh = fresh.filter(|_| exposure.moments > 0);
        exposure
    }

    /// Returns the repairs of these phases that failed and that no later fault has made meaningless, each with the index
    /// of its phase.
    pub fn failed_repairs(
        &self,
        phases: impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = (usize, &'a FaultResult)> {
        let phases = phases.filter_map(move |at| Some((at, self.run.phases.get(at)?)));
        phases.flat_map(|(at, phase)| {
            let failed =
                phase.faults.iter().filter(|fault| fault.repairs() && fault.error.is_some());
            failed
                .filter(move |repair| !is_meaningless(phase, repair))
                .map(move |repair| (at, repair))
        })
    }

    fn up_to(&self, until: usize) -> impl Iterator<Item = (usize, &'a FaultResult)> {
        let phases = self.run.phases.iter().enumerate().take(until.saturating_add(1));
        phases.flat_map(|(at, phase)| phase.faults.iter().map(move |fault| (at, fault)))
    }

    /// Returns the number of nodes that hold data; 0 where that is not known.
    pub fn data_nodes(&self) -> u64 {
        let testbed = self.run.testbed.iter();
        let nodes = testbed.flat_map(|testbed| testbed.nodes.iter().chain(&testbed.later));
        let holds_data = |node: &&TestbedNode| node.role.as_deref() != Some(OBSERVER);
        nodes.filter(holds_data).map(|node| &node.name).collect::<BTreeSet<_>>().len() as u64
    }
}

/// Counts acknowledged writes of a phase that was read back before and after; `None` where that is not known.
fn fresh_writes(phase: &PhaseResult) -> Option<u64> {
    let account = phase.writes.as_ref()?;
    let inserts = account.inserts.map(|inserts| inserts.acknowledged);
    let deletes = account.deletes.map(|deletes| deletes.acknowledged);
    inserts.or(deletes).map(|_| inserts.unwrap_or(0).saturating_add(deletes.unwrap_or(0)))
}

/// Returns the most nodes that were dark at one moment because of faults of this kind.
fn dark_together(phase: &PhaseResult, is_of: fn(&FaultResult) -> bool) -> u64 {
    let of_kind = phase.faults.iter().filter(|fault| is_of(fault));
    let dark: Vec<_> =
        of_kind.filter_map(|fault| Some((fault.node.as_str(), fault.dark?))).collect();
    let at = |moment: u64| {
        let then = dark.iter().filter(|(_, span)| span.covers(moment));
        then.map(|(node, _)| node).collect::<BTreeSet<_>>().len() as u64
    };
    dark.iter().map(|(_, span)| at(span.from_ns)).max().unwrap_or(0)
}

/// Returns true if a later fault ended the process of the node, so that there was nothing left to repair: a process that
/// is gone cannot be resumed, and a cut of power took what filled the disk.
pub(super) fn is_meaningless(phase: &PhaseResult, repair: &FaultResult) -> bool {
    let ended = |fault: &FaultResult| {
        fault.node == repair.node
            && fault.began_ns <= repair.began_ns
            && class_of(fault) > Some(FaultClass::Running)
    };
    repair.repairs() && repair.what != Repair::Start.describe() && phase.faults.iter().any(ended)
}
