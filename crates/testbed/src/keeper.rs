//! The keeper of a testbed: a process of its own that owns servers and folders. Where it may, it is in a
//! PID namespace of its own, so that the kernel ends everything in it however it ends. It
//! cleans up when its standard input closes, which happens whenever its starter goes away. The keeper of a described
//! deployment is in no namespace, for its commands act on this machine.
//!
//! [`Keeper`] is the starter's side: it starts one and gives it orders. [`serve`] is the keeper's.

mod namespace;
mod protocol;
mod served;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use kvdyno_core::workload::fault::NodeAction;
pub use protocol::{KeeperReport, Order};
pub use served::serve;

use crate::cut_figures::CutFigures;
use crate::error::TestbedError;
use crate::model::{Description, NodeDescription};
use crate::site::Step;

/// Name of the socket, in a testbed's folder, on which its keeper takes orders from others.
pub(crate) const SOCKET: &str = "keeper.socket";

/// Time that a keeper has to end its servers; after that it is killed, and they with it.
const END_WITHIN: Duration = Duration::from_secs(20);
/// Pause between two looks at whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);

/// A testbed that a keeper of ours holds up. It goes away when this is dropped, unless it was
/// detached.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
    orders: Option<ChildStdin>,
    reports: Receiver<KeeperReport>,
    description: Description,
    detached: bool,
}

/// Interests of a testbed's starter while it comes up: what it is told, and what it may ask for.
pub trait Watching {
    /// Hears that a step is done.
    fn step(&mut self, step: &Step);

    /// Returns true if the user wants to stop.
    fn interrupted(&self) -> bool;
}

