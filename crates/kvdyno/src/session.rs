//! All phases of a plan against one store: existing data, ledger, phases, reading back, verdict.

mod search;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kvdyno_core::load::{AnyStore, Context, Job, LoadError, Ran, Wanted, supports, writers};
use kvdyno_core::measure::{
    Limit, PhaseMeasure, ResourceSummary, Resources, Sampler, StopReason, Stretch,
};
use kvdyno_core::store::{Consistency, ErrorClass, Profile, Threading, Work};
use kvdyno_core::suite::Plan;
use kvdyno_core::verdict::{self, Evidence, Extent, Reason, judge_phase, judge_run};
use kvdyno_core::verify::linearizability::Linearizability;
use kvdyno_core::verify::{Anomaly, AnomalyKind, Expiry, Initial, Ledger, LedgerConfig, Sightings};
use kvdyno_core::workload::{Dataset, Kind, PhasePlan};
use kvdyno_report::account::outages;
use kvdyno_report::result::{
    CourseResult, EventResult, FaultResult, Known, PhaseResult, SkippedPhase, Status, StoreResult, StoreRun,
    TestbedResult, UnaskedNode, WriteAccount,
};
use kvdyno_testbed::work_of;

use crate::account::Accounting;
use crate::added::Pass;
use crate::args::DataPolicy;
use crate::device::DeviceLimit;
use crate::existing::{self, Existing, Found};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::replicas::{self, Origin};
use crate::setting::Setting;
use crate::testbed::{Disturbed, Hears, NodeProcesses, SharedKeeper};

/// Records with overlapping or indeterminate writes that the ledger keeps apart at most.
const OVERLAP_CAPACITY: usize = 1 << 20;

/// A phase that was carried out.
struct Loaded {
    measure: PhaseMeasure,
    resources: Option<Resources>,
    faults: Vec<FaultResult>,
    unasked: Vec<UnaskedNode>,
}

/// One store's run.
pub struct Session<'a> {
    setting: &'a Setting<'a>,
    store: Arc<dyn AnyStore>,
    /// What became of the writes is asked of this one.
    origin: Origin,
    url: String,
    testbed: Option<TestbedResult>,
    keeper: Option<SharedKeeper>,
    /// Which process each of its nodes is.
    roster: NodeProcesses,
    context: Context,
    existing: Existing,
    /// Which records are missing, where some are and some are not.
    sightings: Option<Arc<Sightings>>,
    /// Of the device under the store, where the plan wants it.
    device: Option<DeviceLimit>,
    /// What became of the writes.
    accounting: Accounting,
    /// Throughput of each phase that has ended, operations a second, by its name.
    reached: BTreeMap<String, f64>,
    /// Records that exist by now.
    records: u64,
    ran: Vec<Ran>,
    reasons: Vec<(String, Vec<Reason>)>,
    /// Phases of the plan that came to their end, reading back included.
    ended: u64,
    status: Status,
    exit: Exit,
    /// Phases behind those of the plan are probes of a search, and judged like any other.
    probing: bool,
    /// Another run was seen to write the same records.
    crowded: bool,
}

