//! Many threads, hot slots and a correct shared register: no read may be called illegal, and
//! without timeouts nothing may be unknown.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::register::{Random, ours};
use kvdyno_core::measure::now;
use kvdyno_core::verify::{
    Initial, Judgement, Ledger, LedgerConfig, Presence, Read, WriteEnd, WriteKind, WriteTicket,
};

const THREADS: u64 = 8;
const SLOTS: u64 = 4096;

/// Store with a version in each slot, 0 for none; every operation takes effect at one instant.
struct Store {
    values: Vec<AtomicU64>,
    /// Writes whose answer never came and that may yet be applied: (slot, what to store).
    late: Mutex<Vec<(u64, u64)>>,
}

#[derive(Default, Debug)]
struct SeenStamp {
    legal: u64,
    misses: u64,
    unknown: u64,
    writes: u64,
}

#[derive(Clone, Copy)]
struct Load {
    operations: u64,
    /// Indeterminate ones in a thousand writes.
    indeterminate: u64,
    linearizable: bool,
    overlap_capacity: usize,
    may_apply_again: bool,
}

const LOAD: Load = Load {
    operations: 200_000,
    indeterminate: 0,
    linearizable: false,
    overlap_capacity: SLOTS as usize,
    may_apply_again: false,
};

/// Draws a slot by a roughly zipfian law: half of the operations go to the first few slots.
fn hot_slot(random: &mut Random) -> u64 {
    let bits = random.below(13);
    random.below(1 << bits)
}

struct Worker<'a> {
    ledger: &'a Ledger,
    store: &'a Store,
    random: Random,
    load: Load,
    seen: SeenStamp,
}

impl Worker<'_> {
    fn run(mut self) -> SeenStamp {
        for _ in 0..self.load.operations {
            let slot = hot_slot(&mut self.random);
            match self.random.below(20) {
                0..=6 => self.write(slot, WriteKind::Put),
                7 => self.write(slot, WriteKind::Delete),
                8 => {
                    let ticket = self.ledger.begin_read(slot);
                    self.ledger.abandon_read(slot, ticket);
                }
                9 => self.scan(slot),
                _ => self.read(slot),
            }
        }
        self.seen
    }

    fn write(&mut self, slot: u64, kind: WriteKind) {
        let ticket = self.ledger.begin_write(slot, kind);
        let stored = match kind {
            WriteKind::Put => u64::from(ticket.version),
            WriteKind::Delete => 0,
        };
        self.pause();
        let value = &self.store.values[slot as usize];
        let chosen = self.random.below(1000);
        let end = if chosen < self.load.indeterminate {
            match self.random.below(3) {
                0 => value.store(stored, Ordering::SeqCst),
                1 => self.store.late.lock().unwrap().push((slot, stored)),
                _ => {}
            }
            WriteEnd::Indeterminate
        } else if chosen > 980 {
            WriteEnd::Failed
        } else {
            value.store(stored, Ordering::SeqCst);
            if self.load.may_apply_again && chosen < 30 {
                self.store.late.lock().unwrap().push((slot, stored));
            }
            WriteEnd::Acknowledged
        };
        self.pause();
        self.end(slot, ticket, end);
        if self.random.chance(5) {
            let late = self.store.late.lock().unwrap().pop();
            if let Some((slot, stored)) = late {
                self.store.values[slot as usize].store(stored, Ordering::SeqCst);
            }
        }
    }

    fn end(&mut self, slot: u64, ticket: WriteTicket, end: WriteEnd) {
        self.seen.writes += 1;
        self.ledger.end_write(slot, ticket, end, now());
    }

    fn fetch(&self, slot: u64) -> Read {
        match self.store.values[slot as usize].load(Ordering::SeqCst) {
            0 => Read::Absent,
            version => ours(version as u32),
        }
    }

    fn read(&mut self, slot: u64) {
        let sent = now();
        let ticket = self.ledger.begin_read(slot);
        self.pause();
        let found = self.fetch(slot);
        self.pause();
        let judgement = self.ledger.end_read(slot, ticket, found, sent, now());
        self.count(slot, found, judgement);
    }

    fn scan(&mut self, slot: u64) {
        let sent = now();
        let found = self.fetch(slot);
        self.pause();
        let judgement = self.ledger.judge_late(slot, found, sent);
        self.count(slot, found, judgement);
    }

    fn count(&mut self, slot: u64, found: Read, judgement: Judgement) {
        match judgement {
            Judgement::Illegal { .. } => panic!("slot {slot}, {found:?}: {judgement:?}"),
            Judgement::Unknown => self.seen.unknown += 1,
            Judgement::Early | Judgement::LegalMiss => self.seen.misses += 1,
            _ => self.seen.legal += 1,
        }
    }

    /// Lets another thread run in between now and then, so that intervals overlap.
    fn pause(&mut self) {
        if self.random.chance(1) {
            std::thread::yield_now();
        }
    }
}

