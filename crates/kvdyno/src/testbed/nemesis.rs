//! Carries out the faults of a phase on its testbed while the phase runs, and puts right what is
//! left of them when it is over, however it ends.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kvdyno_core::load::{Observer, Progress};
use kvdyno_core::measure::{Interval, Nanos, now};
use kvdyno_core::workload::{Aim, FaultKind, FaultPlan, PhasePlan, Random};
use kvdyno_report::result::FaultResult;
use kvdyno_testbed::keeper::Keeper;
use kvdyno_testbed::{Action, NodeDescription, Role, TestbedError};

use crate::output::PhaseObserver;

/// A testbed that the run and its nemesis both have a hand on.
pub type SharedKeeper = Arc<Mutex<Keeper>>;

/// Faults under way.
struct Nemesis {
    /// Closed when the phase is over.
    over: Sender<()>,
    thread: JoinHandle<Vec<Done>>,
}

/// Something that was done, on core's clock.
struct Done {
    what: &'static str,
    node: String,
    role: Option<Role>,
    began: Nanos,
    ended: Nanos,
    error: Option<String>,
}

/// Something that is to be done.
#[derive(Clone)]
enum Task {
    /// A fault, by its number in the phase.
    Fault(usize),
    /// The repair of what was done to a node.
    Repair(Action, String),
}

impl Nemesis {
    /// Begins with the faults of a phase that begins at `start`. `seed` decides who is meant by `any`.
    fn start(keeper: &SharedKeeper, faults: &[FaultPlan], seed: u64, start: Nanos) -> Nemesis {
        let (over, until) = channel();
        let hand = Hand {
            keeper: Arc::clone(keeper),
            faults: faults.to_vec(),
            random: Random::new(seed, 0),
            agenda: Vec::new(),
            done: Vec::new(),
        };
        let thread = std::thread::spawn(move || hand.work(start, &until));
        Nemesis { over, thread }
    }

    /// The phase is over: what is broken is repaired. What was done, in order; `start` is the
    /// phase's begin.
    fn stop(self, start: Nanos) -> Vec<FaultResult> {
        drop(self.over);
        let done = self.thread.join().unwrap_or_default();
        let since = |at: Nanos| at.saturating_sub(start);
        let result = |done: Done| FaultResult {
            what: done.what.to_owned(),
            node: done.node,
            role: done.role.map(|role| role.name().to_owned()),
            began_ns: since(done.began),
            ended_ns: since(done.ended),
            error: done.error,
        };
        done.into_iter().map(result).collect()
    }
}

/// Watches a phase and has its faults carried out between its begin and its end.
pub struct Disturbed<'a> {
    watching: PhaseObserver<'a>,
    keeper: Option<&'a SharedKeeper>,
    phase: &'a PhasePlan,
    nemesis: Option<(Nemesis, Nanos)>,
    faults: Vec<FaultResult>,
}

impl<'a> Disturbed<'a> {
    /// Nothing is disturbed without a keeper or without faults.
    pub fn new(
        watching: PhaseObserver<'a>,
        keeper: Option<&'a SharedKeeper>,
        phase: &'a PhasePlan,
    ) -> Self {
        Disturbed { watching, keeper, phase, nemesis: None, faults: Vec::new() }
    }

    /// What was done, in order.
    pub fn into_faults(mut self) -> Vec<FaultResult> {
        // Where the phase could not even end, what is broken is repaired here.
        self.over();
        self.faults
    }
}

impl Observer for Disturbed<'_> {
    fn began(&mut self, start: Nanos) {
        if let Some(keeper) = self.keeper.filter(|_| !self.phase.faults.is_empty()) {
            let seed = self.phase.groups.first().map_or(0, |group| group.seed);
            self.nemesis = Some((Nemesis::start(keeper, &self.phase.faults, seed, start), start));
        }
    }

    fn over(&mut self) {
        if let Some((nemesis, start)) = self.nemesis.take() {
            self.faults = nemesis.stop(start);
        }
    }

    fn interval(&mut self, interval: &Interval) {
        self.watching.interval(interval);
    }

    fn progress(&mut self, progress: &Progress) {
        self.watching.progress(progress);
    }
}

struct Hand {
    keeper: SharedKeeper,
    faults: Vec<FaultPlan>,
    random: Random,
    agenda: Vec<(Instant, Task)>,
    done: Vec<Done>,
}

impl Hand {
    fn work(mut self, start: Nanos, until: &Receiver<()>) -> Vec<Done> {
        let begin = Instant::now() + Duration::from_nanos(start.saturating_sub(now()));
        self.agenda =
            self.faults.iter().enumerate().map(|(i, f)| (begin + f.at, Task::Fault(i))).collect();
        while let Some(next) = self.next() {
            let wait = self.agenda[next].0.saturating_duration_since(Instant::now());
            if until.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            let (due, task) = self.agenda.swap_remove(next);
            self.carry_out(due, &task);
        }
        if self.agenda.is_empty() {
            // Nothing else is due: whatever comes now is the end of the phase.
            let _ = until.recv();
        }
        self.agenda.sort_by_key(|(due, _)| *due);
        for (due, task) in std::mem::take(&mut self.agenda) {
            if let Task::Repair(..) = task {
                self.carry_out(due, &task);
            }
        }
        self.done
    }

    /// The place of what is due first.
    fn next(&self) -> Option<usize> {
        (0..self.agenda.len()).min_by_key(|place| self.agenda[*place].0)
    }

    fn carry_out(&mut self, due: Instant, task: &Task) {
        match task {
            Task::Repair(action, node) => {
                let what = if *action == Action::Resume { "resume" } else { "start again" };
                self.act(what, *action, (node.clone(), None));
            }
            Task::Fault(number) => {
                let fault = self.faults[*number].clone();
                self.fault(&fault);
                if let Some(every) = fault.every {
                    self.agenda.push((due + every, Task::Fault(*number)));
                }
            }
        }
    }

