//! The wait of a client that lost its connection before its next attempt.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(500);

/// Wait before the next attempt: doubles from 10 ms to 500 ms; an answered request sets it back to 10 ms.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { next: FIRST }
    }
}

impl Backoff {
    /// Returns the wait before the next attempt, and doubles the one after it, up to 500 ms.
    pub fn wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(LONGEST);
        wait
    }

    /// Sets the wait back to 10 ms, because a request was answered.
    #[inline]
    pub fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_half_a_second_and_starts_again() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..8).map(|_| backoff.wait().as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 500, 500]);
        backoff.reset();
        assert_eq!(backoff.wait().as_millis(), 10);
    }
}
