//! Every rule by itself, as one thread sees it.

use std::time::Duration;

mod invariants;
mod staleness;

use super::word::{Base, MOST_VERSIONS, Word};
use super::*;
use crate::verify::anomaly::AnomalyKind;
use crate::verify::judgement::{Expiry, Judgement, Presence, Read, Tick};
use crate::verify::stamp::WriterRun;
use WriteEnd::{Acknowledged, Failed, Indeterminate};
use WriteKind::{Delete, Put};

const MS: Nanos = 1_000_000;

fn config() -> LedgerConfig {
    LedgerConfig {
        slots: 4,
        linearizable: false,
        staleness: Duration::ZERO,
        may_forget: false,
        overlap_capacity: 4,
        initial: Initial::Never,
        expiry: None,
        may_apply_again: false,
        taken_over: None,
    }
}

/// A ledger of which slot 0 is used, at a time that the test sets.
struct Bench {
    ledger: Ledger,
    now: Nanos,
}

fn bench(config: LedgerConfig) -> Bench {
    Bench { ledger: Ledger::new(config).unwrap(), now: 0 }
}

impl Bench {
    fn begin(&self, kind: WriteKind) -> WriteTicket {
        self.ledger.begin_write(0, kind)
    }

    fn end(&self, ticket: WriteTicket, end: WriteEnd) {
        self.ledger.end_write(0, ticket, end, self.now);
    }

    fn write(&self, kind: WriteKind, end: WriteEnd) {
        let ticket = self.begin(kind);
        self.end(ticket, end);
    }

    fn read(&self, read: Read) -> Judgement {
        let ticket = self.ledger.begin_read(0);
        self.answer(ticket, read)
    }

    fn answer(&self, ticket: ReadTicket, read: Read) -> Judgement {
        self.ledger.end_read(0, ticket, read, self.now, self.now)
    }

    fn presence(&self) -> Presence {
        self.ledger.state(0).presence
    }
}

fn ours(version: u32) -> Read {
    Read::Version { version, session: WriterRun::Ours }
}

fn earlier() -> Read {
    Read::Version { version: 7, session: WriterRun::Earlier }
}

fn kind(judgement: Judgement) -> Option<AnomalyKind> {
    match judgement {
        Judgement::Illegal { kind, .. } => Some(kind),
        _ => None,
    }
}

const STALE: Option<AnomalyKind> = Some(AnomalyKind::Stale);
const PHANTOM: Option<AnomalyKind> = Some(AnomalyKind::Phantom);
const RESURRECTED: Option<AnomalyKind> = Some(AnomalyKind::Resurrected);

#[test]
fn never_written() {
    let bench = bench(config());
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    assert_eq!(kind(bench.read(ours(1))), PHANTOM);
    assert_eq!(kind(bench.read(earlier())), PHANTOM);
    assert_eq!(bench.presence(), Presence::NeverWritten);
    bench.write(Put, Failed);
    assert_eq!(kind(bench.read(ours(1))), PHANTOM);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    assert_eq!(bench.presence(), Presence::NeverWritten);
}

#[test]
fn an_insert_in_flight_is_early_until_it_is_acknowledged() {
    let bench = bench(config());
    let early = bench.ledger.begin_read(0);
    let put = bench.begin(Put);
    assert_eq!(bench.read(Read::Absent), Judgement::Early);
    assert_eq!(bench.read(ours(1)), Judgement::Legal);
    bench.end(put, Acknowledged);
    assert_eq!(kind(bench.read(Read::Absent)), STALE);
    assert_eq!(bench.answer(early, Read::Absent), Judgement::Early);
    assert_eq!(bench.presence(), Presence::MustBePresent);
}

#[test]
fn an_acknowledged_update_makes_the_former_version_stale() {
    let mut bench = bench(config());
    bench.write(Put, Acknowledged);
    let before = bench.ledger.begin_read(0);
    let update = bench.begin(Put);
    assert_eq!(bench.read(ours(1)), Judgement::Legal);
    assert_eq!(bench.read(ours(2)), Judgement::Legal);
    bench.now = 10 * MS;
    bench.end(update, Acknowledged);
    assert_eq!(bench.answer(before, ours(1)), Judgement::Legal);
    bench.now = 25 * MS;
    let judged = bench.read(ours(1));
    let behind = Some(Duration::from_millis(14));
    let expected = Judgement::Illegal { kind: AnomalyKind::Stale, floor: 2, next: 3, behind };
    assert_eq!(judged, expected);
    assert_eq!(kind(bench.read(ours(3))), PHANTOM);
    assert_eq!(kind(bench.read(ours(0))), PHANTOM);
}

