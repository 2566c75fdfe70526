//! What cuts of power in a run have shown of a store's durability: a setting that was read back is a promise, and
//! what is there after cuts is what became of it.

use std::collections::BTreeSet;

use kvdyno_core::ground::numbers::{grouped, significant};
use kvdyno_core::ground::share_bound::largest_share;
use kvdyno_core::store::Durability;
use kvdyno_core::workload::fault::{BIT_ROT, DISK_LIES, POWER};

use crate::result::{InsertAccount, PhaseResult, StoreRun, WriteAccount};

/// Of no loss in some cuts it is told how many cuts may lose any all the same, so surely.
const SURE: f64 = 0.95;

/// What became of acknowledged writes when power was cut.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerCuts {
    /// Moments at which power was cut.
    pub cuts: u64,
    /// Writes that were acknowledged, of those that the cuts could take: of all phases if no record was written twice,
    /// else of the phases with cuts that only inserted.
    pub acknowledged: u64,
    /// Of these, those that are gone.
    pub lost: u64,
    /// Other acknowledged writes that are gone since the first cut; there may be more.
    pub others: u64,
    /// Acknowledged writes that were gone before the first cut.
    pub before: u64,
    /// Each write that is gone is seen to be; if not, there may be more.
    pub exact: bool,
    /// Records that hold what they must not, or of which it cannot be told.
    pub wrong: u64,
    /// The disk did not keep what it had flushed, or said that it had: what is gone is no store's doing, and that
    /// nothing is gone shows nothing.
    pub disk_at_fault: bool,
}

/// How far a promise of durability is known, in one word or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownHow {
    /// The store, or its URL, says so.
    Declared,
    /// Its settings say so.
    ReadBack,
    /// Power was cut, and nothing was gone.
    Shown,
    /// Power was cut, and something was gone that should not be.
    Refuted,
}

impl KnownHow {
    /// What is known of what this run's store promises.
    pub fn of(run: &StoreRun) -> KnownHow {
        let promise = run.store.durability;
        match PowerCuts::of(run) {
            Some(cuts) if cuts.refutes(promise.level) => KnownHow::Refuted,
            Some(cuts) if cuts.shows(promise.level) => KnownHow::Shown,
            _ if promise.checked => KnownHow::ReadBack,
            _ => KnownHow::Declared,
        }
    }

    /// In words, to stand behind the promise.
    pub fn told(self) -> &'static str {
        match self {
            KnownHow::Declared => "declared",
            KnownHow::ReadBack => "setting read back",
            KnownHow::Shown => "shown",
            KnownHow::Refuted => "refuted",
        }
    }
}

/// A promise of durability with how far it is known, in few words: `survives power loss (setting read back)`.
pub(crate) fn durability_text(run: &StoreRun) -> String {
    format!("{} ({})", run.store.durability.level.describe(), KnownHow::of(run).told())
}

/// Moments at which the power of some node was cut.
fn moments(phase: &PhaseResult) -> u64 {
    let done = phase.faults.iter().filter(|fault| fault.was(&POWER) && fault.error.is_none());
    done.map(|fault| fault.began_ns).collect::<BTreeSet<u64>>().len() as u64
}

impl PowerCuts {
    /// What a run has shown; `None` if no power was cut, or nothing was read back after that.
    #[must_use]
    pub fn of(run: &StoreRun) -> Option<PowerCuts> {
        let first = run.phases.iter().position(|phase| moments(phase) > 0)?;
        let after = || run.phases.iter().enumerate().skip(first);
        let accounts: Vec<(usize, &WriteAccount)> =
            after().filter_map(|(at, phase)| Some((at, phase.writes.as_ref()?))).collect();
        let exact = accounts.iter().rev().find(|(_, account)| account.exact);
        let (at, told) = exact.or(accounts.last())?;
        let wrong = |account: &WriteAccount| {
            account.corrupt + account.resurrected + account.phantom + account.unknown
        };
        let earlier = run.phases[..first].iter().rev().find_map(|phase| phase.writes.as_ref());
        let before = earlier.map_or(0, |account| account.lost);
        let gone = accounts.iter().map(|(_, account)| account.lost).max().unwrap_or(0);
        let all = PowerCuts {
            cuts: run.phases[..=*at].iter().map(moments).sum(),
            acknowledged: told.acknowledged,
            lost: gone.saturating_sub(before),
            others: 0,
            before,
            exact: told.exact,
            wrong: accounts.iter().map(|(_, account)| wrong(account)).max().unwrap_or(0),
            disk_at_fault: run.phases.iter().flat_map(|phase| &phase.faults).any(|fault| {
                fault.error.is_none() && (fault.was(&DISK_LIES) || fault.was(&BIT_ROT))
            }),
        };
        Some(if all.exact { all } else { all.of_inserts(run) })
    }

