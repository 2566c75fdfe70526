//! One phase of a session: carries it out, judges what it shows, and builds its result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kvdyno_core::load::{Job, LoadError, Ran};
use kvdyno_core::measure::{
    Limit, PhaseMeasure, ResourceSummary, Sample, Sampler, StopReason, Stretch, now,
};
use kvdyno_core::store::{ErrorClass, Threading, Work};
use kvdyno_core::verdict::{PhaseFacts, Reason, judge_phase};
use kvdyno_core::workload::PhasePlan;
use kvdyno_core::workload::fault::POWER;
use kvdyno_report::account::outages;
use kvdyno_report::events::fold::Fold;
use kvdyno_report::events::{Event, LoadEnded, used};
use kvdyno_report::result::{
    EndCause, EventResult, FaultResult, PhaseOutcome, PhaseResult, Published, Status,
    SteeredResult, TestbedResult,
};
use kvdyno_testbed::{LogWatch, work_of};

use super::Session;
use super::ended::{self, EndedServer};
use super::manual_control::ManualControl;
use super::watch::Watch;
use crate::console::Console;
use crate::existing::Existing;
use crate::exit::Failure;
use crate::fleet::LatestUse;
use crate::output::Output;
use crate::sessions::keep_proven;
use crate::testbed::{Disturbance, Disturbed, LookBack, Surroundings, lock};
use crate::writers::name_writers;

