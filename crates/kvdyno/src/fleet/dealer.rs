//! The dealer: the conductor deals the operations of a closed phase to the lanes of all agents, block by block, to
//! whichever lane asks. Where operations write, no lane gets further ahead of the slowest than a bound: owners carry
//! out their writes by number, and an owner that stays behind would write too little of what was asked.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use kvdyno_core::load::{BLOCK, BlockClaim, Deal, LaneName, is_dealt};
use kvdyno_core::workload::PhasePlan;

use super::member::Member;
use super::messages::AgentOrder;

/// Least bound, for each lane, operations.
const LEAST_EACH: u64 = 1 << 10;
/// Time for which all operations together may be ahead of the slowest lane: least and most.
const AHEAD: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Divisor of the phase's duration that gives this time.
const AHEAD_SHARE: u32 = 5;

/// Dealer of the operations of a phase.
pub struct Dealer {
    /// Number of the phase.
    number: u32,
    groups: BTreeMap<u16, GroupDealer>,
}

impl Dealer {
    /// Makes a dealer for the phase of this number.
    pub fn new(number: u32, phase: &PhasePlan) -> Dealer {
        let groups = (0..).zip(&phase.groups).filter(|(_, group)| is_dealt(phase, group));
        let ahead = phase.duration.unwrap_or(AHEAD[1] * AHEAD_SHARE) / AHEAD_SHARE;
        let ahead = ahead.clamp(AHEAD[0], AHEAD[1]);
        let groups = groups.map(|(number, group)| {
            let mut parts = group.mix.parts.iter();
            let writes = parts.any(|(kind, part)| *part > 0 && !kind.read_only());
            (number, GroupDealer::new(writes.then_some(ahead)))
        });
        Dealer { number, groups: groups.collect() }
    }

    /// Enters that a lane of an agent asks for blocks in the phase `number`.
    pub fn claim(&mut self, members: &[Member], from: usize, number: u32, claim: BlockClaim) {
        let group = self.groups.get_mut(&claim.lane.group).filter(|_| number == self.number);
        let Some(group) = group else { return };
        group.claim(from, claim);
        self.give(members);
    }

    /// Enters that an agent is lost: no lane waits for it any more.
    pub fn lose(&mut self, members: &[Member], lost: usize) {
        self.groups.values_mut().for_each(|group| group.lose(lost));
        self.give(members);
    }

    fn give(&mut self, members: &[Member]) {
        let number = self.number;
        for group in self.groups.values_mut() {
            for (to, deal) in group.deals(Instant::now()) {
                members[to].order(&AgentOrder::Deal { number, deal });
            }
        }
    }
}

/// Deals the operations of one group.
struct GroupDealer {
    /// Number of the next operation to be dealt.
    front: u64,
    /// Time for which its operations may be ahead of the slowest lane; `None` if nobody has to wait.
    ahead: Option<Duration>,
    begun: Option<Instant>,
    /// Operations that each lane has done.
    done: BTreeMap<(usize, LaneName), u64>,
    claims: VecDeque<(usize, BlockClaim)>,
}

impl GroupDealer {
    fn new(ahead: Option<Duration>) -> GroupDealer {
        let (done, claims) = (BTreeMap::new(), VecDeque::new());
        GroupDealer { front: 0, ahead, begun: None, done, claims }
    }

    fn claim(&mut self, from: usize, claim: BlockClaim) {
        let done = self.done.entry((from, claim.lane)).or_default();
        *done = claim.done.max(*done);
        self.claims.push_back((from, claim));
    }

    fn lose(&mut self, lost: usize) {
        self.done.retain(|(of, _), _| *of != lost);
        self.claims.retain(|(of, _)| *of != lost);
    }

    /// Returns the bound: operations by which the front may be ahead of the slowest lane.
    fn bound(&mut self, now: Instant) -> u64 {
        let lanes = self.done.len() as u64;
        let (Some(ahead), begun) = (self.ahead, *self.begun.get_or_insert(now)) else {
            return u64::MAX;
        };
        // The average rate so far.
        let passed = now.saturating_duration_since(begun).as_secs_f64().max(ahead.as_secs_f64());
        let operations = self.front as f64 / passed * ahead.as_secs_f64();
        (operations as u64).max(LEAST_EACH * lanes)
    }

