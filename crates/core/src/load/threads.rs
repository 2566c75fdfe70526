//! The worker threads of a phase: connect, wait for the common start, run the loop, hand over.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::task::{JoinSet, LocalSet, unconstrained};

use super::client_loop::run_client;
use super::connection_tasks::ConnectionTasks;
use super::error::LoadError;
use super::job::Job;
use super::lane::Lane;
use super::layout::Seat;
use super::pace::{Pacing, RuntimePace, ThreadPace};
use super::request_clock::{ConnectionClock, OwnClock, Ticking};
use super::schedule::Dues;
use super::timer::Timer;
use super::worker::{Worker, WorkerReport};
use super::worker_connections::WorkerConnections;
use crate::measure::{Batch, Nanos, Recorder, ThreadTime, WorkerUse, now};
use crate::store::{Connection, Store, Threading, ThreadingOf};
use crate::verify::Examiner;

/// Message of a worker thread to the phase's thread.
pub(super) enum Report {
    /// Connected, waiting for the start.
    Ready,
    /// Could not begin.
    Refused(LoadError),
    /// All of its clients have ended.
    Ended(Box<WorkerReport>),
    /// A worker in another process is lost: nothing more will come from it.
    Lost(usize),
}

/// Holds all workers until each is connected.
#[derive(Default)]
pub(super) struct Gate {
    start: Mutex<Option<Option<Nanos>>>,
    opened: Condvar,
}

impl Gate {
    /// Lets all workers begin at `start`; `None` ends them before they begin.
    pub fn open(&self, start: Option<Nanos>) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(start);
        self.opened.notify_all();
    }

    /// Waits for the start; returns `None` if the workers are to end before it.
    pub fn wait(&self) -> Option<Nanos> {
        let guard = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = self
            .opened
            .wait_while(guard, |start| start.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        guard.flatten()
    }
}

/// Assignment of a worker thread.
pub struct Assignment {
    pub(super) job: Arc<Job>,
    pub(super) worker: usize,
    pub(super) seats: Vec<Seat>,
    /// The worker's examiner. It is made with those of all other workers, because the ledger has to know how many
    /// there will be.
    pub(super) examiner: Cell<Option<Examiner>>,
    pub(super) gate: Arc<Gate>,
    pub(super) batches: Sender<Batch>,
    pub(super) reports: Sender<Report>,
    /// Processor to stay on.
    pub(super) pin: Option<usize>,
}

/// Report of a worker; `None` if the phase was called off before the start.
pub struct Carried(Option<Box<WorkerReport>>);

/// Runs a worker thread from begin to end: `load` carries the assigned load with clients of the store.
pub(super) fn carry(
    load: impl FnOnce(&Assignment) -> Result<Carried, LoadError>,
    assignment: &Assignment,
) {
    if let Some(cpu) = assignment.pin {
        // Where the system forbids it the worker runs unpinned, which costs precision only.
        let _ = crate::measure::pin_current_thread(cpu);
    }
    // A panic in a driver must not leave the phase's thread waiting.
    let report = match catch_unwind(AssertUnwindSafe(|| load(assignment))) {
        Ok(Ok(Carried(Some(ended)))) => Report::Ended(ended),
        Ok(Ok(Carried(None))) => return,
        Ok(Err(error)) => Report::Refused(error),
        Err(_) => Report::Refused(LoadError::Panicked),
    };
    // The phase's thread may have given up on this worker: then nobody listens.
    let _ = assignment.reports.send(report);
}

/// Carries a worker's load with clients of `store`. Of all code of a phase only this is compiled for each store.
pub(super) fn carry_with<S: Store>(
    store: &Arc<S>,
    assignment: &Assignment,
) -> Result<Carried, LoadError> {
    // What is dead by a constant is not compiled, so that most types of store have one loop, not two.
    if const { matches!(S::THREADING, ThreadingOf::All(Threading::InProcess)) } {
        in_process(store, assignment)
    } else if const { matches!(S::THREADING, ThreadingOf::All(Threading::Networked)) } {
        networked(store, assignment)
    } else {
        match S::THREADING.of(store) {
            Threading::InProcess => in_process(store, assignment),
            Threading::Networked => networked(store, assignment),
        }
    }
}

