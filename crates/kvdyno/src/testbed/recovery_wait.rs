//! The wait for copies to come back after a repair: a node that serves again may lack what was written while it was
//! away. The nemesis looks at the copies until they are whole, which gives the time to full redundancy; the next
//! fault waits for that, up to a limit.

use std::ops::Range;
use std::time::{Duration, Instant};

use kvdyno_core::measure::{Nanos, now};
use kvdyno_report::result::Redundancy;
use kvdyno_testbed::TestbedError;

/// Pause between two looks: a look costs the servers something.
const LOOK: Duration = Duration::from_millis(500);
/// Longest time that a fault waits for copies to be whole.
const LIMIT: Duration = Duration::from_secs(60);

/// Answer of the servers: every copy is there, something is missing, or they cannot tell (`None`).
type CopiesAnswer = Result<Option<Result<(), String>>, TestbedError>;

/// Repairs whose copies are not whole yet.
#[derive(Debug, Default)]
pub struct RecoveryWait {
    /// Each repair by its number, with its begin, ns.
    repairs: Vec<(usize, Nanos)>,
    /// Moment when the last of them was done.
    since: Option<Instant>,
    next: Option<Instant>,
    missing: String,
    overdue: bool,
}

/// State of the copies.
#[derive(Debug, PartialEq, Eq)]
pub enum State {
    /// The copies are whole, as far as is known.
    Whole,
    /// Something may be missing; the nemesis looks again.
    Recovering,
    /// Something was still missing when the limit was over; the text says what.
    Overdue(String),
}

impl RecoveryWait {
    /// Begins to wait for the copies of these repairs, which were done just now and begun at `began`.
    pub fn begin(&mut self, repairs: Range<usize>, began: Nanos) {
        self.repairs.extend(repairs.map(|number| (number, began)));
        let moment = Instant::now();
        (self.since, self.next, self.overdue) = (Some(moment), Some(moment), false);
    }

    /// Returns the time to the next look; `None` if there is nothing to look at.
    pub fn next_look(&self) -> Option<Duration> {
        self.next.map(|next| next.saturating_duration_since(Instant::now()))
    }

    /// Returns the state of the copies.
    pub fn state(&self) -> State {
        match (self.since, self.overdue) {
            (None, _) => State::Whole,
            (Some(_), true) => State::Overdue(self.missing.clone()),
            (Some(_), false) => State::Recovering,
        }
    }

    /// Describes what is missing although the limit is over; `None` if nothing is.
    pub fn overdue(&self) -> Option<String> {
        match self.state() {
            State::Overdue(missing) => Some(missing),
            _ => None,
        }
    }

    /// Describes for people what is waited for, and for how long at most; `None` if nothing is.
    pub fn waits(&self) -> Option<String> {
        let (since, _) = self.since.zip(self.next)?;
        let (waited, limit) = (since.elapsed().as_secs(), LIMIT.as_secs());
        Some(format!("copies are not whole: {}, {waited} of {limit} s", self.missing))
    }

    /// Takes in what the servers said at a look. Returns the repairs that it decides, each with the time that its
    /// copies took to be whole; `None` while nothing is decided.
    pub fn on_copies(&mut self, answer: CopiesAnswer) -> Option<(Vec<usize>, Vec<Redundancy>)> {
        let limit_is_over = self.since.is_some_and(|since| since.elapsed() > LIMIT);
        match answer {
            // If the keeper is gone, its next order fails and says so.
            Ok(None) | Err(_) => {
                *self = RecoveryWait::default();
                None
            }
            Ok(Some(Ok(()))) => {
                // An overdue repair was reported already.
                let decided = (!self.overdue).then(|| self.decided(true));
                *self = RecoveryWait::default();
                decided
            }
            Ok(Some(Err(missing))) => {
                self.missing = missing;
                self.next = Some(Instant::now() + LOOK);
                if !limit_is_over {
                    return None;
                }
                (self.overdue, self.next) = (true, None);
                let decided = self.decided(false);
                self.repairs.clear();
                Some(decided)
            }
        }
    }

    fn decided(&self, whole: bool) -> (Vec<usize>, Vec<Redundancy>) {
        let moment = now();
        let of = |&(number, began): &(usize, Nanos)| {
            let watched_ns = moment.saturating_sub(began);
            let missing = if whole { String::new() } else { self.missing.clone() };
            (number, Redundancy { after_ns: whole.then_some(watched_ns), watched_ns, missing })
        };
        self.repairs.iter().map(of).unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing() -> CopiesAnswer {
        Ok(Some(Err("n-2 is behind".to_owned())))
    }

    #[test]
    fn a_repair_counts_until_copies_are_whole() {
        let mut recovery = RecoveryWait::default();
        assert_eq!((recovery.state(), recovery.next_look()), (State::Whole, None));
        recovery.begin(3..5, now());
        assert_eq!(recovery.state(), State::Recovering);
        assert_eq!(recovery.on_copies(missing()), None);
        let wait = recovery.waits();
        assert_eq!(wait.as_deref(), Some("copies are not whole: n-2 is behind, 0 of 60 s"));
        assert!(recovery.next_look().is_some_and(|next| next > Duration::ZERO));
        let (repairs, whole) = recovery.on_copies(Ok(Some(Ok(())))).unwrap();
        assert_eq!(repairs, [3, 4]);
        assert!(whole.iter().all(|whole| whole.after_ns == Some(whole.watched_ns)));
        assert_eq!((recovery.state(), recovery.next_look()), (State::Whole, None));
        assert_eq!(recovery.waits(), None);
    }

    #[test]
    fn after_the_limit_the_next_fault_is_told_as_a_second_one() {
        let mut recovery = RecoveryWait::default();
        recovery.begin(0..1, now());
        recovery.since = Instant::now().checked_sub(LIMIT + Duration::from_secs(1));
        let (repairs, whole) = recovery.on_copies(missing()).unwrap();
        assert_eq!((repairs, whole[0].after_ns), (vec![0], None));
        assert_eq!(whole[0].missing, "n-2 is behind");
        assert_eq!(recovery.overdue().as_deref(), Some("n-2 is behind"));
        assert_eq!(recovery.next_look(), None, "nobody waits any more");
        assert_eq!(recovery.waits(), None);
        // Asked once more when the fault is due: whole by then, and the figure stays as it was told.
        assert_eq!(recovery.on_copies(Ok(Some(Ok(())))), None);
        assert_eq!(recovery.overdue(), None);
    }

    #[test]
    fn servers_that_cannot_tell_hold_nothing_up() {
        let mut recovery = RecoveryWait::default();
        recovery.begin(0..1, now());
        assert_eq!(recovery.on_copies(Ok(None)), None);
        assert_eq!(recovery.state(), State::Whole);
    }
}
