//! Agents that stay: one process on a machine serves one run after the other.

use std::net::TcpListener;
use std::process::Command;

use super::agents::{COUNTED, phase};
use crate::support::{Running, Scratch, finds_kvdyno};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn with_token(scratch: &Scratch, line: &str) -> Running {
    let mut command = finds_kvdyno(Command::new("sh"));
    command.args(["-c", &format!("exec kvdyno {line}")]).env("KVDYNO_TOKEN", TOKEN);
    scratch.spawn(command)
}

/// Returns the processes whose parent is this one.
fn children(parent: u32) -> Vec<String> {
    let told = Command::new("pgrep").args(["-P", &parent.to_string()]).output().expect("pgrep");
    String::from_utf8_lossy(&told.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn an_agent_that_stays_serves_two_runs_and_ends_when_it_is_told() {
    let scratch = Scratch::new();
    scratch.write("counted.toml", COUNTED);
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    let mut agent = with_token(&scratch, &format!("agent --conductor {free} --name steady --stay"));
    for number in 1..=2 {
        let line = format!(
            "run counted.toml --testbed engine:lmdb?durability=none --agents 1 --listen {free} --quiet --out run-{number}"
        );
        let ended = with_token(&scratch, &line).wait();
        assert!([0, 2].contains(&ended.code()), "{ended:?}");
        let result = scratch.result(&format!("run-{number}"));
        assert_eq!(result["runs"][0]["status"]["state"], "complete");
        let agents = phase(&result, "mix")["agents"].as_array().expect("agents").clone();
        assert_eq!((agents.len(), &agents[0]["machine"]), (1, &"steady".into()), "{agents:?}");
        assert!(agent.is_running(), "{}", agent.said());
        let words = format!("run {number} is over");
        let mut waited = 0;
        while !agent.said().contains(&words) && waited < 100 {
            waited += 1;
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        assert!(agent.said().contains(&words), "{}", agent.said());
    }
    let left = children(agent.id());
    agent.signal(15);
    let ended = agent.wait().expect(0);
    assert!(ended.err.contains("run 1 is over; waiting for the next conductor"), "{}", ended.err);
    for process in left {
        assert!(
            !std::path::Path::new(&format!("/proc/{process}")).exists(),
            "{process} ends with it"
        );
    }
}