#[test]
fn an_acknowledged_delete_buries_what_was_before() {
    let bench = bench(config());
    bench.write(Put, Acknowledged);
    let delete = bench.begin(Delete);
    assert_eq!(bench.read(ours(1)), Judgement::Legal);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    bench.end(delete, Acknowledged);
    assert_eq!(bench.presence(), Presence::MustBeAbsent);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    assert_eq!(kind(bench.read(ours(1))), RESURRECTED);
    let put = bench.begin(Put);
    assert_eq!(kind(bench.read(ours(1))), RESURRECTED);
    assert_eq!(bench.read(ours(3)), Judgement::Legal);
    bench.end(put, Acknowledged);
    assert_eq!(kind(bench.read(ours(1))), STALE);
    assert_eq!(kind(bench.read(Read::Absent)), STALE);
}

#[test]
fn failed_writes_are_phantoms_however_many() {
    let bench = bench(config());
    bench.write(Put, Acknowledged);
    for failed in 2..=20 {
        bench.write(if failed % 2 == 0 { Put } else { Delete }, Failed);
        assert_eq!(kind(bench.read(ours(failed))), PHANTOM, "version {failed}");
        assert_eq!(kind(bench.read(Read::Absent)), STALE, "version {failed}");
        assert_eq!(bench.read(ours(1)), Judgement::Legal);
    }
    assert_eq!(kind(bench.read(ours(2))), PHANTOM);
    assert_eq!(bench.presence(), Presence::MustBePresent);
    bench.write(Put, Acknowledged);
    assert_eq!(bench.read(ours(21)), Judgement::Legal);
    assert_eq!(kind(bench.read(ours(1))), STALE);
    assert_eq!(bench.ledger.overlapping(), 0);
}

#[test]
fn overlapping_writes_both_stay_until_a_later_one_is_acknowledged() {
    let bench = bench(config());
    bench.write(Put, Acknowledged);
    let (second, third) = (bench.begin(Put), bench.begin(Put));
    let during = bench.ledger.begin_read(0);
    bench.end(third, Acknowledged);
    assert_eq!(kind(bench.read(ours(1))), STALE);
    assert_eq!(bench.read(ours(2)), Judgement::Legal);
    bench.end(second, Acknowledged);
    assert_eq!(bench.read(ours(2)), Judgement::Legal);
    assert_eq!(bench.read(ours(3)), Judgement::Legal);
    assert_eq!(bench.ledger.overlapping(), 1);
    bench.write(Put, Acknowledged);
    assert_eq!(kind(bench.read(ours(2))), STALE);
    assert_eq!(kind(bench.read(ours(3))), STALE);
    assert_eq!(bench.read(ours(4)), Judgement::Legal);
    // The read that began in between may still return what was current then.
    assert_eq!(bench.ledger.overlapping(), 1);
    assert_eq!(bench.answer(during, ours(1)), Judgement::Legal);
    assert_eq!(bench.ledger.overlapping(), 0);
}

#[test]
fn an_indeterminate_write_stays_for_ever() {
    let bench = bench(config());
    bench.write(Put, Acknowledged);
    bench.write(Put, Indeterminate);
    for version in 3..10 {
        bench.write(Put, Acknowledged);
        assert_eq!(bench.read(ours(2)), Judgement::Legal);
        assert_eq!(bench.read(ours(version)), Judgement::Legal);
        assert_eq!(kind(bench.read(ours(version - if version == 3 { 2 } else { 1 }))), STALE);
    }
    assert_eq!(kind(bench.read(Read::Absent)), STALE);
    bench.write(Delete, Indeterminate);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    assert_eq!(bench.presence(), Presence::MayBeEither);
    let state = bench.ledger.state(0);
    assert_eq!((state.floor, state.next, state.acknowledged), (2, 11, true));
}

