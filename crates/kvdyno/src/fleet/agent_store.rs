//! The part of a loaded store that an agent has: its connections, its part of the ledger, and the phases that ran.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use kvdyno_core::load::{
    AnyStore, Begin, Dealing, Job, LoadError, LoadOptions, LookedAgain, Observer, Progress, Ran,
    StoreContext, WorkerReport,
};
use kvdyno_core::measure::{Batch, Interval, PhaseMeasure, allowed_cpus, now};
use kvdyno_core::suite::Plan;
use kvdyno_core::verify::{Findings, FloorRules, FloorRuns, Floors, JudgedReads};
use kvdyno_core::workload::{Kind, PhasePlan};

use super::beginning::{BeginOrder, wait_to_begin};
use super::floor_talk::{FloorTalk, talking};
use super::identity::hash;
use super::machine_use::MachineWatch;
use super::messages::{AgentOrder, AgentReport, Opening, Preparing};
use super::under_way::UnderWay;
use super::wire::Sending;
use crate::account::Unclear;
use crate::args::DataPolicy;
use crate::existing::Existing;
use crate::exit::Failure;
use crate::open_store::OpenStore;
use crate::replicas::Origin;
use crate::run_options::RunOptions;
use crate::session::{context_of, ledger_of, most_records};
use crate::writers::name_writers;

/// Limit for giving up, so long that it never comes: the conductor alone gives up a phase.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3_600);

/// An agent's part of a store that is loaded.
pub struct AgentStore {
    store: Arc<dyn AnyStore>,
    origin: Origin,
    context: StoreContext,
    existing: Existing,
    /// Most records that the plan can make.
    most_records: u64,
    /// True if the run deletes records.
    deletes: bool,
    ran: Vec<Ran>,
    loaded: Option<Loaded>,
}

/// A phase whose load is over.
struct Loaded {
    store: Arc<dyn AnyStore>,
    job: Arc<Job>,
    measure: PhaseMeasure,
}

impl AgentStore {
    /// Reaches the store and makes the ledger. Returns them with the hash of the plan as this build writes it again.
    ///
    /// # Errors
    /// [`Failure`] if the store is not there, or the ledger is larger than the machine.
    pub fn open(opening: Opening, under_way: &UnderWay) -> Result<(AgentStore, String), Failure> {
        let plan: Plan = serde_json::from_str(&opening.plan).map_err(|error| {
            Failure::usage(format!(
                "the conductor's plan cannot be read: {error}; use the same build of kvdyno on all machines"
            ))
        })?;
        let written = serde_json::to_string(&plan).map_err(Failure::internal)?;
        let threads = plan.threads.map_or((allowed_cpus().len() / 2).max(1), |n| n as usize);
        let options = RunOptions {
            console: None,
            metering: None,
            plan: &plan,
            load: LoadOptions {
                threads,
                interval: Duration::from_secs(1),
                part: opening.part,
                ownership: opening.ownership,
                give_up: NEVER,
                pace: opening.pace,
                settle: opening.settle,
            },
            interrupt: under_way.interrupt(),
            data: if opening.exists { DataPolicy::Reuse } else { DataPolicy::Fresh },
            verify: opening.verify,
            session: opening.session,
            unseen: Vec::new(),
            takes_over: opening.takes_over,
            fleets: None,
        };
        let OpenStore { url, store, .. } = OpenStore::open(&opening.url)?;
        let profile = store.ask_profile().map_err(|error| Failure::of_load(&url, &error))?;
        let origin =
            Origin::of(&store, &profile).map_err(|error| Failure::of_load(&url, &error))?;
        let mut context = context_of(&options, profile);
        let existing = if opening.exists { Existing::All } else { Existing::None };
        context.ledger = ledger_of(&options, &context, existing)?;
        let (ran, loaded) = (Vec::new(), None);
        let (most_records, deletes) = (most_records(&plan), deletes(&plan));
        let opened =
            AgentStore { store, origin, context, existing, most_records, deletes, ran, loaded };
        Ok((opened, hash(written.as_bytes())))
    }

    /// Carries out an order about a phase.
    pub fn carry_out(
        &mut self,
        order: AgentOrder,
        sending: &Sending,
        begins: &Receiver<(u32, BeginOrder)>,
        under_way: &UnderWay,
    ) {
        match order {
            AgentOrder::Prepare(preparing) => {
                let number = preparing.number;
                let observer = ConductorObserver { number, sending, begins };
                match self.load(*preparing, observer, under_way) {
                    Ok(loaded) => sending.send(&loaded),
                    Err(LoadError::CalledOff) => {}
                    Err(error) => {
                        sending.send(&AgentReport::Unready { number, why: error.to_string() });
                    }
                }
                under_way.set(None);
            }
            AgentOrder::ReadAgain => {
                let again = self.read_again();
                sending.send(&AgentReport::LookedAgain(Box::new(again)));
            }
            AgentOrder::CountUnclear { records } => {
                let LoadOptions { part, ownership, .. } = &self.context.options;
                let ledger = self.context.ledger.as_ref();
                let count =
                    ledger.map(|ledger| Unclear::count(ledger, (*part, ownership), records));
                sending.send(&AgentReport::Unclear(count.unwrap_or_default()));
            }
            AgentOrder::TakeOver { lost } => {
                let ownership = &mut self.context.options.ownership;
                *ownership = ownership.after(&lost, self.most_records);
            }
            // Other orders are carried out by the thread that hears them.
            _ => {}
        }
    }

