//! A deployment that is not kvdyno's: its nodes may be anywhere, and a file names the command lines
//! that create, start, stop, kill, pause, resume and destroy each. Every suite works on it alike.

mod file;
mod proof;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use file::LoadMachine;
use file::{Commands, DeploymentFile, NodeEntry};
use kvdyno_core::folder::OwnedFolder;
use kvdyno_core::workload::fault::{
    ADD, FaultField, FieldForm, FieldValue, KILL, NodeAction, NodeFault, ProcessOutcome, Repair,
};
use proof::HeldConnection;

use crate::cut_figures::CutFigures;
use crate::error::TestbedError;
use crate::folder;
use crate::model::{Description, NodeDescription, Testbed, find};
use crate::process;
use crate::role::Role;
use crate::site::{Step, StepListener};

/// Pause between two looks at a node that is starting.
const LOOK: Duration = Duration::from_millis(100);
/// Number of characters of a failed command's words that an error shows.
const WORDS_SHOWN: usize = 400;

/// Name of the kind of all deployments that a file describes.
pub const DESCRIBED: &str = "described";

/// Returns true if `words` name a file instead of a kind of testbed.
pub fn is_file(words: &str) -> bool {
    words.ends_with(".toml")
}

/// Reads the file without running anything.
///
/// # Errors
/// [`TestbedError::Word`] with the line and what is wrong.
pub fn check(path: &str) -> Result<(), TestbedError> {
    DeploymentFile::read(path).map(drop)
}

/// Returns the machines that a file names for carrying load.
///
/// # Errors
/// See [`check`].
pub fn load_machines(path: &str) -> Result<Vec<LoadMachine>, TestbedError> {
    DeploymentFile::read_loads(path)
}

/// A deployment described by a file. When it is dropped, nodes that are paused go on, and each is
/// destroyed where the file says how.
pub struct Described {
    file: DeploymentFile,
    path: String,
    nodes: Vec<State>,
    /// Repairs of networks and disks that are still to be made.
    to_undo: Vec<(usize, Repair)>,
    folder: OwnedFolder,
    steps: Vec<Step>,
    ready_after: Duration,
}

/// State of a node, by what kvdyno has done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing yet: it is not to be destroyed.
    Untouched,
    Running,
    Paused,
    Down,
}

impl Described {
    /// Creates and starts every node and waits until all serve.
    ///
    /// # Errors
    /// [`TestbedError`]; what was created is destroyed again.
    pub fn start(
        path: &str,
        on_step: &StepListener,
        abort: &Arc<AtomicBool>,
    ) -> Result<Described, TestbedError> {
        let begin = Instant::now();
        let file = DeploymentFile::read(path)?;
        let folder = folder::make(DESCRIBED)
            .map_err(TestbedError::system("make", "the testbed's folder"))?;
        let nodes = vec![State::Untouched; file.nodes.len()];
        let (path, steps) = (path.to_owned(), file.steps.clone());
        let (to_undo, ready_after) = (Vec::new(), begin.elapsed());
        let mut made = Described { file, path, nodes, to_undo, folder, steps, ready_after };
        for (what, command) in [("create", Commands::CREATE), ("start", Commands::START)] {
            made.step(what, on_step, |made| made.on_each(command, abort))?;
        }
        made.step("wait until all serve", on_step, |made| {
            let begun = (0..made.nodes.len()).filter(|&index| !made.file.nodes[index].spare);
            begun.into_iter().try_for_each(|index| made.await_ready(index, abort))
        })?;
        made.ready_after = begin.elapsed();
        Ok(made)
    }

    fn step(
        &mut self,
        name: &str,
        on_step: &StepListener,
        work: impl FnOnce(&mut Described) -> Result<(), TestbedError>,
    ) -> Result<(), TestbedError> {
        let begin = Instant::now();
        work(self)?;
        let step = Step { name: name.to_owned(), took: begin.elapsed() };
        on_step(&step);
        self.steps.push(step);
        Ok(())
    }

