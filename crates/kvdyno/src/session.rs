//! All phases of a plan against one store: existing data, ledger, phases, reading back, verdict.

mod ended;
mod fleet;
mod manual_control;
mod phase;
mod preflight;
mod search;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kvdyno_core::load::{AnyStore, Ran, StoreContext};
use kvdyno_core::measure::StopReason;
use kvdyno_core::store::{Consistency, Durability, Profile, Threading};
use kvdyno_core::suite::Plan;
use kvdyno_core::verdict::{Extent, Reason, judge_run};
use kvdyno_core::verify::{Expiry, Initial, Ledger, LedgerConfig, Sightings, TakenOver};
use kvdyno_core::workload::{Dataset, Kind, PhasePlan};
use kvdyno_report::claims;
use kvdyno_report::events::{Event, StoreEnded};
use kvdyno_report::result::{
    ClaimResult, DeleteAccount, EndCause, InsertAccount, PhaseOutcome, SkippedPhase, Status,
    StoreResult, StoreRun, TestbedResult, Verdict, WriteAccount, rfc3339,
};
use kvdyno_stores::diagnosis;

use crate::account::{Accounting, InBetween};
use crate::added::Pass;
use crate::args::DataPolicy;
use crate::device::DeviceLimit;
use crate::existing::{self, Existing, Found};
use crate::exit::{Exit, Failure};
use crate::fleet::{FleetInUse, TakesOver};
use crate::open_store::OpenStore;
use crate::output::Output;
use crate::replicas::{self, Origin};
use crate::run_options::RunOptions;
use crate::sessions::{Heartbeat, end_session};
use crate::testbed::{NodeProcesses, SharedKeeper};

pub use preflight::preflight;

/// Most records with overlapping or indeterminate writes that the ledger keeps apart.
const OVERLAP_CAPACITY: usize = 1 << 20;

/// One store's run.
pub struct Session<'a> {
    options: &'a RunOptions<'a>,
    store: Arc<dyn AnyStore>,
    /// Store that is asked what became of the writes.
    origin: Origin,
    url: String,
    testbed: Option<TestbedResult>,
    keeper: Option<SharedKeeper>,
    /// Processes of the testbed's nodes.
    node_processes: NodeProcesses,
    context: StoreContext,
    existing: Existing,
    /// Existence of each record, if some exist and some do not.
    sightings: Option<Arc<Sightings>>,
    /// Limit of the device under the store, if the plan asks for it.
    device: Option<DeviceLimit>,
    /// Account of the writes.
    accounting: Accounting,
    /// Throughput of each phase that has ended, operations a second, by its name.
    reached: BTreeMap<String, f64>,
    /// Number of records that exist by now.
    records: u64,
    ran: Vec<Ran>,
    reasons: Vec<(String, Vec<Reason>)>,
    /// Number of the plan's phases that came to their end, reading back included.
    ended: u64,
    status: Status,
    /// Cause of its end, if it cannot go on.
    cause: Option<EndCause>,
    /// True while phases beyond the plan are probes of a search, which are judged like any other.
    probing: bool,
    /// Nodes that their last repair did not bring back, each with a sentence about it.
    not_back: BTreeMap<String, String>,
    /// True once faults were injected.
    has_faults: bool,
    /// True once faults have ended processes of the store or cut its power.
    was_ended: bool,
    /// Findings about inserts that were looked for between power cuts, since all records were last read back.
    in_between: InBetween,
    /// Agents that carry the load; `None` if this process does.
    fleet: Option<FleetInUse>,
    /// Number of lost agents that the verdict names already.
    lost_named: usize,
    /// Session numbers of writes to records that lost agents left.
    further_sessions: Vec<u32>,
    /// True while records are read back, at the strongest level of reads.
    reads_back: bool,
}

