//! One phase carried by agents: all are ready, all begin at one moment, all end. What they report becomes one
//! measure, by the code that brings the workers of one process together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use kvdyno_core::load::{
    Interrupt, Job, LoadError, LookedAgain, Moved, Observer, Team, TeamVoice, is_dealt,
};
use kvdyno_core::measure::{Nanos, OldRecords, PhaseMeasure, Stalls, StopReason, now};
use kvdyno_core::verdict::Reason;
use kvdyno_core::verify::AnomalyKind;
use kvdyno_core::workload::PhasePlan;
use kvdyno_report::result::AgentResult;

use super::dealer::Dealer;
use super::floor_talk::GatheredFloors;
use super::gathering::{AgentNews, Fleet};
use super::loss::OnAgentLost;
use super::member::{Member, late_begin, name_limit};
use super::messages::{AgentOrder, AgentReport, Opening, Preparing};
use super::outlier::{ComparedAgent, Outlier, find_outlier};
use super::reads::ReadsFrom;
use super::share::{Division, check, share_of};
use super::shares::{Displacement, displacement};
use super::wire::SILENCE;
use crate::account::{Ownerless, Unclear};
use crate::exit::Failure;

/// Time that agents may take to connect to a store, or to get their workers ready.
pub(super) const CONNECTING: Duration = Duration::from_secs(120);
/// Pause between two looks at what the conductor decides.
pub(super) const LOOK: Duration = Duration::from_millis(5);

impl Fleet {
    /// Gets all agents ready for a store, whose records they read as `reads` says; `opening` goes to all of them.
    ///
    /// # Errors
    /// [`Failure`] if one cannot reach the store, or if its plan has another hash.
    pub fn open(
        &mut self,
        interrupt: &Interrupt,
        (reads, on_lost): (ReadsFrom, OnAgentLost),
        opening: Opening,
    ) -> Result<(), Failure> {
        (self.goes_on, self.reads, self.on_lost) = (false, reads, on_lost);
        (self.opening, self.unknown_below) = (Some(opening), 0);
        self.lost_owners.clear();
        self.give_places();
        self.give_openings(interrupt)
    }

    /// Tells each agent that is there of the store, with its share of the load, and waits until all have reached it.
    pub(super) fn give_openings(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        let mut hash = String::new();
        for (number, division) in self.dealt() {
            let Some(opening) = self.opening.clone() else { continue };
            hash.clone_from(&opening.plan_hash);
            let (part, ownership) = (division.part(), division.ownership());
            let opening = Opening { part, ownership, ..opening };
            self.members[number].order(&AgentOrder::Open(Box::new(opening)));
        }
        let opened = self.receive_all(CONNECTING, interrupt, |_, report| match report {
            AgentReport::Opened { plan_hash } if plan_hash == hash => Ok(Some(())),
            AgentReport::Opened { .. } => Err("it understands the plan differently".to_owned()),
            AgentReport::Failed(why) => Err(why),
            _ => Ok(None),
        });
        opened.map(|_| ()).map_err(|why| match self.lost().is_empty() {
            true => Failure::unavailable(why),
            false => Failure::of_load("", &LoadError::Agents(why)),
        })
    }

    /// Tells all agents that the run is done with the store.
    pub fn close(&self) {
        self.members.iter().for_each(|member| member.order(&AgentOrder::Close));
    }

    /// Number of agents that carry the load of the store, those that were lost meanwhile included.
    pub fn count(&self) -> u32 {
        self.members.iter().filter(|member| member.place.is_some()).count() as u32
    }

    /// Returns what is unknown of the records 0..`records` because agents were lost; call it once these are read
    /// back. `None` if no agent was lost.
    pub fn ownerless(&self, records: u64) -> Option<Ownerless> {
        let (reads, count) = (self.reads, self.count());
        let mut ownerless = Ownerless::default();
        let places = self.members.iter().filter_map(|member| Some((member.place?, member)));
        for (index, member) in places.filter(|(_, member)| !member.is_there()) {
            let own = match member.estate {
                Some(estate) => estate.records,
                None => Division { reads, index, count }.own(records),
            };
            // A lost agent may have told before what it had read. If it had taken over from others, some of that was
            // theirs.
            let read = match member.phase.reads_back && self.lost_owners.is_empty() {
                true => member.phase.findings.tally.records,
                false => 0,
            };
            ownerless.agents.push(member.name.clone());
            ownerless.acknowledged += member.acknowledged;
            if own > read {
                ownerless.records += own - read;
                ownerless.before.add(member.unclear);
            }
        }
        ownerless.records = ownerless.records.max(self.unknown_below).min(records);
        (!ownerless.agents.is_empty()).then_some(ownerless)
    }

