//! A testbed that is up: what it is, how it was set up, and what can be done to its nodes. It goes
//! away whole when it is dropped.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kvdyno_core::workload::Way;
use serde::{Deserialize, Serialize};

use crate::acting;
use crate::described::{self, Described};
use crate::error::TestbedError;
use crate::kind::Role;
use crate::network::{Network, OwnNetwork, Trouble};
use crate::pin::Pinned;
use crate::proof;
use crate::request::Request;
use crate::site::{Served, Site, Step, Tell};

/// A running testbed.
pub struct Deployment {
    site: Site,
    served: Served,
    ready_after: Duration,
}

/// All that is to be known of a testbed, as it is written into results and sent between processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The words that asked for it.
    pub request: String,
    /// Name of its kind.
    pub kind: String,
    /// URL that kvdyno reaches it by.
    pub url: String,
    /// Version that the server itself names.
    pub version: Option<String>,
    /// Its nodes.
    pub nodes: Vec<NodeDescription>,
    /// What was done to set it up, in order.
    pub steps: Vec<Step>,
    /// From nothing to ready, without installing.
    pub ready_after: Duration,
    /// Whole effective configuration, as (name, value).
    pub configuration: Vec<(String, String)>,
    /// Settings given to the servers that differ from their defaults.
    pub changed: Vec<(String, String)>,
    /// Which processors servers and clients keep to, if they do.
    pub pinned: Option<Pinned>,
    /// Where the clients have to be, if the nodes have a network of their own.
    #[serde(default)]
    pub network: Option<OwnNetwork>,
}

/// One node as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeDescription {
    /// Its name within the testbed: `redis-1`.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// What it is to the others, where that is known.
    pub role: Option<Role>,
    /// Number of its process on this machine.
    pub pid: Option<u32>,
    /// Its process is there (paused counts).
    pub running: bool,
}

/// What can be done to nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// SIGKILL; returns when the process is gone.
    Kill,
    /// In good order (SIGTERM); returns when the process is gone.
    Stop,
    /// SIGSTOP.
    Pause,
    /// SIGCONT.
    Resume,
    /// Same address, same data; returns when it serves again. A node that runs is killed first.
    Restart,
    /// Rewrites its log of writes; returns when that is over.
    Rewrite,
    /// Merges its files; returns when that is over.
    Compact,
    /// Leaves the system in good order, its data moved to the others, and ends.
    Remove,
    /// Packets between it and others are dropped.
    Partition {
        /// Names of the others; the clients are called `clients`.
        from: Vec<String>,
        /// Which packets.
        way: Way,
    },
    /// This share of its packets is dropped, both ways, by chance.
    Lossy {
        /// 0 to 1.
        share: f64,
    },
    /// Its network is slow.
    Slow {
        /// Bytes a second that pass, each way.
        bandwidth: Option<u64>,
        /// How much longer each packet takes that it sends.
        delay: Option<Duration>,
    },
    /// Trouble with its network is over.
    Heal(Trouble),
    /// No byte is free on its disk.
    FillDisk,
    /// What filled its disk is gone.
    FreeDisk,
}

impl Action {
    /// What puts right what it did, if it lasts.
    #[must_use]
    pub fn repair(&self) -> Option<Action> {
        match self {
            Action::Kill | Action::Stop => Some(Action::Restart),
            Action::Pause => Some(Action::Resume),
            Action::Partition { .. } => Some(Action::Heal(Trouble::Partition)),
            Action::Lossy { .. } => Some(Action::Heal(Trouble::Lossy)),
            Action::Slow { .. } => Some(Action::Heal(Trouble::Slow)),
            Action::FillDisk => Some(Action::FreeDisk),
            _ => None,
        }
    }
}

/// What can be had of any testbed that is up, wherever its nodes are. It goes away when dropped.
pub trait Testbed {
    /// Its folder on this machine.
    fn root(&self) -> &Path;

    /// What it is now.
    fn describe(&mut self) -> Description;

    /// Its nodes as they are now; roles are asked of the servers where they know.
    fn nodes(&mut self) -> Vec<NodeDescription>;

    /// Does something to several nodes at one moment. Says by which means.
    ///
    /// # Errors
    /// [`TestbedError::Node`] if there is no such node or it cannot be done to it, else what the
    /// system or the server says.
    fn act_on(&mut self, nodes: &[String], action: &Action) -> Result<String, TestbedError>;

    /// Does something to one node. Says by which means.
    ///
    /// # Errors
    /// As [`Testbed::act_on`].
    fn act(&mut self, node: &str, action: Action) -> Result<String, TestbedError> {
        self.act_on(&[node.to_owned()], &action)
    }

    /// Whether every copy of every record is there, on nodes that serve; what is missing if not. `None`
    /// where the servers cannot tell.
    fn whole(&mut self) -> Option<Result<(), String>>;

