//! The ledger against the definition applied directly, on random histories of one slot: a correct
//! register never alarms, and a faulty one gets the same verdict from both, read by read.

use crate::register::{Random, Reference, earlier, ours};
use kvdyno_core::verify::{
    AnomalyKind, Initial, Judgement, Ledger, LedgerConfig, Read, ReadTicket, WriteEnd, WriteKind,
    WriteTicket, WriterRun,
};

#[derive(Clone, Copy, Debug)]
struct Mode {
    linearizable: bool,
    existing_data: bool,
    deletes: bool,
    indeterminate: bool,
    writers: usize,
    /// Percent of reads that return anything at all.
    faulty: u64,
}

/// A write on its way: applied at most once, at any time from its begin on.
struct Writing {
    ticket: Option<WriteTicket>,
    number: u32,
    kind: WriteKind,
    applied: bool,
}

struct Reading {
    ticket: ReadTicket,
    snapshot: u64,
    found: Option<Read>,
    issued: u32,
    /// True if it was sent while the slot was in the side table, so that it is judged exactly.
    registered: bool,
}

#[derive(Default)]
struct Counts {
    reads: u64,
    illegal: u64,
    given_away: u64,
}

struct Bench<'a> {
    mode: Mode,
    /// Number of slots of earlier histories that stay in the side table.
    others: usize,
    ledger: &'a Ledger,
    slot: u64,
    random: Random,
    reference: Reference,
    register: Read,
    writing: Vec<Writing>,
    /// Indeterminate writes that may yet be applied.
    loose: Vec<(u32, WriteKind)>,
    reading: Vec<Reading>,
    /// True if the two sides no longer know the same.
    stop: bool,
}

