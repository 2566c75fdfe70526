//! Use of a worker thread's time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Use of a worker thread's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerUse {
    /// Time from the start of the phase to this worker's end.
    pub wall: Duration,
    /// Time from the start of the phase until it could send its first request.
    pub late: Duration,
    /// CPU time of the thread, spinning left out.
    pub cpu: Duration,
    /// CPU time spent spinning towards a due time.
    pub spun: Duration,
    /// Time that it could have worked while another thread had the processor, or a quota was used
    /// up.
    pub waited: Duration,
    /// Sum of service times of its operations (in process: the time inside the store).
    pub in_store: Duration,
    /// Number of clients that it carried.
    pub clients: u32,
}

impl WorkerUse {
    /// Returns the share of the time that the thread worked or waited for a processor to work,
    /// spinning left out.
    #[must_use]
    pub fn wanted(&self) -> f64 {
        (self.cpu + self.waited).as_secs_f64() / self.wall.as_secs_f64()
    }
}
