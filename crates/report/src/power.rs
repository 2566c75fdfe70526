//! What cuts of power in a run have shown of a store's durability: a setting that was read back is a promise, and
//! what is there after cuts is what became of it.

use std::collections::BTreeSet;

use kvdyno_core::ground::numbers::{grouped, significant};
use kvdyno_core::ground::share_bound::largest_share;
use kvdyno_core::store::Durability;
use kvdyno_core::workload::fault::{BIT_ROT, DISK_LIES, POWER};

use crate::result::{PhaseResult, StoreRun, WriteAccount};

/// Of no loss in some cuts it is told how many cuts may lose any all the same, so surely.
const SURE: f64 = 0.95;

/// What became of acknowledged writes when power was cut.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerCuts {
    /// Moments at which power was cut.
    pub cuts: u64,
    /// Writes that were acknowledged, of those that the cuts could take.
    pub acknowledged: u64,
    /// Of these, those that are gone.
    pub lost: u64,
    /// Each write that is gone is seen to be; if not, there may be more.
    pub exact: bool,
    /// Records that hold what they must not, or of which it cannot be told.
    pub wrong: u64,
    /// The disk did not keep what it had flushed, or said that it had: what is gone is no store's doing, and that
    /// nothing is gone shows nothing.
    pub disk_at_fault: bool,
}

impl PowerCuts {
    /// What a run has shown; `None` if no power was cut, or nothing was read back after that.
    #[must_use]
    pub fn of(run: &StoreRun) -> Option<PowerCuts> {
        let cut = |phase: &PhaseResult| {
            let moments = phase.faults.iter().filter(|fault| fault.was(&POWER));
            moments.map(|fault| fault.began_ns).collect::<BTreeSet<u64>>().len() as u64
        };
        let first = run.phases.iter().position(|phase| cut(phase) > 0)?;
        let after = || run.phases.iter().enumerate().skip(first);
        let accounts: Vec<(usize, &WriteAccount)> =
            after().filter_map(|(at, phase)| Some((at, phase.writes.as_ref()?))).collect();
        let exact = accounts.iter().rev().find(|(_, account)| account.exact);
        let (at, told) = exact.or(accounts.last())?;
        let wrong = |account: &WriteAccount| {
            account.corrupt + account.resurrected + account.phantom + account.unknown
        };
        Some(PowerCuts {
            cuts: run.phases[..=*at].iter().map(cut).sum(),
            acknowledged: told.acknowledged,
            lost: accounts.iter().map(|(_, account)| account.lost).max().unwrap_or(0),
            exact: told.exact,
            wrong: accounts.iter().map(|(_, account)| wrong(account)).max().unwrap_or(0),
            disk_at_fault: run.phases.iter().flat_map(|phase| &phase.faults).any(|fault| {
                fault.error.is_none() && (fault.was(&DISK_LIES) || fault.was(&BIT_ROT))
            }),
        })
    }

    /// Every acknowledged write was there after each cut, and none could have hidden.
    #[must_use]
    pub fn shows_survival(&self) -> bool {
        self.cuts > 0 && self.exact && self.lost == 0 && self.wrong == 0 && !self.disk_at_fault
    }

    /// In words, beside a promise of this level.
    #[must_use]
    pub fn text(&self, promised: Durability) -> String {
        let cuts = match self.cuts {
            1 => "1 cut of power".to_owned(),
            cuts => format!("{cuts} cuts of power"),
        };
        let acknowledged = grouped(self.acknowledged as f64);
        let lost = format!(
            "{}{} of {acknowledged} acknowledged writes lost",
            if self.exact { "" } else { "at least " },
            grouped(self.lost as f64)
        );
        let wrong = match self.wrong {
            0 => String::new(),
            wrong => format!(", {} records wrong or not told", grouped(wrong as f64)),
        };
        if self.disk_at_fault {
            return format!(
                "{cuts} on a disk that did not keep what was synced: {lost}{wrong}, which says nothing of the store"
            );
        }
        match (self.shows_survival(), self.lost > 0 && promised == Durability::PowerLoss) {
            (true, _) => {
                let most = significant(largest_share(0, self.cuts, SURE) * 100.0);
                format!(
                    "shown: {cuts}, {lost}; at most {most} % of cuts lose any ({} %)",
                    SURE * 100.0
                )
            }
            (_, true) => format!("refuted: {cuts}, {lost}{wrong}"),
            _ => format!("{cuts}, {lost}{wrong}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::FaultResult;
    use crate::sample;

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
            "shown: 10 cuts of power, 0 of 48,211 acknowledged writes lost; at most 25.9 % of cuts lose any (95 %)"
        );
    }

    #[test]
    fn what_was_lost_refutes_the_promise_and_only_that() {
        let lost = [account(true, 27_009)];
        let words = "1 cut of power, 27,009 of 48,211 acknowledged writes lost";
        assert_eq!(told(1, &lost, Durability::PowerLoss), format!("refuted: {words}"));
        assert_eq!(told(1, &lost, Durability::None), words);
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
            let lost = format!("not keep what was synced: {lost} of 48,211 acknowledged writes");
            assert!(told.contains(&lost) && told.ends_with("says nothing of the store"), "{told}");
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