#[test]
fn reads_raise_the_floor_only_under_a_linearizable_store() {
    for linearizable in [false, true] {
        let bench = bench(LedgerConfig { linearizable, ..config() });
        bench.write(Put, Acknowledged);
        let put = bench.begin(Put);
        let sent_before = bench.ledger.begin_read(0);
        assert_eq!(bench.read(ours(1)), Judgement::Legal);
        assert_eq!(bench.read(ours(2)), Judgement::Legal);
        let back = if linearizable { STALE } else { None };
        assert_eq!(kind(bench.read(ours(1))), back);
        assert_eq!(kind(bench.read(Read::Absent)), STALE);
        assert_eq!(bench.answer(sent_before, ours(1)), Judgement::Legal);
        bench.end(put, Indeterminate);
        assert_eq!(kind(bench.read(ours(1))), back);
        // What was seen is done with, and the slot is one word again.
        assert_eq!(bench.ledger.overlapping(), usize::from(!linearizable));
    }
}

#[test]
fn a_seen_delete_is_done_with_under_a_linearizable_store() {
    let bench = bench(LedgerConfig { linearizable: true, ..config() });
    bench.write(Put, Acknowledged);
    let delete = bench.begin(Delete);
    assert_eq!(bench.read(ours(1)), Judgement::Legal);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    assert_eq!(kind(bench.read(ours(1))), STALE);
    bench.end(delete, Indeterminate);
    assert_eq!(bench.presence(), Presence::MustBeAbsent);
    assert_eq!(kind(bench.read(ours(1))), RESURRECTED);
}

#[test]
fn a_delete_under_a_seen_put_still_explains_an_old_read() {
    let bench = bench(LedgerConfig { linearizable: true, ..config() });
    bench.write(Put, Acknowledged);
    let sent_before = bench.ledger.begin_read(0);
    bench.write(Delete, Acknowledged);
    let put = bench.begin(Put);
    assert_eq!(bench.read(ours(3)), Judgement::Legal);
    let other = bench.begin(Put);
    assert_eq!(bench.answer(sent_before, Read::Absent), Judgement::LegalMiss);
    assert_eq!(kind(bench.read(Read::Absent)), STALE);
    bench.end(put, Acknowledged);
    bench.end(other, Acknowledged);
}

#[test]
fn a_late_write_that_was_seen_is_done_with_under_a_linearizable_store() {
    let bench = bench(LedgerConfig { linearizable: true, ..config() });
    bench.write(Put, Acknowledged);
    bench.write(Put, Indeterminate);
    assert_eq!(bench.read(ours(1)), Judgement::Legal);
    assert_eq!(bench.read(ours(2)), Judgement::Legal);
    assert_eq!(kind(bench.read(ours(1))), STALE);
    assert_eq!(bench.ledger.overlapping(), 0);
    bench.write(Put, Acknowledged);
    assert_eq!(kind(bench.read(ours(2))), STALE);
}

#[test]
fn existing_data_is_checked_by_its_stamp_until_it_is_found() {
    let bench = bench(LedgerConfig { initial: Initial::Unjudged, ..config() });
    assert_eq!(bench.presence(), Presence::MayBeEither);
    assert_eq!(bench.read(Read::Absent), Judgement::UnexpectedMiss);
    assert_eq!(kind(bench.read(ours(1))), PHANTOM);
    let sent_before = bench.ledger.begin_read(0);
    assert_eq!(bench.read(earlier()), Judgement::StampOnly);
    assert_eq!(bench.read(earlier()), Judgement::Legal);
    assert_eq!(kind(bench.read(Read::Absent)), STALE);
    assert_eq!(bench.answer(sent_before, Read::Absent), Judgement::UnexpectedMiss);
    assert_eq!(bench.presence(), Presence::MustBePresent);
    let put = bench.begin(Put);
    assert_eq!(bench.read(earlier()), Judgement::Legal);
    bench.end(put, Acknowledged);
    assert_eq!(kind(bench.read(earlier())), STALE);
    bench.write(Delete, Acknowledged);
    assert_eq!(kind(bench.read(earlier())), RESURRECTED);
}

