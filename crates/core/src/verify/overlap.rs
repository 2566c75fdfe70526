//! The side table: slots whose writes overlap, or ended without an answer, with the interval of
//! each write that may still be read.
//!
//! An entry counts events (a write begins, a write ends, a read that tells something ends) under its
//! shard's lock; that count is its clock. A version's write goes from `begin` to `end`, which is
//! [`NEVER`] while it is in flight, and always if it is indeterminate. `superseded_at` is the first
//! event at which an acknowledged write ended that had begun after `end`. A read registers the clock
//! before it is sent, and a version is illegal to it if and only if `superseded_at` is not later.
//!
//! **Why one pass is enough.** A write `w` that is acknowledged now supersedes exactly the versions
//! with `end < begin(w)`; a version that ends later ends after `begin(w)`, so `w` never supersedes
//! it, and the first event that supersedes a version is the smallest such end.
//!
//! **Why it stays small.** A version is kept while it is not superseded, or while a read is registered
//! that was sent between `begin` and `superseded_at`. Any other version is illegal to every registered
//! read that was sent after it began, and legal to every one that was sent before (its number is at or
//! above the read's `next`), so nothing is lost with it. Of dropped deletes a read needs the highest
//! number only.
//!
//! **Under a linearizable store** a read that legally found version `v` shows that `v` took effect
//! between the later of the read's start and `begin(v)`, and the read's answer: it acts like an
//! acknowledged write over that time, and `v` has ended by the answer at the latest. A read that found
//! nothing shows that some delete took effect: puts that had ended before the read and before all
//! deletes that it might have found are superseded; if only one delete can have been found, it has
//! ended. This never applies to what was there before the run.
//!
//! **Back to one word**: nothing in flight, no read registered, one version left, determinate, and
//! every later version failed.

mod table;

use super::judgement::{
    Expiry, Past, Presence, Rules, SlotState, Tick, VersionStatus, WriteEnd, WriteKind,
};
use super::ledger::word::{Base, MOST_GAP, Word};
use crate::measure::Nanos;

pub(super) use table::{Shard, Table};

const NEVER: u64 = u64::MAX;
/// Highest number of versions that one slot may hold in the table; beyond that the slot becomes unknown.
pub const MOST_KEPT: usize = 4096;
/// Highest number of runs of failed versions that are remembered; beyond that the oldest are named stale, not phantom.
const MOST_FAILED_RUNS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Flight,
    Acknowledged,
    Indeterminate,
}

/// One version that may still matter. Number 0 stands for the state before the run: as a put for the
/// existing record, as a delete for its absence.
#[derive(Clone, Copy, Debug)]
struct Version {
    number: u32,
    kind: WriteKind,
    state: State,
    /// Tick of the acknowledgement; it has a meaning only if the version is acknowledged.
    tick: Tick,
    begin: u64,
    end: u64,
    superseded_at: u64,
    /// Moment before which it was not sent, ns.
    not_before: Nanos,
}

impl Version {
    /// Returns true if it ended after it had begun, and was superseded, if it was, after it had ended.
    #[inline]
    fn is_in_order(&self) -> bool {
        let superseded = self.superseded_at != NEVER;
        self.begin <= self.end && (!superseded || self.end < self.superseded_at)
    }
}

/// A read in flight on a slot in the table, as its ticket remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Registered {
    /// The entry's clock when the read registered.
    pub(super) at: u64,
    /// Lowest version that had not begun then.
    pub(super) next: u32,
}

/// A slot in the table.
#[derive(Debug, Default)]
pub(super) struct Entry {
    versions: Vec<Version>,
    /// Reads in flight as (clock at registration, number of them), by clock.
    reads: Vec<(u64, u32)>,
    /// Failed versions as runs (first, last), ascending, not adjacent.
    failed: Vec<(u32, u32)>,
    clock: u64,
    /// Highest number of a delete that is no longer kept.
    dropped_delete: u32,
    /// Version below which kinds of versions are not known.
    known_from: u32,
    /// Tick of the latest acknowledgement, or read that told something.
    latest: Tick,
    /// True if a read had told something before the slot came here, and nobody knows when.
    observed_before: bool,
}

/// Contradiction of a driver: it said that a write surely failed, but a read had found it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