impl Session<'_> {
    /// Carries a phase out; `None` if it could not begin.
    pub(super) fn phase(&mut self, phase: &PhasePlan, output: &Output) -> Option<PhaseOutcome> {
        let outcome = self.carry_out(phase, output);
        // Whatever the store did then, the failed machine below it is to blame.
        let failed = self.keeper.as_ref().and_then(|keeper| lock(keeper).machine_failure());
        if let Some(message) = failed.filter(|_| self.status != Status::Interrupted) {
            let message = format!("phase {}: {message}; what was measured is kept", phase.name);
            self.cause = Some(EndCause::Internal);
            self.status = Status::Failed { message };
        }
        outcome
    }

    fn carry_out(&mut self, phase: &PhasePlan, output: &Output) -> Option<PhaseOutcome> {
        let mut outcome = self.load_or_end(phase, output)?;
        let measure = &outcome.measure;
        self.records = measure.records;
        self.accounting.add(phase, measure, &outcome.faults);
        self.reached.insert(phase.name.clone(), measure.rate());
        note_repairs(&mut self.not_back, &phase.name, &outcome.faults);
        self.status = match measure.stopped {
            StopReason::AgentLost if self.goes_on_without_lost() => Status::Complete,
            _ => status_after(&self.url, self.store.threading(), phase, measure),
        };
        if let Status::Failed { message } = &mut self.status {
            self.cause = Some(match (measure.stopped, self.not_back.values().next()) {
                (StopReason::TimeLimit, _) => EndCause::TimeLimit,
                (StopReason::AgentLost, _) => EndCause::AgentLost,
                (StopReason::StoreLost, Some(said)) => {
                    *message = format!("{}: {said}", self.url);
                    EndCause::NotBack
                }
                _ => EndCause::StoreLost,
            });
        }
        let is_over = self.has_lost_agents() && !self.goes_on_without_lost();
        if self.status == Status::Complete && is_over {
            self.cause = Some(EndCause::AgentLost);
            self.status = Status::Failed {
                message: format!(
                    "phase {} lost an agent; the run ends there, and what was measured is kept",
                    phase.name
                ),
            };
        }
        outcome.nodes = self.node_processes.names();
        outcome.work.extend(self.work(&outcome.measure));
        let used = outcome.resources.as_ref().map(|resources| &resources.summary);
        outcome.limit = used.and_then(|used| self.limit(measure, used));
        let store = &self.context.profile.store;
        outcome.published = Published::of(self.options.plan, store, &phase.name);
        Some(outcome)
    }

    /// Carries the load of a phase. If an agent was lost before it began and the run goes on without it, the others
    /// begin anew.
    fn load_or_end(&mut self, phase: &PhasePlan, output: &Output) -> Option<PhaseOutcome> {
        loop {
            if !self.take_over_lost() {
                return None;
            }
            let error = match self.load(phase, output) {
                Ok(outcome) => return Some(outcome),
                Err(error) => error,
            };
            let is_interrupted = self.fleet.is_some() && self.context.interrupt.is_raised();
            let lost = self.agents_lost().map(|lost| (phase.name.clone(), vec![lost]));
            let has_lost = lost.is_some();
            self.reasons.extend(lost);
            if has_lost && !is_interrupted && self.goes_on_without_lost() {
                continue;
            }
            let failure = self.failure_of(phase, &error);
            self.cause = Some(failure.cause());
            self.status = match is_interrupted {
                true => Status::Interrupted,
                false => Status::Failed { message: failure.to_string() },
            };
            return None;
        }
    }

    /// Returns the failure of a phase that could not begin. If the store is not there after a repair that did not
    /// bring it back, that is no mistake of the user's.
    fn failure_of(&self, phase: &PhasePlan, error: &LoadError) -> Failure {
        let not_back = self.not_back.values().next();
        if let (LoadError::Unavailable(_), Some(said)) = (error, not_back) {
            return Failure::not_back(format!("{}: {said}", self.url));
        }
        let connections = phase.groups.iter().map(|g| u64::from(g.clients / g.pipeline.max(1)));
        Failure::of_load(&self.url, error).advising_files(connections.sum())
    }

    /// Closes a phase of which nothing more will be known. Returns its result.
    pub(super) fn close(&self, outcome: &PhaseOutcome, output: &Output) -> PhaseResult {
        let result = outcome.result();
        output.events().publish(Event::PhaseEnded(Box::new(result.clone())));
        self.judge_so_far(output);
        result
    }

    fn load(&mut self, phase: &PhasePlan, output: &Output) -> Result<PhaseOutcome, LoadError> {
        let job = match self.sightings.as_ref().filter(|_| phase.load && only_inserts(phase)) {
            Some(found) => Job::filling(phase.clone(), self.context.clone(), found)?,
            None => Job::new(phase.clone(), self.context.clone())?,
        };
        let job = Arc::new(job);
        let sampler = self.sampler(output);
        let (mut measure, disturbed, steered) = self.carry(phase, &job, output)?;
        let ours = self.context.dataset.session;
        let over = keep_proven(&mut measure.tally.other_writers, ours);
        measure.tally.of_no_other = measure.tally.of_no_other.saturating_add(over);
        let mut resources = sampler.map(Sampler::stop);
        if let (Some(_), Some(resources)) = (&self.fleet, &mut resources) {
            // Agents on this machine are no other programs, and nothing tells how much they took.
            resources.summary.others = None;
        }
        if self.keeper.is_some() && resources.is_some() {
            output.events().publish(Event::NodesCame { nodes: self.node_processes.later() });
        }
        if let Some(limit) = &self.device {
            let beside = limit.figures(&measure);
            measure.figures.extend(beside);
        }
        let issued = measure.issued.clone();
        self.ran.push(Ran { plan: phase.clone(), issued, stopped: measure.stopped });
        self.name_writers(&mut measure);
        let summary = resources.as_ref().map(|resources| &resources.summary);
        self.was_ended |= disturbed.faults.iter().any(FaultResult::ends_processes);
        let outages = outages(&measure, &disturbed.faults);
        let names = self.node_processes.names();
        let ended = EndedServer::all(disturbed.ended, &names, resources.as_ref(), measure.start);
        self.has_faults |= !disturbed.faults.is_empty();
        self.judge(phase, &measure, summary, &outages, &steered);
        self.judge_testbed(&ended, disturbed.is_testbed_gone);
        let history = measure.linearizability.as_ref().map(|examined| &examined.history);
        let history = history.filter(|history| !history.records.is_empty());
        let history = history.map(|history| history.edn());
        let old = measure.old;
        let work = ended.iter().filter_map(EndedServer::event).collect();
        let outcome =
            PhaseOutcome { work, ..PhaseOutcome::new(phase.clone(), measure, output.origin()) };
        let anomalies = outcome.anomalies();
        output.events().publish(Event::LoadEnded(Box::new(LoadEnded { anomalies, history, old })));
        output.show();
        let Disturbed { faults, unasked, absent, .. } = disturbed;
        let looked = faults.iter().filter_map(|fault| fault.cut.as_ref()?.looked_back);
        self.in_between.answered += looked.map(|looked| looked.answered).sum::<u64>();
        self.in_between.absent.extend(absent);
        let fleet = self.fleet.as_ref();
        let agents = fleet.map_or_else(Vec::new, |fleet| fleet.lock().table(&outcome.measure));
        Ok(PhaseOutcome { resources, faults, unasked, agents, steered, ..outcome })
    }

    /// Carries the load, waits for its repair, and looks again at what looked wrong.
    fn carry(
        &self,
        phase: &PhasePlan,
        job: &Arc<Job>,
        output: &Output,
    ) -> Result<(PhaseMeasure, Disturbed, Vec<SteeredResult>), LoadError> {
        let look_back = self.look_back(phase);
        let around = Surroundings {
            look_back: look_back.as_ref(),
            node_processes: &self.node_processes,
            store: &self.store,
            dataset: self.context.dataset,
            interrupt: &self.context.interrupt,
            events: output.events(),
            is_ours: self.testbed.as_ref().is_some_and(TestbedResult::is_made),
        };
        let store = (output.store_number(), self.context.profile.store.as_str());
        let disturbance = Disturbance::new(self.keeper.as_ref(), around, phase);
        let control = ManualControl {
            steering: self.options.console.as_ref().and_then(Console::steering),
            job: Arc::clone(job),
            agents: self.fleet.as_ref().map(|fleet| fleet.lock().count()),
            is_planned: usize::from(phase.index) < self.options.plan.phases.len(),
            interrupt: &self.context.interrupt,
            done: Vec::new(),
        };
        let (events, origin) = (output.events(), output.origin());
        let mut watch = Watch::new(events, origin, store, phase, disturbance, control);
        let measure = self.carry_load(phase, job, &mut watch);
        // Suspect records are read again after the repair: a record that cannot be reached is not lost.
        let disturbed = watch.disturbance().end();
        let mut steered = watch.steered();
        steered.extend(disturbed.manual.iter().cloned());
        steered.sort_by_key(|steered| steered.at_ns);
        let mut measure = measure?;
        self.look_again(job, &mut measure, &mut watch);
        Ok((measure, disturbed, steered))
    }

    /// Returns how to look for the inserts of a phase after each cut of power; `None` where they cannot be told
    /// from other writes, or other processes know of them.
    fn look_back(&self, phase: &PhasePlan) -> Option<LookBack> {
        let is_cut = phase.faults.iter().any(|fault| *fault.kind() == POWER);
        let first = self.accounting.first_insert(phase, self.context.fields_apart);
        let first = first.filter(|_| is_cut && self.fleet.is_none())?;
        let ledger = Arc::clone(self.context.ledger.as_ref()?);
        let (store, _) = self.origin.strongest(&self.context, self.records);
        Some(LookBack { store, context: self.context.clone(), ledger, first })
    }

    /// Samples this machine and the nodes, and publishes each sample.
    fn sampler(&self, output: &Output) -> Option<Sampler> {
        let (events, origin) = (output.events().clone(), output.origin());
        let node_processes = self.node_processes.clone();
        let agents = self.fleet.as_ref().map(|fleet| fleet.lock().latest_use.clone());
        let kind = self.testbed.as_ref().map_or("", |testbed| &testbed.kind);
        let mut logs = LogWatch::new(kind);
        let keeper = self.keeper.clone();
        let publish = move |before: &Sample, after: &Sample| {
            let work = node_processes.processes().into_iter();
            let work = work.flat_map(|(pid, name)| {
                logs.news(pid).into_iter().map(move |work| (work, name.clone()))
            });
            let work: Vec<(Work, String)> = work.collect();
            // What clients used to connect is no part of the phase.
            let Some(began) = events.look(Fold::loads_since) else { return };
            if let Some(mut used) = used(before, after, &node_processes.names(), origin) {
                used.processes.extend(agents.iter().flat_map(LatestUse::all));
                events.publish(Event::Used(used));
            }
            // Calendar time, as logs have it.
            let since = Duration::from_nanos(now().saturating_sub(origin + began));
            let begin = SystemTime::now() - since;
            let work = work.into_iter().map(|(work, who)| work_of_phase(work, &who, begin));
            let mut work: Vec<EventResult> = work.collect();
            let at = after.at.saturating_sub(origin + began);
            let gone = node_processes.ended(&ended::vanished(before, after), keeper.as_ref());
            work.extend(gone.iter().map(|node| {
                let what = ended::what(node);
                EventResult { what, from_ns: at, to_ns: at }
            }));
            if !work.is_empty() {
                events.publish(Event::Worked { work });
            }
        };
        self.node_processes.sample(self.keeper.as_ref(), Box::new(publish))
    }

    fn limit(&self, measure: &PhaseMeasure, used: &ResourceSummary) -> Option<Limit> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let kept_to = self.testbed.iter().find_map(|t| t.server_processors.as_ref().map(Vec::len));
        Limit::of(&measure.workers, self.store.threading(), used, processors, kept_to)
    }

    /// Returns the work that the store, and the servers of the testbed, report for the phase.
    fn work(&self, measure: &PhaseMeasure) -> Vec<EventResult> {
        let (began, store) = (measure.started_at, &self.context.profile.store);
        let of_phase = |work: Work, who: &str| work_of_phase(work, who, began);
        let own = self.store.work_since(began).into_iter().map(|work| of_phase(work, store));
        let mut all: Vec<EventResult> = own.collect();
        for (pid, name) in self.node_processes.processes() {
            let kind = self.testbed.as_ref().map_or("", |testbed| &testbed.kind);
            all.extend(work_of(kind, pid, began).into_iter().map(|work| of_phase(work, &name)));
        }
        all
    }

    fn judge(
        &mut self,
        phase: &PhasePlan,
        measure: &PhaseMeasure,
        resources: Option<&ResourceSummary>,
        outages: &[Stretch],
        steered: &[SteeredResult],
    ) {
        let added = usize::from(phase.index) >= self.options.plan.phases.len() && !self.probing;
        let evidence = PhaseFacts {
            plan: phase,
            measure,
            threading: self.store.threading(),
            resources,
            outages,
            after_end: self.was_ended,
            prepares: phase.load || added,
        };
        let mut reasons = judge_phase(&evidence);
        reasons.extend(self.agents_lost());
        self.judge_agents(phase, measure.span(), &mut reasons, evidence.prepares || phase.warmup);
        let changes = steered.iter().filter(|steered| !steered.is_note()).count() as u64;
        reasons.extend((changes > 0).then_some(Reason::Steered { changes }));
        self.reasons.push((phase.name.clone(), reasons));
    }

    /// Adds to the phase's reasons the servers that ended, and that the testbed is gone.
    fn judge_testbed(&mut self, ended: &[EndedServer], is_gone: bool) {
        let in_faults = self.has_faults;
        let Some((_, reasons)) = self.reasons.last_mut() else { return };
        reasons.extend(ended.iter().map(|server| server.reason(in_faults)));
        // A user who interrupts a run ends its testbed, too.
        let is_gone = is_gone && !self.context.interrupt.is_raised();
        reasons.extend(is_gone.then_some(Reason::TestbedGone));
    }

    /// Names the writers of wrong values, as far as they are known: records that existed before have none here.
    fn name_writers(&self, measure: &mut PhaseMeasure) {
        if !self.context.fields_apart && self.existing == Existing::None {
            name_writers(&self.context, &self.ran, measure);
        }
    }
}

