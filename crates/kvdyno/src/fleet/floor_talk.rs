//! Floors on their way: agents tell each other which writes were acknowledged, so that each can judge its reads of
//! others' records. Every agent tells twenty times a second, and the conductor hands it on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kvdyno_core::measure::now;
use kvdyno_core::verify::{Acks, FloorRuns, Floors};
use kvdyno_core::workload::Ownership;

use super::gathering::Fleet;
use super::messages::{AgentOrder, AgentReport};
use super::wire::Sending;

/// Time between two messages of an agent.
const EVERY: Duration = Duration::from_millis(50);

/// Exchange of floors of one agent in one phase.
pub struct FloorTalk<'a> {
    /// Number of the phase.
    pub number: u32,
    /// Floors, its own and those heard of others.
    pub floors: &'a Floors,
    /// Ownership of records: which are the agent's.
    pub ownership: &'a Ownership,
    /// The line to the conductor.
    pub sending: &'a Sending,
}

impl FloorTalk<'_> {
    fn publish(&self, over: bool) {
        let acks = self.floors.take_acks(now(), over);
        self.sending.send(&AgentReport::Floors { number: self.number, acks });
    }

    fn go_on(&self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            std::thread::park_timeout(EVERY);
            self.publish(false);
            self.floors.judge(self.ownership, now(), false);
        }
    }
}

/// Carries a load, and exchanges floors meanwhile if `talk` is given.
pub fn talking<T>(talk: Option<FloorTalk<'_>>, load: impl FnOnce() -> T) -> T {
    let Some(talk) = talk else { return load() };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let talker = scope.spawn(|| talk.go_on(&over));
        let loaded = load();
        over.store(true, Ordering::Relaxed);
        talker.thread().unpark();
        let _ = talker.join();
        talk.publish(true);
        loaded
    })
}

impl Fleet {
    /// Tells all other agents the floors of one agent's records at the begin of a phase.
    pub(super) fn hand_on_base(&self, number: u32, from: usize, runs: FloorRuns) {
        let Some(owner) = self.members[from].place else { return };
        let order = AgentOrder::Base { number, owner, runs };
        let others = self.members.iter().enumerate().filter(|(member, _)| *member != from);
        others.for_each(|(_, member)| member.order(&order));
    }

    /// Tells every agent what was acknowledged to the others, by its own clock.
    fn hand_on_floors(&self, number: u32, gathered: &[(usize, Acks)]) {
        let owner_of = |from: usize| self.members[from].place;
        let there = self.members.iter().enumerate().filter(|(_, member)| member.is_there());
        let uncertain = there.clone().map(|(_, member)| member.clock.own.uncertainty);
        let off = uncertain.max().unwrap_or(0).saturating_mul(2);
        for (of, member) in there {
            let others = gathered.iter().filter(|(from, _)| *from != of);
            let acks = others.filter_map(|(from, acks)| {
                let clock = member.clock.own;
                Some((owner_of(*from)?, acks.clone().moved(|at| clock.there(at))))
            });
            let acks = acks.collect();
            member.order(&AgentOrder::Floors { number, acks, off });
        }
    }
}

/// Floors that agents have told the conductor and that the others have not heard yet: they go to all of them at once.
pub struct GatheredFloors {
    /// Number of the phase.
    number: u32,
    acks: Vec<(usize, Acks)>,
    since: Instant,
}

impl GatheredFloors {
    /// Makes an empty one for a phase.
    pub fn new(number: u32) -> GatheredFloors {
        GatheredFloors { number, acks: Vec::new(), since: Instant::now() }
    }

    /// Takes what an agent tells that was acknowledged to it in the phase `number`.
    pub fn on_acks(&mut self, fleet: &Fleet, number: u32, from: usize, acks: Acks) {
        if number != self.number {
            return;
        }
        if self.acks.is_empty() {
            self.since = Instant::now();
        }
        let moved = fleet.members[from].phase.moved;
        self.acks.push((from, acks.moved(|at| moved.time(at))));
        let there = fleet.members.iter().filter(|member| member.is_there()).count();
        if self.acks.len() >= there {
            self.hand_on(fleet);
        }
    }

    /// Hands all on that has waited for [`EVERY`] or longer.
    pub fn hand_on_old(&mut self, fleet: &Fleet) {
        if !self.acks.is_empty() && self.since.elapsed() >= EVERY {
            self.hand_on(fleet);
        }
    }

    /// Hands all of it on.
    pub fn hand_on(&mut self, fleet: &Fleet) {
        if !self.acks.is_empty() {
            fleet.hand_on_floors(self.number, &std::mem::take(&mut self.acks));
        }
    }
}
