//! Each invariant of the ledger, broken by hand: docs/ARCHITECTURE.md has the sentence to each name.
#![cfg(debug_assertions)]

use super::*;
use crate::verify::ledger::word::MOST_GAP;

fn word(issued: u32) -> Word {
    Word::new(issued, 0, Tick::default(), Base::Present)
}

#[test]
#[should_panic(expected = "word-fits")]
fn a_gap_that_runs_into_the_versions() {
    let _ = Word::new(9, MOST_GAP + 1, Tick::default(), Base::Present);
}

#[test]
#[should_panic(expected = "begins-at-rest")]
fn a_second_write_that_begins_in_a_word() {
    let _ = Word::UNTOUCHED.begun(Put).begun(Put);
}

#[test]
#[should_panic(expected = "counter-rises")]
fn a_version_that_is_given_out_twice() {
    replace(&AtomicU64::new(0), word(5), word(4));
}

#[test]
#[should_panic(expected = "ends-once")]
fn a_write_that_ends_twice_in_a_word() {
    let bench = bench(config());
    let WriteTicket { version, kind } = bench.begin(Put);
    (0..2).for_each(|_| bench.end(WriteTicket { version, kind }, Acknowledged));
}

#[test]
#[should_panic(expected = "ends-once")]
fn a_write_that_ends_twice_in_the_side_table() {
    let bench = bench(config());
    let WriteTicket { version, kind } = bench.begin(Put);
    let _later = bench.begin(Put);
    (0..2).for_each(|_| bench.end(WriteTicket { version, kind }, Acknowledged));
}

#[test]
#[should_panic(expected = "table-in-step")]
fn an_entry_that_is_missing() {
    let bench = bench(config());
    bench.ledger.slots.word(0).store(Word::overlapped(2).0, Ordering::Release);
    let _read = bench.ledger.begin_read(0);
}

#[test]
#[should_panic(expected = "read-keeps-entry")]
fn an_entry_that_is_dropped_while_a_read_needs_it() {
    let bench = bench(config());
    let _writes = [bench.begin(Put), bench.begin(Put)];
    let read = bench.ledger.begin_read(0);
    bench.ledger.table.lock(0).close(0);
    bench.ledger.slots.word(0).store(word(2).0, Ordering::Release);
    bench.answer(read, ours(1));
}
