//! `--agents`: reads what was asked for, and refuses what several agents cannot do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kvdyno_core::load::Interrupt;
use kvdyno_core::suite::Plan;
use kvdyno_core::workload::Workload;
use kvdyno_testbed::{LoadMachine, is_file, load_machines};

use super::engines::{Engine, EngineRole, role};
use super::gathering::{self, Fleet};
use super::local;
use super::loss::OnAgentLost;
use super::reads::ReadsFrom;
use super::share::{Division, check, share_of};
use super::token::Token;
use super::{PATIENCE, REFUSING, described};
use crate::exit::Failure;
use crate::run_config::RunConfig;

/// Most agents of a run.
const MOST: u32 = 1_000;

/// Source of the agents that carry a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetOptions {
    /// Processes on this machine, this many.
    Local(u32),
    /// Agents that join by themselves.
    Joining {
        /// Number of agents.
        count: u32,
        /// Address at which the conductor listens, HOST:PORT.
        listen: String,
    },
    /// Agents on the machines of a deployment file, started by the command lines in it.
    Described {
        /// Machines of the file's `[[load]]` tables.
        machines: Vec<LoadMachine>,
        /// Address by which agents reach the conductor, HOST:PORT.
        listen: String,
    },
    /// Processes that an engine starts together with this one.
    Placed {
        /// Number of agents.
        count: u32,
        /// Address at which the conductor listens, HOST:PORT.
        listen: String,
        /// True if one more agent runs on this machine.
        itself: bool,
        /// Engine that starts them.
        engine: Engine,
    },
}

/// `--agents auto` alone, and with load on the conductor's machine.
const AUTO: [&str; 2] = ["auto", "auto:all"];

/// Returns the engine and the role that it gave to this process; `None` without `--agents auto`.
fn placed(config: &RunConfig) -> Result<Option<(Engine, EngineRole)>, Failure> {
    let auto = config.agents.as_deref().is_some_and(|text| AUTO.contains(&text));
    let variable = |name: &str| std::env::var(name).ok();
    match (auto, &config.conductor) {
        // A plan is shown without an engine, too.
        (true, _) if config.dry_run => Ok(None),
        (true, conductor) => {
            role(&variable, conductor.as_deref()).map(Some).map_err(Failure::usage)
        }
        (false, Some(_)) => Err(Failure::usage(
            "--conductor works only with --agents auto; agents that you start yourself get it: `kvdyno agent --conductor \
             HOST:PORT`",
        )),
        (false, None) => Ok(None),
    }
}

/// Returns the address of the conductor that this process has to join, HOST:PORT, if an engine started it as an agent.
///
/// # Errors
/// [`Failure`] if the engine's variables do not tell.
pub fn conductor_to_join(config: &RunConfig) -> Result<Option<String>, Failure> {
    Ok(match placed(config)? {
        Some((_, EngineRole::Agent(conductor))) => Some(conductor),
        _ => None,
    })
}

/// Tells the processes that an engine has started with this one that their run does not begin, and why: otherwise
/// they would wait for it. Does nothing where this process is no such conductor.
pub fn refuse_engine_agents(config: &RunConfig, why: &Failure, interrupt: &Interrupt) {
    let Ok(Some((engine, EngineRole::Conductor { others, listen }))) = placed(config) else {
        return;
    };
    let listen = config.listen.as_deref().unwrap_or(&listen);
    let Ok(Some(token)) = Token::from_environment() else { return };
    // Where nobody can join there is nobody to be told.
    let Ok(mut fleet) = Fleet::listen(listen, others, &token) else { return };
    warn_user!("kvdyno: the run does not begin; the {others} processes of {engine} are told so");
    let patience = config.wait.map_or(REFUSING, |wait| wait.min(REFUSING));
    fleet.refuse_all(&format!("the run does not begin: {why}"), patience, interrupt);
}