    /// The same of those phases alone whose own writes were all inserts, if there are such: of these nothing was written
    /// over, whatever else the run did.
    fn of_inserts(self, run: &StoreRun) -> PowerCuts {
        let cut = run.phases.iter().filter(|phase| moments(phase) > 0);
        let own: Vec<(u64, InsertAccount)> = cut
            .filter_map(|phase| Some((moments(phase), phase.writes.as_ref()?.inserts?)))
            .collect();
        if own.is_empty() {
            return self;
        }
        let lost = own.iter().map(|(_, inserts)| inserts.lost).sum();
        PowerCuts {
            cuts: own.iter().map(|(cuts, _)| cuts).sum(),
            acknowledged: own.iter().map(|(_, inserts)| inserts.acknowledged).sum(),
            lost,
            others: self.lost.saturating_sub(lost),
            exact: true,
            ..self
        }
    }

    /// Every acknowledged write was there after each cut, and none could have hidden.
    #[must_use]
    pub fn shows_survival(&self) -> bool {
        let gone = self.lost + self.others + self.before;
        let sure = self.exact && self.acknowledged > 0 && gone == 0;
        self.cuts > 0 && sure && self.wrong == 0 && !self.disk_at_fault
    }

    /// It shows what is promised. That nothing was lost of a store which does not promise that is an observation.
    #[must_use]
    pub fn shows(&self, promised: Durability) -> bool {
        self.shows_survival() && promised == Durability::PowerLoss
    }

    /// What is promised was not kept.
    #[must_use]
    pub fn refutes(&self, promised: Durability) -> bool {
        self.lost + self.others > 0 && promised == Durability::PowerLoss && !self.disk_at_fault
    }

    /// In words, beside a promise of this level.
    #[must_use]
    pub fn text(&self, promised: Durability) -> String {
        let figures = self.figures();
        match () {
            () if self.disk_at_fault => format!(
                "{figures} on a disk that did not keep what was synced, which says nothing of the store"
            ),
            () if self.shows(promised) => format!("shown by this run: {figures}"),
            () if self.refutes(promised) => format!("refuted by this run: {figures}"),
            () => figures,
        }
    }

