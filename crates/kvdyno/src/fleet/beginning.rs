//! The begin of a phase. The conductor names a moment, every agent confirms that it heard of it in time, and then the
//! conductor says that the moment counts. If an agent has not confirmed, because its connection stood still, the
//! conductor names a later moment to all. No agent begins at a moment that may yet be put off: an agent that hears
//! too late that the moment counts begins late, and says so.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use kvdyno_core::load::{Begin, Interrupt};
use kvdyno_core::measure::{Nanos, now};

use super::gathering::Fleet;
use super::member::Member;
use super::messages::{AgentOrder, AgentReport};
use super::phase::CONNECTING;

/// Time from the order to the begin, beside what the connections take.
const LEAD: Duration = Duration::from_millis(100);
/// Further time to the begin for each agent: their answers come through one process.
const LEAD_EACH: Duration = Duration::from_micros(200);
/// Longest time from the order to the begin, unless the connections themselves take longer.
const LONGEST_LEAD: Duration = Duration::from_secs(2);
/// Time before the begin within which an agent confirms nothing any more: its workers have to hear of the begin, too.
const LAST_ORDER: Duration = Duration::from_millis(20);
/// The same limit for the conductor, beside the time that an order travels: what it says before, every agent hears in
/// time.
const LAST_ANSWER: Duration = Duration::from_millis(40);

/// Order about the begin of a phase that an agent has prepared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BeginOrder {
    /// Begin at this moment of the agent's clock, if all confirm it.
    At(Nanos),
    /// All have confirmed the moment named last; begin then.
    Agreed,
    /// Do not begin.
    Never,
}

/// Waits until the phase of this number is to begin, and calls `confirm` with each moment that was heard of in time.
/// Returns the moment that all have confirmed.
pub fn wait_to_begin(
    number: u32,
    begins: &Receiver<(u32, BeginOrder)>,
    confirm: impl Fn(Nanos),
) -> Begin {
    let mut confirmed = None;
    // A conductor that is gone lets nothing begin.
    while let Ok((of, order)) = begins.recv() {
        match order {
            // An order about an earlier phase.
            _ if of != number => {}
            BeginOrder::At(at) => {
                confirmed = Some(at).filter(|at| *at > now() + LAST_ORDER.as_nanos() as Nanos);
                confirmed.into_iter().for_each(&confirm);
            }
            BeginOrder::Agreed => return confirmed.map_or(Begin::Never, Begin::At),
            BeginOrder::Never => break,
        }
    }
    Begin::Never
}

impl Fleet {
    /// Agrees with all agents on a moment at which a prepared phase begins. Returns it on this process's clock.
    ///
    /// # Errors
    /// In one line, if one does not answer, is lost, or the user does not want to wait.
    pub(super) fn agree_on_start(
        &mut self,
        number: u32,
        interrupt: &Interrupt,
    ) -> Result<Nanos, String> {
        let way = self.longest_way();
        let mut lead = LEAD + LEAD_EACH * self.count() + 2 * way;
        let longest = LONGEST_LEAD.max(lead);
        let given_up = Instant::now() + CONNECTING;
        loop {
            let start = now() + lead.as_nanos() as Nanos;
            for member in self.members.iter().filter(|member| member.is_there()) {
                member.order(&AgentOrder::StartAt { number, at: member.clock.own.there(start) });
            }
            let patience = lead.saturating_sub(LAST_ANSWER + way);
            match self.first_unconfirmed((number, start), patience, interrupt)? {
                None => {
                    let order = AgentOrder::Begin { number };
                    self.members.iter().for_each(|member| member.order(&order));
                    return Ok(start);
                }
                Some(who) if Instant::now() >= given_up => {
                    return Err(format!(
                        "{who} did not confirm the begin for {} s",
                        CONNECTING.as_secs()
                    ));
                }
                Some(_) => lead = (2 * lead).min(longest),
            }
        }
    }

