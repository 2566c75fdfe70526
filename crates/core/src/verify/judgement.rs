//! Vocabulary of the ledger: what it is told and what it answers. Also the one rule by which it
//! judges a read: it holds what the read returned against what it may return.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::anomaly::AnomalyKind;
use super::stamp::{SeenStamp, WriterRun};
use crate::measure::Nanos;

/// Effect of a write on its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteKind {
    /// Gives the record a value.
    Put,
    /// Deletes the record.
    Delete,
}

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WriteEnd {
    /// The store answered that it is applied.
    Acknowledged,
    /// Surely not applied, now or later.
    Failed,
    /// Perhaps applied, now or later.
    Indeterminate,
}

/// Content that a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// No record.
    Absent,
    /// A value with a sound stamp.
    Version {
        /// Version in the stamp.
        version: u32,
        /// Run that wrote it.
        session: WriterRun,
    },
}

impl From<SeenStamp> for Read {
    #[inline]
    fn from(seen: SeenStamp) -> Read {
        Read::Version { version: seen.version(), session: seen.session() }
    }
}

/// Verdict of the ledger on what a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// A value that may be there.
    Legal,
    /// Nothing was found, and a first write has begun that need not be there yet.
    Early,
    /// Nothing was found, where nothing need be.
    LegalMiss,
    /// Nothing was found where a value was acknowledged, in a store that may forget.
    Forgotten,
    /// A value that an acknowledged write had replaced, for no longer than the store may be stale.
    LegalStale,
    /// A value whose order cannot be judged: existing data, or a row of a scan that a write may
    /// have overtaken.
    StampOnly,
    /// Nothing was found where existing data was to be expected and the ledger cannot judge.
    UnexpectedMiss,
    /// The ledger lost track of this slot: the side table was full, or versions ran out.
    Unknown,
    /// A value of a run that began after this one: it says nothing of the store.
    OtherRun,
    /// A value, or its absence, that no correct store returns.
    Illegal {
        /// Kind of the fault.
        kind: AnomalyKind,
        /// Oldest version that would have been legal; 0 if it was the state before the first write.
        floor: u32,
        /// Next version that the slot would get: all versions sent are below.
        next: u32,
        /// Lower bound of the time from the acknowledgement of the floor to the sending of the read,
        /// where known.
        behind: Option<Duration>,
    },
}

/// Content that a slot must have when nothing is in flight any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// A value: its write was acknowledged.
    MustBePresent,
    /// Nothing: its delete was acknowledged.
    MustBeAbsent,
    /// A value or nothing: indeterminate writes, existing data not yet read, time to live, eviction.
    MayBeEither,
    /// Nothing: no write that may have been applied was ever sent.
    NeverWritten,
    /// The ledger lost track of this slot.
    Unknown,
}

/// State of a slot by the ledger, for the final reading back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotState {
    /// Content that must be there.
    pub presence: Presence,
    /// Oldest version that is legal now; 0 is the state before the first write.
    pub floor: u32,
    /// Next version that the slot would get.
    pub next: u32,
    /// True if an acknowledged write is among those that may be current. If it is false and a value
    /// is there, that value was never acknowledged.
    pub acknowledged: bool,
}

/// Bounds between which records vanish by time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Shortest time to live that any write of the run gives.
    pub shortest: Duration,
    /// Longest time to live that any write of the run gives; `None` if some writes give none.
    pub longest: Option<Duration>,
    /// Time by which a record may vanish earlier or later than asked.
    pub precision: Duration,
    /// Longest time that a request may take, from before its version is drawn to after its end is
    /// told. The ledger keeps acknowledgements only, so a write may be this much older.
    pub slack: Duration,
}

impl Expiry {
    /// Returns true if a record whose write was sent at `sent` or later may be gone at `answered`.
    #[inline]
    pub(super) fn may_be_gone(&self, sent: Nanos, answered: Nanos) -> bool {
        let early = sent.saturating_add(nanos(self.shortest)).saturating_sub(nanos(self.precision));
        answered >= early
    }