impl Entry {
    /// Fills the entry with what a word says.
    #[inline]
    pub(super) fn open(&mut self, word: Word, existing_data: bool, slack: Nanos) {
        self.clear();
        self.known_from = word.current();
        self.latest = word.tick();
        self.observed_before = word.observed();
        let base = |number, kind| Version {
            number,
            kind,
            state: State::Acknowledged,
            tick: word.tick(),
            begin: 0,
            end: 0,
            superseded_at: NEVER,
            not_before: word.tick().earliest().saturating_sub(slack),
        };
        match word.base() {
            // A read has shown that the write in flight took its place.
            Base::Deleted if word.observed() => self.dropped_delete = word.current(),
            _ if word.observed() => {}
            Base::Present => self.versions.push(base(word.current(), WriteKind::Put)),
            Base::Deleted => self.versions.push(base(word.current(), WriteKind::Delete)),
            Base::Found => self.versions.push(base(0, WriteKind::Put)),
            Base::Pristine => {
                self.versions.push(base(0, WriteKind::Delete));
                if existing_data {
                    self.versions.push(base(0, WriteKind::Put));
                }
            }
        }
        if word.current() + 1 < word.open() {
            self.failed.push((word.current() + 1, word.open() - 1));
        }
        if let Some(kind) = word.flight_kind() {
            self.begin(word.issued(), kind);
            if word.observed() {
                self.versions[0].end = self.clock;
            }
        }
    }

    #[inline]
    fn clear(&mut self) {
        self.versions.clear();
        self.reads.clear();
        self.failed.clear();
        *self = Entry {
            versions: std::mem::take(&mut self.versions),
            reads: std::mem::take(&mut self.reads),
            failed: std::mem::take(&mut self.failed),
            ..Entry::default()
        };
    }

    /// Begins a write, before it is sent.
    #[inline]
    pub(super) fn begin(&mut self, number: u32, kind: WriteKind) {
        self.clock += 1;
        self.versions.push(Version {
            number,
            kind,
            state: State::Flight,
            tick: Tick::default(),
            begin: self.clock,
            end: NEVER,
            superseded_at: NEVER,
            not_before: self.latest.earliest(),
        });
    }

    /// Ends a write, after its answer.
    #[inline]
    pub(super) fn end(
        &mut self,
        number: u32,
        end: WriteEnd,
        done: Nanos,
        slack: Nanos,
    ) -> Result<(), Contradiction> {
        self.clock += 1;
        let clock = self.clock;
        let Some(place) = self.versions.iter().position(|v| v.number == number) else {
            debug_assert!(false, "ends-once: version {number} is not kept");
            return Ok(());
        };
        let version = &mut self.versions[place];
        debug_assert!(version.state == State::Flight, "ends-once: {version:?}");
        let observed = version.end != NEVER;
        match end {
            WriteEnd::Failed if observed => return Err(Contradiction),
            WriteEnd::Failed => {
                self.versions.swap_remove(place);
                self.remember_failed(number);
            }
            WriteEnd::Indeterminate if !observed => version.state = State::Indeterminate,
            // An observed write took effect, whether or not its answer came.
            WriteEnd::Indeterminate | WriteEnd::Acknowledged => {
                version.state = State::Acknowledged;
                version.end = version.end.min(clock);
                version.tick = Tick::of(done);
                version.not_before = version.not_before.max(done.saturating_sub(slack));
                let (begin, tick) = (version.begin, version.tick);
                self.latest = self.latest.max(tick);
                self.supersede(begin, |other| other.number == number);
            }
        }
        Ok(())
    }

    /// Supersedes now all versions that ended before `begin`, except those that `spared` names.
    #[inline]
    fn supersede(&mut self, begin: u64, spared: impl Fn(&Version) -> bool) {
        for version in &mut self.versions {
            if version.end < begin && version.superseded_at == NEVER && !spared(version) {
                version.superseded_at = self.clock;
            }
        }
    }

    #[inline]
    fn remember_failed(&mut self, number: u32) {
        let place = self.failed.partition_point(|run| run.1 < number);
        let joins_next = self.failed.get(place).is_some_and(|run| run.0 == number + 1);
        let joins_last = place > 0 && self.failed[place - 1].1 + 1 == number;
        match (joins_last, joins_next) {
            (true, true) => {
                self.failed[place - 1].1 = self.failed[place].1;
                self.failed.remove(place);
            }
            (true, false) => self.failed[place - 1].1 = number,
            (false, true) => self.failed[place].0 = number,
            (false, false) => self.failed.insert(place, (number, number)),
        }
        if self.failed.len() > MOST_FAILED_RUNS {
            self.failed.remove(0);
        }
    }

