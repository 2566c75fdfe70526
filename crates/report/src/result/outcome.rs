//! Everything that is known of a phase when it is over, and the result that is built from it: once, by one function, and
//! never changed afterwards.

use kvdyno_core::measure::{Limit, Nanos, PhaseMeasure, Resources};
use kvdyno_core::workload::PhasePlan;

use super::account::WriteAccount;
use super::agent::AgentResult;
use super::course::{CourseResult, EventResult, Known};
use super::fault::{FaultResult, UnaskedNode};
use super::phase::{AnomalyResult, PhaseResult, Published};
use super::steered::SteeredResult;
use crate::account;

/// Everything that is known of a phase when it is over.
#[derive(Debug)]
pub struct PhaseOutcome {
    /// Plan of the phase.
    pub plan: PhasePlan,
    /// Measurements of the load.
    pub measure: PhaseMeasure,
    /// Begin, ns since the run began.
    pub offset_ns: Nanos,
    /// Resources that machine, kvdyno and servers used, where they could be sampled.
    pub resources: Option<Resources>,
    /// Names of the sampled servers, in their order.
    pub nodes: Vec<String>,
    /// Faults and repairs of the testbed meanwhile, in order.
    pub faults: Vec<FaultResult>,
    /// Nodes that served and got no requests.
    pub unasked: Vec<UnaskedNode>,
    /// Work that servers and engines reported.
    pub work: Vec<EventResult>,
    /// Limit of its throughput.
    pub limit: Option<Limit>,
    /// Purpose in a search, if it was a probe of one.
    pub probe: Option<String>,
    /// Account of the writes, where every record was read back after the phase.
    pub writes: Option<WriteAccount>,
    /// Published figures for it.
    pub published: Vec<Published>,
    /// Agents that carried it together, where there were several.
    pub agents: Vec<AgentResult>,
    /// Actions of manual control on it.
    pub steered: Vec<SteeredResult>,
}

impl PhaseOutcome {
    /// Makes the outcome of a phase of which only its measurements are known. `origin` is the begin of the run, on core's
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

    /// Builds the result of the phase.
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

    /// Returns the examples of anomalies, all that were kept.
    #[must_use]
    pub fn anomalies(&self) -> Vec<AnomalyResult> {
        let PhaseMeasure { anomalies, start, .. } = &self.measure;
        anomalies.iter().map(|anomaly| AnomalyResult::new(anomaly, *start)).collect()
    }
}
