//! Testbeds by the command: they come up, they are measured, and nothing of them is left, however kvdyno or their
//! keeper ends.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kvdyno_core::workload::fault::NodeFault;
use kvdyno_testbed::Step;
use kvdyno_testbed::keeper::{Keeper, Watching};
use serde_json::Value;

use crate::support::{Ended, KVDYNO, Running, Scratch, kvdyno};

/// Longest time for anything here on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A place of its own for testbeds' folders, so that no other testbeds are seen.
pub struct Place {
    pub scratch: Scratch,
}

impl Place {
    pub fn new() -> Place {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.path("tmp")).expect("a folder");
        Place { scratch }
    }

    pub fn start(&self, words: &str) -> Running {
        let mut command = kvdyno(words);
        command.env("TMPDIR", self.scratch.path("tmp"));
        self.scratch.spawn(command)
    }

    pub fn kvdyno(&self, words: &str) -> Ended {
        self.start(words).wait()
    }

    /// Returns the folders of testbeds that are there.
    pub fn folders(&self) -> Vec<PathBuf> {
        let roots = std::fs::read_dir(self.scratch.path("tmp")).expect("the folder");
        let inside = roots.flatten().flat_map(|root| std::fs::read_dir(root.path()).into_iter());
        let paths = inside.flatten().flatten().map(|entry| entry.path());
        paths.filter(|path| path.is_dir() && !path.ends_with("addresses")).collect()
    }

    /// Writes `mine.toml`, a deployment of one server of this machine, with more `commands`. Returns the server's port.
    pub fn describe(&self, commands: &str) -> u16 {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let file = format!(
            r#"
            url = "redis://127.0.0.1:{port}"
            [configuration]
            appendonly = "no"
            [commands]
            start = "redis-server --bind $HOST --port $PORT --dir $FOLDER --save '' --daemonize yes"
            destroy = "redis-cli -h $HOST -p $PORT shutdown nosave"
            {commands}
            [[node]]
            name = "mine"
            address = "127.0.0.1:{port}"
            "#
        );
        self.scratch.write("mine.toml", &file);
        port
    }
}

/// Returns the process numbers in the output of `testbed up` and `testbed list`.
pub fn pids(said: &str) -> Vec<u32> {
    let numbers = said.split("pid ").skip(1);
    numbers.filter_map(|rest| rest.split_whitespace().next()?.parse().ok()).collect()
}

pub fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

pub fn field(pid: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}

pub fn parent(pid: u32) -> u32 {
    field(pid, "PPid:").and_then(|pid| pid.parse().ok()).expect("a parent")
}

pub fn kill9(pid: u32) {
    // SAFETY: kill has no memory effects; the number is that of a process of this test.
    assert_eq!(unsafe { libc::kill(pid as i32, libc::SIGKILL) }, 0);
}

/// Asserts that the output holds all of `words`.
pub fn assert_output(ended: &Ended, words: &[&str]) {
    for word in words {
        assert!(ended.out.contains(word), "`{word}` is not in:\n{}", ended.out);
    }
}

pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a testbed in the foreground. Returns it with the process numbers of its servers.
fn up(place: &Place, words: &str) -> (Running, Vec<u32>) {
    let mut running = place.start(&format!("testbed up {words}"));
    let begin = Instant::now();
    while !running.said().contains("until Ctrl-C") {
        assert!(running.is_running() && begin.elapsed() < PATIENCE, "{}", running.said());
        std::thread::sleep(Duration::from_millis(10));
    }
    let said = running.said();
    let pids = pids(&said);
    assert!(!pids.is_empty() && pids.iter().all(|pid| is_there(*pid)), "{said}");
    assert_eq!(place.folders().len(), 1);
    (running, pids)
}

