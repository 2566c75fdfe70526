//! Deals the operations of a closed phase to several processes that each own a part of the records. Their numbers are dealt
//! in blocks to whichever lane is free, and a lane carries out all reads of its blocks, so that the reads of all together
//! have the distribution that was asked for, however quick each is. Writes stay with the owner of their record: a lane
//! carries out those of its process in every block that was dealt to anybody, up to its own latest one.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::measure::Nanos;
use crate::verify::Floors;
use crate::workload::{Chooser, GroupPlan, PhasePlan};

/// Operations of a block.
pub const BLOCK: u64 = 32;
/// Blocks that a lane asks for first.
const FIRST: u64 = 4;
/// Most blocks that it asks for at once.
const MOST: u64 = 1 << 12;
/// Shortest time, ns, that the blocks of one deal should last: a lane that is done sooner asks for twice as many; one
/// that takes more than four times as long, for half.
const SHORT: Nanos = 25_000_000;
/// Wait of a client whose lane has no operation at the moment.
pub(super) const WAIT: Duration = Duration::from_micros(500);

/// Returns true if the operations of this group are dealt where several processes own the records of the phase.
///
/// A group with a fixed number of requests is not dealt: all of them are carried out, whoever is quick. Nor is one
/// whose choices follow its inserts, since a read may have to come after an insert that another process makes.
#[must_use]
pub fn is_dealt(phase: &PhasePlan, group: &GroupPlan) -> bool {
    let parts = || group.mix.parts.iter().filter(|(_, part)| *part > 0);
    let follows = || Chooser::new(&group.keys, 1).map_or(true, |chooser| chooser.follows_inserts());
    !phase.load
        && !group.arrival.is_open()
        && group.requests.is_none()
        && parts().any(|(kind, _)| kind.read_only())
        && !(parts().any(|(kind, _)| kind.inserts()) && follows())
}

/// Name of a lane in its process: number of the group, and of the lane in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LaneName {
    /// Number of the group in its phase.
    pub group: u16,
    /// Number of the lane in its process.
    pub lane: u64,
}

/// Request of a lane for blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockClaim {
    /// The lane that asks or is dealt to.
    pub lane: LaneName,
    /// All operations of the lane below this number are given out.
    pub done: u64,
    /// Number of blocks that the lane asks for.
    pub blocks: u64,
}

/// Blocks that are dealt to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deal {
    /// The lane that asks or is dealt to.
    pub lane: LaneName,
    /// Number of the first operation that is the lane's to read.
    pub from: u64,
    /// Number behind the last such operation; equal to `from` where the lane only has to catch up with the writes below.
    pub to: u64,
}

/// Exchange between the lanes of one process and the conductor's dealer: claims go out, deals come in.
pub struct Dealing {
    number: u32,
    ask: Box<dyn Fn(BlockClaim) + Send + Sync>,
    dealt: Mutex<BTreeMap<LaneName, VecDeque<Range<u64>>>>,
    /// Floors by which reads of other processes' records are judged; `None` if such reads are not judged.
    pub(super) floors: Option<Arc<Floors>>,
}

impl Dealing {
    /// Makes the exchange of the phase with this number; lanes ask for blocks by calling `ask`.
    #[must_use]
    pub fn new(
        number: u32,
        floors: Option<Arc<Floors>>,
        ask: impl Fn(BlockClaim) + Send + Sync + 'static,
    ) -> Dealing {
        Dealing { number, ask: Box::new(ask), dealt: Mutex::default(), floors }
    }

    /// Returns the number of the phase whose operations are dealt.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Gives a lane its blocks.
    pub fn give(&self, deal: Deal) {
        let mut dealt = self.dealt.lock().unwrap_or_else(PoisonError::into_inner);
        dealt.entry(deal.lane).or_default().push_back(deal.from..deal.to);
    }

    /// Returns the floors by which reads of other processes' records are judged; `None` if such reads are not judged.
    #[must_use]
    pub fn floors(&self) -> Option<&Arc<Floors>> {
        self.floors.as_ref()
    }

    fn take(&self, lane: LaneName) -> Option<Range<u64>> {
        let mut dealt = self.dealt.lock().unwrap_or_else(PoisonError::into_inner);
        dealt.get_mut(&lane)?.pop_front()
    }
}

