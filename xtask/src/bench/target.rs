//! A server that keeps to one half of the processors; the other half is for the clients that are measured against it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use kvdyno_testbed::{Deployment, Description, Testbed};

use crate::steps::StepFailure;

/// A server of one node that is up until this is dropped, for so many records of each program.
pub(super) struct Target {
    deployment: Deployment,
    description: Description,
    address: SocketAddr,
    records: u64,
}

impl Target {
    /// Starts the testbed that these words name, such as `memcached?memory=4GiB`.
    pub(super) fn start(words: &str, records: u64) -> Result<Target, StepFailure> {
        let separator = if words.contains('?') { '&' } else { '?' };
        let mut deployment = Deployment::up(&format!("{words}{separator}pin=servers"))?;
        let description = deployment.describe();
        let address = description.nodes.first().and_then(|node| node.address.parse().ok());
        let address = address
            .ok_or_else(|| StepFailure::Found(format!("{words} does not tell its address")))?;
        Ok(Target { deployment, description, address, records })
    }

    /// Returns the URL by which kvdyno reaches it.
    pub(super) fn url(&self) -> &str {
        self.deployment.url()
    }

    /// Returns the address at which it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of records of each program; each has its own.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Makes a command that keeps to the clients' processors.
    pub(super) fn client(&self, program: &Path) -> Command {
        let mut command = Command::new("taskset");
        command.arg("-c").arg(self.client_cpus()).arg(program);
        command
    }

    /// Returns the clients' processors, as taskset takes them.
    pub(super) fn client_cpus(&self) -> String {
        listed(self.clients())
    }

    /// Describes the server and its processors.
    pub(super) fn describe(&self) -> String {
        let Description { kind, version, pinned, .. } = &self.description;
        let version = version.as_deref().unwrap_or("of unknown version");
        let servers = pinned.as_ref().map_or(&[][..], |pinned| &pinned.servers);
        format!(
            "{kind} {version} on processor {}, clients on {}",
            listed(servers),
            self.client_cpus()
        )
    }

    fn clients(&self) -> &[usize] {
        self.description.pinned.as_ref().map_or(&[], |pinned| &pinned.clients)
    }
}

/// Lists numbers as taskset takes them.
fn listed(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
