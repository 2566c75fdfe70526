//! Agents that are lost while they carry no load: before a run begins, before a phase does, and while records are read
//! back. A relay before the server makes these moments long enough to be met.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use libc::{SIGCONT, SIGKILL, SIGSTOP};
use serde_json::Value;

use super::agents::{account_without, agent, conducting_by, phase, redis};
use super::relay::{Relay, Slowness};
use crate::support::suite::{self, Suite};
use crate::support::{Running, Scratch, kvdyno};

/// Mix of all phases that are not loads.
const MIX: &str = "get = 50, update = 50";

fn conducting(scratch: &Scratch, suite: Suite, relay: &Relay) -> (Running, [Running; 2]) {
    suite::write(&scratch.path("suite.toml"), suite);
    let line = format!(
        "run suite.toml --store redis://{} --agents 2 --listen 127.0.0.1:0 --quiet --out r",
        relay.address
    );
    let (conductor, address, token) = conducting_by(scratch, &line);
    let agents = [0, 1].map(|_| agent(scratch, &address, &token));
    (conductor, agents)
}

/// Waits until a process that still runs has printed these words.
fn wait_for_words(running: &mut Running, words: &str) {
    let begun = Instant::now();
    while !running.said().contains(words) {
        assert!(running.is_running(), "{}", running.said());
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", running.said());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until agents connect for the phase `second`, whose door the relay keeps shut. Other connections come while
/// `first` goes on, too.
pub fn until_agents_connect_for_the_second(
    conductor: &mut Running,
    scratch: &Scratch,
    relay: &Relay,
) {
    let first_is_over = || {
        let text = std::fs::read_to_string(scratch.path("r/result.json")).unwrap_or_default();
        let result: Value = serde_json::from_str(&text).unwrap_or_default();
        let phases = result["runs"][0]["phases"].as_array().cloned().unwrap_or_default();
        phases.iter().any(|phase| phase["name"] == "first" && phase["stopped"] == "duration")
    };
    conductor.until("agents that connect for the second", || {
        first_is_over() && relay.door.is_waited_at()
    });
}

/// Returns the name of the one agent that the verdict says was lost.
fn name_of_lost(result: &Value) -> Value {
    let run = &result["runs"][0];
    assert_eq!(run["verdict"]["level"], "invalid", "{}", run["verdict"]);
    let reasons = run["verdict"]["reasons"].as_array().expect("reasons");
    let lost: Vec<&str> = reasons
        .iter()
        .filter(|reason| reason["name"] == "agent-lost")
        .filter_map(|reason| reason["text"].as_str())
        .collect();
    assert_eq!(lost.len(), 1, "it is told once: {reasons:?}");
    assert!(lost[0].contains("1 of 2 agents lost: agent-"), "{lost:?}");
    let name = lost[0].split("lost: ").nth(1).and_then(|rest| rest.split(' ').next());
    name.expect("its name").into()
}

#[test]
fn an_agent_that_goes_before_all_have_come_is_replaced() {
    let (server, scratch) = (redis(), Scratch::new());
    let line = format!(
        "run --agents 2 --listen 127.0.0.1:0 --store {} --records 2k --mix get=50,update=50 --requests 4k --quiet --out r",
        server.url()
    );
    let (mut conductor, address, token) = conducting_by(&scratch, &line);
    let first = agent(&scratch, &address, &token);
    wait_for_words(&mut conductor, "1 of 2");
    first.signal(SIGKILL);
    drop(first.wait());
    wait_for_words(&mut conductor, "has left");
    let agents = [0, 1].map(|_| agent(&scratch, &address, &token));
    let ended = conductor.wait();
    assert!([0, 2].contains(&ended.code()), "{ended:?}");
    assert!(ended.err.contains("has come: 2 of 2"), "{}", ended.err);
    agents.into_iter().for_each(|agent| {
        agent.wait().expect(0);
    });
    assert_eq!(scratch.result("r")["runs"][0]["status"]["state"], "complete");
}

/// No agent comes to one conductor, and one agent comes before its conductor.
#[test]
fn both_wait_for_each_other_for_as_long_as_they_are_told() {
    let (server, scratch) = (redis(), Scratch::new());
    let load = format!("run --store {} --records 500 --clients 2 --quiet", server.url());
    let alone = format!("{load} --agents 1 --listen 127.0.0.1:0 --wait 300ms --out r");
    let ended = scratch.kvdyno(&alone).expect(69);
    assert!(ended.err.contains("0 of 1 agents have come"), "{}", ended.err);
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    let token = "0123456789abcdef0123456789abcdef";
    let mut early = agent(&scratch, &free.to_string(), token);
    wait_for_words(&mut early, "trying again");
    let mut command = kvdyno(&format!("{load} --agents 1 --listen {free} --out s"));
    command.env("KVDYNO_TOKEN", token);
    let ended = scratch.spawn(command).wait();
    assert!([0, 2].contains(&ended.code()), "{ended:?}");
    early.wait().expect(0);
}

/// One agent stands still when all have joined, so that it does not reach the store: nothing is measured, and a
/// result says so.
#[test]
fn an_agent_that_is_lost_before_the_first_phase_leaves_a_result() {
    let (server, scratch) = (redis(), Scratch::new());
    let line = format!(
        "run --agents 2 --listen 127.0.0.1:0 --store {} --records 2k --quiet --out r",
        server.url()
    );
    let (mut conductor, address, token) = conducting_by(&scratch, &line);
    let first = agent(&scratch, &address, &token);
    wait_for_words(&mut conductor, "1 of 2");
    first.signal(SIGSTOP);
    let other = agent(&scratch, &address, &token);
    let ended = conductor.wait().expect(2);
    assert!(ended.err.contains("lost agent-1"), "{}", ended.err);
    let result = scratch.result("r");
    assert_eq!(name_of_lost(&result), "agent-1");
    assert_eq!(result["runs"][0]["phases"], serde_json::json!([]));
    other.wait().expect(0);
    first.signal(SIGCONT);
    first.wait().expect(69);
}

/// While the agents connect for a phase one of them is killed: the phase does not begin, and the other, which is still
/// connecting, reads back what it wrote before.
#[test]
fn an_agent_that_is_lost_before_a_phase_begins_leaves_an_account_of_those_before() {
    let (server, scratch) = (redis(), Scratch::new());
    let relay = Relay::before(&server.address().to_string(), Slowness::default());
    let first = Suite::of(2_000).set("clients", 4).load().phase("first", MIX);
    let first = first.set("rate", "1k/s").set("duration", "3s");
    let suite = first.phase("second", MIX).set("requests", 1_000).set("read-back", true);
    let (mut conductor, [one, other]) = conducting(&scratch, suite, &relay);
    let log = scratch.path("r/timeline.csv");
    conductor.until("intervals of the first phase", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains(",first,")
    });
    relay.door.shut();
    until_agents_connect_for_the_second(&mut conductor, &scratch, &relay);
    one.signal(SIGKILL);
    // An agent that is connecting goes on to do so when the conductor has called the phase off.
    std::thread::sleep(Duration::from_secs(1));
    relay.door.open();
    let ended = conductor.wait().expect(2);
    assert!(ended.err.contains("lost agent-"), "{}", ended.err);
    other.wait().expect(0);

    let result = scratch.result("r");
    let name = name_of_lost(&result);
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    let names: Vec<&Value> = phases.iter().map(|phase| &phase["name"]).collect();
    assert_eq!(names, ["load", "first", "second:read-back"]);
    let first = phase(&result, "first");
    assert_eq!((&first["stopped"], &first["offered"]), (&"duration".into(), &3_000.into()));
    let writes = account_without(&result, "second:read-back", &[&name]);
    assert!(writes["read"].as_u64() > Some(900), "the other's are about half: {writes}");
    let agents = phase(&result, "second:read-back")["agents"].as_array().expect("agents");
    let lost: Vec<&Value> = agents.iter().filter(|agent| !agent["lost"].is_null()).collect();
    assert!(lost.len() == 1 && lost[0]["operations"] == 0, "{agents:?}");
}

/// The relay delays each answer, so that reading back takes a while.
#[test]
fn an_agent_that_is_lost_while_records_are_read_back_leaves_its_own_unknown() {
    let (server, scratch) = (redis(), Scratch::new());
    let slow = Slowness { back: Duration::from_millis(4), ..Slowness::default() };
    let relay = Relay::before(&server.address().to_string(), slow);
    let suite = Suite::of(2_000).set("clients", 2).load().phase("mix", MIX);
    let suite = suite.set("requests", 300).set("read-back", true);
    let (mut conductor, [one, other]) = conducting(&scratch, suite, &relay);
    let log = scratch.path("r/timeline.csv");
    conductor.until("intervals of the reading", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains(",mix:read-back,")
    });
    one.signal(SIGKILL);
    let ended = conductor.wait().expect(2);
    assert!(ended.err.contains("lost agent-"), "{}", ended.err);
    other.wait().expect(0);

    let result = scratch.result("r");
    let failed = result["runs"][0]["status"].to_string();
    assert!(failed.contains("phase mix:read-back lost an agent; the run ends there"), "{failed}");
    let name = name_of_lost(&result);
    let mix = phase(&result, "mix");
    assert_eq!((&mix["stopped"], &mix["started_operations"]), (&"requests".into(), &300.into()));
    let writes = account_without(&result, "mix", &[&name]);
    let reading = phase(&result, "mix:read-back");
    assert_eq!(reading["tally"]["records"], writes["read"], "the other read all of its own");
    let rows = reading["series"].as_array().expect("series").iter();
    let told: u64 = rows.filter_map(|series| series["records"].as_u64()).sum();
    assert!(writes["read"].as_u64() < Some(told), "{told} were told of: the lost one's, too");
}
