//! Properties of the evidence of any run.

use kvdyno_core::evidence::{Claimed, EvidenceStatus, ViolationKind};

use super::made_up::made_up;
use crate::evidence::{of, outcome, outcomes};
use crate::result::{EvidenceResult, StoreRun};

fn statuses(run: &StoreRun) -> Vec<(Claimed, Option<String>, EvidenceStatus)> {
    of(run).into_iter().map(|one| (one.claimed, one.phase.clone(), one.status())).collect()
}

#[test]
fn of_any_run_lost_is_a_part_of_the_stake_and_nothing_is_confirmed_without_one() {
    for (_, run) in made_up(2_000) {
        for evidence in of(&run) {
            assert!(evidence.found(ViolationKind::Lost) <= evidence.stake(), "{evidence:?}");
            let is_confirmed = evidence.status() == EvidenceStatus::Confirmed;
            assert!(!is_confirmed || evidence.stake() > 0, "{evidence:?}");
        }
    }
}

#[test]
fn a_later_phase_takes_no_violation_back_unless_what_it_shows_is_that_another_run_was_there() {
    for (mut draws, mut run) in made_up(2_000) {
        let before = statuses(&run);
        let mut later = draws.phase(9, 1);
        if let Some(tally) = &mut later.tally {
            (tally.other_run, tally.other_writers) = (0, Vec::new());
        }
        run.phases.push(later);
        let after = statuses(&run);
        for (claimed, phase, status) in before {
            let now = after.iter().find(|one| (one.0, &one.1) == (claimed, &phase));
            let now = now.expect("what was claimed is claimed still").2;
            if status == EvidenceStatus::Refuted {
                assert_eq!(now, EvidenceStatus::Refuted, "{claimed:?} {phase:?}: {run:?}");
            }
        }
    }
}

#[test]
fn in_any_run_more_that_is_lost_makes_nothing_better_and_less_that_was_read_confirms_nothing() {
    for (mut draws, run) in made_up(2_000) {
        let before = statuses(&run);
        let at = draws.below(run.phases.len() as u64) as usize;
        let (mut worse, mut blind) = (run.clone(), run.clone());
        if let Some(account) = &mut worse.phases[at].writes {
            account.lost += 1 + draws.below(5);
        }
        if let Some(account) = &mut blind.phases[at].writes {
            account.unknown += 1 + draws.below(5);
        }
        for (claimed, phase, status) in before {
            let of = |run: &StoreRun| {
                let all = statuses(run);
                all.into_iter()
                    .find(|one| (one.0, &one.1) == (claimed, &phase))
                    .expect("the same")
                    .2
            };
            if status != EvidenceStatus::Confirmed {
                assert_ne!(of(&worse), EvidenceStatus::Confirmed, "{claimed:?}: {run:?}");
                assert_ne!(of(&blind), EvidenceStatus::Confirmed, "{claimed:?}: {run:?}");
            }
            // Losses from before a fault are not blamed on it; for the run as a whole they stay losses.
            if status == EvidenceStatus::Refuted && claimed == Claimed::NothingLost {
                assert_eq!(of(&worse), EvidenceStatus::Refuted, "{run:?}");
            }
        }
    }
}

#[test]
fn in_any_run_less_that_a_search_has_seen_confirms_nothing() {
    for (_, run) in made_up(2_000) {
        let (mut unclear, mut unconfirmed) = (run.clone(), run.clone());
        for probe in unclear.capacity.iter_mut().flat_map(|found| &mut found.probes) {
            probe.seen =
                probe.seen.take().filter(|seen| seen == "meets").or(Some("unclear".into()));
        }
        for found in &mut unconfirmed.capacity {
            found.probes.retain(|probe| !probe.confirms());
        }
        let of_limit = statuses(&unclear).into_iter().find(|one| one.0 == Claimed::OwnLimit);
        assert!(of_limit.is_none_or(|one| one.2 != EvidenceStatus::Confirmed), "{run:?}");
        let of_rate = statuses(&unconfirmed).into_iter().find(|one| one.0 == Claimed::MetObjective);
        assert!(of_rate.is_none_or(|one| one.2 != EvidenceStatus::Confirmed), "{run:?}");
    }
}

/// Evidence in the result equals that behind test cases and exit codes, also after it was written and read.
#[test]
fn of_any_run_the_result_holds_what_is_judged() {
    for (_, run) in made_up(300) {
        let told: Vec<EvidenceResult> = of(&run).into_iter().map(EvidenceResult::from).collect();
        let text = serde_json::to_string(&told).unwrap();
        let again: Vec<EvidenceResult> = serde_json::from_str(&text).unwrap();
        for (told, (evidence, judged)) in again.iter().zip(outcomes(&run)) {
            let status = told.evidence.status();
            assert_eq!(told.status, status.name().replace(' ', "-"));
            assert_eq!(outcome(status, evidence.claimed.is_asked()), judged, "{evidence:?}");
        }
    }
}
