//! Simulated agents: they speak as agents do and carry no load, many in one process, so that the cost of a conductor
//! of hundreds can be measured on one machine (`cargo xtask bench conductor`). Only in builds with the feature
//! `simulated-agents`.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::load::WorkerReport;
use kvdyno_core::measure::{
    Batch, BatchLatencies, KindMeasure, Nanos, Series, Stalls, Troubles, WorkerUse,
    latency_histogram, now,
};
use kvdyno_core::workload::{Kind, PhasePlan};
use serde_json::{Value, json};
use tokio::task::{JoinSet, LocalSet, spawn_local};
use tokio::time::sleep;
use tokio_rustls::rustls::ClientConfig;

use super::clocks::ClocksShown;
use super::identity::who_am_i;
use super::machine_use::MachineUse;
use super::messages::{AgentOrder, AgentReport, Hello};
use super::token::Token;
use super::wire::{Sending, carry, reach};
use crate::account::Unclear;
use crate::exit::{Exit, Failure};

/// Kinds of operations that each agent claims to carry.
const KINDS: [Kind; 5] =
    [Kind::Insert, Kind::Get, Kind::Update, Kind::Delete, Kind::ReadModifyWrite];
/// Operations of each kind that an agent claims to carry in an interval: 20,000 a second of each agent.
const OPERATIONS: u64 = 4_000;
/// Number of different intervals, which each agent tells one after the other.
const DIFFERENT: u64 = 16;
const SECOND: Nanos = 1_000_000_000;
/// Pause between two tries to reach the conductor, and the number of tries.
const AGAIN: (Duration, u32) = (Duration::from_millis(100), 600);

/// Runs `count` simulated agents until the conductor ends them.
///
/// # Errors
/// [`Failure`] if the conductor is not there, or refuses one.
pub fn simulated_agents(conductor: &str, count: u32) -> Result<Exit, Failure> {
    let token = Token::from_environment()?.ok_or_else(|| {
        Failure::usage("KVDYNO_TOKEN is not set: set it to the conductor's token")
    })?;
    let (config, me) = (token.of_agent()?, who_am_i()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::internal)?;
    let intervals: Rc<Vec<_>> = Rc::new((0..DIFFERENT).map(interval).collect());
    let all = async {
        let mut agents = JoinSet::new();
        for process in 0..count {
            let hello = Hello { process, ..me.clone() };
            let (conductor, config) = (conductor.to_owned(), Arc::clone(&config));
            agents.spawn_local(one(conductor, config, hello, Rc::clone(&intervals)));
        }
        while let Some(ended) = agents.join_next().await {
            ended.map_err(Failure::internal)?.map_err(|error| {
                Failure::unavailable(format!(
                    "a simulated agent was not taken: {error}; see what the conductor says"
                ))
            })?;
        }
        Ok(Exit::Done)
    };
    LocalSet::new().block_on(&runtime, all)
}

/// Returns an agent's message of an interval, with latencies as a store over a network has them, no two alike. It is
/// made once, in advance: making it anew for a thousand agents would take more time than the conductor takes.
fn interval(number: u64) -> Value {
    let of_kind = |kind: Kind| {
        let mut service = latency_histogram::<u32>();
        for n in 0..OPERATIONS {
            // Most are about 300 µs, and one in a hundred is up to ten times as long.
            let drawn = (n * 7_919 + number * 104_729 + kind as u64 * 31) % OPERATIONS;
            let tail = if drawn >= OPERATIONS * 99 / 100 { 30 } else { 1 };
            service.saturating_record(150_000 + drawn * 75 * tail);
        }
        let measure = KindMeasure {
            ok: OPERATIONS,
            records: OPERATIONS,
            service: Some(BatchLatencies::Counted(service)),
            ..KindMeasure::default()
        };
        (Series { group: 0, kind }, measure)
    };
    let started = KINDS.len() as u64 * OPERATIONS;
    let batch = Batch {
        worker: 0,
        interval: 0,
        over: true,
        started,
        offered: started,
        last_end: 0,
        in_store: started * 300_000,
        series: KINDS.into_iter().map(of_kind).collect(),
        slots: Vec::new(),
        troubles: Troubles::default(),
    };
    json!(AgentReport::Batch(Box::new(batch)))
}