    /// The figures in words, without what they mean: `10 cuts of power, 0 of 48,211 acknowledged writes lost; …`.
    #[must_use]
    pub fn figures(&self) -> String {
        let count = |count: u64| grouped(count as f64);
        let mut text = match self.cuts {
            1 => "1 cut of power, ".to_owned(),
            cuts => format!("{cuts} cuts of power, "),
        };
        if !self.exact {
            text += "at least ";
        }
        let (lost, acknowledged) = (count(self.lost), count(self.acknowledged));
        text += &format!("{lost} of {acknowledged} acknowledged writes lost");
        for (number, what) in [
            (self.others, "earlier writes lost"),
            (self.before, "lost before the first cut"),
            (self.wrong, "records wrong or not told"),
        ] {
            if number > 0 {
                text += &format!(", {} {what}", count(number));
            }
        }
        if self.shows_survival() {
            let most = significant(largest_share(0, self.cuts, SURE) * 100.0);
            text += &format!("; at most {most} % of cuts lose any ({} %)", SURE * 100.0);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::FaultResult;
    use crate::sample;
    use kvdyno_core::store::Promise;

    fn account(exact: bool, lost: u64) -> WriteAccount {
        WriteAccount { acknowledged: 48_211, exact, lost, ..WriteAccount::default() }
    }

    fn run(cuts: u64, accounts: &[WriteAccount]) -> StoreRun {
        let mut run = sample::two_stores().runs.remove(0);
        let phase = run.phases.remove(0);
        run.phases.clear();
        for account in accounts {
            let fault = |cut: u64| FaultResult {
                what: "power".into(),
                began_ns: cut / 2,
                ..FaultResult::default()
            };
            // Two nodes at each moment.
            let faults = (0..2 * cuts).map(fault).collect();
            run.phases.push(PhaseResult { faults, writes: Some(account.clone()), ..phase.clone() });
        }
        run
    }

    fn told(cuts: u64, accounts: &[WriteAccount], promised: Durability) -> String {
        PowerCuts::of(&run(cuts, accounts)).unwrap().text(promised)
    }

    #[test]
    fn ten_cuts_without_a_loss_show_how_far_that_is_sure() {
        assert_eq!(
            told(10, &[account(true, 0)], Durability::PowerLoss),
            "shown by this run: 10 cuts of power, 0 of 48,211 acknowledged writes lost; at most 25.9 % of cuts lose any (95 %)"
        );
    }

    #[test]
    fn what_was_lost_refutes_the_promise_and_only_that() {
        let lost = [account(true, 27_009)];
        let words = "1 cut of power, 27,009 of 48,211 acknowledged writes lost";
        assert_eq!(told(1, &lost, Durability::PowerLoss), format!("refuted by this run: {words}"));
        assert_eq!(told(1, &lost, Durability::None), words);
    }

    /// As in `standard-2`: earlier phases write over records, and a kill may take some. What the phase with the cuts
    /// inserted is counted apart.
    #[test]
    fn inserts_of_their_own_phase_show_what_they_show_whatever_was_written_over_before() {
        let own = |acknowledged, lost| Some(InsertAccount { acknowledged, lost });
        let cut = |lost, inserts| {
            let whole = WriteAccount { inserts, ..account(false, lost) };
            let mut run = run(10, &[whole]);
            let mut killed = run.phases[0].clone();
            killed.faults.clear();
            killed.writes = Some(account(false, 0));
            run.phases.insert(0, killed);
            run
        };
        let text = |run: &StoreRun| PowerCuts::of(run).unwrap().text(Durability::PowerLoss);
        assert_eq!(
            text(&cut(0, own(900, 0))),
            "shown by this run: 10 cuts of power, 0 of 900 acknowledged writes lost; at most 25.9 % of cuts lose any (95 %)"
        );
        assert_eq!(
            text(&cut(7, own(900, 5))),
            "refuted by this run: 10 cuts of power, 5 of 900 acknowledged writes lost, 2 earlier writes lost"
        );
        // A phase that wrote over what it wrote shows nothing.
        assert!(text(&cut(0, None)).starts_with("10 cuts of power, at least 0 of 48,211"));
        assert!(
            !PowerCuts::of(&cut(0, own(0, 0))).unwrap().shows_survival(),
            "nothing was at stake"
        );
        // What a kill took before is no cut's doing, and is not passed over either.
        let mut killed = cut(3, own(900, 0));
        killed.phases[0].writes = Some(account(false, 3));
        assert_eq!(
            text(&killed),
            "10 cuts of power, 0 of 900 acknowledged writes lost, 3 lost before the first cut"
        );
    }

    #[test]
    fn a_promise_is_declared_read_back_shown_or_refuted() {
        let told = |cuts, lost, promise| {
            let mut run = run(cuts, &[account(true, lost)]);
            run.store.durability = promise;
            durability_text(&run)
        };
        let power = Durability::PowerLoss;
        assert_eq!(told(0, 0, Promise::declared(power)), "survives power loss (declared)");
        assert_eq!(told(0, 0, Promise::checked(power)), "survives power loss (setting read back)");
        assert_eq!(told(9, 0, Promise::declared(power)), "survives power loss (shown)");
        assert_eq!(told(9, 1, Promise::checked(power)), "survives power loss (refuted)");
        // It does not promise it: nothing is shown of what it promises.
        let kill = Promise::checked(Durability::ProcessKill);
        assert_eq!(told(9, 0, kill), "survives process kill (setting read back)");
    }

    /// Neither shown nor refuted: no store can do anything about it.
    #[test]
    fn a_disk_that_lies_says_nothing_of_the_store() {
        for (lost, cuts) in [(0, 10), (27, 1)] {
            let mut run = run(cuts, &[account(true, lost)]);
            let lies = FaultResult { what: "disk-lies".into(), ..FaultResult::default() };
            run.phases[0].faults.insert(0, lies);
            let cuts = PowerCuts::of(&run).unwrap();
            assert!(cuts.disk_at_fault && !cuts.shows_survival());
            let told = cuts.text(Durability::PowerLoss);
            assert!(!told.starts_with("shown") && !told.starts_with("refuted"), "{told}");
            let figures = format!(", {lost} of 48,211 acknowledged writes lost");
            let end =
                " on a disk that did not keep what was synced, which says nothing of the store";
            assert!(told.contains(&figures) && told.ends_with(end), "{told}");
            assert_eq!(KnownHow::of(&run), KnownHow::ReadBack);
            let mut refused = run.clone();
            refused.phases[0].faults[0].error = Some("it could not".into());
            assert!(!PowerCuts::of(&refused).unwrap().disk_at_fault);
        }
    }

    #[test]
    fn updates_alone_show_no_survival_and_nothing_is_hidden_by_a_later_account() {
        let updates = told(3, &[account(false, 0)], Durability::PowerLoss);
        assert_eq!(updates, "3 cuts of power, at least 0 of 48,211 acknowledged writes lost");
        let both = PowerCuts::of(&run(3, &[account(true, 0), account(false, 2)])).unwrap();
        assert_eq!((both.cuts, both.lost, both.shows_survival()), (3, 2, false));
        let mut wrong = account(true, 0);
        wrong.corrupt = 1;
        assert!(!PowerCuts::of(&run(3, &[wrong])).unwrap().shows_survival());
        assert_eq!(PowerCuts::of(&run(0, &[account(true, 0)])), None);
    }
}
