//! One phase ready to run: its plan compiled for one store, and what it shares with its workers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::compose::Composer;
use super::controls::{Controls, Interrupt};
use super::dealing::{Dealing, is_dealt};
use super::error::LoadError;
use super::needs::supports;
use super::pace::Pacing;
use super::rate_orders::RateOrders;
use super::schedule::due_after;
use crate::measure::Nanos;
use crate::store::{OperationId, Profile};
use crate::verify::{Examination, Ledger, LedgerError, SampledRecords, Sightings, Suspects};
use crate::workload::{
    Arrival, Dataset, Distribution, GroupPlan, Kind, Marked, Marks, Ownership, Part, PhasePlan,
    Workload,
};

/// Options of a phase's load that do not depend on its plan.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Worker threads for networked stores; in process each client is a thread.
    pub threads: usize,
    /// Width of the timeline's intervals.
    pub interval: Duration,
    /// This process's share of the load.
    pub part: Part,
    /// The records that this process owns, where several processes carry one load together: it carries out the
    /// operations on them, and no others. `part` is the whole then.
    pub ownership: Ownership,
    /// The phase is given up when nothing has succeeded for this long while errors came.
    pub give_up: Duration,
    /// Processor time that clients may spend on being on time.
    pub pace: Pacing,
    /// Time that an eventually consistent store may take to settle after the load has ended.
    pub settle: Duration,
}

/// Context shared by all phases of a run against one store.
#[derive(Clone)]
pub struct StoreContext {
    /// The records: how many there are, and how their keys are made.
    pub dataset: Dataset,
    /// Record of what each record may legally hold; `None` if verification is off for the whole run.
    pub ledger: Option<Arc<Ledger>>,
    /// Each field has a ledger word of its own, because some phase writes fields apart.
    pub fields_apart: bool,
    /// The store's description of itself.
    pub profile: Profile,
    /// Options of every phase's load.
    pub options: LoadOptions,
    /// The user's wish to stop.
    pub interrupt: Arc<Interrupt>,
}

/// A client group with what its operations are drawn from.
type Compiled = (Arc<GroupPlan>, Workload);

/// A phase compiled for one store.
pub struct Job {
    /// Its plan; where the store cannot write fields apart, writes of one field are changed to writes of whole records.
    pub(super) plan: PhasePlan,
    pub(super) groups: Vec<Compiled>,
    pub(super) context: StoreContext,
    pub(super) controls: Controls,
    /// Changes of each group's rate, by group.
    pub(super) rates: Vec<Arc<RateOrders>>,
    /// Time at which its clients began, and the number of their workers; empty before.
    pub(super) begun: OnceLock<(Nanos, usize)>,
    /// Records whose history is kept.
    pub(super) sample: Option<Arc<SampledRecords>>,
    /// Records with wrong reads are marked here, if reads are checked.
    pub(super) suspects: Option<Arc<Suspects>>,
    /// Records that were to be read back and were not answered are marked here.
    pub(super) unread: Option<Marks>,
    /// Set for a pass over records that were marked.
    again: Option<Again>,
    /// Results of a look at records before the run.
    sightings: Option<Arc<Sightings>>,
    /// Deals operations to its lanes, where several processes share them.
    dealing: Option<Arc<Dealing>>,
}

/// A pass over records that were marked when the phase was over.
pub(super) struct Again {
    /// The records that are read again.
    pub marked: Arc<Marked>,
    /// Records with wrong reads in this pass are marked here.
    pub suspects: Arc<Suspects>,
    /// Records that were answered in this pass are marked here.
    pub answered: Arc<Marks>,
    /// Number of its first operation: no two reads that kvdyno makes for itself have the same number.
    pub first: u64,
}

/// Client group of the reads of a pass over marked records: no group of a plan has this number.
const GROUP: u16 = u16::MAX;
/// Bound of such a pass: a day, as for every phase that is bounded by count.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