#[test]
fn nothing_is_left_when_kvdyno_is_killed() {
    let place = Place::new();
    let (running, pids) = up(&place, "redis-sharded:2?persistence=aof-everysec");
    running.signal(libc::SIGKILL);
    eventually("the servers end", || pids.iter().all(|pid| !is_there(*pid)));
    eventually("the folder goes", || place.folders().is_empty());
    let (running, pids) = up(&place, "redis");
    running.signal(libc::SIGINT);
    running.wait().expect(0);
    assert!(!is_there(pids[0]) && place.folders().is_empty());
}

#[test]
fn nothing_is_left_when_the_keeper_is_killed() {
    let place = Place::new();
    // The keeper itself, and the process that waits for it.
    for above in [1, 2] {
        let (running, pids) = up(&place, "redis-sharded:2");
        kill9((0..above).fold(pids[0], |pid, _| parent(pid)));
        running.wait().expect(70).expect_words(&["its keeper process ended"]);
        eventually("the servers end", || pids.iter().all(|pid| !is_there(*pid)));
        // No process was left to remove the folder: the next command does.
        assert_output(&place.kvdyno("testbed list").expect(0), &["No testbed is up"]);
        assert!(place.folders().is_empty());
    }
}

#[test]
fn a_detached_testbed_stays_until_it_is_taken_down() {
    let place = Place::new();
    let ended = place.kvdyno("testbed up redis-sharded:2?pin=servers --detach").expect(0);
    let pids = pids(&ended.out);
    assert_eq!(pids.len(), 2);
    let allowed = |pid: u32| field(pid, "Cpus_allowed_list:").expect("its processors");
    assert_eq!(allowed(pids[0]), allowed(pids[1]));
    assert_ne!(allowed(pids[0]), allowed(std::process::id()), "servers have a half for themselves");
    place.kvdyno("testbed up memcached --detach").expect(0);
    let listed = place.kvdyno("testbed list").expect(0);
    assert_output(&listed, &["redis-sharded:2?pin=servers", "memcached-1", "peer"]);
    place.kvdyno("testbed down").expect_line(64, &["several testbeds", "--all"]);
    place.kvdyno("testbed down reddis").expect_line(64, &["no testbed reddis is up"]);
    assert_output(&place.kvdyno("testbed down memcached").expect(0), &["is down"]);
    assert!(pids.iter().all(|pid| is_there(*pid)));
    place.kvdyno("testbed down").expect(0);
    assert!(pids.iter().all(|pid| !is_there(*pid)) && place.folders().is_empty());
}

/// Its starter is gone, and nothing interrupts what takes its time.
#[test]
fn a_detached_testbed_does_what_an_attached_one_does() {
    let place = Place::new();
    for (testbed, faults) in [
        ("redis-sentinel:3", &["restart redis-1"][..]),
        ("redis-cluster:3?replicas=0", &["add", "restart redis-4"]),
        ("etcd:3", &["restart etcd-1", "add", "kill etcd-2", "restart etcd-2"]),
    ] {
        place.kvdyno(&format!("testbed up {testbed} --detach")).expect(0);
        for fault in faults {
            place.kvdyno(&format!("testbed fault {fault}")).expect(0);
        }
        place.kvdyno("testbed down").expect(0);
        assert!(place.folders().is_empty());
    }
}

#[test]
fn a_testbed_in_a_folder_of_the_users_is_listed_harmed_and_ended_as_any() {
    let place = Place::new();
    let folder = place.scratch.path("kept");
    let up = format!("testbed up redis?folder={} --detach", folder.display());
    let servers = pids(&place.kvdyno(&up).expect(0).out);
    assert_output(&place.kvdyno("testbed list").expect(0), &["redis-1", "folder="]);
    place.kvdyno("testbed fault restart redis-1").expect(0);
    assert!(!is_there(servers[0]));
    assert_output(&place.kvdyno("testbed down").expect(0), &["is down"]);
    assert!(place.folders().is_empty() && folder.join("redis-1").exists());
}

/// Watches in silence, as a run that injects faults does, over the pipe.
struct Quiet;

impl Watching for Quiet {
    fn step(&mut self, _: &Step) {}

