//! Two runs at one store that cannot see each other, as on two machines: each is in a network namespace of its own, and
//! reaches the server by its socket. Only the heartbeat record in the store can prove that both go on.

use std::process::Command;

use serde_json::Value;

use crate::one_server::{RedisServer, RedisSettings};
use crate::support::{KVDYNO, Running, Scratch, finds_kvdyno};

/// Makes a command on a machine of its own, as far as the runs know of each other.
fn on_own_machine(arguments: &str) -> Command {
    let mut command = finds_kvdyno(Command::new("unshare"));
    command.args(["--net", KVDYNO]).args(arguments.split_ascii_whitespace());
    command
}

/// Starts a Redis with a socket in the scratch folder. Returns its URL, too.
fn redis(scratch: &Scratch) -> (RedisServer, String) {
    let socket = scratch.path("redis.sock").to_string_lossy().into_owned();
    let options = vec![("unixsocket".to_owned(), socket.clone())];
    let server = RedisServer::start(RedisSettings { options, ..RedisSettings::default() });
    (server.expect("redis-server starts"), format!("redis+unix://{socket}"))
}

/// Returns the server's answer about its keys of heartbeats.
fn heartbeat_keys(scratch: &Scratch, url: &str) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-s", url.trim_start_matches("redis+unix://"), "KEYS", "kvdyno-heartbeat-*"]);
    scratch.spawn(command).wait().out
}

/// Returns the begin of each command line here.
fn line(url: &str) -> String {
    format!("run --records 500 --clients 4 --mix get=50,update=50 --quiet --store {url}")
}

/// Starts a run on a machine of its own, and waits until its records are loaded and it measures.
fn measuring(scratch: &Scratch, url: &str, more: &str, out: &str) -> Running {
    let arguments = format!("{} {more} --out {out}", line(url));
    let mut running = scratch.spawn(on_own_machine(&arguments));
    let log = scratch.path(&format!("{out}/timeline.csv"));
    running.until("intervals of the phase `run`", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains(",run,")
    });
    running
}

fn reasons(run: &Value) -> Vec<&str> {
    let reasons = run["verdict"]["reasons"].as_array().expect("reasons").iter();
    reasons.filter_map(|reason| reason["name"].as_str()).collect()
}

#[test]
#[ignore = "needs mounts"]
fn runs_on_two_machines_prove_to_each_other_that_they_go_on() {
    let scratch = Scratch::new();
    let (_server, url) = redis(&scratch);
    let first = measuring(&scratch, &url, "--duration 9s", "first");
    assert!(heartbeat_keys(&scratch, &url).contains("kvdyno-heartbeat-"), "it tells of itself");
    let more = "--data reuse --duration 5s --out second";
    let second = scratch.spawn(on_own_machine(&format!("{} {more}", line(&url)))).wait();
    let first = first.wait();
    // For the second run the first run's values are older than its own.
    for (out, ended) in [("first", first), ("second", second)] {
        let run = scratch.result(out)["runs"][0].clone();
        assert!(reasons(&run).contains(&"other-run"), "{out}: {ended:#?}");
        ended.expect(2);
    }
    assert_eq!(heartbeat_keys(&scratch, &url).trim(), "", "the record goes with the runs");
}

/// Another run is no excuse for a value that it cannot have written: here an old value of the first run's own comes
/// back.
#[test]
#[ignore = "needs mounts"]
fn an_old_value_of_the_runs_own_is_the_stores_fault_beside_another_run_too() {
    let scratch = Scratch::new();
    let (_server, url) = redis(&scratch);
    let first = measuring(&scratch, &url, "--duration 10s", "first");
    let socket = url.trim_start_matches("redis+unix://");
    // The values are kept before the other run begins: they are the first run's.
    let keep = format!(
        "for key in $(redis-cli -s {socket} --scan | grep -v '^k' | head -40); do \
         redis-cli -s {socket} COPY $key kept-$key > /dev/null; done"
    );
    scratch.shell(&keep).wait().expect(0);
    let second = measuring(&scratch, &url, "--data reuse --duration 5s", "second");
    let back = format!(
        "for round in 1 2 3; do for key in $(redis-cli -s {socket} --scan --pattern 'kept-*'); do \
         redis-cli -s {socket} COPY $key ${{key#kept-}} REPLACE > /dev/null; done; done"
    );
    scratch.shell(&back).wait().expect(0);
    let first = first.wait().expect(1);
    let run = scratch.result("first")["runs"][0].clone();
    assert!(reasons(&run).contains(&"other-run"), "{first:#?}");
    second.wait().expect(2);
}

/// In a new namespace loopback is down: agents could not come, and a minute of waiting would not change that.
#[test]
#[ignore = "needs mounts"]
fn agents_of_a_machine_whose_loopback_is_down_are_refused_at_once() {
    let scratch = Scratch::new();
    let (_server, url) = redis(&scratch);
    let ended = scratch.spawn(on_own_machine(&format!("{} --agents local:2", line(&url)))).wait();
    let ended = ended.expect(70);
    assert!(ended.err.contains("cannot reach 127.0.0.1:"), "{}", ended.err);
    assert!(ended.err.contains("ip link set lo up"), "{}", ended.err);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
}

/// A run that was killed leaves its record, which stands still from then on.
#[test]
#[ignore = "needs mounts"]
fn the_record_of_a_run_that_was_killed_excuses_no_value_that_comes_back() {
    let scratch = Scratch::new();
    let (_server, url) = redis(&scratch);
    let killed = measuring(&scratch, &url, "--duration 30s", "killed");
    killed.signal(9);
    drop(killed.wait());
    let redis_cli = |words: &[&str]| {
        let socket = url.trim_start_matches("redis+unix://");
        let mut command = Command::new("redis-cli");
        command.args(["-s", socket]).args(words);
        scratch.spawn(command).wait().out.trim().to_owned()
    };
    let beat = heartbeat_keys(&scratch, &url).trim().to_owned();
    assert!(beat.starts_with("kvdyno-heartbeat-"), "{beat}");
    let key = loop {
        let key = redis_cli(&["RANDOMKEY"]);
        if !key.starts_with("kvdyno") {
            break key;
        }
    };
    redis_cli(&["COPY", &key, "kept"]);
    redis_cli(&["COPY", &beat, "kept-beat"]);
    let after = measuring(&scratch, &url, "--data wipe --duration 5s", "after");
    // The server falls back to its earlier state: the record of the load, and the heartbeat with it.
    for _ in 0..30 {
        redis_cli(&["COPY", "kept", &key, "REPLACE"]);
        redis_cli(&["COPY", "kept-beat", &beat, "REPLACE"]);
    }
    let ended = after.wait().expect(1);
    let run = scratch.result("after")["runs"][0].clone();
    assert!(!reasons(&run).contains(&"other-run"), "{}", ended.out);
}
