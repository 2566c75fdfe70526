//! The site on which a testbed is built: a kind's recipe starts its servers with it. It knows the settings
//! asked for, gives folders and addresses, starts processes, waits, and times each step.

use std::cell::RefCell;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kvdyno_core::folder::OwnedFolder;

use crate::addresses::Addresses;
use crate::cut_figures::CutFigures;
use crate::disk::Disks;
use crate::error::TestbedError;
use crate::folder;
use crate::install::Software;
use crate::network::Network;
use crate::pin::Pinned;
use crate::role::Role;
use crate::server::{Launch, POLL, Server};
use crate::settings::TestbedSettings;

/// Time from the look that found all nodes serving to the one that must find them so again.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// A step of the set-up and how long it took.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Step {
    /// Name of the step: `start 3 × cassandra`.
    pub name: String,
    /// Time that it took.
    pub took: Duration,
}

/// Listener that gets each step as it ends.
pub type StepListener = Box<dyn Fn(&Step) + Send>;

/// Description by a recipe of the system that it has started.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// URL that kvdyno reaches it by.
    pub url: String,
    /// Version that the server itself names.
    pub version: Option<String>,
    /// The whole effective configuration as the servers tell it, as (name, value); what was given to
    /// them where they do not tell.
    pub configuration: Vec<(String, String)>,
    /// Settings given to the servers that differ from their defaults, as (name, value); without
    /// addresses, ports and folders, which every server must be told.
    pub changed: Vec<(String, String)>,
}

/// One node.
pub struct Node {
    /// Process of the node.
    pub server: Server,
    /// Role that it was started with.
    pub role: Option<Role>,
}

/// A testbed that is being built, or is up.
pub struct Site {
    // Servers end before their folder and addresses are given up: fields drop in this order.
    nodes: Vec<Node>,
    network: Option<Network>,
    disks: Option<RefCell<Disks>>,
    settings: TestbedSettings,
    folder: OwnedFolder,
    addresses: Addresses,
    pinned: Option<Pinned>,
    steps: Vec<Step>,
    on_step: StepListener,
    abort: Arc<AtomicBool>,
    made: Instant,
    /// Number of nodes that have served already.
    served: usize,
    unproven: Vec<(String, Instant)>,
    /// Figures of the last cut of power, until they are taken.
    cut: Option<CutFigures>,
}

impl Site {
    /// Makes a site with a folder and addresses of its own and nothing in it. Its waits are given up when `abort` becomes
    /// true.
    ///
    /// # Errors
    /// [`TestbedError::System`] if the system refuses.
    pub fn new(
        settings: TestbedSettings,
        on_step: StepListener,
        abort: Arc<AtomicBool>,
    ) -> Result<Site, TestbedError> {
        let made = Instant::now();
        let network = match settings.text("network") {
            "own" => Some(Network::make()?),
            _ => None,
        };
        let kept = settings.text("folder");
        let folder = if kept.is_empty() {
            folder::make(settings.kind())
                .map_err(TestbedError::system("make", "the testbed's folder"))
        } else {
            OwnedFolder::kept(Path::new(kept)).map_err(TestbedError::system("use", kept))
        }?;
        let addresses = Addresses::take()
            .map_err(TestbedError::system("find free addresses for", settings.kind()))?;
        let pinned = match settings.text("pin") {
            "servers" => Some(Pinned::halves().ok_or_else(|| {
                let problem = "only one processor may be used".to_owned();
                settings.wrong(problem, "leave `pin` out".to_owned())
            })?),
            _ => None,
        };
        let disks = disks(&settings)?;
        let (nodes, steps) = (Vec::new(), Vec::new());
        Ok(Site {
            nodes,
            network,
            disks,
            settings,
            folder,
            addresses,
            pinned,
            steps,
            on_step,
            abort,
            made,
            served: 0,
            unproven: Vec::new(),
            cut: None,
        })
    }

    /// Returns the nodes and settings that were asked for.
    #[must_use]
    pub fn settings(&self) -> &TestbedSettings {
        &self.settings
    }

    /// Returns the path of a program or library folder that [`Software`] brings.
    ///
    /// # Errors
    /// [`TestbedError::NotInstalled`] with the command that installs it.
    pub fn software(&self, software: &'static Software) -> Result<PathBuf, TestbedError> {
        software.find().ok_or_else(|| software.missing(self.settings.kind()))
    }

    /// Returns the nodes so far, in the order of their start.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the nodes so far, to act upon.
    pub fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// Returns address number `node` (from 1) of this testbed's own block.
    #[must_use]
    pub fn ip(&self, node: u16) -> Ipv4Addr {
        match &self.network {
            Some(network) => network.ip(node),
            None => self.addresses.ip(node),
        }
    }