    /// Registers a read that is about to be sent; `issued` is the highest version so far.
    #[inline]
    pub(super) fn register(&mut self, issued: u32) -> Registered {
        match self.reads.last_mut() {
            Some((at, count)) if *at == self.clock => *count += 1,
            _ => self.reads.push((self.clock, 1)),
        }
        Registered { at: self.clock, next: issued + 1 }
    }

    /// Ends the registration of a read.
    #[inline]
    pub(super) fn unregister(&mut self, read: Registered) {
        if let Ok(place) = self.reads.binary_search_by_key(&read.at, |(at, _)| *at) {
            self.reads[place].1 -= 1;
            if self.reads[place].1 == 0 {
                self.reads.remove(place);
            }
        }
    }

    /// Enters that a legal read of a linearizable store has found a version of this run. `at` is the
    /// read's start on this entry's clock, `None` if it was sent before the slot came here. `settle`
    /// says that a version whose answer never came counts as acknowledged from now on.
    #[inline]
    pub(super) fn observe_put(
        &mut self,
        number: u32,
        at: Option<u64>,
        answered: Nanos,
        settle: bool,
    ) {
        self.clock += 1;
        let Some(place) = self.position(number, WriteKind::Put) else {
            // Superseded since by a write that began after it had ended: all that the read could
            // supersede is superseded already.
            return;
        };
        let begin = self.versions[place].begin.max(at.map_or(0, |at| at + 1));
        self.settle(place, answered, settle);
        self.supersede(begin, |other| other.number == number && other.kind == WriteKind::Put);
        self.latest = self.latest.max(Tick::of(answered));
    }