/// Writes of a lost process may arrive at any time; values that this one wrote since are judged as
/// ever.
#[test]
fn what_was_taken_over_from_a_lost_process_is_existing_data_and_none_of_its_writes_is_wrong() {
    let taken = |from, deletes| {
        bench(LedgerConfig { taken_over: Some(TakenOver { from, deletes }), ..config() })
    };
    let bench = taken(0, false);
    assert_eq!(bench.presence(), Presence::MayBeEither);
    assert_eq!(bench.read(Read::Absent), Judgement::UnexpectedMiss);
    assert_eq!(bench.read(earlier()), Judgement::StampOnly);
    assert_eq!(bench.read(earlier()), Judgement::Legal);
    bench.write(Put, Acknowledged);
    assert_eq!(bench.read(ours(1)), Judgement::Legal);
    assert_eq!(bench.read(earlier()), Judgement::StampOnly, "it came late");
    let unseen = Read::Version { version: 7, session: WriterRun::Unseen };
    assert_eq!(bench.read(unseen), Judgement::StampOnly, "who wrote it is not to be seen");
    bench.write(Put, Acknowledged);
    assert_eq!(kind(bench.read(ours(1))), STALE);
    assert_eq!(kind(bench.read(ours(3))), PHANTOM);
    assert_eq!(kind(bench.read(Read::Absent)), STALE, "nobody deletes");
    // With overlapping writes, too.
    let (one, other) = (bench.begin(Put), bench.begin(Put));
    assert_eq!(bench.read(earlier()), Judgement::StampOnly);
    bench.end(one, Acknowledged);
    bench.end(other, Indeterminate);
    assert_eq!(bench.read(earlier()), Judgement::StampOnly);
    assert_eq!(kind(bench.read(ours(1))), STALE);

    let bench = taken(0, true);
    bench.write(Put, Acknowledged);
    assert_eq!(bench.read(Read::Absent), Judgement::UnexpectedMiss, "its delete may come late");

    let bench = taken(1, true);
    bench.write(Put, Acknowledged);
    assert_eq!(kind(bench.read(Read::Absent)), STALE, "slot 0 is this process's own");
    assert_eq!(kind(bench.read(earlier())), PHANTOM);
}

#[test]
fn a_store_that_may_forget_is_not_wrong_to_miss_and_stale_all_the_same() {
    let bench = bench(LedgerConfig { may_forget: true, linearizable: true, ..config() });
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss, "not yet written");
    let early = bench.begin(Put);
    assert_eq!(bench.read(Read::Absent), Judgement::Early);
    bench.end(early, Acknowledged);
    bench.write(Put, Acknowledged);
    assert_eq!(bench.read(Read::Absent), Judgement::Forgotten);
    assert_eq!(bench.read(ours(2)), Judgement::Legal);
    assert_eq!(kind(bench.read(ours(1))), STALE);
    assert_eq!(bench.presence(), Presence::MayBeEither);
    // Nothing found says nothing about a delete in flight.
    let delete = bench.begin(Delete);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    assert_eq!(bench.read(ours(2)), Judgement::Legal);
    bench.end(delete, Failed);
    bench.write(Delete, Acknowledged);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss, "deleted");
}

#[test]
fn a_store_that_may_forget_is_expected_to_have_what_was_there_and_what_has_not_expired() {
    let existing = LedgerConfig { initial: Initial::Unjudged, may_forget: true, ..config() };
    assert_eq!(bench(existing).read(Read::Absent), Judgement::UnexpectedMiss);
    let expiry = Expiry {
        shortest: Duration::from_millis(1000),
        longest: None,
        precision: Duration::from_millis(100),
        slack: Duration::from_millis(50),
    };
    let mut bench = bench(LedgerConfig { expiry: Some(expiry), may_forget: true, ..config() });
    bench.now = 500 * MS;
    bench.write(Put, Acknowledged);
    bench.now = 1349 * MS;
    assert_eq!(bench.read(Read::Absent), Judgement::Forgotten);
    bench.now = 1350 * MS;
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss, "expired");
}

#[test]
fn records_with_a_time_to_live_vanish_in_their_time() {
    for overlapping in [false, true] {
        let expiry = Expiry {
            shortest: Duration::from_millis(1000),
            longest: Some(Duration::from_millis(2000)),
            precision: Duration::from_millis(100),
            slack: Duration::from_millis(50),
        };
        let mut bench = bench(LedgerConfig { expiry: Some(expiry), ..config() });
        bench.now = 500 * MS;
        let first = bench.begin(Put);
        let second = overlapping.then(|| bench.begin(Put));
        bench.end(first, Acknowledged);
        if let Some(second) = second {
            bench.end(second, Acknowledged);
        }
        assert_eq!(bench.ledger.overlapping(), usize::from(overlapping));
        assert_eq!(bench.presence(), Presence::MayBeEither);
        // Gone from 500 - 50 + 1000 - 100 on.
        bench.now = 1349 * MS;
        assert_eq!(kind(bench.read(Read::Absent)), STALE);
        bench.now = 1350 * MS;
        assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
        // There until 500 + 1 + 2000 + 100.
        bench.now = 2601 * MS;
        assert_eq!(bench.read(ours(1)), Judgement::Legal);
        bench.now = 2602 * MS;
        assert_eq!(kind(bench.read(ours(1))), STALE);
        assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    }
}

