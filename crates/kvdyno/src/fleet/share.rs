//! The share of each agent in a phase. The clients are dealt out. Either all agents draw the same operations, and
//! each carries out those of its own records; or each draws operations of its own.

use kvdyno_core::workload::{GroupPlan, Ownership, Part, PhasePlan};

use super::reads::ReadsFrom;

/// Division of the load between several agents, with the number of one of them.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    /// Records that the agents read.
    pub reads: ReadsFrom,
    /// Number of this agent, zero-based.
    pub index: u32,
    /// Number of agents, at least 1.
    pub count: u32,
}

impl Division {
    /// Returns the part of the operations that the agent draws.
    pub fn part(self) -> Part {
        let Division { reads, index, count } = self;
        if reads == ReadsFrom::Anywhere { Part { index, count } } else { Part::WHOLE }
    }

    /// Returns the ownership of records: the agent carries out the operations of its own.
    pub fn ownership(self) -> Ownership {
        let Division { reads, index, count } = self;
        if reads == ReadsFrom::Own { Ownership::new(index, count) } else { Ownership::ALL }
    }

    /// Returns how many of the records 0..`records` are its own.
    pub fn own(self, records: u64) -> u64 {
        match self.reads {
            ReadsFrom::Own => self.ownership().own(records).count() as u64,
            ReadsFrom::Anywhere => {
                records.saturating_sub(self.index.into()).div_ceil(self.count.into())
            }
        }
    }
}

/// Returns the phase as one agent carries it: with its share of each group's connections. In a phase that only makes
/// records ready, or looks at them, every agent has at least one connection.
pub fn share_of(phase: &PhasePlan, division: Division) -> PhasePlan {
    let Division { index, count, .. } = division;
    let mut share = phase.clone();
    for group in &mut share.groups {
        let all = connections(group);
        let own = all / count + u32::from(index < all % count);
        let own = if phase.load { own.max(1) } else { own };
        let clients = own * group.pipeline.max(1);
        group.clients = if all == 1 && own == 1 { group.clients } else { clients };
    }
    share
}

/// Checks that every agent has a connection in every group of a phase.
///
/// # Errors
/// In one line for the user, if an agent has none.
pub fn check(phase: &PhasePlan, count: u32) -> Result<(), String> {
    let short = phase.groups.iter().find(|group| !phase.load && connections(group) < count);
    short.map_or(Ok(()), |group| {
        Err(format!(
            "phase {}: {} clients are too few connections for {count} agents ({}): each owns a part of the \
             records and needs one; use fewer --agents or more --clients",
            phase.name,
            group.clients,
            connections(group)
        ))
    })
}

fn connections(group: &GroupPlan) -> u32 {
    group.clients.max(1).div_ceil(group.pipeline.max(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kvdyno_core::workload::Kind;

    use super::*;

    fn own(index: u32, count: u32) -> Division {
        Division { reads: ReadsFrom::Own, index, count }
    }

    #[test]
    fn every_record_is_one_agents_own() {
        for (records, count) in [(2_000, 3), (7, 5), (0, 2)] {
            for reads in [ReadsFrom::Own, ReadsFrom::Anywhere] {
                let own = (0..count).map(|index| Division { reads, index, count }.own(records));
                assert_eq!(own.sum::<u64>(), records, "{reads:?} {count}");
            }
        }
    }

    fn phase(clients: u32, pipeline: u32) -> PhasePlan {
        let group = GroupPlan::plain("run", &[(Kind::Get, 1_000)], 100);
        let group = GroupPlan { clients, pipeline, ..group };
        PhasePlan::plain(0, "run", vec![group], Duration::from_secs(1))
    }

    #[test]
    fn all_connections_are_dealt_out_and_no_more() {
        for (clients, pipeline, count) in [(50, 1, 3), (64, 16, 4), (160, 16, 3), (5, 1, 5)] {
            let phase = phase(clients, pipeline);
            assert_eq!(check(&phase, count), Ok(()));
            let shares = (0..count).map(|index| share_of(&phase, own(index, count)));
            let shares = shares.map(|share| share.groups[0].clients);
            let shares: Vec<u32> = shares.collect();
            assert_eq!(shares.iter().sum::<u32>(), clients, "{shares:?}");
            assert!(shares.iter().all(|share| *share > 0 && share % pipeline == 0), "{shares:?}");
        }
    }

    #[test]
    fn too_few_connections_are_refused_but_for_phases_that_only_make_ready() {
        let mut phase = phase(16, 16);
        let told = check(&phase, 2).unwrap_err();
        assert!(told.contains("16 clients are too few connections for 2 agents (1)"), "{told}");
        phase.load = true;
        assert_eq!(check(&phase, 2), Ok(()));
        assert_eq!(share_of(&phase, own(1, 2)).groups[0].clients, 16);
    }
}
