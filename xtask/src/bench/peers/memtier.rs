//! memtier_benchmark, for Redis and for Memcached's text commands. It is in Debian's newer releases,
//! and may have been built by the user.

use std::process::{Command, Stdio};

use kvdyno_testbed::install::{Software, Source};

use super::super::target::Target;
use super::super::wire::{CONNECTIONS, Load, Mix, RECORDS};
use super::{Peer, Told, milliseconds};
use crate::steps::Failure;

static SOFTWARE: Software = Software {
    name: "memtier_benchmark",
    version: "",
    source: Source::Debian { packages: &["memtier-benchmark"], program: "memtier_benchmark" },
};

pub(super) struct Memtier {
    /// `redis` or `memcache_text`.
    pub protocol: &'static str,
}

impl Peer for Memtier {
    fn software(&self) -> &'static Software {
        &SOFTWARE
    }

    fn remark(&self) -> &'static str {
        "One thread."
    }

    fn fill(&self, target: &Target, tool: &dyn Fn() -> Command) -> Result<Vec<Command>, Failure> {
        let mut command = self.command(target, tool());
        // Each connection writes its own share of the keys, once.
        command.args(["--pipeline=16", "--ratio=1:0", "--key-pattern=P:P", "--requests=allkeys"]);
        Ok(vec![command])
    }

    fn carry(&self, target: &Target, tool: Command, load: &Load) -> Result<Command, Failure> {
        let ratio = match load.mix {
            Mix::Get => "--ratio=0:1",
            Mix::Half => "--ratio=1:1",
        };
        let mut command = self.command(target, tool);
        command.args([ratio, "--key-pattern=R:R"]);
        command.arg(format!("--pipeline={}", load.pipeline));
        command.arg(format!("--requests={}", load.requests / CONNECTIONS));
        Ok(command)
    }

    fn told(&self, said: &str, _load: &Load) -> Option<Told> {
        // Type, Ops/sec, Hits/sec, Misses/sec, Avg., p50, p99, p99.9 latency in ms, KB/sec
        let line = |kind: &str| {
            let line = said.lines().find(|line| line.starts_with(kind))?;
            Some(line.split_ascii_whitespace().collect::<Vec<_>>())
        };
        let gets = line("Gets")?;
        let latency = |column: usize| milliseconds(gets.get(column)?);
        let rate = line("Totals")?.get(1)?.parse().ok()?;
        Some(Told { rate, gets: Some((latency(5)?, latency(6)?)), ..Told::default() })
    }
}

impl Memtier {
    fn command(&self, target: &Target, mut tool: Command) -> Command {
        // Its progress would fill the screen.
        tool.stderr(Stdio::null()).args(["--hide-histogram", "--threads=1", "--data-size=100"]);
        tool.arg(format!("--protocol={}", self.protocol));
        tool.arg(format!("--server={}", target.address().ip()));
        tool.arg(format!("--port={}", target.address().port()));
        tool.arg(format!("--clients={CONNECTIONS}"));
        // 16 bytes of key, as the others have.
        tool.args(["--key-prefix=memtier-b", "--key-minimum=1000001"]);
        tool.arg(format!("--key-maximum={}", 1_000_000 + RECORDS));
        tool
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::wire::LOADS;
    use super::*;

    const SAID: &str = "\
ALL STATS
============================================================================================================================
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec
----------------------------------------------------------------------------------------------------------------------------
Sets        68577.70          ---          ---         5.64659         5.11900        13.18300        13.37500      9170.93
Gets        68577.70       685.78     67891.92         5.64659         5.25000        14.50000        13.37500      2006.43
Waits           0.00          ---          ---             ---             ---             ---             ---          ---
Totals     137155.40       685.78     67891.92         5.64659         5.11900        13.18300        13.37500     11177.36
";

    #[test]
    fn its_table_is_understood() {
        let told = Memtier { protocol: "redis" }.told(SAID, &LOADS[1]);
        let gets = Some((Duration::from_micros(5_250), Duration::from_micros(14_500)));
        assert_eq!(told, Some(Told { rate: 137_155.4, gets, ..Told::default() }));
        assert_eq!(Memtier { protocol: "redis" }.told("error", &LOADS[1]), None);
    }
}