#[test]
fn a_write_that_may_be_applied_again_takes_no_place() {
    let bench = bench(LedgerConfig { may_apply_again: true, linearizable: true, ..config() });
    assert_eq!(bench.presence(), Presence::NeverWritten);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    let (one, two) = (bench.begin(Put), bench.begin(Put));
    assert_eq!(bench.read(Read::Absent), Judgement::Early);
    bench.end(one, Acknowledged);
    bench.end(two, Indeterminate);
    bench.write(Put, Acknowledged);
    for version in 1..=3 {
        assert_eq!(bench.read(ours(version)), Judgement::Legal);
    }
    assert_eq!(kind(bench.read(ours(4))), PHANTOM);
    assert_eq!(kind(bench.read(Read::Absent)), STALE);
    assert_eq!(bench.presence(), Presence::MustBePresent);
    let before = bench.ledger.begin_read(0);
    bench.write(Delete, Acknowledged);
    assert_eq!(bench.answer(before, Read::Absent), Judgement::LegalMiss);
    bench.write(Put, Acknowledged);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    assert_eq!(bench.presence(), Presence::MayBeEither);
    assert_eq!((bench.ledger.overlapping(), bench.ledger.lost()), (0, 0));
}

#[test]
fn a_row_without_a_ticket_is_judged_only_a_tick_after_the_acknowledgement() {
    for overlapping in [false, true] {
        let mut bench = bench(config());
        bench.now = 3 * MS;
        bench.write(Put, Acknowledged);
        let (second, third) = (bench.begin(Put), overlapping.then(|| bench.begin(Put)));
        bench.now = 10 * MS;
        bench.end(second, Acknowledged);
        if let Some(third) = third {
            bench.end(third, Acknowledged);
        }
        let late = |read, sent| bench.ledger.judge_late(0, read, sent);
        assert_eq!(late(ours(1), 10 * MS + MS / 2), Judgement::StampOnly);
        assert_eq!(late(Read::Absent, 9 * MS), Judgement::StampOnly);
        assert_eq!(kind(late(ours(1), 11 * MS)), STALE);
        assert_eq!(kind(late(Read::Absent, 11 * MS)), STALE);
        assert_eq!(late(ours(2), 0), Judgement::Legal);
        assert_eq!(kind(late(ours(4), 0)), PHANTOM);
    }
}

#[test]
fn what_a_read_has_told_is_not_held_against_rows_of_earlier_scans() {
    for end in [None, Some(Acknowledged), Some(Indeterminate)] {
        let mut bench = bench(LedgerConfig { linearizable: true, ..config() });
        bench.now = 3 * MS;
        bench.write(Put, Acknowledged);
        let put = bench.begin(Put);
        // The scan is sent at 10 ms; a read sees the put at 20 ms, and its end is told after that.
        bench.now = 20 * MS;
        assert_eq!(bench.read(ours(2)), Judgement::Legal);
        let late = || bench.ledger.judge_late(0, ours(1), 10 * MS);
        assert_eq!(late(), Judgement::Legal);
        let Some(end) = end else {
            let other = bench.begin(Put);
            assert_eq!(late(), Judgement::StampOnly);
            bench.end(other, Failed);
            bench.end(put, Failed);
            continue;
        };
        bench.end(put, end);
        assert_eq!(late(), Judgement::StampOnly);
    }
    let bench =
        bench(LedgerConfig { may_apply_again: true, initial: Initial::Unjudged, ..config() });
    assert_eq!(bench.read(earlier()), Judgement::StampOnly);
    assert_eq!(bench.ledger.judge_late(0, Read::Absent, 10 * MS), Judgement::UnexpectedMiss);
}

#[test]
fn a_full_table_makes_slots_unknown_and_says_so() {
    let bench = bench(LedgerConfig { overlap_capacity: 0, ..config() });
    bench.write(Put, Acknowledged);
    let before = bench.ledger.begin_read(0);
    let (second, third) = (bench.begin(Put), bench.begin(Put));
    assert_eq!((second.version, third.version), (2, 3));
    assert_eq!(bench.ledger.lost(), 1);
    bench.end(second, Acknowledged);
    bench.end(third, Indeterminate);
    assert_eq!(bench.read(ours(1)), Judgement::Unknown);
    assert_eq!(bench.read(Read::Absent), Judgement::Unknown);
    assert_eq!(bench.presence(), Presence::Unknown);
    // What was sent is known still, and what was legal when a read began.
    assert_eq!(kind(bench.read(ours(4))), PHANTOM);
    assert_eq!(kind(bench.answer(before, Read::Absent)), STALE);
    assert_eq!(bench.begin(Put).version, 4);
    assert_eq!(bench.ledger.judge_late(0, ours(1), 1), Judgement::Unknown);
}

