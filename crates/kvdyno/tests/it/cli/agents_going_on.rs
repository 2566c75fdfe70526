//! Runs that go on without an agent that was lost (`--on-agent-lost go-on`), against a real Redis: which agents carry
//! what from then on, and how the lost agent's records are judged.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use libc::{SIGCONT, SIGKILL, SIGSTOP};
use serde_json::Value;

use super::agents::{agent, conducting_by, phase, redis};
use super::lost_agents::until_agents_connect_for_the_second;
use super::relay::{Relay, Slowness};
use crate::support::suite::{self, Suite};
use crate::support::{Ended, Running, Scratch};

/// Mix of all phases that are not loads.
const MIX: &str = "get = 50, update = 50";
/// Number of records of all runs.
const RECORDS: u64 = 2_000;

/// Starts a run of three agents over a suite, whose requests are given up soon.
fn three_agents(
    scratch: &Scratch,
    suite: Suite,
    server: &str,
    more: &str,
) -> (Running, Vec<Running>) {
    agents_of(3, scratch, suite, server, more)
}

fn agents_of(
    count: usize,
    scratch: &Scratch,
    suite: Suite,
    server: &str,
    more: &str,
) -> (Running, Vec<Running>) {
    suite::write(&scratch.path("suite.toml"), suite);
    let line = format!(
        "run suite.toml --store redis://{server}?timeout=1s --agents {count} --listen 127.0.0.1:0 --on-agent-lost go-on \
         --out r {more}"
    );
    let (conductor, address, token) = conducting_by(scratch, &line);
    let agents = (0..count).map(|_| agent(scratch, &address, &token)).collect();
    (conductor, agents)
}

/// Makes three phases: load, `first` and `second`, at a rate.
fn three_phases() -> Suite {
    let suite = Suite::of(RECORDS).set("clients", 6).load();
    let suite = suite.phase("first", MIX).set("rate", "900/s").set("duration", "4s");
    suite.phase("second", MIX).set("rate", "900/s").set("duration", "4s")
}

/// Waits until the run has told of intervals of this phase.
fn wait_for(scratch: &Scratch, conductor: &mut Running, name: &str, intervals: usize) {
    let (log, of_phase) = (scratch.path("r/timeline.csv"), format!(",{name},"));
    conductor.until(&format!("intervals of {name}"), || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines().filter(|line| line.contains(&of_phase)).count() >= intervals
    });
}

fn kill(agents: &mut Vec<Running>, index: usize) {
    agents.remove(index).signal(SIGKILL);
}

fn ended_well(agents: Vec<Running>) {
    for agent in agents {
        agent.wait().expect(0);
    }
}

fn names_of_phases(result: &Value) -> Vec<&str> {
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    phases.iter().filter_map(|phase| phase["name"].as_str()).collect()
}

fn names_of_agents(of_phase: &Value) -> Vec<&str> {
    let agents = of_phase["agents"].as_array().expect("agents");
    agents.iter().filter_map(|agent| agent["name"].as_str()).collect()
}

fn sum(of_phase: &Value, key: &str) -> u64 {
    let agents = of_phase["agents"].as_array().expect("agents");
    agents.iter().filter_map(|agent| agent[key].as_u64()).sum()
}

/// Asserts that the verdict says in one reason, of this phase, that one of `of` agents was lost. Returns its name.
fn lost_in<'a>(result: &'a Value, name: &str, of: u32) -> &'a str {
    let run = &result["runs"][0];
    assert_eq!(run["verdict"]["level"], "invalid", "{}", run["verdict"]);
    assert_eq!(run["status"]["state"], "complete", "{}", run["status"]);
    let reasons = run["verdict"]["reasons"].as_array().expect("reasons");
    let lost: Vec<&Value> =
        reasons.iter().filter(|reason| reason["name"] == "agent-lost").collect();
    assert_eq!(lost.len(), 1, "{reasons:?}");
    assert!(lost[0].to_string().contains(&format!("\"{name}\"")), "{}", lost[0]);
    let text = lost[0]["text"].as_str().expect("a text");
    let who = text.split(&format!("1 of {of} agents lost: ")).nth(1);
    who.and_then(|who| who.split(' ').next()).unwrap_or_else(|| panic!("{text}"))
}