    /// Returns a free address and port: the first free port from the `usual` one on, on address number `node` (from 1) of
    /// this testbed's own block. Call it for every port that a server takes.
    ///
    /// # Errors
    /// [`TestbedError::System`] if there is none.
    pub fn address(&mut self, node: u16, usual: u16) -> Result<SocketAddr, TestbedError> {
        if let Some(network) = &mut self.network {
            return Ok(network.socket(node, usual));
        }
        let what = format!("node {node} of {}", self.settings.kind());
        self.addresses.socket(node, usual).map_err(TestbedError::system("find a port for", what))
    }

    /// Returns an address for number `node` of several servers that stand side by side: sequential ports of one
    /// address, or, in a network of the testbed's own, an address each.
    ///
    /// # Errors
    /// See [`Site::address`].
    pub fn side_by_side(&mut self, node: u16, usual: u16) -> Result<SocketAddr, TestbedError> {
        self.address(if self.network.is_some() { node } else { 1 }, usual)
    }

    /// Returns the folder of a node, made if it is not there.
    ///
    /// # Errors
    /// [`TestbedError::System`] if it cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf, TestbedError> {
        let make = |folder: &Path| {
            let made = fs::create_dir_all(folder);
            made.map_err(TestbedError::system("make", format!("a folder for {name}")))
        };
        if let Some(disks) = &self.disks {
            // The disk is the node's: `mongodb-1` of `mongodb-1/data`.
            let node = self.folder.path().join(name.split('/').next().unwrap_or(name));
            make(&node)?;
            disks.borrow_mut().mount(&node)?;
        }
        let folder = self.folder.path().join(name);
        make(&folder)?;
        Ok(folder)
    }

    /// Returns the disks of the nodes, if they have their own.
    pub(crate) fn disks(&self) -> Option<std::cell::Ref<'_, Disks>> {
        self.disks.as_ref().map(RefCell::borrow)
    }

    /// Returns the disks of the nodes, if they have their own, to act upon.
    pub(crate) fn disks_mut(&self) -> Option<std::cell::RefMut<'_, Disks>> {
        self.disks.as_ref().map(RefCell::borrow_mut)
    }

    /// Returns the network of the testbed's own, if it has one, to act upon.
    pub(crate) fn network_mut(&mut self) -> Option<&mut Network> {
        self.network.as_mut()
    }

    /// Returns the network of the testbed's own, if it has one.
    pub(crate) fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// Returns the folder of the whole testbed.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into a node's folder and returns its path.
    ///
    /// # Errors
    /// [`TestbedError::System`] if it cannot be written.
    pub fn write(&self, node: &str, file: &str, text: &str) -> Result<PathBuf, TestbedError> {
        let path = self.folder(node)?.join(file);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(TestbedError::system("make", file))?;
        }
        fs::write(&path, text).map_err(TestbedError::system("write", file))?;
        Ok(path)
    }

    /// Starts a process in the folder of `name` and does not wait for it; [`Site::serve`] does,
    /// so that nodes can start side by side.
    ///
    /// # Errors
    /// [`TestbedError::System`] if it cannot be started.
    pub fn start(
        &mut self,
        name: &str,
        role: Option<Role>,
        launch: Launch,
    ) -> Result<(), TestbedError> {
        let launch = match &self.pinned {
            Some(pinned) => launch.processors(&pinned.servers),
            None => launch,
        };
        let launch = match &mut self.network {
            Some(network) => {
                let place = network.of(launch.address().ip());
                let kind = self.settings.kind();
                let refused = |_| {
                    TestbedError::Node(format!(
                        "testbed {kind} cannot have `network=own`: it has an arrangement of its own"
                    ))
                };
                launch.within(place.map_err(refused)?)
            }
            None => launch,
        };
        let server = Server::spawn(name, launch, &self.folder(name)?)?;
        self.nodes.push(Node { server, role });
        Ok(())
    }

    /// Waits until every process serves, and takes the time; `what` those are that were started since this
    /// was last waited for.
    ///
    /// # Errors
    /// [`TestbedError`] with the end of the log of the first that does not.
    pub fn serve(&mut self, what: &str) -> Result<(), TestbedError> {
        let count = self.nodes.len() - self.served.min(self.nodes.len());
        let name =
            if count == 1 { format!("start {what}") } else { format!("start {count} × {what}") };
        self.step(&name, |site| {
            let mut waiting: Vec<usize> = (0..site.nodes.len()).collect();
            while !waiting.is_empty() {
                site.go_on()?;
                let mut still = Vec::new();
                for index in waiting {
                    if !site.nodes[index].server.serves()? {
                        still.push(index);
                    }
                }
                waiting = still;
                if !waiting.is_empty() {
                    std::thread::sleep(POLL);
                }
            }
            site.served = site.nodes.len();
            Ok(())
        })
    }

    /// Orders the nodes anew: those that hold data come first, in the order of their start, however early those that only
    /// serve them had to be there.
    pub(crate) fn observers_last(&mut self) {
        self.nodes.sort_by_key(|node| node.role == Some(Role::Observer));
    }

    /// Does a step and takes its time.
    ///
    /// # Errors
    /// The step's error.
    pub fn step<T>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Site) -> Result<T, TestbedError>,
    ) -> Result<T, TestbedError> {
        self.go_on()?;
        let begin = Instant::now();
        let done = work(self)?;
        let step = Step { name: name.to_owned(), took: begin.elapsed() };
        (self.on_step)(&step);
        self.steps.push(step);
        Ok(done)
    }

    /// Waits until a condition holds, as a step of its own; looks at it ten times a second.
    ///
    /// # Errors
    /// [`TestbedError::NotReady`] if it does not within `patience`, or [`TestbedError::Ended`] if
    /// a process ends meanwhile.
    pub fn until(
        &mut self,
        what: &str,
        patience: Duration,
        mut holds: impl FnMut(&mut Site) -> bool,
    ) -> Result<(), TestbedError> {
        self.step(what, |site| {
            let begin = Instant::now();
            while !holds(site) {
                site.go_on()?;
                for node in &mut site.nodes {
                    if !node.server.is_running() {
                        node.server.serves()?;
                    }
                }
                if begin.elapsed() > patience {
                    return Err(match site.nodes.last() {
                        Some(node) => node.server.not_ready(patience, what),
                        None => TestbedError::Node(format!("no node to wait for: {what}")),
                    });
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        })
    }

    /// Lets time pass, unless the user wants to stop.
    ///
    /// # Errors
    /// [`TestbedError::Interrupted`]
    pub(crate) fn pause(&self, time: Duration) -> Result<(), TestbedError> {
        let begin = Instant::now();
        while begin.elapsed() < time {
            self.go_on()?;
            std::thread::sleep(time.saturating_sub(begin.elapsed()).min(5 * POLL));
        }
        self.go_on()
    }

    /// Marks these nodes, just started again, to be looked at once more a little later.
    pub(crate) fn look_again_at(&mut self, places: &[usize]) {
        let due = Instant::now() + AGAIN_AFTER;
        let names = places.iter().map(|place| self.nodes[*place].server.name().to_owned());
        self.unproven.extend(names.map(|name| (name, due)));
    }

    /// Returns the nodes that are to be looked at once more, by name, and when.
    pub(crate) fn unproven(&mut self) -> &mut Vec<(String, Instant)> {
        &mut self.unproven
    }

    /// Keeps the figures of a cut of power.
    pub(crate) fn keep_cut(&mut self, cut: CutFigures) {
        self.cut = Some(cut);
    }

    /// Returns the figures of the last cut of power, once.
    pub(crate) fn take_cut(&mut self) -> Option<CutFigures> {
        self.cut.take()
    }

    /// Returns an error once the user wants to stop.
    fn go_on(&self) -> Result<(), TestbedError> {
        match self.abort.load(Ordering::Relaxed) {
            true => Err(TestbedError::Interrupted),
            false => Ok(()),
        }
    }

    /// Ends a node and forgets it; its folder stays until the testbed goes.
    pub fn end_node(&mut self, index: usize) {
        drop(self.nodes.remove(index));
    }

    /// Returns the processors that servers and clients keep to, if they do.
    #[must_use]
    pub fn pinned(&self) -> Option<&Pinned> {
        self.pinned.as_ref()
    }

    /// Returns the steps so far.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the time since the site was made: from nothing.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.made.elapsed()
    }
}

