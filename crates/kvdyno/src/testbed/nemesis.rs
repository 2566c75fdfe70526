//! Injects the faults of a phase into its testbed while the phase runs, and repairs what is left of them when it is
//! over, however it ends. It hears of the phase's progress, and publishes what it does.

mod disturbance;
mod done;
mod first_fault;
mod looking_back;
mod manual_action;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kvdyno_core::load::Interrupt;
use kvdyno_core::measure::{Nanos, now};
use kvdyno_core::workload::fault::{
    ADD, ActionFailure, FaultCondition, FaultPlan, Harm, NodeAction, NodeFault, NodeSelector,
    ProcessOutcome,
};
use kvdyno_core::workload::{PhasePlan, Random};
use kvdyno_report::events::Event;
use kvdyno_report::events::stream::EventStream;
use kvdyno_report::result::{FaultResult, MOVE_RECORDS, SteeredResult, mark_dark};
use kvdyno_testbed::{NodeDescription, TestbedError};

use super::NodeProcesses;
use super::aim::{Aimed, choose, few, sides, wanted};
use super::newcomers::{Newcomers, TAKE_RECORDS};
use super::recovery_wait::{RecoveryWait, State};
use super::shared_keeper::{SharedKeeper, lock};
use crate::steering::WaitingOrder;
pub use disturbance::{Disturbance, Disturbed, Surroundings};
use done::{cut_result, failed};
use first_fault::First;
use looking_back::InsertStretch;
pub use looking_back::LookBack;
pub use manual_action::ManualAction;

/// Longest time between two looks at a phase in which nothing is due.
const IDLE: Duration = Duration::from_secs(60);

/// Nemesis with faults under way.
struct Nemesis {
    /// Sender of the phase's progress and of manual orders; dropped when the phase is over.
    to_nemesis: Sender<NemesisMessage>,
    thread: JoinHandle<NemesisActions>,
    first: Arc<First>,
    /// True once the phase is over: nothing more is begun.
    is_over: Arc<AtomicBool>,
}

/// Message to a nemesis.
enum NemesisMessage {
    News(News),
    Manual(Box<(ManualAction, WaitingOrder)>),
}

/// Actions of a nemesis, in order.
#[derive(Default)]
struct NemesisActions {
    done: Vec<FaultResult>,
    manual: Vec<SteeredResult>,
    /// Records that were absent after the repair of a cut.
    absent: Vec<u64>,
}

/// Progress of the phase, as far as faults wait for it.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    /// Operations that have succeeded.
    acked: u64,
    /// True once the rate asked for was reached.
    at_rate: bool,
}

/// Task of a nemesis, on its agenda.
#[derive(Clone)]
enum Task {
    /// A fault, by its number in the phase, zero-based.
    Fault(usize),
    /// The repair of a fault.
    Repair(Repair),
}

/// Repair of nodes.
#[derive(Clone)]
struct Repair {
    action: NodeAction,
    nodes: Vec<String>,
    /// Numbers of the faults that made it necessary.
    of: Vec<usize>,
}

impl Nemesis {
    /// Begins with the faults of a phase that begins at `start`. The phase's seed decides which node `any` is.
    fn start(
        keeper: &SharedKeeper,
        around: Surroundings<'_>,
        phase: &PhasePlan,
        start: Nanos,
    ) -> Nemesis {
        let faults = &phase.faults;
        let seed = phase.groups.first().map_or(0, |group| group.seed);
        let records = phase.groups.iter().map(|group| group.records).max().unwrap_or(0);
        let (to_nemesis, messages) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let first = Arc::new(First::none());
        let executor = FaultExecutor {
            first: Arc::clone(&first),
            events: around.events.clone(),
            start,
            keeper: Arc::clone(keeper),
            node_processes: around.node_processes.clone(),
            newcomers: Newcomers::new(around.store, around.dataset, records),
            interrupt: Arc::clone(around.interrupt),
            faults: faults.clone(),
            random: Random::new(seed, 0),
            waiting: (0..faults.len()).filter(|at| faults[*at].when.is_some()).collect(),
            begun: BTreeSet::new(),
            agenda: Vec::new(),
            done: Vec::new(),
            recovery: RecoveryWait::default(),
            put_off: BTreeSet::new(),
            manual: Vec::new(),
            stretch: around.look_back.cloned().map(InsertStretch::new),
            is_over: Arc::clone(&is_over),
        };
        let thread = std::thread::spawn(move || executor.work(&messages));
        Nemesis { to_nemesis, thread, first, is_over }
    }

