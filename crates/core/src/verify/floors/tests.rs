//! Reads of others' records: what is judged, what is left open, and that nothing is called wrong that might be right.

use super::*;
use crate::verify::ledger::{Initial, LedgerConfig};
use crate::verify::{WriteEnd, WriteKind};
use crate::workload::{KeyForm, KeyModel};

const MS: Nanos = 1_000_000;

fn rules() -> FloorRules {
    let key = KeyModel { form: KeyForm::Decimal, length: 16 };
    let dataset = Dataset { id: 1, session: 1, key, fields: 1, capacity: 100 };
    let (owners, existing_data, may_be_gone) = (2, false, false);
    FloorRules { dataset, fields_apart: false, owners, existing_data, may_be_gone }
}

/// The reader is owner 0; the records of these tests are of owner 1.
fn reader() -> Ownership {
    Ownership::new(0, 2)
}

fn foreign() -> u64 {
    (0..).find(|record| !reader().owns(*record)).unwrap()
}

fn ours(version: u32) -> Option<SeenStamp> {
    Some(SeenStamp::of(version, WriterRun::Ours))
}

fn read_of(seen: Option<SeenStamp>, sent: Nanos) -> ForeignRead {
    let operation = OperationId { phase: 0, group: 0, id: 0 };
    ForeignRead { operation, record: foreign(), field: 0, seen, sent, answered: sent + 1 }
}

fn acks_until(acks: &[(u32, Nanos)], until: Nanos) -> Acks {
    let acks = acks.iter().map(|&(floor, at)| Ack(foreign(), floor, at)).collect();
    Acks { acks, until, incomplete_until: 0 }
}

/// Judges a read of `seen` sent at `sent`, and returns the number of judged, left open and stale reads. The record has
/// floor 3 from the begin, and 5 since an acknowledgement at 100 ms, which was heard at 150 ms. All up to 500 ms is
/// told; clocks differ by 1 ms at most.
fn judged(seen: Option<SeenStamp>, sent: Nanos, rules: FloorRules) -> [u64; 3] {
    let floors = Floors::new(rules);
    floors.on_base(1, FloorRuns(vec![(100, 3)]));
    floors.on_acks(1, acks_until(&[(5, 100 * MS)], 500 * MS), MS, 150 * MS);
    floors.read(read_of(seen, sent));
    floors.judge(&reader(), 1_000 * MS, true);
    let findings = floors.take();
    let foreign = findings.counts;
    let tally = findings.tally;
    assert_eq!((tally.judged + tally.stamp_only, foreign.reads), (1, 1));
    assert_eq!(tally.judged, foreign.judged);
    assert_eq!(findings.anomalies.len() as u64, tally.illegal());
    [tally.judged - tally.illegal(), tally.stamp_only, tally.of(AnomalyKind::Stale)]
}

const RIGHT: [u64; 3] = [1, 0, 0];
const OPEN: [u64; 3] = [0, 1, 0];
const STALE: [u64; 3] = [0, 0, 1];

#[test]
fn a_read_is_judged_by_what_was_acknowledged_and_accused_by_what_was_heard() {
    let judged = |version, sent| judged(ours(version), sent, rules());
    assert_eq!(judged(3, 50 * MS), RIGHT, "nothing newer was acknowledged");
    assert_eq!(judged(2, 50 * MS), STALE, "older than at the begin");
    assert_eq!(judged(7, 50 * MS), RIGHT, "newer than any that is known");
    // By the clocks it may have been sent just before or after the acknowledgement.
    assert_eq!(judged(3, 100 * MS - MS / 2), OPEN);
    assert_eq!(judged(3, 100 * MS), OPEN);
    assert_eq!(judged(4, 120 * MS), OPEN, "acknowledged before, but not heard before");
    assert_eq!(judged(5, 120 * MS), RIGHT);
    // An order of cause and effect: heard, then sent.
    assert_eq!(judged(4, 150 * MS), OPEN, "not before");
    assert_eq!(judged(4, 150 * MS + 1), STALE);
    assert_eq!(judged(5, 151 * MS), RIGHT);
    // More may have been acknowledged by then than was told.
    assert_eq!(judged(5, 600 * MS), OPEN);
    assert_eq!(judged(4, 600 * MS), STALE);
}