/// Asserts that nothing of the whole run was called wrong.
fn nothing_is_wrong(result: &Value) {
    for phase in result["runs"][0]["phases"].as_array().expect("phases") {
        let tally = &phase["tally"];
        let wrong = tally["anomalies"].as_array().expect("anomalies").iter();
        assert_eq!(wrong.filter_map(Value::as_u64).sum::<u64>(), 0, "{tally}");
        assert!(tally["other_run"].as_u64().unwrap_or(0) == 0, "{tally}");
    }
}

/// Returns the lines of the table of agents of this phase.
fn table<'a>(ended: &'a Ended, name: &str) -> Vec<&'a str> {
    let heading = format!("Agents of {name} ");
    let lines = ended.out.lines().skip_while(move |line| !line.contains(&heading));
    lines.skip(1).take_while(|line| line.starts_with("agent-")).collect()
}

#[test]
fn the_others_carry_the_next_phase_and_judge_the_records_of_the_lost_one_as_data_that_was_there() {
    let (server, scratch) = (redis(), Scratch::new());
    let suite = three_phases().set("read-back", true);
    let address = server.address().to_string();
    let (mut conductor, mut agents) = three_agents(&scratch, suite, &address, "");
    wait_for(&scratch, &mut conductor, "first", 1);
    kill(&mut agents, 1);
    let ended = conductor.wait().expect(2);
    ended_well(agents);
    assert!(ended.err.contains("2 agents take over in "), "{}", ended.err);

    let result = scratch.result("r");
    assert_eq!(names_of_phases(&result), ["load", "first", "second", "second:read-back"]);
    let lost = lost_in(&result, "first", 3);
    nothing_is_wrong(&result);
    let first = phase(&result, "first");
    assert_eq!((&first["stopped"], names_of_agents(first).len()), (&"agent-lost".into(), 3));
    let second = phase(&result, "second");
    assert_eq!((&second["stopped"], &second["offered"]), (&"duration".into(), &3_600.into()));
    let carried = names_of_agents(second);
    assert!(carried.len() == 2 && !carried.contains(&lost), "{carried:?} without {lost}");
    assert_eq!(sum(second, "clients"), 6, "clients are dealt anew");
    for agent in second["agents"].as_array().expect("agents") {
        let share = agent["share"].as_f64().expect("a share");
        assert!((0.4..0.6).contains(&share), "{share}");
    }
    let (judged, by_stamp) = (&second["tally"]["judged"], &second["tally"]["stamp_only"]);
    assert!(by_stamp.as_u64() > Some(100), "the lost one's are known by their stamp: {by_stamp}");
    assert!(judged.as_u64() > Some(1_000), "the others know their own: {judged}");

    // All are read back; nobody knows which writes were acknowledged to the lost agent.
    assert_eq!(phase(&result, "second:read-back")["tally"]["records"], RECORDS);
    let writes = &second["writes"];
    assert_eq!((&writes["lost"], &writes["read"]), (&0.into(), &RECORDS.into()), "{writes}");
    assert_eq!(writes["of_lost"]["agents"], serde_json::json!([lost]), "{writes}");
    assert_eq!(writes["unknown"], writes["of_lost"]["records"], "{writes}");
    assert!(writes["unknown"].as_u64().is_some_and(|of| of.abs_diff(RECORDS / 3) < 3), "{writes}");

    let (before, after) = (table(&ended, "first"), table(&ended, "second"));
    assert!(before.len() == 3 && before.iter().any(|line| line.contains(" LOST")), "{before:?}");
    assert!(after.len() == 2 && !after.iter().any(|line| line.contains(lost)), "{after:?}");
}

/// The other agents know what they have written themselves: a store that loses it is found out.
#[test]
fn what_the_others_wrote_is_judged_as_ever() {
    let (server, scratch) = (redis(), Scratch::new());
    let address = server.address().to_string();
    let (mut conductor, mut agents) = three_agents(&scratch, three_phases(), &address, "--quiet");
    wait_for(&scratch, &mut conductor, "first", 1);
    kill(&mut agents, 0);
    wait_for(&scratch, &mut conductor, "second", 2);
    let mut line = TcpStream::connect(server.address()).expect("the server");
    line.write_all(b"FLUSHALL\r\n").expect("a command is sent");
    line.read_exact(&mut [0; 5]).expect("an answer");
    conductor.wait().expect(1);
    ended_well(agents);
    let result = scratch.result("r");
    let tally = &phase(&result, "second")["tally"];
    let wrong = tally["anomalies"].as_array().expect("anomalies").iter();
    assert!(wrong.filter_map(Value::as_u64).sum::<u64>() > 100, "{tally}");
}

