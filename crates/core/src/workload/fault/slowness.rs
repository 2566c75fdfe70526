//! Slowness of a network.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Slowness of a network: it has less bandwidth, packets take longer, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slowness {
    bandwidth: Option<u64>,
    delay: Option<Duration>,
}

impl Slowness {
    /// Makes it of the bytes a second that pass, each way, and the additional time that each packet takes which a
    /// node sends. Returns `None` if neither is above 0.
    #[must_use]
    pub fn new(bandwidth: Option<u64>, delay: Option<Duration>) -> Option<Slowness> {
        let bandwidth = bandwidth.filter(|bytes| *bytes > 0);
        let delay = delay.filter(|delay| !delay.is_zero());
        (bandwidth.is_some() || delay.is_some()).then_some(Slowness { bandwidth, delay })
    }

    /// Returns the bytes a second that pass, each way; `None` if they are not limited.
    #[must_use]
    pub fn bandwidth(self) -> Option<u64> {
        self.bandwidth
    }

    /// Returns the additional time that each packet takes which a node sends; `None` if there is none.
    #[must_use]
    pub fn delay(self) -> Option<Duration> {
        self.delay
    }
}
