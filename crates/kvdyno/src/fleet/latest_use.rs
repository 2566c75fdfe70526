//! Use of machines by agents' processes in their last second, told while a phase goes on, for the page and the
//! files of the run. Offsets of clocks do not matter to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvdyno_report::events::ProcessUsed;

/// Latest use of each agent that carries load now, by its number; clones share one map.
#[derive(Clone, Debug, Default)]
pub struct LatestUse(Arc<Mutex<BTreeMap<usize, ProcessUsed>>>);

impl LatestUse {
    /// Enters what an agent, by its number, has told; `name` is the agent's name.
    pub fn enter(&self, number: usize, name: &str, used: ProcessUsed) {
        self.known().insert(number, ProcessUsed { process: name.to_owned(), ..used });
    }

    /// Removes an agent of which nothing more is heard.
    pub fn forget(&self, number: usize) {
        self.known().remove(&number);
    }

    /// Returns the latest use of all agents, in the order of their numbers.
    pub fn all(&self) -> Vec<ProcessUsed> {
        self.known().values().cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<usize, ProcessUsed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_each_agent_is_told_under_its_name() {
        let latest = LatestUse::default();
        let used = |processors| ProcessUsed { processors, ..ProcessUsed::default() };
        let copy = latest.clone();
        copy.enter(1, "agent-2", used(0.25));
        copy.enter(0, "agent-1", used(0.5));
        copy.enter(0, "agent-1", used(0.75));
        let uses = || latest.all().into_iter().map(|one| (one.process, one.processors));
        let all = [("agent-1".to_owned(), 0.75), ("agent-2".to_owned(), 0.25)];
        assert_eq!(uses().collect::<Vec<_>>(), all);
        copy.forget(0);
        assert_eq!(uses().count(), 1);
    }
}