impl Job {
    /// Compiles `plan` for the store of `context`.
    ///
    /// # Errors
    /// [`LoadError::Plan`] or [`LoadError::Unsupported`].
    pub fn new(mut plan: PhasePlan, context: StoreContext) -> Result<Self, LoadError> {
        let capabilities = context.profile.capabilities;
        supports(&context.profile, &plan, &context.dataset)?;
        let mut groups = Vec::with_capacity(plan.groups.len());
        for group in &mut plan.groups {
            group.one_field &= capabilities.fields;
            let workload = Workload::new(group, &context.dataset, context.options.part)?;
            groups.push((Arc::new(group.clone()), workload));
        }
        let sample = context.ledger.as_ref().filter(|_| no_history(&plan, &context).is_none());
        let records = plan.groups.first().map_or(0, |group| group.records);
        let sample = sample
            .filter(|_| asks_for_history(&plan))
            .map(|ledger| Arc::new(SampledRecords::new(records, ledger)));
        let suspects = plan.verify.then(|| suspects(&context)).transpose()?;
        let suspects = suspects.map(Arc::new);
        let unread = plan.reads_back().then(|| Marks::new(context.dataset.capacity));
        let rates = rates_of(&plan);
        let (controls, begun) = (Controls::default(), OnceLock::new());
        let (again, sightings) = (None, None);
        Ok(Job {
            plan,
            groups,
            context,
            controls,
            rates,
            begun,
            sample,
            suspects,
            unread,
            again,
            sightings,
            dealing: None,
        })
    }

    /// Compiles a look, before the run, at the records that the gets of `plan` go to, or at `these` and no others: it
    /// finds the records that are missing, and those that hold what kvdyno did not write.
    ///
    /// # Errors
    /// The errors of [`Job::new`].
    pub fn looking(
        mut plan: PhasePlan,
        context: StoreContext,
        these: Option<&[u64]>,
    ) -> Result<(Self, Arc<Sightings>), LoadError> {
        // A value is looked at by its bytes alone, and a record as one.
        let context = StoreContext { ledger: None, fields_apart: false, ..context };
        let sightings = Arc::new(Sightings::new(context.dataset.capacity));
        plan.verify = false;
        let mut job = Job::new(plan, context)?;
        // Checked, and nothing is read again: no suspect is marked.
        job.plan.verify = true;
        if let Some(these) = these {
            let marks = Marks::new(job.context.dataset.capacity);
            these.iter().for_each(|&record| marks.set(record));
            job.aim(&|_| Marked::of(&marks))?;
        }
        job.sightings = Some(Arc::clone(&sightings));
        Ok((job, sightings))
    }

    /// Compiles a phase that inserts, as [`Job::new`] does, but only for those of its records that are missing, one by one.
    ///
    /// # Errors
    /// The errors of [`Job::new`].
    pub fn filling(
        mut plan: PhasePlan,
        context: StoreContext,
        found: &Sightings,
    ) -> Result<Self, LoadError> {
        let whole = Job::new(plan.clone(), context.clone())?;
        for (group, (_, workload)) in plan.groups.iter_mut().zip(&whole.groups) {
            // What there is once it is over.
            let end = workload.records_after(group.requests.unwrap_or(u64::MAX));
            group.records = group.records.max(end);
            (group.mix.parts, group.batch) = (vec![(Kind::Insert, 1_000)], 1);
        }
        let mut job = Job { plan, ..whole };
        job.aim(&|workload| {
            let end = workload.1.records_after(workload.0.requests.unwrap_or(u64::MAX));
            let own = |record| record < end && workload.1.inserted_by(record).is_some();
            Marked::of(&found.missing_of(own))
        })?;
        Ok(job)
    }