    /// Ends the nemesis, for the phase is over, and repairs what is broken. Returns what was done.
    fn stop(self) -> NemesisActions {
        self.is_over.store(true, Ordering::Relaxed);
        drop(self.to_nemesis);
        self.thread.join().unwrap_or_default()
    }
}

struct FaultExecutor {
    first: Arc<First>,
    /// Stream to which it publishes what it does.
    events: EventStream,
    /// Begin of the phase, ns.
    start: Nanos,
    keeper: SharedKeeper,
    /// Processes of the nodes; it is told of nodes that are new processes.
    node_processes: NodeProcesses,
    /// Servers that have joined.
    newcomers: Newcomers,
    interrupt: Arc<Interrupt>,
    faults: Vec<FaultPlan>,
    random: Random,
    /// Numbers of faults whose condition does not hold yet.
    waiting: Vec<usize>,
    /// Numbers of faults whose time has come once.
    begun: BTreeSet<usize>,
    agenda: Vec<(Instant, Task)>,
    done: Vec<FaultResult>,
    /// Copies that a repair is to bring back.
    recovery: RecoveryWait,
    /// Numbers of faults that wait for copies to be whole.
    put_off: BTreeSet<usize>,
    /// Manual actions, in order.
    manual: Vec<SteeredResult>,
    /// Inserts that power cuts meet, if they are looked for after each cut.
    stretch: Option<InsertStretch>,
    /// True once the phase is over: nothing more is begun.
    is_over: Arc<AtomicBool>,
}

impl FaultExecutor {
    fn work(mut self, messages: &Receiver<NemesisMessage>) -> NemesisActions {
        let begin = Instant::now() + Duration::from_nanos(self.start.saturating_sub(now()));
        for number in 0..self.faults.len() {
            if self.faults[number].when.is_none() {
                self.await_fault(number, begin + self.faults[number].at);
            }
        }
        loop {
            self.look_back();
            let next = self.next();
            let due =
                next.map(|next| self.agenda[next].0.saturating_duration_since(Instant::now()));
            let look = self.recovery.next_look();
            let wait = due.unwrap_or(IDLE).min(look.unwrap_or(IDLE));
            match messages.recv_timeout(wait) {
                Ok(NemesisMessage::News(news)) => self.on_news(news),
                Ok(NemesisMessage::Manual(order)) => self.take(*order),
                Err(RecvTimeoutError::Disconnected) => break,
                // A fault that waits for copies is due with the next look: the look comes first.
                Err(RecvTimeoutError::Timeout)
                    if look.is_some_and(|look| due.is_none_or(|due| look <= due)) =>
                {
                    self.look_at_copies();
                }
                Err(RecvTimeoutError::Timeout) => {
                    let Some(next) = next else { continue };
                    let (due, task) = self.agenda.swap_remove(next);
                    self.carry_out(due, task);
                }
            }
        }
        self.repair_all();
        for newcomer in self.newcomers.account() {
            self.note_share(newcomer);
        }
        mark_dark(&mut self.done);
        let absent = self.stretch.map_or_else(Vec::new, InsertStretch::absent);
        NemesisActions { done: self.done, manual: self.manual, absent }
    }

    /// Schedules the faults whose condition holds now.
    fn on_news(&mut self, news: News) {
        let holds = |number: &usize| match self.faults[*number].when {
            Some(FaultCondition::Acked(count)) => news.acked >= count,
            Some(FaultCondition::Rate) => news.at_rate,
            None => true,
        };
        let (due, waiting) = self.waiting.iter().copied().partition(holds);
        self.waiting = waiting;
        for number in Vec::<usize>::into_iter(due) {
            self.await_fault(number, Instant::now() + self.faults[number].at);
        }
    }

    /// Schedules the fault of this number at this moment, or as much later as its spread lets it.
    fn await_fault(&mut self, number: usize, moment: Instant) {
        let spread = self.faults[number].spread.unwrap_or_default().as_nanos() as u64;
        let later = if spread > 0 { self.random.below(spread) } else { 0 };
        self.agenda.push((moment + Duration::from_nanos(later), Task::Fault(number)));
    }

