//! Shared parts of the ledger's tests: a random source, and the definition applied directly to a
//! kept history, without any of the ledger's economy.

#![allow(dead_code)] // Each test file uses its part.

use kvdyno_core::ground::random::{GOLDEN, mix64};
use kvdyno_core::verify::{AnomalyKind, Judgement, Read, WriteEnd, WriteKind, WriterRun};

/// SplitMix64: good enough to choose, and a seed is one number.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix64(self.0)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub fn ours(version: u32) -> Read {
    Read::Version { version, session: WriterRun::Ours }
}

pub fn earlier() -> Read {
    Read::Version { version: 9, session: WriterRun::Earlier }
}

/// One write of the history. Number 0 stands for the state before it, as a put and as a delete.
#[derive(Clone, Debug)]
pub struct Write {
    pub number: u32,
    pub kind: WriteKind,
    pub begin: u64,
    /// Tick at which it ended; `None` if it is in flight or indeterminate.
    pub end: Option<u64>,
    pub outcome: Option<WriteEnd>,
    /// True if a read has shown that it took effect.
    pub observed: bool,
}

/// Write, or read that tells something, which takes the place of all that ended before it began,
/// once it has ended.
#[derive(Clone, Debug)]
struct Superseder {
    begin: u64,
    end: u64,
    spares: fn(&Write, u32) -> bool,
    number: u32,
}

/// A slot's history, kept whole.
#[derive(Clone, Debug)]
pub struct Reference {
    pub linearizable: bool,
    pub existing_data: bool,
    pub writes: Vec<Write>,
    superseders: Vec<Superseder>,
    clock: u64,
    pub issued: u32,
    /// True if a write was read, and then said to have failed.
    pub contradicted: bool,
}

impl Reference {
    pub fn new(linearizable: bool, existing_data: bool) -> Reference {
        let zero = |kind| Write {
            number: 0,
            kind,
            begin: 0,
            end: Some(0),
            outcome: Some(WriteEnd::Acknowledged),
            observed: false,
        };
        let mut writes = vec![zero(WriteKind::Delete)];
        if existing_data {
            writes.push(zero(WriteKind::Put));
        }
        Reference {
            linearizable,
            existing_data,
            writes,
            superseders: Vec::new(),
            clock: 0,
            issued: 0,
            contradicted: false,
        }
    }

    /// Advances the clock by one event. Even numbers are events; a snapshot is the odd number after
    /// the last one.
    fn tick(&mut self) -> u64 {
        self.clock += 2;
        self.clock
    }

    pub fn begin_write(&mut self, kind: WriteKind) -> u32 {
        let begin = self.tick();
        self.issued += 1;
        let number = self.issued;
        self.writes.push(Write { number, kind, begin, end: None, outcome: None, observed: false });
        number
    }

    pub fn end_write(&mut self, number: u32, outcome: WriteEnd) {
        let now = self.tick();
        let write = self.writes.iter_mut().find(|w| w.number == number && number > 0).unwrap();
        self.contradicted |= write.observed && outcome == WriteEnd::Failed;
        write.outcome = Some(outcome);
        if outcome == WriteEnd::Indeterminate && write.observed {
            write.outcome = Some(WriteEnd::Acknowledged);
        }
        if write.outcome == Some(WriteEnd::Acknowledged) {
            write.end = Some(write.end.unwrap_or(now));
            let begin = write.begin;
            let spares = |w: &Write, number| w.number == number;
            self.superseders.push(Superseder { begin, end: now, spares, number });
        }
    }

    pub fn begin_read(&self) -> u64 {
        self.clock + 1
    }

    /// Returns true if an acknowledged write began after this one's end, and ended before the
    /// snapshot: the definition.
    fn superseded(&self, write: &Write, snapshot: u64) -> bool {
        let Some(end) = write.end else { return false };
        self.superseders
            .iter()
            .any(|s| s.begin > end && s.end < snapshot && !(s.spares)(write, s.number))
    }

    fn legal(&self, write: &Write, snapshot: u64) -> bool {
        write.outcome != Some(WriteEnd::Failed) && !self.superseded(write, snapshot)
    }

    fn existing(&self, kind: WriteKind, snapshot: u64) -> bool {
        self.writes.iter().any(|w| w.number == 0 && w.kind == kind && self.legal(w, snapshot))
    }