fn disks(settings: &TestbedSettings) -> Result<Option<RefCell<Disks>>, TestbedError> {
    let Some((form, can_misbehave)) = settings.own_disk()? else { return Ok(None) };
    if !settings.text("folder").is_empty() {
        let problem = "`disk` and `folder` cannot be used together".to_owned();
        return Err(settings.wrong(problem, "leave out one of them".to_owned()));
    }
    Disks::make(form, can_misbehave).map(|disks| Some(RefCell::new(disks)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::TestbedRequest;

    #[test]
    fn what_only_serves_the_nodes_is_numbered_after_them() {
        let settings = TestbedRequest::parse("redis").unwrap().settings;
        let mut site = Site::new(settings, Box::new(|_| {}), Arc::default()).unwrap();
        let (observer, peer) = (Some(Role::Observer), Some(Role::Peer));
        for (name, role) in [("mapper", observer), ("n-1", peer), ("n-2", None)] {
            let launch = Launch::new("sleep", site.address(1, 4369).unwrap()).arguments(["60"]);
            site.start(name, role, launch).unwrap();
        }
        site.observers_last();
        let names: Vec<&str> = site.nodes().iter().map(|node| node.server.name()).collect();
        assert_eq!(names, ["n-1", "n-2", "mapper"]);
    }
}