impl FleetOptions {
    /// Reads `--agents` and `--listen`.
    ///
    /// # Errors
    /// [`Failure`] if they do not make sense.
    pub fn read(config: &RunConfig) -> Result<Option<FleetOptions>, Failure> {
        let (Some(text), listen) = (&config.agents, &config.listen) else { return Ok(None) };
        if let Some((engine, EngineRole::Conductor { others, listen: bound })) = placed(config)? {
            let itself = text == AUTO[1];
            let listen = listen.clone().unwrap_or(bound);
            let count = others + u32::from(itself);
            return match count <= MOST {
                true => Ok(Some(FleetOptions::Placed { count, listen, itself, engine })),
                false => Err(Failure::usage(format!(
                    "--agents {text}: {count} agents are too many; start {MOST} at most"
                ))),
            };
        }
        if config.dry_run && AUTO.contains(&text.as_str()) {
            return Ok(None);
        }
        if is_file(text) {
            return described(text, listen.as_deref()).map(Some);
        }
        let number = |text: &str| text.parse().ok().filter(|n| (1..=MOST).contains(n));
        let wrong = || {
            Failure::usage(format!(
                "--agents {text}: write local:N for processes on this machine, N with --listen HOST:PORT, N \
                 from 1 to {MOST}, auto where an engine starts them, or a deployment FILE.toml with [[load]]"
            ))
        };
        match (text.strip_prefix("local:"), listen) {
            (Some(count), None) => Ok(Some(FleetOptions::Local(number(count).ok_or_else(wrong)?))),
            (Some(_), Some(_)) => {
                Err(Failure::usage("--agents local:N starts its agents itself: leave --listen out"))
            }
            (None, Some(listen)) => {
                let count = number(text).ok_or_else(wrong)?;
                Ok(Some(FleetOptions::Joining { count, listen: listen.clone() }))
            }
            (None, None) => Err(wrong()),
        }
    }

    /// Refuses a token or an address that cannot serve, before the conductor asks a store for anything.
    ///
    /// # Errors
    /// A mistake of usage.
    pub fn check(&self) -> Result<(), Failure> {
        Token::from_environment()?;
        match self {
            FleetOptions::Local(_) => Ok(()),
            FleetOptions::Joining { listen, .. }
            | FleetOptions::Described { listen, .. }
            | FleetOptions::Placed { listen, .. } => gathering::bind(listen).map(drop),
        }
    }

    /// Returns true if the conductor waits for its agents: they come by themselves or from other machines.
    pub fn are_waited_for(&self) -> bool {
        !matches!(self, FleetOptions::Local(_))
    }

    /// Returns the number of agents.
    pub fn count(&self) -> u32 {
        match self {
            FleetOptions::Local(count)
            | FleetOptions::Joining { count, .. }
            | FleetOptions::Placed { count, .. } => *count,
            FleetOptions::Described { machines, .. } => machines.len() as u32,
        }
    }
}

/// Agents on the machines that a deployment file names.
fn described(file: &str, listen: Option<&str>) -> Result<FleetOptions, Failure> {
    let machines = load_machines(file).map_err(Failure::usage)?;
    if machines.is_empty() || machines.len() > MOST as usize {
        return Err(Failure::usage(format!(
            "{file}: it has {} [[load]] machines; give it 1 to {MOST}, each with name and start",
            machines.len()
        )));
    }
    let Some(listen) = listen.filter(|listen| !listen.starts_with("0.0.0.0:")) else {
        return Err(Failure::usage(format!(
            "--agents {file}: add --listen HOST:PORT, by which its load machines reach this one"
        )));
    };
    Ok(FleetOptions::Described { machines, listen: listen.to_owned() })
}

/// Refuses a plan that agents cannot carry, before anything is begun.
///
/// # Errors
/// [`Failure`] in one line.
pub fn refuse(options: &FleetOptions, reads: ReadsFrom, plan: &Plan) -> Result<(), Failure> {
    let usage = |line: String| Err(Failure::usage(line));
    for phase in &plan.phases {
        if phase.groups.iter().any(|group| group.linearizability) {
            return usage(format!(
                "phase {}: the check of linearizability needs a single process; leave out --agents or \
                 --linearizability",
                phase.name
            ));
        }
        check(phase, options.count()).map_err(Failure::usage)?;
        // Where each draws its own operations it needs records of its own to write.
        for index in (0..options.count()).filter(|_| reads == ReadsFrom::Anywhere) {
            let division = Division { reads, index, count: options.count() };
            for group in share_of(phase, division).groups {
                Workload::new(&group, &plan.dataset, division.part()).map_err(Failure::usage)?;
            }
        }
    }
    Ok(())
}

