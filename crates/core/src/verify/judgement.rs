//! What is told to the ledger and what it answers, and the one rule that turns what a read may
//! return into a verdict on what it did return.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::anomaly::AnomalyKind;
use super::stamp::{SeenStamp, WriterRun};
use crate::measure::Nanos;

/// What a write does to its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteKind {
    /// Gives it a value.
    Put,
    /// Takes it away.
    Delete,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WriteEnd {
    /// The store said that it is done.
    Acknowledged,
    /// Surely not applied, now or later.
    Failed,
    /// May have been applied, may yet be.
    Indeterminate,
}

/// What a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// No record.
    Absent,
    /// A value with a sound stamp.
    Version {
        /// Version in the stamp.
        version: u32,
        /// Which run wrote it.
        session: WriterRun,
    },
}

impl From<SeenStamp> for Read {
    #[inline]
    fn from(seen: SeenStamp) -> Read {
        Read::Version { version: seen.version(), session: seen.session() }
    }
}

/// Whether a read may legally have found what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// A value that may be there.
    Legal,
    /// Nothing, and a first write has begun that need not be there yet.
    Early,
    /// Nothing, where nothing need be.
    LegalMiss,
    /// Nothing, where a value was acknowledged, from a store that may forget.
    Forgotten,
    /// What an acknowledged write had replaced, for no longer than the store may be stale.
    LegalStale,
    /// A value whose order cannot be judged: existing data, or a row of a scan that a write may
    /// have overtaken.
    StampOnly,
    /// Nothing, where existing data was to be expected and the ledger cannot judge.
    UnexpectedMiss,
    /// The ledger lost track of this slot: the side table was full, or versions ran out.
    Unknown,
    /// A value that a run wrote which began after this one: it says nothing of the store.
    OtherRun,
    /// What no correct store returns.
    Illegal {
        /// What is wrong.
        kind: AnomalyKind,
        /// Oldest version that would have been legal; 0 if it was the state before the first write.
        floor: u32,
        /// Next version that the slot would get: all versions sent are below.
        next: u32,
        /// At least how long before the read was sent the floor had been acknowledged, where known.
        behind: Option<Duration>,
    },
}

/// What must be in a slot when nothing is in flight any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// A value: its write was acknowledged.
    MustBePresent,
    /// Nothing: its delete was acknowledged.
    MustBeAbsent,
    /// A value or nothing: indeterminate writes, existing data not yet read, time to live, eviction.
    MayBeEither,
    /// Nothing, and no write that may have been applied was ever sent.
    NeverWritten,
    /// The ledger lost track of this slot.
    Unknown,
}

/// What the ledger says of a slot, for the final reading back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotState {
    /// What must be there.
    pub presence: Presence,
    /// Oldest version that is legal now; 0 is the state before the first write.
    pub floor: u32,
    /// Next version that the slot would get.
    pub next: u32,
    /// An acknowledged write is among those that may be current; if not, and a value is there, it
    /// is one that was never acknowledged.
    pub acknowledged: bool,
}

/// Records vanish by time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Shortest time to live that any write of the run gives.
    pub shortest: Duration,
    /// Longest; `None` if some writes give none.
    pub longest: Option<Duration>,
    /// How much earlier or later than asked a record may vanish.
    pub precision: Duration,
    /// Longest time that a request may take, from before its version is drawn to after its end is
    /// told. The ledger keeps acknowledgements only, so a write may be this much older.
    pub slack: Duration,
}

impl Expiry {
    /// Whether a record whose write was sent at `sent` or later may be gone at `answered`.
    #[inline]
    pub(super) fn may_be_gone(&self, sent: Nanos, answered: Nanos) -> bool {
        let early = sent.saturating_add(nanos(self.shortest)).saturating_sub(nanos(self.precision));
        answered >= early
    }

    /// Whether a record whose write was acknowledged within `tick` must be gone at `sent`.
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

    /// No moment of this tick is earlier.
    #[inline]
    pub(super) fn earliest(self) -> Nanos {
        Nanos::from(self.0) * Tick::NANOS
    }

    /// Every moment of this tick is earlier.
    #[inline]
    pub(super) fn latest(self) -> Option<Nanos> {
        (self != Tick::SATURATED).then(|| self.earliest() + Tick::NANOS)
    }
}

/// What a read found, with the ledger's rules for existing data applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Absent,
    /// A version of this run.
    Ours(u32),
    /// What was there before this run.
    Earlier,
    /// What a run wrote that began later; or, with clocks that differ, what was there before.
    Newer,
    /// One or the other: the value is too short to tell its session.
    Either(u32),
}

impl Found {
    /// `issued` is the highest version sent so far: a higher one cannot be this run's.
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

/// What a version of this run is to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionStatus {
    /// May be current; the tick if it was acknowledged before the read was sent.
    Legal(Option<Tick>),
    /// An acknowledged write took its place before the read was sent.
    Superseded,
    /// Surely not applied.
    Failed,
    /// No put carried it.
    NeverSent,
}

/// What the ledger knows of the moment at which a read was sent, and of what has begun since.
pub(super) trait Past {
    /// What `version` is to the read.
    fn standing(&self, version: u32) -> VersionStatus;
    /// What was there before this run may still be there.
    fn earlier(&self) -> bool;
    /// That nothing was there before this run may still hold.
    fn blank(&self) -> bool;
    /// A delete of this run may be current.
    fn deleted(&self) -> bool;
    /// A put has begun by now and has not failed.
    fn put_begun(&self) -> bool;
    /// A delete later than `version` had ended when the read was sent, and nothing has taken its
    /// place.
    fn buried(&self, version: u32) -> bool;
    /// A value that the read might have found may have expired at `answered`.
    fn may_have_expired(&self, expiry: &Expiry, answered: Nanos) -> bool;
    /// Oldest legal version.
    fn floor(&self) -> u32;
    /// When the floor was acknowledged, if it was.
    fn acknowledged(&self) -> Option<Tick>;
    /// Highest version sent so far.
    fn issued(&self) -> u32;
}

/// What every slot of a ledger has in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) existing_data: bool,
    pub(super) may_forget: bool,
    pub(super) linearizable: bool,
    pub(super) expiry: Option<Expiry>,
}

impl Rules {
    /// The verdict on a read sent at `sent` and answered at `answered`.
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

    /// A read that found nothing tells something of the puts before it.
    #[inline]
    pub(super) fn absence_tells(&self) -> bool {
        self.linearizable && !self.may_forget && self.expiry.is_none()
    }
}

/// When a read was sent and answered, and how old it may be, ns.
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