    /// Returns true if a record whose write was acknowledged within `tick` must be gone at `sent`.
    #[inline]
    fn must_be_gone(&self, tick: Tick, sent: Nanos) -> bool {
        let (Some(longest), Some(acknowledged)) = (self.longest, tick.latest()) else {
            return false;
        };
        let late = acknowledged.saturating_add(nanos(longest));
        sent > late.saturating_add(nanos(self.precision))
    }

    #[inline]
    pub(super) fn slack(&self) -> Nanos {
        nanos(self.slack)
    }
}

#[inline]
fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

/// A moment to 1 ms in 28 bits: 74 hours, then saturated and good for no upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tick(pub(super) u32);

impl Tick {
    pub(super) const BITS: u32 = 28;
    pub(super) const SATURATED: Tick = Tick((1 << Tick::BITS) - 1);
    const NANOS: Nanos = 1_000_000;

    #[inline]
    pub(super) fn of(moment: Nanos) -> Tick {
        Tick((moment / Tick::NANOS).min(Nanos::from(Tick::SATURATED.0)) as u32)
    }

    /// Returns the first moment of this tick, ns.
    #[inline]
    pub(super) fn earliest(self) -> Nanos {
        Nanos::from(self.0) * Tick::NANOS
    }

    /// Returns the moment right after this tick, ns; `None` if it is saturated.
    #[inline]
    pub(super) fn latest(self) -> Option<Nanos> {
        (self != Tick::SATURATED).then(|| self.earliest() + Tick::NANOS)
    }
}

/// Content that a read found, by the ledger's rules for existing data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Absent,
    /// A version of this run.
    Ours(u32),
    /// A value that was there before this run.
    Earlier,
    /// A value of a run that began later; where clocks differ perhaps one that was there before.
    Newer,
    /// Either [`Found::Ours`], with this version, or [`Found::Earlier`]: the value is too short to
    /// tell its session.
    Either(u32),
}

impl Found {
    /// Classifies what a read found. `issued` is the highest version sent so far: a higher one
    /// cannot be this run's.
    #[inline]
    pub(super) fn of(read: Read, existing_data: bool, issued: u32) -> Found {
        match read {
            Read::Absent => Found::Absent,
            Read::Version { version, session: WriterRun::Ours } => Found::Ours(version),
            Read::Version { session: WriterRun::Earlier, .. } => Found::Earlier,
            Read::Version { session: WriterRun::Newer, .. } => Found::Newer,
            Read::Version { version, session: WriterRun::Unseen } if !existing_data => {
                Found::Ours(version)
            }
            Read::Version { version, session: WriterRun::Unseen } if version > issued => {
                Found::Earlier
            }
            Read::Version { version, session: WriterRun::Unseen } => Found::Either(version),
        }
    }
}

/// Status of a version of this run, as a read sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionStatus {
    /// It may be current; with the tick of its acknowledgement if that came before the read was
    /// sent.
    Legal(Option<Tick>),
    /// An acknowledged write took its place before the read was sent.
    Superseded,
    /// Surely not applied.
    Failed,
    /// No put carried it.
    NeverSent,
}

/// Knowledge of the ledger about the moment at which a read was sent, and about what has begun
/// since.
pub(super) trait Past {
    /// Returns the status of `version`, as the read sees it.
    fn standing(&self, version: u32) -> VersionStatus;
    /// Returns true if what was there before this run may still be there.
    fn earlier(&self) -> bool;
    /// Returns true if nothing may have been there before this run, and that may still hold.
    fn blank(&self) -> bool;
    /// Returns true if a delete of this run may be current.
    fn deleted(&self) -> bool;
    /// Returns true if a put has begun by now and has not failed.
    fn put_begun(&self) -> bool;
    /// Returns true if a delete later than `version` had ended when the read was sent, and nothing
    /// has taken its place.
    fn buried(&self, version: u32) -> bool;
    /// Returns true if a value that the read might have found may have expired at `answered`.
    fn may_have_expired(&self, expiry: &Expiry, answered: Nanos) -> bool;
    /// Returns the oldest legal version.
    fn floor(&self) -> u32;
    /// Returns the tick at which the floor was acknowledged, if it was.
    fn acknowledged(&self) -> Option<Tick>;
    /// Returns the highest version sent so far.
    fn issued(&self) -> u32;
}

