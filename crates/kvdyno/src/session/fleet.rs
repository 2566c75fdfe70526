//! A session whose load agents carry: it asks them for what this process's own store and ledger would tell.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kvdyno_core::load::{Interrupt, Job, LoadError, Observer};
use kvdyno_core::measure::{PhaseMeasure, StopReason};
use kvdyno_core::verdict::Reason;
use kvdyno_core::workload::{Ownership, Part, PhasePlan};
use kvdyno_report::result::{EndCause, PhaseOutcome, Status};

use super::Session;
use crate::account::{Ownerless, Unclear};
use crate::existing::Existing;
use crate::exit::Failure;
use crate::fleet::{FleetInUse, Fleets, OnAgentLost, Opening, ReadsFrom, TakesOver, hash};
use crate::run_options::RunOptions;
use crate::sessions::further_session_number;

/// Time between two looks whether the user still wants to wait.
const LOOK: Duration = Duration::from_millis(50);

/// Gets the agents ready for the store of this URL. With them it returns the reason that names agents lost meanwhile,
/// if the others go on.
///
/// # Errors
/// [`Failure`] if an agent cannot reach the store, or if the store holds some of the records and not all.
pub(super) fn take(
    fleets: &Fleets,
    options: &RunOptions<'_>,
    url: &str,
    existing: Existing,
) -> Result<(FleetInUse, Option<Reason>), Failure> {
    if existing == Existing::Some {
        return Err(Failure::usage(
            "the store holds only a part of the records, and agents cannot load the rest; use --data wipe, or \
             leave --agents out",
        ));
    }
    let plan = serde_json::to_string(options.plan).map_err(Failure::internal)?;
    let fleet = fleets.take(&options.interrupt)?;
    let goes_on = fleets.on_lost() == OnAgentLost::GoOn;
    let takes_over = match fleets.reads() {
        ReadsFrom::Own if goes_on => TakesOver::Lost,
        _ => TakesOver::Nothing,
    };
    let opening = Opening {
        url: url.to_owned(),
        plan_hash: hash(plan.as_bytes()),
        plan,
        // Each agent has its own part.
        part: Part::WHOLE,
        ownership: Ownership::ALL,
        session: options.session,
        verify: options.verify,
        exists: existing == Existing::All,
        takes_over,
        pace: options.load.pace,
        settle: options.load.settle,
    };
    let (mut lost, of) = (Vec::new(), fleet.lock().left());
    loop {
        let mut all = fleet.lock();
        let how = (fleets.reads(), fleets.on_lost());
        let opened = all.open(&options.interrupt, how, opening.clone());
        if !all.has_lost() {
            opened?;
            break;
        }
        // If an agent was lost meanwhile, the run ends in good order, with a result; or the others begin without it.
        if !goes_on || all.left() == 0 {
            break;
        }
        lost.append(&mut all.lost());
    }
    let early = (!lost.is_empty()).then(|| Reason::AgentLost { agents: lost, of: of.into() });
    Ok((fleet, early))
}

/// Waits until no request comes any more of agents that an earlier run lost: they would write to records that this
/// run is about to look at.
///
/// # Errors
/// [`Failure`] if the user does not want to wait.
pub(super) fn wait_for_earlier(options: &RunOptions<'_>, timeout: Duration) -> Result<(), Failure> {
    let quiet_at = options.fleets.as_ref().and_then(|fleets| fleets.quiet_at(timeout));
    match wait_until(quiet_at, &options.interrupt) {
        true => Ok(()),
        false => Err(Failure::interrupted()),
    }
}

