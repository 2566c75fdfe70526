//! Questions for the time of agents' clocks, and conclusions from the answers: before each phase and after it, many
//! agents at once, so that a large number of agents, or a slow connection, does not keep the phase waiting.

use std::collections::BTreeMap;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use kvdyno_core::load::Interrupt;
use kvdyno_core::measure::SLOT;
use kvdyno_core::verdict::Reason;
use kvdyno_core::workload::PhasePlan;

use super::clocks::{ClocksShown, Offsets};
use super::gathering::{AgentNews, Fleet};
use super::member::Member;
use super::messages::{AgentOrder, AgentReport};
use super::phase::LOOK;
use super::wire::SILENCE;

/// Questions to each agent's clock.
const QUESTIONS: u32 = 16;
/// Total time of an agent's answers after which it gets no further question, once it has given [`FEW`].
const ENOUGH: Duration = Duration::from_secs(1);
/// Fewest answers of an agent: a single one that was held up says little.
const FEW: u32 = 4;
/// Number of agents asked at a time: with more, their answers wait for each other.
const AT_ONCE: usize = 8;

/// An agent that is being asked.
struct ClockRequest {
    number: u32,
    at: ClocksShown,
    since: Instant,
    begun: Instant,
    known: Offsets,
}

impl ClockRequest {
    fn ask(member: &Member, number: u32, begun: Instant, known: Offsets) -> ClockRequest {
        let request =
            ClockRequest { number, at: ClocksShown::now(), since: Instant::now(), begun, known };
        member.order(&AgentOrder::Clock { number });
        request
    }
}

impl Fleet {
    /// Measures the offsets of each agent's clocks, before a phase.
    ///
    /// # Errors
    /// In one line, if one does not tell, or the user does not want to wait.
    pub fn set_clocks(&mut self, interrupt: &Interrupt) -> Result<(), String> {
        self.ask_clocks(|| interrupt.is_raised());
        if interrupt.is_raised() {
            return Err("the user stopped the run".to_owned());
        }
        if let Some(lost) = self.first_unresolved().filter(|_| !self.goes_on) {
            return Err(lost);
        }
        let mut there = self.members.iter().filter(|member| member.is_there());
        let silent = there.find(|member| member.clock == Offsets::UNKNOWN);
        silent.map_or(Ok(()), |silent| Err(format!("{} does not tell its time", silent.who())))
    }

    /// Measures the offsets after a phase, whatever has become of it; an agent that is lost is not asked.
    pub fn see_clocks(&mut self) {
        self.ask_clocks(|| false);
    }

    /// Returns the longest time that an order takes to reach an agent: no longer than an answer took both ways.
    pub fn longest_way(&self) -> Duration {
        let there = self.members.iter().filter(|member| member.is_there());
        let ways = there.map(|member| member.clock.own.uncertainty);
        Duration::from_nanos(ways.max().unwrap_or(0).saturating_mul(2))
    }

    /// Returns the agent whose clock was known worst in the phase that was measured last, if that was too little for
    /// what the phase tells apart: intervals, and slots where it has faults.
    pub fn uncertain(&self, phase: &PhasePlan, interval: Duration) -> Option<Reason> {
        let worst = self.carriers().max_by_key(|member| member.clock_uncertainty())?;
        let off = Duration::from_nanos(worst.clock_uncertainty());
        let slot = Duration::from_nanos(SLOT);
        let of = if phase.faults.is_empty() { interval } else { slot };
        let reason = Reason::ClocksUncertain { agent: worst.called(), off, of };
        reason.holds().then_some(reason)
    }

    /// Asks all agents for their clocks' times. Forgets what was known before, for clocks drift.
    fn ask_clocks(&mut self, given_up: impl Fn() -> bool) {
        self.members.iter_mut().for_each(|member| member.clock = Offsets::UNKNOWN);
        let mut waiting: Vec<usize> = (0..self.members.len()).rev().collect();
        let mut requests: BTreeMap<usize, ClockRequest> = BTreeMap::new();
        while !given_up() {
            while requests.len() < AT_ONCE
                && let Some(next) = waiting.pop()
            {
                let member = &self.members[next];
                if member.is_there() {
                    requests.insert(
                        next,
                        ClockRequest::ask(member, 0, Instant::now(), Offsets::UNKNOWN),
                    );
                }
            }
            if requests.is_empty() {
                return;
            }
            match self.inbox.recv_timeout(LOOK) {
                Ok((from, AgentNews::Says(AgentReport::Clock { number, shown }))) => {
                    let received = ClocksShown::now();
                    if requests.get(&from).is_some_and(|request| request.number == number)
                        && let Some(mut answered) = requests.remove(&from)
                    {
                        answered.known.learn(answered.at, shown, received);
                        self.members[from].clock = answered.known;
                        let ClockRequest { begun, known, .. } = answered;
                        let more = if begun.elapsed() < ENOUGH { QUESTIONS } else { FEW };
                        if number + 1 < more {
                            let next =
                                ClockRequest::ask(&self.members[from], number + 1, begun, known);
                            requests.insert(from, next);
                        }
                    }
                }
                Ok((from, AgentNews::Gone(why))) => {
                    self.lose(from, &why);
                    requests.remove(&from);
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // An agent may be silent for so long, whatever it is asked.
            requests.retain(|_, request| request.since.elapsed() < SILENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::fleet::messages::Hello;
    use crate::fleet::token::Token;
    use crate::fleet::wire::Sending;

    /// An agent that stands still for two and a half seconds is not gone: five are promised. Its later answers tell
    /// the offset of its clock.
    #[test]
    fn an_agent_that_is_silent_for_less_than_five_seconds_is_waited_for() {
        let mut fleet = Fleet::listen("127.0.0.1:0", 1, &Token::made().unwrap()).unwrap();
        let (news, inbox) = channel();
        fleet.inbox = inbox;
        let (sending, mut orders) = Sending::new();
        let (version, build, machine) = (String::new(), String::new(), "m".to_owned());
        let hello = Hello { format: 1, version, build, machine, process: 1 };
        fleet.members.push(Member::new("agent-1".to_owned(), hello, sending));
        let agent = std::thread::spawn(move || {
            let mut pause = Some(Duration::from_millis(2_500));
            while let Some(order) = orders.blocking_recv() {
                pause.take().into_iter().for_each(std::thread::sleep);
                if let Ok(AgentOrder::Clock { number }) = serde_json::from_slice(&order) {
                    let report = AgentReport::Clock { number, shown: ClocksShown::now() };
                    let _ = news.send((0, AgentNews::Says(report)));
                }
            }
        });
        assert_eq!(fleet.set_clocks(&Interrupt::default()), Ok(()));
        assert!(fleet.longest_way() < Duration::from_secs(1), "{:?}", fleet.longest_way());
        drop(fleet);
        agent.join().unwrap();
    }
}
