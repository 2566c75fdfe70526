//! How far an agent's clock is from the conductor's: asked many times, and the quickest answer kept, as NTP does.

use kvdyno_core::measure::Nanos;

/// What is known of another clock. The other shows `offset` more, give or take `uncertainty`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The other clock less this one, ns.
    pub offset: i64,
    /// Half of the time between question and answer, ns: the answer was given somewhere within.
    pub uncertainty: Nanos,
}

impl ClockOffset {
    /// Nothing is known.
    pub const UNKNOWN: ClockOffset = ClockOffset { offset: 0, uncertainty: Nanos::MAX };

    /// A question that was sent at `asked` by this clock was answered at `told` by the other, and the answer
    /// was here at `heard`. What is known better stays.
    pub fn learn(&mut self, asked: Nanos, told: Nanos, heard: Nanos) {
        let uncertainty = heard.saturating_sub(asked).div_ceil(2);
        if uncertainty < self.uncertainty {
            let middle = asked + heard.saturating_sub(asked) / 2;
            *self = ClockOffset { offset: told.wrapping_sub(middle) as i64, uncertainty };
        }
    }

    /// A time of this clock by the other.
    pub fn there(self, at: Nanos) -> Nanos {
        at.saturating_add_signed(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stated interval holds the true offset, whichever way was slow.
    #[test]
    fn the_interval_holds_the_true_offset() {
        for true_offset in [-7_000_000_i64, 0, 123_456_789] {
            let mut clock = ClockOffset::UNKNOWN;
            let ways =
                [(90_000, 90_000), (20_000_000, 50_000), (60_000, 20_000_000), (400, 70_000)];
            for (number, (there, back)) in (0_u64..).zip(ways) {
                let asked = 1_000_000_000 + number * 50_000_000;
                let told = (asked + there).saturating_add_signed(true_offset);
                clock.learn(asked, told, asked + there + back);
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
}
