//! Faults of a phase on real servers: they are injected when they are due, repaired, told, and their cost is counted.

use crate::support::suite::Suite;
use crate::support::{Bench, Outcome};
use serde_json::Value;

/// Makes the load that faults are injected into: their lines come after these.
fn load(seconds: u32) -> Suite {
    let loaded = Suite::of(2_000).set("clients", 4).load();
    let mix = loaded.phase("mix", "get = 50, update = 50").set("rate", "1k/s");
    mix.set("duration", format!("{seconds}s"))
}

struct Ran {
    outcome: Outcome,
    bench: Bench,
}

fn run(suite: &Suite, target: [&str; 2]) -> Ran {
    let bench = Bench::new();
    let suite = bench.suite(suite);
    let outcome = bench.run(&[&["run", &suite, "--quiet"], &target[..]].concat());
    Ran { outcome, bench }
}

impl Ran {
    fn output(&self) -> String {
        format!("{}\n{}", self.outcome.stdout, self.outcome.stderr)
    }

    fn phase(&self, name: &str) -> &Value {
        self.outcome.phase(name)
    }

    /// Returns the faults and repairs, each with its node; asserts that none went wrong.
    fn faults(&self) -> Vec<(&str, &str)> {
        let faults = self.phase("mix")["faults"].as_array().unwrap();
        assert!(faults.iter().all(|fault| fault["error"].is_null()), "{}", self.output());
        let text = |value: &'_ Value| value.as_str().unwrap().to_owned().leak() as &str;
        faults.iter().map(|fault| (text(&fault["what"]), text(&fault["node"]))).collect()
    }

    /// Returns the begins of the stretches of a phase over which a process was sampled, s.
    fn sampled(&self, phase: &str, process: &str) -> Vec<f64> {
        let path = self.bench.path("out-0/resources.csv");
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let [phase_at, process_at, start_at] = ["phase_name", "process", "start_s"]
            .map(|name| names.iter().position(|known| *known == name).unwrap());
        let of_both = lines.filter(|row| row[phase_at] == phase && row[process_at] == process);
        of_both.map(|row| row[start_at].parse().unwrap()).collect()
    }

    /// Returns the processes of nodes that came after the testbed was up, by name and process number.
    fn later(&self) -> Vec<(&str, u64)> {
        let later = self.outcome.result["runs"][0]["testbed"]["later"].as_array().unwrap().iter();
        later.map(|n| (n["name"].as_str().unwrap(), n["pid"].as_u64().unwrap())).collect()
    }

    fn unsuccessful(&self) -> u64 {
        let series = self.phase("mix")["series"].as_array().unwrap().iter();
        series.map(|s| s["failed"].as_u64().unwrap() + s["indeterminate"].as_u64().unwrap()).sum()
    }

    fn anomalies(&self) -> u64 {
        let phases = self.outcome.result["runs"][0]["phases"].as_array().unwrap().iter();
        phases.map(|phase| phase["anomalies"].as_array().unwrap().len() as u64).sum()
    }
}

#[test]
fn a_killed_server_is_started_again_and_what_it_had_acknowledged_is_there() {
    let suite = load(4).fault("kill").set("at", "1s").set("repair", "1s");
    let ran = run(&suite, ["--testbed", "redis?persistence=aof-always"]);
    assert_eq!(ran.faults(), [("kill", "redis-1"), ("start again", "redis-1")]);
    assert!(ran.unsuccessful() > 0, "a second without a server: {}", ran.output());
    assert_eq!(ran.anomalies(), 0, "{}", ran.output());
    assert_eq!(ran.phase("mix:read-back")["tally"]["judged"], 2000, "{}", ran.output());
    let faults = &ran.phase("mix")["faults"];
    let began = |at: usize| faults[at]["began_ns"].as_u64().unwrap();
    assert!(began(0) >= 1_000_000_000 && began(1) >= began(0) + 1_000_000_000, "{faults}");
    assert!(ran.output().contains("mix: kill redis-1"), "{}", ran.output());
    // Its new process is sampled, to the end of this phase and in the next.
    let [(node, pid)] = ran.later()[..] else { panic!("{:?}", ran.later()) };
    let server = &ran.phase("mix")["resources"]["servers"][0];
    assert_eq!((node, &server["pid"], &server["alive"]), ("redis-1", &pid.into(), &true.into()));
    for phase in ["mix", "mix:read-back"] {
        let last = |process| ran.sampled(phase, process).last().copied();
        assert_eq!(last("redis-1"), last("machine"), "{phase}: {}", ran.output());
    }
}