/// The load of the others is cut short, so that they load all records once more.
#[test]
fn a_load_that_loses_an_agent_is_begun_again_by_the_others() {
    let (server, scratch) = (redis(), Scratch::new());
    let slow = Slowness { back: Duration::from_millis(10), ..Slowness::default() };
    let relay = Relay::before(&server.address().to_string(), slow);
    let suite = Suite::of(RECORDS).set("clients", 6).load().set("batch", 1);
    let suite = suite.phase("mix", MIX).set("requests", 600).set("read-back", true);
    let (mut conductor, mut agents) = three_agents(&scratch, suite, &relay.address, "--quiet");
    wait_for(&scratch, &mut conductor, "load", 1);
    kill(&mut agents, 2);
    conductor.wait().expect(2);
    ended_well(agents);

    let result = scratch.result("r");
    assert_eq!(names_of_phases(&result), ["load", "load:again", "mix", "mix:read-back"]);
    lost_in(&result, "load", 3);
    nothing_is_wrong(&result);
    assert_eq!(phase(&result, "load")["stopped"], "agent-lost");
    let again = phase(&result, "load:again");
    assert_eq!((&again["stopped"], &again["records"]), (&"requests".into(), &RECORDS.into()));
    assert_eq!(names_of_agents(again).len(), 2);
    let mix = phase(&result, "mix");
    assert_eq!(mix["started_operations"], 600);
    assert_eq!(mix["tally"]["legal_misses"], 0, "all records are there");
    assert_eq!(
        phase(&result, "mix:read-back")["tally"]["judged"].as_u64().map(|n| n > 1_900),
        Some(true)
    );
    let writes = &mix["writes"];
    assert_eq!((&writes["lost"], &writes["exact"]), (&0.into(), &false.into()), "{writes}");
}

#[test]
fn an_agent_that_is_lost_in_a_warm_up_leaves_the_measured_phase_to_the_others() {
    let (server, scratch) = (redis(), Scratch::new());
    let suite = Suite::of(RECORDS).set("clients", 6).load();
    let suite = suite.phase("warm", MIX).set("warmup", true).set("duration", "20s");
    let suite = suite.set("rate", "600/s").phase("run", MIX).set("requests", 900);
    let address = server.address().to_string();
    let (mut conductor, mut agents) = three_agents(&scratch, suite, &address, "--quiet");
    wait_for(&scratch, &mut conductor, "warm", 1);
    kill(&mut agents, 0);
    conductor.wait().expect(2);
    ended_well(agents);
    let result = scratch.result("r");
    assert_eq!(names_of_phases(&result), ["load", "warm", "run", "run:read-back"]);
    let lost = lost_in(&result, "warm", 3);
    nothing_is_wrong(&result);
    let run = phase(&result, "run");
    assert_eq!((&run["stopped"], &run["started_operations"]), (&"requests".into(), &900.into()));
    let carried = names_of_agents(run);
    assert!(carried.len() == 2 && !carried.contains(&lost), "{carried:?} without {lost}");
    assert_eq!(sum(run, "clients"), 6);
}

