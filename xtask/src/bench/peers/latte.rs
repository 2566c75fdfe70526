//! latte, for Cassandra.

use std::process::Command;
use std::time::Duration;

use kvdyno_testbed::install::{Software, SoftwareSource};

use super::super::load::{CONNECTIONS, Load, Mix};
use super::super::target::Target;
use super::{Peer, PeerFigures, folder, milliseconds, write};
use crate::steps::StepFailure;

static SOFTWARE: Software = Software {
    name: "latte",
    version: "0.29.0",
    source: SoftwareSource::CratesIo { package: "latte-cli" },
};

/// Script that latte runs.
const SCRIPT: &str = include_str!("latte.rn");

pub(super) struct Latte;

impl Peer for Latte {
    fn software(&self) -> &'static Software {
        &SOFTWARE
    }

    fn remark(&self) -> &'static str {
        "One thread with 50 requests in flight; both programs share the driver's connections \
         among their requests. Its processor time is what it tells of the load itself."
    }

    fn fill(
        &self,
        target: &Target,
        tool: &dyn Fn() -> Command,
    ) -> Result<Vec<Command>, StepFailure> {
        let (mut schema, mut load) = (tool(), tool());
        begin(&mut schema, "schema")?;
        begin(&mut load, "load")?.args(["--quiet", "--concurrency", "128"]);
        load.arg("-P").arg(format!("rows={}", target.records()));
        for command in [&mut schema, &mut load] {
            end(command, target)?;
        }
        Ok(vec![schema, load])
    }

    fn carry(
        &self,
        target: &Target,
        mut tool: Command,
        load: &Load,
    ) -> Result<Command, StepFailure> {
        let functions = match load.mix {
            Mix::Get => "get",
            Mix::Half => "get:1,update:1",
        };
        begin(&mut tool, "run")?.args(["--quiet", "--threads", "1", "--functions", functions]);
        tool.arg("--duration").arg(load.requests.to_string());
        tool.arg("--concurrency").arg(CONNECTIONS.to_string());
        tool.arg("--output").arg(folder("latte")?.join("report.json"));
        tool.arg("-P").arg(format!("rows={}", target.records()));
        end(&mut tool, target)?;
        Ok(tool)
    }

    fn figures(&self, said: &str, _load: &Load) -> Option<PeerFigures> {
        // `CPU time [s] 2.310`, `Throughput [op/s] 7553 ± 20`, and of each function the percentiles in ms
        let mut lines = said.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        let mut figure = |name: &[&str]| -> Option<f64> {
            let line = lines.find(|line| line.starts_with(name))?;
            line.get(name.len())?.parse().ok()
        };
        let cpu = Duration::try_from_secs_f64(figure(&["CPU", "time", "[s]"])?).ok()?;
        let rate = figure(&["Throughput", "[op/s]"])?;
        let mut gets =
            lines.skip_while(|line| !line.starts_with(&["CYCLE", "LATENCY", "for", "get"]));
        let mut latency = |percentile: &str| {
            let line = gets.find(|line| line.first() == Some(&percentile))?;
            milliseconds(line.get(1)?)
        };
        let gets = latency("50").zip(latency("99"));
        Some(PeerFigures { rate, cpu: Some(cpu), gets, ..PeerFigures::default() })
    }
}

/// Begins a command line: latte's words come before the files, its logs go into a folder beside them.
fn begin<'a>(tool: &'a mut Command, what: &str) -> Result<&'a mut Command, StepFailure> {
    Ok(tool.arg("--log-dir").arg(folder("latte")?).arg(what))
}

fn end(tool: &mut Command, target: &Target) -> Result<(), StepFailure> {
    let script = folder("latte")?.join("records.rn");
    write(&script, SCRIPT)?;
    tool.arg(script).arg(target.address().to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::load::LOADS;
    use super::*;

    const SAID: &str = "
SUMMARY STATS ═══════════
    Elapsed time       [s]      10.012
        CPU time       [s]       1.110
      Throughput    [op/s]   7553 ± 20
              ├─   [req/s]   7553 ± 20

CYCLE LATENCY for get [ms]  ═════
         Min                  0.116
          50                  6.300 ± 0.010
          99                 14.125 ± 0.200
CYCLE LATENCY for update [ms]  ═════
          50                  7.300 ± 0.010
";

    #[test]
    fn its_report_is_understood() {
        let updates = PeerFigures {
            rate: 7_553.0,
            cpu: Some(Duration::from_millis(1_110)),
            ..PeerFigures::default()
        };
        let gets = Some((Duration::from_micros(6_300), Duration::from_micros(14_125)));
        assert_eq!(Latte.figures(SAID, &LOADS[0]), Some(PeerFigures { gets, ..updates }));
        assert_eq!(Latte.figures(&SAID.replace("for get", "for put"), &LOADS[0]), Some(updates));
        assert_eq!(Latte.figures("", &LOADS[0]), None);
    }
}
