//! The table of statuses, and what holds of any evidence: thousands of made-up pieces, from a seed.

use super::*;
use crate::ground::random::mix64;

const CASES: u64 = 20_000;
const CLAIMED: [Claimed; 7] = [
    Claimed::ReadsRight,
    Claimed::Linearizable,
    Claimed::NothingLost,
    Claimed::SurvivesProcessKill,
    Claimed::SurvivesPowerLoss,
    Claimed::CameBack,
    Claimed::Condition,
];
const WAYS: [ViolationKind; 8] = [
    ViolationKind::Lost,
    ViolationKind::Corrupt,
    ViolationKind::Phantom,
    ViolationKind::Resurrected,
    ViolationKind::Stale,
    ViolationKind::Contradiction,
    ViolationKind::NotBack,
    ViolationKind::Missed,
];

/// Random draws of one case; small numbers are frequent, because statuses change there.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.0)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn count(&mut self) -> u64 {
        match self.below(4) {
            0 => 0,
            1 => 1 + self.below(3),
            2 => self.below(100_000),
            _ => self.below(1 << 40),
        }
    }

    /// Draws evidence, with every field of it.
    fn evidence(&mut self) -> Evidence {
        let model = FaultModel {
            fault: self.of(&[FaultClass::Running, FaultClass::ProcessEnd, FaultClass::PowerLoss]),
            copies: self.of(&[CopiesReached::All, CopiesReached::Some]),
            disk: self.of(&[Disk::HonoursFlushes, Disk::Any]),
        };
        let promise = (!self.one_in(6)).then_some(model);
        let phase = self.one_in(2).then_some("phase");
        let mut made = Evidence::of(self.of(&CLAIMED), phase, promise);
        made.exposure = Exposure {
            moments: self.below(4),
            nodes: self.below(4),
            together: self.below(4),
            ..Exposure::default()
        };
        made.kept = self.count();
        for _ in 0..self.below(3) {
            let (what, count) = (self.of(&WAYS), self.count());
            let records: Vec<u64> = (0..self.below(14)).collect();
            match self.below(4) {
                0 => made.violate(what, count, &records),
                1 => made.excuse(self.of(&OpenReason::ALL), what, count, &records),
                _ => {}
            }
        }
        for _ in 0..self.below(2) {
            let left = self.count();
            made.leave(self.of(&OpenReason::ALL), left);
        }
        made.hidden = if self.one_in(3) { self.count() } else { 0 };
        made.lit = if self.one_in(3) { self.count() } else { 0 };
        if self.one_in(4) {
            made.bar(self.of(&OpenReason::ALL));
        }
        made
    }
}

fn cases() -> impl Iterator<Item = (Draws, Evidence)> {
    (0..CASES).map(|seed| {
        let mut draws = Draws(mix64(seed));
        let made = draws.evidence();
        (draws, made)
    })
}

fn sound() -> Evidence {
    let mut sound = Evidence::of(Claimed::NothingLost, None, Some(FaultModel::default()));
    sound.kept = 100;
    sound
}

#[test]
fn the_table_is_read_from_above() {
    let status = |change: &dyn Fn(&mut Evidence)| {
        let mut evidence = sound();
        change(&mut evidence);
        evidence.status()
    };
    assert_eq!(status(&|_| {}), EvidenceStatus::Confirmed);
    assert_eq!(status(&|e| e.kept = 0), EvidenceStatus::NothingToShow);
    let lost = |e: &mut Evidence| e.violate(ViolationKind::Lost, 1, &[7]);
    assert_eq!(status(&lost), EvidenceStatus::Refuted);
    // Redis without a log loses and breaks nothing.
    let no_promise = |e: &mut Evidence| {
        lost(e);
        e.promise = None;
    };
    assert_eq!(status(&no_promise), EvidenceStatus::Observed);
    let undone = |e: &mut Evidence| e.bar(OpenReason::FaultNotDone);
    assert_eq!(status(&undone), EvidenceStatus::Inconclusive(OpenReason::FaultNotDone));
    let both = |e: &mut Evidence| {
        undone(e);
        lost(e);
    };
    assert_eq!(status(&both), EvidenceStatus::Refuted, "a repair undone takes nothing back");
    let lied = |e: &mut Evidence| e.excuse(OpenReason::DiskLied, ViolationKind::Lost, 3, &[]);
    assert_eq!(status(&lied), EvidenceStatus::Inconclusive(OpenReason::DiskLied));
    let one_left = |e: &mut Evidence| e.leave(OpenReason::NotReadBack, 1);
    assert_eq!(status(&one_left), EvidenceStatus::Inconclusive(OpenReason::NotReadBack));
    let over = |e: &mut Evidence| e.hidden = 1;
    assert_eq!(status(&over), EvidenceStatus::Inconclusive(OpenReason::Overwritten));
    // Everything of it was somewhere else, too.
    let lit = |e: &mut Evidence| (e.lit, e.kept) = (e.kept, 0);
    assert_eq!(status(&lit), EvidenceStatus::NothingToShow);
}