/// Runs one agent, from its begin to its end.
async fn one(
    conductor: String,
    config: Arc<ClientConfig>,
    hello: Hello,
    intervals: Rc<Vec<Value>>,
) -> io::Result<()> {
    let mut tries = AGAIN.1;
    let stream = loop {
        match reach(&conductor, Arc::clone(&config)).await {
            Ok(stream) => break stream,
            Err(error) if tries == 0 => return Err(error),
            Err(_) => sleep(AGAIN.0).await,
        }
        tries -= 1;
    };
    let (sending, outgoing) = Sending::new();
    sending.send(&AgentReport::Hello(hello));
    let refused = Cell::new(None);
    let simulated = Simulated {
        sending,
        intervals,
        phase: Rc::default(),
        stop: Rc::default(),
        start: Rc::default(),
    };
    let mut simulated = Some(simulated);
    carry(stream, outgoing, |order: AgentOrder| match order {
        // The line closes once no sender is left.
        AgentOrder::End => drop(simulated.take()),
        AgentOrder::Refused(why) => {
            refused.set(Some(why));
            drop(simulated.take());
        }
        order => {
            if let Some(simulated) = &simulated {
                simulated.on_order(order);
            }
        }
    })
    .await;
    refused.take().map_or(Ok(()), |why| Err(io::Error::other(why)))
}

struct Simulated {
    sending: Sending,
    intervals: Rc<Vec<Value>>,
    /// The phase that is prepared.
    phase: Rc<RefCell<Option<PhasePlan>>>,
    /// Moment at which the phase ends.
    stop: Rc<Cell<Nanos>>,
    /// Moment at which it is to begin, if all confirm it.
    start: Rc<Cell<Nanos>>,
}

impl Simulated {
    fn on_order(&self, order: AgentOrder) {
        let report = match order {
            AgentOrder::Open(opening) => AgentReport::Opened { plan_hash: opening.plan_hash },
            AgentOrder::Clock { number } => {
                AgentReport::Clock { number, shown: ClocksShown::now() }
            }
            AgentOrder::Prepare(preparing) => {
                self.stop.set(Nanos::MAX);
                *self.phase.borrow_mut() = Some(preparing.phase);
                AgentReport::Ready { number: preparing.number, workers: 1 }
            }
            AgentOrder::StartAt { number, at } => {
                self.start.set(at);
                AgentReport::WillBegin { number, at }
            }
            AgentOrder::Begin { .. } => return self.begin(self.start.get()),
            AgentOrder::StopAt(at) => return self.stop.set(at),
            AgentOrder::ReadAgain => AgentReport::LookedAgain(Box::default()),
            AgentOrder::CountUnclear { .. } => AgentReport::Unclear(Unclear::default()),
            _ => return,
        };
        self.sending.send(&report);
    }

    fn begin(&self, start: Nanos) {
        let (sending, stop) = (self.sending.clone(), Rc::clone(&self.stop));
        let (intervals, phase) = (Rc::clone(&self.intervals), Rc::clone(&self.phase));
        spawn_local(async move {
            sleep(Duration::from_nanos(start.saturating_sub(now()))).await;
            let Some(phase) = phase.take() else { return };
            // A phase without a duration counts its requests; it has none here.
            let sent = match phase.duration {
                Some(_) => send_intervals(start, &stop, &sending, &intervals).await,
                None => 0,
            };
            let wall = Duration::from_nanos(now().saturating_sub(start));
            let clients = phase.groups.iter().map(|group| group.clients).sum();
            let used = WorkerUse { wall, cpu: wall / 2, clients, ..WorkerUse::default() };
            let issued = |requests: Option<u64>| requests.unwrap_or(sent);
            let groups = (0..).zip(&phase.groups);
            let issued = groups.map(|(number, group)| (number, issued(group.requests))).collect();
            let report = WorkerReport::of_no_worker(used, start, issued);
            sending.send(&AgentReport::Ended(Box::new(report)));
            let (stalls, machine) = (Stalls::default(), MachineUse::default());
            let (records, passing) = (0, Duration::ZERO);
            sending.send(&AgentReport::Loaded { stalls, machine, records, passing });
        });
    }
}

/// Tells an interval a second until the phase ends. Returns the number of operations told.
async fn send_intervals(
    start: Nanos,
    stop: &Cell<Nanos>,
    sending: &Sending,
    intervals: &[Value],
) -> u64 {
    let mut all = 0;
    for number in 0_u32.. {
        let begin = start + Nanos::from(number) * SECOND;
        if begin >= stop.get() {
            break;
        }
        let end = begin + SECOND;
        while now() < end.min(stop.get()) {
            let left = end.min(stop.get()).saturating_sub(now());
            sleep(Duration::from_nanos(left)).await;
        }
        let mut batch = intervals[number as usize % intervals.len()].clone();
        batch["Batch"]["interval"] = number.into();
        batch["Batch"]["last_end"] = end.min(stop.get()).into();
        all += KINDS.len() as u64 * OPERATIONS;
        sending.send(&batch);
    }
    all
}
