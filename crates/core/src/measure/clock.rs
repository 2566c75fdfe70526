//! One clock for everything that is compared: nanoseconds since this process first asked.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds since the process first asked the time.
pub type Nanos = u64;

static EPOCH: OnceLock<Instant> = OnceLock::new();

/// The time now; never goes back, the same on every thread.
#[inline]
#[must_use]
pub fn now() -> Nanos {
    EPOCH.get_or_init(Instant::now).elapsed().as_nanos() as Nanos
}
