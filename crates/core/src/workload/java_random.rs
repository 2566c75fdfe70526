//! The sizes of published runs: the n-th value of `new java.util.Random(seed).nextInt(bound) + min`
//! as a function of n.
//!
//! `java.util.Random` is a linear congruence modulo 2^48 whose constants the documentation of the Java platform
//! gives, so that one can leap ahead in it. `nextInt(bound)` throws a draw away where it would favour small values (4
//! in 10 million for bound 1,800), which moves all later values by one. Hence the checkpoints: the state before every
//! 4,096th value, and whether a draw was thrown away before the next.

use std::sync::{PoisonError, RwLock};

const MULTIPLIER: u64 = 0x5_deec_e66d;
const INCREMENT: u64 = 0xb;
const MASK: u64 = (1 << 48) - 1;
/// `next(31)` takes the upper 31 of the 48 bits.
const DROPPED_BITS: u32 = 48 - 31;

/// Values between two checkpoints.
const SEGMENT: u64 = 4096;
/// Checkpoints added at once when a value beyond the last is asked for: 65,536 values, some 50 µs.
const EXTENSION: usize = 16;
/// Values before the sequence starts over, so that no id can make the checkpoints grow past
/// 128 MiB.
const PERIOD: u64 = 1 << 36;
/// Most values whose checkpoints are laid when a workload is built: a tenth of a second.
const LAID_AT_FIRST: u64 = 1 << 27;
/// Bit that is set in a checkpoint if no draw of its segment is thrown away.
const EVEN: u64 = 1 << 63;

/// Some steps of the congruence as one: x → factor × x + offset, modulo 2^48.
#[derive(Clone, Copy, Debug)]
struct Leap {
    factor: u64,
    offset: u64,
}

impl Leap {
    const ONE: Leap = Leap { factor: MULTIPLIER, offset: INCREMENT };

    #[inline]
    const fn after(self, first: Leap) -> Leap {
        Leap {
            factor: self.factor.wrapping_mul(first.factor) & MASK,
            offset: self.factor.wrapping_mul(first.offset).wrapping_add(self.offset) & MASK,
        }
    }

    #[inline]
    const fn from(self, state: u64) -> u64 {
        self.factor.wrapping_mul(state).wrapping_add(self.offset) & MASK
    }
}

/// Leaps of 0, 1, 2 … times `step`.
const fn leaps<const N: usize>(step: Leap) -> [Leap; N] {
    let mut leaps = [Leap { factor: 1, offset: 0 }; N];
    let mut n = 1;
    while n < N {
        leaps[n] = step.after(leaps[n - 1]);
        n += 1;
    }
    leaps
}

const FINE_STEPS: usize = 64;
static FINE: [Leap; FINE_STEPS + 1] = leaps(Leap::ONE);
static COARSE: [Leap; SEGMENT as usize / FINE_STEPS + 1] =
    leaps(leaps::<{ FINE_STEPS + 1 }>(Leap::ONE)[FINE_STEPS]);

/// Returns the state after `steps` steps, at most [`SEGMENT`].
#[inline]
fn leap(state: u64, steps: u64) -> u64 {
    let steps = steps as usize;
    COARSE[steps / FINE_STEPS].from(FINE[steps % FINE_STEPS].from(state))
}

/// The values of `nextInt(bound) + min`, shared by all drawers.
#[derive(Debug)]
pub struct JavaSequence {
    min: u32,
    bound: u32,
    /// States from here on are thrown away.
    limit: u64,
    checkpoints: RwLock<Checkpoints>,
}

#[derive(Debug)]
struct Checkpoints {
    /// State before the first draw of each segment, with [`EVEN`].
    laid: Vec<u64>,
    /// State before the first draw of the next segment.
    next: u64,
}

/// Position of a drawer in a [`JavaSequence`]; it saves time and changes no value.
#[derive(Clone, Debug)]
pub struct JavaCursor {
    segment: u64,
    even: bool,
    /// State before the segment's first draw.
    start: u64,
    /// In a segment that is not even: values passed, and the state after the last of them.
    passed: u64,
    state: u64,
}

impl Default for JavaCursor {
    #[inline]
    fn default() -> Self {
        JavaCursor { segment: u64::MAX, even: false, start: 0, passed: 0, state: 0 }
    }
}