    /// Returns the deals that can be made now.
    fn deals(&mut self, now: Instant) -> Vec<(usize, Deal)> {
        let bound = self.bound(now);
        let lanes = self.done.len().max(1) as u64;
        let most = (bound / BLOCK / lanes / 2).max(1);
        let mut deals = Vec::new();
        for (of, claim) in std::mem::take(&mut self.claims) {
            let slowest = self.done.values().min().copied().unwrap_or(self.front);
            let blocks = claim.blocks.clamp(1, most);
            let to = self.front + blocks * BLOCK;
            let lane = claim.lane;
            if to - slowest <= bound {
                deals.push((of, Deal { lane, from: self.front, to }));
                self.front = to;
            } else if self.done[&(of, lane)] < self.front {
                // It has writes to carry out below the front; all may be waiting for those.
                deals.push((of, Deal { lane, from: self.front, to: self.front }));
            } else {
                self.claims.push_back((of, claim));
            }
        }
        deals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(lane: u64) -> LaneName {
        LaneName { group: 0, lane }
    }

    fn deal(lane_number: u64, from: u64, to: u64) -> Deal {
        Deal { lane: lane(lane_number), from, to }
    }

    #[test]
    fn blocks_go_to_whoever_asks_without_gaps() {
        let (mut dealer, now) = (GroupDealer::new(None), Instant::now());
        let mut next = 0;
        for (of, blocks) in [(0, 1), (1, 4), (1, 2), (0, 3)] {
            dealer.claim(of, BlockClaim { lane: lane(0), done: 0, blocks });
            let to = next + blocks * BLOCK;
            assert_eq!(dealer.deals(now), [(of, deal(0, next, to))], "the slowest holds up nobody");
            next = to;
        }
    }

    /// The dealer tells the slow agent to catch up; the quick one waits for it, and then goes on.
    #[test]
    fn where_operations_write_nobody_gets_far_ahead_of_the_slowest() {
        let (mut dealer, now) = (GroupDealer::new(Some(AHEAD[0])), Instant::now());
        let mut quick = 0;
        dealer.claim(1, BlockClaim { lane: lane(0), done: 0, blocks: 1 });
        assert_eq!(dealer.deals(now), [(1, deal(0, 0, BLOCK))]);
        loop {
            dealer.claim(0, BlockClaim { lane: lane(0), done: quick, blocks: 8 });
            let deals = dealer.deals(now);
            let Some((0, Deal { to, .. })) = deals.first() else { break };
            if *to == quick {
                break;
            }
            quick = *to;
        }
        assert!(quick <= 2 * LEAST_EACH && quick > LEAST_EACH, "{quick}");
        let front = dealer.front;
        // The quick one asks again and gets nothing, and the slow one is told to catch up.
        dealer.claims.clear();
        let mut ask = |of, done| {
            dealer.claim(of, BlockClaim { lane: lane(0), done, blocks: 8 });
            dealer.deals(now)
        };
        assert_eq!(ask(0, front), [], "it waits");
        assert_eq!(ask(1, 0), [(1, deal(0, front, front))]);
        let deals = ask(1, front);
        let dealt = |of| deals.iter().any(|(to, deal)| *to == of && deal.to > deal.from);
        assert!(dealt(0) && dealt(1), "{deals:?}");
    }

    #[test]
    fn nobody_waits_for_an_agent_that_is_lost() {
        let (mut dealer, now) = (GroupDealer::new(Some(AHEAD[0])), Instant::now());
        dealer.claim(1, BlockClaim { lane: lane(0), done: 0, blocks: 1 });
        let _ = dealer.deals(now);
        let mut done = BLOCK;
        let mut held = false;
        for _ in 0..1_000 {
            dealer.claim(0, BlockClaim { lane: lane(0), done, blocks: 8 });
            match dealer.deals(now).as_slice() {
                [(0, Deal { to, .. })] => done = *to,
                _ => held = true,
            }
        }
        assert!(held && !dealer.claims.is_empty());
        dealer.lose(1);
        assert!(!dealer.deals(now).is_empty());
    }
}