#[test]
fn what_a_killed_server_has_forgotten_is_named_lost() {
    // Repaired only when the clients are done.
    let suite = load(4).fault("kill").set("at", "3s");
    let ran = run(&suite, ["--testbed", "redis"]);
    assert_eq!(ran.faults(), [("kill", "redis-1"), ("start again", "redis-1")]);
    let lost = ran.phase("mix:read-back")["tally"]["anomalies"].as_array().unwrap();
    let named: u64 = lost.iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(named, 2000, "all was in memory only: {}", ran.output());
    // It promises nothing else, so that only the build of the tests speaks against the run.
    assert_eq!(ran.outcome.code, 2, "{}", ran.output());
}

#[test]
fn every_server_rewrites_its_log_while_the_load_goes_on() {
    let suite = load(4).fault("rewrite").set("node", "all").set("at", "500ms");
    let testbed = "redis-sharded:2?persistence=aof-everysec&rewrites=held-off";
    let ran = run(&suite, ["--testbed", testbed]);
    assert_eq!(ran.faults(), [("rewrite", "redis-1"), ("rewrite", "redis-2")]);
    assert_eq!((ran.unsuccessful(), ran.anomalies()), (0, 0), "{}", ran.output());
}

#[test]
fn a_paused_server_is_resumed_again_and_again() {
    let paused = load(4).fault("pause").set("node", 1).set("at", "500ms");
    let suite = paused.set("repair", "300ms").set("every", "1s");
    let ran = run(&suite, ["--testbed", "redis"]);
    let faults = ran.faults();
    assert!(faults.len() >= 4, "{faults:?}");
    for pair in faults.chunks(2) {
        assert_eq!(pair, [("pause", "redis-1"), ("resume", "redis-1")]);
    }
    assert_eq!(ran.anomalies(), 0, "{}", ran.output());
}

#[test]
fn faults_want_a_testbed() {
    let ran = run(&load(4).fault("kill"), ["--store", "map:"]);
    assert_eq!(ran.outcome.code, 64);
    assert!(ran.output().contains("--testbed NAME"), "{}", ran.output());
}

#[test]
fn a_fault_that_cannot_be_done_is_told() {
    let ran = run(&load(4).fault("kill").set("node", 3), ["--testbed", "redis"]);
    let error = ran.phase("mix")["faults"][0]["error"].as_str().unwrap();
    assert!(error.contains("no node is number 3 now"), "{error}");
    assert_eq!(ran.unsuccessful(), 0);
}

#[test]
fn a_partition_stalls_the_clients_until_it_is_repaired() {
    let cut = load(10).fault("partition").set("when", "rate");
    let suite = cut.set("at", "200ms").set("repair", "1s");
    let ran = run(&suite, ["--testbed", "redis"]);
    assert_eq!(ran.faults(), [("partition", "redis-1"), ("reconnect", "redis-1")]);
    assert_eq!(ran.outcome.result["runs"][0]["testbed"]["request"], "redis?network=own");
    let faults = &ran.phase("mix")["faults"];
    assert_eq!(faults[0]["used"], "nftables");
    let began = |at: usize| faults[at]["began_ns"].as_u64().unwrap();
    assert!(began(0) >= 1_200_000_000, "a whole interval had to pass: {faults}");
    assert!(began(1) >= began(0) + 1_000_000_000, "{faults}");
    let series = ran.phase("mix")["series"].as_array().unwrap();
    let longest = series.iter().filter_map(|series| series["service"]["max_ns"].as_u64()).max();
    assert!(longest > Some(900_000_000) || ran.unsuccessful() > 0, "{}", ran.output());
    assert_eq!(ran.anomalies(), 0, "{}", ran.output());
}