/// Agents of a run: where they come from, and those that have joined.
pub struct Fleets {
    options: FleetOptions,
    reads: ReadsFrom,
    on_lost: OnAgentLost,
    /// Agents that have joined, which stay for all stores and trials; `None` if each store starts its own.
    joined: Option<Arc<Mutex<Fleet>>>,
}

/// Agents in use by one store.
pub struct FleetInUse(Arc<Mutex<Fleet>>);

impl FleetInUse {
    /// Locks the agents, to give them orders.
    pub fn lock(&self) -> MutexGuard<'_, Fleet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fleets {
    /// Waits for agents that are to join: for `wait` if the user says so, else as long as their kind is waited for.
    /// Agents on this machine are started later, for each store anew, where its clients have to be.
    ///
    /// # Errors
    /// [`Failure`] if nobody can join, or the user does not want to wait.
    pub fn gather(
        options: FleetOptions,
        (reads, on_lost): (ReadsFrom, OnAgentLost),
        wait: Option<Duration>,
        interrupt: &Interrupt,
    ) -> Result<Fleets, Failure> {
        let patience = wait.unwrap_or(PATIENCE);
        let joined = match &options {
            FleetOptions::Local(_) => None,
            FleetOptions::Joining { count, listen } => {
                let given = Token::from_environment()?;
                let made = given.is_none();
                let token = given.map_or_else(Token::made, Ok)?;
                let mut fleet = Fleet::listen(listen, *count, &token)?;
                fleet.print_how_to_join(listen, made.then_some(&token));
                fleet.wait_for_all(interrupt, wait, Some(Vec::new()))?;
                Some(Arc::new(Mutex::new(fleet)))
            }
            FleetOptions::Described { machines, listen } => {
                let token = Token::from_environment()?.map_or_else(Token::made, Ok)?;
                let fleet = described::start(machines, listen, &token, interrupt, patience)?;
                Some(Arc::new(Mutex::new(fleet)))
            }
            FleetOptions::Placed { count, listen, itself, engine } => {
                // An engine's process without a token is refused before.
                let token = Token::from_environment()?.map_or_else(Token::made, Ok)?;
                let mut fleet = Fleet::listen(listen, *count, &token)?;
                warn_user!(
                    "kvdyno: {engine} starts {count} agents; they join at {}",
                    fleet.address()
                );
                if *itself {
                    local::start_beside(&mut fleet, &token)?;
                }
                fleet.wait_for_all(interrupt, Some(patience), Some(Vec::new()))?;
                Some(Arc::new(Mutex::new(fleet)))
            }
        };
        Ok(Fleets { options, reads, on_lost, joined })
    }

    /// Returns the number of agents.
    pub fn count(&self) -> u32 {
        self.options.count()
    }

    /// Returns which records the agents read.
    pub fn reads(&self) -> ReadsFrom {
        self.reads
    }

    /// Returns the course of the run if an agent is lost.
    pub fn on_lost(&self) -> OnAgentLost {
        self.on_lost
    }

    /// Returns the moment from which no request of agents that an earlier store lost is in flight any more, if
    /// requests take no longer than `timeout`; `None` if none was lost, or if the run ends with a lost agent.
    pub fn quiet_at(&self, timeout: Duration) -> Option<Instant> {
        let joined = self.joined.as_ref().filter(|_| self.on_lost == OnAgentLost::GoOn)?;
        joined.lock().unwrap_or_else(PoisonError::into_inner).quiet_at(timeout)
    }

    /// Returns the agents for one store. Called by the thread that loads it.
    ///
    /// # Errors
    /// [`Failure`] if they cannot be started.
    pub fn take(&self, interrupt: &Interrupt) -> Result<FleetInUse, Failure> {
        match (&self.joined, &self.options) {
            (Some(joined), _) => Ok(FleetInUse(Arc::clone(joined))),
            (None, options) => {
                let fleet = local::start(options.count(), interrupt)?;
                Ok(FleetInUse(Arc::new(Mutex::new(fleet))))
            }
        }
    }
}
