//! The present process of each node of a testbed. Nodes are started again and added while a phase runs, and are
//! sampled all the same.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};

use kvdyno_core::measure::{Follow, SampleSink, Sampler, servers_at};
use kvdyno_report::result::TestbedNode;
use kvdyno_testbed::NodeDescription;

use super::disclosed;
use super::shared_keeper::{SharedKeeper, lock};

/// Processes of one testbed's nodes; clones share one state.
#[derive(Clone, Debug, Default)]
pub struct NodeProcesses(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Name and process number of each node that runs on this machine, in the order in which they came.
    nodes: Vec<(String, u32)>,
    /// Processes that came after the testbed was up.
    later: Vec<TestbedNode>,
    follow: Option<Follow>,
    /// Addresses of servers that kvdyno did not start; their processes are looked up before each phase.
    addresses: Vec<SocketAddr>,
}

impl NodeProcesses {
    /// Takes the processes that serve at `addresses` on this machine, as far as they can be found.
    pub fn serving(addresses: &[String]) -> NodeProcesses {
        let addresses = addresses.iter().filter_map(|address| address.to_socket_addrs().ok());
        let addresses = addresses.flatten().collect();
        NodeProcesses(Arc::new(Mutex::new(State { addresses, ..State::default() })))
    }

    /// Takes the processes of the nodes as they are disclosed.
    pub fn of(nodes: &[TestbedNode]) -> NodeProcesses {
        let nodes = nodes.iter().filter_map(|node| Some((node.name.clone(), node.pid?))).collect();
        NodeProcesses(Arc::new(Mutex::new(State { nodes, ..State::default() })))
    }

    /// Begins to sample the nodes as they are now, and gives `sink` each sample; `None` if this machine tells nothing
    /// of processes.
    pub fn sample(&self, keeper: Option<&SharedKeeper>, sink: SampleSink) -> Option<Sampler> {
        // The user may have started them again, with `kvdyno testbed fault`.
        if let Some(keeper) = keeper {
            self.look(keeper);
        }
        self.with(|state| {
            if !state.addresses.is_empty() {
                let found = servers_at(&state.addresses).unwrap_or_default();
                state.nodes = found.into_iter().map(|(pid, name)| (name, pid)).collect();
            }
            let sampler = Sampler::start_publishing(&state.pids(), sink).ok()?;
            state.follow = Some(sampler.follow());
            Some(sampler)
        })
    }

    /// Asks the keeper for the process of each node now, and tells the sampler of changes.
    pub fn look(&self, keeper: &SharedKeeper) {
        // If the keeper is gone, its next order fails and says so.
        let now = lock(keeper).nodes().unwrap_or_default();
        self.with(|state| {
            if state.take(&now)
                && let Some(follow) = &state.follow
            {
                follow.now(&state.pids());
            }
        });
    }

    /// Returns the names of those of these nodes, by number, whose process ended without an order; none if the keeper
    /// is busy.
    pub fn ended(&self, nodes: &[usize], keeper: Option<&SharedKeeper>) -> Vec<String> {
        let Some(keeper) = keeper.filter(|_| !nodes.is_empty()) else { return Vec::new() };
        let Ok(mut keeper) = keeper.try_lock() else { return Vec::new() };
        let now = keeper.nodes().unwrap_or_default();
        let names = self.names();
        let is_ended = |name: &&String| {
            now.iter().any(|node| node.name == **name && node.ended_by_itself.is_some())
        };
        nodes.iter().filter_map(|at| names.get(*at)).filter(is_ended).cloned().collect()
    }

    /// Returns the process number and the name of each node that runs on this machine.
    pub fn processes(&self) -> Vec<(u32, String)> {
        self.with(|state| state.nodes.iter().map(|(name, pid)| (*pid, name.clone())).collect())
    }

    /// Returns the names of the nodes that are sampled, in their order.
    pub fn names(&self) -> Vec<String> {
        self.with(|state| state.nodes.iter().map(|(name, _)| name.clone()).collect())
    }

    /// Returns the processes that came after the testbed was up.
    pub fn later(&self) -> Vec<TestbedNode> {
        self.with(|state| state.later.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn pids(&self) -> Vec<u32> {
        self.nodes.iter().map(|(_, pid)| *pid).collect()
    }

    /// Takes in the nodes as they are now. Returns true if one is a new process.
    fn take(&mut self, now: &[NodeDescription]) -> bool {
        let mut changed = false;
        for node in now {
            let Some(pid) = node.pid else { continue };
            match self.nodes.iter_mut().find(|(name, _)| *name == node.name) {
                Some((_, known)) if *known == pid => continue,
                Some((_, known)) => *known = pid,
                None => self.nodes.push((node.name.clone(), pid)),
            }
            self.later.push(disclosed::node(node));
            changed = true;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, pid: Option<u32>) -> NodeDescription {
        let (name, address) = (name.to_owned(), "127.0.0.1:1".to_owned());
        NodeDescription {
            name,
            address,
            role: None,
            pid,
            running: pid.is_some(),
            ended_by_itself: None,
        }
    }

    #[test]
    fn a_server_that_somebody_else_started_is_known_by_its_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let processes = NodeProcesses::serving(&[address]);
        let sampler = processes.sample(None, Box::new(|_, _| {})).unwrap();
        let pids: Vec<u32> = processes.processes().iter().map(|(pid, _)| *pid).collect();
        assert_eq!(pids, [std::process::id()]);
        assert_eq!(sampler.stop().summary.servers.len(), 1);
    }

    #[test]
    fn a_new_process_of_a_node_takes_its_place_and_a_new_node_comes_last() {
        let first = [node("redis-1", Some(7)), node("redis-2", Some(8))];
        let first: Vec<_> = first.iter().map(disclosed::node).collect();
        let processes = NodeProcesses::of(&first);
        let take = |now: &[NodeDescription]| processes.with(|state| state.take(now));
        assert!(!take(&[node("redis-1", Some(7)), node("redis-2", None)]));
        assert!(take(&[
            node("redis-1", Some(7)),
            node("redis-3", Some(10)),
            node("redis-2", Some(9))
        ]));
        assert_eq!(processes.names(), ["redis-1", "redis-2", "redis-3"]);
        assert_eq!(processes.with(|state| state.pids()), [7, 9, 10]);
        let later = processes.later();
        let later: Vec<_> = later.iter().map(|node| (node.name.as_str(), node.pid)).collect();
        assert_eq!(later, [("redis-3", Some(10)), ("redis-2", Some(9))]);
        // A node of which the machine knows nothing is not sampled.
        assert!(!take(&[node("redis-9", None)]));
    }
}