#[test]
fn several_servers_are_killed_and_started_again_at_one_moment() {
    let two = load(4).fault("kill").set("count", 2).set("when", "acked >= 500");
    let never = two.set("repair", "500ms").fault("kill").set("when", "acked >= 1M");
    let suite = never.fault("kill").set("count", 4);
    let ran = run(&suite, ["--testbed", "redis-sharded:3?persistence=aof-always"]);
    let faults = ran.phase("mix")["faults"].as_array().unwrap();
    let text = |at: usize, key: &str| faults[at][key].as_str().unwrap_or_default();
    assert!(text(0, "error").contains("fewer than 4 nodes are up with data now"), "{faults:?}");
    for (kill, start) in [(1, 3), (2, 4)] {
        assert_eq!((text(kill, "what"), text(start, "what")), ("kill", "start again"));
        assert_eq!(text(kill, "node"), text(start, "node"));
        assert_eq!((text(kill, "error"), text(start, "error")), ("", ""));
    }
    assert_ne!(text(1, "node"), text(2, "node"));
    assert_eq!(faults[1]["began_ns"], faults[2]["began_ns"]);
    assert_eq!(faults[3]["began_ns"], faults[4]["began_ns"]);
    assert!(text(5, "error").contains("over before its condition held"), "{faults:?}");
    assert!(ran.unsuccessful() > 0 && ran.anomalies() == 0, "{}", ran.output());
}

#[test]
fn a_cluster_takes_a_node_and_gives_one_up_under_load() {
    // Each moves a quarter of the slots: 8 s on a machine at rest, 20 s on a busy one.
    let added = load(45).fault("add").set("at", "500ms");
    let suite = added.fault("remove").set("node", "redis-4").set("at", "8s");
    let target = ["--testbed", "redis-cluster:3?replicas=0"];
    let ran = run(&suite, target);
    assert_eq!(ran.faults(), [("add", "redis-4"), ("remove", "redis-4")]);
    assert_eq!(ran.anomalies(), 0, "{}", ran.output());
    let [(node, _)] = ran.later()[..] else { panic!("{:?}", ran.later()) };
    assert_eq!(node, "redis-4");
    assert!(!ran.sampled("mix", "redis-4").is_empty(), "{}", ran.output());
    assert_eq!(ran.phase("mix:read-back")["tally"]["judged"], 2000, "{}", ran.output());
}

#[test]
fn what_a_testbed_cannot_bear_is_refused_before_it_is_started() {
    for (suite, testbed, said) in [
        (load(4).fault("add"), "redis", "can take another node while it runs; redis cannot"),
        (
            load(4).fault("remove"),
            "redis-sharded",
            "can give up a node while it runs; redis-sharded cannot",
        ),
        (
            load(4).fault("compact"),
            "etcd",
            "can merge its files on command while it runs; etcd cannot",
        ),
        (
            load(4).fault("kill").set("node", "primary"),
            "redis",
            "aims at a primary, but all nodes of testbed redis are equal",
        ),
        (load(4).fault("pause").set("node", "replica"), "memcached:3", "aim at `any`"),
        (load(4).fault("disk-full"), "redis", "as in `redis?disk=64MiB`"),
        (load(4).fault("power"), "redis", "as in `redis?disk=ext4`"),
        (
            load(4).fault("power"),
            "redis?disk=64MiB&persistence=rdb",
            "as in `redis?persistence=rdb&disk=ext4`",
        ),
        (load(4).fault("lossy").set("loss", 0.1), "redis?network=host", "leave `network=host` out"),
    ] {
        let ran = run(&suite, ["--testbed", testbed]);
        assert_eq!(ran.outcome.code, 64, "{}", ran.output());
        assert!(ran.output().contains(said), "{said}: {}", ran.output());
    }
}
