//! The interval that a result states for an agent's clock holds the truth. Agents run in time namespaces, whose
//! clocks are off by known times, one of them behind a relay that is slow in one direction.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::agents::{conducting_by, phase};
use super::relay::{Relay, Slowness};
use crate::support::suite::{self, Suite};
use crate::support::{KVDYNO, Running, Scratch};

/// Time by which the agents' clocks are ahead, s.
const AHEAD: [i64; 2] = [1_000, 500_000];
/// Delay of the relay, one way.
const SLOW: Duration = Duration::from_millis(20);

/// Makes two phases: one with faults, which tells apart slots of 20 ms, and one without, with intervals of a second.
fn two_phases() -> Suite {
    let mixed =
        |suite: Suite, name| suite.phase(name, "get = 50, update = 50").set("rate", "500/s");
    let calm = mixed(Suite::of(500).set("clients", 4).load(), "calm").set("duration", "1500ms");
    let paused = mixed(calm, "paused").set("duration", "3s");
    paused.fault("pause").set("at", "1s").set("repair", "500ms")
}

/// Starts an agent whose CLOCK_MONOTONIC and CLOCK_BOOTTIME are ahead by so many seconds.
fn ahead(scratch: &Scratch, seconds: i64, address: &str, token: &str) -> Running {
    let mut command = Command::new("unshare");
    let by = seconds.to_string();
    command.args(["--time", "--kill-child", "--monotonic", &by, "--boottime", &by]);
    command.args([KVDYNO, "agent", "--conductor", address]).env("KVDYNO_TOKEN", token);
    scratch.spawn(command)
}

#[test]
fn the_stated_interval_holds_the_true_offset_even_if_one_way_is_slow() {
    let scratch = Scratch::new();
    suite::write(&scratch.path("suite.toml"), two_phases());
    let line = "run suite.toml --testbed redis --agents 2 --listen 127.0.0.1:0 --quiet --out r";
    let (conductor, address, token) = conducting_by(&scratch, line);
    let slow = Relay::before(&address, Slowness { there: SLOW, back: Duration::ZERO });
    let agents = [
        ahead(&scratch, AHEAD[0], &address, &token),
        ahead(&scratch, AHEAD[1], &slow.address, &token),
    ];
    let ended = conductor.wait();
    assert!([0, 2].contains(&ended.code()), "{ended:?}");
    agents.into_iter().for_each(|agent| {
        agent.wait().expect(0);
    });
    let result = scratch.result("r");
    let mut slow = String::new();
    for name in ["load", "calm", "paused"] {
        let agents = phase(&result, name)["agents"].as_array().expect("agents").clone();
        assert_eq!(agents.len(), 2);
        for agent in agents {
            let offset = agent["clock_offset_ns"].as_i64().expect("an offset");
            let uncertainty = agent["clock_uncertainty_ns"].as_u64().expect("its interval");
            let error = |seconds: i64| (offset - seconds * 1_000_000_000).unsigned_abs();
            // The agents came in an order of their own; their clocks are far apart.
            let truly = AHEAD.into_iter().min_by_key(|&ahead| error(ahead)).expect("two");
            assert!(error(truly) <= uncertainty, "{name}: {agent}, truly {truly} s");
            assert!(
                uncertainty < 1_000_000_000,
                "{name}: an interval that says something: {agent}"
            );
            if truly == AHEAD[1] {
                // It is unknown in which direction the 20 ms were lost.
                assert!(uncertainty >= 10_000_000, "{name}: {agent}");
                slow = agent["name"].as_str().expect("a name").to_owned();
            }
        }
    }
    let reasons = result["runs"][0]["verdict"]["reasons"].as_array().expect("reasons").clone();
    let told: Vec<&Value> = reasons.iter().filter(|r| r["name"] == "clocks-uncertain").collect();
    assert_eq!(told.len(), 1, "only where slots of 20 ms are told apart: {reasons:?}");
    assert_eq!((&told[0]["phase"], &told[0]["level"]), (&"paused".into(), &"suspect".into()));
    let text = told[0]["text"].as_str().expect("a text");
    assert!(text.contains(&format!("the clock of {slow} (")), "{slow}: {text}");
}