#[test]
fn what_is_absent_or_of_another_run_is_stale_only_where_it_cannot_be_right() {
    let of = |session| Some(SeenStamp::of(9, session));
    let sent = 300 * MS;
    assert_eq!(judged(None, sent, rules()), STALE);
    let gone = FloorRules { may_be_gone: true, ..rules() };
    assert_eq!(judged(None, sent, gone), OPEN, "it may have been deleted or evicted");
    assert_eq!(judged(of(WriterRun::Earlier), sent, rules()), STALE);
    assert_eq!(judged(of(WriterRun::Newer), sent, rules()), OPEN, "another run goes on");
    assert_eq!(judged(of(WriterRun::Unseen), sent, rules()), RIGHT);
    let existing = FloorRules { existing_data: true, ..rules() };
    assert_eq!(judged(of(WriterRun::Unseen), sent, existing), OPEN, "too short to tell");
    // A record of which nothing is known.
    let floors = Floors::new(rules());
    for seen in [None, ours(1), of(WriterRun::Earlier)] {
        floors.read(read_of(seen, sent));
    }
    floors.judge(&reader(), sent, true);
    let findings = floors.take();
    let foreign = findings.counts;
    assert_eq!((findings.tally.stamp_only, foreign.judged), (3, 0));
}

/// A slow read comes when later ones were judged by later floors: these must not accuse it.
#[test]
fn a_read_that_was_in_flight_for_long_is_not_judged_by_floors_of_later() {
    let floors = Floors::new(rules());
    floors.on_base(1, FloorRuns(vec![(100, 3)]));
    floors.on_acks(1, acks_until(&[(5, 100 * MS)], 2_000 * MS), MS, 150 * MS);
    floors.read(read_of(ours(5), 400 * MS));
    floors.judge(&reader(), 1_000 * MS, false);
    floors.read(ForeignRead { answered: 1_100 * MS, ..read_of(ours(3), 50 * MS) });
    floors.judge(&reader(), 5_000 * MS, false);
    floors.judge(&reader(), 9_000 * MS, true);
    let findings = floors.take();
    let foreign = findings.counts;
    assert_eq!(findings.tally.illegal(), 0, "{:?}", findings.anomalies);
    assert_eq!((foreign.reads, foreign.judged), (2, 1));
    // Where reads are known to take that long they are waited for, and judged.
    let floors = Floors::new(rules());
    floors.on_base(1, FloorRuns(vec![(100, 3)]));
    floors.on_acks(1, acks_until(&[(5, 100 * MS)], 9_000 * MS), MS, 150 * MS);
    floors.read(ForeignRead { answered: 1_100 * MS, ..read_of(ours(5), 400 * MS) });
    floors.judge(&reader(), 1_100 * MS, false);
    floors.read(ForeignRead { answered: 1_150 * MS, ..read_of(ours(3), 50 * MS) });
    floors.judge(&reader(), 8_000 * MS, false);
    assert_eq!(floors.take().counts, ForeignReads { reads: 2, judged: 2 });
}

#[test]
fn a_read_waits_until_its_owner_has_told_all_up_to_it() {
    let floors = Floors::new(rules());
    floors.on_base(1, FloorRuns(vec![(100, 3)]));
    floors.read(read_of(ours(3), 200 * MS));
    floors.judge(&reader(), 1_000 * MS, false);
    assert_eq!(floors.take().counts.reads, 0, "it waits");
    floors.on_acks(1, acks_until(&[(4, 190 * MS)], 201 * MS), 2 * MS, 1_001 * MS);
    floors.judge(&reader(), 1_001 * MS, false);
    assert_eq!(floors.take().counts.reads, 0, "clocks may differ by more");
    floors.on_acks(1, acks_until(&[], 250 * MS), 2 * MS, 1_002 * MS);
    floors.judge(&reader(), 1_002 * MS, false);
    assert_eq!(floors.take().counts, ForeignReads { reads: 1, judged: 0 }, "overwritten before it");
}

