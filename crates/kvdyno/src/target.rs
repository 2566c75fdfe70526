//! What is measured: a store that a URL names, or a testbed that is up around its own run.

use kvdyno_core::redact;
use kvdyno_core::store::Threading;
use kvdyno_core::suite::Plan;
use kvdyno_stores::url;
use kvdyno_testbed::is_file;

use crate::exit::{Exit, Failure};
use crate::open_store::OpenStore;
use crate::output::Output;
use crate::run_options::RunOptions;
use crate::session::{Session, preflight};
use crate::testbed::{self, Around, consent};

/// Something to measure.
#[derive(Clone)]
pub enum Target {
    /// The store of this URL.
    Store(String),
    /// The testbed of these words, which is up around its own run only.
    Testbed(String),
}

/// A target that is known to be right.
pub enum Checked {
    /// A store.
    Store(OpenStore),
    /// A testbed.
    Testbed(String),
}

impl Target {
    /// As it may be shown.
    pub fn shown(&self) -> String {
        match self {
            Target::Store(url) => url::shown(url),
            Target::Testbed(words) => redact::redact(words),
        }
    }

    /// As it was typed.
    pub fn words(&self) -> &str {
        match self {
            Target::Store(words) | Target::Testbed(words) => words,
        }
    }

    /// Opens a store and looks whether a testbed can be set up, so that a wrong word ends the run
    /// before anything is measured.
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
    /// Says, before an agent is waited for, that agents are of no use to it.
    ///
    /// # Errors
    /// [`Failure`] if it lives in the process that loads it: each agent would have one of its own.
    pub fn refuse_agents(&self) -> Result<(), Failure> {
        match self {
            Checked::Store(opened) if opened.store.threading() == Threading::InProcess => {
                Err(Failure::usage(format!(
                    "{}: it lives in the process that loads it, and agents are several; leave --agents out, or \
                     serve an engine to all of them (--testbed engine:NAME)",
                    opened.url
                )))
            }
            Checked::Store(_) | Checked::Testbed(_) => Ok(()),
        }
    }

    /// Looks at it before an agent is waited for. A testbed is not up yet.
    ///
    /// # Errors
    /// [`Failure`] if a store cannot be reached, or cannot be measured so.
    pub fn preflight(&self, options: &RunOptions<'_>) -> Result<(), Failure> {
        match self {
            Checked::Store(opened) => preflight(options, opened),
            Checked::Testbed(_) => Ok(()),
        }
    }

    /// Runs every phase against it.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be set up or opened.
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
