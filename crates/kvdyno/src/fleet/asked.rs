//! `--agents`: what is asked for, and what cannot be had of several agents.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvdyno_core::load::Interrupt;
use kvdyno_core::suite::Plan;

use super::gathering::Fleet;
use super::local;
use super::share::check;
use super::token::Token;
use crate::args::ExecutionArguments;
use crate::exit::Failure;

/// Most agents of a run.
const MOST: u32 = 1_000;

/// Which agents carry a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentsAsked {
    /// Processes on this machine, this many.
    Local(u32),
    /// This many, which join at this address.
    Joining {
        /// How many.
        count: u32,
        /// HOST:PORT.
        listen: String,
    },
}

impl AgentsAsked {
    /// Reads `--agents` and `--listen`.
    ///
    /// # Errors
    /// [`Failure`] if they do not make sense.
    pub fn read(arguments: &ExecutionArguments) -> Result<Option<AgentsAsked>, Failure> {
        let (Some(text), listen) = (&arguments.agents, &arguments.listen) else { return Ok(None) };
        let number = |text: &str| text.parse().ok().filter(|n| (1..=MOST).contains(n));
        let wrong = || {
            Failure::usage(format!(
                "--agents {text}: write local:N for processes on this machine, or N with --listen \
                 HOST:PORT, N from 1 to {MOST}"
            ))
        };
        match (text.strip_prefix("local:"), listen) {
            (Some(count), None) => Ok(Some(AgentsAsked::Local(number(count).ok_or_else(wrong)?))),
            (Some(_), Some(_)) => {
                Err(Failure::usage("--agents local:N starts its agents itself: leave --listen out"))
            }
            (None, Some(listen)) => {
                let count = number(text).ok_or_else(wrong)?;
                Ok(Some(AgentsAsked::Joining { count, listen: listen.clone() }))
            }
            (None, None) => Err(wrong()),
        }
    }

    /// How many they are.
    pub fn count(&self) -> u32 {
        match self {
            AgentsAsked::Local(count) | AgentsAsked::Joining { count, .. } => *count,
        }
    }
}

/// Says what agents cannot carry, before anything is begun.
///
/// # Errors
/// [`Failure`] in one line.
pub fn refuse(asked: &AgentsAsked, plan: &Plan) -> Result<(), Failure> {
    let usage = |line: String| Err(Failure::usage(line));
    for phase in &plan.phases {
        if phase.groups.iter().any(|group| group.linearizability) {
            return usage(format!(
                "phase {}: histories for linearizability are kept in one process; leave --agents out, or the \
                 histories",
                phase.name
            ));
        }
        check(phase, asked.count()).map_err(Failure::usage)?;
    }
    if plan.part.count > 1 {
        return usage("--part and --agents both split a load: use one of them".to_owned());
    }
    Ok(())
}

/// Where a run gets its agents from.
pub struct Fleets {
    asked: AgentsAsked,
    /// Those that have joined, which stay for all stores and trials.
    joined: Option<Arc<Mutex<Fleet>>>,
}

/// Agents in use by one store.
pub struct FleetInUse(Arc<Mutex<Fleet>>);

impl FleetInUse {
    /// For orders.
    pub fn lock(&self) -> MutexGuard<'_, Fleet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fleets {
    /// Waits for agents that are to join; those of this machine are started for each store anew, where its
    /// clients have to be.
    ///
    /// # Errors
    /// [`Failure`] if nobody can join, or the user does not want to wait.
    pub fn gather(asked: AgentsAsked, interrupt: &Interrupt) -> Result<Fleets, Failure> {
        let joined = match &asked {
            AgentsAsked::Local(_) => None,
            AgentsAsked::Joining { count, listen } => {
                let told = Token::told()?;
                let made = told.is_none();
                let token = told.map_or_else(Token::made, Ok)?;
                let mut fleet = Fleet::listen(listen, *count, &token)?;
                fleet.tell_how_to_join(listen, made.then_some(&token));
                fleet.wait_for_all(interrupt)?;
                Some(Arc::new(Mutex::new(fleet)))
            }
        };
        Ok(Fleets { asked, joined })
    }

    /// How many agents there are.
    pub fn count(&self) -> u32 {
        self.asked.count()
    }

    /// The agents, for one store. Called by the thread that loads it.
    ///
    /// # Errors
    /// [`Failure`] if they cannot be started.
    pub fn take(&self, interrupt: &Interrupt) -> Result<FleetInUse, Failure> {
        match (&self.joined, &self.asked) {
            (Some(joined), _) => Ok(FleetInUse(Arc::clone(joined))),
            (None, asked) => {
                let fleet = local::start(asked.count(), interrupt)?;
                Ok(FleetInUse(Arc::new(Mutex::new(fleet))))
            }
        }
    }
}
