//! Servers that joined while a phase ran, and whether they got records. A server that got none has made nothing
//! larger: a claim about growing is then not shown, however smoothly the load went on.

use std::sync::Arc;

use kvdyno_core::load::AnyStore;
use kvdyno_core::store::Joined;
use kvdyno_core::workload::{Dataset, KeyWriter};

/// Name in a fault's result of the step in which a new server should get records and does not.
pub const TAKE_RECORDS: &str = "take records";

/// Most records for which a new server is asked.
const LOOKED_FOR: u64 = 1_000;

/// Servers that joined.
pub struct Newcomers {
    store: Arc<dyn AnyStore>,
    dataset: Dataset,
    /// Records 0..n exist.
    records: u64,
    /// Node and address of each server that is to have records by the end.
    expected: Vec<(String, String)>,
}

impl Newcomers {
    /// Makes it without servers; records 0..`records` of `dataset` are in the store.
    pub fn new(store: &Arc<dyn AnyStore>, dataset: Dataset, records: u64) -> Newcomers {
        Newcomers { store: Arc::clone(store), dataset, records, expected: Vec::new() }
    }

    /// Takes in the server of `node`, which has joined. Describes what was moved to it, if clients decide that.
    ///
    /// # Errors
    /// The reason why it gets no records, or may have got some of them only.
    pub fn take_in(&mut self, node: &str, address: Option<&str>) -> Result<Option<String>, String> {
        let Some(address) = address else {
            return Err("the testbed does not tell its address".to_owned());
        };
        let joined = self.store.take_in(address).map_err(|error| error.to_string())?;
        let moved = match joined {
            Joined::PassedOver(why) => return Err(format!("the new server gets none: {why}")),
            Joined::Moved { moved: 0, found, .. } => {
                return Err(format!("the new server gets none of {found}"));
            }
            Joined::Moved { moved, found, servers } => {
                Some(format!("{moved} of {found} records to where {servers} servers have them"))
            }
            Joined::ByServers => None,
        };
        self.expected.push((node.to_owned(), address.to_owned()));
        Ok(moved)
    }

    /// Asks each server what it has now: a description of its share, or why it is not known to have any.
    pub fn account(&mut self) -> Vec<(String, Result<String, String>)> {
        let all = std::mem::take(&mut self.expected);
        self.shares(all)
    }

    /// Does the same as [`Newcomers::account`] for those among `nodes`, which are about to leave: later nobody could
    /// ask them.
    pub fn leaving(&mut self, nodes: &[String]) -> Vec<(String, Result<String, String>)> {
        let gone = self.expected.extract_if(.., |(node, _)| nodes.contains(node)).collect();
        self.shares(gone)
    }

    fn shares(&self, asked: Vec<(String, String)>) -> Vec<(String, Result<String, String>)> {
        if asked.is_empty() {
            return Vec::new();
        }
        let keys = self.keys();
        let share = |address: &str| match self.store.ask_held_by(address, &keys) {
            Ok(0) => Err(format!("it has none of {} records that were looked for", keys.len())),
            Ok(held) => Ok(format!("has {held} of {} records looked for", keys.len())),
            Err(error) => Err(format!("whether it has any is not told: {error}")),
        };
        asked.into_iter().map(|(node, address)| (node, share(&address))).collect()
    }

    /// Returns the keys of some records, evenly from the first to the last.
    fn keys(&self) -> Vec<Vec<u8>> {
        let Ok(writer) = KeyWriter::new(self.dataset.key, self.dataset.id) else {
            return Vec::new();
        };
        let count = self.records.min(LOOKED_FOR);
        let record = |n: u64| (u128::from(n) * u128::from(self.records) / u128::from(count)) as u64;
        let keys = (0..count).map(|n| {
            let mut key = Vec::new();
            writer.write(record(n), &mut key);
            key
        });
        keys.collect()
    }
}
