//! The load loop by itself: so many operations on a store that answers at once, and nothing around them:
//! no sampler, no progress, no report. What is left is what kvdyno costs. `kvdyno check` times it, and
//! `cargo xtask instructions` counts it (`benches/hot_path.rs`).

use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::load::{
    AnyStore, Interrupt, Job, LoadError, LoadOptions, Observer, Pacing, Progress, StoreContext,
};
use kvdyno_core::measure::{Interval, PhaseMeasure};
use kvdyno_core::store::Consistency;
use kvdyno_core::verify::{Initial, Ledger, LedgerConfig, LedgerError};
use kvdyno_core::workload::{
    Dataset, GroupPlan, KeyForm, KeyModel, Kind, Ownership, Part, PhasePlan,
};

use crate::error::StoreError;
use crate::registry;

/// Few, for inserting them is not what is looked at.
const RECORDS: u64 = 1_000;
/// Longer than any run. An interval of this length never ends: that comes by the clock, not by what was
/// done, and is nothing to count.
pub const NEVER: Duration = Duration::from_secs(24 * 3600);

/// Reason why the loop could not be run.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gave no memory for the ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The phase could not begin.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Load that the loop carries out.
#[derive(Clone, Copy, Debug)]
pub struct BareLoad<'a> {
    /// URL of a store without records.
    pub url: &'a str,
    /// Clients, all of one thread where the store is reached over a wire.
    pub clients: u32,
    /// Updates of each 1,000 operations; the others are gets.
    pub updates: u16,
    /// True if reads are checked.
    pub verify: bool,
    /// Number of operations, by all clients together.
    pub operations: u64,
    /// Width of the timeline's intervals.
    pub interval: Duration,
}

impl BareLoad<'_> {
    /// Inserts a thousand records, then carries out the operations and tells `observer` of them. Returns what they measured.
    ///
    /// # Errors
    /// [`LoopError`].
    pub fn run(&self, observer: &mut dyn Observer) -> Result<PhaseMeasure, LoopError> {
        self.run_as(Ownership::ALL, observer)
    }

    /// Does the same as one of several owners of the records: all draw the operations, and each carries out its own.
    ///
    /// # Errors
    /// [`LoopError`].
    pub fn run_as(
        &self,
        ownership: Ownership,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoopError> {
        let store: Arc<dyn AnyStore> = registry::open(self.url)?.0;
        let context = self.context(store.as_ref(), ownership)?;
        let carry = |index, mix: &[(Kind, u16)], requests, records, observer: &mut dyn Observer| {
            let plain = GroupPlan::plain("counted", mix, records);
            let group = GroupPlan { requests: Some(requests), clients: self.clients, ..plain };
            let plain = PhasePlan::plain(index, &format!("phase-{index}"), vec![group], NEVER);
            let phase = PhasePlan { verify: self.verify, ..plain };
            store.run(&Arc::new(Job::new(phase, context.clone())?), observer)
        };
        carry(0, &[(Kind::Insert, 1_000)], RECORDS, 0, &mut Unobserved)?;
        let mix = [(Kind::Get, 1_000 - self.updates), (Kind::Update, self.updates)];
        let mix: Vec<_> = mix.into_iter().filter(|(_, share)| *share > 0).collect();
        Ok(carry(1, &mix, self.operations, RECORDS, observer)?)
    }

    fn context(
        &self,
        store: &dyn AnyStore,
        ownership: Ownership,
    ) -> Result<StoreContext, LoopError> {
        let key = KeyModel { form: KeyForm::Hash, length: 16 };
        let dataset = Dataset { id: 7, session: 1, key, fields: 1, capacity: RECORDS };
        let profile = store.ask_profile()?;
        let ledger = Ledger::new(LedgerConfig {
            slots: RECORDS,
            linearizable: profile.consistency.level == Consistency::Linearizable,
            staleness: Duration::ZERO,
            may_forget: false,
            overlap_capacity: 1 << 10,
            initial: Initial::Never,
            expiry: None,
            may_apply_again: false,
            taken_over: None,
        })?;
        let options = LoadOptions {
            threads: 1,
            interval: self.interval,
            part: Part::WHOLE,
            ownership,
            give_up: NEVER,
            pace: Pacing::default(),
            settle: Duration::ZERO,
        };
        Ok(StoreContext {
            dataset,
            ledger: self.verify.then(|| Arc::new(ledger)),
            fields_apart: false,
            profile,
            options,
            interrupt: Arc::new(Interrupt::default()),
        })
    }
}