impl<'a> Session<'a> {
    /// Prepares the run: asks the store for its profile, deals with existing records, makes the ledger.
    ///
    /// # Errors
    /// [`Failure`] if the store cannot be reached, holds records although it must not, or the
    /// ledger is larger than the machine.
    pub fn open(options: &'a RunOptions<'a>, opened: OpenStore) -> Result<Self, Failure> {
        let OpenStore { url, full, store } = opened;
        let profile = store.ask_profile().map_err(|error| Failure::of_load(&url, &error))?;
        let origin =
            Origin::of(&store, &profile).map_err(|error| Failure::of_load(&url, &error))?;
        preflight::refuse_unsupported(options, &profile, &url)?;
        let mut context = context_of(options, profile);
        fleet::wait_for_earlier(options, context.profile.timeout)?;
        let Found { existing, sightings } = existing::prepare(options, &store, &url, &context)?;
        let mut reasons = Vec::new();
        let fleet = match &options.fleets {
            None => {
                context.ledger = ledger_of(options, &context, existing)?;
                None
            }
            Some(fleets) => {
                let (fleet, early) = fleet::take(fleets, options, &full, existing)?;
                let first = options.plan.phases.first().map(|phase| phase.name.clone());
                reasons.extend(first.zip(early).map(|(first, early)| (first, vec![early])));
                Some(fleet)
            }
        };
        let node_processes = NodeProcesses::serving(&diagnosis::all_servers(&url));
        Ok(Session {
            fleet,
            lost_named: 0,
            further_sessions: Vec::new(),
            reads_back: false,
            options,
            store,
            origin,
            url,
            testbed: None,
            keeper: None,
            node_processes,
            context,
            existing,
            sightings,
            device: None,
            accounting: Accounting::new(existing == Existing::None),
            reached: BTreeMap::new(),
            records: existing::planned_records(options.plan),
            ran: Vec::new(),
            reasons,
            ended: 0,
            status: Status::Complete,
            cause: None,
            probing: false,
            not_back: BTreeMap::new(),
            has_faults: false,
            was_ended: false,
            in_between: InBetween::default(),
        })
    }

    /// Adds the testbed that the store belongs to: it is disclosed, its nodes are sampled, and faults are injected
    /// into it.
    pub fn on_testbed(self, testbed: TestbedResult, keeper: SharedKeeper) -> Self {
        let node_processes = NodeProcesses::of(&testbed.nodes);
        Session { testbed: Some(testbed), keeper: Some(keeper), node_processes, ..self }
    }

    /// Runs every phase; `output` has what was measured, whatever happens.
    pub fn run(mut self, output: &Output) -> Exit {
        let store = StoreResult::new(&self.url, &self.context.profile);
        let mut run = StoreRun::begin(store, Some(self.context.dataset), SystemTime::now());
        run.notes.clone_from(&self.options.unseen);
        run.of_agents.extend(self.said_of_agents());
        run.testbed.clone_from(&self.testbed);
        let _heartbeat = self.heartbeat();
        let plan = self.options.plan;
        run.skipped = plan.phases.iter().filter_map(|phase| self.left_out(phase)).collect();
        let planned = (plan.phases.len() - run.skipped.len()) as u64;
        output.events().publish(Event::StoreBegan(Box::new(run)));
        if let Some(block) = plan.device_limit {
            let limit = DeviceLimit::measure(plan, block, self.store.folder());
            self.device =
                limit.map_err(|error| warn_user!("kvdyno: no limit of the device: {error}")).ok();
        }
        self.end_without_agents();
        let phases = if self.status == Status::Complete { plan.phases.len() } else { 0 };
        for index in 0..phases {
            let mut phase = plan.phase_with(index, self.records_before(index));
            phase.verify &= self.options.verify;
            plan.steer_as_before(&mut phase, output.store_number());
            if self.left_out(&phase).is_some() {
                continue;
            }
            match plan.search(phase.index) {
                Some(order) => self.search(order, &phase, output),
                None => self.step(&mut phase, output),
            }
            if self.status != Status::Complete {
                break;
            }
            self.ended += 1;
        }
        self.conclude(planned, output)
    }

    /// Begins to look for other runs at the same records, and to tell them of this one if it writes any. `None` if no
    /// other run can reach the store, because it is in this process or a testbed of the run's own, or if nothing is
    /// judged or written.
    fn heartbeat(&self) -> Option<Heartbeat> {
        let is_shared = self.keeper.is_none()
            && self.store.threading() == Threading::Networked
            && diagnosis::names_servers(&self.url);
        let writes = existing::writes(self.options.plan, self.existing != Existing::All);
        let begin = || Heartbeat::begin(self.store.clone(), &self.context, writes);
        (is_shared && (self.options.verify || writes)).then(begin)
    }

