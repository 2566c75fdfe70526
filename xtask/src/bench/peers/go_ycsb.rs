//! go-ycsb, for Redis and for MongoDB's protocol. It is built with these two bindings alone: the others ask
//! for libraries of stores that are not measured here.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use kvdyno_testbed::install::{Software, SoftwareSource};

use super::super::load::{CONNECTIONS, Load, Mix};
use super::super::target::Target;
use super::{Peer, PeerFigures};
use crate::steps::StepFailure;

static SOFTWARE: Software = Software {
    name: "go-ycsb",
    version: "v1.0.1",
    source: SoftwareSource::Go {
        module: "github.com/pingcap/go-ycsb",
        sum: "h1:OGIUjQjtC22KDHPCqg4+ScWYFZrHQjJnt3Gmf4N8UOw=",
        package: "./cmd/go-ycsb",
        prepare: Some(only_ours),
    },
};

/// The store that it loads.
pub(super) enum GoYcsb {
    Redis,
    Mongodb,
}

impl Peer for GoYcsb {
    fn software(&self) -> &'static Software {
        &SOFTWARE
    }

    fn remark(&self) -> &'static str {
        match self {
            GoYcsb::Redis => "It has no pipelines, and keeps values as JSON.",
            GoYcsb::Mongodb => {
                "Its update sets a field of the document, kvdyno's replaces the document or makes it."
            }
        }
    }

    fn can(&self, load: &Load) -> bool {
        load.pipeline == 1
    }

    fn fill(
        &self,
        target: &Target,
        tool: &dyn Fn() -> Command,
    ) -> Result<Vec<Command>, StepFailure> {
        Ok(vec![self.command(target, tool(), "load", &[])])
    }

    fn carry(&self, target: &Target, tool: Command, load: &Load) -> Result<Command, StepFailure> {
        let (reads, updates) = match load.mix {
            Mix::Get => ("readproportion=1", "updateproportion=0"),
            Mix::Half => ("readproportion=0.5", "updateproportion=0.5"),
        };
        let count = format!("operationcount={}", load.requests);
        let uniform = "requestdistribution=uniform";
        Ok(self.command(target, tool, "run", &["workload=core", uniform, reads, updates, &count]))
    }

    fn figures(&self, said: &str, _load: &Load) -> Option<PeerFigures> {
        // READ - Takes(s): 0.7, Count: 2462, OPS: 3718.3, …, 50th(us): 2521, …, 99th(us): 50879, …
        let field = |line: &str, name: &str| -> Option<f64> {
            let at = line.split(", ").find_map(|field| field.trim().strip_prefix(name))?;
            at.trim_start_matches(": ").parse().ok()
        };
        let line = |kind: &str| said.lines().rfind(|line| line.starts_with(kind));
        // It ends well whatever has happened: this tells what has.
        if line("READ_ERROR ").or(line("UPDATE_ERROR ")).is_some() {
            return None;
        }
        let latency = |name| Some(Duration::from_micros(field(line("READ ")?, name)? as u64));
        let rate = field(line("TOTAL ")?, "OPS")?;
        Some(PeerFigures {
            rate,
            gets: Some((latency("50th(us)")?, latency("99th(us)")?)),
            ..PeerFigures::default()
        })
    }
}

impl GoYcsb {
    fn command(&self, target: &Target, mut tool: Command, what: &str, more: &[&str]) -> Command {
        let address = target.address();
        let (binding, mut own) = match self {
            GoYcsb::Redis => {
                ("redis", vec![format!("redis.addr={address}"), "redis.datatype=string".to_owned()])
            }
            GoYcsb::Mongodb => ("mongodb", vec![format!("mongodb.url=mongodb://{address}/ycsb")]),
        };
        own.extend([
            "fieldcount=1".to_owned(),
            "fieldlength=100".to_owned(),
            "measurementtype=histogram".to_owned(),
            format!("recordcount={}", target.records()),
            format!("threadcount={CONNECTIONS}"),
        ]);
        tool.args([what, binding]);
        for property in own.iter().map(String::as_str).chain(more.iter().copied()) {
            tool.args(["-p", property]);
        }
        tool
    }
}

/// Leaves the other bindings out of the program.
fn only_ours(source: &Path) -> io::Result<()> {
    let path = source.join("cmd/go-ycsb/main.go");
    let text = std::fs::read_to_string(&path)?;
    let lines: Vec<&str> = text.lines().filter(|line| !is_other_binding(line)).collect();
    std::fs::write(path, lines.join("\n") + "\n")
}

fn is_other_binding(line: &str) -> bool {
    let binding = line.trim().strip_prefix("_ \"github.com/pingcap/go-ycsb/db/");
    binding.is_some_and(|name| !["redis\"", "mongodb\""].contains(&name))
}

#[cfg(test)]
mod tests {
    use super::super::super::load::LOADS;
    use super::*;

    const SAID: &str = "\
Run finished, takes 662.014394ms
READ   - Takes(s): 0.7, Count: 2462, OPS: 3718.3, Avg(us): 5813, Min(us): 22, Max(us): 190079, 50th(us): 2521, 90th(us): 12031, 95th(us): 17023, 99th(us): 50879, 99.9th(us): 189951, 99.99th(us): 190079
TOTAL  - Takes(s): 0.7, Count: 5000, OPS: 7553.3, Avg(us): 5826, Min(us): 21, Max(us): 190207, 50th(us): 2407, 90th(us): 12023, 95th(us): 17039, 99th(us): 50880, 99.9th(us): 189951, 99.99th(us): 190079
";

    #[test]
    fn its_lines_are_understood() {
        let gets = Some((Duration::from_micros(2_521), Duration::from_micros(50_879)));
        assert_eq!(
            GoYcsb::Redis.figures(SAID, &LOADS[0]),
            Some(PeerFigures { rate: 7_553.3, gets, ..PeerFigures::default() })
        );
        let failed = format!("{SAID}READ_ERROR - Takes(s): 0.7, Count: 3, OPS: 4.2\n");
        for said in ["Run finished", &failed] {
            assert_eq!(GoYcsb::Redis.figures(said, &LOADS[0]), None);
        }
    }

    #[test]
    fn only_the_bindings_that_are_used_stay() {
        assert!(is_other_binding("\t_ \"github.com/pingcap/go-ycsb/db/tikv\""));
        assert!(!is_other_binding("\t_ \"github.com/pingcap/go-ycsb/db/redis\""));
        assert!(!is_other_binding("\t_ \"github.com/pingcap/go-ycsb/db/mongodb\""));
        assert!(!is_other_binding("\t_ \"github.com/pingcap/go-ycsb/pkg/workload\""));
    }
}