    /// Ends the phase: repairs all that waits for its repair, equal repairs at one moment. Reports each fault that
    /// was to come once and never came.
    fn repair_all(&mut self) {
        self.agenda.sort_by_key(|(due, _)| *due);
        let mut repairs: Vec<Repair> = Vec::new();
        let mut late: Vec<usize> = std::mem::take(&mut self.waiting);
        for (_, task) in std::mem::take(&mut self.agenda) {
            match task {
                Task::Fault(number) => late.push(number),
                Task::Repair(repair) => {
                    match repairs.iter_mut().find(|known| known.action == repair.action) {
                        Some(known) => known.nodes.extend(repair.nodes),
                        None => repairs.push(repair),
                    }
                }
            }
        }
        for repair in repairs {
            self.publish_wait(format!("{}: {}", repair.action.describe(), repair.nodes.join(", ")));
            self.repair(repair.action, repair.nodes);
        }
        // A record that is still on its way must not count as lost when it is read back next.
        while self.recovery.next_look().is_some() && !self.interrupt.is_raised() {
            std::thread::sleep(self.recovery.next_look().unwrap_or_default());
            self.look_at_copies();
            if let Some(waits) = self.recovery.waits() {
                self.publish_wait(waits);
            }
        }
        for number in late {
            let fault = &self.faults[number];
            let what = fault.kind().word;
            let why = match fault.when {
                _ if self.begun.contains(&number) => continue,
                _ if self.put_off.contains(&number) => {
                    "the phase was over before the copies of an earlier repair were whole"
                }
                Some(_) => "the phase was over before its condition held, or its time came",
                None => "the phase was over before its time came",
            };
            self.note(what, &[], now(), (why.to_owned(), ActionFailure::Other));
        }
    }

    /// Publishes what is repaired, or waited for, now that the load is over.
    fn publish_wait(&self, what: String) {
        self.events.publish(Event::RecoveryWait { what });
    }

    /// Returns the place in the agenda of what is due first.
    fn next(&self) -> Option<usize> {
        (0..self.agenda.len()).min_by_key(|place| self.agenda[*place].0)
    }

    fn carry_out(&mut self, due: Instant, task: Task) {
        match task {
            Task::Repair(Repair { action, mut nodes, mut of }) => {
                // Equal repairs that are due as well are done at the same moment: servers may need each other to start.
                let moment = Instant::now();
                self.agenda.retain(|(due, other)| match other {
                    Task::Repair(other) if other.action == action && *due <= moment => {
                        nodes.extend(other.nodes.iter().cloned());
                        of.extend(&other.of);
                        false
                    }
                    _ => true,
                });
                self.repair(action, nodes);
                of.into_iter().for_each(|number| self.repaired(number));
            }
            Task::Fault(number) => {
                if let State::Recovering = self.recovery.state() {
                    let later = Instant::now() + self.recovery.next_look().unwrap_or_default();
                    self.agenda.push((due, Task::Fault(number)));
                    return self.put_off.extend(delay(&mut self.agenda, due, later));
                }
                if let State::Overdue(_) = self.recovery.state() {
                    self.look_at_copies();
                }
                let fault = self.faults[number].clone();
                self.begun.insert(number);
                self.fault(number, &fault);
                let repaired_first = self.awaits_repair(number);
                if let Some(every) = fault.every.filter(|_| !repaired_first) {
                    // Times that were missed meanwhile are not made up for.
                    let moment = Instant::now();
                    let mut next = due + every;
                    while next < moment {
                        next += every;
                    }
                    self.await_fault(number, next);
                }
            }
        }
    }

    fn awaits_repair(&self, number: usize) -> bool {
        let repairs =
            |task: &Task| matches!(task, Task::Repair(repair) if repair.of.contains(&number));
        self.agenda.iter().any(|(_, task)| repairs(task))
    }

