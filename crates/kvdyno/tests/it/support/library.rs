//! Phases driven through the libraries, in this process: for tests that need two ledgers, or the agents of one load,
//! over one and the same store.

use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::load::{
    AnyStore, Interrupt, Job, LoadOptions, Observer, Pacing, Progress, StoreContext,
};
use kvdyno_core::measure::{Interval, PhaseMeasure};
use kvdyno_core::store::Consistency;
use kvdyno_core::verify::{AnomalyKind, Initial, Ledger, LedgerConfig};
use kvdyno_core::workload::{
    Dataset, Distribution, GroupPlan, KeyForm, KeyModel, Kind, Ownership, Part, PhasePlan,
    SizeModel, ValueModel,
};

/// Opens the store that a URL names.
pub fn store(url: &str) -> Arc<dyn AnyStore> {
    kvdyno_stores::registry::open(url).unwrap().0
}

/// Returns the dataset of these tests.
pub fn dataset(capacity: u64, fields: u16) -> Dataset {
    let key = KeyModel { form: KeyForm::Hash, length: 16 };
    Dataset { id: 7, session: 1, key, fields, capacity }
}

/// Makes a group: sequential over `records`, 40 bytes a field, closed.
pub fn group(mix: &[(Kind, u16)], clients: u32, requests: u64, records: u64) -> GroupPlan {
    GroupPlan {
        clients,
        keys: Distribution::Sequential,
        values: ValueModel { size: SizeModel::Fixed { size: 40 }, seed: None, compressible: 0.0 },
        requests: Some(requests),
        ..GroupPlan::plain("proof", mix, records)
    }
}

/// Makes a group that inserts `records` records into an empty store.
pub fn load(records: u64) -> GroupPlan {
    GroupPlan { insert_first: 0, ..group(&[(Kind::Insert, 1_000)], 2, records, 0) }
}

pub fn phase(index: u16, groups: Vec<GroupPlan>) -> PhasePlan {
    PhasePlan::plain(index, &format!("phase-{index}"), groups, Duration::from_secs(120))
}

/// One ledger over a store, as one run of kvdyno has it.
pub struct Run {
    store: Arc<dyn AnyStore>,
    context: StoreContext,
}

impl Run {
    /// Makes a run; `initial` is what it takes to be there before it.
    pub fn new(store: &Arc<dyn AnyStore>, dataset: Dataset, initial: Initial) -> Run {
        Run::part(store, dataset, initial, Part::WHOLE)
    }

    /// Makes a run that takes fields to be written together, and knows of no record yet.
    pub fn together(store: &Arc<dyn AnyStore>, dataset: Dataset) -> Run {
        let mut run = Run::new(store, dataset, Initial::Unjudged);
        run.context.fields_apart = false;
        run
    }

    /// Makes one agent's part of a load.
    pub fn part(store: &Arc<dyn AnyStore>, dataset: Dataset, initial: Initial, part: Part) -> Run {
        let profile = store.ask_profile().unwrap();
        let ledger = Ledger::new(LedgerConfig {
            slots: dataset.capacity * u64::from(dataset.fields),
            linearizable: profile.consistency.level == Consistency::Linearizable,
            staleness: profile.consistency.level.staleness().unwrap_or_default(),
            may_forget: profile.capabilities.may_forget,
            overlap_capacity: 1 << 16,
            initial,
            expiry: None,
            may_apply_again: false,
            taken_over: None,
        });
        let context = StoreContext {
            dataset,
            ledger: Some(Arc::new(ledger.unwrap())),
            fields_apart: dataset.fields > 1,
            profile,
            options: LoadOptions {
                threads: 1,
                interval: Duration::from_secs(1),
                part,
                ownership: Ownership::ALL,
                give_up: Duration::from_secs(30),
                pace: Pacing::Both,
                settle: Duration::ZERO,
            },
            interrupt: Arc::new(Interrupt::default()),
        };
        Run { store: Arc::clone(store), context }
    }

    pub fn carry(&self, plan: PhasePlan) -> PhaseMeasure {
        let job = Arc::new(Job::new(plan, self.context.clone()).unwrap());
        self.store.run(&job, &mut Unobserved).unwrap()
    }
}

struct Unobserved;

impl Observer for Unobserved {
    fn interval(&mut self, _: &Interval) {}

    fn progress(&mut self, _: &Progress) {}
}

/// Returns the operations of a phase that ended in success.
pub fn succeeded(measure: &PhaseMeasure) -> u64 {
    measure.series.iter().map(|(_, series)| series.ok).sum()
}

/// Asserts that everything was judged, and right.
pub fn is_clean(measure: &PhaseMeasure) {
    assert!(measure.anomalies.is_empty(), "{:?}", measure.anomalies[0]);
    assert_eq!((measure.tally.illegal(), measure.tally.unknown), (0, 0));
    assert_eq!(measure.tally.judged + measure.tally.stamp_only, measure.tally.reads);
}

/// Returns the number of anomalies of a kind.
pub fn named(measure: &PhaseMeasure, kind: AnomalyKind) -> u64 {
    measure.tally.of(kind)
}
