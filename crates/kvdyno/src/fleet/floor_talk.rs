//! What agents tell each other of acknowledged writes, so that each can judge what it reads of others' records: every agent
//! tells twenty times a second, and the conductor hands it on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kvdyno_core::measure::now;
use kvdyno_core::verify::{Acks, FloorRuns, Floors};
use kvdyno_core::workload::Ownership;

use super::gathering::Fleet;
use super::messages::{AgentOrder, Told};
use super::wire::Sending;

/// Between two tellings.
const EVERY: Duration = Duration::from_millis(50);

/// One phase's talk, of one agent.
pub struct FloorTalk<'a> {
    /// Of the phase.
    pub number: u32,
    /// What is told and heard.
    pub floors: &'a Floors,
    /// Which records are the agent's.
    pub ownership: &'a Ownership,
    /// The line to the conductor.
    pub sending: &'a Sending,
}

impl FloorTalk<'_> {
    fn tell(&self, over: bool) {
        let told = self.floors.tell(now(), over);
        self.sending.send(&Told::Floors { number: self.number, told });
    }

    fn go_on(&self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            std::thread::park_timeout(EVERY);
            self.tell(false);
            self.floors.judge(self.ownership, now(), false);
        }
    }
}

/// Carries a load, and talks meanwhile, where there is something to talk of.
pub fn talking<T>(talk: Option<FloorTalk<'_>>, load: impl FnOnce() -> T) -> T {
    let Some(talk) = talk else { return load() };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let talker = scope.spawn(|| talk.go_on(&over));
        let loaded = load();
        over.store(true, Ordering::Relaxed);
        talker.thread().unpark();
        let _ = talker.join();
        talk.tell(true);
        loaded
    })
}

impl Fleet {
    /// Tells all others what the records of an agent hold at the begin of a phase.
    pub(super) fn hand_on_base(&self, number: u32, from: usize, runs: FloorRuns) {
        let Some(owner) = self.members[from].place else { return };
        let order = AgentOrder::Base { number, owner, runs };
        let others = self.members.iter().enumerate().filter(|(member, _)| *member != from);
        others.for_each(|(_, member)| member.order(&order));
    }

    /// Tells all others what was acknowledged to an agent, each by its own clock.
    pub(super) fn hand_on_floors(&self, number: u32, from: usize, told: Acks) {
        let teller = &self.members[from];
        let Some(owner) = teller.place else { return };
        let moved = teller.phase.moved;
        let told = told.moved(|at| moved.time(at));
        for (of, member) in self.members.iter().enumerate() {
            if of == from || !member.is_there() {
                continue;
            }
            let clock = member.clock.own;
            let told = told.clone().moved(|at| clock.there(at));
            let off = clock.uncertainty.saturating_add(teller.clock.own.uncertainty);
            member.order(&AgentOrder::Floors { number, owner, told, off });
        }
    }
}