    /// Sends each group's operations to the records that `marked` returns for the group as it was compiled, once to each.
    fn aim(&mut self, marked: &dyn Fn(&Compiled) -> Marked) -> Result<(), LoadError> {
        let part = self.context.options.part;
        for (group, compiled) in self.plan.groups.iter_mut().zip(&mut self.groups) {
            let marked = Arc::new(marked(compiled));
            // Each part has marked its own, and draws one id in as many as there are parts.
            group.requests = Some(marked.count().saturating_mul(part.count.into()));
            let workload = Workload::over(group, &self.context.dataset, part, marked)?;
            *compiled = (Arc::new(group.clone()), workload);
        }
        Ok(())
    }

    /// Compiles a pass over records that this phase has marked, by as many clients as its largest group has.
    pub(super) fn again(&self, again: Again) -> Result<Job, LoadError> {
        let largest = self.groups.iter().map(|(group, _)| group).max_by_key(|group| group.clients);
        let (part, count) = (self.context.options.part, again.marked.count());
        let most = u32::try_from(count).unwrap_or(u32::MAX).max(1);
        let group = GroupPlan {
            clients: largest.map_or(1, |group| group.clients).min(most),
            pipeline: largest.map_or(1, |group| group.pipeline).min(most),
            keys: Distribution::Sequential,
            arrival: Arrival::Closed,
            // Each part of a load reads all that it has marked itself.
            requests: Some(count.saturating_mul(part.count.into())),
            ..GroupPlan::plain("again", &[(Kind::Get, 1_000)], self.context.dataset.capacity)
        };
        let plan = PhasePlan::plain(self.plan.index, &self.plan.name, vec![group.clone()], LONGEST);
        let marked = Arc::clone(&again.marked);
        let workload = Workload::over(&group, &self.context.dataset, part, marked)?;
        let context = self.context.clone();
        Ok(Job {
            rates: rates_of(&plan),
            begun: OnceLock::new(),
            plan,
            groups: vec![(Arc::new(group), workload)],
            context,
            controls: Controls::default(),
            sample: None,
            suspects: Some(Arc::clone(&again.suspects)),
            unread: None,
            again: Some(again),
            sightings: None,
            dealing: None,
        })
    }

    /// Returns the same phase, with the operations of its closed groups dealt by `dealing`.
    #[must_use]
    pub fn of_dealing(mut self, dealing: Arc<Dealing>) -> Job {
        self.dealing = Some(dealing);
        self
    }

    /// Returns what deals operations to its lanes, where several processes share them.
    #[must_use]
    pub fn dealing(&self) -> Option<&Arc<Dealing>> {
        self.dealing.as_ref()
    }

    /// Returns the dealing of one of its groups; `None` if that group's operations are not dealt.
    pub(super) fn dealing_of(&self, group: usize) -> Option<&Arc<Dealing>> {
        let dealt = is_dealt(&self.plan, &self.groups[group].0);
        self.dealing().filter(|_| dealt && !self.gives_out().is_all())
    }

    /// Returns the time at which the phase ends, as far as that is known: no operation starts then or later.
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Nanos {
        self.controls.deadline()
    }

    /// Forbids operations to start at or after `when`; an earlier bound stays.
    #[inline]
    pub fn stop_at(&self, when: Nanos) {
        self.controls.stop_at(when);
    }

