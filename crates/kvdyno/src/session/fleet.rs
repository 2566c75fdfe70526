//! A session whose load agents carry: what is asked of them in the place of this process's own store and ledger.

use kvdyno_core::load::{Job, LoadError, Observer};
use kvdyno_core::measure::PhaseMeasure;
use kvdyno_core::verdict::Reason;
use kvdyno_core::workload::{Ownership, PhasePlan};
use kvdyno_report::result::{EndCause, Status};
use std::sync::Arc;
use std::time::Duration;

use super::Session;
use crate::account::{Ownerless, Unclear};
use crate::existing::Existing;
use crate::exit::Failure;
use crate::fleet::{Division, FleetInUse, Fleets, Opening, ReadsFrom, hash};
use crate::run_options::RunOptions;

/// Gets the agents ready for the store of this URL.
///
/// # Errors
/// [`Failure`] if one cannot reach it, or what is there already cannot be had so.
pub(super) fn take(
    fleets: &Fleets,
    options: &RunOptions<'_>,
    url: &str,
    existing: Existing,
) -> Result<FleetInUse, Failure> {
    if existing == Existing::Some {
        return Err(Failure::usage(
            "some records are there and some are not: agents do not know which to load; use --data wipe, or \
             leave --agents out",
        ));
    }
    let plan = serde_json::to_string(options.plan).map_err(Failure::internal)?;
    let fleet = fleets.take(&options.interrupt)?;
    let opening = |division: Division| Opening {
        url: url.to_owned(),
        plan: plan.clone(),
        plan_hash: hash(plan.as_bytes()),
        part: division.part(),
        ownership: division.ownership(),
        session: options.session,
        verify: options.verify,
        exists: existing == Existing::All,
        pace: options.load.pace,
        settle: options.load.settle,
    };
    let opened = fleet.lock().open(&options.interrupt, fleets.reads(), opening);
    // Where one was lost meanwhile the run ends in good order, with a result.
    if !fleet.lock().has_lost() {
        opened?;
    }
    Ok(fleet)
}

impl Session<'_> {
    /// What else is to be known of a load by agents.
    pub(super) fn said_of_agents(&self) -> Option<String> {
        let fleets = self.options.fleets.as_ref()?;
        (fleets.reads() == ReadsFrom::Anywhere).then(|| {
            "agents read anywhere: of another's record only the stamp is judged; each draws its own operations, so \
             what is hot to write is so for each by itself"
                .to_owned()
        })
    }

    /// Carries the load of a phase, here or by agents.
    pub(super) fn carry_load(
        &self,
        phase: &PhasePlan,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError> {
        match &self.fleet {
            None => self.store.load(job, observer),
            Some(fleet) => {
                let interrupt = &self.context.interrupt;
                fleet.lock().load(phase, job, self.reads_back, interrupt, observer)
            }
        }
    }

    /// What looked wrong is read again where it was read.
    pub(super) fn look_again(
        &self,
        job: &Job,
        measure: &mut PhaseMeasure,
        observer: &mut dyn Observer,
    ) {
        match &self.fleet {
            None => self.store.look_again(job, measure, observer),
            Some(fleet) => fleet.lock().look_again(measure, &self.context.interrupt),
        }
    }

    /// How the records stand before they are read back.
    pub(super) fn count_unclear(&mut self) {
        let (ledger, records) = (self.context.ledger.clone(), self.records);
        let (fleet, interrupt) = (&self.fleet, &self.context.interrupt);
        let part = self.context.options.part;
        self.accounting.before_reading(|| match (fleet, ledger) {
            (Some(fleet), _) => fleet.lock().count_unclear(records, interrupt),
            (None, Some(ledger)) => Unclear::count(&ledger, (part, Ownership::ALL), records),
            (None, None) => Unclear::default(),
        });
    }

    /// What stands out among the agents: which was the limit, and which is unlike the others.
    pub(super) fn judge_agents(
        &self,
        phase: &PhasePlan,
        span: Duration,
        reasons: &mut Vec<Reason>,
        prepares: bool,
    ) {
        let Some(fleet) = &self.fleet else { return };
        let fleet = fleet.lock();
        reasons.iter_mut().for_each(|reason| fleet.name_limit(reason));
        if !prepares {
            reasons.extend(fleet.unlike(phase));
            reasons.extend(fleet.late_begin(span));
            let interval = self.options.load.interval;
            reasons.extend(fleet.uncertain(phase, interval));
        }
    }

    /// Whether an agent was lost.
    pub(super) fn has_lost_agents(&self) -> bool {
        self.fleet.as_ref().is_some_and(|fleet| fleet.lock().has_lost())
    }

    /// Agents that were lost, if any was since this was asked last.
    pub(super) fn agents_lost(&mut self) -> Option<Reason> {
        let (agents, of) = {
            let fleet = self.fleet.as_ref()?.lock();
            (fleet.lost(), fleet.count())
        };
        let told = std::mem::replace(&mut self.lost_told, agents.len());
        (agents.len() > told).then(|| Reason::AgentLost { agents, of: of.into() })
    }

    /// Ends a run of which an agent was lost before its first phase: nothing is measured, and the result says why.
    pub(super) fn end_without_agents(&mut self) {
        let Some(lost) = self.agents_lost() else { return };
        let first = self.options.plan.phases.first();
        let phase = first.map_or_else(String::new, |phase| phase.name.clone());
        self.reasons.push((phase, vec![lost]));
        self.cause = Some(EndCause::AgentLost);
        self.status = Status::Failed {
            message: "an agent was lost before the first phase, so that none was begun".to_owned(),
        };
    }

    /// What nobody can tell of the records, for their agents were lost.
    pub(super) fn ownerless(&self) -> Ownerless {
        let fleet = self.fleet.as_ref();
        fleet.and_then(|fleet| fleet.lock().ownerless(self.records)).unwrap_or_default()
    }
}
