//! Client CPU for each operation on Redis over loopback, beside redis-benchmark: server on one
//! processor, client on another, in turns.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::pairs::{Median, Pairs};
use super::{Options, Section, child, kvdyno};
use crate::steps::{self, Failure, root};

const RECORDS: u64 = 100_000;
const REQUESTS: u64 = 1_000_000;
const CLIENTS: &str = "50";
/// kvdyno's mix and redis-benchmark's test.
const LOADS: [(&str, &str); 2] = [("get=100", "get"), ("update=100", "set")];

/// A Redis server of our own on a free port; ends with this value.
struct Server {
    process: Child,
    port: String,
}

impl Server {
    fn start(cpu: &str) -> Result<Server, Failure> {
        let any = (Ipv4Addr::LOCALHOST, 0);
        let free = TcpListener::bind(any).and_then(|listener| listener.local_addr());
        let port = free.map_err(Failure::file("loopback"))?.port();
        let mut command = Command::new("taskset");
        command.args(["-c", cpu, "redis-server", "--save", "", "--appendonly", "no"]);
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        let process = command
            .stdout(Stdio::null())
            .spawn()
            .map_err(|source| steps::start_failure(&command, source))?;
        let server = Server { process, port: port.to_string() };
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if started.elapsed() > Duration::from_secs(10) {
                return Err(steps::failure(&command, "no answer after 10 s"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It holds nothing that is worth an orderly end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn run(options: &Options) -> Result<Section, Failure> {
    let (server_cpu, client_cpu) = processors()?;
    let server = Server::start(&server_cpu)?;
    let pinned = ["taskset", "-c", &client_cpu];
    let (records, requests) = (RECORDS.to_string(), options.scaled(REQUESTS).to_string());
    let out = root().join("target/bench/redis");
    let store = format!("redis://127.0.0.1:{}", server.port);
    let ours = |mix: &str, policy: &str| {
        let mut command = kvdyno::command(&out, &pinned);
        command.args(["--store", &store, "--records", &records, "--value", "100B"]);
        command.args(["--mix", mix, "--clients", CLIENTS, "--requests", &requests]);
        kvdyno::run(&out, command.args(["--data", policy]))
    };
    let theirs = |test: &str| {
        let mut command = Command::new(pinned[0]);
        command.args(&pinned[1..]).args(["redis-benchmark", "-p", &server.port, "-q"]);
        command.args(["-t", test, "-c", CLIENTS, "-n", &requests, "-r", &records, "-d", "100"]);
        Ok(child::cpu_time(&mut command)?.as_secs_f64() * 1e6 / options.scaled(REQUESTS) as f64)
    };
    ours("get=100", "fresh")?;
    theirs("set")?;
    let mut text = String::from(
        "| operations | kvdyno, client CPU µs each | redis-benchmark, client CPU µs each | ratio |\n\
         | --- | --- | --- | --- |\n",
    );
    for (mix, test) in LOADS {
        let our = || Ok(ours(mix, "reuse")?.cpu_per_operation());
        let pairs = Pairs::measure(options.pairs, our, || theirs(test))?;
        let (our, their) = (Median::of(&pairs.ours), Median::of(&pairs.theirs));
        text += &format!("| {mix} | {our} | {their} | {} |\n", pairs.ratio());
    }
    let version = steps::output(Command::new("redis-server").arg("--version"))?;
    let version = version.split_whitespace().find_map(|word| word.strip_prefix("v="));
    text += &format!(
        "\nRedis {} on processor {server_cpu}, client on {client_cpu}, {CLIENTS} connections, no \
         pipelining, {REQUESTS} requests over {RECORDS} records of 100 bytes. CPU is user and \
         system time of the whole client process, start and report included. At most 1 is asked \
         for.\n",
        version.unwrap_or("of unknown version")
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
