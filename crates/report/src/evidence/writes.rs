//! Evidence on acknowledged writes. Each account of a run is a piece of evidence by itself, with its own stake: figures
//! of two accounts are never mixed. The worst piece stands for the run, else the latest that confirms.

use std::ops::RangeInclusive;

use kvdyno_core::evidence::{
    Claimed, Evidence, EvidenceStatus, FaultClass, FaultModel, OpenReason, ViolationKind,
};
use kvdyno_core::workload::fault::ActionFailure;

use super::history::{FaultHistory, is_cut, is_end, promised};
use super::reads::{is_beyond, is_crowded};
use super::whereabouts::lie_elsewhere;
use crate::result::{FaultResult, WriteAccount};

/// Gathers the evidence that every acknowledged write was there when all records were read back.
pub(super) fn nothing_lost(history: &FaultHistory<'_>) -> Evidence {
    let run = history.run;
    let phases = run.phases.len();
    let covered = |at: &usize| !is_beyond(history, *at);
    let mut promise = promise_of(history, promised(run.store.durability.level));
    let accounts: Vec<usize> = accounts(history, 0..=phases).collect();
    if !accounts.is_empty() && !accounts.iter().any(covered) {
        promise = None;
    }
    let question = Question { claimed: Claimed::NothingLost, promise, from: 0, is_of: None };
    question.best(history, accounts.into_iter()).unwrap_or_else(|| question.unread(history, phases))
}

/// Gathers the evidence that acknowledged writes survive the end of processes; `None` where nothing of the kind was
/// promised or done. Losses after a cut of power say nothing of it.
pub(super) fn survives_process_kill(history: &FaultHistory<'_>) -> Option<Evidence> {
    let until = history.first(is_cut).map_or(history.run.phases.len(), |cut| cut.saturating_sub(1));
    let is_cut_at_once = history.first(is_cut) == Some(0);
    let from = history.first(is_end).filter(|from| *from <= until && !is_cut_at_once);
    survives(history, Claimed::SurvivesProcessKill, FaultClass::ProcessEnd, is_end, (from, until))
}

/// Gathers the evidence that acknowledged writes survive a cut of power; `None` where nothing of the kind was promised or
/// done.
pub(super) fn survives_power_loss(history: &FaultHistory<'_>) -> Option<Evidence> {
    let span = (history.first(is_cut), history.run.phases.len());
    survives(history, Claimed::SurvivesPowerLoss, FaultClass::PowerLoss, is_cut, span)
}

fn survives(
    history: &FaultHistory<'_>,
    claimed: Claimed,
    fault: FaultClass,
    is_of: fn(&FaultResult) -> bool,
    (from, until): (Option<usize>, usize),
) -> Option<Evidence> {
    let level = promised(history.run.store.durability.level);
    let promise = promise_of(history, fault).filter(|_| level >= fault);
    let Some(from) = from else {
        return promise.map(|promise| Evidence::of(claimed, None, Some(promise)));
    };
    let question = Question { claimed, promise, from, is_of: Some(is_of) };
    let accounts = accounts(history, from..=until);
    Some(question.best(history, accounts).unwrap_or_else(|| question.unread(history, until)))
}

/// Returns the indices of phases with an account, in their order.
fn accounts(
    history: &FaultHistory<'_>,
    span: RangeInclusive<usize>,
) -> impl Iterator<Item = usize> {
    let phases = history.run.phases.iter().enumerate();
    phases.filter(move |(at, phase)| span.contains(at) && phase.writes.is_some()).map(|(at, _)| at)
}

/// Returns the promise; `None` for a store that may forget, where an absent record need not be lost.
fn promise_of(history: &FaultHistory<'_>, fault: FaultClass) -> Option<FaultModel> {
    let forgets = history.run.store.capabilities.may_forget;
    (!forgets).then_some(FaultModel { fault, ..FaultModel::default() })
}

/// A claim about acknowledged writes.
struct Question {
    claimed: Claimed,
    promise: Option<FaultModel>,
    /// Index of the first phase that the claim is about. Earlier losses do not count.
    from: usize,
    /// Predicate for the faults that the claim is about; `None` for all faults.
    is_of: Option<fn(&FaultResult) -> bool>,
}

/// Figures of an account of writes: of the whole, or of those inserts and deletes alone of which each was seen.
#[derive(Clone, Copy)]
struct WriteFigures {
    stake: u64,
    hidden: u64,
    lost: u64,
    /// Deletes that each phase saw undone right after it; a later phase may write over them.
    undone: u64,
    /// True if all records are covered, those of earlier phases, too.
    is_whole: bool,
}