/// Describes work of a server, in a phase that began at a moment of calendar time.
fn work_of_phase(work: Work, who: &str, began: SystemTime) -> EventResult {
    let since = |at: SystemTime| at.duration_since(began).unwrap_or_default().as_nanos() as u64;
    let (from_ns, to_ns) = (since(work.from), since(work.to));
    EventResult { what: format!("{} of {who}", work.what), from_ns, to_ns }
}

/// Keeps the nodes that the repairs of a phase did not bring back, each with a sentence, and removes those that came
/// back.
fn note_repairs(not_back: &mut BTreeMap<String, String>, phase: &str, faults: &[FaultResult]) {
    for repair in faults.iter().filter(|fault| fault.repairs()) {
        let FaultResult { node, what, error, .. } = repair;
        match error {
            None => drop(not_back.remove(node)),
            Some(why) => {
                let said = format!(
                    "the store did not come back after the faults of phase {phase}, so that what was to follow is \
                     left out: {what} {node}, not done: {why}"
                );
                not_back.insert(node.clone(), said);
            }
        }
    }
}

fn only_inserts(phase: &PhasePlan) -> bool {
    let mut kinds = phase.groups.iter().flat_map(|group| &group.mix.parts);
    kinds.all(|&(kind, part)| part == 0 || kind.inserts())
}

