//! When requests timed out, so that those that did while kvdyno itself stood still can be told from the
//! store's: whether it did is known only when the phase is over.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::measure::{Nanos, Stalls};
use crate::store::Certainty;

/// Width of a slot, ns.
const SLOT: Nanos = 10_000_000;

/// How many time-outs ended in each slot of time, by whether the request may have been applied.
#[derive(Debug, Default)]
pub(super) struct Timeouts(BTreeMap<(bool, Nanos), u64>);

impl Timeouts {
    pub fn note(&mut self, certainty: Certainty, at: Nanos) {
        *self.0.entry((certainty == Certainty::Indeterminate, at / SLOT)).or_default() += 1;
    }

    pub fn add(&mut self, other: &Timeouts) {
        for (slot, count) in &other.0 {
            *self.0.entry(*slot).or_default() += count;
        }
    }

    /// How many were due to the client, which stood still, if the store had `timeout` to answer.
    pub fn of_client(&self, certainty: Certainty, stalls: &Stalls, timeout: Duration) -> u64 {
        let wanted = certainty == Certainty::Indeterminate;
        let slots = self.0.iter().filter(|((indeterminate, _), _)| *indeterminate == wanted);
        let explained = |slot: &Nanos| stalls.explain_timeout(slot * SLOT + SLOT / 2, timeout);
        slots.filter(|((_, slot), _)| explained(slot)).map(|(_, count)| count).sum()
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