impl Question {
    /// Chooses the piece of evidence that stands for the run. No piece takes back the finding of another: a refutation
    /// stays, the one that found most; else the latest that confirms; else the latest.
    fn best(
        &self,
        history: &FaultHistory<'_>,
        accounts: impl Iterator<Item = usize>,
    ) -> Option<Evidence> {
        let pieces = accounts.flat_map(|at| self.pieces(history, at));
        pieces.max_by_key(|piece| match piece.status() {
            EvidenceStatus::Refuted => (3, piece.violated()),
            EvidenceStatus::Observed => (2, found(piece)),
            EvidenceStatus::Confirmed => (1, 0),
            EvidenceStatus::Inconclusive(_) | EvidenceStatus::NothingToShow => (0, 0),
        })
    }

    /// Returns the evidence of the account at the end of a phase: as a whole and, where it cannot see all, of the inserts
    /// and deletes of the phases in question by themselves.
    fn pieces(&self, history: &FaultHistory<'_>, at: usize) -> Vec<Evidence> {
        let Some(account) = &history.run.phases[at].writes else { return Vec::new() };
        let stake = match account.exact {
            true => account.acknowledged,
            false => account.acknowledged.min(account.read),
        };
        // Where records were written twice, at least one write may be hidden.
        let hidden = account.acknowledged - stake.min(account.acknowledged);
        let hidden = if account.exact { 0 } else { hidden.max(u64::from(stake > 0)) };
        let whole = WriteFigures { stake, hidden, lost: account.lost, undone: 0, is_whole: true };
        let phases: Vec<usize> = (self.from..=at).collect();
        let mut pieces = vec![self.piece(history, at, account, (whole, &phases))];
        if let Some((figures, phases)) = self.seen(history, at).filter(|_| !account.exact) {
            pieces.push(self.piece(history, at, account, (figures, &phases)));
        }
        pieces
    }

    /// Sums up the inserts and deletes of all phases with faults of the kind up to this one, as far as each was seen;
    /// `None` where there are none.
    fn seen(&self, history: &FaultHistory<'_>, at: usize) -> Option<(WriteFigures, Vec<usize>)> {
        let is_of = self.is_of?;
        let mut figures = WriteFigures { stake: 0, hidden: 0, lost: 0, undone: 0, is_whole: false };
        let mut own = Vec::new();
        for (at, phase) in history.run.phases.iter().enumerate().take(at + 1) {
            let Some(account) = phase.writes.as_ref().filter(|_| phase.faults.iter().any(is_of))
            else {
                continue;
            };
            if let Some(inserts) = account.inserts {
                figures.stake = figures.stake.saturating_add(inserts.acknowledged);
                figures.lost = figures.lost.saturating_add(inserts.lost);
            }
            if let Some(deletes) = account.deletes {
                figures.stake = figures.stake.saturating_add(deletes.acknowledged);
                figures.undone = figures.undone.saturating_add(deletes.undone);
            }
            if account.inserts.is_some() || account.deletes.is_some() {
                own.push(at);
            }
        }
        (!own.is_empty()).then_some((figures, own))
    }

    fn piece(
        &self,
        history: &FaultHistory<'_>,
        at: usize,
        account: &WriteAccount,
        (figures, phases): (WriteFigures, &[usize]),
    ) -> Evidence {
        let mut evidence = Evidence::of(self.claimed, None, self.promise);
        let earlier = history.run.phases[..self.from].iter().rev();
        let before = earlier.filter_map(|phase| phase.writes.as_ref()).next();
        let excuse = self.excuse(history, at);
        let lost: Vec<u64> = account.examples.iter().map(|lost| lost.record).collect();
        // Wrong reads that no other run can have written, in the read-back behind the account.
        let reading = history.run.phases.get(at + 1).and_then(|phase| phase.tally.as_ref());
        let mut of_no_other = reading.map_or(0, |tally| tally.of_no_other);
        for (what, count) in broken(account, figures.lost, figures.undone) {
            let old = before.map_or(0, |before| of_kind(before, what));
            // New records could not be lost before.
            let own = if what == ViolationKind::Lost && !figures.is_whole { 0 } else { old };
            let records = if what == ViolationKind::Lost { &lost[..] } else { &[] };
            let mut count = count.saturating_sub(own);
            let has_excuse = excuse.filter(|reason| may_excuse(*reason, what));
            if has_excuse == Some(OpenReason::OtherRun) {
                let theirs = count.min(of_no_other);
                evidence.violate(what, theirs, records);
                (count, of_no_other) = (count - theirs, of_no_other - theirs);
            }
            match has_excuse {
                Some(reason) => evidence.excuse(reason, what, count, records),
                None => evidence.violate(what, count, records),
            }
            evidence.excuse(OpenReason::LostBefore, what, old, &[]);
        }
        let of_agents =
            account.of_lost.as_ref().map_or(0, |lost| lost.records.min(account.unknown));
        evidence.leave(OpenReason::AgentLost, of_agents);
        evidence.leave(OpenReason::NotReadBack, account.unknown - of_agents);
        evidence.hidden = figures.hidden;
        evidence.keep_rest_of(figures.stake);
        self.expose(history, phases, &mut evidence);
        if excuse == Some(OpenReason::DiskLied) {
            evidence.bar(OpenReason::DiskLied);
        }
        evidence
    }