/// Promises of the store and facts of the run that every slot of a ledger has in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) existing_data: bool,
    pub(super) may_forget: bool,
    pub(super) linearizable: bool,
    pub(super) expiry: Option<Expiry>,
}

impl Rules {
    /// Judges a read that found `found`, was sent at `times.sent` and answered at `times.answered`.
    #[inline]
    pub(super) fn judge(&self, found: Found, past: &impl Past, times: Times) -> Judgement {
        match found {
            Found::Absent => self.judge_absence(past, times),
            Found::Earlier | Found::Newer if past.earlier() && past.blank() => Judgement::StampOnly,
            Found::Newer if past.earlier() => Judgement::StampOnly,
            Found::Newer => Judgement::OtherRun,
            Found::Earlier if past.earlier() => Judgement::Legal,
            Found::Earlier if !self.existing_data => illegal(AnomalyKind::Phantom, past, times),
            Found::Earlier if past.buried(0) => illegal(AnomalyKind::Resurrected, past, times),
            Found::Earlier => illegal(AnomalyKind::Stale, past, times),
            Found::Either(_) if past.earlier() => Judgement::StampOnly,
            Found::Ours(version) | Found::Either(version) => {
                self.judge_version(version, past, times)
            }
        }
    }

    #[inline]
    fn judge_version(&self, version: u32, past: &impl Past, times: Times) -> Judgement {
        let kind = match past.standing(version) {
            VersionStatus::Legal(Some(tick)) if self.must_be_gone(tick, times) => {
                AnomalyKind::Stale
            }
            VersionStatus::Legal(_) => return Judgement::Legal,
            VersionStatus::Failed | VersionStatus::NeverSent => AnomalyKind::Phantom,
            VersionStatus::Superseded if past.buried(version) => AnomalyKind::Resurrected,
            VersionStatus::Superseded => AnomalyKind::Stale,
        };
        illegal(kind, past, times)
    }

    #[inline]
    fn must_be_gone(&self, tick: Tick, times: Times) -> bool {
        let sent = times.sent.saturating_sub(times.staleness);
        self.expiry.is_some_and(|expiry| expiry.must_be_gone(tick, sent))
    }

    #[inline]
    fn judge_absence(&self, past: &impl Past, times: Times) -> Judgement {
        if past.deleted() {
            return Judgement::LegalMiss;
        }
        if past.blank() && !past.earlier() {
            return if past.put_begun() { Judgement::Early } else { Judgement::LegalMiss };
        }
        if past.blank() {
            return Judgement::UnexpectedMiss;
        }
        if self.expiry.is_some_and(|expiry| {
            // A write that began after the read was sent, or one that was there already.
            let since = times.sent.saturating_sub(expiry.slack());
            expiry.may_be_gone(since, times.answered)
                || past.may_have_expired(&expiry, times.answered)
        }) {
            return Judgement::LegalMiss;
        }
        match self.may_forget {
            true => Judgement::Forgotten,
            false => illegal(AnomalyKind::Stale, past, times),
        }
    }

    /// Returns true if a read that found nothing tells something of the puts before it.
    #[inline]
    pub(super) fn absence_is_evidence(&self) -> bool {
        self.linearizable && !self.may_forget && self.expiry.is_none()
    }
}

/// Times of a read, ns: when it was sent, when it was answered, and how stale it may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) sent: Nanos,
    pub(super) answered: Nanos,
    pub(super) staleness: Nanos,
}

#[inline]
fn illegal(kind: AnomalyKind, past: &impl Past, times: Times) -> Judgement {
    let behind = past
        .acknowledged()
        .and_then(Tick::latest)
        .and_then(|acknowledged| times.sent.checked_sub(acknowledged))
        .map(Duration::from_nanos);
    Judgement::Illegal { kind, floor: past.floor(), next: past.issued() + 1, behind }
}
