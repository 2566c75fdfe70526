//! Values that a store that declares its staleness may return, and for how long.

use super::*;

/// A ledger of a store that may be stale by a second.
fn stale_by_a_second() -> Bench {
    bench(LedgerConfig { staleness: Duration::from_secs(1), ..config() })
}

#[test]
fn a_version_is_legal_for_the_staleness_after_it_was_replaced() {
    let mut bench = stale_by_a_second();
    for at in [0, 5000, 5500, 5600] {
        bench.now = at * MS;
        bench.write(Put, Acknowledged);
    }
    // Version 3 was replaced at 5600 (to 1 ms), version 2 at 5500, version 1 at 5000.
    for (version, replaced) in [(3, 5600), (2, 5500), (1, 5000), (1, 5000)] {
        bench.now = (replaced + 1001) * MS;
        assert_eq!(bench.read(ours(version)), Judgement::LegalStale, "{version}");
        bench.now += 1;
        assert_eq!(kind(bench.read(ours(version))), STALE, "{version}");
    }
    assert_eq!(bench.read(ours(4)), Judgement::Legal);
    assert_eq!(kind(bench.read(ours(5))), Some(AnomalyKind::Phantom));
    // What was replaced long before stays so, however often the slot is written.
    bench.now = 100_000 * MS;
    bench.write(Put, Acknowledged);
    assert_eq!(bench.read(ours(4)), Judgement::LegalStale);
    assert_eq!(kind(bench.read(ours(3))), STALE);
}

#[test]
fn finding_nothing_is_legal_for_the_staleness_after_the_first_write() {
    let mut bench = stale_by_a_second();
    bench.write(Put, Acknowledged);
    bench.now = 1000 * MS;
    bench.write(Put, Acknowledged);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalStale);
    bench.now = 1002 * MS;
    assert_eq!(kind(bench.read(Read::Absent)), STALE);
    // From here on a delete may be what was found.
    bench.write(Delete, Acknowledged);
    bench.write(Put, Acknowledged);
    assert_eq!(bench.read(ours(1)), Judgement::LegalStale, "replaced 2 ms ago: deleted");
    bench.now = 2003 * MS;
    assert_eq!(bench.read(Read::Absent), Judgement::LegalStale);
    bench.now = 2004 * MS;
    assert_eq!(kind(bench.read(Read::Absent)), STALE);
}

#[test]
fn a_deleted_record_is_legal_for_the_staleness() {
    let mut bench = stale_by_a_second();
    bench.write(Put, Acknowledged);
    bench.write(Delete, Acknowledged);
    bench.now = 1000 * MS;
    assert_eq!(bench.read(ours(1)), Judgement::LegalStale);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalMiss);
    bench.now = 1002 * MS;
    assert_eq!(kind(bench.read(ours(1))), Some(AnomalyKind::Resurrected));
}

#[test]
fn overlapping_writes_are_held_to_the_staleness_too() {
    let mut bench = stale_by_a_second();
    bench.write(Put, Acknowledged);
    bench.now = 5000 * MS;
    let (second, third) = (bench.begin(Put), bench.begin(Put));
    let lost = bench.begin(Put);
    bench.end(lost, Indeterminate);
    bench.end(second, Acknowledged);
    bench.now = 6000 * MS;
    bench.end(third, Acknowledged);
    bench.now = 7000 * MS;
    // The second and the third overlapped: either may be there, and the fourth for ever.
    for version in [2, 3, 4] {
        assert_eq!(bench.read(ours(version)), Judgement::Legal);
    }
    assert_eq!(kind(bench.read(ours(1))), STALE, "replaced at 5000");
    bench.write(Put, Acknowledged);
    bench.now = 8001 * MS;
    assert_eq!(bench.read(ours(3)), Judgement::LegalStale);
    assert_eq!(bench.read(ours(4)), Judgement::Legal);
    bench.now = 8002 * MS;
    assert_eq!(kind(bench.read(ours(3))), STALE);
    assert_eq!(bench.read(ours(4)), Judgement::Legal);
}

#[test]
fn what_was_replaced_is_forgotten_when_nobody_needs_it() {
    let ledger = Ledger::new(LedgerConfig {
        slots: 500_000,
        staleness: Duration::from_millis(1),
        ..config()
    });
    let ledger = ledger.unwrap();
    for slot in 0..500_000 {
        for now in [slot * MS, slot * MS + MS / 2] {
            let ticket = ledger.begin_write(slot, Put);
            ledger.end_write(slot, ticket, Acknowledged, now);
        }
    }
    let kept = ledger.overwritten.as_ref().unwrap().slots();
    assert!((1..100_000).contains(&kept), "{kept}");
}

/// A store whose reads see it as it was at any moment of the last second.
struct Past {
    bench: Bench,
    /// Contents of the register, each with the time from which on it held them, ns.
    held: Vec<(Nanos, Read)>,
    /// Writes on their way, and whether they have been applied.
    writing: Vec<(WriteTicket, bool)>,
    /// Indeterminate writes that may yet be applied.
    loose: Vec<Read>,
    reading: Vec<(ReadTicket, Nanos)>,
    state: u64,
}

