//! Leases for writes with a time to live: etcd has no other way to let a record expire.
//!
//! A lease counts whole seconds from when it was granted and is revoked, with all its records, some
//! time after its end: members look twice a second and revoke at most 1,000 leases a second
//! (etcd, `lease/lessor.go`).

use std::cell::Cell;
use std::time::{Duration, Instant};

use etcd_client::{Error, LeaseClient};

use super::Lease;

/// Time for which a shared lease is given to further writes, from when it was asked for.
pub(super) const SHARED_FOR: Duration = Duration::from_secs(1);

/// A lease that further writes may be given.
#[derive(Clone, Copy)]
struct Current {
    seconds: i64,
    lease: i64,
    asked: Instant,
}

/// The leases of a connection.
pub(super) struct Leases {
    kind: Lease,
    current: Cell<Option<Current>>,
}

impl Leases {
    pub fn new(kind: Lease) -> Leases {
        Leases { kind, current: Cell::new(None) }
    }

    /// Returns a lease that keeps what is written now for `ttl` at least.
    pub async fn lease_for(&self, ttl: Duration, client: &mut LeaseClient) -> Result<i64, Error> {
        let seconds = self.seconds(ttl);
        if let Some(current) = self.current.get()
            && current.seconds == seconds
            && current.asked.elapsed() < SHARED_FOR
        {
            return Ok(current.lease);
        }
        let asked = Instant::now();
        let lease = client.grant(seconds, None).await?.id();
        if self.kind == Lease::Shared {
            self.current.set(Some(Current { seconds, lease, asked }));
        }
        Ok(lease)
    }

    /// Drops the shared lease: those of a member that was lost may be lost with it.
    pub fn forget(&self) {
        self.current.set(None);
    }

    /// Returns the seconds that a lease must be granted for; a shared one is up to a second old when it is used.
    pub fn seconds(&self, ttl: Duration) -> i64 {
        let ttl = match self.kind {
            Lease::Each => ttl,
            Lease::Shared => ttl + SHARED_FOR,
        };
        ttl.as_millis().div_ceil(1000).max(1) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_never_shorter_than_the_time_to_live() {
        let seconds = |kind, millis| Leases::new(kind).seconds(Duration::from_millis(millis));
        assert_eq!(seconds(Lease::Each, 1), 1);
        assert_eq!(seconds(Lease::Each, 2_000), 2);
        assert_eq!(seconds(Lease::Each, 2_001), 3);
        assert_eq!(seconds(Lease::Shared, 2_000), 3);
    }
}
