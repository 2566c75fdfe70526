//! The heartbeat of a run in the store that it loads. By it a run on another machine, of which this system knows
//! nothing, proves that it goes on. A value of such a run is no fault of the store; a value of a run that is over is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime};

use kvdyno_core::load::{AnyStore, Beat, StoreContext};
use kvdyno_report::result::rfc3339;

use super::{HELD, SEEN, locked};

/// First word of a record, which names it and its format.
const HEAD: &str = "kvdyno-heartbeat-1";
/// Time between two beats.
const BEAT: Duration = Duration::from_millis(500);
/// Times that the number of a run's beats must grow until it is proven to go on: copies of a record that fell behind may
/// show some old numbers one after the other.
const PROOF: u32 = 3;
/// Beats of this run without a new one of another run after which that run's are not handed on any more.
const SILENT: u32 = 20;
/// Longest wait for the last beat, which takes the record away.
const LAST: Duration = Duration::from_secs(2);

/// Heartbeat of a run; it ends when this is dropped.
pub struct Heartbeat {
    end: Option<Sender<()>>,
    /// Receiver that wakes when the thread is over.
    ended: Receiver<()>,
}

impl Heartbeat {
    /// Begins to look for other runs at the dataset, and, if `writes`, to tell them of this one.
    pub fn begin(store: Arc<dyn AnyStore>, context: &StoreContext, writes: bool) -> Heartbeat {
        let context = StoreContext { ledger: None, ..context.clone() };
        let (end, to_end) = channel();
        let (done, ended) = channel::<()>();
        let beating = move || {
            let mut others = Others::default();
            let mut number = 0;
            let since = rfc3339(SystemTime::now());
            let mut next = |found: Option<&str>| {
                for session in others.look(found.unwrap_or_default()) {
                    locked(&SEEN).insert(session);
                }
                // The first beat comes at once.
                let pause = if number == 0 { Duration::ZERO } else { BEAT };
                number += 1;
                match to_end.recv_timeout(pause) {
                    Err(RecvTimeoutError::Timeout) if writes => {
                        Beat::Write(others.text(&since, number))
                    }
                    Err(RecvTimeoutError::Timeout) => Beat::Look,
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => Beat::End,
                }
            };
            // Without a runtime there is no heartbeat, and other runs do not learn of this one.
            drop(store.keep_heartbeat(&context, &mut next));
            drop(done);
        };
        // Nor is there one without a thread.
        drop(std::thread::Builder::new().name("heartbeat".to_owned()).spawn(beating));
        Heartbeat { end: Some(end), ended }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        drop(self.end.take());
        // If the store answers no more, the record stays in it.
        self.ended.recv_timeout(LAST).ok();
    }
}

/// Other runs, as the record tells of them.
#[derive(Default)]
struct Others(BTreeMap<u32, OtherRun>);

/// Another run, as its beats tell of it.
struct OtherRun {
    /// Its newest beat.
    beat: u64,
    /// Times that this grew.
    grown: u32,
    /// Looks since it grew.
    silent: u32,
}

impl Others {
    /// Reads the record. Returns the runs that are now proven to go on.
    fn look(&mut self, text: &str) -> Vec<u32> {
        self.0.values_mut().for_each(|run| run.silent += 1);
        let mut proven = Vec::new();
        for (session, beat) in beats(text) {
            let new = OtherRun { beat, grown: 0, silent: 0 };
            let run = self.0.entry(session).or_insert(new);
            if beat > run.beat {
                *run = OtherRun { beat, grown: run.grown + 1, silent: 0 };
            }
            if run.grown >= PROOF {
                proven.push(session);
            }
        }
        proven
    }

    /// Returns the text that this run writes: its own beat, and those of others that are not silent, so that a third
    /// run learns of both.
    fn text(&self, since: &str, number: u64) -> String {
        let held = locked(&HELD);
        let own = held.keys().map(|session| format!(" {session}:{number}"));
        let others = self
            .0
            .iter()
            .filter(|(session, run)| run.silent < SILENT && !held.contains_key(session));
        let others = others.map(|(session, run)| format!(" {session}:{}", run.beat));
        format!("{HEAD} {since}{}", own.chain(others).collect::<String>())
    }
}

/// Returns the sessions in a record's text, each with its newest beat; none for a text of another form.
fn beats(text: &str) -> impl Iterator<Item = (u32, u64)> {
    let words = text.strip_prefix(HEAD).unwrap_or_default().split_whitespace().skip(1);
    words.filter_map(|word| {
        let (session, beat) = word.split_once(':')?;
        Some((session.parse().ok()?, beat.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(beats: &[(u32, u64)]) -> String {
        let beats = beats.iter().map(|(session, beat)| format!(" {session}:{beat}"));
        format!("{HEAD} 2026-11-28T12:00:00Z{}", beats.collect::<String>())
    }

    #[test]
    fn a_run_is_proven_once_its_beats_have_grown_three_times() {
        let mut others = Others::default();
        for (beat, proven) in [(7, 0), (8, 0), (8, 0), (10, 0), (11, 1), (11, 1)] {
            assert_eq!(others.look(&record(&[(5, beat)])).len(), proven, "{beat}");
        }
    }

    #[test]
    fn a_record_that_stands_still_or_falls_back_proves_nothing() {
        let mut others = Others::default();
        // Two copies of the record of a run that is over, which answer in turns.
        for beat in [9, 3, 9, 9, 3, 3, 9, 3, 9, 9] {
            assert!(others.look(&record(&[(5, beat)])).is_empty());
        }
        assert!(others.look("").is_empty());
        assert!(others.look("something else 5:90").is_empty());
    }

    #[test]
    fn a_third_run_hears_of_both_others_until_one_is_silent() {
        let (mut second, mut third) = (Others::default(), Others::default());
        for beat in 1..=4 {
            second.look(&record(&[(5, beat)]));
            let told = second.text("2026-11-28T12:00:00Z", beat);
            let proven = third.look(&told);
            assert_eq!(proven.contains(&5), beat == 4, "{told}");
        }
        for _ in 0..SILENT {
            second.look("");
        }
        assert!(!second.text("2026-11-28T12:00:00Z", 9).contains(" 5:"));
    }
}