    /// Schedules a recurring fault as long after its repair as was asked for, however long the repair took: else the
    /// fault would meet what is still broken, and do more harm than was meant.
    fn repaired(&mut self, number: usize) {
        let FaultPlan { every: Some(every), repair: Some(repair), .. } = self.faults[number] else {
            return;
        };
        let known = |task: &Task| matches!(task, Task::Fault(known) if *known == number);
        if !self.awaits_repair(number) && !self.agenda.iter().any(|(_, task)| known(task)) {
            self.await_fault(number, Instant::now() + every.saturating_sub(repair));
        }
    }

    fn repair(&mut self, action: NodeAction, nodes: Vec<String>) {
        let nodes: Aimed = nodes.into_iter().map(|node| (node, None)).collect();
        self.act(&action, &nodes);
    }

    fn fault(&mut self, number: usize, fault: &FaultPlan) {
        let (what, began, known) = (fault.kind().word, now(), self.done.len());
        self.first.begin(began);
        self.carry_through(number, fault, what, began);
        if self.done[known..].iter().all(|done| done.error.is_some()) {
            self.first.take_back(began);
        }
    }

    fn carry_through(
        &mut self,
        number: usize,
        fault: &FaultPlan,
        what: &'static str,
        began: Nanos,
    ) {
        let orders = match &fault.harm {
            Harm::Add => return self.add(what),
            Harm::Split { sides: named, way } => {
                lock(&self.keeper).nodes().and_then(|nodes| sides(&nodes, named, *way))
            }
            Harm::ToNodes { fault, aim, count } => {
                self.aimed(aim, *count).map(|aimed| vec![(fault.clone(), aimed)])
            }
        };
        match orders {
            Ok(orders) => {
                for (fault, aimed) in orders {
                    self.disturb(number, fault, &aimed);
                }
            }
            Err(error) => self.note(what, &[], began, failed(&error)),
        }
    }

    fn disturb(&mut self, number: usize, fault: NodeFault, aimed: &Aimed) {
        let action = NodeAction::Fault(fault.seeded(|| self.random.next_u64()));
        if action.outcome() == ProcessOutcome::Left {
            let nodes: Vec<String> = aimed.iter().map(|(node, _)| node.clone()).collect();
            for newcomer in self.newcomers.leaving(&nodes) {
                self.note_share(newcomer);
            }
        }
        if !self.act(&action, aimed) {
            return;
        }
        if let Some(repair) = action.repair() {
            // Without a time of its own the repair comes at the end of the phase.
            let patience = Duration::from_secs(u64::from(u32::MAX));
            let after = self.faults[number].repair.unwrap_or(patience);
            let nodes = aimed.iter().map(|(node, _)| node.clone()).collect();
            let repair = Repair { action: repair.into(), nodes, of: vec![number] };
            self.agenda.push((Instant::now() + after, Task::Repair(repair)));
        }
    }

    /// Returns the targets of a fault now.
    fn aimed(&mut self, aim: &NodeSelector, count: Option<u32>) -> Result<Aimed, TestbedError> {
        let nodes = lock(&self.keeper).nodes()?;
        let chosen = choose(&nodes, aim, count, &mut self.random);
        if chosen.is_empty() || count.is_some_and(|count| chosen.len() < count as usize) {
            let node_with_role = |node: &NodeDescription| match node.role {
                Some(role) => format!("{} ({})", node.name, role.name()),
                None => node.name.clone(),
            };
            let known: Vec<String> = nodes.iter().map(node_with_role).collect();
            let (few, wanted, known) = (few(count), wanted(aim), known.join(", "));
            return Err(TestbedError::Node(format!("{few} {wanted} now; there are {known}")));
        }
        Ok(chosen.iter().map(|node| (node.name.clone(), node.role)).collect())
    }

    /// Asks whether copies are whole by now, and keeps the answer for its repairs.
    fn look_at_copies(&mut self) {
        let copies = lock(&self.keeper).whole();
        if let Some((repairs, whole)) = self.recovery.on_copies(copies) {
            for (number, whole) in repairs.into_iter().zip(whole) {
                self.done[number].whole = Some(whole);
            }
        }
    }

    fn add(&mut self, what: &'static str) {
        let began = self.publish_begin(what);
        let added = lock(&self.keeper).add_node();
        match added {
            Ok(node) => {
                self.publish(self.fault_result(what, &node, None, began));
                self.recovery.begin(self.done.len() - 1..self.done.len(), began);
                self.node_processes.look(&self.keeper);
                self.join(node);
            }
            Err(error) => self.note(what, &[], began, failed(&error)),
        }
    }