fn in_process<S: Store>(store: &Arc<S>, assignment: &Assignment) -> Result<Carried, LoadError> {
    let connections = block_on_calling_thread(connect_all(&**store, &assignment.seats))?;
    Ok(carry_in_process(assignment, |worker, pacing| {
        let deadline = || worker.deadline();
        let pace = ThreadPace { deadline, pacing, spun: Cell::new(0) };
        block_on_calling_thread(async {
            for (lane, connection) in connections {
                for client in connection.clients {
                    run_client(worker, lane, &pace, OwnClock, client).await;
                }
            }
        });
        pace.spun.get()
    }))
}

fn networked<S: Store>(store: &Arc<S>, assignment: &Assignment) -> Result<Carried, LoadError> {
    let connecting = connect_all(&**store, &assignment.seats);
    carry_networked(
        assignment,
        Box::pin(async {
            let connections = connecting.await?;
            Ok(Box::new(move |worker: &Rc<Worker>, pace: &Rc<WorkerPace>| {
                let tasks = |(lane, connection)| tasks_of::<S>(worker, lane, pace, connection);
                let tasks = connections.into_iter().map(tasks).collect();
                Box::pin(WorkerConnections::new(tasks)) as Clients
            }) as Connected)
        }),
    )
}

/// Runs a future whose waits block the thread themselves.
pub(super) fn block_on_calling_thread<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = std::task::Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::yield_now();
    }
}

/// Makes the runtime of a worker thread. It looks at the sockets after every turn of the worker's tasks (at most 61
/// polls): a pacing task that spins must not hold answers up.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, LoadError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(1)
        .build()
        .map_err(|source| LoadError::System { what: "a runtime", source })
}

async fn connect_all<S: Store>(
    store: &S,
    seats: &[Seat],
) -> Result<Vec<(usize, Connection<S::Client, S::Transport>)>, LoadError> {
    let mut connections = Vec::new();
    for (lane, seat) in seats.iter().enumerate() {
        for _ in 0..seat.connections {
            let connection = store.connect(seat.slots as usize).await;
            connections.push((lane, connection.map_err(LoadError::Unavailable)?));
        }
    }
    Ok(connections)
}

impl Assignment {
    fn begin(&self) -> Option<(Nanos, Worker)> {
        let _ = self.reports.send(Report::Ready);
        let start = self.gate.wait()?;
        let examiner = self.examiner.take()?;
        let part = self.job.context.options.part;
        let lanes = self.seats.iter().map(|seat| {
            let (plan, workload) = &self.job.groups[seat.group];
            let first = u64::from(part.index) + u64::from(part.count) * seat.lane;
            let stride = u64::from(part.count) * seat.lanes;
            let ownership = self.job.gives_out();
            // Independent arrivals together are arrivals of the sum of their rates.
            let seed = plan.seed ^ (u64::from(ownership.index()) << 32);
            let rate = Arc::clone(&self.job.rates[seat.group]);
            let dues = Dues::new(&plan.arrival, rate, start, first, stride, seed);
            let (group, first) = (seat.group as u16, self.job.first_of(seat.group as u16));
            let lane = Lane::new(group, first, Arc::clone(plan), workload.clone(), dues);
            if let Some(dealing) = self.job.dealing_of(seat.group) {
                return lane.of_dealing(ownership, Arc::clone(dealing), (seat.lane, seat.lanes));
            }
            let job = Arc::clone(&self.job);
            lane.of_owner(ownership, move || job.controls.deadline())
        });
        let mut recorder = Recorder::new(
            self.worker,
            self.job.groups.len(),
            start,
            self.job.interval(),
            self.batches.clone(),
        );
        recorder.stop_at(self.job.controls.deadline());
        let faults = !self.job.plan.faults.is_empty();
        let recorder = if faults { recorder.with_slots() } else { recorder };
        Some((start, Worker::new(Arc::clone(&self.job), lanes.collect(), recorder, examiner)))
    }

    fn clients(&self) -> u32 {
        self.seats.iter().map(|seat| seat.connections * seat.slots).sum()
    }

    fn end(
        &self,
        worker: Worker,
        begun: Begun,
        took: ThreadTime,
        spun: Nanos,
    ) -> Box<WorkerReport> {
        let end = now();
        let spun = Duration::from_nanos(spun);
        let used = WorkerUse {
            wall: Duration::from_nanos(end.saturating_sub(begun.due)),
            late: Duration::from_nanos(begun.at.saturating_sub(begun.due)),
            cpu: took.cpu.saturating_sub(spun),
            spun,
            waited: took.waited,
            in_store: Duration::ZERO,
            clients: self.clients(),
        };
        // The runtime moves the output of the future that it runs at each of its turns.
        Box::new(worker.finish(end, self.worker, used))
    }
}

