//! Looks beyond the usual reads when a run's records are read back: at each copy by itself, and at the strongest
//! level of reads that the store has.

use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::load::{Agreement, AnyStore, Compared, CopyDifference, LoadError, StoreContext};
use kvdyno_core::store::Profile;
use kvdyno_report::result::{CopiesAccount, DifferingRecord, TestbedResult};

use crate::existing::{answers_within, wait_until_it_answers};

/// Longest wait for a stronger level: a level that needs a node which stays down never answers.
const PATIENCE: Duration = Duration::from_secs(20);

/// Compares the copies of records 0..`records`; `None` if there is one copy of each.
pub fn compare(
    store: &Arc<dyn AnyStore>,
    context: &StoreContext,
    records: u64,
    testbed: &Option<TestbedResult>,
) -> Option<CopiesAccount> {
    let vanish = context.profile.capabilities.may_forget
        || context.ledger.as_ref().is_some_and(|ledger| ledger.expires());
    let not_shown = |why: String| CopiesAccount { not_shown: why, ..CopiesAccount::default() };
    if vanish {
        return Some(not_shown("records may vanish by themselves".to_owned()));
    }
    match store.compare_copies(context, records) {
        Ok(Agreement::One) => None,
        Ok(Agreement::NotShown(why)) => Some(not_shown(named(&why, testbed))),
        Ok(Agreement::Compared(compared)) => Some(account(compared, records, testbed)),
        Err(error) => Some(not_shown(error.to_string())),
    }
}

fn account(compared: Compared, records: u64, testbed: &Option<TestbedResult>) -> CopiesAccount {
    let all = |texts: Vec<String>| texts.iter().map(|text| named(text, testbed)).collect();
    let example = |CopyDifference { record, key, found }: CopyDifference| {
        let found = found.into_iter().map(|(node, what)| (named(&node, testbed), what));
        DifferingRecord { record, key, found: found.collect() }
    };
    CopiesAccount {
        not_shown: String::new(),
        copies: all(compared.copies),
        left_out: all(compared.left_out),
        asked: records,
        compared: compared.records,
        partly: compared.partly,
        differ: compared.differ,
        late: compared.late,
        waited_ns: compared.waited.as_nanos().try_into().unwrap_or(u64::MAX),
        examples: compared.examples.into_iter().map(example).collect(),
    }
}

/// Returns `text` with the testbed's names of its nodes in the place of their addresses.
fn named(text: &str, testbed: &Option<TestbedResult>) -> String {
    let nodes = testbed.iter().flat_map(|testbed| &testbed.nodes);
    nodes.fold(text.to_owned(), |text, node| text.replace(&node.address, &node.name))
}

/// The store that has the records for good: kvdyno asks it what became of writes, and never a cache in front of it.
pub struct Origin {
    store: Arc<dyn AnyStore>,
    /// Promises of that store, under the name of the store in front of it.
    profile: Profile,
    /// Its own name, if the run goes through a store in front of it.
    fronted: Option<String>,
}

impl Origin {
    /// Finds the origin of a store that promises `profile`.
    ///
    /// # Errors
    /// [`LoadError`] if it stands in front of a store that does not state its promises.
    pub fn of(store: &Arc<dyn AnyStore>, profile: &Profile) -> Result<Origin, LoadError> {
        let Some(behind) = store.behind() else {
            let (store, profile) = (Arc::clone(store), profile.clone());
            return Ok(Origin { store, profile, fronted: None });
        };
        let behind: Arc<dyn AnyStore> = behind.into();
        let its = behind.ask_profile()?;
        let fronted = Some(its.store.clone());
        let profile = Profile { store: profile.store.clone(), ..its };
        Ok(Origin { store: behind, profile, fronted })
    }

    /// Waits until the origin answers again, for a limited time.
    pub fn wait(&self, context: &StoreContext, records: u64) {
        wait_until_it_answers(&self.store, context, records);
    }

    /// Returns the profile by which reads of the origin are judged.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the origin, read at the strongest level that it answers, with a description of that level.
    pub fn strongest(&self, context: &StoreContext, records: u64) -> (Arc<dyn AnyStore>, String) {
        let usual = context.profile.consistency.level.describe();
        let mut silent = Vec::new();
        for (stronger, how) in self.store.stronger() {
            let stronger = stronger.into();
            if answers_within(PATIENCE, &stronger, context, records) {
                let whose = self.fronted.iter().map(|name| format!("of {name} itself, "));
                let whose: String = whose.collect();
                return (stronger, format!("{whose}{how} (the run reads {usual})"));
            }
            silent.push(how);
        }
        let silent = match silent.as_slice() {
            [] => String::new(),
            silent => format!("; there was no answer {}", silent.join(" nor ")),
        };
        let how = match &self.fronted {
            Some(name) => format!("of {name} itself (the run reads {usual}){silent}"),
            None => format!("as the run reads ({usual}){silent}"),
        };
        (Arc::clone(&self.store), how)
    }
}