    fn load(
        &mut self,
        preparing: Preparing,
        mut observer: ConductorObserver<'_>,
        under_way: &UnderWay,
    ) -> Result<AgentReport, LoadError> {
        let Preparing { number, phase, reads_back, deals } = preparing;
        let (mut store, mut context) = (Arc::clone(&self.store), self.context.clone());
        if reads_back {
            let records = phase.groups.iter().map(|group| group.records).max().unwrap_or(0);
            store = self.origin.strongest(&self.context, records).0;
            context.profile = self.origin.profile().clone();
        }
        let floors = deals.then(|| self.floors(&context, &phase)).flatten().map(Arc::new);
        let mut job = Job::new(phase.clone(), context)?;
        if deals {
            let line = observer.sending.clone();
            let ask = move |claim| line.send(&AgentReport::Claim { number, claim });
            job = job.of_dealing(Arc::new(Dealing::new(number, floors.clone(), ask)));
        }
        let job = Arc::new(job);
        under_way.set(Some(Arc::clone(&job)));
        if let Some(ledger) = self.context.ledger.as_ref().filter(|_| floors.is_some()) {
            let words = if self.context.fields_apart { self.context.dataset.fields } else { 1 };
            let own = self.context.options.ownership.slots(self.most_records);
            let runs = FloorRuns::of(ledger, own.saturating_mul(words.into()));
            observer.sending.send(&AgentReport::Base { number, runs });
        }
        let line = observer.sending.clone();
        let watching = MachineWatch::start(move |used| line.send(&AgentReport::Used(used)));
        let ownership = &self.context.options.ownership;
        let talk = floors.as_ref().map(|floors| FloorTalk {
            number,
            floors,
            ownership,
            sending: observer.sending,
        });
        let measure = talking(talk, || store.load(&job, &mut observer))?;
        let machine = watching.stop();
        let (issued, stopped) = (measure.issued.clone(), measure.stopped);
        self.ran.push(Ran { plan: phase, issued, stopped });
        let (stalls, records) = (measure.stalls.clone(), measure.records);
        let passing = job.time_of_passing(&measure.issued);
        self.loaded = Some(Loaded { store, job, measure });
        Ok(AgentReport::Loaded { stalls, machine, records, passing })
    }

    /// Reads again what was not answered or looked wrong in the phase loaded last; returns an empty result if none was.
    fn read_again(&mut self) -> LookedAgain {
        let Some(Loaded { store, job, mut measure }) = self.loaded.take() else {
            return LookedAgain::default();
        };
        store.look_again(&job, &mut measure, &mut Silent);
        if !self.context.fields_apart && self.existing == Existing::None {
            name_writers(&self.context, &self.ran, &mut measure);
        }
        let mut again = LookedAgain::of(&measure);
        if let Some(floors) = job.dealing().and_then(|dealing| dealing.floors()) {
            floors.judge(&self.context.options.ownership, now(), true);
            let JudgedReads { tally, anomalies, behind, counts: foreign } = floors.take();
            let findings = Findings { tally, anomalies, behind };
            again.add(LookedAgain { findings, foreign, ..LookedAgain::default() });
        }
        again
    }

    /// Returns the floors by which this agent judges reads of other agents' records in a phase whose reads are dealt;
    /// `None` where such reads cannot be judged.
    fn floors(&self, context: &StoreContext, phase: &PhasePlan) -> Option<Floors> {
        let ledger = context.ledger.as_ref().filter(|_| phase.verify)?;
        let (profile, ownership) = (&context.profile, &context.options.ownership);
        let capabilities = &profile.capabilities;
        let prompt = profile.consistency.level.staleness() == Some(Duration::ZERO);
        let judged = prompt && !capabilities.fabricates && !capabilities.may_apply_again;
        (judged && !ownership.has_lost()).then(|| {
            Floors::new(FloorRules {
                dataset: context.dataset,
                fields_apart: context.fields_apart,
                owners: ownership.count(),
                existing_data: self.existing != Existing::None,
                may_be_gone: self.deletes || capabilities.may_forget || ledger.expires(),
            })
        })
    }
}

fn deletes(plan: &Plan) -> bool {
    let groups = plan.phases.iter().flat_map(|phase| &phase.groups);
    groups.flat_map(|group| &group.mix.parts).any(|(kind, _)| *kind == Kind::Delete)
}

/// Observer that hands to the conductor what the workers report.
struct ConductorObserver<'a> {
    /// Number of the phase.
    number: u32,
    sending: &'a Sending,
    begins: &'a Receiver<(u32, BeginOrder)>,
}

impl Observer for ConductorObserver<'_> {
    fn ready(&mut self, workers: usize) -> Begin {
        self.sending.send(&AgentReport::Ready { number: self.number, workers });
        wait_to_begin(self.number, self.begins, |at| {
            self.sending.send(&AgentReport::WillBegin { number: self.number, at });
        })
    }

    fn batch(&mut self, batch: &Batch) {
        self.sending.send(&AgentReport::Batch(Box::new(batch.clone())));
    }

    fn ended(&mut self, report: &WorkerReport) {
        self.sending.send(&AgentReport::Ended(Box::new(report.clone())));
    }

    fn interval(&mut self, _: &Interval) {}

    fn progress(&mut self, _: &Progress) {}
}

/// Observer that reports to nobody.
struct Silent;

impl Observer for Silent {
    fn interval(&mut self, _: &Interval) {}

    fn progress(&mut self, _: &Progress) {}
}