#[test]
fn of_reads_one_in_ten_thousand_may_be_unexamined_and_counts_as_broken_in_the_bound() {
    let reads = |kept, left| {
        let mut reads = Evidence::of(Claimed::ReadsRight, None, Some(FaultModel::default()));
        reads.kept = kept;
        reads.leave(OpenReason::NotJudged, left);
        reads
    };
    assert_eq!(reads(9_999, 1).status(), EvidenceStatus::Confirmed);
    assert_eq!(reads(9_998, 2).status(), EvidenceStatus::Inconclusive(OpenReason::NotJudged));
    assert_eq!(reads(0, 0).status(), EvidenceStatus::NothingToShow, "no read, no pass");
    let share = |kept, left| reads(kept, left).bound().unwrap().share;
    assert!(share(10_000, 0) < 3e-4 && share(9_999, 1) > 4e-4);
    assert_eq!(reads(0, 0).bound(), None);
    // Where it is approximated it is not below what it was.
    assert!(share(100_000_000, 1_001) > share(100_000_000, 1_000));
}

#[test]
fn copies_that_stayed_lit_are_not_at_stake() {
    let dark = |nodes, together| {
        Exposure { moments: 5, nodes, together, ..Exposure::default() }.leaves_no_copy()
    };
    assert!(!dark(3, 1) && !dark(3, 2) && dark(3, 3) && dark(1, 1) && dark(0, 1));
    assert!(!dark(0, 0) && !Exposure::default().leaves_no_copy());
}

#[test]
fn violations_are_monotone() {
    for (mut draws, before) in cases() {
        let mut after = before.clone();
        after.violate(draws.of(&WAYS), 1 + draws.count(), &[]);
        let expected = if before.promise.is_some() {
            EvidenceStatus::Refuted
        } else {
            EvidenceStatus::Observed
        };
        assert_eq!(after.status(), expected, "{before:?}");
    }
}

#[test]
fn examination_taken_away_never_confirms() {
    for (mut draws, before) in cases() {
        let mut less = before.clone();
        let taken = draws.count().min(less.kept);
        less.kept -= taken;
        if draws.one_in(2) {
            less.leave(draws.of(&OpenReason::ALL), taken);
        }
        let (was, is) = (before.status(), less.status());
        assert!(
            was == EvidenceStatus::Confirmed || is != EvidenceStatus::Confirmed,
            "{before:?} {less:?}"
        );
        if was == EvidenceStatus::Confirmed {
            assert!(
                !matches!(is, EvidenceStatus::Refuted | EvidenceStatus::Observed),
                "{before:?} {less:?}"
            );
        }
        // Of losses none may go unseen, not even one that would have refuted.
        let mut unseen = before.clone();
        let broken = unseen.violated();
        unseen.violations.clear();
        unseen.leave(draws.of(&OpenReason::ALL), broken);
        if broken > 0 && unseen.claimed.tolerance() == 0.0 {
            assert_ne!(unseen.status(), EvidenceStatus::Confirmed, "{before:?}");
        }
    }
}

#[test]
fn nothing_is_confirmed_with_nothing_at_stake_and_no_part_is_larger_than_the_stake() {
    for (_, evidence) in cases() {
        let stake = evidence.stake();
        if evidence.status() == EvidenceStatus::Confirmed {
            assert!(stake > 0 && evidence.examined() > 0, "{evidence:?}");
            assert!(evidence.violated() == 0 && evidence.bars.is_empty(), "{evidence:?}");
        }
        assert!(evidence.violated() <= stake && evidence.found(ViolationKind::Lost) <= stake);
        assert_eq!(stake, evidence.examined() + evidence.left());
        let examples = evidence.violations.iter().chain(&evidence.excused);
        assert!(examples.map(|found| found.records.len()).max() <= Some(EXAMPLES_MOST));
        if let Some(Bound { trials, share }) = evidence.bound() {
            assert!(trials > 0 && (0.0..=1.0).contains(&share), "{evidence:?}");
        }
    }
}

#[test]
fn the_order_of_its_parts_does_not_matter() {
    for (_, evidence) in cases() {
        let mut turned = evidence.clone();
        turned.violations.reverse();
        turned.excused.reverse();
        turned.unexamined.reverse();
        turned.bars.reverse();
        assert_eq!(turned.status(), evidence.status(), "{evidence:?}");
        assert_eq!(turned.stake(), evidence.stake());
    }
}

#[test]
fn evidence_is_the_same_after_it_was_written_and_read() {
    for (_, evidence) in cases().take(200) {
        let text = serde_json::to_string(&evidence).unwrap();
        assert_eq!(serde_json::from_str::<Evidence>(&text).unwrap(), evidence);
    }
}
