//! All that is known of a phase when it is over, and the result that is built of it: once, by one function,
//! and never changed afterwards.

use kvdyno_core::measure::{Limit, Nanos, PhaseMeasure, Resources};
use kvdyno_core::workload::PhasePlan;

use super::account::WriteAccount;
use super::agent::AgentResult;
use super::course::{CourseResult, EventResult, Known};
use super::fault::{FaultResult, UnaskedNode};
use super::phase::{AnomalyResult, PhaseResult, Published};
use super::steered::SteeredResult;
use crate::account;

/// All that is known of a phase when it is over.
#[derive(Debug)]
pub struct PhaseOutcome {
    /// What was planned.
    pub plan: PhasePlan,
    /// What the load measured.
    pub measure: PhaseMeasure,
    /// When it began, ns since the run began.
    pub offset_ns: Nanos,
    /// What machine, kvdyno and servers used, where that could be sampled.
    pub resources: Option<Resources>,
    /// Names of the sampled servers, in their order.
    pub nodes: Vec<String>,
    /// What was done to the testbed meanwhile, in order.
    pub faults: Vec<FaultResult>,
    /// Nodes that served and got no requests.
    pub unasked: Vec<UnaskedNode>,
    /// Work that servers and engines tell of.
    pub work: Vec<EventResult>,
    /// What it was limited by.
    pub limit: Option<Limit>,
    /// What it was to a search, if it was a probe of one.
    pub probe: Option<String>,
    /// What became of the writes, where every record was read back after it.
    pub writes: Option<WriteAccount>,
    /// Figures that somebody published for it.
    pub published: Vec<Published>,
    /// The processes that carried it together, where there were several.
    pub agents: Vec<AgentResult>,
    /// What was done to it by hand.
    pub steered: Vec<SteeredResult>,
}

impl PhaseOutcome {
    /// Of a phase of which nothing but its measure is known. `origin` is when the run began, on core's
    /// clock.
    #[must_use]
    pub fn new(plan: PhasePlan, measure: PhaseMeasure, origin: Nanos) -> PhaseOutcome {
        PhaseOutcome {
            plan,
            offset_ns: measure.start.saturating_sub(origin),
            measure,
            resources: None,
            nodes: Vec::new(),
            faults: Vec::new(),
            steered: Vec::new(),
            unasked: Vec::new(),
            work: Vec::new(),
            limit: None,
            probe: None,
            writes: None,
            published: Vec::new(),
            agents: Vec::new(),
        }
    }

    /// The result that all of it comes to.
    #[must_use]
    pub fn result(&self) -> PhaseResult {
        let PhaseOutcome { plan, measure, resources, faults, .. } = self;
        let known = Known {
            faults,
            resources: resources.as_ref(),
            nodes: &self.nodes,
            work: &self.work,
            stalls: &measure.stalls,
        };
        let open = plan.groups.iter().any(|group| group.arrival.is_open());
        let summary = resources.as_ref().map(|resources| &resources.summary);
        PhaseResult {
            probe: self.probe.clone(),
            faults: faults.clone(),
            unasked: self.unasked.clone(),
            account: account::of_faults(plan, measure, faults),
            writes: self.writes.clone(),
            course: CourseResult::of(&measure.timeline, open, known),
            limit: self.limit.clone(),
            published: self.published.clone(),
            agents: self.agents.clone(),
            steered: self.steered.clone(),
            ..PhaseResult::measured(plan, measure, summary, self.offset_ns)
        }
    }

    /// Examples of anomalies, all that were kept.
    #[must_use]
    pub fn anomalies(&self) -> Vec<AnomalyResult> {
        let PhaseMeasure { anomalies, start, .. } = &self.measure;
        anomalies.iter().map(|anomaly| AnomalyResult::new(anomaly, *start)).collect()
    }
}