/// The agent stands still when the others have joined, so that it does not reach the store.
#[test]
fn an_agent_that_is_lost_before_the_first_phase_leaves_all_to_the_others() {
    let (server, scratch) = (redis(), Scratch::new());
    let line = format!(
        "run --agents 3 --listen 127.0.0.1:0 --store {} --records 2k --clients 6 --requests 900 --set warmup=false \
         --quiet --out r --on-agent-lost go-on",
        server.url()
    );
    let (mut conductor, address, token) = conducting_by(&scratch, &line);
    let first = agent(&scratch, &address, &token);
    conductor.until("the first agent", || true);
    while !conductor.said().contains("1 of 3") {
        std::thread::sleep(Duration::from_millis(10));
    }
    first.signal(SIGSTOP);
    let others = (0..2).map(|_| agent(&scratch, &address, &token)).collect();
    conductor.wait().expect(2);
    ended_well(others);
    first.signal(SIGCONT);
    first.wait().expect(69);
    let result = scratch.result("r");
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    assert_eq!(lost_in(&result, phases[0]["name"].as_str().expect("a name"), 3), "agent-1");
    nothing_is_wrong(&result);
    for phase in phases {
        assert_eq!(names_of_agents(phase), ["agent-2", "agent-3"], "{}", phase["name"]);
        assert_eq!(phase["tally"]["stamp_only"], 0, "nobody had written before");
    }
}

/// The agent stands still, is given up, and wakes up while the others carry its load: what it sent in between comes
/// late, and none of it is called wrong.
#[test]
fn an_agent_that_wakes_up_when_others_have_its_records_makes_nothing_wrong() {
    let (server, scratch) = (redis(), Scratch::new());
    let slow = Slowness { there: Duration::from_millis(20), ..Slowness::default() };
    let relay = Relay::before(&server.address().to_string(), slow);
    let suite = three_phases().set("read-back", true);
    let (mut conductor, mut agents) = three_agents(&scratch, suite, &relay.address, "--quiet");
    wait_for(&scratch, &mut conductor, "first", 1);
    agents[1].signal(SIGSTOP);
    wait_for(&scratch, &mut conductor, "second", 1);
    let asleep = agents.remove(1);
    asleep.signal(SIGCONT);
    conductor.wait().expect(2);
    ended_well(agents);
    asleep.wait().expect(69);
    let result = scratch.result("r");
    lost_in(&result, "first", 3);
    nothing_is_wrong(&result);
    assert_eq!(names_of_agents(phase(&result, "second")).len(), 2);
    assert_eq!(phase(&result, "second")["writes"]["lost"], 0);
}

/// While the agents connect for a phase one of them is killed: the others begin it without that one.
#[test]
fn a_phase_that_could_not_begin_is_begun_by_the_others() {
    let (server, scratch) = (redis(), Scratch::new());
    let relay = Relay::before(&server.address().to_string(), Slowness::default());
    let more = "--quiet";
    let (mut conductor, mut agents) = three_agents(&scratch, three_phases(), &relay.address, more);
    wait_for(&scratch, &mut conductor, "first", 2);
    relay.door.shut();
    until_agents_connect_for_the_second(&mut conductor, &scratch, &relay);
    kill(&mut agents, 0);
    std::thread::sleep(Duration::from_secs(1));
    relay.door.open();
    conductor.wait().expect(2);
    ended_well(agents);
    let result = scratch.result("r");
    lost_in(&result, "second", 3);
    nothing_is_wrong(&result);
    let second = phase(&result, "second");
    assert_eq!((&second["stopped"], &second["offered"]), (&"duration".into(), &3_600.into()));
    assert_eq!(names_of_agents(second).len(), 2);
}

/// A probe that is cut short is none, and its search ends; the others carry the phases after it.
#[test]
fn a_search_that_loses_an_agent_ends_and_the_run_goes_on() {
    let (server, scratch) = (redis(), Scratch::new());
    let suite = Suite::of(RECORDS).set("clients", 6).load().phase("find", "get");
    let suite = suite.set("duration", "4s").set("slo", "p99 < 1s");
    let suite = suite.phase("behind", MIX).set("requests", 900);
    let address = server.address().to_string();
    let (mut conductor, mut agents) = three_agents(&scratch, suite, &address, "--quiet");
    wait_for(&scratch, &mut conductor, "find@4", 1);
    kill(&mut agents, 2);
    conductor.wait().expect(2);
    ended_well(agents);
    let result = scratch.result("r");
    lost_in(&result, "find@4", 3);
    nothing_is_wrong(&result);
    let names = names_of_phases(&result);
    assert_eq!(names[..3], ["load", "find@4", "behind"], "{names:?}");
    let found = &result["runs"][0]["capacity"];
    assert!(!found.to_string().contains("find@4"), "{found}");
    let behind = phase(&result, "behind");
    assert_eq!((&behind["started_operations"], sum(behind, "clients")), (&900.into(), 6));
}