impl JavaSequence {
    /// Makes the sequence of `seed`; `bound` is from 1 to 2^31 - 1. Lays checkpoints for the first `expected` values
    /// (at most 134 million); later ones are laid as they are needed, at 50 µs for 65,536 values.
    #[must_use]
    #[inline]
    pub fn new(seed: i64, min: u32, bound: u32, expected: u64) -> Self {
        let range = 1u64 << 31;
        let sequence = JavaSequence {
            min,
            bound,
            limit: (range - range % u64::from(bound)) << DROPPED_BITS,
            checkpoints: RwLock::new(Checkpoints {
                laid: Vec::new(),
                next: (seed as u64 ^ MULTIPLIER) & MASK,
            }),
        };
        let segments = expected.min(LAID_AT_FIRST).div_ceil(SEGMENT);
        sequence.lay(segments as usize);
        sequence
    }

    /// Returns the n-th value, from 0. After 2^36 values the sequence starts over.
    #[inline]
    pub fn value(&self, n: u64, cursor: &mut JavaCursor) -> u32 {
        let segment = (n % PERIOD) / SEGMENT;
        if segment != cursor.segment {
            self.enter(segment, cursor);
        }
        let place = n % SEGMENT;
        let state =
            if cursor.even { leap(cursor.start, place + 1) } else { self.walk(place + 1, cursor) };
        self.min + self.scale(state)
    }

    /// Scales a state to the bound as `nextInt` does: a bound that is a power of two takes the upper bits, any other
    /// the remainder.
    #[inline]
    fn scale(&self, state: u64) -> u32 {
        let bits = state >> DROPPED_BITS;
        if self.bound.is_power_of_two() {
            ((u64::from(self.bound) * bits) >> 31) as u32
        } else {
            bits as u32 % self.bound
        }
    }

    #[inline]
    fn walk(&self, values: u64, cursor: &mut JavaCursor) -> u64 {
        if values < cursor.passed {
            cursor.passed = 0;
            cursor.state = cursor.start;
        }
        while cursor.passed < values {
            cursor.state = self.next_kept(cursor.state);
            cursor.passed += 1;
        }
        cursor.state
    }

    #[inline]
    fn next_kept(&self, state: u64) -> u64 {
        let mut state = Leap::ONE.from(state);
        while state >= self.limit {
            state = Leap::ONE.from(state);
        }
        state
    }

    #[cold]
    #[inline]
    fn enter(&self, segment: u64, cursor: &mut JavaCursor) {
        let index = segment as usize;
        let known = self.laid(index);
        let checkpoint = known.unwrap_or_else(|| {
            self.lay(index + EXTENSION);
            self.laid(index).unwrap_or_default()
        });
        let start = checkpoint & MASK;
        let even = checkpoint & EVEN != 0;
        *cursor = JavaCursor { segment, even, start, passed: 0, state: start };
    }

    #[inline]
    fn laid(&self, index: usize) -> Option<u64> {
        let checkpoints = self.checkpoints.read().unwrap_or_else(PoisonError::into_inner);
        checkpoints.laid.get(index).copied()
    }

    #[inline]
    fn lay(&self, segments: usize) {
        let mut checkpoints = self.checkpoints.write().unwrap_or_else(PoisonError::into_inner);
        while checkpoints.laid.len() < segments {
            let start = checkpoints.next;
            let even = self.is_even(start);
            checkpoints.laid.push(if even { start | EVEN } else { start });
            checkpoints.next = if even {
                leap(start, SEGMENT)
            } else {
                (0..SEGMENT).fold(start, |state, _| self.next_kept(state))
            };
        }
    }

    /// Returns true if no draw of the segment that begins at `start` is thrown away. It follows four chains, each
    /// leaping by four, so that the multiplications overlap.
    #[inline]
    fn is_even(&self, start: u64) -> bool {
        let mut chains = [1, 2, 3, 4].map(|steps| leap(start, steps));
        let mut even = true;
        for _ in 0..SEGMENT / 4 {
            for state in &mut chains {
                even &= *state < self.limit;
                *state = FINE[4].from(*state);
            }
        }
        even
    }
}

#[cfg(test)]
mod tests;