    /// Returns the entry of a phase that is skipped for this store, with the reason; `None` if it is to be run.
    fn left_out(&self, phase: &PhasePlan) -> Option<SkippedPhase> {
        let why = if phase.load && self.existing == Existing::All {
            "its records are there already"
        } else if self.keeper.is_none() && self.options.plan.needs_nodes.contains(&phase.index) {
            "it does something to servers, and kvdyno did not start any (--testbed does)"
        } else if !self.options.plan.needs_survival.contains(&phase.index) {
            return None;
        } else if self.context.profile.durability.level < Durability::PowerLoss {
            "the store does not say that an acknowledged write survives a loss of power"
        } else if !self.testbed.as_ref().is_some_and(TestbedResult::has_file_systems) {
            "its nodes have no file systems of their own whose power could be cut (`disk=ext4`)"
        } else {
            return None;
        };
        Some(SkippedPhase { name: phase.name.clone(), why: why.to_owned() })
    }

    /// Runs a phase that is no search, with its reading back.
    fn step(&mut self, phase: &mut PhasePlan, output: &Output) {
        if !self.calibrate(phase) {
            return;
        }
        let mut outcome = self.phase(phase, output);
        while let Some(again) = self.load_again(phase, outcome.as_ref()) {
            outcome.iter().for_each(|outcome| drop(self.close(outcome, output)));
            outcome = self.phase(&again, output);
        }
        if self.is_to_read_back(phase) {
            self.read_back(phase, outcome, output);
        } else if let Some(outcome) = outcome {
            let writes = match self.status {
                Status::Failed { .. } => self.account_in_between(),
                _ => None,
            };
            self.close(&PhaseOutcome { writes, ..outcome }, output);
        }
    }

    /// Returns true if records are to be read back after this phase: because the suite asks for it here, or because
    /// it asks later, and an agent was lost, so that no later phase comes.
    fn is_to_read_back(&self, phase: &PhasePlan) -> bool {
        let later = &self.options.plan.phases[usize::from(phase.index)..];
        let asked = match &self.status {
            Status::Complete => phase.read_back,
            Status::Failed { .. } if self.has_unresolved() => {
                !self.ran.is_empty() && later.iter().any(|phase| phase.read_back)
            }
            _ => false,
        };
        asked && self.options.verify
    }

    /// Returns the number of the next phase that the plan does not have.
    fn next_index(&self) -> u16 {
        (self.options.plan.phases.len() + self.ran.len()) as u16
    }

    /// Returns the number of records before a phase: the first one finds those of the plan; each later one those that
    /// the phases before have made.
    fn records_before(&self, index: usize) -> u64 {
        let planned = self.options.plan.phases[index].groups.first().map_or(0, |g| g.records);
        if self.ran.is_empty() { planned } else { self.records }
    }

    /// Sets the rate of a phase if that is a share of what an earlier one reached. Returns false if that one was not
    /// run.
    fn calibrate(&mut self, phase: &mut PhasePlan) -> bool {
        let name = phase.name.clone();
        for share in self.options.plan.shares.iter().filter(|share| share.phase == name) {
            let Some(&reached) = self.reached.get(&share.of) else {
                let line = format!(
                    "the rate of phase {} is {}, but {} was skipped because its records exist; give --rate, \
                     or --data wipe",
                    share.phase,
                    share.describe(),
                    share.of
                );
                self.cause = Some(EndCause::Usage);
                self.status = Status::Failed { message: line };
                return false;
            };
            share.apply(phase, reached);
        }
        true
    }