/// An observer that does nothing.
#[derive(Debug)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn interval(&mut self, _: &Interval) {}

    fn progress(&mut self, _: &Progress) {}
}

#[cfg(test)]
mod tests {
    use kvdyno_core::workload::Arrival;

    use super::*;

    #[test]
    fn every_operation_asked_for_is_carried_out_and_checked() {
        let (operations, interval) = (2_000, NEVER);
        let load =
            BareLoad { url: "map:", clients: 1, updates: 500, verify: true, operations, interval };
        let measure = load.run(&mut Unobserved).unwrap();
        let done: Vec<_> = measure.series.iter().map(|(s, m)| (s.kind, m.ok)).collect();
        assert_eq!(done, [(Kind::Get, 1_000), (Kind::Update, 1_000)]);
        assert_eq!((measure.tally.judged, measure.tally.illegal()), (1_000, 0));
        let unverified = BareLoad { url: "null:", updates: 0, verify: false, ..load };
        assert_eq!(unverified.run(&mut Unobserved).unwrap().tally.judged, 0);
        let owned = (0..3).map(|index| {
            let measure = load.run_as(Ownership::new(index, 3), &mut Unobserved).unwrap();
            measure.series.iter().map(|(_, series)| series.ok).sum::<u64>()
        });
        let owned: Vec<u64> = owned.collect();
        assert_eq!(owned.iter().sum::<u64>(), operations, "together all of them: {owned:?}");
        assert!(BareLoad { url: "nil:", ..load }.run(&mut Unobserved).is_err());
    }
    /// Looking at each of 100 million requests that fell due would take longer than anybody waits for a worker.
    #[test]
    fn a_rate_far_beyond_its_client_loses_nothing_that_a_worker_found() {
        const RATE: f64 = 2e8;
        let (operations, interval) = (0, Duration::from_millis(100));
        let load =
            BareLoad { url: "map:", clients: 1, updates: 0, verify: true, operations, interval };
        for at_random in [false, true] {
            let store: Arc<dyn AnyStore> = registry::open(load.url).unwrap().0;
            let context = load.context(store.as_ref(), Ownership::ALL).unwrap();
            let carry = |index, group, duration| {
                let plain = PhasePlan::plain(index, "phase", vec![group], NEVER);
                let phase = PhasePlan { verify: true, duration, ..plain };
                let job = Job::new(phase, context.clone()).unwrap();
                store.run(&Arc::new(job), &mut Unobserved).unwrap()
            };
            let inserts = GroupPlan::plain("inserts", &[(Kind::Insert, 1_000)], 0);
            carry(0, GroupPlan { requests: Some(RECORDS), ..inserts }, None);
            let arrival = match at_random {
                false => Arrival::Constant { rate: RATE },
                true => Arrival::Poisson { rate: RATE },
            };
            let gets = GroupPlan::plain("gets", &[(Kind::Get, 1_000)], RECORDS);
            let gets = GroupPlan { arrival, requests: None, ..gets };
            let measure = carry(1, gets, Some(Duration::from_millis(500)));
            let read: u64 = measure.series.iter().map(|(_, series)| series.ok).sum();
            assert!(read > 0 && measure.tally.judged == read, "{read}: {:?}", measure.tally);
            assert_eq!((measure.workers.len(), measure.offered_estimated), (1, at_random));
            let waiting = measure.unstarted.as_ref().map_or(0, |ages| ages.len());
            let off = measure.offered.abs_diff(100_000_000);
            assert!(off < 1_000_000, "{} fell due", measure.offered);
            let off = measure.offered.abs_diff(measure.started + waiting);
            assert!(off <= if at_random { 1_000_000 } else { 0 }, "{waiting} were not started");
        }
    }
}