    /// Returns true if an agent was lost since the agents carry the load of the store.
    pub fn has_lost(&self) -> bool {
        self.members.iter().any(|member| member.place.is_some() && !member.is_there())
    }

    /// Agents that carry the phase that is on, or was last, those that were lost in it included.
    pub(super) fn carriers(&self) -> impl Iterator<Item = &Member> {
        let carry = |member: &&Member| member.place.is_some() && member.estate.is_none();
        self.members.iter().filter(carry)
    }

    /// Describes the first agent that was lost and whose load no other has taken over, with the reason.
    pub(super) fn first_unresolved(&self) -> Option<String> {
        let lost = self.unresolved().next()?;
        Some(format!("{}: {}", lost.who(), lost.lost.as_ref()?))
    }

    /// Describes the agents that were lost, each with the reason.
    pub fn lost(&self) -> Vec<String> {
        let lost = self
            .members
            .iter()
            .filter(|member| member.place.is_some())
            .filter_map(|member| Some(format!("{}: {}", member.who(), member.lost.as_ref()?)));
        lost.collect()
    }

    /// Carries the load of a phase; `job` is the whole of it. What looked wrong is still to be read again. If an
    /// agent is lost there is no load, but the others read their own records back.
    ///
    /// # Errors
    /// [`LoadError`] if it could not begin.
    pub fn load(
        &mut self,
        phase: &PhasePlan,
        job: &Arc<Job>,
        reads_back: bool,
        interrupt: &Interrupt,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError> {
        let dealt = self.dealt();
        check(phase, dealt.first().map_or(1, |dealt| dealt.1.count)).map_err(LoadError::Agents)?;
        self.goes_on = reads_back;
        self.members.iter_mut().for_each(|member| member.make_ready(reads_back));
        (0..self.members.len()).for_each(|number| self.latest_use.forget(number));
        self.set_clocks(interrupt).map_err(LoadError::Agents)?;
        self.prepared += 1;
        let number = self.prepared;
        let deals = self.reads == ReadsFrom::Own
            && dealt.len() > 1
            && phase.groups.iter().any(|group| is_dealt(phase, group));
        for (of, division) in dealt.into_iter().filter(|(of, _)| self.members[*of].is_there()) {
            let phase = share_of(phase, division);
            let preparing = Preparing { number, phase, reads_back, deals };
            self.members[of].order(&AgentOrder::Prepare(Box::new(preparing)));
        }
        let mut bases = Vec::new();
        let ready = self.receive_all(CONNECTING, interrupt, |from, report| match report {
            AgentReport::Base { number: of, runs } if of == number => {
                bases.push((from, runs));
                Ok(None)
            }
            AgentReport::Ready { number: of, workers } if of == number => Ok(Some(workers)),
            AgentReport::Unready { number: of, why } if of == number => Err(why),
            _ => Ok(None),
        });
        for (from, runs) in bases {
            self.hand_on_base(number, from, runs);
        }
        let agreed = ready.and_then(|ready| Ok((ready, self.agree_on_start(number, interrupt)?)));
        let (ready, start) = agreed.map_err(|why| {
            let order = AgentOrder::CallOff { number };
            self.members.iter().for_each(|member| member.order(&order));
            LoadError::Agents(why)
        })?;
        let started_at = SystemTime::now() + Duration::from_nanos(start.saturating_sub(now()));
        let mut first_worker = 0;
        for (member, workers) in self.members.iter_mut().zip(ready) {
            let Some(workers) = workers else { continue };
            let at = member.clock.own.there(start);
            let clock = start.wrapping_sub(at) as i64;
            member.take_part(Moved { first_worker, clock }, workers);
            first_worker += workers;
        }
        let (voice, team) = Team::new(first_worker, start, started_at);
        let dealer = deals.then(|| Dealer::new(number, phase));
        let mut measure = self.conduct(job, (team, voice), dealer, observer);
        self.see_clocks();
        // Each part inserts into records of its own, so one reaches further than another.
        let reached = self.members.iter().map(|member| member.phase.records);
        measure.records = reached.max().unwrap_or(0).max(measure.records);
        Ok(measure)
    }

    /// Conducts the team's phase: another thread hears the agents and hands on what is decided, while the phase goes
    /// on.
    fn conduct(
        &mut self,
        job: &Arc<Job>,
        (team, voice): (Team, TeamVoice),
        dealer: Option<Dealer>,
        observer: &mut dyn Observer,
    ) -> PhaseMeasure {
        let over = AtomicBool::new(false);
        let (stalls, received) = channel();
        let count = self.members.iter().filter(|member| member.is_there()).count();
        std::thread::scope(|scope| {
            // Nobody changes a rate before the team begins.
            let planned = job.changes().iter().map(Vec::len).collect();
            let floors = GatheredFloors::new(self.prepared);
            let relay = Relay { voice, job, over: &over, stalls, planned, dealer, floors };
            scope.spawn(|| relay.go_on(self));
            let measure = team.conduct(job, observer, || worst(&received, count));
            over.store(true, Ordering::Relaxed);
            measure
        })
    }

    /// Lets each agent read again what was not answered or looked wrong there, and enters the results into the measure.
    pub fn look_again(&mut self, measure: &mut PhaseMeasure, interrupt: &Interrupt) {
        self.members.iter().for_each(|member| member.order(&AgentOrder::ReadAgain));
        let mut all = LookedAgain::default();
        let mut waiting: Vec<bool> = self.members.iter().map(Member::is_there).collect();
        let mut hurried = false;
        while waiting.contains(&true) {
            match self.inbox.recv_timeout(LOOK) {
                Ok((number, AgentNews::Says(AgentReport::LookedAgain(again)))) => {
                    if std::mem::take(&mut waiting[number]) {
                        let (mut again, member) = (*again, &mut self.members[number]);
                        member.phase.moved.findings(&mut again.findings);
                        member.acknowledged += again.findings.tally.writes_acknowledged;
                        member.phase.foreign = again.foreign;
                        all.add(again);
                    }
                }
                Ok((number, AgentNews::Gone(why))) => {
                    self.lose(number, &why);
                    waiting[number] = false;
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if interrupt.is_raised() && !std::mem::replace(&mut hurried, true) {
                self.members.iter().for_each(|member| member.order(&AgentOrder::Hurry));
            }
        }
        // Of an agent that is lost the conductor has what its workers had found by the end of the load.
        for member in self.members.iter_mut().filter(|member| !member.is_there()) {
            let findings = member.phase.findings.clone();
            member.acknowledged += findings.tally.writes_acknowledged;
            // Nobody knows whether a record that was old at first came right later.
            let old =
                if member.phase.reads_back { findings.tally.of(AnomalyKind::Stale) } else { 0 };
            let old = OldRecords { unread: old, ..OldRecords::default() };
            all.add(LookedAgain { findings, old, ..LookedAgain::default() });
        }
        all.enter(measure);
        if measure.unread + measure.tally.not_read_again > 0 && interrupt.is_raised() {
            measure.stopped = StopReason::Interrupted;
        }
    }

    /// Asks the agents how the records stand before they are read back.
    pub fn count_unclear(&mut self, records: u64, interrupt: &Interrupt) -> Unclear {
        self.goes_on = true;
        let order = AgentOrder::CountUnclear { records };
        self.members.iter().for_each(|member| member.order(&order));
        let counted = self.receive_all(CONNECTING, interrupt, |_, report| match report {
            AgentReport::Unclear(unclear) => Ok(Some(unclear)),
            _ => Ok(None),
        });
        let mut all = Unclear::default();
        for (member, counted) in self.members.iter_mut().zip(counted.unwrap_or_default()) {
            member.unclear = counted.unwrap_or_default();
            all.add(member.unclear);
        }
        all
    }

    /// Returns the table of agents of the phase that was measured last.
    pub fn table(&self, measure: &PhaseMeasure) -> Vec<AgentResult> {
        let all = measure.series.iter().map(|(_, series)| series.completed()).sum();
        let seconds = measure.span().as_secs_f64();
        self.carriers().map(|member| member.row(all, seconds)).collect()
    }

    /// Returns the reason that names an outlier among the agents of the phase that was measured last, if there is one.
    pub fn outlier(&self, phase: &PhasePlan) -> Option<Reason> {
        let open = phase.groups.iter().any(|group| group.arrival.is_open());
        let members: Vec<&Member> = self.carriers().collect();
        let compared = members.iter().map(|member| ComparedAgent {
            course: &member.phase.course,
            clients: member.clients(),
        });
        let found = find_outlier(&compared.collect::<Vec<_>>(), open)?;
        let Outlier { agent, figure, stretches_apart: unlike, stretches: intervals, times } = found;
        let agent = members[agent].called();
        Some(Reason::AgentOutlier { agent, figure, unlike, intervals, times })
    }

    /// Returns the agent that began last in the phase that was measured last and took `span`, if it began late.
    pub fn late_begin(&self, span: Duration) -> Option<Reason> {
        late_begin(&self.members, span)
    }

    /// Returns the reason that the operations of the closed phase measured last went to other records than was asked,
    /// if they did.
    pub fn skewed(&self, phase: &PhasePlan) -> Option<Reason> {
        let members: Vec<&Member> = self.carriers().filter(|member| member.is_there()).collect();
        let courses: Vec<_> = members.iter().map(|member| &member.phase.groups).collect();
        let displacement = displacement(phase, self.reads, &courses)?;
        let Displacement { displaced, ahead, behind, times } = displacement;
        let [ahead, behind] = [ahead, behind].map(|agent| members[agent].called());
        Some(Reason::KeysSkewed { displaced, ahead, behind, times })
    }

    /// Names the agent whose worker the limit was: numbers of workers mean nothing to people where agents have them.
    pub fn name_limit(&self, reason: &mut Reason) {
        name_limit(&self.members, reason);
    }

    /// Waits until every agent that is there has sent a message that `take` accepts. Returns what `take` made of each.
    fn receive_all<T>(
        &mut self,
        patience: Duration,
        interrupt: &Interrupt,
        mut take: impl FnMut(usize, AgentReport) -> Result<Option<T>, String>,
    ) -> Result<Vec<Option<T>>, String> {
        let mut all: Vec<Option<T>> = self.members.iter().map(|_| None).collect();
        let until = Instant::now() + patience;
        let waits = |all: &[Option<T>], members: &[Member]| {
            all.iter()
                .zip(members)
                .position(|(report, member)| report.is_none() && member.is_there())
        };
        while let Some(silent) = waits(&all, &self.members) {
            let left = until.saturating_duration_since(Instant::now());
            let received = self.receive(left, interrupt, |from, report| {
                take(from, report).map(|taken| taken.map(|taken| (from, taken)))
            })?;
            match received {
                Some((from, taken)) => all[from] = Some(taken),
                // An agent was lost, maybe this one.
                None if Instant::now() < until => {}
                None => {
                    let (who, waited) = (self.members[silent].who(), patience.as_secs());
                    return Err(format!("{who} had nothing to say for {waited} s"));
                }
            }
        }
        match self.members.iter().any(Member::is_there) {
            true => Ok(all),
            false => Err("every agent was lost".to_owned()),
        }
    }

    /// Waits until an agent has sent a message that `take` accepts; `None` if none has in time, or if one was lost
    /// and the others go on without it.
    pub(super) fn receive<T>(
        &mut self,
        patience: Duration,
        interrupt: &Interrupt,
        mut take: impl FnMut(usize, AgentReport) -> Result<Option<T>, String>,
    ) -> Result<Option<T>, String> {
        if let Some(lost) = self.first_unresolved().filter(|_| !self.goes_on) {
            return Err(lost);
        }
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.inbox.recv_timeout(left.min(10 * LOOK)) {
                Ok((number, AgentNews::Says(report))) => {
                    let who = || self.members[number].who();
                    let taken = take(number, report).map_err(|why| format!("{}: {why}", who()))?;
                    if taken.is_some() {
                        return Ok(taken);
                    }
                }
                Ok((number, AgentNews::Gone(why))) => {
                    self.lose(number, &why);
                    return match self.goes_on {
                        true => Ok(None),
                        false => Err(format!("{}: {why}", self.members[number].who())),
                    };
                }
                Ok((_, AgentNews::Joined(..))) => {}
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("nobody listens to the agents any more".to_owned());
                }
            }
            if interrupt.is_raised() {
                return Err("the user stopped the run".to_owned());
            }
        }
    }

    /// Enters that an agent is lost while nothing is measured.
    pub(super) fn lose(&mut self, number: usize, why: &str) {
        if self.members[number].is_there() {
            self.members[number].note_loss(why);
            warn_user!("kvdyno: lost {}: {why}", self.members[number].who());
        }
    }
}

/// Relay of a phase: hands on what agents say to the team, and what is decided of the phase to the agents.
struct Relay<'a> {
    voice: TeamVoice,
    job: &'a Arc<Job>,
    over: &'a AtomicBool,
    stalls: Sender<Stalls>,
    /// Changes of each group's rate that agents know from the plan.
    planned: Vec<usize>,
    /// Dealer of the operations of closed groups.
    dealer: Option<Dealer>,
    /// Floors that agents tell each other.
    floors: GatheredFloors,
}

