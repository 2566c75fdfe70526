//! `kvdyno agent`: carries a part of a load for a conductor, and does nothing by itself. The thread that hears the
//! conductor changes a phase under way; the main thread does all else, in order.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use kvdyno_core::load::Job;
use kvdyno_core::measure::now;

use super::agent_store::AgentStore;
use super::beginning::BeginOrder;
use super::clocks::ClocksShown;
use super::identity::who_am_i;
use super::messages::{AgentOrder, AgentReport, Hello};
use super::token::{TOKEN_VARIABLE, Token};
use super::under_way::UnderWay;
use super::wire::{LAST, LineEnd, Sending, carry, reach};
use crate::args::AgentArguments;
use crate::exit::{Exit, Failure};
use crate::signals;

/// Time that an agent started by an engine has to go on when the engine tells it to end: the conductor gets the same
/// signal, and keeps what was measured.
const ORDERLY: Duration = Duration::from_secs(20);
/// Pause between two tries to reach a conductor that does not answer yet.
const AGAIN: Duration = Duration::from_millis(200);

/// Task of the main thread, which does one after the other.
enum Task {
    /// An order of the conductor.
    Do(AgentOrder),
    /// The end of the line to the conductor, with its cause.
    Over(Result<LineEnd, String>),
}

/// Runs an agent that somebody starts, maybe before its conductor: `kvdyno agent`.
///
/// # Errors
/// [`Failure`] if the conductor at this address does not come, refuses this agent, or is lost.
pub fn agent(arguments: &AgentArguments) -> Result<Exit, Failure> {
    let AgentArguments { conductor, wait, name, stay: _ } = arguments;
    be_agent(conductor, *wait, name.clone(), Arc::default())
}

/// Runs an agent that an engine started, maybe before its conductor. A signal that ends the whole job reaches both;
/// the conductor alone decides what becomes of the run.
///
/// # Errors
/// Those of [`agent`], after the wait.
pub fn agent_of_engine(conductor: &str, wait: Option<Duration>) -> Result<Exit, Failure> {
    let under_way = Arc::new(UnderWay::default());
    let joined = Arc::clone(&under_way);
    signals::leave_to_another(ORDERLY, move || joined.has_joined()).map_err(Failure::internal)?;
    be_agent(conductor, wait.unwrap_or(super::PATIENCE), None, under_way)
}

fn be_agent(
    conductor: &str,
    patience: Duration,
    name: Option<String>,
    under_way: Arc<UnderWay>,
) -> Result<Exit, Failure> {
    let token = Token::from_environment()?.ok_or_else(|| {
        Failure::usage(format!(
            "{TOKEN_VARIABLE} is not set: start agents with the line that the conductor prints"
        ))
    })?;
    let (sending, tasks, begins) = join(conductor, &token, patience, &under_way)?;
    let me = who_am_i()?;
    let machine = name.unwrap_or_else(|| me.machine.clone());
    sending.send(&AgentReport::Hello(Hello { machine, ..me }));
    let mut store: Option<AgentStore> = None;
    for task in tasks {
        match task {
            Task::Do(AgentOrder::Open(opening)) => {
                // Its connections and its ledger go before those of the next come.
                drop(store.take());
                match AgentStore::open(*opening, &under_way) {
                    Ok((opened, plan_hash)) => {
                        store = Some(opened);
                        sending.send(&AgentReport::Opened { plan_hash });
                    }
                    Err(why) => sending.send(&AgentReport::Failed(why.to_string())),
                }
            }
            Task::Do(AgentOrder::Close) => drop(store.take()),
            Task::Do(AgentOrder::End) => return Ok(Exit::Done),
            Task::Do(AgentOrder::Refused(why)) => {
                return Err(Failure::unavailable(format!(
                    "the conductor {conductor} refused this agent: {why}; follow the conductor's message"
                )));
            }
            Task::Do(order) => {
                if let Some(store) = &mut store {
                    store.carry_out(order, &sending, &begins, &under_way);
                }
            }
            Task::Over(Ok(why)) => {
                return Err(Failure::unavailable(format!(
                    "lost the connection to the conductor {conductor}: {why}; this agent has stopped sending; start the run again"
                )));
            }
            Task::Over(Err(why)) => {
                return Err(Failure::unavailable(format!(
                    "cannot join {conductor}: {why}; use the address and KVDYNO_TOKEN of the conductor"
                )));
            }
        }
    }
    Ok(Exit::Done)
}

