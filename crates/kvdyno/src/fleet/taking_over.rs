//! Agents that take over what a lost one carried. They have its records as data that was there before, for what the store
//! has acknowledged to it they do not know. First it is waited until it surely sends nothing more, and until what it sent
//! has come or been given up.

use std::time::{Duration, Instant};

use kvdyno_core::load::Interrupt;
use kvdyno_core::workload::LostOwner;

use super::gathering::Fleet;
use super::loss::{Estate, OnAgentLost, TakesOver};
use super::member::Member;
use super::messages::AgentOrder;
use super::reads::ReadsFrom;
use super::share::Division;
use super::wire::{LAST, SILENCE};
use crate::exit::Failure;

impl Fleet {
    /// Returns true if an agent was lost and nobody has taken over what it carried.
    pub fn has_unresolved(&self) -> bool {
        self.unresolved().next().is_some()
    }

    /// Agents that were lost and whose records nobody has.
    pub(super) fn unresolved(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_unresolved())
    }

    /// Number of agents that are left.
    pub fn left(&self) -> u32 {
        self.members.iter().filter(|member| member.is_there()).count() as u32
    }

    /// The agents that are left carry all of the load.
    pub(super) fn goes_on_without_lost(&self) -> bool {
        self.on_lost == OnAgentLost::GoOn && self.left() > 0
    }

    /// Gives each agent that carries a store's load its place among all. Where the run does not go on without agents that
    /// are lost these have theirs, too.
    pub(super) fn give_places(&mut self) {
        let only_left = self.goes_on_without_lost();
        let mut places = 0..;
        for member in &mut self.members {
            let is_in = !only_left || member.is_there();
            member.place = if is_in { places.next() } else { None };
            member.estate = None;
        }
    }

    /// The agents that carry a phase, and how they divide its clients.
    pub(super) fn dealt(&self) -> Vec<(usize, Division)> {
        let (reads, left) = (self.reads, self.left());
        let there = self.members.iter().enumerate().filter(|(_, member)| member.is_there());
        let dealt = (0..).zip(there).map(|(index, (number, member))| {
            let (index, count) = match self.goes_on_without_lost() {
                true => (index, left),
                false => (member.place.unwrap_or(index), self.count()),
            };
            (number, Division { reads, index, count })
        });
        dealt.collect()
    }

    /// Returns the moment from which no request of the lost agents comes any more, if requests take no longer than
    /// `timeout`: each agent has noticed that its conductor is gone, and has ended; its requests were answered or given
    /// up. `None` if none was lost.
    pub fn quiet_at(&self, timeout: Duration) -> Option<Instant> {
        let lost = self.members.iter().filter(|member| member.place.is_some());
        let quiet = lost.filter_map(|member| {
            let unsure = Duration::from_nanos(member.clock_uncertainty());
            Some(member.lost_at? + SILENCE + LAST + timeout + unsure)
        });
        quiet.max()
    }

    /// Lets the agents that are left take over what the lost ones carried, with `records` records by now. What they write to
    /// those from now on is of `session`.
    ///
    /// # Errors
    /// [`Failure`] if another is lost meanwhile, or cannot reach the store again.
    pub fn take_over(
        &mut self,
        records: u64,
        session: u32,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let (reads, count) = (self.reads, self.count());
        let mut lost = Vec::new();
        for member in self.members.iter_mut().filter(|member| member.is_unresolved()) {
            let Some(index) = member.place else { continue };
            let own = Division { reads, index, count }.own(records);
            member.estate = Some(Estate { records: own });
            lost.push(LostOwner { index, session });
        }
        match reads {
            ReadsFrom::Own => {
                self.lost_owners.append(&mut lost);
                let order = AgentOrder::TakeOver { lost: self.lost_owners.clone() };
                self.members.iter().for_each(|member| member.order(&order));
                Ok(())
            }
            ReadsFrom::Anywhere => {
                // Each draws another share of the operations, so that most records change hands.
                self.unknown_below = records;
                if let Some(opening) = &mut self.opening {
                    (opening.exists, opening.session) = (true, session);
                    opening.takes_over = TakesOver::Everything;
                }
                self.give_openings(interrupt)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::UnboundedReceiver;

    use super::*;
    use crate::fleet::messages::Hello;
    use crate::fleet::token::Token;
    use crate::fleet::wire::Sending;

    /// Agents that carry a load, and what is said to each.
    fn fleet(count: usize, on_lost: OnAgentLost) -> (Fleet, Vec<UnboundedReceiver<Vec<u8>>>) {
        let mut fleet =
            Fleet::listen("127.0.0.1:0", count as u32, &Token::made().unwrap()).unwrap();
        let mut orders_of = Vec::new();
        for number in 1..=count {
            let (version, build, machine) = (String::new(), String::new(), "m".to_owned());
            let hello = Hello { format: 1, version, build, machine, process: 1 };
            let (sending, orders) = Sending::new();
            fleet.members.push(Member::new(format!("agent-{number}"), hello, sending));
            orders_of.push(orders);
        }
        fleet.on_lost = on_lost;
        fleet.give_places();
        (fleet, orders_of)
    }

    fn dealt(fleet: &Fleet) -> Vec<(usize, u32, u32)> {
        let dealt = fleet.dealt().into_iter();
        dealt.map(|(number, division)| (number, division.index, division.count)).collect()
    }

    /// Those that were lost, as the latest order to take over from them says.
    fn latest_lost(orders: &mut UnboundedReceiver<Vec<u8>>) -> Vec<(u32, u32)> {
        let mut latest = Vec::new();
        while let Ok(order) = orders.try_recv() {
            if let Ok(AgentOrder::TakeOver { lost }) = serde_json::from_slice(&order) {
                latest = lost.iter().map(|lost| (lost.index, lost.session)).collect();
            }
        }
        latest
    }

    #[test]
    fn clients_are_dealt_anew_over_those_that_are_left_where_the_run_goes_on() {
        let (mut fleet, _orders) = fleet(4, OnAgentLost::GoOn);
        assert_eq!(dealt(&fleet), [(0, 0, 4), (1, 1, 4), (2, 2, 4), (3, 3, 4)]);
        fleet.lose(1, "killed");
        assert_eq!(dealt(&fleet), [(0, 0, 3), (2, 1, 3), (3, 2, 3)]);
        assert_eq!((fleet.count(), fleet.left(), fleet.has_lost()), (4, 3, true));
        fleet.on_lost = OnAgentLost::End;
        assert_eq!(dealt(&fleet), [(0, 0, 4), (2, 2, 4), (3, 3, 4)], "the others read their own");
    }

    #[test]
    fn a_further_store_is_begun_by_those_that_are_left_alone() {
        let (mut fleet, _orders) = fleet(3, OnAgentLost::GoOn);
        fleet.lose(0, "killed");
        fleet.give_places();
        assert_eq!(dealt(&fleet), [(1, 0, 2), (2, 1, 2)]);
        assert_eq!((fleet.count(), fleet.has_lost(), fleet.has_unresolved()), (2, false, false));
        fleet.on_lost = OnAgentLost::End;
        fleet.give_places();
        assert!(fleet.has_lost(), "the run has ended");
    }

    #[test]
    fn each_of_the_others_hears_of_all_that_were_lost_in_order_and_their_records_are_unknown() {
        let (mut fleet, mut orders_of) = fleet(3, OnAgentLost::GoOn);
        let take_over = |fleet: &mut Fleet, session| {
            assert!(fleet.has_unresolved());
            fleet.take_over(3_000, session, &Interrupt::default()).unwrap();
            assert!(!fleet.has_unresolved() && fleet.has_lost());
        };
        fleet.lose(2, "killed");
        take_over(&mut fleet, 70);
        assert_eq!(latest_lost(&mut orders_of[1]), [(2, 70)]);
        assert_eq!(fleet.ownerless(5_000).unwrap().records, 1_000, "those of then");
        fleet.lose(0, "cut off");
        take_over(&mut fleet, 90);
        assert_eq!(latest_lost(&mut orders_of[1]), [(2, 70), (0, 90)]);
        let ownerless = fleet.ownerless(5_000).unwrap();
        assert_eq!((ownerless.records, ownerless.agents.len()), (2_000, 2));
        assert_eq!(fleet.lost().len(), 2);
    }

    /// One that is cut off may still send for as long as it takes it to notice, and a request takes a while, too.
    #[test]
    fn what_was_lost_is_quiet_when_silence_its_end_and_a_request_are_over() {
        let (mut fleet, _orders) = fleet(2, OnAgentLost::GoOn);
        let timeout = Duration::from_secs(2);
        assert_eq!(fleet.quiet_at(timeout), None);
        let before = Instant::now();
        fleet.lose(0, "cut off");
        let quiet = fleet.quiet_at(timeout).unwrap();
        assert!(quiet >= before + Duration::from_secs(11), "{:?}", quiet - before);
        assert!(quiet <= Instant::now() + Duration::from_secs(11));
    }
}