fn status_after(
    url: &str,
    threading: Threading,
    phase: &PhasePlan,
    measure: &PhaseMeasure,
) -> Status {
    let lost = |what: &str| lost_text(url, threading, phase, measure, what);
    match measure.stopped {
        StopReason::Interrupted => Status::Interrupted,
        StopReason::StoreLost => Status::Failed { message: lost("nothing succeeded any more") },
        StopReason::AgentLost => Status::Failed {
            message: format!(
                "phase {} ended early, for an agent was lost; what was measured is kept",
                phase.name
            ),
        },
        StopReason::TimeLimit => Status::Failed {
            message: format!(
                "phase {} did not end within {}; give it fewer requests or a --duration",
                phase.name,
                kvdyno_core::ground::units::format_duration(phase.time_limit)
            ),
        },
        StopReason::Requests | StopReason::Duration => match not_loaded(phase, measure) {
            Some(what) => Status::Failed { message: lost(&what) },
            None => Status::Complete,
        },
    }
}

/// Describes what is wrong with a load that later phases cannot build on: more than one in a hundred of its requests
/// did not succeed. `None` if nothing is.
fn not_loaded(phase: &PhasePlan, measure: &PhaseMeasure) -> Option<String> {
    let loads =
        phase.load && phase.groups.iter().any(|g| g.mix.parts.iter().any(|m| m.0.inserts()));
    let failed: u64 = measure.errors.iter().map(|error| error.count).sum();
    (loads && failed > measure.started / 100)
        .then(|| format!("{failed} of {} requests did not succeed", measure.started))
}