    /// Reads every record back, accounts for every write so far, and closes both phases. After faults the store first
    /// gets time to answer again. The account is kept with the phase that was read back; for a search, which is no
    /// phase by itself, with the reading. If an agent was lost the others read their own records.
    fn read_back(&mut self, phase: &PhasePlan, mut before: Option<PhaseOutcome>, output: &Output) {
        let nodes = self.testbed.as_ref().map_or(0, |testbed| testbed.nodes.len());
        // If no node is left, none will answer.
        if !phase.faults.is_empty() && (nodes == 0 || self.not_back.len() < nodes) {
            self.origin.wait(&self.context, self.records);
        }
        if !self.take_over_lost() {
            before.iter().for_each(|outcome| drop(self.close(outcome, output)));
            return;
        }
        let status = self.status.clone();
        self.count_unclear();
        // The copies come first: a read at a strong level would repair what it finds.
        let copies = replicas::compare(&self.store, &self.context, self.records, &self.testbed);
        let (store, how) = self.origin.strongest(&self.context, self.records);
        let usual = std::mem::replace(&mut self.store, store);
        let profile = self.origin.profile().clone();
        let promised = std::mem::replace(&mut self.context.profile, profile);
        let number = self.next_index();
        let first = self.accounting.first_insert(phase, self.context.fields_apart);
        let inserted = before.as_ref().map(|of| of.measure.tally.writes_acknowledged).zip(first);
        let pass = Pass::reading_back(phase, self.records).phase("Read back", number);
        let pass = PhasePlan {
            part_of: Some(phase.name.clone()),
            inserted_from: inserted.map(|(_, first)| first),
            ..pass
        };
        self.reads_back = true;
        let mut reading = self.phase(&pass, output);
        self.reads_back = false;
        self.store = usual;
        let ownerless = self.ownerless();
        let account = match &reading {
            // On a machine that failed, absence says nothing.
            _ if self.cause == Some(EndCause::Internal) => None,
            Some(PhaseOutcome { measure, .. }) if has_read_all(measure.stopped) => {
                Some(self.accounting.account(&self.context, measure, &how, &ownerless))
            }
            None if self.has_lost_agents() && ownerless.records == self.records => {
                Some(self.accounting.unread(&self.context, &ownerless))
            }
            Some(PhaseOutcome { measure, .. }) if measure.tally.records > 0 => None,
            _ => self.account_in_between(),
        };
        self.in_between = InBetween::default();
        // The inserts of a lost agent were not looked at.
        let looked_at = inserted.zip(reading.as_ref()).filter(|_| !self.has_lost_agents());
        let inserts = looked_at.map(|((acknowledged, _), reading)| InsertAccount {
            acknowledged,
            lost: reading.measure.old.lost_inserts,
        });
        let apart = self.accounting.deletes_apart(phase, self.context.fields_apart);
        let deleted = before.as_ref().filter(|_| apart && !self.has_lost_agents());
        let deletes = deleted.zip(account.as_ref()).map(|(of, account)| DeleteAccount {
            acknowledged: of.measure.tally.writes_acknowledged,
            undone: account.resurrected,
        });
        if let Some(phase) = before.as_mut().or(reading.as_mut()) {
            let apart = |account| WriteAccount { copies, inserts, deletes, ..account };
            phase.writes = account.map(apart);
        }
        self.context.profile = promised;
        if status != Status::Complete && self.status != Status::Interrupted {
            // The earlier cause of the run's end is the one to tell.
            self.status = status;
        }
        for outcome in before.iter().chain(&reading) {
            self.close(outcome, output);
        }
    }

    /// Accounts for writes if not all records are read back, by the inserts that were absent when they were looked
    /// for between power cuts. `None` if none was absent, for then nothing is known.
    fn account_in_between(&self) -> Option<WriteAccount> {
        let seen = &self.in_between;
        let is_known = !seen.absent.is_empty() && self.cause != Some(EndCause::Internal);
        is_known.then(|| self.accounting.seen_in_between(&self.context, seen))
    }

    /// Publishes how the run stands after a phase, for viewers of the live page.
    fn judge_so_far(&self, output: &Output) {
        let extent = Extent { planned: 1, ended: 1, failed: false };
        let scale = self.options.plan.scale;
        let judged = judge_run(self.reasons.clone(), extent, scale, cfg!(debug_assertions));
        let (verdict, claims) = (Verdict::from(&judged), self.claims(output));
        output.events().publish(Event::JudgedSoFar { verdict, claims });
    }

    /// Judges the suite's claims about the store by the phases so far.
    fn claims(&self, output: &Output) -> Vec<ClaimResult> {
        output.events().look(|fold| {
            let run = fold.result().and_then(|result| result.runs.last());
            run.map_or_else(Vec::new, |run| claims::judge(self.options.plan, run))
        })
    }

    /// Judges the run; `planned` phases were to be run.
    fn conclude(mut self, planned: u64, output: &Output) -> Exit {
        if let Some(fleet) = self.fleet.take() {
            fleet.lock().close();
        }
        self.further_sessions.drain(..).for_each(end_session);
        let scale = self.options.plan.scale;
        let failed = matches!(self.status, Status::Failed { .. });
        let extent = Extent { planned, ended: self.ended, failed };
        let verdict =
            judge_run(std::mem::take(&mut self.reasons), extent, scale, cfg!(debug_assertions));
        if let Status::Failed { message } = &self.status {
            warn_user!("kvdyno: {message}");
        }
        let events = output.events();
        events.publish(Event::StoreEnded(StoreEnded {
            verdict: Verdict::from(&verdict),
            status: self.status.clone(),
            cause: self.cause.filter(|_| failed),
            at: rfc3339(SystemTime::now()),
        }));
        let claims = self.claims(output);
        events.publish(Event::Judged { claims });
        // The exit depends on the kept result alone, so loading the result later gives the same.
        events.look(|fold| {
            let run = fold.result().and_then(|result| result.runs.last());
            run.map_or(Exit::Internal, |run| Exit::of_run(run, output.strict()))
        })
    }
}