impl Keeper {
    /// Has a keeper set up the testbed that `words` name. `program` with `arguments` is a program
    /// that calls [`serve`].
    ///
    /// # Errors
    /// [`TestbedError`]; nothing is left behind.
    pub fn start(
        (program, arguments): (&Path, &[&str]),
        words: &str,
        detached: bool,
        watching: &mut dyn Watching,
    ) -> Result<Keeper, TestbedError> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C on the terminal is for kvdyno alone; it then tells the keeper.
        command.process_group(0);
        if detached {
            // Nobody will read what it has to say.
            command.stderr(Stdio::null());
        }
        // Commands of a described deployment name processes by their numbers on this machine.
        if !crate::described::is_file(words) {
            namespace::in_namespace(&mut command);
        }
        let mut child = command.spawn().map_err(TestbedError::system("start", "the keeper"))?;
        let orders = child.stdin.take();
        let reports = read_reports(child.stdout.take());
        let mut keeper =
            Keeper { child, orders, reports, description: Description::default(), detached: false };
        keeper.send(&Order::Deploy { words: words.to_owned(), detached })?;
        keeper.description = keeper.await_up(watching)?;
        keeper.detached = detached;
        Ok(keeper)
    }

    fn await_up(&mut self, watching: &mut dyn Watching) -> Result<Description, TestbedError> {
        loop {
            match self.reports.recv_timeout(LOOK) {
                Ok(KeeperReport::Step(step)) => watching.step(&step),
                Ok(KeeperReport::Up(description)) => return Ok(*description),
                Ok(KeeperReport::Failed(failed)) => return Err(failed.into()),
                Ok(
                    KeeperReport::Done
                    | KeeperReport::Nodes(_)
                    | KeeperReport::Whole(_)
                    | KeeperReport::Machine(_)
                    | KeeperReport::Cut(_)
                    | KeeperReport::Acted(_),
                ) => {}
                Err(RecvTimeoutError::Timeout) if watching.interrupted() => {
                    return Err(TestbedError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
    }

    /// Returns what the testbed is, as it was when it came up.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Returns its nodes as they are now.
    ///
    /// # Errors
    /// [`TestbedError`] if the keeper is gone.
    pub fn nodes(&mut self) -> Result<Vec<NodeDescription>, TestbedError> {
        match self.ask(&Order::Nodes)? {
            KeeperReport::Nodes(nodes) => Ok(nodes),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns whether every copy of every record is there; what is missing if not. `None` where the servers cannot tell.
    ///
    /// # Errors
    /// [`TestbedError`] if the keeper is gone.
    pub fn whole(&mut self) -> Result<Option<Result<(), String>>, TestbedError> {
        match self.ask(&Order::Whole)? {
            KeeperReport::Whole(whole) => Ok(whole),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns what failed of the machine below the nodes, or of kvdyno's own parts: this keeper, too. `None` if
    /// nothing did.
    pub fn machine_failure(&mut self) -> Option<String> {
        match self.ask(&Order::Machine) {
            Ok(KeeperReport::Machine(failed)) => failed,
            Ok(other) => Some(unexpected(&other).to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Returns the figures of the last cut of power, once; `None` if there was none since.
    ///
    /// # Errors
    /// [`TestbedError`] if the keeper is gone.
    pub fn take_cut(&mut self) -> Result<Option<CutFigures>, TestbedError> {
        match self.ask(&Order::Cut)? {
            KeeperReport::Cut(cut) => Ok(cut),
            other => Err(unexpected(&other)),
        }
    }

    /// Does something to several nodes at one moment; returns when it is done, and says by which means.
    ///
    /// # Errors
    /// The testbed's error.
    pub fn act_on(
        &mut self,
        nodes: Vec<String>,
        action: NodeAction,
    ) -> Result<String, TestbedError> {
        acted(self.ask(&Order::Act { nodes, action })?)
    }

    /// Does something to one node; returns when it is done, and says by which means.
    ///
    /// # Errors
    /// The testbed's error.
    pub fn act(
        &mut self,
        node: &str,
        action: impl Into<NodeAction>,
    ) -> Result<String, TestbedError> {
        self.act_on(vec![node.to_owned()], action.into())
    }

    /// Adds a node; returns its name when it belongs to the system.
    ///
    /// # Errors
    /// The testbed's error.
    pub fn add_node(&mut self) -> Result<String, TestbedError> {
        acted(self.ask(&Order::AddNode)?)
    }

    /// Returns the number of the process that was started. It ends when the keeper does.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if the keeper is still there.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns true if the keeper has ended by itself and in good order.
    pub fn ended_well(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if status.success())
    }

    fn send(&mut self, order: &Order) -> Result<(), TestbedError> {
        let line = protocol::line(order);
        let sent = self.orders.as_mut().map(|orders| orders.write_all(line.as_bytes()));
        sent.and_then(Result::ok).ok_or_else(gone)
    }

    fn ask(&mut self, order: &Order) -> Result<KeeperReport, TestbedError> {
        self.send(order)?;
        loop {
            match self.reports.recv() {
                // Of a node that is added, or leaves: only the end of it is of interest.
                Ok(KeeperReport::Step(_)) => {}
                Ok(KeeperReport::Failed(failed)) => return Err(failed.into()),
                Ok(report) => return Ok(report),
                Err(_) => return Err(gone()),
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.detached {
            return;
        }
        // The closed pipe is the order to end.
        drop(self.orders.take());
        let begin = Instant::now();
        while self.is_running() && begin.elapsed() < END_WITHIN {
            std::thread::sleep(Duration::from_millis(5));
        }
        // A keeper that hangs takes its servers with it; its folder goes at the next start.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A testbed that is up and may be anybody's, by its folder.
#[derive(Debug)]
pub struct RunningTestbed {
    folder: PathBuf,
}

/// Returns all testbeds of this user that are up and take orders.
///
/// # Errors
/// [`TestbedError::System`] if their folders cannot be listed.
pub fn running() -> Result<Vec<RunningTestbed>, TestbedError> {
    let folders = crate::folder::living().map_err(TestbedError::system("list", "testbeds"))?;
    let running = folders.into_iter().filter(|folder| folder.join(SOCKET).exists());
    Ok(running.map(|folder| RunningTestbed { folder }).collect())
}

impl RunningTestbed {
    /// Returns the name of its folder, which no other testbed's has: `redis-x7Bq2w`.
    #[must_use]
    pub fn id(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns what it is now.
    ///
    /// # Errors
    /// [`TestbedError`] if its keeper does not answer.
    pub fn describe(&self) -> Result<Description, TestbedError> {
        match self.ask(&Order::Describe)? {
            KeeperReport::Up(description) => Ok(*description),
            other => Err(unexpected(&other)),
        }
    }

    /// Does something to several nodes at one moment; returns when it is done, and says by which means.
    ///
    /// # Errors
    /// The testbed's error.
    pub fn act_on(&self, nodes: Vec<String>, action: NodeAction) -> Result<String, TestbedError> {
        acted(self.ask(&Order::Act { nodes, action })?)
    }

    /// Adds a node; returns its name when it belongs to the system.
    ///
    /// # Errors
    /// The testbed's error.
    pub fn add_node(&self) -> Result<String, TestbedError> {
        acted(self.ask(&Order::AddNode)?)
    }

    /// Ends it; returns when it is gone.
    ///
    /// # Errors
    /// [`TestbedError`] if its keeper does not answer or does not end within 20 s.
    pub fn end(self) -> Result<(), TestbedError> {
        self.ask(&Order::End)?;
        let begin = Instant::now();
        while self.folder.join(SOCKET).exists() {
            if begin.elapsed() > END_WITHIN {
                return Err(TestbedError::Node(format!("{} does not end", self.id())));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn ask(&self, order: &Order) -> Result<KeeperReport, TestbedError> {
        let failed = |error| TestbedError::System { what: self.id(), action: "ask", error };
        let mut stream = UnixStream::connect(self.folder.join(SOCKET)).map_err(failed)?;
        stream.write_all(protocol::line(order).as_bytes()).map_err(failed)?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).map_err(failed)?;
        match protocol::read(&line) {
            Some(KeeperReport::Failed(failed)) => Err(failed.into()),
            Some(report) => Ok(report),
            None => Err(gone()),
        }
    }
}

/// Reads the keeper's reports on a thread, so that waiting for one can be given up.
fn read_reports(from: Option<impl std::io::Read + Send + 'static>) -> Receiver<KeeperReport> {
    let (send, reports) = channel();
    if let Some(from) = from {
        std::thread::spawn(move || {
            let lines = BufReader::new(from).lines().map_while(Result::ok);
            for report in lines.filter_map(|line| protocol::read(&line)) {
                if send.send(report).is_err() {
                    return;
                }
            }
        });
    }
    reports
}

/// Returns the error of a keeper that ended although nobody told it to: its servers ended with it.
fn gone() -> TestbedError {
    TestbedError::Machine(
        "the testbed's keeper, a process of kvdyno's own, was killed or ended, and its servers with it: see \
         whether the machine ran out of memory (`dmesg`), and run it again"
            .to_owned(),
    )
}

fn acted(report: KeeperReport) -> Result<String, TestbedError> {
    match report {
        KeeperReport::Acted(said) => Ok(said),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(report: &KeeperReport) -> TestbedError {
    TestbedError::Machine(format!("the testbed's keeper answers something else: {report:?}"))
}

#[cfg(test)]
mod tests {
    use kvdyno_core::workload::fault::ActionFailure;

    use super::*;

    struct Nobody;

    impl Watching for Nobody {
        fn step(&mut self, _: &Step) {}

        fn interrupted(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_keeper_that_ends_in_the_set_up_is_no_wrong_word_of_the_user() {
        let program = (Path::new("/bin/sh"), &["-c", "read order; exit 0"][..]);
        let gone = Keeper::start(program, "redis", false, &mut Nobody).err().unwrap();
        assert!(gone.failure() == ActionFailure::Machine, "{gone}");
    }
}
