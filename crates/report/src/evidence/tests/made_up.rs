//! Made-up runs for the properties of any run.

use kvdyno_core::ground::random::mix64;
use kvdyno_core::store::{Durability, Promise};
use kvdyno_core::verify::{OtherWriter, Tally};
use kvdyno_core::workload::fault::ActionFailure;

use super::{SECOND, done, phase, run};
use crate::result::{
    CapacityResult, DeleteAccount, FaultAccount, FaultResult, InsertAccount, PhaseResult,
    ProbeResult, ShareRecovery, SideAccount, StoreRun, ThroughputRecovery, Undecided, WriteAccount,
};

/// Random made-up runs of some phases, from a seed: faults, repairs, accounts, tallies and searches of every kind.
pub(crate) struct Draws(u64);

impl Draws {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.0) % limit
    }

    fn small(&mut self) -> u64 {
        if self.below(3) > 0 { 0 } else { self.below(30) }
    }

    fn fault(&mut self, nodes: u64) -> FaultResult {
        const WHAT: [&str; 9] = [
            "kill",
            "power",
            "power",
            "start again",
            "pause",
            "resume",
            "disk-lies",
            "bit-rot",
            "restart",
        ];
        let what = WHAT[self.below(WHAT.len() as u64) as usize];
        let mut fault = done(what, self.below(nodes) as usize, self.below(20));
        if self.below(6) == 0 {
            let failures = [ActionFailure::Other, ActionFailure::ProcessEnded];
            fault.failure = Some(failures[self.below(2) as usize]);
            fault.error = Some("it was not done".to_owned());
        }
        fault
    }

    fn account(&mut self) -> WriteAccount {
        WriteAccount {
            acknowledged: self.below(2_000),
            exact: self.below(2) == 0,
            lost: self.small(),
            resurrected: self.small() / 9,
            corrupt: self.small() / 9,
            phantom: self.small() / 9,
            unknown: self.small() / 3,
            read: self.below(2_000),
            inserts: (self.below(2) == 0)
                .then(|| InsertAccount { acknowledged: self.below(900), lost: self.small() / 4 }),
            deletes: (self.below(3) == 0)
                .then(|| DeleteAccount { acknowledged: self.below(900), undone: self.small() / 9 }),
            ..WriteAccount::default()
        }
    }

    pub(super) fn phase(&mut self, number: u64, nodes: u64) -> PhaseResult {
        let mut faults: Vec<FaultResult> = (0..self.below(6)).map(|_| self.fault(nodes)).collect();
        faults.sort_by_key(|fault| fault.began_ns);
        let account = (self.below(2) == 0).then(|| self.account());
        let mut phase = phase(&format!("p{number}"), faults, account);
        phase.series[0].ok *= self.below(2);
        phase.account = (0..self.below(3)).map(|_| self.cost()).collect();
        phase.tally = (self.below(5) > 0).then(|| Tally {
            reads: 100_000 * self.below(2) + self.below(100),
            unknown: self.small(),
            other_run: self.small() / 12,
            other_writers: (self.below(12) == 0)
                .then_some(OtherWriter { session: 7, reads: 1 + self.small() })
                .into_iter()
                .collect(),
            of_no_other: self.small() / 12,
            anomalies: std::array::from_fn(|_| self.small() / 8),
            ..Tally::default()
        });
        phase
    }

    fn cost(&mut self) -> FaultAccount {
        let after_ns = [None, Some(0), Some(SECOND)][self.below(3) as usize];
        let throughput = ThroughputRecovery {
            usual_dip_ns: self.below(2) * SECOND / 5,
            shares: vec![ShareRecovery { share: 1.0, after_ns }],
            undecided: (self.below(4) == 0).then_some(Undecided::TooVaried),
            ..ThroughputRecovery::default()
        };
        let writes = SideAccount {
            unavailable_ns: (self.below(4) > 0).then(|| self.below(3 * SECOND)),
            throughput: (self.below(5) > 0).then_some(throughput),
            ..SideAccount::default()
        };
        let what = ["kill", "start again"][self.below(2) as usize].to_owned();
        FaultAccount { what, writes: Some(writes), ..FaultAccount::default() }
    }

    fn search(&mut self, phases: u64) -> CapacityResult {
        let rates = [100.0, 105.0];
        let mut probe = || ProbeResult {
            phase: format!("p{}", self.below(phases + 1)),
            purpose: ["bisect", "confirm"][self.below(2) as usize].to_owned(),
            asked: Some(rates[self.below(2) as usize]),
            seen: Some(["meets", "misses", "unclear", "overloaded"][self.below(4) as usize].into()),
            ..ProbeResult::default()
        };
        let probes = (0..6).map(|_| probe()).collect();
        CapacityResult {
            phase: "search".to_owned(),
            carried: (self.below(3) > 0).then_some(rates[0]),
            missed: (self.below(3) > 0).then_some(rates[1]),
            client_limited: (self.below(4) == 0).then(|| "the client was at its limit".to_owned()),
            probes,
            ..CapacityResult::default()
        }
    }

    fn run(&mut self) -> StoreRun {
        let nodes = 1 + self.below(3);
        let mut run = run(nodes as usize);
        let levels = [Durability::None, Durability::ProcessKill, Durability::PowerLoss];
        run.store.durability = Promise::declared(levels[self.below(3) as usize]);
        let phases = 1 + self.below(4);
        run.phases = (0..phases).map(|number| self.phase(number, nodes)).collect();
        run.capacity = (0..self.below(2)).map(|_| self.search(phases)).collect();
        run
    }
}

pub(crate) fn made_up(count: u64) -> impl Iterator<Item = (Draws, StoreRun)> {
    (0..count).map(|seed| {
        let mut draws = Draws(mix64(seed));
        let run = draws.run();
        (draws, run)
    })
}