    /// Adds a node to the running system; returns its name when it belongs to it.
    ///
    /// # Errors
    /// [`TestbedError::Node`] if this kind cannot grow, else what the system or the server says.
    fn add_node(&mut self) -> Result<String, TestbedError>;
}

/// Starts the testbed that `words` name: a kind with its settings, or a file that describes a
/// deployment. `tell` hears of each step; it is given up when `abort` becomes true.
///
/// # Errors
/// [`TestbedError`]; nothing is left behind.
pub fn start(
    words: &str,
    tell: Tell,
    abort: &Arc<AtomicBool>,
) -> Result<Box<dyn Testbed>, TestbedError> {
    if described::is_file(words) {
        return Ok(Box::new(Described::start(words, &tell, abort)?));
    }
    Ok(Box::new(Deployment::start(Request::parse(words)?, tell, abort)?))
}

/// Finds out, without starting anything, whether `words` name a testbed and all is installed.
///
/// # Errors
/// [`TestbedError`] that says what is wrong or missing.
pub fn ready_to_start(words: &str) -> Result<(), TestbedError> {
    if described::is_file(words) {
        return described::check(words);
    }
    let request = Request::parse(words)?;
    if request.text("network") == "own" {
        Network::possible()?;
    }
    let kind = request.kind();
    let missing = kind.software.iter().find(|software| software.find().is_none());
    missing.map_or(Ok(()), |software| Err(software.missing(kind.name)))
}

/// The place of the node of this name among all names.
///
/// # Errors
/// [`TestbedError::Node`] with the nearest name.
pub(crate) fn find(node: &str, names: &[&str]) -> Result<usize, TestbedError> {
    names.iter().position(|name| *name == node).ok_or_else(|| {
        let advice = kvdyno_core::ground::hints::hint(node, names);
        TestbedError::Node(format!("there is no node {node}; {advice}"))
    })
}

impl Deployment {
    /// Starts a testbed and waits until it serves. `tell` hears of each step; it is given up when
    /// `abort` becomes true.
    ///
    /// # Errors
    /// [`TestbedError`]; nothing is left behind.
    pub fn start(
        request: Request,
        tell: Tell,
        abort: &Arc<AtomicBool>,
    ) -> Result<Deployment, TestbedError> {
        let deploy = request.kind().deploy;
        let mut site = Site::new(request, tell, Arc::clone(abort))?;
        let served = deploy(&mut site)?;
        proof::prove(&mut site)?;
        let ready_after = site.age();
        Ok(Deployment { site, served, ready_after })
    }

    /// Starts the testbed that these words name and tells nobody of its steps.
    ///
    /// # Errors
    /// [`TestbedError`]; nothing is left behind.
    pub fn up(words: &str) -> Result<Deployment, TestbedError> {
        Deployment::start(Request::parse(words)?, Box::new(|_| {}), &Arc::default())
    }

    /// URL that kvdyno reaches it by.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.served.url
    }

    /// The servers, for tests that look closer.
    #[must_use]
    pub fn site(&self) -> &Site {
        &self.site
    }
}

impl Testbed for Deployment {
    fn root(&self) -> &Path {
        self.site.root()
    }

    fn describe(&mut self) -> Description {
        let nodes = self.nodes();
        let request = self.site.request();
        Description {
            request: request.to_string(),
            kind: request.kind().name.to_owned(),
            url: self.served.url.clone(),
            version: self.served.version.clone(),
            nodes,
            steps: self.site.steps().to_vec(),
            ready_after: self.ready_after,
            configuration: self.served.configuration.clone(),
            changed: self.served.changed.clone(),
            pinned: self.site.pinned().cloned(),
            network: self.site.network().map(Network::clients),
        }
    }

    fn nodes(&mut self) -> Vec<NodeDescription> {
        let roles = self.site.request().kind().changes.roles.map(|roles| roles(&self.site));
        let described = self.site.nodes_mut().iter_mut().enumerate().map(|(index, node)| {
            let role = match &roles {
                Some(roles) => roles.get(index).copied().flatten(),
                None => node.role,
            };
            let running = node.server.is_running();
            NodeDescription {
                name: node.server.name().to_owned(),
                address: node.server.address().to_string(),
                role,
                pid: running.then(|| node.server.pid()),
                running,
            }
        });
        described.collect()
    }

    fn act_on(&mut self, nodes: &[String], action: &Action) -> Result<String, TestbedError> {
        acting::act(&mut self.site, nodes, action)
    }

    fn whole(&mut self) -> Option<Result<(), String>> {
        acting::whole(&mut self.site)
    }

    fn add_node(&mut self) -> Result<String, TestbedError> {
        acting::add(&mut self.site)
    }
}