    fn interrupted(&self) -> bool {
        false
    }
}

#[test]
fn a_keeper_takes_orders_over_its_pipe() {
    let program = (Path::new(KVDYNO), &["testbed", "keep"][..]);
    let mut keeper = Keeper::start(program, "redis-sharded:2", false, &mut Quiet)
        .unwrap_or_else(|error| panic!("{error}"));
    let pids: Vec<u32> = keeper.description().nodes.iter().filter_map(|node| node.pid).collect();
    let running = |keeper: &mut Keeper| -> Vec<bool> {
        keeper.nodes().expect("the nodes").iter().map(|node| node.running).collect()
    };
    keeper.act("redis-1", NodeFault::Kill).expect("it is killed");
    assert_eq!(running(&mut keeper), [false, true]);
    assert!(!is_there(pids[0]));
    keeper.act("redis-1", NodeFault::Restart).expect("it is back");
    assert_eq!(running(&mut keeper), [true, true]);
    let error = keeper.act("redis-3", NodeFault::Kill).expect_err("there is none");
    assert!(error.is_usage() && error.to_string().contains("there is no node redis-3"), "{error}");
    assert_eq!(keeper.add_node().expect("it grows"), "redis-3");
    assert_eq!(running(&mut keeper), [true; 3]);
    // A paused server is no obstacle to the end of all.
    keeper.act("redis-2", NodeFault::Pause).expect("it stands still");
    drop(keeper);
    assert!(!is_there(pids[1]));
    let error = Keeper::start(program, "reddis", false, &mut Quiet).expect_err("no such kind");
    assert!(error.is_usage() && error.to_string().contains("did you mean `redis`?"), "{error}");
}

#[test]
fn faults_are_done_to_a_testbed_that_is_up() {
    let place = Place::new();
    place.kvdyno("testbed fault kill redis-1").expect_line(64, &["no testbed is up"]);
    let (running, pids) = up(&place, "redis");
    place
        .kvdyno("testbed fault kil redis-1")
        .expect_line(64, &["a similar subcommand exists: 'kill'"]);
    place.kvdyno("testbed fault kill").expect_line(64, &["name a node: redis-1"]);
    place.kvdyno("testbed fault kill redis-2").expect_line(64, &["did you mean `redis-1`?"]);
    place.kvdyno("testbed fault add").expect_line(64, &["cannot take another node"]);
    for (words, said) in [
        ("kill redis-1 --loss 10%", "unexpected argument '--loss' "),
        ("kill redis-1 --loss 10%", "; it is for `lossy`"),
        ("resume redis-1 --from nodes", "unexpected argument '--from' "),
        ("resume redis-1 --from nodes", "; it is for `partition`"),
        ("lossy redis-1", "the fault `lossy` needs an amount; give --loss 10%"),
        ("slow redis-1", "give --bandwidth 1MB/s, --delay 20ms, or both"),
        ("partition --sides redis-1", "write two sides or more, a node first"),
        ("partition redis-1 --sides redis-1|clients", "`sides` names the nodes already"),
        ("partition --sides redis-2|clients", "there is no node redis-2"),
        ("add redis-1", "a node that is added gets its name by itself"),
    ] {
        place.kvdyno(&format!("testbed fault {words}")).expect_line(64, &[said]);
    }
    let help = place.kvdyno("testbed fault --help").expect(0).out;
    assert!(
        help.contains("Kill the node with SIGKILL") && !help.contains("Arguments that"),
        "{help}"
    );
    let help = place.kvdyno("testbed fault slow --help").expect(0).out;
    assert!(help.contains("--delay") && !help.contains("--loss"), "{help}");
    place.kvdyno("testbed fault pause redis-1").expect(0);
    eventually("it stands still", || field(pids[0], "State:").is_some_and(|s| s.starts_with('T')));
    assert_output(&place.kvdyno("testbed fault kill redis-1").expect(0), &["not running"]);
    assert!(!is_there(pids[0]));
    assert_output(&place.kvdyno("testbed fault restart redis-1").expect(0), &["pid "]);
    place.kvdyno("testbed down").expect(0);
    running.wait().expect(0);
}