/// Returns true for a reading back that has asked for every record that a process is left to read.
fn has_read_all(stopped: StopReason) -> bool {
    matches!(stopped, StopReason::Requests | StopReason::Duration)
}

/// Makes the context that all phases of a run share, but for the ledger.
pub fn context_of(options: &RunOptions<'_>, profile: Profile) -> StoreContext {
    let dataset = Dataset { session: options.session, ..options.plan.dataset };
    let mut groups = options.plan.phases.iter().flat_map(|phase| &phase.groups);
    let fields_apart =
        dataset.fields > 1 && profile.capabilities.fields && groups.any(|group| group.one_field);
    StoreContext {
        dataset,
        ledger: None,
        fields_apart,
        profile,
        options: options.load.clone(),
        interrupt: Arc::clone(&options.interrupt),
    }
}

/// Makes a ledger of this process's records; `None` if nothing is to be checked.
///
/// # Errors
/// [`Failure`] if it is larger than the machine's memory.
pub fn ledger_of(
    options: &RunOptions<'_>,
    context: &StoreContext,
    existing: Existing,
) -> Result<Option<Arc<Ledger>>, Failure> {
    let make = || Ledger::new(ledger_config(options, context, existing)).map(Arc::new);
    let ledger = options.verify.then(make).transpose();
    ledger.map_err(|error| Failure::usage(format!("{error} (--no-verify)")))
}

/// Returns the most records that there are in a run of this plan.
pub fn most_records(plan: &Plan) -> u64 {
    plan.dataset.capacity.max(existing::planned_records(plan))
}

fn any_kind(plan: &Plan, wanted: impl Fn(Kind) -> bool) -> bool {
    let mut groups = plan.phases.iter().flat_map(|phase| &phase.groups);
    groups.any(|group| group.mix.parts.iter().any(|&(kind, part)| part > 0 && wanted(kind)))
}

fn ledger_config(
    options: &RunOptions<'_>,
    context: &StoreContext,
    existing: Existing,
) -> LedgerConfig {
    let words = if context.fields_apart { u64::from(context.dataset.fields) } else { 1 };
    let profile = &context.profile;
    let (ownership, records) = (&context.options.ownership, most_records(options.plan));
    let (own, all) = (ownership.slots(records), ownership.slots_of_all(records));
    let deletes = any_kind(options.plan, |kind| kind == Kind::Delete);
    let (slots, taken_from) = match options.takes_over {
        TakesOver::Nothing => (own, None),
        TakesOver::Lost => (all, Some(own)),
        TakesOver::Everything => (own, Some(0)),
    };
    LedgerConfig {
        slots: slots * words,
        taken_over: taken_from.map(|from| TakenOver { from: from * words, deletes }),
        linearizable: profile.consistency.level == Consistency::Linearizable,
        staleness: profile.consistency.level.staleness().unwrap_or(Duration::ZERO),
        may_forget: profile.capabilities.may_forget,
        overlap_capacity: OVERLAP_CAPACITY,
        initial: match (existing, options.data) {
            (Existing::None, DataPolicy::Fresh | DataPolicy::Wipe) => Initial::Never,
            _ => Initial::Unjudged,
        },
        expiry: expiry(options.plan, profile),
        may_apply_again: profile.capabilities.may_apply_again,
    }
}

/// Returns the times to live of the plan's writes; `None` if no write has one.
fn expiry(plan: &Plan, profile: &Profile) -> Option<Expiry> {
    let writing = plan.phases.iter().flat_map(|phase| &phase.groups).filter(|group| {
        group.mix.parts.iter().any(|&(kind, _)| !kind.read_only() && kind != Kind::Delete)
    });
    let ttls: Vec<Option<Duration>> = writing.map(|group| group.ttl).collect();
    let shortest = ttls.iter().flatten().min().copied()?;
    let longest = if ttls.contains(&None) { None } else { ttls.iter().flatten().max().copied() };
    let slack = profile.timeout + Duration::from_secs(1);
    Some(Expiry { shortest, longest, precision: profile.ttl_precision, slack })
}
