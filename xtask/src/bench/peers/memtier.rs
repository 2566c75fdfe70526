//! memtier_benchmark, for Redis and for Memcached's text commands. One that the user has built and put into
//! the search path is taken; else Debian is asked, whose newer releases have it.

use std::process::{Command, Stdio};

use kvdyno_testbed::install::{Software, SoftwareSource};

use super::super::load::{CONNECTIONS, Load, Mix};
use super::super::target::Target;
use super::{Peer, PeerFigures, milliseconds};
use crate::steps::StepFailure;

static SOFTWARE: Software = Software {
    name: "memtier_benchmark",
    version: "",
    source: SoftwareSource::Debian {
        packages: &["memtier-benchmark"],
        program: "memtier_benchmark",
    },
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
        "One thread. A connection takes updates and gets in turns, and draws keys of its own \
         (`--distinct-client-seed`): without it all connections ask for the same keys in the same \
         order, which a server has in its processor's caches. Its operations a second are those \
         in flight over its mean latency: the rate that it prints is up to a second's work off, for \
         it averages the seconds and the microseconds of its connections' ends apart."
    }

    fn fill(
        &self,
        target: &Target,
        tool: &dyn Fn() -> Command,
    ) -> Result<Vec<Command>, StepFailure> {
        let mut command = self.command(target, tool());
        // Each connection writes its own share of the keys, once.
        command.args(["--pipeline=16", "--ratio=1:0", "--key-pattern=P:P", "--requests=allkeys"]);
        Ok(vec![command])
    }

    fn carry(&self, target: &Target, tool: Command, load: &Load) -> Result<Command, StepFailure> {
        let ratio = match load.mix {
            Mix::Get => "--ratio=0:1",
            Mix::Half => "--ratio=1:1",
        };
        let mut command = self.command(target, tool);
        command.args([ratio, "--key-pattern=R:R", "--distinct-client-seed"]);
        command.arg(format!("--pipeline={}", load.pipeline));
        command.arg(format!("--requests={}", load.requests / CONNECTIONS));
        Ok(command)
    }

    fn figures(&self, said: &str, load: &Load) -> Option<PeerFigures> {
        // Type, Ops/sec, Hits/sec, Misses/sec, Avg., p50, p99, p99.9 latency in ms, KB/sec
        let line = |kind: &str| {
            let line = said.lines().find(|line| line.starts_with(kind))?;
            Some(line.split_ascii_whitespace().collect::<Vec<_>>())
        };
        let gets = line("Gets")?;
        let latency = |column: usize| milliseconds(gets.get(column)?);
        // Requests in flight over their mean latency (Little's law), see the remark.
        let mean_ms: f64 = line("Totals")?.get(4)?.parse().ok()?;
        let rate = (CONNECTIONS * load.pipeline) as f64 / (mean_ms / 1e3);
        Some(PeerFigures { rate, gets: Some((latency(5)?, latency(6)?)), ..PeerFigures::default() })
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
        tool.arg(format!("--key-maximum={}", 1_000_000 + target.records()));
        tool
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::load::LOADS;
    use super::*;

    const REDIS: &str = "\
1         Threads
50        Connections per thread
1000      Requests per client


ALL STATS
============================================================================================================================
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec
----------------------------------------------------------------------------------------------------------------------------
Sets       115196.23          ---          ---         0.41799         0.39100         0.99900         1.99100     16761.95
Gets       115196.23    115196.23         0.00         0.41609         0.39100         0.99900         2.19100     16199.47
Waits           0.00          ---          ---             ---             ---             ---             ---          ---
Totals     230392.45    115196.23         0.00         0.41704         0.39100         0.99900         2.02300     32961.42
";

    /// The lines of the table that matter; the others are as Redis' are.
    const MEMCACHED: &str = "\
Sets        48923.30          ---          ---         0.51356         0.50300         1.72700         4.54300      6688.73
Gets        48923.30     48923.30         0.00         0.50782         0.49500         1.69500         4.35100      7596.49
Waits           0.00          ---          ---             ---             ---             ---             ---          ---
Totals      97846.59     48923.30         0.00         0.51069         0.49500         1.70300         4.38300     14285.22
";

    #[test]
    fn its_table_is_understood() {
        let figures = |protocol, said| Memtier { protocol }.figures(said, &LOADS[1]);
        let micros = |p50, p99| Some((Duration::from_micros(p50), Duration::from_micros(p99)));
        let (redis, memcached) = (figures("redis", REDIS), figures("memcache_text", MEMCACHED));
        assert_eq!(redis.unwrap().gets, micros(391, 999));
        assert_eq!(memcached.unwrap().gets, micros(495, 1_695));
        assert_eq!(figures("redis", "error"), None);
    }

    #[test]
    fn its_rate_is_that_of_its_latency() {
        // It prints 230,392 and 97,847 a second; the first would need 96 requests in flight.
        let rate = |said| Memtier { protocol: "redis" }.figures(said, &LOADS[1]).unwrap().rate;
        assert!((rate(REDIS) - 119_892.0).abs() < 1.0, "{}", rate(REDIS));
        assert!((rate(MEMCACHED) - 97_907.0).abs() < 1.0, "{}", rate(MEMCACHED));
    }
}