fn value(ticket: &WriteTicket) -> Read {
    match ticket.kind {
        Put => ours(ticket.version),
        Delete => Read::Absent,
    }
}

impl Past {
    fn random(&mut self, below: u64) -> u64 {
        // Knuth's linear congruential generator (MMIX).
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.state >> 33) % below
    }

    fn hold(&mut self, read: Read) {
        self.held.push((self.bench.now, read));
    }

    fn at(&self, moment: Nanos) -> Read {
        let held = self.held.iter().rev().find(|(since, _)| *since <= moment);
        held.map_or(Read::Absent, |(_, read)| *read)
    }

    fn step(&mut self) {
        // 9 of 10 steps take a few milliseconds, the others up to two seconds.
        let most = if self.random(10) == 0 { 2000 } else { 5 };
        self.bench.now += self.random(most * MS);
        match self.random(8) {
            0 | 1 if self.writing.len() < 3 => {
                let kind = if self.random(4) == 0 { Delete } else { Put };
                self.writing.push((self.bench.begin(kind), false));
            }
            2 | 3 if !self.writing.is_empty() => {
                let place = self.random(self.writing.len() as u64) as usize;
                let (ticket, applied) = self.writing.swap_remove(place);
                let written = value(&ticket);
                let end = match self.random(10) {
                    0 if !applied => Failed,
                    1 => Indeterminate,
                    _ => Acknowledged,
                };
                match (end, applied) {
                    (Acknowledged, false) => self.hold(written),
                    (Indeterminate, false) => self.loose.push(written),
                    _ => {}
                }
                self.bench.end(ticket, end);
            }
            4 if !self.writing.is_empty() => {
                let place = self.random(self.writing.len() as u64) as usize;
                if !std::mem::replace(&mut self.writing[place].1, true) {
                    let written = value(&self.writing[place].0);
                    self.hold(written);
                }
            }
            5 if !self.loose.is_empty() => {
                let late = self.loose.swap_remove(0);
                self.hold(late);
            }
            6 if self.reading.len() < 3 => {
                self.reading.push((self.bench.ledger.begin_read(0), self.bench.now));
            }
            7 if !self.reading.is_empty() => self.end_read(),
            _ => {}
        }
    }

    fn end_read(&mut self) {
        let (ticket, sent) = self.reading.swap_remove(0);
        let now = self.bench.now;
        let since = sent.saturating_sub(1000 * MS);
        let moment = since + self.random(now - since + 1);
        let found = self.at(moment);
        let judgement = self.bench.ledger.end_read(0, ticket, found, sent, now);
        let seed = self.state;
        assert!(
            !matches!(judgement, Judgement::Illegal { .. }),
            "{found:?} of {moment} by a read of {sent} to {now}: {judgement:?} ({seed})"
        );
    }
}

#[test]
fn a_store_that_keeps_its_staleness_is_never_accused() {
    let mut stale = 0;
    for seed in 0..400 {
        let bench = stale_by_a_second();
        let (held, writing, loose, reading) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut past = Past { bench, held, writing, loose, reading, state: seed };
        (0..300).for_each(|_| past.step());
        // Long after, what was replaced is not legal any more.
        past.bench.now += 5000 * MS;
        if let Some(&(_, Read::Version { version, .. })) = past.held.first() {
            let quiet = past.writing.is_empty() && past.loose.is_empty();
            let old = past.held.len() > 1 && !past.held[1..].iter().any(|h| h.1 == ours(version));
            stale += usize::from(quiet && old && kind(past.bench.read(ours(version))).is_some());
        }
    }
    assert!(stale > 20, "{stale} old versions were named");
}

#[test]
fn reads_that_go_past_the_cache_are_held_to_the_store_behind_it() {
    let mut bench = stale_by_a_second();
    bench.write(Put, Acknowledged);
    bench.now = 10 * MS;
    bench.write(Put, Acknowledged);
    bench.now = 500 * MS;
    assert_eq!(bench.read(ours(1)), Judgement::LegalStale);
    assert_eq!(bench.read(Read::Absent), Judgement::LegalStale);
    bench.ledger.allow_staleness(Duration::ZERO);
    assert_eq!(kind(bench.read(ours(1))), STALE);
    assert_eq!(kind(bench.read(Read::Absent)), STALE);
    assert_eq!(bench.read(ours(2)), Judgement::Legal);
    // A store behind that may be stale itself, and no more than the ledger was made for.
    bench.ledger.allow_staleness(Duration::from_millis(600));
    assert_eq!(bench.read(ours(1)), Judgement::LegalStale);
    bench.ledger.allow_staleness(Duration::from_secs(3_600));
    bench.now = 1_500 * MS;
    assert_eq!(kind(bench.read(ours(1))), STALE);
}