    /// Returns true if requests in flight are no longer waited for.
    #[must_use]
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.controls.is_abandoned()
    }

    /// Makes the workers give up requests in flight instead of waiting for them.
    pub fn abandon(&self) {
        self.controls.abandon();
    }

    /// Returns the name of the first operation of a group.
    pub(super) fn first_of(&self, group: u16) -> OperationId {
        let (group, id) = self.again.as_ref().map_or((group, 0), |again| (GROUP, again.first));
        OperationId { phase: self.plan.index, group, id }
    }

    /// Makes a composer of the values that a group's operations write.
    pub(super) fn composer(&self, workload: &Workload) -> Composer {
        Composer::new(self.context.dataset, self.context.options.ownership.clone(), workload)
    }

    /// Returns the settings of this phase's examiners.
    pub(super) fn examination(&self) -> Examination {
        Examination {
            dataset: self.context.dataset,
            ledger: self.context.ledger.clone(),
            fields_apart: self.context.fields_apart,
            check_reads: self.plan.verify,
            part: self.context.options.part,
            ownership: self.context.options.ownership.clone(),
            fabricated: self.context.profile.capabilities.fabricates,
            time_misses: !self.plan.faults.is_empty(),
            sample: self.sample.clone(),
            suspects: self.suspects.clone(),
            answered: self.again.as_ref().map(|again| Arc::clone(&again.answered)),
            sightings: self.sightings.clone(),
            floors: self.dealing.as_ref().and_then(|dealing| dealing.floors.clone()),
        }
    }

    /// Returns true if the driver sends requests again by itself.
    #[inline]
    pub(super) fn may_apply_again(&self) -> bool {
        self.context.profile.capabilities.may_apply_again
    }

    /// Returns the width of an interval, ns.
    pub(super) fn interval(&self) -> Nanos {
        self.context.options.interval.as_nanos() as Nanos
    }

    /// Returns the ownership by which its lanes give out operations. A pass over marked records is not split: this
    /// process reads again all that it has marked, whoever owns the record.
    #[inline]
    pub(super) fn gives_out(&self) -> Ownership {
        if self.again.is_some() { Ownership::ALL } else { self.context.options.ownership.clone() }
    }

    /// Returns the number of operations that this process will make in the phase; `None` where the phase is not
    /// bounded by count, or where records have several owners: how many operations go to one owner's records is not
    /// counted beforehand.
    pub(super) fn requests(&self) -> Option<u64> {
        if !self.gives_out().is_all() {
            return None;
        }
        let part = self.context.options.part;
        let of_part = |n: u64| n.saturating_sub(u64::from(part.index)).div_ceil(part.count.into());
        self.groups.iter().map(|(group, _)| group.requests.map(of_part)).sum()
    }

    /// Returns the time at which one request more than each group makes would fall due: N requests at a rate of R
    /// take N / R, for the last one stands for the time up to the next as well. Returns `start` where that is not
    /// known beforehand: with requests at random, or with closed arrivals.
    pub(super) fn end_of_schedule(&self, start: Nanos) -> Nanos {
        let ends = self.groups.iter().zip(&self.rates).filter_map(|((group, _), rate)| {
            Some(start.saturating_add(due_after(&group.arrival, &rate.all(), group.requests?)))
        });
        ends.max().unwrap_or(start)
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.groups.iter().any(|(group, _)| group.arrival.is_open())
    }
}

fn rates_of(plan: &PhasePlan) -> Vec<Arc<RateOrders>> {
    plan.groups.iter().map(|group| Arc::new(RateOrders::of(&group.changes))).collect()
}

/// Makes marks with room for every record of the dataset to be a suspect.
fn suspects(context: &StoreContext) -> Result<Suspects, LedgerError> {
    let words = if context.fields_apart { u64::from(context.dataset.fields) } else { 1 };
    let expires = context.ledger.as_ref().is_some_and(|ledger| ledger.expires());
    Suspects::new(context.dataset.capacity, words, expires)
}

/// Returns true if some group asks for a judgement of the sampled records' histories.
pub(super) fn asks_for_history(plan: &PhasePlan) -> bool {
    plan.groups.iter().any(|group| group.linearizability)
}

/// Returns the reason why linearizability cannot be judged in this phase; `None` if it can. Reasons that stand in the
/// suite already, such as deletes, are reported when the suite is read.
pub(super) fn no_history(plan: &PhasePlan, context: &StoreContext) -> Option<&'static str> {
    match context {
        _ if context.ledger.is_none() || !plan.verify => Some("verification is off"),
        _ if context.options.part.count > 1 || !context.options.ownership.is_all() => {
            Some("several processes have its histories")
        }
        _ if context.profile.capabilities.fabricates => Some("the store makes values up"),
        _ if context.profile.capabilities.may_forget => Some("the store may forget records"),
        _ if context.fields_apart => Some("fields of a record are written apart"),
        _ => None,
    }
}