    /// Waits until all have confirmed a start. Returns the first agent that has not in time; `None` if all have.
    fn first_unconfirmed(
        &mut self,
        (number, start): (u32, Nanos),
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<String>, String> {
        let until = Instant::now() + patience;
        let ats: Vec<Nanos> =
            self.members.iter().map(|member| member.clock.own.there(start)).collect();
        let mut confirmed = vec![false; self.members.len()];
        loop {
            let waits = |(member, confirmed): &(&Member, &bool)| !**confirmed && member.is_there();
            let silent = self.members.iter().zip(&confirmed).find(waits);
            let Some((silent, _)) = silent else { break };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Some(silent.who()));
            }
            let received = self.receive(left, interrupt, |from, report| match report {
                AgentReport::WillBegin { number: of, at } if of == number && at == ats[from] => {
                    Ok(Some(from))
                }
                AgentReport::Unready { number: of, why } if of == number => Err(why),
                _ => Ok(None),
            })?;
            received.iter().for_each(|from| confirmed[*from] = true);
        }
        match self.members.iter().any(Member::is_there) {
            true => Ok(None),
            false => Err("every agent was lost".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread::sleep;

    use tokio::sync::mpsc::UnboundedReceiver;

    use super::*;
    use crate::fleet::clocks::{ClockOffset, Offsets};
    use crate::fleet::gathering::AgentNews;
    use crate::fleet::messages::Hello;
    use crate::fleet::token::Token;
    use crate::fleet::wire::Sending;

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn an_order_that_is_heard_too_late_is_not_confirmed_and_a_later_one_is_taken() {
        let (sink, begins) = channel();
        let (confirmed, confirmations) = channel();
        let begun = now();
        let at = [begun + 5_000_000, begun + SECOND / 10, begun + SECOND / 5];
        sink.send((6, BeginOrder::At(at[1]))).unwrap();
        sink.send((6, BeginOrder::Agreed)).unwrap();
        at.iter().for_each(|at| sink.send((7, BeginOrder::At(*at))).unwrap());
        sink.send((7, BeginOrder::Agreed)).unwrap();
        let begin = wait_to_begin(7, &begins, |at| confirmed.send(at).unwrap());
        assert!(matches!(begin, Begin::At(agreed) if agreed == at[2]));
        assert_eq!(confirmations.try_iter().collect::<Vec<_>>(), at[1..]);
        sink.send((8, BeginOrder::Never)).unwrap();
        assert!(matches!(wait_to_begin(8, &begins, |_| {}), Begin::Never));
        sink.send((9, BeginOrder::At(now() + SECOND))).unwrap();
        drop(sink);
        assert!(matches!(wait_to_begin(9, &begins, |_| {}), Begin::Never));
    }

    /// No agent begins at a moment that may be put off: it waits for the word that it counts, past that moment, too.
    #[test]
    fn an_agent_that_hears_too_late_that_a_moment_counts_begins_late() {
        let (sink, begins) = channel();
        let at = now() + SECOND / 10;
        sink.send((1, BeginOrder::At(at))).unwrap();
        let agent = std::thread::spawn(move || {
            sleep(Duration::from_millis(300));
            sink.send((1, BeginOrder::Agreed)).unwrap();
        });
        let begin = wait_to_begin(1, &begins, |_| {});
        assert!(now() > at + SECOND / 10, "it waited");
        assert!(matches!(begin, Begin::At(agreed) if agreed == at));
        agent.join().unwrap();
    }

    /// Runs an agent that hears every order, the first one `late`. Returns the moment at which it would begin.
    fn agent(
        (number, late): (usize, Duration),
        mut orders: UnboundedReceiver<Vec<u8>>,
        news: Sender<(usize, AgentNews)>,
    ) -> Begin {
        let (sink, begins) = channel();
        let agents = std::thread::spawn(move || {
            let mut late = Some(late);
            while let Some(order) = orders.blocking_recv() {
                late.take().into_iter().for_each(sleep);
                let _ = match serde_json::from_slice(&order) {
                    Ok(AgentOrder::StartAt { number, at }) => {
                        sink.send((number, BeginOrder::At(at)))
                    }
                    Ok(AgentOrder::Begin { number }) => sink.send((number, BeginOrder::Agreed)),
                    _ => Ok(()),
                };
            }
        });
        let begin = wait_to_begin(1, &begins, |at| {
            news.send((number, AgentNews::Says(AgentReport::WillBegin { number: 1, at }))).unwrap();
        });
        drop(agents);
        begin
    }

    /// A lost packet holds one agent's connection up for half a second: both begin together all the same.
    #[test]
    fn all_begin_at_one_moment_though_one_heard_the_first_order_too_late() {
        let mut fleet = Fleet::listen("127.0.0.1:0", 2, &Token::made().unwrap()).unwrap();
        let (news, inbox) = channel();
        fleet.inbox = inbox;
        let mut agents = Vec::new();
        for (number, late) in [(0, Duration::ZERO), (1, Duration::from_millis(500))] {
            let (sending, orders) = Sending::new();
            let hello = Hello {
                format: 1,
                version: String::new(),
                build: String::new(),
                machine: "m".to_owned(),
                process: number,
            };
            let mut member = Member::new(format!("agent-{number}"), hello, sending);
            let known = ClockOffset { offset: 0, uncertainty: 50_000 };
            member.clock = Offsets { own: known, system: known };
            fleet.members.push(member);
            let news = news.clone();
            agents.push(std::thread::spawn(move || agent((number as usize, late), orders, news)));
        }
        let first = now();
        let start = fleet.agree_on_start(1, &Interrupt::default()).unwrap();
        assert!(start > first + SECOND / 2, "the first moment was put off");
        for agent in agents {
            let begin = agent.join().unwrap();
            assert!(matches!(begin, Begin::At(at) if at == start), "{begin:?} {start}");
        }
    }
}