#[test]
fn what_is_wrong_or_missing_is_one_line() {
    let place = Place::new();
    let refused = |words: &str, expected: &[&str]| {
        place.kvdyno(words).expect_line(64, expected);
        assert!(place.folders().is_empty());
    };
    refused("testbed up reddis", &["did you mean `redis`?"]);
    refused("testbed up redis?persistance=none", &["did you mean `persistence`?"]);
    refused("run quick --testbed redis:3", &["always has 1"]);
    refused("testbed install memcache", &["did you mean `memcached`?"]);
    let mut command = kvdyno("run quick --testbed redis");
    command.env("PATH", place.scratch.path("tmp"));
    let line = "redis-server is not installed: install it with `kvdyno testbed install redis`";
    place.scratch.spawn(command).wait().expect_line(69, &[line]);
    assert_output(&place.kvdyno("testbed install redis").expect(0), &["redis is installed"]);
    assert_output(
        &place.kvdyno("testbed kinds").expect(0),
        &["redis-sharded", "?persistence=none|aof-"],
    );
}

#[test]
fn a_run_sets_up_discloses_and_takes_down() {
    let place = Place::new();
    let ended = place.kvdyno(
        "run --records 500 --duration 2s --mix get=50,update=50 --out r --store map: --testbed \
         redis?persistence=aof-always&rewrites=held-off --testbed memcached?memory=32MiB&pin=servers",
    );
    let ended = ended.expect_done();
    assert!(place.folders().is_empty());
    assert_output(
        &ended,
        &["testbed redis?persistence=aof-always", "1 process, ", "4 settings changed"],
    );
    let result = place.scratch.result("r");
    let runs = result["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[0]["testbed"], Value::Null);
    let redis = &runs[1]["testbed"];
    assert_eq!(redis["kind"], "redis");
    let holds = |list: &Value, name: &str, value: &str| {
        let pairs = list.as_array().expect("pairs");
        pairs.iter().any(|pair| pair[0] == name && pair[1] == value)
    };
    assert!(holds(&redis["configuration"], "appendfsync", "always"), "{redis}");
    assert!(holds(&redis["changed"], "auto-aof-rewrite-percentage", "0"), "{redis}");
    assert!(redis["ready_after_ns"].as_u64() > redis["steps"][0]["took_ns"].as_u64());
    assert_eq!(runs[1]["store"]["durability"]["level"], "power-loss");
    let phases = runs[1]["phases"].as_array().expect("phases");
    let measured = phases.iter().find(|phase| phase["name"] == "run").expect("the phase");
    let used = &measured["resources"];
    assert!(used["servers"][0]["used"]["written_bytes"].as_u64() > Some(0), "{used}");
    let memcached = &runs[2]["testbed"];
    assert_ne!(memcached["server_processors"], memcached["client_processors"]);
    let rows = std::fs::read_to_string(place.scratch.path("r/resources.csv")).expect("the file");
    assert!(rows.contains(",redis-1,") && rows.contains(",memcached-1,"), "{rows}");
    let page = std::fs::read_to_string(place.scratch.path("r/report.html")).expect("the report");
    assert!(page.contains("Testbed redis?persistence=aof-always") && page.contains("redis-1"));
    // The run can be done again: the testbeds are set up anew.
    place.kvdyno("rerun r --out again").expect_done();
    let again = place.scratch.result("again");
    assert_eq!(again["runs"][1]["testbed"]["request"], redis["request"]);
    assert!(place.folders().is_empty());
}

/// The command lines drive a process of this machine, as kvdyno drives a deployment elsewhere.
#[test]
fn a_deployment_described_by_a_file_is_run_and_destroyed() {
    let place = Place::new();
    let port = place.describe("");
    let ended = place.kvdyno("run --records 200 --requests 1000 --out r --testbed mine.toml");
    ended.expect_done();
    let testbed = &place.scratch.result("r")["runs"][0]["testbed"];
    assert_eq!(testbed["request"], "mine.toml");
    assert_eq!(testbed["nodes"][0]["name"], "mine");
    assert_eq!(testbed["configuration"][0][0], "appendonly");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(place.folders().is_empty());
    let file = std::fs::read_to_string(place.scratch.path("mine.toml")).expect("the description");
    place.scratch.write("wrong.toml", &file.replace("destroy", "destory"));
    let refused = place.kvdyno("run --records 200 --testbed wrong.toml");
    refused.expect_line(64, &["wrong.toml", "did you mean `destroy`?"]);
}

#[test]
fn ctrl_c_in_a_run_takes_the_testbed_down() {
    let place = Place::new();
    let mut running =
        place.start("run --records 500 --duration 600s --out r --testbed redis --quiet");
    let timeline = place.scratch.path("r/timeline.csv");
    let rows = || std::fs::read_to_string(&timeline).unwrap_or_default().matches("redis").count();
    running.until("load", || rows() > 2);
    assert_eq!(place.folders().len(), 1);
    running.signal(libc::SIGINT);
    running.wait().expect(130);
    assert!(place.folders().is_empty());
}

/// Starts a run of 4 s on two servers, one of which is to be ended. Returns the numbers of their processes.
fn two_servers(place: &Place) -> (Running, Vec<u32>) {
    let mut running = place.start(
        "run --records 500 --duration 4s --mix get=100 --set run.warmup=false --events --out r --quiet \
         --testbed redis-sharded:2",
    );
    let timeline = place.scratch.path("r/timeline.csv");
    let rows = || std::fs::read_to_string(&timeline).unwrap_or_default().lines().count();
    running.until("load", || rows() > 3);
    let listed = pids(&place.kvdyno("testbed list").expect(0).out);
    (running, listed)
}

/// Returns the reasons of this name of all phases of a result.
fn reasons(result: &Value, name: &str) -> Vec<Value> {
    let all = result["runs"][0]["verdict"]["reasons"].as_array().expect("reasons");
    all.iter().filter(|reason| reason["name"] == name).cloned().collect()
}

#[test]
fn a_server_that_ends_by_no_order_is_told_with_time_status_and_log() {
    let place = Place::new();
    let (running, servers) = two_servers(&place);
    kill9(servers[1]);
    let ended = running.wait();
    assert_ne!(ended.status.code(), Some(0), "{ended:?}");
    let result = place.scratch.result("r");
    let told = reasons(&result, "server-ended");
    let text = told.first().map_or("", |reason| reason["text"].as_str().expect("a text"));
    for part in ["redis-2 ended", "s after the phase began", "SIGKILL", "Ready to accept"] {
        assert!(text.contains(part), "{part}: {result:#}");
    }
    let events = std::fs::read_to_string(place.scratch.path("r/events.jsonl")).expect("the file");
    let told = |line: &&str| line.contains("end of the process of redis-2, by no order");
    assert_eq!(events.lines().filter(told).count(), 1, "the page shows it");
}

#[test]
fn a_testbed_that_is_taken_down_under_a_run_is_told_as_that() {
    let place = Place::new();
    let (mut running, servers) = two_servers(&place);
    assert_output(&place.kvdyno("testbed down --all").expect(0), &["is left", "--force"]);
    assert!(is_there(servers[0]) && running.is_running());
    assert_output(&place.kvdyno("testbed down --all --force").expect(0), &["is down"]);
    let ended = running.wait();
    assert_ne!(ended.status.code(), Some(0), "{ended:?}");
    let result = place.scratch.result("r");
    assert!(!reasons(&result, "testbed-gone").is_empty(), "{result:#}");
    assert!(reasons(&result, "server-ended").is_empty(), "{result:#}");
}