/// A lane's side of the dealing: two claims are always under way or not yet used, so that it rarely waits.
pub(super) struct Claiming {
    dealing: Arc<Dealing>,
    lane: LaneName,
    blocks: u64,
    taken_at: Nanos,
    /// The lane has had nothing to do since it took blocks last.
    waited: bool,
}

impl Claiming {
    pub fn begin(dealing: Arc<Dealing>, lane: LaneName) -> Claiming {
        let claiming = Claiming { dealing, lane, blocks: FIRST, taken_at: 0, waited: false };
        (0..2).for_each(|_| claiming.ask(0));
        claiming
    }

    fn ask(&self, done: u64) {
        (self.dealing.ask)(BlockClaim { lane: self.lane, done, blocks: self.blocks });
    }

    /// Takes the next blocks at `now`, and asks for more; `None` if none are there yet. The lane is done with all
    /// operations below `done`.
    pub fn next(&mut self, done: u64, now: Nanos) -> Option<Range<u64>> {
        let Some(dealt) = self.dealing.take(self.lane) else {
            self.waited = true;
            return None;
        };
        if !dealt.is_empty() {
            let took = now.saturating_sub(self.taken_at);
            if self.taken_at > 0 && (took < SHORT || self.waited) {
                self.blocks = (self.blocks * 2).min(MOST);
            } else if took > 4 * SHORT {
                self.blocks = (self.blocks / 2).max(1);
            }
            (self.taken_at, self.waited) = (now, false);
        }
        self.ask(done);
        Some(dealt)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::workload::{Arrival, Distribution, Kind};

    #[test]
    fn a_lane_keeps_two_claims_under_way_and_asks_for_more_the_quicker_it_is() {
        let (asked, claims) = channel();
        let dealing = Arc::new(Dealing::new(7, None, move |claim| asked.send(claim).unwrap()));
        let lane = LaneName { group: 1, lane: 2 };
        let mut claiming = Claiming::begin(Arc::clone(&dealing), lane);
        let claim = |done, blocks| BlockClaim { lane, done, blocks };
        let asked = || claims.try_iter().collect::<Vec<_>>();
        assert_eq!(asked(), [claim(0, FIRST); 2]);
        assert_eq!(claiming.next(0, 1), None, "nothing was dealt yet");
        let deal = |from, to| dealing.give(Deal { lane, from, to });
        deal(64, 192);
        dealing.give(Deal { lane: LaneName { group: 1, lane: 3 }, from: 0, to: 64 });
        assert_eq!(claiming.next(0, 1), Some(64..192), "its own");
        assert_eq!(asked(), [claim(0, FIRST)]);
        deal(320, 448);
        assert_eq!(claiming.next(192, 1 + SHORT / 2), Some(320..448));
        assert_eq!(asked(), [claim(192, 2 * FIRST)], "it was quick");
        deal(500, 500);
        assert_eq!(claiming.next(448, 2 + SHORT / 2), Some(500..500));
        assert_eq!(asked(), [claim(448, 2 * FIRST)], "to catch up says nothing of its speed");
        deal(600, 700);
        assert_eq!(claiming.next(500, 10 * SHORT), Some(600..700));
        assert_eq!(asked(), [claim(500, FIRST)], "it was slow");
    }

    #[test]
    fn closed_groups_that_read_are_dealt_and_no_others() {
        let group = |mix: &[(Kind, u16)]| GroupPlan::plain("run", mix, 100);
        let reads = group(&[(Kind::Get, 950), (Kind::Update, 50)]);
        let phase = PhasePlan::plain(0, "run", vec![reads.clone()], Duration::from_secs(1));
        assert!(is_dealt(&phase, &reads));
        let load = PhasePlan { load: true, ..phase.clone() };
        assert!(!is_dealt(&load, &reads));
        let not = [
            GroupPlan { requests: Some(100), ..reads.clone() },
            GroupPlan { arrival: Arrival::Constant { rate: 10.0 }, ..reads },
            group(&[(Kind::Update, 1_000)]),
            GroupPlan {
                keys: Distribution::Latest { exponent: 0.99 },
                ..group(&[(Kind::Get, 950), (Kind::Insert, 50)])
            },
        ];
        assert!(not.iter().all(|group| !is_dealt(&phase, group)));
        let inserts = group(&[(Kind::Get, 950), (Kind::Insert, 50)]);
        assert!(is_dealt(&phase, &inserts), "no read goes to what is inserted");
    }
}