#[test]
fn too_many_versions_in_one_slot_make_it_unknown() {
    let bench = bench(config());
    // One is what was there before the first write.
    for _ in 1..crate::verify::overlap::MOST_KEPT {
        bench.write(Put, Indeterminate);
    }
    assert_eq!(bench.ledger.lost(), 0);
    bench.write(Put, Indeterminate);
    assert_eq!((bench.ledger.lost(), bench.ledger.overlapping()), (1, 0));
    assert_eq!(bench.read(ours(1)), Judgement::Unknown);
}

#[test]
fn a_slot_out_of_versions_is_unknown() {
    let bench = bench(config());
    let last = Word::new(MOST_VERSIONS - 1, 0, Tick::default(), Base::Present);
    for in_flight in [false, true] {
        bench.ledger.slots.word(0).store(last.0, Ordering::Relaxed);
        let put = bench.begin(Put);
        assert_eq!(put.version, MOST_VERSIONS);
        let after = if in_flight {
            let after = bench.begin(Put);
            bench.end(put, Acknowledged);
            after
        } else {
            bench.end(put, Acknowledged);
            assert_eq!(bench.read(ours(MOST_VERSIONS)), Judgement::Legal);
            bench.begin(Put)
        };
        assert_eq!(after.version, MOST_VERSIONS);
        bench.end(after, Acknowledged);
        assert_eq!(bench.read(ours(5)), Judgement::Unknown);
    }
    assert_eq!(bench.ledger.lost(), 2);
}

#[test]
fn a_stalled_read_keeps_little() {
    let bench = bench(config());
    bench.write(Put, Acknowledged);
    let (first, mut last) = (bench.begin(Put), bench.begin(Put));
    let stalled = bench.ledger.begin_read(0);
    bench.end(first, Acknowledged);
    for _ in 0..3 * crate::verify::overlap::MOST_KEPT {
        let next = bench.begin(Put);
        bench.end(std::mem::replace(&mut last, next), Acknowledged);
    }
    assert_eq!(bench.ledger.lost(), 0);
    assert_eq!(bench.answer(stalled, ours(1)), Judgement::Legal);
    assert_eq!(kind(bench.read(ours(1))), STALE);
    bench.end(last, Failed);
}

#[test]
fn a_word_keeps_each_of_its_parts() {
    let word = Word::new(MOST_VERSIONS, 5, Tick::SATURATED, Base::Deleted);
    assert_eq!((word.issued(), word.tick()), (MOST_VERSIONS, Tick::SATURATED));
    assert_eq!((word.base(), word.in_flight()), (Base::Deleted, false));
    assert_eq!(word.current(), MOST_VERSIONS - 5);
    for base in [Base::Pristine, Base::Found, Base::Present, Base::Deleted] {
        for kind in [Put, Delete] {
            let flight = Word::new(3, 0, Tick(9), base).begun(kind);
            assert_eq!((flight.base(), flight.flight_kind()), (base, Some(kind)));
            assert!(flight.seen().observed() && flight.seen().is_plain());
            assert_eq!(flight.seen().base(), base);
            assert_eq!((flight.issued(), flight.tick()), (4, Tick(9)));
        }
    }
    assert_eq!(Word(0), Word::new(0, 0, Tick(0), Base::Pristine));
}

#[test]
fn sizes_in_errors_are_in_units_that_people_read() {
    let too_large =
        LedgerError::TooLarge { slots: 9, bytes: 16_400_000_000, machine: 8_200_000_000 };
    let said = "needs 16.4 GB of memory; this machine has 8.20 GB, swap included: ";
    assert!(too_large.to_string().contains(said), "{too_large}");
    let refused = LedgerError::Refused { slots: 9, bytes: 16_400_000_000, limit: Some(4 << 30) };
    let said = "whose memory is limited to 4.29 GB (`ulimit -v`)";
    assert!(refused.to_string().contains(said), "{refused}");
}
