//! Offset of an agent's clocks from the conductor's: the conductor asks many times, and keeps the quickest answer, as
//! NTP does.

use kvdyno_core::measure::{Nanos, now, system_time};
use serde::{Deserialize, Serialize};

/// Readings of a process's two clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClocksShown {
    /// Time of the clock that times all measurements, ns; its zero is the process's own.
    own: Nanos,
    /// Time of the system's clock, ns, which other processes can know, too.
    system: Nanos,
}

impl ClocksShown {
    /// Reads both clocks.
    pub fn now() -> ClocksShown {
        ClocksShown { own: now(), system: system_time() }
    }
}

/// Offset of another clock from this one, with its uncertainty: the other shows `offset` more, give or take
/// `uncertainty`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The other clock less this one, ns.
    pub offset: i64,
    /// Half of the time between question and answer, ns: the answer was given somewhere within.
    pub uncertainty: Nanos,
}

impl ClockOffset {
    /// Offset of which nothing is known.
    pub const UNKNOWN: ClockOffset = ClockOffset { offset: 0, uncertainty: Nanos::MAX };

    /// Learns from one question: it was sent at `sent` by this clock, answered at `shown` by the other, and the
    /// answer was here at `received`. Keeps what was known before if that is more certain.
    pub fn learn(&mut self, sent: Nanos, shown: Nanos, received: Nanos) {
        let uncertainty = received.saturating_sub(sent).div_ceil(2);
        if uncertainty < self.uncertainty {
            let middle = sent + received.saturating_sub(sent) / 2;
            *self = ClockOffset { offset: shown.wrapping_sub(middle) as i64, uncertainty };
        }
    }

    /// Converts a time of this clock to the other clock.
    pub fn there(self, at: Nanos) -> Nanos {
        at.saturating_add_signed(self.offset)
    }

    /// Returns the largest distance of the true offset from `offset`, ns, between now and when `later` was learnt.
    /// Clocks drift.
    fn until(self, later: ClockOffset) -> Nanos {
        let drift = later.offset.abs_diff(self.offset);
        self.uncertainty.max(drift.saturating_add(later.uncertainty))
    }
}

/// Offsets of both clocks of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// Offset of the clock that times its measurements.
    pub own: ClockOffset,
    /// Offset of its system's clock.
    pub system: ClockOffset,
}

impl Default for Offsets {
    fn default() -> Offsets {
        Offsets::UNKNOWN
    }
}

impl Offsets {
    /// Offsets of which nothing is known.
    pub const UNKNOWN: Offsets =
        Offsets { own: ClockOffset::UNKNOWN, system: ClockOffset::UNKNOWN };

    /// Learns from one question about both clocks: see [`ClockOffset::learn`].
    pub fn learn(&mut self, sent: ClocksShown, shown: ClocksShown, received: ClocksShown) {
        self.own.learn(sent.own, shown.own, received.own);
        self.system.learn(sent.system, shown.system, received.system);
    }

    /// Returns the largest distance, ns, of either clock from the offset known here, until `later` was known. If
    /// nothing is known later, that of this one moment.
    pub fn until(self, later: Offsets) -> Nanos {
        let later = if later == Offsets::UNKNOWN { self } else { later };
        self.own.until(later.own).max(self.system.until(later.system))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stated interval holds the true offset, whether the question or the answer was slow.
    #[test]
    fn the_interval_holds_the_true_offset() {
        for true_offset in [-7_000_000_i64, 0, 123_456_789] {
            let mut clock = ClockOffset::UNKNOWN;
            let ways =
                [(90_000, 90_000), (20_000_000, 50_000), (60_000, 20_000_000), (400, 70_000)];
            for (number, (there, back)) in (0_u64..).zip(ways) {
                let sent = 1_000_000_000 + number * 50_000_000;
                let shown = (sent + there).saturating_add_signed(true_offset);
                clock.learn(sent, shown, sent + there + back);
                let error = (clock.offset - true_offset).unsigned_abs();
                assert!(error <= clock.uncertainty, "{clock:?}, truly {true_offset}");
            }
            assert!(clock.uncertainty <= 35_200, "the quickest exchange is kept: {clock:?}");
            assert_eq!(
                clock.there(2_000_000_000),
                2_000_000_000_u64.wrapping_add_signed(clock.offset)
            );
        }
    }

    /// A clock that gains 3 ms in a phase was not known to 10 µs in it.
    #[test]
    fn what_a_clock_drifts_in_a_phase_is_in_its_interval() {
        let known = |offset, uncertainty| ClockOffset { offset, uncertainty };
        let still = known(500, 20_000);
        let before = Offsets { own: known(-7_000, 10_000), system: still };
        let after = Offsets { own: known(2_993_000, 40_000), system: still };
        assert_eq!(before.until(after), 3_040_000);
        assert_eq!(after.until(before), 3_010_000);
        assert_eq!(before.until(Offsets::UNKNOWN), 20_000, "one that was lost is as it was");
    }
}
