//! Reasons why a testbed cannot be had: each error is one line that says what, where, and what to do.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use kvdyno_core::workload::fault::ActionFailure;

/// A testbed could not be named, installed, started or managed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The words that name a testbed are wrong.
    #[error("testbed `{word}`: {problem}; {advice}")]
    Word {
        /// Words that were written.
        word: String,
        /// Description of what is wrong with it.
        problem: String,
        /// Advice: what to do.
        advice: String,
    },
    /// The program is not there.
    #[error("{what} is not installed: {install}")]
    NotInstalled {
        /// Name of what is missing.
        what: String,
        /// Advice: what to do, with the exact command.
        install: String,
    },
    /// A program could not be installed.
    #[error(
        "cannot install {what}: {problem}; try again, or install it by hand into a folder of PATH"
    )]
    Install {
        /// Name of what was to be installed.
        what: String,
        /// Reason why it did not work, and what to do.
        problem: String,
    },
    /// The process ended before it served.
    #[error("{node} ended at once ({status}); look at the end of its log: {log}")]
    Ended {
        /// Name of the node.
        node: String,
        /// Status with which it ended.
        status: ExitStatus,
        /// End of what it wrote.
        log: String,
    },
    /// The process runs, but does not serve.
    #[error("{node}: not ready after {waited:?} ({awaited}); look at the end of its log: {log}")]
    NotReady {
        /// Name of the node.
        node: String,
        /// Time given to it.
        waited: Duration,
        /// Description of what was waited for.
        awaited: String,
        /// End of what it wrote.
        log: String,
    },
    /// A server, or a tool that sets it up, answers something else than it should.
    #[error("{node}: {problem}")]
    Refused {
        /// Name of the node or the tool.
        node: String,
        /// Words of the server or the tool.
        problem: String,
    },
    /// The testbed has no such node, or the node cannot do that.
    #[error("{0}")]
    Node(String),
    /// A part of kvdyno, or the machine below the nodes, failed: that is nobody's word and no store's doing.
    #[error("{0}")]
    Machine(String),
    /// The user wanted to stop before it was up.
    #[error("interrupted while the testbed was being set up; run it again")]
    Interrupted,
    /// An error that a keeper reports.
    #[error("{message}")]
    Kept {
        /// One line for the user.
        message: String,
        /// The way in which it failed.
        failure: ActionFailure,
    },
    /// The system refused something.
    #[error(
        "cannot {action} {what}: {error}; check that it exists, that there is free space, and that you may write there"
    )]
    System {
        /// Thing that it is about.
        what: String,
        /// Action that was tried, a verb.
        action: &'static str,
        /// Error of the system.
        error: io::Error,
    },
}

impl TestbedError {
    /// Returns a function for `map_err`: the system would not let us `action` `what`.
    pub fn system(
        action: &'static str,
        what: impl Into<String>,
    ) -> impl FnOnce(io::Error) -> TestbedError {
        let what = what.into();
        move |error| TestbedError::System { what, action, error }
    }

    /// Returns true if the user can put it right by writing something else.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        self.failure() == ActionFailure::Usage
    }

    /// Returns the way in which it failed.
    #[must_use]
    pub fn failure(&self) -> ActionFailure {
        match self {
            TestbedError::Word { .. } | TestbedError::Node(_) => ActionFailure::Usage,
            TestbedError::Machine(_) => ActionFailure::Machine,
            TestbedError::Ended { .. } => ActionFailure::ProcessEnded,
            TestbedError::NotReady { .. } => ActionFailure::NotReady,
            TestbedError::Kept { failure, .. } => *failure,
            TestbedError::NotInstalled { .. }
            | TestbedError::Install { .. }
            | TestbedError::Refused { .. }
            | TestbedError::Interrupted
            | TestbedError::System { .. } => ActionFailure::Other,
        }
    }
}
