//! How slow a network is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How slow a network is: it has less bandwidth, packets take longer, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slowness {
    bandwidth: Option<u64>,
    delay: Option<Duration>,
}

impl Slowness {
    /// Bytes a second that pass, each way, and how much longer each packet takes that a node sends.
    /// `None` if neither is more than nothing.
    #[must_use]
    pub fn new(bandwidth: Option<u64>, delay: Option<Duration>) -> Option<Slowness> {
        let bandwidth = bandwidth.filter(|bytes| *bytes > 0);
        let delay = delay.filter(|delay| !delay.is_zero());
        (bandwidth.is_some() || delay.is_some()).then_some(Slowness { bandwidth, delay })
    }

    /// Bytes a second that pass, each way.
    #[must_use]
    pub fn bandwidth(self) -> Option<u64> {
        self.bandwidth
    }

    /// How much longer each packet takes that a node sends.
    #[must_use]
    pub fn delay(self) -> Option<Duration> {
        self.delay
    }
}
