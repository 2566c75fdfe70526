//! Finds the nodes of a testbed that got no requests although they served: clients that do not know of a node, or
//! never use it again after its repair, look like a store that copes with less.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use kvdyno_core::measure::{Nanos, now};
use kvdyno_core::workload::fault::ADD;
use kvdyno_report::result::{FaultResult, UnaskedNode};
use kvdyno_testbed::{NodeDescription, Role, Traffic};

/// Shortest stretch that is judged, ns.
const SHORTEST: u64 = 3_000_000_000;
/// Fewest bytes that the other nodes must have got on average.
const LEAST: u64 = 10_000;
/// A node that got less than the mean of the others divided by this was not asked: drivers send a few bytes to every
/// server.
const PART: u64 = 100;

/// Bytes that each server was sent in the course of a phase.
pub struct NodeTraffic {
    traffic: Traffic,
    /// Moment of each look, with the bytes that each server had taken by then.
    looks: Vec<(Nanos, BTreeMap<SocketAddr, u64>)>,
}

impl NodeTraffic {
    /// Begins to look.
    pub fn begin() -> NodeTraffic {
        NodeTraffic { traffic: Traffic::begin(), looks: vec![(now(), BTreeMap::new())] }
    }

    /// Looks once; called each interval.
    pub fn look(&mut self) {
        let taken = self.traffic.look().clone();
        self.looks.push((now(), taken));
    }

    /// Returns the nodes that served and got no requests, each with the stretch, from its start or repair to its next
    /// fault, or to the end of the phase, which began at `start`.
    pub fn unasked(
        &self,
        nodes: &[NodeDescription],
        faults: &[FaultResult],
        start: Nanos,
    ) -> Vec<UnaskedNode> {
        let end = self.looks.last().map_or(start, |(at, _)| *at).saturating_sub(start);
        let expected: Vec<(&str, SocketAddr)> = nodes
            .iter()
            .filter(|node| is_expected(node, faults))
            .filter_map(|node| Some((node.name.as_str(), node.address.parse().ok()?)))
            .collect();
        let mut unasked = Vec::new();
        for &(name, address) in &expected {
            for (from, to) in served(name, faults, end) {
                let got = |address| self.between(address, start + from, start + to);
                let others = expected.iter().filter(|(_, other)| *other != address);
                let others: Vec<u64> = others.map(|(_, other)| got(*other)).collect();
                let mean = others.iter().sum::<u64>() / others.len().max(1) as u64;
                if to - from >= SHORTEST && mean >= LEAST && got(address) < mean / PART {
                    let node = name.to_owned();
                    unasked.push(UnaskedNode { node, from_ns: from, to_ns: to });
                }
            }
        }
        unasked
    }

    /// Returns the bytes that a server has taken in a stretch, as exactly as the looks tell.
    fn between(&self, address: SocketAddr, from: Nanos, to: Nanos) -> u64 {
        let at = |moment: Nanos| {
            let looks = self.looks.iter().rev().find(|(at, _)| *at <= moment);
            looks.and_then(|(_, taken)| taken.get(&address).copied()).unwrap_or(0)
        };
        at(to).saturating_sub(at(from))
    }
}

/// Returns true if clients may ask the node: any peer, or a primary. Which node was primary before is unknown once a
/// fault was injected.
fn is_expected(node: &NodeDescription, faults: &[FaultResult]) -> bool {
    match node.role {
        Some(Role::Peer) => node.running,
        Some(Role::Primary) => node.running && faults.is_empty(),
        _ => false,
    }
}

/// Returns the stretches of a phase in which nothing was wrong with a node, ns since its begin.
fn served(name: &str, faults: &[FaultResult], end: u64) -> Vec<(u64, u64)> {
    let (mut stretches, mut from) = (Vec::new(), Some(0));
    for fault in faults.iter().filter(|fault| fault.node == name && fault.error.is_none()) {
        if fault.repairs() || fault.kind() == Some(&ADD) {
            from = Some(fault.ended_ns);
        } else if let Some(from) = from.take() {
            stretches.push((from, fault.began_ns.min(end)));
        }
    }
    stretches.extend(from.filter(|from| *from < end).map(|from| (from, end)));
    stretches.retain(|(from, to)| from < to);
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn node(number: u8, role: Role) -> NodeDescription {
        let (name, address) = (format!("n-{number}"), format!("127.40.1.{number}:3000"));
        NodeDescription {
            name,
            address,
            role: Some(role),
            pid: None,
            running: true,
            ended_by_itself: None,
        }
    }

    fn fault(what: &str, node: &str, began: u64, ended: u64) -> FaultResult {
        let (what, node) = (what.to_owned(), node.to_owned());
        let (began_ns, ended_ns) = (began * SECOND, ended * SECOND);
        FaultResult { what, node, began_ns, ended_ns, ..FaultResult::default() }
    }

    /// Looks once a second for 20 s: two nodes get 10 kB/s each, the third until second 5 only and a few bytes of the
    /// driver after that.
    fn traffic() -> NodeTraffic {
        let at = |number: u8| SocketAddr::from(([127, 40, 1, number], 3000));
        let looks = (0..=20).map(|second: u64| {
            let third = second.min(5) * 10_000 + second * 20;
            let taken = [(at(1), second * 10_000), (at(2), second * 10_000), (at(3), third)];
            (second * SECOND, taken.into())
        });
        NodeTraffic { traffic: Traffic::default(), looks: looks.collect() }
    }

    #[test]
    fn a_node_that_clients_do_not_take_back_is_told() {
        let nodes = [1, 2, 3].map(|number| node(number, Role::Peer));
        let faults = [fault("kill", "n-3", 5, 5), fault("start again", "n-3", 7, 8)];
        let expected =
            UnaskedNode { node: "n-3".to_owned(), from_ns: 8 * SECOND, to_ns: 20 * SECOND };
        assert_eq!(traffic().unasked(&nodes, &faults, 0), [expected]);
        // While it was down it could not be asked.
        assert!(traffic().unasked(&nodes, &faults[..1], 0).is_empty());
        // It was asked at first, and then not for half of the time: it did get requests.
        assert!(traffic().unasked(&nodes, &[], 0).is_empty());
    }

    #[test]
    fn little_and_replicas_tell_nothing() {
        let replica = [node(1, Role::Primary), node(2, Role::Primary), node(3, Role::Replica)];
        let faults = [fault("restart", "n-3", 5, 5), fault("start again", "n-3", 7, 8)];
        assert!(traffic().unasked(&replica, &faults, 0).is_empty());
        let late = [fault("kill", "n-3", 5, 5), fault("start again", "n-3", 17, 18)];
        let nodes = [1, 2, 3].map(|number| node(number, Role::Peer));
        assert!(traffic().unasked(&nodes, &late, 0).is_empty(), "two seconds");
        let failed = FaultResult { error: Some("no".to_owned()), ..late[0].clone() };
        assert_eq!(served("n-3", &[failed], 9), [(0, 9)]);
    }
}
