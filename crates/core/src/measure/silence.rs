//! Stretches of a phase without success, to the nanosecond.
//!
//! A stretch in which no client succeeded lies within such a stretch of each single worker. So each
//! worker keeps its own, longer than a threshold, in memory of its own, and the phase's are where
//! those of all workers overlap.

use serde::{Deserialize, Serialize};

use super::clock::Nanos;

/// Highest number of stretches without success that a worker keeps. If there are more, the least
/// length that is kept is doubled until there is room.
const MOST_KEPT: usize = 1_024;
/// Shortest stretch without success that is kept at first, ns.
const LEAST: Nanos = 500_000;

/// A stretch of time on [`super::now`]'s clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Begin, ns.
    pub from: Nanos,
    /// End, ns.
    pub to: Nanos,
}

impl Stretch {
    /// Returns its length, ns.
    #[must_use]
    pub fn length(self) -> Nanos {
        self.to.saturating_sub(self.from)
    }
}

/// Stretches without success, in order; shorter ones than `least` may be missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silences {
    /// Length from which on every stretch is among them, ns.
    pub least: Nanos,
    /// Stretches from one success (or the begin) to the next (or [`Nanos::MAX`]).
    pub stretches: Vec<Stretch>,
}

impl Silences {
    /// Returns the one stretch of a worker that never succeeded.
    #[must_use]
    pub fn total(start: Nanos) -> Silences {
        Silences { least: LEAST, stretches: vec![Stretch { from: start, to: Nanos::MAX }] }
    }

    /// Returns the stretches in which neither this one nor `other` succeeded.
    #[must_use]
    pub fn and(&self, other: &Silences) -> Silences {
        let least = self.least.max(other.least);
        let (mut mine, mut theirs) = (self.stretches.iter(), other.stretches.iter());
        let (mut a, mut b) = (mine.next(), theirs.next());
        let mut stretches = Vec::new();
        while let (Some(one), Some(two)) = (a, b) {
            let both = Stretch { from: one.from.max(two.from), to: one.to.min(two.to) };
            if both.length() >= least {
                stretches.push(both);
            }
            if one.to <= two.to { a = mine.next() } else { b = theirs.next() }
        }
        Silences { least, stretches }
    }

    /// Returns the longest stretch that reaches into `from..to`, cut at `to`, which is no later than
    /// the end of the measurement. If all were too short to be kept, it returns one of `least` ns
    /// from `from` on, which none exceeded.
    #[must_use]
    pub fn longest(&self, from: Nanos, to: Nanos) -> Stretch {
        let cut = |stretch: &Stretch| Stretch { to: stretch.to.min(to), ..*stretch };
        let within = self.stretches.iter().filter(|s| s.to > from && s.from < to).map(cut);
        let none = Stretch { from, to: (from + self.least).min(to) };
        within.max_by_key(|stretch| stretch.length()).unwrap_or(none)
    }
}

/// Stretches without success of one worker, while it works. They cost an operation one comparison.
#[derive(Debug)]
pub(super) struct Listener {
    last: Nanos,
    least: Nanos,
    kept: Vec<Stretch>,
}

impl Listener {
    pub(super) fn new(start: Nanos) -> Self {
        // All of its memory at once: nothing is allocated while the load runs.
        Listener { last: start, least: LEAST, kept: Vec::with_capacity(MOST_KEPT) }
    }

    /// Notes an operation that succeeded.
    #[inline(always)]
    pub(super) fn success(&mut self, at: Nanos) {
        if at.saturating_sub(self.last) >= self.least {
            self.keep(at);
        }
        self.last = at;
    }

    #[cold]
    fn keep(&mut self, at: Nanos) {
        while self.kept.len() == MOST_KEPT {
            self.least *= 2;
            let least = self.least;
            self.kept.retain(|stretch| stretch.length() >= least);
        }
        if at - self.last >= self.least {
            self.kept.push(Stretch { from: self.last, to: at });
        }
    }

    pub(super) fn into_silences(mut self) -> Silences {
        self.kept.push(Stretch { from: self.last, to: Nanos::MAX });
        Silences { least: self.least, stretches: self.kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_phase_keeps_the_longest_and_says_what_it_may_have_missed() {
        let mut listener = Listener::new(0);
        let mut at = 0;
        for number in 1..=50_000_u64 {
            at += 600_000 + number % 7_000 * 100;
            listener.success(at + if number > 30_000 { 5_000_000_000 } else { 0 });
        }
        let silences = listener.into_silences();
        assert!(silences.stretches.len() <= MOST_KEPT + 1);
        let longest = silences.longest(0, at);
        assert!((5_000_000_000..5_002_000_000).contains(&longest.length()), "{longest:?}");
        let early = silences.longest(0, 1_000_000_000);
        assert!(early.length() >= 1_000_000, "no shorter than it was: {early:?}");
        assert!(silences.least > LEAST && early.length() <= silences.least.max(1_300_000));
    }
}