fn lost_text(
    url: &str,
    threading: Threading,
    phase: &PhasePlan,
    measure: &PhaseMeasure,
    what: &str,
) -> String {
    // The error that came last tells the present state; the first may be a passing trouble.
    let error = measure.errors.iter().max_by_key(|error| error.last_at);
    let advice = match error.map(|error| error.class) {
        Some(ErrorClass::Full) => "give it more room, or use fewer or smaller records",
        Some(ErrorClass::Rejected | ErrorClass::Unsupported) => {
            "see whether the suite asks for what the store takes"
        }
        Some(ErrorClass::Overloaded) => {
            "it has too much to do: use fewer --clients, or a lower --rate"
        }
        _ if threading == Threading::InProcess => {
            "see whether its folder has room and may be written to"
        }
        Some(ErrorClass::Unavailable) => "it runs and says that it cannot serve: see its log",
        Some(ErrorClass::Protocol) => "see what listens at this address",
        _ => "see whether the server runs",
    };
    format!(
        "{url}: {what} in phase {}: {}; {advice}; what was measured is kept",
        phase.name,
        error.map_or("no answer", |error| &error.first_message)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_back_with_the_last_repair_that_brought_it_back() {
        let repair = |node: &str, error: Option<&str>| FaultResult {
            what: "start again".into(),
            node: node.into(),
            error: error.map(str::to_owned),
            ..FaultResult::default()
        };
        let fault = FaultResult { what: "kill".into(), ..repair("n-3", Some("it is gone")) };
        let mut not_back = BTreeMap::new();
        let faults = [fault, repair("n-1", Some("no room")), repair("n-2", Some("bad file"))];
        note_repairs(&mut not_back, "cut", &faults);
        note_repairs(&mut not_back, "next", &[repair("n-1", None)]);
        let said: Vec<&String> = not_back.values().collect();
        assert_eq!(not_back.keys().collect::<Vec<_>>(), ["n-2"]);
        for part in ["phase cut", "start again n-2, not done: bad file"] {
            assert!(said[0].contains(part), "{said:?}");
        }
    }
}
