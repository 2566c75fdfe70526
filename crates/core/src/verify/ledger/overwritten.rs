//! Keeps the times at which versions were replaced, for stores that say how stale a read may be (a
//! cache in front of a store, above all). A version is then legal until that long after the first
//! acknowledged write that took its place.
//!
//! A slot's word or entry knows when its last write was acknowledged. This table keeps what they
//! forget: for each acknowledgement before the last one, the moment, and the version below which
//! all had been replaced by then. A version was replaced at the earliest such moment; where none is
//! kept, no later than the last acknowledgement. Both are upper bounds, so there is no false alarm;
//! they are exact where writes do not overlap.
//!
//! Moments older than the staleness are dropped, save the newest of them: by that one all that came
//! before was replaced too long ago. A slot that nobody has written for that long is dropped whole,
//! for then its last acknowledgement tells as much.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::measure::Nanos;
use crate::verify::judgement::{Tick, Times};

const SHARDS: u64 = 64;
/// Number of slots of a shard from which on it is looked through for old ones.
const FEW: usize = 1024;

/// A moment by which all versions below a number had been replaced.
#[derive(Clone, Copy, Debug)]
struct Moment {
    below: u32,
    at: Tick,
}

#[derive(Debug, Default)]
struct Slot {
    /// Tick at which it was last written.
    written: Tick,
    /// Moments in the order of the acknowledgements.
    moments: Vec<Moment>,
}

#[derive(Debug)]
struct Shard {
    slots: HashMap<u64, Slot>,
    /// Number of slots at which the shard is looked through for old ones.
    look_at: usize,
}

/// Times at which versions were replaced (see the top of the file).
#[derive(Debug)]
pub(super) struct Overwritten {
    /// Longest staleness that a read may have, ns.
    staleness: Nanos,
    shards: Vec<Mutex<Shard>>,
}

impl Overwritten {
    pub(super) fn new(staleness: Nanos) -> Overwritten {
        let shard = || Mutex::new(Shard { slots: HashMap::new(), look_at: FEW });
        Overwritten { staleness, shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    /// Notes that all versions of `slot` below `below` had been replaced at `at`, while it is
    /// written again at `now`. Nothing is kept if there are no such versions.
    #[inline]
    pub(super) fn note(&self, slot: u64, below: u32, at: Tick, now: Tick) {
        if below == 0 {
            return;
        }
        let recent = |tick: Tick| tick.earliest().saturating_add(self.staleness) >= now.earliest();
        let mut shard = self.shard(slot).lock().unwrap_or_else(PoisonError::into_inner);
        if shard.slots.len() >= shard.look_at {
            shard.slots.retain(|_, slot| recent(slot.written));
            shard.look_at = FEW.max(2 * shard.slots.len());
        }
        let Slot { written, moments } = shard.slots.entry(slot).or_default();
        *written = now.max(*written);
        if moments.last().is_none_or(|last| last.below < below) {
            moments.push(Moment { below, at });
        }
        let kept = moments.iter().position(|moment| recent(moment.at)).unwrap_or(moments.len());
        moments.drain(..kept.saturating_sub(1));
    }

    /// Returns true if a read at those times may have found `version` (`None`: any), which an
    /// acknowledged write had replaced. `behind` is a lower bound of the time since the last
    /// acknowledgement, `None` if that came just before.
    #[inline]
    pub(super) fn allows(
        &self,
        slot: u64,
        version: Option<u32>,
        behind: Option<Duration>,
        times: Times,
    ) -> bool {
        let staleness = times.staleness.min(self.staleness);
        if staleness == 0 {
            return false;
        }
        if behind.is_none_or(|behind| behind.as_nanos() <= u128::from(staleness)) {
            // So recent a last write may be the one that took its place; an earlier one tells more.
            let Some(version) = version else { return true };
            let shard = self.shard(slot).lock().unwrap_or_else(PoisonError::into_inner);
            let moments = shard.slots.get(&slot).map_or(&[][..], |slot| &slot.moments);
            let first = moments.iter().find(|moment| moment.below > version);
            return first
                .and_then(|moment| moment.at.latest())
                .is_none_or(|replaced| replaced.saturating_add(staleness) >= times.sent);
        }
        false
    }

    /// Returns the number of slots of which something is kept.
    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        let count = |shard: &Mutex<Shard>| shard.lock().unwrap().slots.len();
        self.shards.iter().map(count).sum()
    }

    fn shard(&self, slot: u64) -> &Mutex<Shard> {
        &self.shards[(slot % SHARDS) as usize]
    }
}
