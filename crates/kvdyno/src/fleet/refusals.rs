//! Lines about connections that were refused: one a peer a minute, however many it makes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Time between two lines about one peer.
const QUIET: Duration = Duration::from_secs(60);

/// Lines told of each peer.
#[derive(Default)]
pub struct Refusals {
    printed: BTreeMap<IpAddr, (Instant, u64)>,
}

impl Refusals {
    /// Takes note of a refusal. Returns how many were kept quiet since the last line about this peer, if it is time for one.
    pub fn note(&mut self, from: IpAddr, now: Instant) -> Option<u64> {
        let is_quiet = |printed: Instant| now.saturating_duration_since(printed) < QUIET;
        if let Some((printed, quiet)) = self.printed.get_mut(&from)
            && is_quiet(*printed)
        {
            *quiet += 1;
            return None;
        }
        let quiet = self.printed.insert(from, (now, 0)).map_or(0, |(_, quiet)| quiet);
        // Of the others only those stay that matter.
        self.printed.retain(|_, (printed, quiet)| is_quiet(*printed) || *quiet > 0);
        Some(quiet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_connects_again_and_again_is_told_once_a_minute() {
        let (one, other) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let (mut refusals, begun) = (Refusals::default(), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(refusals.note(one, begun), Some(0));
        assert!((0..499).all(|n| refusals.note(one, after(n / 10)).is_none()));
        assert_eq!(refusals.note(other, after(50)), Some(0));
        assert_eq!(refusals.note(one, after(61)), Some(499));
        assert_eq!(refusals.note(one, after(62)), None);
        assert_eq!(refusals.note(other, after(200)), Some(0));
        assert_eq!(refusals.note(one, after(200)), Some(1));
    }
}
