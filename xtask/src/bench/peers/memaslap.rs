//! memaslap, the load generator of libmemcached.

use std::process::Command;

use kvdyno_testbed::install::{Software, SoftwareSource};

use super::super::load::{CONNECTIONS, Load, Mix};
use super::super::target::Target;
use super::{Peer, PeerFigures, folder, write};
use crate::steps::StepFailure;

static SOFTWARE: Software = Software {
    name: "memaslap",
    version: "",
    source: SoftwareSource::Debian { packages: &["libmemcached-tools"], program: "memcaslap" },
};

pub(super) struct Memaslap;

impl Peer for Memaslap {
    fn software(&self) -> &'static Software {
        &SOFTWARE
    }

    fn remark(&self) -> &'static str {
        "It has no pipelines and works on records of its own, 1,000 for each connection; before \
         gets it writes them, and they count among its operations."
    }

    fn version_option(&self) -> &'static str {
        "-V"
    }

    fn can(&self, load: &Load) -> bool {
        load.pipeline == 1
    }

    fn carry(
        &self,
        target: &Target,
        mut tool: Command,
        load: &Load,
    ) -> Result<Command, StepFailure> {
        let (name, sets, gets) = match load.mix {
            Mix::Get => ("gets.cnf", "0", "1"),
            Mix::Half => ("half.cnf", "0.5", "0.5"),
        };
        let path = folder("memaslap")?.join(name);
        // Sizes as least, most, share; commands (0 is set, 1 is get) with their shares.
        write(&path, &format!("key\n16 16 1\nvalue\n100 100 1\ncmd\n0 {sets}\n1 {gets}\n"))?;
        tool.arg("-F").arg(&path).args(["-T", "1", "-w", "1k"]);
        tool.arg("-s").arg(target.address().to_string());
        tool.arg("-c").arg(CONNECTIONS.to_string()).arg("-x").arg(load.requests.to_string());
        Ok(tool)
    }

    fn figures(&self, said: &str, _load: &Load) -> Option<PeerFigures> {
        // Run time: 0.2s Ops: 10000 TPS: 62577 Net_rate: 8.9M/s
        let line = said.lines().find(|line| line.starts_with("Run time:"))?;
        let field = |name: &str| line.split(name).nth(1)?.split(' ').next();
        let rate = field("TPS: ")?.parse().ok()?;
        Some(PeerFigures {
            rate,
            operations: Some(field("Ops: ")?.parse().ok()?),
            ..PeerFigures::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::load::LOADS;
    use super::*;

    #[test]
    fn its_last_line_is_understood() {
        let said = "cmd_get: 5000\n\nRun time: 0.2s Ops: 10000 TPS: 62577 Net_rate: 8.9M/s\n";
        let figures =
            PeerFigures { rate: 62_577.0, operations: Some(10_000), ..PeerFigures::default() };
        assert_eq!(Memaslap.figures(said, &LOADS[0]), Some(figures));
        assert_eq!(Memaslap.figures("", &LOADS[0]), None);
    }
}