impl Relay<'_> {
    fn go_on(mut self, fleet: &mut Fleet) {
        let (mut deadline, mut abandoned, mut given_up) = (Nanos::MAX, false, None);
        let mut handed_on = self.planned.clone();
        loop {
            match fleet.inbox.recv_timeout(LOOK) {
                Ok((number, AgentNews::Says(AgentReport::Used(used)))) => {
                    fleet.latest_use.enter(number, &fleet.members[number].name, used);
                }
                Ok((number, AgentNews::Says(AgentReport::Claim { number: of, claim }))) => {
                    if let Some(dealer) = &mut self.dealer {
                        dealer.claim(&fleet.members, number, of, claim);
                    }
                }
                Ok((number, AgentNews::Says(AgentReport::Floors { number: of, acks }))) => {
                    self.floors.on_acks(fleet, of, number, acks);
                }
                Ok((number, news)) => {
                    self.on_news(&mut fleet.members[number], news);
                    if !fleet.members[number].is_there() {
                        fleet.latest_use.forget(number);
                        if let Some(dealer) = &mut self.dealer {
                            dealer.lose(&fleet.members, number);
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.floors.hand_on_old(fleet);
            let decided = self.job.deadline();
            if decided < deadline {
                deadline = decided;
                for member in &fleet.members {
                    member.order(&AgentOrder::StopAt(member.clock.own.there(deadline)));
                }
            }
            if self.job.change_count() > handed_on.iter().sum() {
                self.hand_on_changes(&fleet.members, &mut handed_on);
            }
            if self.job.is_abandoned() && !std::mem::replace(&mut abandoned, true) {
                fleet.members.iter().for_each(|member| member.order(&AgentOrder::Abandon));
            }
            if self.over.load(Ordering::Relaxed) {
                let until = *given_up.get_or_insert_with(|| Instant::now() + SILENCE);
                let all = fleet.members.iter().all(|member| member.phase.loaded);
                if all || Instant::now() >= until {
                    self.floors.hand_on(fleet);
                    return;
                }
            }
        }
    }

    fn hand_on_changes(&self, members: &[Member], handed_on: &mut [usize]) {
        for (group, (all, known)) in self.job.changes().iter().zip(handed_on).enumerate() {
            for change in all.iter().skip(std::mem::replace(known, all.len())) {
                let order = AgentOrder::Rate { group, change: *change };
                members.iter().for_each(|member| member.order(&order));
            }
        }
    }

    fn on_news(&self, member: &mut Member, news: AgentNews) {
        match news {
            // A lost agent may still talk.
            AgentNews::Says(_) if !member.is_there() => {}
            AgentNews::Says(AgentReport::Batch(batch)) => member.batch(*batch, &self.voice),
            AgentNews::Says(AgentReport::Ended(report)) => member.ended(*report, &self.voice),
            AgentNews::Says(AgentReport::Loaded { stalls, machine, records, passing }) => {
                (member.phase.machine, member.phase.records) = (machine, records);
                member.phase.passing = passing;
                member.phase.loaded = true;
                let _ = self.stalls.send(member.phase.moved.stalls(stalls));
            }
            AgentNews::Says(AgentReport::Unready { why, .. }) | AgentNews::Gone(why) => {
                if member.is_there() {
                    warn_user!(
                        "kvdyno: lost {}: {why}; the others end the phase in good order",
                        member.who()
                    );
                }
                if !member.phase.loaded {
                    let _ = self.stalls.send(Stalls::default());
                }
                member.lose(&why, &self.voice);
            }
            AgentNews::Says(_) | AgentNews::Joined(..) => {}
        }
    }
}

/// Returns the standstills of the agent that stood still longest: those of several together cannot be added up.
fn worst(stalls: &Receiver<Stalls>, count: usize) -> Stalls {
    let received = (0..count).map_while(|_| stalls.recv_timeout(SILENCE).ok());
    let still = |stalls: &Stalls| stalls.standstill(&[]).total;
    received.max_by_key(still).unwrap_or_default()
}