    /// Adds the faults that were done to the store, and the planned ones that were not. Where a copy stayed lit, only
    /// lost writes are known to have been at stake.
    fn expose(&self, history: &FaultHistory<'_>, phases: &[usize], evidence: &mut Evidence) {
        let Some(is_of) = self.is_of else { return };
        evidence.exposure = history.exposure(phases.iter().copied(), is_of);
        let faults = || phases.iter().flat_map(|at| &history.run.phases[*at].faults);
        if faults().any(|fault| is_of(fault) && fault.error.is_some()) {
            evidence.bar(OpenReason::FaultNotDone);
        }
        let is_power = self.claimed == Claimed::SurvivesPowerLoss;
        if is_power && evidence.exposure.leaves_no_copy() && lie_elsewhere(history.run) {
            evidence.bar(OpenReason::LiesElsewhere);
        }
        for (_, repair) in history.failed_repairs(phases.iter().copied()) {
            evidence.bar(match repair.failure {
                Some(ActionFailure::ProcessEnded) => OpenReason::RepairFailed,
                Some(ActionFailure::Machine) => OpenReason::MachineFailed,
                _ => OpenReason::StillStarting,
            });
        }
        if !evidence.exposure.leaves_no_copy() {
            evidence.lit = std::mem::take(&mut evidence.kept);
            evidence.unexamined.clear();
            evidence.hidden = 0;
        }
    }

    /// Returns the reason for which losses by the end of a phase break no promise, if there is one.
    fn excuse(&self, history: &FaultHistory<'_>, at: usize) -> Option<OpenReason> {
        if history.machine_failed(at) {
            return Some(OpenReason::MachineFailed);
        }
        if history.disk_lied(at) {
            return Some(OpenReason::DiskLied);
        }
        if is_crowded(history) {
            return Some(OpenReason::OtherRun);
        }
        // A claim about a fault is asked only of a store that promises to survive it.
        let is_beyond = self.is_of.is_none() && self.promise.is_some() && is_beyond(history, at);
        is_beyond.then_some(OpenReason::BeyondPromise)
    }

    /// Returns the evidence where no record was read back after the phases in question.
    fn unread(&self, history: &FaultHistory<'_>, until: usize) -> Evidence {
        let mut evidence = Evidence::of(self.claimed, None, self.promise);
        let tallies = history.run.phases.iter().filter_map(|phase| phase.tally.as_ref());
        let written =
            tallies.fold(0, |sum: u64, tally| sum.saturating_add(tally.writes_acknowledged));
        evidence.leave(OpenReason::NotReadBack, written);
        let phases: Vec<usize> = (self.from..history.run.phases.len().min(until + 1)).collect();
        self.expose(history, &phases, &mut evidence);
        evidence
    }
}

/// Returns how much an account found broken, whether that breaks a promise or not.
fn found(piece: &Evidence) -> u64 {
    let excused = piece.excused.iter().map(|found| found.count);
    excused.fold(piece.violated(), u64::saturating_add)
}

/// Returns true if a reason may excuse a violation: corrupt bytes cannot come from another run.
fn may_excuse(reason: OpenReason, what: ViolationKind) -> bool {
    reason != OpenReason::OtherRun || what != ViolationKind::Corrupt
}

/// Lists the violations in an account, with the given number of losses, and at least the deletes that were seen undone.
fn broken(account: &WriteAccount, lost: u64, undone: u64) -> [(ViolationKind, u64); 4] {
    [
        (ViolationKind::Lost, lost),
        (ViolationKind::Corrupt, account.corrupt),
        (ViolationKind::Phantom, account.phantom),
        (ViolationKind::Resurrected, account.resurrected.max(undone)),
    ]
}

fn of_kind(account: &WriteAccount, what: ViolationKind) -> u64 {
    let all = broken(account, account.lost, 0);
    all.into_iter().find(|(kind, _)| *kind == what).map_or(0, |(_, count)| count)
}