    /// Runs a command on each node that has it.
    fn on_each(&mut self, command: &str, abort: &AtomicBool) -> Result<(), TestbedError> {
        for index in 0..self.nodes.len() {
            if abort.load(Ordering::Relaxed) {
                return Err(TestbedError::Interrupted);
            }
            if self.file.nodes[index].spare {
                continue;
            }
            self.nodes[index] = State::Running;
            if let Some(line) = self.command(index, command) {
                self.run(index, command, &line)?;
            }
        }
        Ok(())
    }

    fn await_ready(&self, index: usize, abort: &AtomicBool) -> Result<(), TestbedError> {
        let begin = Instant::now();
        let node = &self.file.nodes[index];
        while !self.is_ready(index) {
            if abort.load(Ordering::Relaxed) {
                return Err(TestbedError::Interrupted);
            }
            if begin.elapsed() > self.file.ready_within {
                return Err(TestbedError::NotReady {
                    node: node.name.clone(),
                    waited: self.file.ready_within,
                    awaited: match self.command(index, Commands::READY) {
                        Some(_) => format!("its `{}` fails", Commands::READY),
                        None => format!("nothing serves at {}", node.address),
                    },
                    log: self.last_words(index),
                });
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn is_ready(&self, index: usize) -> bool {
        match self.command(index, Commands::READY) {
            Some(line) => self.run(index, Commands::READY, &line).is_ok(),
            None => file::listens(&self.file.nodes[index].address),
        }
    }

    /// Returns the command line of this name for a node: its own, else that of all.
    fn command(&self, index: usize, name: &str) -> Option<String> {
        let of = |commands: &Commands| commands.get(name).map(str::to_owned);
        of(&self.file.nodes[index].commands).or_else(|| of(&self.file.commands))
    }

    /// Returns the command line like [`Described::command`], or an error if there is none.
    ///
    /// # Errors
    /// [`TestbedError::Node`] if the file does not say how.
    fn need(&self, index: usize, name: &str) -> Result<String, TestbedError> {
        self.command(index, name).ok_or_else(|| {
            let node = &self.file.nodes[index].name;
            TestbedError::Node(format!(
                "{}: nothing says how to {name} {node}; add `{name} = \"…\"` to its [commands]",
                self.path
            ))
        })
    }

    /// Runs a command line to its end.
    fn run(&self, index: usize, name: &str, line: &str) -> Result<(), TestbedError> {
        self.end(index, name, self.begin(index, name, line, &[])?)
    }

    /// Starts a command line with the node's names in its environment, and `more`. What it starts and
    /// leaves running may keep writing: its words go to a file, and only its own end is awaited.
    fn begin(
        &self,
        index: usize,
        name: &str,
        line: &str,
        more: &[(String, String)],
    ) -> Result<Child, TestbedError> {
        let node = &self.file.nodes[index];
        let failed = self.failed(index, name);
        let words = std::fs::File::create(self.words(index)).map_err(&failed)?;
        let mut command = self.shell(node, line);
        command.envs(more.iter().map(|(name, value)| (name, value)));
        command.stdout(words.try_clone().map_err(&failed)?).stderr(words);
        command.spawn().map_err(&failed)
    }

    fn end(&self, index: usize, name: &str, mut begun: Child) -> Result<(), TestbedError> {
        let status = begun.wait().map_err(self.failed(index, name))?;
        if status.success() {
            return Ok(());
        }
        Err(TestbedError::Refused {
            node: self.file.nodes[index].name.clone(),
            problem: format!("`{name}` failed ({status}): {}", self.last_words(index)),
        })
    }

    fn failed(&self, index: usize, name: &str) -> impl Fn(std::io::Error) -> TestbedError {
        let what = format!("`{name}` of {}", self.file.nodes[index].name);
        move |error| TestbedError::System { what: what.clone(), action: "run", error }
    }

    fn words(&self, index: usize) -> PathBuf {
        self.folder.path().join(format!("command-{index}.log"))
    }

    fn last_words(&self, index: usize) -> String {
        let words = std::fs::read(self.words(index)).unwrap_or_default();
        let text = String::from_utf8_lossy(&words);
        let text = text.lines().collect::<Vec<_>>().join(" | ");
        let from = text.char_indices().rev().nth(WORDS_SHOWN).map_or(0, |(at, _)| at);
        text[from..].to_owned()
    }

    /// Returns the words in its environment that tell a command what it is to do.
    fn words_about(&self, nodes: &[String], action: &NodeAction) -> Vec<(String, String)> {
        let fault = match action {
            NodeAction::Repair(Repair::Heal(trouble)) => {
                return vec![("FAULT".to_owned(), trouble.word().to_owned())];
            }
            NodeAction::Repair(_) => return Vec::new(),
            NodeAction::Fault(fault) => fault,
        };
        let values = fault.values();
        let variables = fault.kind().fields.iter().map(|field| variable(field, values.get(field)));
        let mut variables: Vec<(String, String)> = variables.flatten().collect();
        if let NodeFault::Partition { from, .. } = fault {
            let known = self.file.nodes.iter().enumerate();
            let known = known.filter(|(index, _)| self.takes_part(*index));
            let known: Vec<&str> = known.map(|(_, node)| node.name.as_str()).collect();
            let from = from.others(&known, nodes);
            let hosts = self.file.nodes.iter().filter(|node| from.contains(&node.name));
            let hosts: Vec<&str> = hosts.map(|node| host(node).0).collect();
            variables.retain(|(name, _)| name != "FROM");
            variables.push(("FROM".to_owned(), from.join(" ")));
            variables.push(("FROM_HOSTS".to_owned(), hosts.join(" ")));
        }
        variables
    }

    /// Remembers what was done to a node, and what is to be undone at the end.
    fn note(&mut self, index: usize, action: &NodeAction) {
        match action.outcome() {
            ProcessOutcome::Ended | ProcessOutcome::Left => self.nodes[index] = State::Down,
            ProcessOutcome::Paused => self.nodes[index] = State::Paused,
            ProcessOutcome::Resumed | ProcessOutcome::Renewed => self.nodes[index] = State::Running,
            ProcessOutcome::Untouched => {}
        }
        // A node that was harmed otherwise is destroyed.
        let of_network_or_disk = |repair: &Repair| repair.outcome() == ProcessOutcome::Untouched;
        if let Some(repair) = action.repair().filter(of_network_or_disk) {
            self.to_undo.push((index, repair));
        }
        if let NodeAction::Repair(repair) = action {
            self.to_undo.retain(|done| *done != (index, *repair));
        }
    }

    /// Returns true if the node belongs to the deployment by now.
    fn takes_part(&self, index: usize) -> bool {
        !self.file.nodes[index].spare || self.nodes[index] != State::Untouched
    }

    /// Ends nodes that run, starts all, and waits for all: one may need the others to be ready.
    fn restart(&mut self, places: &[usize]) -> Result<String, TestbedError> {
        let up = places.iter().copied().filter(|&place| self.nodes[place] != State::Down);
        let up: Vec<usize> = up.collect();
        let ended = match up.is_empty() {
            true => Vec::new(),
            false => self.end_nodes(&up, KILL.word, &[])?,
        };
        let notes = self.note_each(&up, State::Down, ended)?;
        let started = self.run_on(places, Commands::START, &[])?;
        self.note_each(places, State::Running, started)?;
        let never = AtomicBool::new(false);
        places.iter().try_for_each(|&place| self.await_ready(place, &never))?;
        Ok(notes)
    }

    /// Notes the state of each node where that went well. Returns the texts told of them, or the first error.
    fn note_each(
        &mut self,
        places: &[usize],
        state: State,
        done: Vec<Result<String, TestbedError>>,
    ) -> Result<String, TestbedError> {
        for (place, _) in places.iter().zip(&done).filter(|(_, done)| done.is_ok()) {
            self.nodes[*place] = state;
        }
        done.into_iter().collect()
    }

    /// Runs a command on several nodes: begun on all before any is waited for. There is nothing to tell of each.
    ///
    /// # Errors
    /// [`TestbedError::Node`] if the file lacks one, and then none was begun.
    fn run_on(
        &self,
        places: &[usize],
        name: &str,
        words: &[(String, String)],
    ) -> Result<Vec<Result<String, TestbedError>>, TestbedError> {
        let lines = places.iter().map(|place| self.need(*place, name));
        let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
        let begun = places.iter().zip(&lines);
        let begun: Vec<_> =
            begun.map(|(place, line)| self.begin(*place, name, line, words)).collect();
        let ended = places.iter().zip(begun).map(|(place, begun)| {
            self.end(*place, name, begun?)?;
            Ok(String::new())
        });
        Ok(ended.collect())
    }

    /// Runs a command that ends nodes, as [`Described::run_on`] does. Each must be over then; the text names those of which
    /// nobody knows.
    fn end_nodes(
        &self,
        places: &[usize],
        name: &str,
        words: &[(String, String)],
    ) -> Result<Vec<Result<String, TestbedError>>, TestbedError> {
        let connections =
            places.iter().map(|place| HeldConnection::at(&self.file.nodes[*place].address));
        let connections: Vec<HeldConnection> = connections.collect();
        let ran = self.run_on(places, name, words)?;
        let proven = connections.iter().zip(places).zip(ran).map(|((held, place), ran)| {
            let NodeEntry { name: node, address, .. } = &self.file.nodes[*place];
            let notes = ran?;
            if !held.ends() {
                return Err(TestbedError::Refused {
                    node: node.clone(),
                    problem: format!(
                        "the command `{name}` succeeded, but the server at {address} still runs: check which process it ends"
                    ),
                });
            }
            let known = held.is_known();
            Ok(if known { notes } else { format!("; not proven of {node}: {address} took no connection before") })
        });
        Ok(proven.collect())
    }

    fn role(&self, index: usize) -> Option<Role> {
        let node = &self.file.nodes[index];
        let Some(line) = self.command(index, Commands::ROLE) else { return node.role };
        let mut command = self.shell(node, &line);
        file::role(process::run_command(&mut command).ok()?.trim())
    }

    /// Returns `sh -c line` with what a command line may want to know.
    fn shell(&self, node: &NodeEntry, line: &str) -> Command {
        let (host, port) = host(node);
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(std::process::Stdio::null());
        command.envs(&self.file.variables);
        command.env("NODE", &node.name).env("ADDRESS", &node.address);
        command.env("HOST", host).env("PORT", port).env("FOLDER", self.folder.path());
        command.env("OUTER", node.outer.as_deref().unwrap_or(host));
        command
    }
}

/// Returns host and port of a node.
fn host(node: &NodeEntry) -> (&str, &str) {
    let (host, port) = node.address.rsplit_once(':').unwrap_or((&node.address, ""));
    (host.trim_matches(['[', ']']), port)
}

/// Returns the word, as (name, value), that tells a command what is written with a fault: `LOSS_PERCENT`, `DELAY_MS`. Lists
/// of names are not told.
fn variable(field: &FaultField, value: Option<&FieldValue>) -> Option<(String, String)> {
    let unit = match field.form {
        FieldForm::Word { .. } | FieldForm::Bandwidth => "",
        FieldForm::Share => "_PERCENT",
        FieldForm::Time => "_MS",
        FieldForm::Sides => return None,
    };
    let value = match value {
        Some(FieldValue::Word(word)) => word.clone(),
        Some(FieldValue::Whole(number)) => number.to_string(),
        Some(FieldValue::Number(share)) => (share * 100.0).to_string(),
        Some(FieldValue::Time(time)) => (time.as_secs_f64() * 1e3).to_string(),
        Some(FieldValue::Lists(_)) | None => String::new(),
    };
    Some((field.key.to_uppercase() + unit, value))
}

impl Testbed for Described {
    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn describe(&mut self) -> Description {
        let nodes = self.nodes();
        Description {
            request: self.path.clone(),
            kind: DESCRIBED.to_owned(),
            url: self.file.url.clone(),
            version: self.file.version.clone(),
            nodes,
            steps: self.steps.clone(),
            ready_after: self.ready_after,
            configuration: self.file.configuration.clone().into_iter().collect(),
            changed: Vec::new(),
            pinned: None,
            network: None,
            disk: None,
            attached: false,
        }
    }

    fn nodes(&mut self) -> Vec<NodeDescription> {
        let described = self.file.nodes.iter().zip(&self.nodes).enumerate();
        let described = described.filter(|(index, _)| self.takes_part(*index));
        let described = described.map(|(index, (node, state))| NodeDescription {
            name: node.name.clone(),
            address: node.address.clone(),
            role: if *state == State::Running { self.role(index) } else { node.role },
            pid: None,
            running: matches!(state, State::Running | State::Paused),
            ended_by_itself: None,
        });
        described.collect()
    }

    fn take_cut(&mut self) -> Option<CutFigures> {
        None
    }

    /// Returns `None`: its machines are not kvdyno's.
    fn machine_failure(&mut self) -> Option<String> {
        None
    }

    fn act_on(&mut self, nodes: &[String], action: &NodeAction) -> Result<String, TestbedError> {
        // One that was not added yet cannot be found.
        let names = self.file.nodes.iter().enumerate();
        let names = names.map(|(index, node)| (node.name.as_str(), self.takes_part(index)));
        let names: Vec<&str> = names.map(|(name, part)| if part { name } else { "" }).collect();
        let places = nodes.iter().map(|node| find(node, &names));
        let places: Vec<usize> = places.collect::<Result<_, _>>()?;
        if action.outcome() == ProcessOutcome::Renewed {
            let notes = self.restart(&places)?;
            return Ok(format!("`{}` of {}{notes}", Commands::START, self.path));
        }
        let name = action.word();
        let words = self.words_about(nodes, action);
        let done = match action.outcome() {
            ProcessOutcome::Ended => self.end_nodes(&places, name, &words)?,
            _ => self.run_on(&places, name, &words)?,
        };
        let well = places.iter().zip(&done).filter(|(_, done)| done.is_ok());
        let well: Vec<usize> = well.map(|(place, _)| *place).collect();
        well.into_iter().for_each(|place| self.note(place, action));
        let notes: String = done.into_iter().collect::<Result<_, _>>()?;
        Ok(format!("`{name}` of {}{notes}", self.path))
    }

    fn whole(&mut self) -> Option<Result<(), String>> {
        None
    }

    fn add_node(&mut self) -> Result<String, TestbedError> {
        let Some(index) = (0..self.nodes.len()).find(|&index| !self.takes_part(index)) else {
            return Err(TestbedError::Node(format!(
                "{}: no node is left that could be added; give it one with `spare = true`",
                self.path
            )));
        };
        let add = self.need(index, ADD.word)?;
        self.nodes[index] = State::Running;
        if let Some(create) = self.command(index, Commands::CREATE) {
            self.run(index, Commands::CREATE, &create)?;
        }
        self.run(index, ADD.word, &add)?;
        self.await_ready(index, &AtomicBool::new(false))?;
        Ok(self.file.nodes[index].name.clone())
    }
}

impl Drop for Described {
    /// Ends every node, even if others fail: there is nobody to tell.
    fn drop(&mut self) {
        for (index, repair) in std::mem::take(&mut self.to_undo) {
            let _ = self.act_on(&[self.file.nodes[index].name.clone()], &repair.into());
        }
        for index in 0..self.nodes.len() {
            let state = self.nodes[index];
            if state == State::Paused
                && let Some(line) = self.command(index, Repair::Resume.word().0)
            {
                let _ = self.run(index, Repair::Resume.word().0, &line);
            }
            if state != State::Untouched
                && let Some(line) = self.command(index, Commands::DESTROY)
            {
                let _ = self.run(index, Commands::DESTROY, &line);
            }
        }
    }
}
