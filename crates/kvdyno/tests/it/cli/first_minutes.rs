//! The pages of somebody's first minutes (docs/first) do what they show: every command in them is run as printed, against
//! servers of this test's own in place of those at the usual ports.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::one_server::{RedisServer, RedisSettings};
use crate::support::{Ended, Scratch};

/// A measurement that is invalid tells of this machine and build, not of the command.
const BEFORE: &str = "set -eu\nkvdyno() { command kvdyno \"$@\" || [ $? = 2 ]; }\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    let path = root().join("docs/first").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // Most that a screen shows.
    assert!(text.lines().count() <= 55, "{name} is longer than a screen");
    text
}

/// The lines inside of the page's blocks of shell, one script.
fn commands(page: &str) -> String {
    let blocks = page.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

/// Runs a script in which the usual addresses are those of throwaway servers. The result is in the folder `scratch`.
fn run(scratch: &Scratch, script: &str) -> Ended {
    let server = || RedisServer::start(RedisSettings::default()).expect("redis-server starts");
    let mut script = script.to_owned();
    let mut servers = Vec::new();
    for usual in ["127.0.0.1:6379", "127.0.0.1:6380"] {
        if script.contains(usual) {
            let server = server();
            script = script.replace(usual, &server.address().to_string());
            servers.push(server);
        }
    }
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    let script = script.replace("127.0.0.1:7411", &free.to_string());
    symlink(root().join("crates"), scratch.path("crates")).expect("a link");
    let ended = scratch.shell(&format!("{BEFORE}{script}")).wait();
    assert_eq!(ended.code(), 0, "{script}\n{}{}", ended.out, ended.err);
    ended
}

/// The operations of a result that were judged, over all stores; no read was wrong.
fn judged(result: &Value) -> u64 {
    let phases = result["runs"].as_array().expect("runs").iter();
    let phases = phases.flat_map(|run| run["phases"].as_array().expect("phases"));
    let tallies: Vec<&Value> = phases.map(|phase| &phase["tally"]).collect();
    for tally in &tallies {
        assert!(tally["anomalies"].as_array().unwrap().iter().all(|n| n == 0), "{tally}");
    }
    tallies.iter().map(|tally| tally["judged"].as_u64().unwrap()).sum()
}

#[test]
fn i_have_a_server() {
    let scratch = Scratch::new();
    let ended = run(&scratch, &commands(&page("server.md")));
    assert!(ended.out.contains("verdict: ") && ended.out.contains("verified: "), "{}", ended.out);
    assert!(judged(&scratch.result("run")) > 1_000);
    let paced = scratch.result("paced");
    assert_eq!(paced["runs"][0]["phases"][1]["groups"][0]["rate"], 2_000.0, "{paced}");
    let report = fs::read_to_string(scratch.path("run/report.html")).expect("a report");
    assert!(report.contains("<html"));
}

#[test]
fn i_choose_a_store() {
    let scratch = Scratch::new();
    let ended = run(&scratch, &commands(&page("choose.md")));
    let stores = &scratch.result("both/trial-05")["runs"];
    let mut names = [0, 1].map(|at| stores[at]["store"]["name"].as_str().expect("two stores"));
    names.sort_unstable();
    assert_eq!(names, ["memcached", "redis"]);
    let said = ["faster", "slower", "no difference shown", "too noisy to tell"];
    assert!(said.iter().any(|words| ended.out.contains(words)), "{}", ended.out);
}

/// The scripts of the workflow's steps that measure; the others install and start what is measured.
#[test]
fn i_guard_a_release() {
    let page = page("guard.md");
    let workflow = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let lines = workflow.expect("a workflow").lines();
    let script: Vec<&str> = lines.filter(|line| line.trim().starts_with("kvdyno ")).collect();
    assert_eq!(script.len(), 3, "{script:?}");
    let scratch = Scratch::new();
    let ended = run(&scratch, &script.join("\n"));
    assert!(ended.out.contains("gate "), "{}", ended.out);
    assert!(fs::read_to_string(scratch.path("gate.xml")).expect("JUnit").contains("<testcase"));
    assert!(scratch.path("gate.md").exists());
}

#[test]
#[ignore = "needs mounts"]
fn i_rehearse_a_failure() {
    let scratch = Scratch::new();
    run(&scratch, &commands(&page("failure.md")));
    let result = scratch.result("run");
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    let done: Vec<&Value> = phases.iter().flat_map(|p| p["faults"].as_array().unwrap()).collect();
    for what in ["kill", "power"] {
        assert!(
            done.iter().any(|fault| fault["what"] == what && fault["error"].is_null()),
            "{what}"
        );
    }
    let claim = &result["runs"][0]["claims"][0];
    assert_eq!(claim["standing"], "confirmed", "{claim}");
}

#[test]
fn i_have_many_load_machines() {
    let scratch = Scratch::new();
    run(&scratch, &commands(&page("machines.md")));
    for folder in ["here", "there"] {
        let result = scratch.result(folder);
        let agents = &result["runs"][0]["phases"][1]["agents"];
        assert_eq!(agents.as_array().map(Vec::len), Some(2), "{folder}: {agents}");
        assert!(judged(&result) > 100);
    }
}

#[test]
fn i_wrote_an_engine() {
    let scratch = Scratch::new();
    let ended = run(&scratch, &commands(&page("engine.md")));
    assert!(judged(&scratch.result("run")) > 100);
    assert!(ended.out.contains("plugin"), "{}", ended.out);
    assert!(scratch.path("both/trials.json").exists());
}

/// docs/README.md leads to every page that is run here, and to nothing else.
#[test]
fn the_map_has_every_page() {
    let map = fs::read_to_string(root().join("docs/README.md")).expect("the map");
    let mut linked: Vec<&str> =
        map.split("](first/").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    linked.sort_unstable();
    let entries = fs::read_dir(root().join("docs/first")).expect("the pages");
    let mut pages: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    pages.sort_unstable();
    assert_eq!(linked, pages);
    assert_eq!(map.matches("](").count(), pages.len());
}