    /// Moves records to a new server, if clients decide which server has a record.
    fn join(&mut self, node: String) {
        let what = MOVE_RECORDS;
        let began = now();
        let nodes = lock(&self.keeper).nodes().unwrap_or_default();
        let address = nodes.into_iter().find(|known| known.name == node).map(|new| new.address);
        match self.newcomers.take_in(&node, address.as_deref()) {
            Ok(None) => {}
            Ok(used) => {
                self.publish(FaultResult { used, ..self.fault_result(what, &node, None, began) })
            }
            Err(error) => self.note(what, &[(node, None)], began, (error, ActionFailure::Other)),
        }
    }

    /// Reports what a node that was added has of the records now that the load is over.
    fn note_share(&mut self, (node, share): (String, Result<String, String>)) {
        match share {
            Ok(share) => {
                let of = |done: &&mut FaultResult| done.what == ADD.word && done.node == node;
                if let Some(added) = self.done.iter_mut().find(of) {
                    added.used = Some(share);
                }
            }
            Err(why) => {
                self.note(TAKE_RECORDS, &[(node, None)], now(), (why, ActionFailure::Other))
            }
        }
    }

    /// Does something to nodes at one moment. Returns true if it was done.
    fn act(&mut self, action: &NodeAction, aimed: &Aimed) -> bool {
        let what = action.describe();
        let began = self.publish_begin(what);
        let names = aimed.iter().map(|(node, _)| node.clone()).collect();
        let is_cut = matches!(action, NodeAction::Fault(NodeFault::Power { .. }));
        if let Some(stretch) = self.stretch.as_mut().filter(|_| is_cut) {
            stretch.meet();
        }
        let (acted, cut) = {
            let mut keeper = lock(&self.keeper);
            let acted = keeper.act_on(names, action.clone());
            // If the keeper is gone, its next order fails and says so.
            let cut = if is_cut { keeper.take_cut().unwrap_or_default() } else { None };
            (acted, cut.map(cut_result))
        };
        match acted {
            Ok(used) => {
                let (ended_ns, first) = (self.since_begin(now()), self.done.len());
                // Only an action that harms meets copies that are missing; a restart harms and repairs.
                let (harms, renews) = (
                    matches!(action, NodeAction::Fault(_)),
                    action.outcome() == ProcessOutcome::Renewed,
                );
                let mends = renews || !harms;
                if renews {
                    self.node_processes.look(&self.keeper);
                }
                for (node, role) in aimed {
                    let not_whole = self.recovery.overdue().filter(|_| harms);
                    let (used, action) =
                        (Some(used.clone()), self.fault_result(what, node, *role, began));
                    let cut = cut.clone();
                    self.publish(FaultResult { ended_ns, used, not_whole, cut, ..action });
                }
                if let Some(stretch) = self.stretch.as_mut().filter(|_| is_cut) {
                    stretch.was_cut(first);
                }
                if mends {
                    self.recovery.begin(first..self.done.len(), began);
                }
                true
            }
            Err(error) => {
                self.note(what, aimed, began, failed(&error));
                false
            }
        }
    }

    /// Publishes that an action begins now. Returns that moment.
    fn publish_begin(&self, what: &'static str) -> Nanos {
        let began = now();
        let at_ns = self.since_begin(began);
        self.events.publish(Event::FaultBegan { what: what.to_owned(), at_ns });
        began
    }

    /// Returns the time from the phase's begin until `at`, ns.
    fn since_begin(&self, at: Nanos) -> u64 {
        at.saturating_sub(self.start)
    }
}

/// Puts off the faults that are due at `due` to `later`, and those after them by as much: else all that fell due
/// while copies were not whole would strike together. Returns the numbers of the faults that were put off.
fn delay(agenda: &mut [(Instant, Task)], due: Instant, later: Instant) -> Vec<usize> {
    let by = later.saturating_duration_since(due);
    let mut put_off = Vec::new();
    for (moment, task) in agenda.iter_mut().filter(|(moment, _)| *moment >= due) {
        if let Task::Fault(number) = task {
            *moment += by;
            put_off.push(*number);
        }
    }
    put_off
}

#[cfg(test)]
mod tests;