    /// Enters that a read has found what was there before the run. `at` is as for
    /// [`Entry::observe_put`], if the store is linearizable; else `None`.
    #[inline]
    pub(super) fn observe_existing(&mut self, at: Option<u64>, answered: Nanos) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(place) = self.position(0, WriteKind::Delete) {
            let blank = &mut self.versions[place].superseded_at;
            *blank = clock.min(*blank);
        }
        if let Some(at) = at {
            self.supersede(at + 1, |other| other.number == 0);
        }
        self.latest = self.latest.max(Tick::of(answered));
    }

    /// Enters that a legal read of a linearizable store has found nothing. `legal` tells which deletes
    /// (by number and first event at which they were superseded) it may have found; `only` that those
    /// kept here are all.
    #[inline]
    pub(super) fn observe_absence(
        &mut self,
        legal: impl Fn(u32, u64) -> bool,
        only: bool,
        at: Option<u64>,
        answered: Nanos,
    ) {
        self.clock += 1;
        let candidate =
            |v: &Version| v.kind == WriteKind::Delete && legal(v.number, v.superseded_at);
        let earliest = self.versions.iter().filter(|v| candidate(v)).map(|v| v.begin).min();
        let earliest = earliest.filter(|_| only).unwrap_or(0);
        let begin = earliest.max(at.map_or(0, |at| at + 1));
        let mut candidates = (0..self.versions.len()).filter(|i| candidate(&self.versions[*i]));
        let first = candidates.next().filter(|_| only && candidates.next().is_none());
        self.supersede(begin, |other| other.kind == WriteKind::Delete || other.number == 0);
        if let Some(place) = first.filter(|place| self.versions[*place].number > 0) {
            let delete = self.versions[place];
            self.settle(place, answered, true);
            self.supersede(delete.begin, |other| other.number == delete.number);
        }
        self.latest = self.latest.max(Tick::of(answered));
    }

    /// Ends a version of which a read has shown that it took effect.
    #[inline]
    fn settle(&mut self, place: usize, answered: Nanos, indeterminate_too: bool) {
        let clock = self.clock;
        let version = &mut self.versions[place];
        match version.state {
            State::Acknowledged => {}
            State::Flight => version.end = version.end.min(clock),
            State::Indeterminate if indeterminate_too => {
                version.end = clock;
                version.state = State::Acknowledged;
                version.tick = Tick::of(answered);
            }
            State::Indeterminate => {}
        }
    }

    #[inline]
    fn position(&self, number: u32, kind: WriteKind) -> Option<usize> {
        self.versions.iter().position(|v| v.number == number && v.kind == kind)
    }

    /// Returns the version below which every one has been superseded, or failed, or is indeterminate and may be current for ever.
    #[inline]
    pub(super) fn superseded_below(&self) -> u32 {
        let standing = |v: &&Version| v.superseded_at == NEVER && v.state != State::Indeterminate;
        self.versions.iter().filter(standing).map(|v| v.number).min().unwrap_or(0)
    }

    /// Drops versions that no read can need.
    #[inline]
    pub(super) fn prune(&mut self) {
        debug_assert!(
            self.versions.iter().all(Version::is_in_order),
            "superseded-after-end: {:?}",
            self.versions
        );
        let reads = &self.reads;
        let dropped_delete = &mut self.dropped_delete;
        self.versions.retain(|version| {
            let first = reads.partition_point(|(at, _)| *at < version.begin);
            let needed = version.state == State::Flight
                || version.superseded_at == NEVER
                || reads.get(first).is_some_and(|(at, _)| *at < version.superseded_at);
            if !needed && version.kind == WriteKind::Delete {
                *dropped_delete = version.number.max(*dropped_delete);
            }
            needed
        });
    }

    /// Returns true if the entry has more versions than it may hold.
    #[inline]
    pub(super) fn is_overfull(&self) -> bool {
        self.versions.len() > MOST_KEPT
    }

    /// Returns the word that says all that this entry says, if there is one. `issued` is the highest version.
    #[inline]
    pub(super) fn resting(&self, issued: u32, existing_data: bool) -> Option<Word> {
        let settled = |v: &Version| v.state == State::Acknowledged && v.superseded_at == NEVER;
        if !self.reads.is_empty() || !self.versions.iter().all(settled) {
            return None;
        }
        let (current, base) = match self.versions[..] {
            [v] if v.number > 0 && v.kind == WriteKind::Put => (v.number, Base::Present),
            [v] if v.number > 0 => (v.number, Base::Deleted),
            [v] if v.kind == WriteKind::Put => (0, Base::Found),
            [_] if !existing_data => (0, Base::Pristine),
            [a, b] if a.number == 0 && b.number == 0 => (0, Base::Pristine),
            _ => return None,
        };
        let gap = issued - current;
        let all_failed =
            gap == 0 || self.failed.iter().any(|run| run.0 <= current + 1 && run.1 == issued);
        if !all_failed || current > 0 && gap > MOST_GAP {
            return None;
        }
        let gap = if current > 0 { gap } else { 0 };
        Some(Word::new(issued, gap, self.versions[0].tick, base))
    }

    #[inline]
    pub(super) fn has_failed(&self, number: u32) -> bool {
        let place = self.failed.partition_point(|run| run.1 < number);
        self.failed.get(place).is_some_and(|run| run.0 <= number)
    }

    /// Returns true if a delete of version `from` or later has begun and not failed; `None` if that is not known.
    #[inline]
    pub(super) fn delete_since(&self, from: u32) -> Option<bool> {
        let deletes = |v: &Version| v.kind == WriteKind::Delete && v.number >= from;
        if self.dropped_delete >= from.max(1) || self.versions.iter().any(deletes) {
            return Some(true);
        }
        (self.known_from <= from).then_some(false)
    }

    /// Returns true if no delete of version `from` or later is missing here, except failed ones.
    #[inline]
    pub(super) fn keeps_deletes_since(&self, from: u32) -> bool {
        self.known_from <= from && self.dropped_delete < from.max(1)
    }

    /// Returns true if the entry keeps that nothing was there before the run: it may still matter to a
    /// registered read.
    #[inline]
    pub(super) fn keeps_blank(&self) -> bool {
        self.position(0, WriteKind::Delete).is_some()
    }

    #[inline]
    pub(super) fn put_begun(&self) -> bool {
        self.versions.iter().any(|v| v.kind == WriteKind::Put && v.number > 0)
    }

    /// Returns what must be there now.
    #[inline]
    pub(super) fn state(&self, issued: u32, rules: &Rules) -> SlotState {
        let current = || self.versions.iter().filter(|v| v.superseded_at == NEVER);
        let may_vanish = rules.may_forget || rules.expiry.is_some();
        let put = current().any(|v| v.kind == WriteKind::Put);
        let delete = current().any(|v| v.kind == WriteKind::Delete);
        let presence = match (put, delete) {
            (true, false) if !may_vanish => Presence::MustBePresent,
            (false, true) if current().all(|v| v.number == 0) => Presence::NeverWritten,
            (false, true) => Presence::MustBeAbsent,
            (false, false) => Presence::Unknown,
            _ => Presence::MayBeEither,
        };
        SlotState {
            presence,
            floor: current().map(|v| v.number).min().unwrap_or(0),
            next: issued + 1,
            acknowledged: current().any(|v| v.number > 0 && v.state == State::Acknowledged),
        }
    }
}