impl<'a> Session<'a> {
    /// Makes ready: asks the store what it is, deals with existing records, makes the ledger.
    /// `url` has no password in it.
    ///
    /// # Errors
    /// [`Failure`] if the store cannot be reached, holds records although it must not, or the
    /// ledger is larger than the machine.
    pub fn open(
        setting: &'a Setting<'a>,
        store: Arc<dyn AnyStore>,
        url: String,
    ) -> Result<Self, Failure> {
        let profile = store.ask_profile().map_err(|error| Failure::of_load(&url, &error))?;
        let origin =
            Origin::of(&store, &profile).map_err(|error| Failure::of_load(&url, &error))?;
        let dataset = Dataset { session: setting.session, ..setting.plan.dataset };
        // Before anything is loaded; what is left out without a testbed is looked at when it comes.
        let plan = setting.plan;
        for phase in plan.phases.iter().filter(|p| !plan.needs_nodes.contains(&p.index)) {
            supports(&profile, phase, &dataset).map_err(|error| Failure::of_load(&url, &error))?;
        }
        let mut groups = setting.plan.phases.iter().flat_map(|phase| &phase.groups);
        let fields_apart = dataset.fields > 1
            && profile.capabilities.fields
            && groups.any(|group| group.one_field);
        let mut context = Context {
            dataset,
            ledger: None,
            fields_apart,
            profile,
            conduct: setting.conduct.clone(),
            interrupt: Arc::clone(&setting.interrupt),
        };
        let Found { existing, sightings } = existing::prepare(setting, &store, &url, &context)?;
        if setting.verify {
            let config = ledger_config(setting, &context, existing);
            let ledger = Ledger::new(config);
            let ledger =
                ledger.map_err(|error| Failure::usage(format!("{error} (--no-verify)")))?;
            context.ledger = Some(Arc::new(ledger));
        }
        Ok(Session {
            setting,
            store,
            origin,
            url,
            testbed: None,
            keeper: None,
            roster: NodeProcesses::default(),
            context,
            existing,
            sightings,
            device: None,
            accounting: Accounting::new(existing == Existing::None),
            reached: BTreeMap::new(),
            records: existing::planned_records(setting.plan),
            ran: Vec::new(),
            reasons: Vec::new(),
            ended: 0,
            status: Status::Complete,
            exit: Exit::Done,
            probing: false,
            crowded: false,
        })
    }

    /// The store is a testbed's: it is disclosed, its nodes are sampled, and faults befall it.
    pub fn on_testbed(self, testbed: TestbedResult, keeper: SharedKeeper) -> Self {
        let roster = NodeProcesses::of(&testbed.nodes);
        Session { testbed: Some(testbed), keeper: Some(keeper), roster, ..self }
    }

