//! Why a phase could not be run at all.

use crate::store::RequestError;
use crate::verify::LedgerError;
use crate::workload::PlanError;

/// Why a phase could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan asks for what cannot be.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan asks for what the store cannot do.
    #[error("phase {phase}: {store} has no {operation}; `kvdyno stores` lists what it has")]
    Unsupported {
        /// Name of the phase.
        phase: String,
        /// Name of the store.
        store: String,
        /// What is missing.
        operation: &'static str,
    },
    /// No connection could be made.
    #[error("cannot reach the store: {0}")]
    Unavailable(RequestError),
    /// The system refused a thread, a timer or a runtime.
    #[error("the system refused {what}: {source}; fewer clients or a higher limit may help")]
    System {
        /// What was asked for.
        what: &'static str,
        /// What it answered.
        source: std::io::Error,
    },
    /// What verification must keep does not fit into memory.
    #[error(transparent)]
    Memory(#[from] LedgerError),
    /// The load is carried by other processes, and one of them could not, or is lost.
    #[error("{0}")]
    Agents(String),
    /// Whoever conducts the load did not let the phase begin.
    #[error("the conductor called the phase off: see what it says")]
    CalledOff,
    /// A worker thread panicked before it had begun.
    #[error(
        "a worker thread panicked, which is a bug of kvdyno or of the store's driver: report it with \
         what stands above"
    )]
    Panicked,
}