    /// Returns what the ledger should answer; `behind` is left out.
    pub fn judge(&self, read: Read, snapshot: u64) -> Judgement {
        let blank = self.existing(WriteKind::Delete, snapshot);
        let there = self.existing(WriteKind::Put, snapshot);
        let deletes = self.writes.iter().filter(|w| w.number > 0 && w.kind == WriteKind::Delete);
        match read {
            Read::Absent if deletes.clone().any(|w| self.legal(w, snapshot)) => {
                Judgement::LegalMiss
            }
            Read::Absent if blank && there => Judgement::UnexpectedMiss,
            Read::Absent if blank && self.put_begun() => Judgement::Early,
            Read::Absent if blank => Judgement::LegalMiss,
            Read::Absent => self.illegal(AnomalyKind::Stale, snapshot),
            Read::Version { session: WriterRun::Earlier, .. } if there && blank => {
                Judgement::StampOnly
            }
            Read::Version { session: WriterRun::Earlier, .. } if there => Judgement::Legal,
            Read::Version { session: WriterRun::Earlier, .. } if self.existing_data => {
                self.illegal(self.old(0, snapshot), snapshot)
            }
            Read::Version { session: WriterRun::Earlier, .. } => {
                self.illegal(AnomalyKind::Phantom, snapshot)
            }
            Read::Version { version, .. } => {
                let put = |w: &&Write| w.number == version && w.kind == WriteKind::Put;
                match self.writes.iter().find(put) {
                    Some(write) if version > 0 && write.outcome != Some(WriteEnd::Failed) => {
                        if self.legal(write, snapshot) {
                            return Judgement::Legal;
                        }
                        self.illegal(self.old(version, snapshot), snapshot)
                    }
                    _ => self.illegal(AnomalyKind::Phantom, snapshot),
                }
            }
        }
    }

    fn put_begun(&self) -> bool {
        let failed = Some(WriteEnd::Failed);
        let put = |w: &Write| w.number > 0 && w.kind == WriteKind::Put && w.outcome != failed;
        self.writes.iter().any(put)
    }

    fn old(&self, version: u32, snapshot: u64) -> AnomalyKind {
        let buried = self.writes.iter().any(|w| {
            w.kind == WriteKind::Delete
                && w.number > version
                && w.outcome == Some(WriteEnd::Acknowledged)
                && w.end.is_some_and(|end| end < snapshot)
                && self.legal(w, snapshot)
        });
        if buried { AnomalyKind::Resurrected } else { AnomalyKind::Stale }
    }

    fn illegal(&self, kind: AnomalyKind, snapshot: u64) -> Judgement {
        let legal = self.writes.iter().filter(|w| w.begin < snapshot && self.legal(w, snapshot));
        let floor = legal.map(|w| w.number).min().unwrap_or(u32::MAX);
        Judgement::Illegal { kind, floor, next: self.issued + 1, behind: None }
    }

    /// Enters what a legal read has told.
    pub fn end_read(&mut self, read: Read, snapshot: u64, judgement: Judgement) {
        let now = self.tick();
        if matches!(judgement, Judgement::Illegal { .. }) {
            return;
        }
        match read {
            Read::Version { session: WriterRun::Earlier, .. } => {
                let spares: fn(&Write, u32) -> bool =
                    |w, _| w.number > 0 || w.kind == WriteKind::Put;
                self.superseders.push(Superseder { begin: 1, end: now, spares, number: 0 });
                if self.linearizable {
                    let spares: fn(&Write, u32) -> bool = |w, _| w.number == 0;
                    let begin = snapshot;
                    self.superseders.push(Superseder { begin, end: now, spares, number: 0 });
                }
            }
            Read::Version { version, .. } if self.linearizable => {
                let begin = self.settle(version, now).max(snapshot);
                let spares = |w: &Write, number| w.number == number;
                self.superseders.push(Superseder { begin, end: now, spares, number: version });
            }
            Read::Absent if self.linearizable => self.note_absence(snapshot, now),
            _ => {}
        }
    }

    fn settle(&mut self, number: u32, now: u64) -> u64 {
        let write = self.writes.iter_mut().find(|w| w.number == number && number > 0).unwrap();
        write.observed = true;
        write.end = Some(write.end.unwrap_or(now));
        if write.outcome == Some(WriteEnd::Indeterminate) {
            write.outcome = Some(WriteEnd::Acknowledged);
        }
        write.begin
    }

    fn note_absence(&mut self, snapshot: u64, now: u64) {
        let candidate = |w: &&Write| w.kind == WriteKind::Delete && self.legal(w, snapshot);
        let candidates: Vec<(u32, u64)> =
            self.writes.iter().filter(candidate).map(|w| (w.number, w.begin)).collect();
        let begin = candidates.iter().map(|c| c.1).min().unwrap().max(snapshot);
        let spares: fn(&Write, u32) -> bool = |w, _| w.kind == WriteKind::Delete || w.number == 0;
        self.superseders.push(Superseder { begin, end: now, spares, number: 0 });
        if let [(number, begin)] = candidates[..]
            && number > 0
        {
            self.settle(number, now);
            let spares = |w: &Write, number| w.number == number;
            self.superseders.push(Superseder { begin, end: now, spares, number });
        }
    }
}