impl Bench<'_> {
    fn step(&mut self, counts: &mut Counts) {
        match self.random.below(10) {
            0 | 1 if self.writing.len() < self.mode.writers => self.begin_write(),
            2 if !self.writing.is_empty() => {
                let place = self.random.below(self.writing.len() as u64) as usize;
                self.apply(place);
            }
            3 | 4 if !self.writing.is_empty() => self.end_write(),
            5 if !self.loose.is_empty() => {
                let place = self.random.below(self.loose.len() as u64) as usize;
                let (number, kind) = self.loose.swap_remove(place);
                self.register = value(number, kind);
            }
            6 | 7 if self.reading.len() < 4 => {
                let ticket = self.ledger.begin_read(self.slot);
                let snapshot = self.reference.begin_read();
                let issued = self.reference.issued;
                let registered = self.ledger.overlapping() > self.others;
                self.reading.push(Reading { ticket, snapshot, found: None, issued, registered });
            }
            8 if !self.reading.is_empty() => {
                let place = self.random.below(self.reading.len() as u64) as usize;
                self.reading[place].found.get_or_insert(self.register);
            }
            9 if !self.reading.is_empty() => self.end_read(counts),
            _ => {}
        }
    }

    fn begin_write(&mut self) {
        let delete = self.mode.deletes && self.random.chance(35);
        let kind = if delete { WriteKind::Delete } else { WriteKind::Put };
        let ticket = self.ledger.begin_write(self.slot, kind);
        let number = self.reference.begin_write(kind);
        assert_eq!(ticket.version, number);
        self.writing.push(Writing { ticket: Some(ticket), number, kind, applied: false });
    }

    fn apply(&mut self, place: usize) {
        let write = &mut self.writing[place];
        if !write.applied {
            write.applied = true;
            self.register = value(write.number, write.kind);
        }
    }

    fn end_write(&mut self) {
        let place = self.random.below(self.writing.len() as u64) as usize;
        let end = match self.random.below(10) {
            0 | 1 if !self.writing[place].applied => WriteEnd::Failed,
            2 | 3 if self.mode.indeterminate => WriteEnd::Indeterminate,
            _ => WriteEnd::Acknowledged,
        };
        if end == WriteEnd::Acknowledged {
            self.apply(place);
        }
        let mut write = self.writing.swap_remove(place);
        if end == WriteEnd::Indeterminate && !write.applied {
            self.loose.push((write.number, write.kind));
        }
        self.ledger.end_write(self.slot, write.ticket.take().unwrap(), end, 0);
        self.reference.end_write(write.number, end);
    }

    fn anything(&mut self) -> Read {
        match self.random.below(8) {
            0 | 1 => Read::Absent,
            2 => earlier(),
            _ => {
                // A value never carries the number of a delete.
                let number = self.random.below(u64::from(self.reference.issued) + 3) as u32;
                let delete = |w: &&crate::register::Write| w.number == number && number > 0;
                match self.reference.writes.iter().find(delete).map(|w| w.kind) {
                    Some(WriteKind::Delete) => Read::Absent,
                    _ => ours(number),
                }
            }
        }
    }

    fn end_read(&mut self, counts: &mut Counts) {
        let place = self.random.below(self.reading.len() as u64) as usize;
        let reading = self.reading.swap_remove(place);
        if self.random.chance(10) {
            return self.ledger.abandon_read(self.slot, reading.ticket);
        }
        let faulty = self.random.chance(self.mode.faulty);
        let found = if faulty { self.anything() } else { reading.found.unwrap_or(self.register) };
        let expected = self.reference.judge(found, reading.snapshot);
        let judged = self.ledger.end_read(self.slot, reading.ticket, found, 0, 0);
        counts.reads += 1;
        counts.illegal += u64::from(illegal(expected));
        let given_away = !reading.registered && self.forgotten(found, reading.issued);
        let named_stale = matches!(found, Read::Version { version, .. } if
            self.failed_and_replaced(version) && illegal(judged) && illegal(expected));
        assert!(
            same(self.mode, judged, expected)
                || named_stale
                || given_away && (!illegal(judged) || illegal(expected)),
            "read {found:?}: {judged:?}, by definition {expected:?}"
        );
        counts.given_away += u64::from(illegal(expected) && !illegal(judged));
        self.reference.end_read(found, reading.snapshot, expected);
        // What the read would have told is given away with it.
        self.stop |= given_away && self.mode.linearizable;
    }

    /// Returns true if the ledger may miss a fault of this read because its ticket is a word, as
    /// the ledger's documentation says.
    fn forgotten(&self, found: Read, issued: u32) -> bool {
        match found {
            Read::Absent => {
                let overtaken = self.mode.deletes && self.reference.issued >= issued + 2;
                let mut writes = self.reference.writes.iter();
                overtaken
                    || writes.any(|w| {
                        w.kind == WriteKind::Delete
                            && w.number >= issued
                            && self.failed_and_replaced(w.number)
                    })
            }
            Read::Version { version, .. } => self.failed_and_replaced(version),
        }
    }

    /// Returns true if this version failed and a later write was acknowledged, so that a word no
    /// longer knows of the failure.
    fn failed_and_replaced(&self, version: u32) -> bool {
        let failed = Some(WriteEnd::Failed);
        let acknowledged = Some(WriteEnd::Acknowledged);
        let mut writes = self.reference.writes.iter();
        writes.clone().any(|w| w.number == version && w.outcome == failed)
            && writes.any(|w| w.number > version && w.outcome == acknowledged)
    }
}

fn value(number: u32, kind: WriteKind) -> Read {
    match kind {
        WriteKind::Put => ours(number),
        WriteKind::Delete => Read::Absent,
    }
}

fn illegal(judgement: Judgement) -> bool {
    matches!(judgement, Judgement::Illegal { .. })
}

/// Returns true if both judgements are the same. Under a linearizable store *stale* and
/// *resurrected* may differ: they are told apart by acknowledgements that a word marked observed
/// does not tell.
fn same(mode: Mode, judged: Judgement, expected: Judgement) -> bool {
    let Judgement::Illegal { kind, floor, next, .. } = judged else { return judged == expected };
    let Judgement::Illegal { kind: kind_, floor: floor_, next: next_, .. } = expected else {
        return false;
    };
    let phantom = |kind| kind == AnomalyKind::Phantom;
    let kinds = kind == kind_ || mode.linearizable && phantom(kind) == phantom(kind_);
    kinds && next == next_ && (floor == floor_ || floor_ == u32::MAX)
}

