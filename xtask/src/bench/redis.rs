//! Client CPU for each operation on Redis over loopback, beside redis-benchmark: server on one
//! processor, client on another, in turns.

use std::process::Command;

use kvdyno_testbed::{RedisServer, RedisSettings};

use super::pairs::{Median, Pairs};
use super::{Options, Section, child, kvdyno};
use crate::steps::{self, Failure, root};

const RECORDS: u64 = 100_000;
/// Enough that starting a process is less than a hundredth of its processor time.
const REQUESTS: u64 = 2_000_000;
const CONNECTIONS: u64 = 50;

/// The same load for both programs.
struct Load {
    /// kvdyno's mix.
    mix: &'static str,
    /// redis-benchmark's tests, one after the other, which share the requests.
    tests: &'static [&'static str],
    /// Requests in flight on each connection.
    pipeline: u64,
}

const LOADS: [Load; 4] = [
    Load { mix: "get=100", tests: &["get"], pipeline: 1 },
    Load { mix: "get=50,update=50", tests: &["get", "set"], pipeline: 1 },
    Load { mix: "get=100", tests: &["get"], pipeline: 16 },
    Load { mix: "get=50,update=50", tests: &["get", "set"], pipeline: 16 },
];

/// A server with records, and the processors that it and its clients run on.
struct Bench {
    server: RedisServer,
    server_cpu: String,
    client_cpu: String,
    requests: u64,
}

impl Bench {
    fn start(requests: u64) -> Result<Bench, Failure> {
        let (server_cpu, client_cpu) = processors()?;
        let server = RedisServer::start(RedisSettings::default())?;
        let pid = server.pid().to_string();
        steps::output(Command::new("taskset").args(["-acp", &server_cpu, &pid]))?;
        Ok(Bench { server, server_cpu, client_cpu, requests })
    }

    fn kvdyno(&self, load: &Load, policy: &str) -> Result<f64, Failure> {
        let out = root().join("target/bench/redis");
        let mut command = kvdyno::command(&out, &["taskset", "-c", &self.client_cpu]);
        let clients = CONNECTIONS * load.pipeline;
        command.args(["--store", &self.server.url(), "--value", "100B", "--mix", load.mix]);
        for (option, number) in [
            ("--records", RECORDS),
            ("--requests", self.requests),
            ("--clients", clients),
            ("--pipeline", load.pipeline),
        ] {
            command.arg(option).arg(number.to_string());
        }
        Ok(kvdyno::run(&out, command.args(["--data", policy]))?.cpu_ns() / 1e3)
    }

    fn redis_benchmark(&self, load: &Load) -> Result<f64, Failure> {
        let mut command = Command::new("taskset");
        command.args(["-c", &self.client_cpu, "redis-benchmark", "-q", "-d", "100"]);
        command.args(["-t", &load.tests.join(","), "-h", &self.server.address().ip().to_string()]);
        let each = self.requests / load.tests.len() as u64;
        for (option, number) in [
            ("-p", u64::from(self.server.port())),
            ("-c", CONNECTIONS),
            ("-P", load.pipeline),
            ("-n", each),
            ("-r", RECORDS),
        ] {
            command.arg(option).arg(number.to_string());
        }
        let requests = each * load.tests.len() as u64;
        Ok(child::cpu_time(&mut command)?.as_secs_f64() * 1e6 / requests as f64)
    }
}

pub(super) fn run(options: &Options) -> Result<Section, Failure> {
    let bench = Bench::start(options.scaled(REQUESTS))?;
    // Both programs find the records that they will read.
    bench.kvdyno(&LOADS[0], "fresh")?;
    bench.redis_benchmark(&LOADS[1])?;
    let mut text = String::from(
        "| operations | pipeline | kvdyno, client CPU µs each | redis-benchmark, client CPU µs \
         each | ratio |\n| --- | --- | --- | --- | --- |\n",
    );
    for load in &LOADS {
        let ours = || bench.kvdyno(load, "reuse");
        let pairs = Pairs::measure(options.pairs, ours, || bench.redis_benchmark(load))?;
        let (our, their) = (Median::of(&pairs.ours), Median::of(&pairs.theirs));
        let Load { mix, pipeline, .. } = load;
        text += &format!("| {mix} | {pipeline} | {our} | {their} | {} |\n", pairs.ratio());
    }
    let version = steps::output(Command::new("redis-server").arg("--version"))?;
    let version = version.split_whitespace().find_map(|word| word.strip_prefix("v="));
    text += &format!(
        "\nRedis {} on processor {}, client on {}, {CONNECTIONS} connections, {REQUESTS} requests \
         over {RECORDS} records of 100 bytes. CPU is user and system time of every thread of the \
         client: of kvdyno during the measured phase, of redis-benchmark from start to end. \
         redis-benchmark has no mixes: it does the gets first and then the sets. At most 1 is \
         asked for without pipelining.\n",
        version.unwrap_or("of unknown version"),
        bench.server_cpu,
        bench.client_cpu,
    );
    Ok(Section { name: "redis", text })
}

/// One processor for the server and one for the client, of those that this process may use.
fn processors() -> Result<(String, String), Failure> {
    let status = "/proc/self/status";
    let text = std::fs::read_to_string(status).map_err(Failure::file(status))?;
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    match listed(list.unwrap_or_default())[..] {
        [server, client, ..] => Ok((server.to_string(), client.to_string())),
        _ => Err(Failure::Found("this benchmark needs two processors".to_owned())),
    }
}

/// Numbers in a list such as `0-2,5`.
fn listed(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse().ok()?..=to.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!(listed("\t0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(listed("3"), [3]);
        assert_eq!(listed(""), Vec::<u32>::new());
    }
}
