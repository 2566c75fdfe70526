//! What each of several agents does of a phase: all draw the same operations, and the clients are dealt out.

use kvdyno_core::workload::{GroupPlan, PhasePlan};

/// The phase as agent `index` of `count` carries it: with its share of each group's connections. A phase that
/// only makes records ready, or looks at them, has at least one connection from each.
pub fn share_of(phase: &PhasePlan, index: u32, count: u32) -> PhasePlan {
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

/// Every agent has a connection in every group of a phase; what is to be told if one has none.
///
/// # Errors
/// In one line.
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
            let shares = (0..count).map(|index| share_of(&phase, index, count).groups[0].clients);
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
        assert_eq!(share_of(&phase, 1, 2).groups[0].clients, 16);
    }
}
