//! Times at which requests timed out. A request that timed out while kvdyno itself stood still is no fault of the
//! store; whether kvdyno stood still is known only when the phase is over.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::measure::{Nanos, Stalls};
use crate::store::Certainty;

/// Width of a slot, ns.
const SLOT: Nanos = 10_000_000;

/// Number of time-outs that ended in each slot of time: of requests that surely were not applied, and of those that
/// may have been.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Timeouts([BTreeMap<Nanos, u64>; 2]);

impl Timeouts {
    pub fn note(&mut self, certainty: Certainty, at: Nanos) {
        let slots = &mut self.0[usize::from(certainty == Certainty::Indeterminate)];
        *slots.entry(at / SLOT).or_default() += 1;
    }

    pub fn add(&mut self, other: &Timeouts) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            for (slot, count) in theirs {
                *mine.entry(*slot).or_default() += count;
            }
        }
    }

    /// Converts the slots to another clock; `time` converts one time of this clock.
    pub fn moved(self, time: impl Fn(Nanos) -> Nanos) -> Timeouts {
        let moved = |slots: BTreeMap<Nanos, u64>| {
            let mut there = BTreeMap::new();
            for (slot, count) in slots {
                *there.entry(time(slot * SLOT + SLOT / 2) / SLOT).or_default() += count;
            }
            there
        };
        Timeouts(self.0.map(moved))
    }

    /// Counts the time-outs that are the client's own doing, because it stood still, if the store had `timeout` to answer.
    pub fn of_client(&self, certainty: Certainty, stalls: &Stalls, timeout: Duration) -> u64 {
        let slots = self.0[usize::from(certainty == Certainty::Indeterminate)].iter();
        let explained = |slot: &Nanos| stalls.explain_timeout(slot * SLOT + SLOT / 2, timeout);
        slots.filter(|(slot, _)| explained(slot)).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Stretch;

    #[test]
    fn timeouts_of_a_standstill_are_told_from_those_of_the_store() {
        const SECOND: Nanos = 1_000_000_000;
        let (mut one, mut other) = (Timeouts::default(), Timeouts::default());
        let indeterminate = Certainty::Indeterminate;
        (0..50).for_each(|n| one.note(indeterminate, 4 * SECOND + n * 100_000));
        (0..7).for_each(|_| other.note(indeterminate, 9 * SECOND));
        other.note(Certainty::Failed, 4 * SECOND);
        one.add(&other);
        let gaps = vec![Stretch { from: SECOND, to: 4 * SECOND }];
        let stalls = Stalls { gaps, ..Stalls::default() };
        let of_client = |certainty| one.of_client(certainty, &stalls, Duration::from_secs(2));
        assert_eq!((of_client(indeterminate), of_client(Certainty::Failed)), (50, 1));
        assert_eq!(one.of_client(indeterminate, &Stalls::default(), Duration::from_secs(2)), 0);
    }
}