/// View of an entry by a registered read.
pub(super) struct View<'a> {
    pub(super) entry: &'a Entry,
    pub(super) read: Registered,
    pub(super) issued: u32,
}

impl View<'_> {
    /// Returns the view of a read that is sent now.
    #[inline]
    pub(super) fn now(entry: &Entry, issued: u32) -> View<'_> {
        View { entry, read: Registered { at: entry.clock, next: issued + 1 }, issued }
    }

    /// Returns true if the last acknowledgement, and the last read that told something, came before `sent`.
    #[inline]
    pub(super) fn settled_before(&self, sent: Tick) -> bool {
        !self.entry.observed_before && self.entry.latest < sent
    }

    #[inline]
    fn kept(&self, number: u32, kind: WriteKind) -> Option<&Version> {
        self.entry.position(number, kind).map(|place| &self.entry.versions[place])
    }

    #[inline]
    fn legal(&self, version: &Version) -> bool {
        version.superseded_at > self.read.at
    }

    #[inline]
    fn existing(&self, kind: WriteKind) -> bool {
        self.kept(0, kind).is_some_and(|version| self.legal(version))
    }

    /// Lists versions that were acknowledged before the read was sent, and are legal to it.
    #[inline]
    fn grounds(&self) -> impl Iterator<Item = &Version> {
        self.entry
            .versions
            .iter()
            .filter(|v| v.state == State::Acknowledged && v.end <= self.read.at && self.legal(v))
    }

    /// Returns true if a delete that this read may have found is no longer kept.
    #[inline]
    pub(super) fn dropped_delete(&self) -> bool {
        self.entry.dropped_delete >= self.read.next
    }
}

impl Past for View<'_> {
    #[inline]
    fn standing(&self, version: u32) -> VersionStatus {
        if version == 0 || version > self.issued || self.kept(version, WriteKind::Delete).is_some()
        {
            return VersionStatus::NeverSent;
        }
        if self.entry.has_failed(version) {
            return VersionStatus::Failed;
        }
        if version >= self.read.next {
            return VersionStatus::Legal(None);
        }
        match self.kept(version, WriteKind::Put) {
            Some(v) if self.legal(v) => {
                let acknowledged = v.state == State::Acknowledged && v.end <= self.read.at;
                VersionStatus::Legal(acknowledged.then_some(v.tick))
            }
            _ => VersionStatus::Superseded,
        }
    }

    #[inline]
    fn earlier(&self) -> bool {
        self.existing(WriteKind::Put)
    }

    #[inline]
    fn blank(&self) -> bool {
        self.existing(WriteKind::Delete)
    }

    #[inline]
    fn deleted(&self) -> bool {
        let deletes = |v: &Version| v.kind == WriteKind::Delete && v.number > 0 && self.legal(v);
        self.dropped_delete() || self.entry.versions.iter().any(deletes)
    }

    #[inline]
    fn put_begun(&self) -> bool {
        self.entry.put_begun()
    }

    #[inline]
    fn buried(&self, version: u32) -> bool {
        self.grounds().any(|v| v.kind == WriteKind::Delete && v.number > version)
    }

    #[inline]
    fn may_have_expired(&self, expiry: &Expiry, answered: Nanos) -> bool {
        self.entry.versions.iter().any(|v| {
            let put = v.kind == WriteKind::Put && self.legal(v);
            put && (v.number == 0 || expiry.may_be_gone(v.not_before, answered))
        })
    }

    #[inline]
    fn floor(&self) -> u32 {
        let legal = self.entry.versions.iter().filter(|v| self.legal(v));
        legal.map(|v| v.number).min().unwrap_or(0)
    }

    #[inline]
    fn acknowledged(&self) -> Option<Tick> {
        self.grounds().filter(|v| v.number > 0).map(|v| v.tick).max()
    }

    #[inline]
    fn issued(&self) -> u32 {
        self.issued
    }
}