/// Waits for the moment. Returns false if the user does not want to wait so long.
fn wait_until(moment: Option<Instant>, interrupt: &Interrupt) -> bool {
    while moment.is_some_and(|moment| Instant::now() < moment) {
        if interrupt.is_raised() {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

impl Session<'_> {
    /// Returns a remark on a load by agents; `None` if there is nothing to remark.
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

    /// Lets the process that read wrongly, here or an agent, read again what looked wrong.
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

    /// Counts how the records stand before they are read back.
    pub(super) fn count_unclear(&mut self) {
        let (ledger, records) = (self.context.ledger.clone(), self.records);
        let (fleet, interrupt) = (&self.fleet, &self.context.interrupt);
        let part = self.context.options.part;
        self.accounting.before_reading(|| match (fleet, ledger) {
            (Some(fleet), _) => fleet.lock().count_unclear(records, interrupt),
            (None, Some(ledger)) => Unclear::count(&ledger, (part, &Ownership::ALL), records),
            (None, None) => Unclear::default(),
        });
    }

    /// Adds what stands out among the agents: the agent that was the limit, an outlier, late begins, skewed shares,
    /// uncertain clocks.
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
            reasons.extend(fleet.outlier(phase));
            reasons.extend(fleet.late_begin(span));
            reasons.extend(fleet.skewed(phase));
            let interval = self.options.load.interval;
            reasons.extend(fleet.uncertain(phase, interval));
        }
    }

    /// Returns true if an agent was lost.
    pub(super) fn has_lost_agents(&self) -> bool {
        self.fleet.as_ref().is_some_and(|fleet| fleet.lock().has_lost())
    }

    /// Returns the reason that names all lost agents, if one was lost since the last call.
    pub(super) fn agents_lost(&mut self) -> Option<Reason> {
        let (agents, of) = {
            let fleet = self.fleet.as_ref()?.lock();
            (fleet.lost(), fleet.count())
        };
        let named_before = std::mem::replace(&mut self.lost_named, agents.len());
        (agents.len() > named_before).then(|| Reason::AgentLost { agents, of: of.into() })
    }

    /// Returns true if the agents that are left carry on where one was lost.
    pub(super) fn goes_on_without_lost(&self) -> bool {
        let goes_on = |fleets: &Fleets| fleets.on_lost() == OnAgentLost::GoOn;
        let left = |fleet: &FleetInUse| fleet.lock().left() > 0;
        self.options.fleets.as_ref().is_some_and(goes_on) && self.fleet.as_ref().is_some_and(left)
    }

    /// Lets the agents that are left take over from those that were lost, if the run goes on without these, once no
    /// request of them comes any more. Returns false if the run cannot go on; the session's status says why.
    pub(super) fn take_over_lost(&mut self) -> bool {
        while self.goes_on_without_lost() && self.has_unresolved() {
            let lost = self.agents_lost();
            self.reasons.extend(lost.map(|lost| (self.latest_phase(), vec![lost])));
            let (quiet_at, left) = match &self.fleet {
                Some(fleet) => {
                    let fleet = fleet.lock();
                    (fleet.quiet_at(self.context.profile.timeout), fleet.left())
                }
                None => return true,
            };
            let wait = quiet_at.map(|at| at.saturating_duration_since(Instant::now()));
            warn_user!(
                "kvdyno: {left} agents take over in {} s, when nothing more can come of what was lost",
                wait.unwrap_or_default().as_secs() + 1
            );
            if !wait_until(quiet_at, &self.context.interrupt) {
                self.status = Status::Interrupted;
                return false;
            }
            let session = further_session_number();
            self.further_sessions.push(session);
            let Some(fleet) = &self.fleet else { return true };
            let taken = fleet.lock().take_over(self.records, session, &self.context.interrupt);
            if let Err(failure) = taken {
                if self.context.interrupt.is_raised() {
                    self.status = Status::Interrupted;
                    return false;
                }
                if !self.has_unresolved() {
                    self.cause = Some(failure.cause());
                    self.status = Status::Failed { message: failure.to_string() };
                    return false;
                }
            }
        }
        true
    }

    /// Returns true if an agent was lost whose load no other carries.
    pub(super) fn has_unresolved(&self) -> bool {
        self.fleet.as_ref().is_some_and(|fleet| fleet.lock().has_unresolved())
    }

    /// Returns the name of the phase that ran last, or of the first one.
    fn latest_phase(&self) -> String {
        let planned = || self.options.plan.phases.first();
        let latest = self.ran.last().map(|ran| &ran.plan).or_else(planned);
        latest.map_or_else(String::new, |phase| phase.name.clone())
    }

    /// Carries the load of `outcome` once more, if it was cut short because an agent was lost and others are left:
    /// they load all of its records. `phase` is as the plan has it.
    pub(super) fn load_again(
        &mut self,
        phase: &PhasePlan,
        outcome: Option<&PhaseOutcome>,
    ) -> Option<PhasePlan> {
        let stopped = outcome.map(|outcome| outcome.measure.stopped);
        let cut_short = stopped == Some(StopReason::AgentLost) && phase.load;
        if !cut_short || self.status != Status::Complete || !self.goes_on_without_lost() {
            return None;
        }
        self.accounting.load_again();
        let mut again = phase.clone();
        again.index = self.next_index();
        again.name = format!("{}:again", phase.name);
        again.label = format!("{} again", phase.label);
        again.part_of = Some(phase.name.clone());
        if self.options.fleets.as_ref().is_some_and(|of| of.reads() == ReadsFrom::Anywhere) {
            let left = self.fleet.as_ref().map_or(1, |fleet| fleet.lock().left());
            again.groups.iter_mut().for_each(|group| group.in_even_shares(left));
        }
        Some(again)
    }

    /// Ends a run that lost an agent before its first phase: nothing is measured, and the result says why.
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

    /// Returns what is unknown of the records because their agents were lost.
    pub(super) fn ownerless(&self) -> Ownerless {
        let fleet = self.fleet.as_ref();
        fleet.and_then(|fleet| fleet.lock().ownerless(self.records)).unwrap_or_default()
    }
}