    fn fault(&mut self, fault: &FaultPlan) {
        let (action, repair) = match fault.kind {
            FaultKind::Kill => (Action::Kill, Some(Action::Restart)),
            FaultKind::Stop => (Action::Stop, Some(Action::Restart)),
            FaultKind::Pause => (Action::Pause, Some(Action::Resume)),
            FaultKind::Restart => (Action::Restart, None),
            FaultKind::Rewrite => (Action::Rewrite, None),
        };
        let began = now();
        let aimed = match self.aimed(&fault.aim) {
            Ok(aimed) => aimed,
            Err(error) => {
                return self.note(fault.kind.name(), (String::new(), None), began, &error);
            }
        };
        for (node, role) in aimed {
            if !self.act(fault.kind.name(), action, (node.clone(), role)) {
                continue;
            }
            if let Some(repair) = repair {
                // Without a time of its own the repair waits for the end of the phase.
                let after = fault.repair.unwrap_or(Duration::from_secs(u64::from(u32::MAX)));
                self.agenda.push((Instant::now() + after, Task::Repair(repair, node)));
            }
        }
    }

    /// Does something to a node; whether it was done.
    fn act(&mut self, what: &'static str, action: Action, node: (String, Option<Role>)) -> bool {
        let began = now();
        let acted = lock(&self.keeper).act(&node.0, action);
        match acted {
            Ok(()) => {
                let ended = now();
                let (node, role) = node;
                self.done.push(Done { what, node, role, began, ended, error: None });
                true
            }
            Err(error) => {
                self.note(what, node, began, &error);
                false
            }
        }
    }

    fn note(
        &mut self,
        what: &'static str,
        (node, role): (String, Option<Role>),
        began: Nanos,
        error: &TestbedError,
    ) {
        let (ended, error) = (now(), Some(error.to_string()));
        self.done.push(Done { what, node, role, began, ended, error });
    }

    /// The nodes that are meant now, with what they are to the others.
    fn aimed(&mut self, aim: &Aim) -> Result<Vec<(String, Option<Role>)>, TestbedError> {
        let nodes = lock(&self.keeper).nodes()?;
        let chosen = choose(&nodes, aim, &mut self.random);
        if chosen.is_empty() {
            let told = |node: &NodeDescription| match node.role {
                Some(role) => format!("{} ({})", node.name, role.name()),
                None => node.name.clone(),
            };
            let known: Vec<String> = nodes.iter().map(told).collect();
            let (wanted, known) = (wanted(aim), known.join(", "));
            return Err(TestbedError::Node(format!("no node is {wanted} now; there are {known}")));
        }
        Ok(chosen.into_iter().map(|node| (node.name.clone(), node.role)).collect())
    }
}

fn choose<'a>(
    nodes: &'a [NodeDescription],
    aim: &Aim,
    random: &mut Random,
) -> Vec<&'a NodeDescription> {
    let holds_data = |node: &&NodeDescription| node.running && node.role != Some(Role::Observer);
    let one = |of: Vec<&'a NodeDescription>, random: &mut Random| match of.len() {
        0 => Vec::new(),
        count => vec![of[(random.next_u64() % count as u64) as usize]],
    };
    let with = |role| nodes.iter().filter(holds_data).filter(move |n| n.role == Some(role));
    match aim {
        Aim::Any => one(nodes.iter().filter(holds_data).collect(), random),
        Aim::All => nodes.iter().filter(holds_data).collect(),
        Aim::Primary => one(with(Role::Primary).collect(), random),
        Aim::Replica => one(with(Role::Replica).collect(), random),
        Aim::Number(number) => nodes.get(*number as usize - 1).into_iter().collect(),
        Aim::Name(name) => nodes.iter().filter(|node| node.name == *name).collect(),
    }
}

fn wanted(aim: &Aim) -> String {
    match aim {
        Aim::Any | Aim::All => "up and holds data".to_owned(),
        Aim::Primary => "a primary".to_owned(),
        Aim::Replica => "a replica".to_owned(),
        Aim::Number(number) => format!("number {number}"),
        Aim::Name(name) => format!("called {name}"),
    }
}

/// The keeper, also if a thread that held it has panicked.
pub fn lock(keeper: &SharedKeeper) -> std::sync::MutexGuard<'_, Keeper> {
    keeper.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, role: Role, running: bool) -> NodeDescription {
        let (name, address) = (name.to_owned(), String::new());
        NodeDescription { name, address, role: Some(role), pid: None, running }
    }

    #[test]
    fn aims_are_taken_at_nodes_that_run_and_hold_data() {
        let nodes = [
            node("a", Role::Primary, true),
            node("b", Role::Replica, true),
            node("c", Role::Replica, false),
            node("d", Role::Observer, true),
        ];
        let mut random = Random::new(1, 0);
        let mut names = |aim: Aim| -> Vec<String> {
            choose(&nodes, &aim, &mut random).into_iter().map(|n| n.name.clone()).collect()
        };
        assert_eq!(names(Aim::All), ["a", "b"]);
        assert_eq!(names(Aim::Primary), ["a"]);
        assert_eq!(names(Aim::Replica), ["b"]);
        assert_eq!(names(Aim::Number(4)), ["d"], "whoever is named is meant");
        assert_eq!(names(Aim::Name("c".to_owned())), ["c"]);
        assert!(names(Aim::Number(5)).is_empty() && names(Aim::Name("x".to_owned())).is_empty());
        let any: std::collections::BTreeSet<String> =
            (0..50).flat_map(|_| names(Aim::Any)).collect();
        assert!(any.into_iter().eq(["a", "b"]));
    }
}
