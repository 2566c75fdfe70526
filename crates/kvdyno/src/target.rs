//! The target of a run: a store that a URL names, or a testbed that is up around its own run.

use kvdyno_core::redact;
use kvdyno_core::store::Threading;
use kvdyno_core::suite::Plan;
use kvdyno_stores::{StoreUrl, registry, url};
use kvdyno_testbed::is_file;

use crate::exit::{Exit, Failure};
use crate::open_store::OpenStore;
use crate::output::Output;
use crate::run_options::RunOptions;
use crate::session::{Session, preflight};
use crate::testbed::{self, Around, consent};

/// Target to measure.
#[derive(Clone)]
pub enum Target {
    /// The store of this URL.
    Store(String),
    /// The testbed of these words, which is up around its own run only.
    Testbed(String),
}

/// A target that has passed the checks.
pub enum Checked {
    /// A store.
    Store(OpenStore),
    /// A testbed.
    Testbed(String),
}

impl Target {
    /// Returns the target's text without secrets.
    pub fn shown(&self) -> String {
        match self {
            Target::Store(url) => url::shown(url),
            Target::Testbed(words) => redact::redact(words),
        }
    }

    /// Returns the target's text as it was typed.
    pub fn words(&self) -> &str {
        match self {
            Target::Store(words) | Target::Testbed(words) => words,
        }
    }

    /// Refuses a target that agents cannot load, before anything is opened.
    ///
    /// # Errors
    /// [`Failure`] if the store lives in the process that loads it: each agent would have one of its own.
    pub fn refuse_agents(&self) -> Result<(), Failure> {
        let Target::Store(url) = self else { return Ok(()) };
        let parsed = StoreUrl::parse(url).map_err(Failure::usage)?;
        match registry::threading(&parsed).map_err(Failure::usage)? {
            Threading::InProcess => Err(Failure::usage(format!(
                "{} runs inside one process, so several agents cannot share it; leave --agents out, or \
                 serve an engine to all of them (--testbed engine:NAME)",
                parsed.redacted()
            ))),
            Threading::Networked => Ok(()),
        }
    }

    /// Opens a store, or checks that a testbed can be set up, so that a wrong word ends the run before anything is
    /// measured.
    ///
    /// # Errors
    /// [`Failure`] if the word is wrong, the store cannot be opened, or harm is not consented to.
    pub fn check(self, plan: &Plan, yes: bool) -> Result<Checked, Failure> {
        match self {
            Target::Store(url) => OpenStore::open(&url).map(Checked::Store),
            Target::Testbed(words) => {
                let words = testbed::fitted(&words, plan)?;
                testbed::check(&words)?;
                let faults = plan.phases.iter().any(|phase| !phase.faults.is_empty());
                if faults && is_file(&words) {
                    consent(&words, &format!("suite {} harms its nodes", plan.suite), yes)?;
                }
                Ok(Checked::Testbed(words))
            }
        }
    }
}

impl Checked {
    /// Checks the target before an agent is waited for. A testbed is not up yet.
    ///
    /// # Errors
    /// [`Failure`] if a store cannot be reached, or cannot be measured with these options.
    pub fn preflight(&self, options: &RunOptions<'_>) -> Result<(), Failure> {
        match self {
            Checked::Store(opened) => preflight(options, opened),
            Checked::Testbed(_) => Ok(()),
        }
    }

    /// Runs every phase against the target.
    ///
    /// # Errors
    /// [`Failure`] if the target cannot be set up or opened.
    pub fn run(self, options: &RunOptions<'_>, output: &Output) -> Result<Exit, Failure> {
        match self {
            Checked::Store(opened) => Ok(Session::open(options, opened)?.run(output)),
            Checked::Testbed(words) => {
                let around = Around::start(&words, false, &options.interrupt)?;
                let disclosed = testbed::disclosed(around.description());
                let opened = OpenStore::open(&around.description().url)?;
                Ok(Session::open(options, opened)?
                    .on_testbed(disclosed, around.keeper())
                    .run(output))
            }
        }
    }
}
