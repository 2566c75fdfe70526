//! The one clock of kvdyno's writes to Cassandra, in microseconds since 1970.
//!
//! Cassandra keeps, of two values of a cell, the one with the greater timestamp. Were the timestamps
//! taken by the servers, a write could lose against an older one that another server had
//! stamped, and two writes within a microsecond could tie. Here every write of this process draws a
//! timestamp of its own before it is sent: a write that begins after another has ended has the
//! greater one, whatever the system's clock does meanwhile.
//!
//! So that the next process does not begin below the last one (the system's clock was set back, or
//! another machine's runs behind), the greatest timestamp is marked in the table once a second:
//! [`MARK_KEY`].

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Key of the row whose write time is the mark. No key of a workload is this short.
pub(super) const MARK_KEY: &[u8] = b"kvdyno";

/// Microseconds between two marks.
pub(super) const MARK_INTERVAL: i64 = 1_000_000;

/// A process that ends without a word may have drawn timestamps this long after its last mark, in
/// microseconds: the interval, and time for a mark that is slow to be written.
const UNMARKED: i64 = 5_000_000;

/// Timestamps of this process.
pub(super) static CLOCK: Clock = Clock(AtomicI64::new(0));

/// Gives each timestamp once, in ascending order.
pub(super) struct Clock(AtomicI64);

impl Clock {
    /// The next timestamp: the system's time, or one more than the last if that is not less.
    #[inline]
    pub fn next(&self) -> i64 {
        self.next_at(system_time())
    }

    fn next_at(&self, now: i64) -> i64 {
        let mut last = self.0.load(Ordering::Relaxed);
        loop {
            let next = now.max(last + 1);
            match self.0.compare_exchange_weak(last, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return next,
                Err(other) => last = other,
            }
        }
    }

    /// The last timestamp given.
    pub fn last(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }

    /// Some process has marked `mark`: goes on from beyond all that it may have given.
    pub fn resume(&self, mark: i64) {
        self.resume_at(mark, system_time());
    }

    fn resume_at(&self, mark: i64, now: i64) {
        let beyond = mark.saturating_add(UNMARKED);
        // A mark of this very process tells nothing new.
        if mark > self.last() && beyond > now {
            self.0.fetch_max(beyond, Ordering::AcqRel);
        }
    }
}

fn system_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        Clock(AtomicI64::new(0))
    }

    #[test]
    fn it_follows_the_system_and_never_goes_back() {
        let clock = clock();
        assert_eq!(clock.next_at(1000), 1000);
        assert_eq!(clock.next_at(1000), 1001);
        assert_eq!(clock.next_at(500), 1002, "the system's clock was set back");
        assert_eq!(clock.next_at(2000), 2000);
        assert_eq!(clock.last(), 2000);
    }

    #[test]
    fn threads_never_draw_the_same_timestamp() {
        let clock = clock();
        let drawn: Vec<Vec<i64>> = std::thread::scope(|scope| {
            let draw = || (0..10_000).map(|_| clock.next()).collect();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(drawn.iter().all(|one| one.is_sorted_by(|a, b| a < b)));
        let mut all: Vec<i64> = drawn.into_iter().flatten().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 40_000);
    }

    #[test]
    fn it_goes_on_after_what_another_process_marked() {
        let behind = clock();
        behind.resume_at(10_000_000, 9_000_000);
        assert_eq!(behind.next_at(9_000_000), 15_000_001, "this machine's clock is behind");
        let later = clock();
        later.resume_at(10_000_000, 20_000_000);
        assert_eq!(later.next_at(20_000_000), 20_000_000, "the mark is long past");
        let own = clock();
        own.next_at(10_000_000);
        own.resume_at(10_000_000, 10_000_000);
        assert_eq!(own.next_at(10_000_000), 10_000_001, "the mark is its own");
    }
}
