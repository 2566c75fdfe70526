//! redis-benchmark, which comes with Redis.

use std::process::Command;

use kvdyno_testbed::install::{Software, SoftwareSource};

use super::super::load::{CONNECTIONS, Load, Mix};
use super::super::target::Target;
use super::{Peer, PeerFigures, milliseconds};
use crate::steps::StepFailure;

static SOFTWARE: Software = Software {
    name: "redis-benchmark",
    version: "",
    source: SoftwareSource::Debian { packages: &["redis-tools"], program: "redis-benchmark" },
};

pub(super) struct RedisBenchmark;

impl Peer for RedisBenchmark {
    fn software(&self) -> &'static Software {
        &SOFTWARE
    }

    fn remark(&self) -> &'static str {
        "It has no mixes: it does the gets first and then the updates, so that at any time all \
         requests are of one kind."
    }

    fn fill(
        &self,
        target: &Target,
        tool: &dyn Fn() -> Command,
    ) -> Result<Vec<Command>, StepFailure> {
        // It draws what it writes at random: 95 % of the keys are there after three times as many.
        Ok(vec![command(target, tool(), &["set"], 16, 3 * target.records())])
    }

    fn carry(&self, target: &Target, tool: Command, load: &Load) -> Result<Command, StepFailure> {
        let tests: &[&str] = match load.mix {
            Mix::Get => &["get"],
            Mix::Half => &["get", "set"],
        };
        Ok(command(target, tool, tests, load.pipeline, load.requests / tests.len() as u64))
    }

    fn figures(&self, said: &str, load: &Load) -> Option<PeerFigures> {
        // "test","rps","avg_latency_ms","min…","p50…","p95…","p99…","max…"
        let line = |test: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(&format!("\"{test}\",")))?;
            Some(line.split(',').collect::<Vec<_>>())
        };
        let gets = line("GET")?;
        let rate = |columns: &[&str]| columns.first()?.trim_matches('"').parse::<f64>().ok();
        let rate = match load.mix {
            Mix::Get => rate(&gets)?,
            // One after the other, as many of each.
            Mix::Half => 2.0 / (1.0 / rate(&gets)? + 1.0 / rate(&line("SET")?)?),
        };
        let latency = |column: usize| milliseconds(gets.get(column)?);
        Some(PeerFigures { rate, gets: Some((latency(3)?, latency(5)?)), ..PeerFigures::default() })
    }
}

fn command(
    target: &Target,
    mut tool: Command,
    tests: &[&str],
    pipeline: u64,
    each: u64,
) -> Command {
    tool.args(["--csv", "-d", "100", "-t", &tests.join(",")]);
    tool.args(["-h", &target.address().ip().to_string()]);
    for (option, number) in [
        ("-p", u64::from(target.address().port())),
        ("-c", CONNECTIONS),
        ("-P", pipeline),
        ("-n", each),
        ("-r", target.records()),
    ] {
        tool.arg(option).arg(number.to_string());
    }
    tool
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::load::LOADS;
    use super::*;

    const SAID: &str = "\
\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"
\"SET\",\"200000.00\",\"3.237\",\"0.360\",\"1.439\",\"13.807\",\"28.431\",\"40.639\"
\"GET\",\"100000.00\",\"6.770\",\"0.352\",\"2.199\",\"22.751\",\"95.935\",\"126.783\"
";

    #[test]
    fn its_table_is_understood() {
        let gets = Some((Duration::from_micros(2_199), Duration::from_micros(95_935)));
        let figures = RedisBenchmark.figures(SAID, &LOADS[0]);
        assert_eq!(figures, Some(PeerFigures { rate: 100_000.0, gets, ..PeerFigures::default() }));
        let both = RedisBenchmark.figures(SAID, &LOADS[1]).unwrap();
        assert!((both.rate - 133_333.3).abs() < 0.1, "{both:?}");
        assert_eq!(RedisBenchmark.figures("ERR", &LOADS[0]), None);
    }
}