/// The ends that an agent has once it has joined a conductor: the sender of its messages, its tasks, and orders to
/// begin phases. A thread of its own hears the conductor.
type Joined = (Sending, Receiver<Task>, Receiver<(u32, BeginOrder)>);

fn join(
    conductor: &str,
    token: &Token,
    patience: Duration,
    under_way: &Arc<UnderWay>,
) -> Result<Joined, Failure> {
    let config = token.of_agent()?;
    let (sending, outgoing) = Sending::new();
    let (task_sink, tasks) = channel();
    let (begin_sink, begins) = channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::internal)?;
    let listener = OrderListener {
        sending: sending.clone(),
        tasks: task_sink.clone(),
        begins: begin_sink,
        under_way: Arc::clone(under_way),
    };
    let (conductor, under_way) = (conductor.to_owned(), Arc::clone(under_way));
    let thread = std::thread::Builder::new().name("conductor".to_owned());
    let thread_started = thread.spawn(move || {
        let end = runtime.block_on(async {
            let until = Instant::now() + patience;
            let mut is_reported = false;
            let stream = loop {
                match reach(&conductor, Arc::clone(&config)).await {
                    Ok(stream) => break stream,
                    Err(error) if is_refusal(&error) || Instant::now() >= until => {
                        return Err(explained(&error));
                    }
                    Err(error) => {
                        if !std::mem::replace(&mut is_reported, true) {
                            let seconds = patience.as_secs();
                            warn_user!(
                                "kvdyno: cannot reach {conductor} yet ({error}); trying again for {seconds} s"
                            );
                        }
                        tokio::time::sleep(AGAIN).await;
                    }
                }
            };
            under_way.join();
            Ok(carry(stream, outgoing, |order| listener.on_order(order)).await)
        });
        let _ = task_sink.send(Task::Over(end));
        drop(listener);
        under_way.drop_everything();
        std::thread::sleep(LAST);
        // A driver that does not come back must not keep this process.
        std::process::exit(Exit::Unavailable as i32);
    });
    thread_started.map_err(Failure::internal)?;
    Ok((sending, tasks, begins))
}

/// Returns true if a conductor is there and the handshake with it failed: waiting mends nothing.
fn is_refusal(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::InvalidData
}

/// Describes a handshake that failed so that a user can act on it.
fn explained(error: &std::io::Error) -> String {
    if is_refusal(error) {
        return format!(
            "it does not have this {TOKEN_VARIABLE} (or is no conductor of this version): {error}"
        );
    }
    error.to_string()
}

/// Listener to the conductor's orders.
struct OrderListener {
    sending: Sending,
    tasks: Sender<Task>,
    begins: Sender<(u32, BeginOrder)>,
    under_way: Arc<UnderWay>,
}

impl OrderListener {
    fn on_order(&self, order: AgentOrder) {
        match order {
            AgentOrder::Clock { number } => {
                self.sending.send(&AgentReport::Clock { number, shown: ClocksShown::now() });
            }
            AgentOrder::StartAt { number, at } => self.of_begin(number, BeginOrder::At(at)),
            AgentOrder::Begin { number } => self.of_begin(number, BeginOrder::Agreed),
            AgentOrder::CallOff { number } => self.of_begin(number, BeginOrder::Never),
            AgentOrder::StopAt(at) => self.under_way.with(|job| job.stop_at(at)),
            AgentOrder::Rate { group, change } => {
                self.under_way.with(|job| job.follow_change(group, change));
            }
            AgentOrder::Deal { number, deal } => {
                self.under_way.with_dealing(number, |dealing| dealing.give(deal));
            }
            AgentOrder::Base { number, owner, runs } => {
                self.under_way.with_floors(number, |floors| floors.on_base(owner, runs))
            }
            AgentOrder::Floors { number, acks, off } => {
                self.under_way.with_floors(number, |floors| {
                    for (owner, acks) in acks {
                        floors.on_acks(owner, acks, off, now());
                    }
                });
            }
            AgentOrder::Abandon => self.under_way.with(Job::abandon),
            AgentOrder::Hurry => self.under_way.interrupt().raise(),
            order => drop(self.tasks.send(Task::Do(order))),
        }
    }

    fn of_begin(&self, number: u32, order: BeginOrder) {
        let _ = self.begins.send((number, order));
    }
}