fn run(mode: Mode, histories: u64, steps: u64) -> Counts {
    let initial = if mode.existing_data { Initial::Unjudged } else { Initial::Never };
    let ledger = Ledger::new(LedgerConfig {
        slots: histories,
        linearizable: mode.linearizable,
        staleness: std::time::Duration::ZERO,
        may_forget: false,
        overlap_capacity: histories as usize,
        initial,
        expiry: None,
        may_apply_again: false,
        taken_over: None,
    })
    .unwrap();
    let mut counts = Counts::default();
    let mut contradicted = 0;
    for slot in 0..histories {
        let mut random = Random(slot);
        let there = mode.existing_data && random.chance(50);
        let mut bench = Bench {
            mode,
            others: ledger.overlapping(),
            ledger: &ledger,
            slot,
            random,
            reference: Reference::new(mode.linearizable, mode.existing_data),
            register: if there { earlier() } else { Read::Absent },
            writing: Vec::new(),
            loose: Vec::new(),
            reading: Vec::new(),
            stop: false,
        };
        let mut stopped = false;
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..steps {
                bench.step(&mut counts);
                if bench.reference.contradicted || bench.stop {
                    stopped = bench.reference.contradicted;
                    break;
                }
            }
        }));
        contradicted += u64::from(stopped);
        if let Err(panic) = told {
            eprintln!("history {slot} of {mode:?}");
            std::panic::resume_unwind(panic);
        }
    }
    assert!(ledger.lost() <= contradicted, "{} slots unknown in {mode:?}", ledger.lost());
    assert!(mode.faulty > 0 || contradicted == 0);
    counts
}

fn modes(faulty: u64) -> impl Iterator<Item = Mode> {
    (0..32).map(move |bits: u32| Mode {
        linearizable: bits & 1 != 0,
        existing_data: bits & 2 != 0,
        deletes: bits & 4 != 0,
        indeterminate: bits & 8 != 0,
        writers: if bits & 16 != 0 { 3 } else { 1 },
        faulty,
    })
}

#[test]
fn a_correct_register_is_never_accused() {
    for mode in modes(0) {
        let counts = run(mode, 8_000, 80);
        assert_eq!(counts.illegal, 0, "{mode:?}");
        assert!(counts.reads > 20_000);
    }
}

#[test]
fn a_faulty_register_is_judged_as_the_definition_says() {
    for faulty in [15, 60] {
        for mode in modes(faulty) {
            let counts = run(mode, 6_000, 80);
            assert!(counts.illegal > 1_000, "{mode:?}: {} illegal", counts.illegal);
            let share = counts.given_away as f64 / counts.illegal as f64;
            assert!(share < 0.05, "{mode:?}: {share} of the illegal reads passed");
        }
    }
}

#[test]
fn a_session_that_cannot_be_seen_accuses_nobody() {
    let initial = Initial::Unjudged;
    let config = LedgerConfig {
        slots: 1,
        linearizable: true,
        staleness: std::time::Duration::ZERO,
        may_forget: false,
        overlap_capacity: 1,
        initial,
        expiry: None,
        may_apply_again: false,
        taken_over: None,
    };
    let tiny = |version| Read::Version { version, session: WriterRun::Unseen };
    let ledger = Ledger::new(config).unwrap();
    let read = |found| {
        let ticket = ledger.begin_read(0);
        ledger.end_read(0, ticket, found, 0, 0)
    };
    assert_eq!(read(tiny(57)), Judgement::StampOnly);
    let first = ledger.begin_write(0, WriteKind::Put);
    let second = ledger.begin_write(0, WriteKind::Put);
    assert_eq!(read(tiny(1)), Judgement::StampOnly);
    assert_eq!(read(tiny(57)), Judgement::Legal);
    ledger.end_write(0, first, WriteEnd::Acknowledged, 0);
    ledger.end_write(0, second, WriteEnd::Acknowledged, 0);
    assert!(illegal(read(tiny(57))));
    assert_eq!(read(tiny(2)), Judgement::Legal);
}