/// The others read their own records back, and carry the next phase.
#[test]
fn an_agent_that_is_lost_while_records_are_read_back_is_done_without_from_then_on() {
    let (server, scratch) = (redis(), Scratch::new());
    let slow = Slowness { back: Duration::from_millis(10), ..Slowness::default() };
    let relay = Relay::before(&server.address().to_string(), slow);
    let suite = Suite::of(RECORDS).set("clients", 6).load().phase("mix", MIX);
    let suite = suite.set("requests", 600).set("read-back", true);
    let suite = suite.phase("behind", MIX).set("requests", 600);
    let (mut conductor, mut agents) = three_agents(&scratch, suite, &relay.address, "--quiet");
    wait_for(&scratch, &mut conductor, "mix:read-back", 1);
    kill(&mut agents, 0);
    conductor.wait().expect(2);
    ended_well(agents);
    let result = scratch.result("r");
    let lost = lost_in(&result, "mix:read-back", 3);
    nothing_is_wrong(&result);
    let writes = &phase(&result, "mix")["writes"];
    assert_eq!(writes["of_lost"]["agents"], serde_json::json!([lost]), "{writes}");
    assert_eq!((&writes["lost"], &writes["unknown"]), (&0.into(), &writes["of_lost"]["records"]));
    let behind = phase(&result, "behind");
    assert_eq!((&behind["started_operations"], names_of_agents(behind).len()), (&600.into(), 2));
}

/// Records are dealt out anew if agents read any: values written before belong to no agent.
#[test]
fn agents_that_read_anywhere_go_on_and_judge_all_that_was_there_by_its_stamp() {
    let (server, scratch) = (redis(), Scratch::new());
    let suite = three_phases().set("read-back", true);
    let more = "--quiet --reads anywhere";
    let address = server.address().to_string();
    let (mut conductor, mut agents) = three_agents(&scratch, suite, &address, more);
    wait_for(&scratch, &mut conductor, "first", 1);
    kill(&mut agents, 1);
    conductor.wait().expect(2);
    ended_well(agents);
    let result = scratch.result("r");
    lost_in(&result, "first", 3);
    nothing_is_wrong(&result);
    let second = phase(&result, "second");
    assert_eq!((&second["stopped"], &second["offered"]), (&"duration".into(), &3_600.into()));
    assert_eq!((sum(second, "clients"), names_of_agents(second).len()), (6, 2));
    let writes = &second["writes"];
    assert_eq!(
        (&writes["read"], &writes["unknown"]),
        (&RECORDS.into(), &RECORDS.into()),
        "{writes}"
    );
}

/// One agent after the other is lost: the last one carries all, and the run ends when it is lost.
#[test]
fn the_last_agent_carries_all_and_when_it_is_lost_the_run_ends_with_a_result() {
    let (server, scratch) = (redis(), Scratch::new());
    let suite = three_phases().phase("third", MIX).set("rate", "900/s").set("duration", "30s");
    let suite = suite.set("read-back", true);
    let address = server.address().to_string();
    let (mut conductor, mut agents) = three_agents(&scratch, suite, &address, "--quiet");
    wait_for(&scratch, &mut conductor, "first", 1);
    kill(&mut agents, 1);
    wait_for(&scratch, &mut conductor, "second", 1);
    kill(&mut agents, 0);
    wait_for(&scratch, &mut conductor, "third", 2);
    kill(&mut agents, 0);
    let ended = conductor.wait().expect(2);
    assert_eq!(ended.err.matches(" take over in ").count(), 2, "{}", ended.err);
    let result = scratch.result("r");
    nothing_is_wrong(&result);
    let counts =
        ["first", "second", "third"].map(|name| names_of_agents(phase(&result, name)).len());
    assert_eq!(counts, [3, 2, 1]);
    let third = phase(&result, "third");
    assert_eq!(third["stopped"], "agent-lost");
    let run = &result["runs"][0];
    assert_eq!((&run["status"]["state"], &run["cause"]), (&"failed".into(), &"agent-lost".into()));
    let writes = &third["writes"];
    assert_eq!((&writes["lost"], &writes["unknown"]), (&0.into(), &RECORDS.into()), "{writes}");
}
