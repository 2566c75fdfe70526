//! Agents that are lost while they carry no load: before a run begins, before a phase does, and while records are read
//! back. A relay before the server makes these moments long enough to be met.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use libc::SIGKILL;
use serde_json::Value;

use crate::agents::{account_without, agent, conducting_by, phase, redis};
use crate::support::{Running, Scratch};

/// Between two looks of what waits.
const LOOK: Duration = Duration::from_millis(5);

/// What is between the clients and a server.
struct Relay {
    address: String,
    door: Arc<Door>,
}

#[derive(Default)]
struct Door {
    /// Who comes now has to wait.
    shut: AtomicBool,
    /// How many do.
    waiting: AtomicUsize,
}

impl Relay {
    /// Before a server, whose answers it holds back for so long each.
    fn before(server: String, slow: Duration) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address").to_string();
        let door = Arc::new(Door::default());
        let inside = Arc::clone(&door);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, door) = (server.clone(), Arc::clone(&inside));
                std::thread::spawn(move || {
                    door.pass();
                    // A server or a client that is gone ends its connection alone.
                    let _ = relay(client, &server, slow);
                });
            }
        });
        Relay { address, door }
    }

    fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

impl Door {
    fn pass(&self) {
        if self.shut.load(Ordering::SeqCst) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
        }
        while self.shut.load(Ordering::SeqCst) {
            std::thread::sleep(LOOK);
        }
    }
}

fn relay(mut client: TcpStream, server: &str, slow: Duration) -> std::io::Result<()> {
    let mut server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut bytes = [0; 1 << 16];
    loop {
        match server.read(&mut bytes)? {
            0 => return client.shutdown(Shutdown::Both),
            read => {
                std::thread::sleep(slow);
                client.write_all(&bytes[..read])?;
            }
        }
    }
}

fn conducting(scratch: &Scratch, suite: &str, url: &str) -> (Running, [Running; 2]) {
    scratch.write("suite.toml", suite);
    let line =
        format!("run suite.toml --store {url} --agents 2 --listen 127.0.0.1:0 --quiet --out r");
    let (conductor, address, token) = conducting_by(scratch, &line);
    let agents = [0, 1].map(|_| agent(scratch, &address, &token));
    (conductor, agents)
}

/// The name of the one agent that the verdict says was lost.
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
fn an_agent_that_goes_before_all_have_come_ends_the_run_before_it_begins() {
    let (server, scratch) = (redis(), Scratch::new());
    let line = format!(
        "run --agents 2 --listen 127.0.0.1:0 --store {} --records 2k --quiet --out r",
        server.url()
    );
    let (mut conductor, address, token) = conducting_by(&scratch, &line);
    while conductor.is_running() {
        // One that is killed before it has joined is nobody's loss.
        let short = agent(&scratch, &address, &token);
        std::thread::sleep(Duration::from_millis(300));
        short.signal(SIGKILL);
        drop(short.wait());
    }
    let ended = conductor.wait().expect(69);
    let words = "agent-1 came and went before the run: its connection was closed; start the run and its agents anew";
    assert!(ended.err.contains(words), "{}", ended.err);
    assert!(!scratch.path("r/result.json").exists(), "nothing was begun");
}

/// While the agents connect for a phase one of them is killed: the phase does not begin, and the other, which is still
/// connecting, reads back what it wrote before.
#[test]
fn an_agent_that_is_lost_before_a_phase_begins_leaves_an_account_of_those_before() {
    let (server, scratch) = (redis(), Scratch::new());
    let relay = Relay::before(server.address().to_string(), Duration::ZERO);
    let suite = r#"
name = "two"
records = 2000
clients = 4
warmup = false

[[phase]]
name = "load"
label = "Load"
load = true

[[phase]]
name = "first"
label = "First"
mix = { get = 50, update = 50 }
rate = "1k/s"
duration = "3s"

[[phase]]
name = "second"
label = "Second"
mix = { get = 50, update = 50 }
requests = 1000
read-back = true
"#;
    let (mut conductor, [one, other]) = conducting(&scratch, suite, &relay.url());
    let log = scratch.path("r/timeline.csv");
    conductor.until("intervals of the first phase", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains(",first,")
    });
    relay.door.shut.store(true, Ordering::SeqCst);
    // Others connect while the first goes on, too.
    let first_is_over = || {
        let text = std::fs::read_to_string(scratch.path("r/result.json")).unwrap_or_default();
        let result: Value = serde_json::from_str(&text).unwrap_or_default();
        let phases = result["runs"][0]["phases"].as_array().cloned().unwrap_or_default();
        phases.iter().any(|phase| phase["name"] == "first" && phase["stopped"] == "duration")
    };
    conductor.until("agents that connect for the second", || {
        first_is_over() && relay.door.waiting.load(Ordering::SeqCst) > 0
    });
    one.signal(SIGKILL);
    // Whoever connects goes on to do so when the conductor has called the phase off.
    std::thread::sleep(Duration::from_secs(1));
    relay.door.shut.store(false, Ordering::SeqCst);
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

/// Each answer takes a while, so that reading back does.
#[test]
fn an_agent_that_is_lost_while_records_are_read_back_leaves_its_own_unknown() {
    let (server, scratch) = (redis(), Scratch::new());
    let relay = Relay::before(server.address().to_string(), Duration::from_millis(4));
    let suite = r#"
name = "one"
records = 2000
clients = 2
warmup = false

[[phase]]
name = "load"
label = "Load"
load = true

[[phase]]
name = "mix"
label = "Mix"
mix = { get = 50, update = 50 }
requests = 300
read-back = true
"#;
    let (mut conductor, [one, other]) = conducting(&scratch, suite, &relay.url());
    let log = scratch.path("r/timeline.csv");
    conductor.until("intervals of the reading", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains(",mix:read-back,")
    });
    one.signal(SIGKILL);
    let ended = conductor.wait().expect(2);
    assert!(ended.err.contains("lost agent-"), "{}", ended.err);
    other.wait().expect(0);

    let result = scratch.result("r");
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
