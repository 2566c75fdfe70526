//! Who changes the ledger's words. While only one does, it needs no locked instruction: such a one waits
//! until all stores before it have left the processor.
//!
//! What is given away: a thread that was alone, is stopped between comparing and storing, is given up there (which takes
//! seconds), and goes on while a later phase changes the same word, stores over that change.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::word::Word;
use super::{Ledger, load, replace};

/// A ledger, and the announcement that its owner may change words. Whoever does so while others might, has one
/// before any of them begins; who has none never counts as alone.
pub(in crate::verify) struct Hand(Arc<Ledger>);

impl Hand {
    pub(in crate::verify) fn new(ledger: Arc<Ledger>) -> Hand {
        ledger.hands.fetch_add(1, Ordering::SeqCst);
        Hand(ledger)
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.0.hands.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Deref for Hand {
    type Target = Ledger;

    #[inline]
    fn deref(&self) -> &Ledger {
        &self.0
    }
}

impl Ledger {
    /// As [`replace`], for the common ways of a word. Asked anew for each: a thread that was left behind in a
    /// store keeps its hand, so that nobody who comes later is alone, nor is it when it comes back.
    #[inline]
    pub(super) fn change(&self, cell: &AtomicU64, old: Word, new: Word) -> bool {
        if self.hands.load(Ordering::Acquire) != 1 {
            return replace(cell, old, new);
        }
        let unchanged = load(cell) == old;
        if unchanged {
            cell.store(new.0, Ordering::Release);
        }
        unchanged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::judgement::{Judgement, Read, WriteEnd, WriteKind};
    use crate::verify::ledger::word::Base;
    use crate::verify::stamp::Session;
    use crate::verify::{Initial, LedgerConfig};
    use crate::workload::Random;
    use std::time::Duration;

    fn ledger(initial: Initial) -> Arc<Ledger> {
        let config = LedgerConfig {
            slots: 4,
            linearizable: true,
            staleness: Duration::ZERO,
            may_forget: false,
            overlap_capacity: 100,
            initial,
            expiry: None,
            may_apply_again: false,
        };
        Arc::new(Ledger::new(config).unwrap())
    }

    #[test]
    fn alone_or_not_all_words_and_judgements_are_the_same() {
        let ledgers = [Initial::Never; 3].map(ledger);
        let _alone = Hand::new(Arc::clone(&ledgers[0]));
        let _two = [1, 1].map(|of| Hand::new(Arc::clone(&ledgers[of])));
        let mut random = Random::new(1, 1);
        let mut writes: [Vec<_>; 3] = Default::default();
        let mut reads: [Vec<_>; 3] = Default::default();
        for now in 1..20_000_u64 {
            let (act, slot) = (random.below(8), random.below(4));
            let pick = random.next_u64() as usize;
            let version = 1 + random.below(40) as u32;
            let mut seen = Vec::new();
            for ((ledger, writes), reads) in ledgers.iter().zip(&mut writes).zip(&mut reads) {
                if act <= 2 && writes.len() < 2 {
                    let kind = if act == 0 { WriteKind::Delete } else { WriteKind::Put };
                    writes.push((slot, ledger.begin_write(slot, kind)));
                } else if act <= 4 && !writes.is_empty() {
                    let (slot, ticket) = writes.swap_remove(pick % writes.len());
                    let end = if pick.is_multiple_of(9) {
                        WriteEnd::Failed
                    } else {
                        WriteEnd::Acknowledged
                    };
                    ledger.end_write(slot, ticket, end, now * 1_000_000);
                } else if act <= 6 && reads.len() < 3 {
                    reads.push((slot, ledger.begin_read(slot)));
                } else if !reads.is_empty() {
                    let (slot, ticket) = reads.swap_remove(pick % reads.len());
                    let known = ledger.state(slot).next.saturating_sub(version % 3);
                    let read = Read::Version { version: known, session: Session::Ours };
                    let judged = ledger.end_read(slot, ticket, read, now - 1, now);
                    seen.push(format!("{judged:?}"));
                }
                seen.push(format!("{:?}", [0, 1, 2, 3].map(|slot| load(ledger.slots.word(slot)))));
            }
            assert_eq!(seen[..seen.len() / 3], seen[seen.len() / 3..2 * seen.len() / 3]);
            assert_eq!(seen[..seen.len() / 3], seen[2 * seen.len() / 3..]);
        }
        assert!(ledgers[0].state(0).next > 1_000, "{:?}", ledgers[0].state(0));
    }

    #[test]
    fn alone_or_not_the_first_read_of_existing_data_enters_it_as_found() {
        for others in 0..3 {
            let ledger = ledger(Initial::Unjudged);
            let _hands: Vec<_> = (0..=others).map(|_| Hand::new(Arc::clone(&ledger))).collect();
            let judge = || {
                let earlier = Read::Version { version: 7, session: Session::Earlier };
                ledger.end_read(0, ledger.begin_read(0), earlier, 1, 2)
            };
            assert_eq!([judge(), judge()], [Judgement::StampOnly, Judgement::Legal]);
            assert_eq!(load(ledger.slots.word(0)), Word::UNTOUCHED.with_base(Base::Found));
        }
    }

    #[test]
    fn a_word_that_has_changed_is_not_stored_over() {
        let ledger = ledger(Initial::Never);
        let _alone = Hand::new(Arc::clone(&ledger));
        let cell = ledger.slots.word(0);
        let (old, new) = (load(cell), Word::UNTOUCHED.begun(WriteKind::Put));
        assert!(ledger.change(cell, old, new));
        assert!(!ledger.change(cell, old, Word::UNTOUCHED));
        assert_eq!(load(cell), new);
    }
}