/// Runs all clients of a worker whose store is in this process; `clients` returns how long they spun, ns.
fn carry_in_process(
    assignment: &Assignment,
    clients: impl FnOnce(&Worker, Pacing) -> Nanos,
) -> Carried {
    let Some((start, worker)) = assignment.begin() else { return Carried(None) };
    let begun = ThreadTime::now();
    let start = wait_for_start(start);
    worker.note_begin(start.due, start.at);
    let spun = clients(&worker, assignment.job.context.options.pace);
    Carried(Some(assignment.end(worker, start, ThreadTime::now().since(begun), spun)))
}

/// Time at which a worker was to begin, and at which it did.
struct Begun {
    due: Nanos,
    at: Nanos,
}

fn wait_for_start(due: Nanos) -> Begun {
    while let Some(left) = due.checked_sub(now()).filter(|&left| left > 0) {
        std::thread::sleep(Duration::from_nanos(left));
    }
    Begun { due, at: now() }
}

/// Pace of the clients of a worker with a runtime.
type WorkerPace = RuntimePace<Box<dyn Fn() -> Nanos>>;
/// All clients of a worker, over when the last has ended.
type Clients = Pin<Box<dyn Future<Output = ()>>>;
/// Maker of a worker's clients from its connections.
type Connected = Box<dyn FnOnce(&Rc<Worker>, &Rc<WorkerPace>) -> Clients>;

fn carry_networked(
    assignment: &Assignment,
    connecting: Pin<Box<dyn Future<Output = Result<Connected, LoadError>> + '_>>,
) -> Result<Carried, LoadError> {
    let runtime = runtime()?;
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let connected = connecting.await?;
        let timer = Timer::new().map_err(timer_refused)?;
        let Some((start, worker)) = assignment.begin() else { return Ok(Carried(None)) };
        let worker = Rc::new(worker);
        let start = wait_for_start(start);
        worker.note_begin(start.due, start.at);
        let begun = ThreadTime::now();
        let job = Arc::clone(&assignment.job);
        let pacing = job.context.options.pace;
        let deadline = Box::new(move || job.controls.deadline()) as Box<dyn Fn() -> Nanos>;
        let pace = Rc::new(RuntimePace::new(deadline, pacing));
        let mut set = JoinSet::new();
        // All connections are one task, whose turns are not to be cut short as if it were one connection.
        set.spawn_local(unconstrained(connected(&worker, &pace)));
        let mut server = JoinSet::new();
        let serving = Rc::clone(&pace);
        server.spawn_local(async move { serving.run(timer).await });
        tokio::select! {
            () = async { while set.join_next().await.is_some() {} } => {}
            () = abandoned(&worker) => {}
        }
        set.shutdown().await;
        server.shutdown().await;
        let took = ThreadTime::now().since(begun);
        let spun = pace.spun();
        let worker = Rc::into_inner(worker);
        Ok(Carried(worker.map(|worker| assignment.end(worker, start, took, spun))))
    })
}

fn timer_refused(source: io::Error) -> LoadError {
    LoadError::System { what: "a timer", source }
}

fn tasks_of<S: Store>(
    worker: &Rc<Worker>,
    lane: usize,
    pace: &Rc<WorkerPace>,
    connection: Connection<S::Client, S::Transport>,
) -> ConnectionTasks<'static, Ticking<S::Transport>> {
    let turns = ConnectionClock::of(connection.clients.len());
    let clients = connection.clients.into_iter().enumerate().map(|(number, client)| {
        let (worker, pace) = (Rc::clone(worker), Rc::clone(pace));
        let client = run_client(worker, lane, pace, turns.of_client(number), client);
        Box::pin(client) as Pin<Box<dyn Future<Output = ()>>>
    });
    let clients = clients.collect();
    ConnectionTasks::new(
        clients,
        Ticking { transport: connection.transport, turns, worker: Rc::clone(worker) },
    )
}

async fn abandoned(worker: &Worker) {
    while !worker.job().controls.is_abandoned() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