fn run(load: Load) -> (Ledger, Store, SeenStamp) {
    let ledger = Ledger::new(LedgerConfig {
        slots: SLOTS,
        linearizable: load.linearizable,
        staleness: std::time::Duration::ZERO,
        may_forget: false,
        overlap_capacity: load.overlap_capacity,
        initial: Initial::Never,
        expiry: None,
        may_apply_again: load.may_apply_again,
        taken_over: None,
    })
    .unwrap();
    let values = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
    let store = Store { values, late: Mutex::default() };
    let mut all = SeenStamp::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let random = Random(thread + 1);
                let (ledger, store, seen) = (&ledger, &store, SeenStamp::default());
                scope.spawn(move || Worker { ledger, store, random, load, seen }.run())
            })
            .collect();
        for worker in workers {
            let seen = worker.join().expect("a worker has seen an illegal read");
            all.legal += seen.legal;
            all.misses += seen.misses;
            all.unknown += seen.unknown;
            all.writes += seen.writes;
        }
    });
    let answered = all.legal + all.misses + all.unknown;
    assert!(answered > load.operations * THREADS / 4, "{all:?}");
    (ledger, store, all)
}

/// Asserts that every slot holds at the end what the ledger says that it must.
fn check_end(ledger: &Ledger, store: &Store) {
    for slot in 0..SLOTS {
        let state = ledger.state(slot);
        let there = store.values[slot as usize].load(Ordering::SeqCst);
        match state.presence {
            Presence::MustBePresent => assert!(there > 0, "slot {slot}: {state:?}"),
            Presence::MustBeAbsent | Presence::NeverWritten => {
                assert_eq!(there, 0, "slot {slot}: {state:?}");
            }
            Presence::MayBeEither | Presence::Unknown => {}
        }
        assert!(there == 0 || there >= u64::from(state.floor), "slot {slot}: {state:?}");
        assert!(there < u64::from(state.next), "slot {slot}: {state:?}");
    }
}

#[test]
fn a_correct_store_without_timeouts_is_judged_in_full() {
    for linearizable in [false, true] {
        let load = Load { operations: 400_000, linearizable, ..LOAD };
        let (ledger, store, seen) = run(load);
        assert_eq!((seen.unknown, ledger.lost()), (0, 0));
        check_end(&ledger, &store);
        let undecided =
            (0..SLOTS).filter(|slot| ledger.state(*slot).presence == Presence::Unknown).count();
        assert_eq!(undecided, 0);
    }
}

#[test]
fn a_correct_store_with_timeouts_is_never_accused() {
    for linearizable in [false, true] {
        let load = Load { indeterminate: 3, linearizable, ..LOAD };
        let (ledger, store, seen) = run(load);
        assert_eq!((seen.unknown, ledger.lost()), (0, 0));
        check_end(&ledger, &store);
    }
}

#[test]
fn a_full_table_makes_slots_unknown_and_accuses_nobody() {
    let load = Load { indeterminate: 3, overlap_capacity: 20, ..LOAD };
    let (ledger, store, seen) = run(load);
    assert!(seen.unknown > 0 && ledger.lost() > 0 && ledger.overlapping() <= 20);
    check_end(&ledger, &store);
}

#[test]
fn a_driver_that_applies_again_is_never_accused() {
    let load = Load { indeterminate: 3, may_apply_again: true, linearizable: true, ..LOAD };
    let (ledger, store, seen) = run(load);
    assert_eq!((seen.unknown, ledger.lost(), ledger.overlapping()), (0, 0, 0));
    check_end(&ledger, &store);
}