    /// Runs every phase; what was measured is in `output` whatever happens.
    pub fn run(mut self, output: &mut Output) -> Exit {
        let store = StoreResult::new(&self.url, &self.context.profile);
        let mut run = StoreRun::begin(store, Some(self.context.dataset), SystemTime::now());
        run.notes.clone_from(&self.setting.unseen);
        run.testbed.clone_from(&self.testbed);
        let plan = self.setting.plan;
        run.skipped = plan.phases.iter().filter_map(|phase| self.left_out(phase)).collect();
        let planned = (plan.phases.len() - run.skipped.len()) as u64;
        output.begin_store(run);
        if let Some(block) = plan.device_limit {
            let limit = DeviceLimit::measure(plan, block, self.store.folder());
            self.device =
                limit.map_err(|error| warn_user!("kvdyno: no limit of the device: {error}")).ok();
        }
        for index in 0..plan.phases.len() {
            let mut phase = plan.phase_with(index, self.records_before(index));
            phase.verify &= self.setting.verify;
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

    /// A phase that this store is spared, and why.
    fn left_out(&self, phase: &PhasePlan) -> Option<SkippedPhase> {
        let why = if phase.load && self.existing == Existing::All {
            "its records are there already"
        } else if self.keeper.is_none() && self.setting.plan.needs_nodes.contains(&phase.index) {
            "it does something to servers, and kvdyno did not start any (--testbed does)"
        } else {
            return None;
        };
        Some(SkippedPhase { name: phase.name.clone(), why: why.to_owned() })
    }

    /// A phase that is no search, with its reading back.
    fn step(&mut self, phase: &mut PhasePlan, output: &mut Output) {
        if !self.calibrate(phase) {
            return;
        }
        self.phase(phase, output);
        if phase.read_back && self.setting.verify && self.status == Status::Complete {
            self.read_back(phase, output);
        }
    }

    /// Number of the next phase that the plan does not have.
    fn next_index(&self) -> u16 {
        (self.setting.plan.phases.len() + self.ran.len()) as u16
    }

    /// The first phase finds what the plan says; each later one what those before have made.
    fn records_before(&self, index: usize) -> u64 {
        let planned = self.setting.plan.phases[index].groups.first().map_or(0, |g| g.records);
        if self.ran.is_empty() { planned } else { self.records }
    }

    /// Gives a phase its rate where that is a share of what an earlier one reached; `false` if that
    /// was not run.
    fn calibrate(&mut self, phase: &mut PhasePlan) -> bool {
        let name = phase.name.clone();
        for share in self.setting.plan.shares.iter().filter(|share| share.phase == name) {
            let Some(&reached) = self.reached.get(&share.of) else {
                let line = format!(
                    "phase {} goes {}, which was not run because its records are there: give --rate, \
                     or --data wipe",
                    share.phase,
                    share.describe()
                );
                self.exit = self.exit.worse(Exit::Usage);
                self.status = Status::Failed { message: line };
                return false;
            };
            share.apply(phase, reached * f64::from(self.context.conduct.part.count));
        }
        true
    }

    /// Reads every record back and accounts for every write so far. After faults the store first gets
    /// time to answer again.
    fn read_back(&mut self, phase: &PhasePlan, output: &mut Output) {
        if !phase.faults.is_empty() {
            self.origin.wait(&self.context, self.records);
        }
        if let Some(ledger) = &self.context.ledger {
            self.accounting.before_reading(ledger, self.records);
        }
        // First each copy as it is: a read at a strong level would repair what it finds.
        let copies = replicas::compare(&self.store, &self.context, self.records, &self.testbed);
        let (store, how) = self.origin.strongest(&self.context, self.records);
        let usual = std::mem::replace(&mut self.store, store);
        let profile = self.origin.profile().clone();
        let promised = std::mem::replace(&mut self.context.profile, profile);
        let number = self.next_index();
        let pass = Pass::reading_back(phase, self.records);
        let measure = self.phase(&pass.phase("Read back", number), output);
        self.store = usual;
        if let Some(measure) = measure
            && self.status == Status::Complete
        {
            let account = self.accounting.account(&self.context, &measure, &how);
            output.account_for(&phase.name, WriteAccount { copies, ..account });
        }
        self.context.profile = promised;
    }

    /// Carries a phase out; `None` if it could not begin.
    fn phase(&mut self, phase: &PhasePlan, output: &mut Output) -> Option<PhaseMeasure> {
        let Loaded { measure, resources, faults, unasked } = match self.load(phase, output) {
            Ok(loaded) => loaded,
            Err(error) => {
                let connections =
                    phase.groups.iter().map(|g| u64::from(g.clients / g.pipeline.max(1)));
                let failure = Failure::of_load(&self.url, &error).advising_files(connections.sum());
                self.exit = self.exit.worse(failure.exit);
                self.status = Status::Failed { message: failure.to_string() };
                return None;
            }
        };
        self.records = measure.records;
        self.note(phase, &measure, &faults);
        self.status = status_after(&self.url, self.store.threading(), phase, &measure);
        if let Status::Failed { .. } = self.status {
            self.exit = self.exit.worse(match measure.stopped {
                StopReason::TimeLimit => Exit::Undecided,
                _ => Exit::Unavailable,
            });
        }
        self.crowded |= measure.tally.other_run > 0;
        if self.is_failure(&measure) {
            self.exit = self.exit.worse(Exit::Failed);
        }
        if let Some(resources) = &resources {
            output.add_resources(phase, resources, &self.roster.names());
            output.add_nodes(self.roster.later());
        }
        let summary = resources.as_ref().map(|resources| &resources.summary);
        let mut result = PhaseResult::new(phase, &measure, summary, output.origin());
        result.disturb(phase, &measure, faults);
        result.unasked = unasked;
        let nodes = self.roster.names();
        let (resources, work) = (resources.as_ref(), self.work(&measure));
        let (faults, stalls) = (&result.faults, &measure.stalls);
        let known = Known { faults, resources, nodes: &nodes, work: &work, stalls };
        result.course = CourseResult::of(&measure.timeline, result.open(), known);
        result.limit = summary.and_then(|used| self.limit(&measure, used, output.processors()));
        result.publish(self.setting.plan, &self.context.profile.store);
        output.add_phase(phase, &measure, result);
        Some(measure)
    }

    /// Keeps what later phases and the account need of one.
    fn note(&mut self, phase: &PhasePlan, measure: &PhaseMeasure, faults: &[FaultResult]) {
        self.accounting.add(phase, measure, faults);
        self.reached.insert(phase.name.clone(), measure.rate());
    }

    fn load(&mut self, phase: &PhasePlan, output: &mut Output) -> Result<Loaded, LoadError> {
        let job = match self.sightings.as_ref().filter(|_| phase.load && only_inserts(phase)) {
            Some(found) => Job::filling(phase.clone(), self.context.clone(), found)?,
            None => Job::new(phase.clone(), self.context.clone())?,
        };
        let job = Arc::new(job);
        let sampler = self.roster.sample(self.keeper.as_ref());
        let watching = output.observer(&self.context.profile.store, phase);
        let hears = Hears {
            roster: &self.roster,
            store: &self.store,
            dataset: self.context.dataset,
            interrupt: &self.context.interrupt,
        };
        let mut observer = Disturbed::new(watching, self.keeper.as_ref(), hears, phase);
        let measure = Arc::clone(&self.store).load(&job, &mut observer);
        let (faults, unasked) = observer.into_told();
        let resources = sampler.map(Sampler::stop);
        let mut measure = measure?;
        if let Some(limit) = &self.device {
            let beside = limit.figures(&measure);
            measure.figures.extend(beside);
        }
        let issued = measure.issued.clone();
        self.ran.push(Ran { plan: phase.clone(), issued, stopped: measure.stopped });
        self.name_writers(&mut measure);
        let summary = resources.as_ref().map(|resources| &resources.summary);
        self.judge(phase, &measure, summary, &outages(&measure, &faults));
        Ok(Loaded { measure, resources, faults, unasked })
    }

    fn limit(
        &self,
        measure: &PhaseMeasure,
        used: &ResourceSummary,
        processors: usize,
    ) -> Option<Limit> {
        let kept_to = self.testbed.iter().find_map(|t| t.server_processors.as_ref().map(Vec::len));
        Limit::of(&measure.workers, self.store.threading(), used, processors, kept_to)
    }

    /// What the store, and the servers of the testbed, tell of their work during a phase.
    fn work(&self, measure: &PhaseMeasure) -> Vec<EventResult> {
        let (began, store) = (measure.started_at, &self.context.profile.store);
        let since = |at: SystemTime| at.duration_since(began).unwrap_or_default().as_nanos() as u64;
        let told = |work: Work, who: &str| EventResult {
            what: format!("{} of {who}", work.what),
            from_ns: since(work.from),
            to_ns: since(work.to),
        };
        let own = self.store.work_since(began).into_iter().map(|work| told(work, store));
        let mut all: Vec<EventResult> = own.collect();
        for (pid, name) in self.roster.processes() {
            let kind = self.testbed.as_ref().map_or("", |testbed| &testbed.kind);
            all.extend(work_of(kind, pid, began).into_iter().map(|work| told(work, &name)));
        }
        all
    }

    fn judge(
        &mut self,
        phase: &PhasePlan,
        measure: &PhaseMeasure,
        resources: Option<&ResourceSummary>,
        outages: &[Stretch],
    ) {
        let added = usize::from(phase.index) >= self.setting.plan.phases.len() && !self.probing;
        let evidence = Evidence {
            plan: phase,
            measure,
            threading: self.store.threading(),
            resources,
            outages,
            prepares: phase.load || added,
        };
        self.reasons.push((phase.name.clone(), judge_phase(&evidence)));
    }

    /// Writes that are gone, deletes that were undone and writes that failed and are there all the
    /// same are named by the operation that made them, where it can be told.
    fn name_writers(&self, measure: &mut PhaseMeasure) {
        let Some(ledger) = &self.context.ledger else { return };
        if self.context.fields_apart || self.existing != Existing::None {
            return;
        }
        let mut wanted = Wanted::default();
        for (record, version) in measure.anomalies.iter().filter_map(written_in_vain) {
            wanted.versions.insert((record, version));
            wanted.sent.insert(record, ledger.state(record).next - 1);
        }
        if wanted.versions.is_empty() {
            return;
        }
        let part = self.context.conduct.part;
        let Ok(writers) = writers(&self.ran, &self.context.dataset, part, &wanted) else { return };
        for anomaly in &mut measure.anomalies {
            let write = written_in_vain(anomaly);
            anomaly.writer = write.and_then(|write| writers.get(&write).copied());
        }
    }

    fn is_failure(&self, measure: &PhaseMeasure) -> bool {
        let level = self.context.profile.consistency.level;
        let broken = !self.crowded && self.breaks_linearizability(measure);
        measure.tally.is_failure(level, self.crowded) || broken
    }

    /// What a store that promises no linearizability need not keep is a measurement only.
    fn breaks_linearizability(&self, measure: &PhaseMeasure) -> bool {
        let answer = measure.linearizability.as_ref().map(|examined| &examined.answer);
        self.context.profile.consistency.level == Consistency::Linearizable
            && matches!(answer, Some(Linearizability::Violated(_)))
    }

    /// Judges the run; `planned` phases were to be run.
    fn conclude(mut self, planned: u64, output: &mut Output) -> Exit {
        let scale = self.setting.plan.scale;
        let failed = matches!(self.status, Status::Failed { .. });
        let extent = Extent { planned, ended: self.ended, failed };
        let verdict = judge_run(self.reasons, extent, scale, cfg!(debug_assertions));
        self.exit = match (&self.status, self.exit) {
            (Status::Interrupted, _) => Exit::Interrupted,
            (_, Exit::Done) if verdict.level == verdict::Level::Invalid => Exit::Undecided,
            (_, Exit::Done) if verdict.level == verdict::Level::Suspect && output.strict() => {
                Exit::Undecided
            }
            (_, exit) => exit,
        };
        if let Status::Failed { message } = &self.status {
            warn_user!("kvdyno: {message}");
        }
        output.end_store(&verdict, self.status);
        self.exit.worse(output.judge_claims(self.setting.plan))
    }
}

fn only_inserts(phase: &PhasePlan) -> bool {
    let mut kinds = phase.groups.iter().flat_map(|group| &group.mix.parts);
    kinds.all(|&(kind, part)| part == 0 || kind.inserts())
}

/// Record and version of the write that an anomaly is about, if it is about one.
fn written_in_vain(anomaly: &Anomaly) -> Option<(u64, u32)> {
    let version = match anomaly.kind {
        AnomalyKind::Lost | AnomalyKind::Resurrected => anomaly.floor,
        AnomalyKind::Phantom => anomaly.seen?,
        AnomalyKind::Corrupt | AnomalyKind::Stale => return None,
    };
    Some((anomaly.record, version))
}

fn ledger_config(setting: &Setting<'_>, context: &Context, existing: Existing) -> LedgerConfig {
    let words = if context.fields_apart { u64::from(context.dataset.fields) } else { 1 };
    let profile = &context.profile;
    LedgerConfig {
        slots: context.dataset.capacity.max(existing::planned_records(setting.plan)) * words,
        linearizable: profile.consistency.level == Consistency::Linearizable,
        staleness: profile.consistency.level.staleness().unwrap_or(Duration::ZERO),
        may_forget: profile.capabilities.may_forget,
        overlap_capacity: OVERLAP_CAPACITY,
        initial: match (existing, setting.data) {
            (Existing::None, DataPolicy::Fresh | DataPolicy::Wipe) => Initial::Never,
            _ => Initial::Unjudged,
        },
        expiry: expiry(setting.plan, profile),
        may_apply_again: profile.capabilities.may_apply_again,
    }
}

/// What times to live the plan's writes have.
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

/// What is wrong with a load that later phases cannot build on: more than one in a hundred of its
/// requests did not succeed.
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
    // The error that came last tells how it is now; the first may be of a passing trouble.
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
