//! A testbed that is up: what it is, how it was set up, and what can be done to its nodes. It goes
//! away whole when it is dropped.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::TestbedError;
use crate::kind::Role;
use crate::request::Request;
use crate::site::{Served, Site, Step, Tell};

/// A running testbed.
pub struct Deployment {
    site: Site,
    served: Served,
    ready_after: Duration,
}

/// All that is to be known of a testbed, as it is written into results and sent between processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// One node as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeDescription {
    /// Its name within the testbed: `redis-1`.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// What it is to the others, where that is known.
    pub role: Option<Role>,
    /// Number of its process on this machine.
    pub pid: Option<u32>,
    /// Its process is there (paused counts).
    pub running: bool,
}

/// What can be done to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Leaves the system in good order, its data moved to the others, and ends.
    Remove,
}

impl Deployment {
    /// Starts a testbed and waits until it serves. `tell` hears of each step.
    ///
    /// # Errors
    /// [`TestbedError`]; nothing is left behind.
    pub fn start(request: Request, tell: Tell) -> Result<Deployment, TestbedError> {
        let deploy = request.kind().deploy;
        let mut site = Site::new(request, tell)?;
        let served = deploy(&mut site)?;
        let ready_after = site.age();
        Ok(Deployment { site, served, ready_after })
    }

    /// Starts the testbed that these words name and tells nobody of its steps.
    ///
    /// # Errors
    /// [`TestbedError`]; nothing is left behind.
    pub fn up(words: &str) -> Result<Deployment, TestbedError> {
        Deployment::start(Request::parse(words)?, Box::new(|_| {}))
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

    /// What it is now.
    pub fn describe(&mut self) -> Description {
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
        }
    }

    /// Its nodes as they are now; roles are asked of the servers where they know.
    pub fn nodes(&mut self) -> Vec<NodeDescription> {
        let roles = self.site.request().kind().changes.roles.map(|roles| roles(&self.site));
        let described = self.site.nodes_mut().iter_mut().enumerate().map(|(index, node)| {
            let role = match &roles {
                Some(roles) => roles.get(index).copied().flatten(),
                None => node.role,
            };
            let running = node.server.is_running();
            NodeDescription {
                name: node.server.name().to_owned(),
                address: node.server.address(),
                role,
                pid: running.then(|| node.server.pid()),
                running,
            }
        });
        described.collect()
    }

    /// Does something to one node.
    ///
    /// # Errors
    /// [`TestbedError::Node`] if there is no such node or it cannot be done to it, else what the
    /// system or the server says.
    pub fn act(&mut self, node: &str, action: Action) -> Result<(), TestbedError> {
        let index = self.index(node)?;
        let remove = self.site.request().kind().changes.remove;
        let server = &mut self.site.nodes_mut()[index].server;
        match action {
            Action::Kill => server.kill9(),
            Action::Stop => server.stop(),
            Action::Pause => server.pause(),
            Action::Resume => server.resume(),
            Action::Restart => server.restart(),
            Action::Remove => match remove {
                Some(remove) => remove(&mut self.site, index),
                None => Err(self.cannot("give up a node while it is up")),
            },
        }
    }

    /// Adds a node to the running system; returns when it belongs to it.
    ///
    /// # Errors
    /// [`TestbedError::Node`] if this kind cannot grow, else what the system or the server says.
    pub fn add_node(&mut self) -> Result<(), TestbedError> {
        match self.site.request().kind().changes.add {
            Some(add) => add(&mut self.site),
            None => Err(self.cannot("take another node while it is up")),
        }
    }

    fn cannot(&self, what: &str) -> TestbedError {
        TestbedError::Node(format!("testbed {} cannot {what}", self.site.request().kind().name))
    }

    fn index(&self, node: &str) -> Result<usize, TestbedError> {
        let names = || self.site.nodes().iter().map(|node| node.server.name());
        names().position(|name| name == node).ok_or_else(|| {
            let advice = kvdyno_core::suite::hint(node, &names().collect::<Vec<_>>());
            TestbedError::Node(format!("there is no node {node}; {advice}"))
        })
    }
}