/// Floors that an owner tells by its slots are found by readers by the record's number.
#[test]
fn owners_tell_floors_that_readers_find() {
    for (fields_apart, words) in [(false, 1_u64), (true, 3)] {
        let mut rules = FloorRules { fields_apart, ..rules() };
        rules.dataset.fields = 3;
        let owner = Ownership::new(1, 2);
        let config = LedgerConfig {
            slots: owner.slots(100) * words,
            linearizable: false,
            staleness: std::time::Duration::ZERO,
            may_forget: false,
            overlap_capacity: 4,
            initial: Initial::Never,
            expiry: None,
            may_apply_again: false,
            taken_over: None,
        };
        let ledger = Ledger::new(config).unwrap();
        let write = |record: u64, field: u64| {
            let slot = owner.slot(record) * words + field;
            let ticket = ledger.begin_write(slot, WriteKind::Put);
            ledger.end_write(slot, ticket, WriteEnd::Acknowledged, MS);
            (slot, ledger.state(slot).floor)
        };
        let own: Vec<u64> = owner.own(100).collect();
        for (n, record) in own.iter().enumerate() {
            (0..words).for_each(|field| {
                (0..=n as u64 % 3).for_each(|_| assert!(write(*record, field).1 > 0));
            });
        }
        let reader_floors = Floors::new(rules);
        reader_floors.on_base(1, FloorRuns::of(&ledger, owner.slots(100) * words));
        let owner_floors = Floors::new(rules);
        let last_field = (words - 1) as u16;
        let (slot, floor) = write(own[4], words - 1);
        owner_floors.acknowledge(&owner, slot, floor, 2 * MS);
        reader_floors.on_acks(1, owner_floors.take_acks(MS, true), 0, 3 * MS);
        let read = |record, field, version| {
            let read = read_of(ours(version), 10 * MS);
            reader_floors.read(ForeignRead { record, field, ..read });
        };
        for (n, record) in own.iter().enumerate().filter(|(n, _)| *n != 4) {
            read(*record, last_field, n as u32 % 3 + 1);
        }
        read(own[4], last_field, floor);
        reader_floors.judge(&reader(), 20 * MS, false);
        let findings = reader_floors.take();
        let foreign = findings.counts;
        assert_eq!((findings.tally.illegal(), foreign.reads), (0, own.len() as u64));
        assert_eq!(foreign.judged, foreign.reads);
        for (record, field, version) in [(own[4], last_field, floor - 1), (own[5], 0, 2)] {
            let later = read_of(ours(version), 30 * MS);
            reader_floors.read(ForeignRead { record, field, ..later });
        }
        reader_floors.judge(&reader(), 40 * MS, true);
        assert_eq!(reader_floors.take().tally.illegal(), 2, "each one version behind");
    }
}

#[test]
fn of_too_many_acknowledgements_reads_of_their_time_are_left_open() {
    let owner = Floors::new(rules());
    let ownership = Ownership::new(1, 2);
    (0..=MOST_ACKS as u64).for_each(|n| owner.acknowledge(&ownership, n % 50, 1, n));
    let first = owner.take_acks(300 * MS, false);
    assert_eq!((first.acks.len(), first.incomplete_until), (MOST_ACKS, 300 * MS));
    let second = owner.take_acks(400 * MS, false);
    assert_eq!((second.acks.len(), second.incomplete_until), (0, 0));
    let reader_floors = Floors::new(rules());
    reader_floors.on_acks(1, first, 0, 310 * MS);
    reader_floors.on_acks(1, Acks { until: Nanos::MAX, ..second }, 0, 410 * MS);
    [200, 500].iter().for_each(|at| reader_floors.read(read_of(ours(1), at * MS)));
    reader_floors.judge(&reader(), 600 * MS, true);
    assert_eq!(reader_floors.take().counts, ForeignReads { reads: 2, judged: 1 });
}

#[test]
fn times_are_told_by_the_clock_of_who_hears_them_and_for_ever_stays() {
    let moved = acks_until(&[(1, 10)], Nanos::MAX).moved(|at| at + 5);
    assert_eq!((moved.acks[0].2, moved.until, moved.incomplete_until), (15, Nanos::MAX, 0));
}
