//! Starts testbeds: those of a kind that kvdyno knows, and those that a file describes. A testbed goes
//! away whole when it is dropped.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kvdyno_core::workload::fault::NodeAction;

use crate::acting;
use crate::cut_figures::CutFigures;
use crate::described::{self, Described};
use crate::disk::Disks;
use crate::error::TestbedError;
use crate::kind::TestbedKind;
use crate::model::{Description, NodeDescription, Testbed};
use crate::network::Network;
use crate::proof;
use crate::request::TestbedRequest;
use crate::site::{Served, Site, StepListener};

/// A running testbed.
pub struct Deployment {
    kind: &'static TestbedKind,
    site: Site,
    served: Served,
    ready_after: Duration,
}

/// Starts the testbed that `words` name: a kind with its settings, or a file that describes a
/// deployment. `on_step` gets each step; it is given up when `abort` becomes true.
///
/// # Errors
/// [`TestbedError`]; nothing is left behind.
pub fn start(
    words: &str,
    on_step: StepListener,
    abort: &Arc<AtomicBool>,
) -> Result<Box<dyn Testbed>, TestbedError> {
    if described::is_file(words) {
        return Ok(Box::new(Described::start(words, &on_step, abort)?));
    }
    Ok(Box::new(Deployment::start(TestbedRequest::parse(words)?, on_step, abort)?))
}

/// Finds out, without starting anything, whether `words` name a testbed and all is installed.
///
/// # Errors
/// [`TestbedError`] that says what is wrong or missing.
pub fn ready_to_start(words: &str) -> Result<(), TestbedError> {
    if described::is_file(words) {
        return described::check(words);
    }
    let TestbedRequest { kind, settings } = TestbedRequest::parse(words)?;
    if settings.text("network") == "own" {
        Network::possible()?;
    }
    settings.own_disk()?.map_or(Ok(()), |(form, device)| Disks::possible(form, device))?;
    let missing = kind.software.iter().find(|software| software.find().is_none());
    missing.map_or(Ok(()), |software| Err(software.missing(kind.name)))
}

/// Starts the servers of a kind, and waits until they have shown that they serve.
fn deploy(kind: &TestbedKind, site: &mut Site) -> Result<Served, TestbedError> {
    let served = (kind.deploy)(site)?;
    site.observers_last();
    proof::prove(&kind.proof, site)?;
    if let Some(mut disks) = site.disks_mut() {
        disks.sync()?;
        disks.count_anew();
    }
    Ok(served)
}

impl Deployment {
    /// Starts a testbed and waits until it serves. `on_step` gets each step; it is given up when
    /// `abort` becomes true.
    ///
    /// # Errors
    /// [`TestbedError`]; nothing is left behind.
    pub fn start(
        request: TestbedRequest,
        on_step: StepListener,
        abort: &Arc<AtomicBool>,
    ) -> Result<Deployment, TestbedError> {
        let TestbedRequest { kind, settings } = request;
        let mut site = Site::new(settings, on_step, Arc::clone(abort))?;
        let served = deploy(kind, &mut site).map_err(|error| {
            // A server that does not start on a disk that failed says nothing of itself.
            let failed = site.disks_mut().and_then(|mut disks| disks.failure());
            failed.map_or(error, TestbedError::Machine)
        })?;
        let ready_after = site.age();
        Ok(Deployment { kind, site, served, ready_after })
    }

    /// Starts the testbed that these words name and tells nobody of its steps.
    ///
    /// # Errors
    /// [`TestbedError`]; nothing is left behind.
    pub fn up(words: &str) -> Result<Deployment, TestbedError> {
        Deployment::start(TestbedRequest::parse(words)?, Box::new(|_| {}), &Arc::default())
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
        Description {
            request: self.site.settings().to_string(),
            kind: self.kind.name.to_owned(),
            url: self.served.url.clone(),
            version: self.served.version.clone(),
            nodes,
            steps: self.site.steps().to_vec(),
            ready_after: self.ready_after,
            configuration: self.served.configuration.clone(),
            changed: self.served.changed.clone(),
            pinned: self.site.pinned().cloned(),
            network: self.site.network().map(Network::clients),
            disk: self.site.disks().and_then(|disks| disks.describe()),
            attached: false,
        }
    }

    fn nodes(&mut self) -> Vec<NodeDescription> {
        let roles = self.kind.changes.roles.map(|roles| roles(&self.site));
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
                ended_by_itself: node.server.ended_by_itself(),
            }
        });
        described.collect()
    }

    fn act_on(&mut self, nodes: &[String], action: &NodeAction) -> Result<String, TestbedError> {
        acting::act(self.kind, &mut self.site, nodes, action)
    }

    fn whole(&mut self) -> Option<Result<(), String>> {
        acting::whole(self.kind, &mut self.site)
    }

    fn machine_failure(&mut self) -> Option<String> {
        self.site.disks_mut().and_then(|mut disks| disks.failure())
    }

    fn take_cut(&mut self) -> Option<CutFigures> {
        self.site.take_cut()
    }

    fn add_node(&mut self) -> Result<String, TestbedError> {
        acting::add(self.kind, &mut self.site)
    }
}
