//! Errors because of which a phase cannot run at all.

use crate::store::RequestError;
use crate::verify::LedgerError;
use crate::workload::PlanError;

/// Error because of which a phase could not run at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan asks for something impossible.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan needs an operation that the store lacks.
    #[error("phase {phase}: {store} has no {operation}; `kvdyno stores` lists what it has")]
    Unsupported {
        /// Name of the phase.
        phase: String,
        /// Name of the store.
        store: String,
        /// Operation that is missing, in words.
        operation: &'static str,
    },
    /// The plan waits to see what it put, where that may not be seen.
    #[error("phase {phase}: `put-seen` {why}, or write `put-get`")]
    Unseen {
        /// Name of the phase.
        phase: String,
        /// Reason, and what to change.
        why: &'static str,
    },
    /// No connection could be made.
    #[error("cannot reach the store: {0}")]
    Unavailable(RequestError),
    /// The system refused a thread, a timer or a runtime.
    #[error("the system refused {what}: {source}; use fewer clients or raise the limit")]
    System {
        /// Resource that the system refused, in words.
        what: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The state of the verification does not fit into memory.
    #[error(transparent)]
    Memory(#[from] LedgerError),
    /// An agent that carries a part of the load failed or is lost.
    #[error("{0}")]
    Agents(String),
    /// The conductor did not let the phase begin.
    #[error("the conductor cancelled the phase; read the conductor's message")]
    CalledOff,
    /// A worker thread panicked before it had begun.
    #[error(
        "a worker thread panicked, which is a bug of kvdyno or of the store's driver: report it with \
         the lines above"
    )]
    Panicked,
}
