//! After the repair of each cut of power the inserts since the last one are looked for, by clients outside of every figure:
//! a store that has lost them may not start again at all, and then nobody could read them back at the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kvdyno_core::load::{AnyStore, StoreContext};
use kvdyno_core::measure::{Nanos, now};
use kvdyno_core::verify::{Ledger, Presence};
use kvdyno_report::result::LookedBackResult;

use super::super::recovery_wait::State;
use super::{FaultExecutor, IDLE, Task};

/// Most records that are looked for after a cut: the newest.
pub(super) const MOST: usize = 10_000;
/// Longest time to look for them.
const LONGEST: Duration = Duration::from_secs(2);
/// Shortest time that is worth it.
const SHORTEST: Duration = Duration::from_millis(200);
/// Records without any write behind which no further ones are looked for: inserts that were refused leave such, and the
/// ledger has room for far more than are ever written.
const GAP: u64 = 1_000_000;
/// Records that are kept by number of those that were absent.
const KEPT: usize = 100_000;

/// Means to look for the inserts of a phase.
#[derive(Clone)]
pub struct LookBack {
    /// The store at its strongest level of reads.
    pub store: Arc<dyn AnyStore>,
    /// Settings that all reads have in common.
    pub context: StoreContext,
    /// Ledger of the records, of which this process owns all.
    pub ledger: Arc<Ledger>,
    /// The first record that the phase inserts; it writes to no others.
    pub first: u64,
}

/// The inserts between two cuts of power.
pub(super) struct InsertStretch {
    look: LookBack,
    /// The first record that no cut has met.
    next: u64,
    /// Number of the fault that met those below.
    cut: Option<usize>,
    /// Newest records that the cut met, all of them acknowledged.
    met: Vec<u64>,
    /// All that it met.
    acknowledged: u64,
    /// Records that were absent.
    absent: Vec<u64>,
}

impl FaultExecutor {
    /// Looks for what the last cut of power met, once every node and copy is back.
    pub(super) fn look_back(&mut self) {
        let is_back = self.recovery.state() == State::Whole
            && !self.agenda.iter().any(|(_, task)| matches!(task, Task::Repair(_)));
        let until_next = self
            .next()
            .map_or(IDLE, |next| self.agenda[next].0.saturating_duration_since(Instant::now()));
        let Some(stretch) = self.stretch.as_mut().filter(|stretch| is_back && stretch.is_due())
        else {
            return;
        };
        if let Some((cut, found)) = stretch.look(until_next)
            && let Some(cut) = self.done.get_mut(cut).and_then(|done| done.cut.as_mut())
        {
            cut.looked_back = Some(found);
        }
    }
}

impl InsertStretch {
    pub(super) fn new(look: LookBack) -> InsertStretch {
        let (next, cut, met) = (look.first, None, Vec::new());
        InsertStretch { look, next, cut, met, acknowledged: 0, absent: Vec::new() }
    }

    /// Power is about to be cut. Inserts that another cut met and nobody looked for stay to be looked for.
    pub(super) fn meet(&mut self) {
        let met = met_since(&self.look.ledger, self.next);
        self.next = met.last().map_or(self.next, |last| last + 1);
        self.acknowledged += met.len() as u64;
        self.met.extend(met);
        self.met.drain(..self.met.len().saturating_sub(MOST));
    }

    /// The fault of this number was the cut, which was done.
    pub(super) fn was_cut(&mut self, fault: usize) {
        self.cut = Some(fault);
    }

    /// Returns true if inserts are to be looked for as soon as all nodes and copies are back.
    pub(super) fn is_due(&self) -> bool {
        self.cut.is_some() && !self.met.is_empty()
    }

    /// Looks for the inserts that the last cut met, for at most half of the time until the next fault. Returns what was found
    /// and the number of the cut.
    pub(super) fn look(&mut self, until_next: Duration) -> Option<(usize, LookedBackResult)> {
        let cut = self.cut.take()?;
        let met = std::mem::take(&mut self.met);
        let acknowledged = std::mem::take(&mut self.acknowledged);
        let time = (until_next / 2).clamp(SHORTEST, LONGEST);
        let deadline: Nanos = now() + time.as_nanos() as Nanos;
        let LookBack { store, context, ledger, .. } = &self.look;
        // A store that does not answer yet has not lost them: the end of the run looks again.
        let found = store.look_back(context, &met, deadline).unwrap_or_default();
        let is_expected = |record: &u64| ledger.state(*record).presence == Presence::MustBePresent;
        let absent: Vec<u64> = found.absent.into_iter().filter(is_expected).collect();
        let looked_back = LookedBackResult {
            acknowledged,
            answered: found.answered,
            absent: absent.len() as u64,
        };
        let room = KEPT.saturating_sub(self.absent.len());
        self.absent.extend(absent.into_iter().take(room));
        Some((cut, looked_back))
    }

    /// Records that were absent after a repair, each once, in order.
    pub(super) fn absent(self) -> Vec<u64> {
        let mut absent = self.absent;
        absent.sort_unstable();
        absent.dedup();
        absent
    }
}

/// Records from `first` on that are there for certain.
fn met_since(ledger: &Ledger, first: u64) -> Vec<u64> {
    let (mut met, mut since) = (Vec::new(), 0);
    for record in first..ledger.slots() {
        match ledger.state(record).presence {
            Presence::NeverWritten if since == GAP => break,
            Presence::NeverWritten => since += 1,
            presence => {
                since = 0;
                met.extend((presence == Presence::MustBePresent).then_some(record));
            }
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use kvdyno_core::verify::{Initial, LedgerConfig, WriteEnd, WriteKind};

    use super::*;

    #[test]
    fn inserts_behind_refused_ones_are_met_and_room_that_nobody_uses_is_not_walked_through() {
        let ledger = Ledger::new(LedgerConfig {
            slots: 50_000_000,
            linearizable: true,
            staleness: Duration::ZERO,
            may_forget: false,
            overlap_capacity: 64,
            initial: Initial::Never,
            expiry: None,
            may_apply_again: false,
            taken_over: None,
        })
        .unwrap();
        let put = |record: u64| {
            let ticket = ledger.begin_write(record, WriteKind::Put);
            ledger.end_write(record, ticket, WriteEnd::Acknowledged, now());
        };
        for record in [1, 3, 4, 50_000, 50_000 + GAP, 50_002 + 2 * GAP] {
            put(record);
        }
        assert_eq!(met_since(&ledger, 2), [3, 4, 50_000, 50_000 + GAP]);
        assert_eq!(met_since(&ledger, 50_001 + GAP), Vec::<u64>::new());
    }
}
