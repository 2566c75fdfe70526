//! Several processes that carry one load for a conductor, against a real Redis: what they do together, who is
//! refused, and what becomes of a run that loses one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::one_server::{RedisServer, RedisSettings};
use crate::support::{Ended, KVDYNO, Running, Scratch, kvdyno};

/// Two phases that are bounded by count alone, so that the operations do not depend on speed.
pub const COUNTED: &str = r#"
name = "counted"
records = 2000
clients = 6
warmup = false
value = "100B..200B"

[[phase]]
name = "load"
label = "Load"
load = true

[[phase]]
name = "mix"
label = "Mix"
mix = { get = 50, update = 30, insert = 10, get-batch = 10 }
keys = "zipfian"
requests = 5000
read-back = true
"#;

pub fn redis() -> RedisServer {
    RedisServer::start(RedisSettings::default()).expect("redis-server starts")
}

/// Counts how often each command was sent for each key of the load, as the server's MONITOR tells while `during` lasts.
pub fn monitored(server: &RedisServer, during: impl FnOnce()) -> BTreeMap<(String, String), u64> {
    let mut stream = TcpStream::connect(server.address()).expect("the server");
    stream.write_all(b"FLUSHALL\r\nMONITOR\r\n").expect("commands are sent");
    let lines = BufReader::new(stream.try_clone().expect("the stream"));
    let reading = std::thread::spawn(move || {
        let mut sent = BTreeMap::new();
        for line in lines.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.contains("\"kvdyno-heartbeat-") {
                continue;
            }
            let words: Vec<&str> = line.split('"').collect();
            match words.get(1).map(|word| word.to_uppercase()).as_deref() {
                Some("ECHO") => break,
                Some("MGET") => {
                    for key in words.iter().skip(3).step_by(2) {
                        *sent.entry(("GET".to_owned(), (*key).to_owned())).or_default() += 1;
                    }
                }
                Some(command @ ("GET" | "SET")) if words.len() > 3 => {
                    *sent.entry((command.to_owned(), words[3].to_owned())).or_default() += 1;
                }
                _ => {}
            }
        }
        sent
    });
    during();
    let mut other = TcpStream::connect(server.address()).expect("the server");
    other.write_all(b"ECHO over\r\n").expect("a command is sent");
    reading.join().expect("what was sent is read")
}

/// Asserts that the run came to its end, and that nothing is wrong with the store. A busy machine may have spoilt its
/// figures.
pub fn done(ended: Ended) -> Ended {
    assert!([0, 2].contains(&ended.code()), "{ended:?}");
    assert!(ended.out.contains("no anomaly") || ended.out.is_empty(), "{ended:?}");
    ended
}

pub fn phase<'a>(result: &'a Value, name: &str) -> &'a Value {
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no phase {name}"))
}

/// Starts a conductor whose agents join by hand. Returns it with the address and the token that it prints.
fn conducting(scratch: &Scratch, server: &RedisServer, more: &str) -> (Running, String, String) {
    let line = format!(
        "run --agents 2 --listen 127.0.0.1:0 --store {} --records 2k --clients 4 --quiet --out r {more}",
        server.url()
    );
    conducting_by(scratch, &line)
}

pub fn conducting_by(scratch: &Scratch, line: &str) -> (Running, String, String) {
    let mut running = scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>());
    let told = loop {
        running.until("a line to join by", || true);
        let said = running.said();
        if said.lines().any(|line| line.starts_with("KVDYNO_TOKEN=")) && said.ends_with('\n') {
            break said;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let line = told.lines().find(|line| line.starts_with("KVDYNO_TOKEN=")).expect("the line");
    let token = line["KVDYNO_TOKEN=".len()..].split(' ').next().expect("a token").to_owned();
    let address = line.rsplit(' ').next().expect("an address").to_owned();
    (running, address, token)
}

pub fn agent(scratch: &Scratch, address: &str, token: &str) -> Running {
    let mut command = kvdyno(&format!("agent --conductor {address}"));
    command.env("KVDYNO_TOKEN", token);
    scratch.spawn(command)
}

/// Starts two agents that join and carry the phase `run` of a load at a rate.
fn under_load(scratch: &Scratch, server: &RedisServer) -> (Running, [Running; 2]) {
    let more = "--mix get=50,update=50 --rate 1k/s --duration 30s";
    let (mut conductor, address, token) = conducting(scratch, server, more);
    let agents = [0, 1].map(|_| agent(scratch, &address, &token));
    conductor.until("600 operations of the phase `run`", || done_in(scratch, "run") > 600);
    (conductor, agents)
}

/// Returns the operations of a phase that have succeeded, by the intervals that were written until now. On a busy
/// machine an interval has few.
fn done_in(scratch: &Scratch, phase: &str) -> u64 {
    let log = std::fs::read_to_string(scratch.path("r/timeline.csv")).unwrap_or_default();
    let rows = log.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let rows = rows.filter(|row| row.get(3) == Some(&phase));
    rows.filter_map(|row| row.get(14)?.parse::<u64>().ok()).sum()
}

/// Returns the result of a run that lost an agent: it is kept, invalid, and names the agent.
fn lost_one(scratch: &Scratch, conductor: Running) -> Value {
    let ended = conductor.wait().expect(2);
    assert!(ended.err.contains("lost agent-"), "{}", ended.err);
    lost_one_of(scratch, "r")
}

/// Returns the result in this folder, of a run of two agents that lost one.
pub fn lost_one_of(scratch: &Scratch, folder: &str) -> Value {
    let result = scratch.result(folder);
    let verdict = &result["runs"][0]["verdict"];
    assert_eq!(verdict["level"], "invalid", "{verdict}");
    let reasons = verdict["reasons"].as_array().expect("reasons");
    let lost = reasons.iter().find(|reason| reason["name"] == "agent-lost").expect("the reason");
    assert!(lost["text"].as_str().is_some_and(|text| text.contains("1 of 2 agents lost: agent-")));
    let run = phase(&result, "run");
    assert_eq!(run["stopped"], "agent-lost");
    assert!(run["started_operations"].as_u64() > Some(500), "what was measured is kept");
    assert_eq!(run["tally"]["anomalies"], serde_json::json!([0, 0, 0, 0, 0]));
    let agents = run["agents"].as_array().expect("agents");
    let lost: Vec<&Value> = agents.iter().filter(|agent| !agent["lost"].is_null()).collect();
    assert_eq!(lost.len(), 1);
    let writes = account_without(&result, "run", &[&lost[0]["name"]]);
    let own = number(writes, "of_lost", "records");
    assert!(writes["read"].as_u64().is_some_and(|read| read.abs_diff(own) <= 1), "{writes}");
    result
}

pub fn number(value: &Value, key: &str, inner: &str) -> u64 {
    value[key][inner].as_u64().unwrap_or_else(|| panic!("no {key}.{inner} in {value}"))
}

/// Returns the account of the writes after agents of these names were lost in this phase: their writes are unknown,
/// never lost, and the others have read back all else.
pub fn account_without<'a>(result: &'a Value, lost_in: &str, names: &[&Value]) -> &'a Value {
    let run = phase(result, lost_in);
    let writes = &run["writes"];
    assert_eq!(writes["of_lost"]["agents"], serde_json::json!(names), "{writes}");
    assert_eq!(writes["lost"], 0, "{writes}");
    let records = number(writes, "of_lost", "records");
    assert_eq!(writes["unknown"], records, "{writes}");
    assert_eq!(writes["read"].as_u64().map(|read| read + records), run["records"].as_u64());
    // Half of the load's writes were theirs: each agent told of its own when that phase ended.
    assert!(number(writes, "of_lost", "acknowledged") > 900, "{writes}");
    assert!(writes["acknowledged"].as_u64() > Some(2_000), "{writes}");
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    let written: u64 = phases.iter().map(written).sum();
    assert_eq!(writes["acknowledged"], written, "as the phases have it");
    assert_eq!(result["runs"][0]["status"]["state"], "failed");
    writes
}

/// Returns the writes that were acknowledged by a phase's rows.
fn written(phase: &Value) -> u64 {
    let series = phase["series"].as_array().expect("series").iter();
    let writes = series.filter(|s| s["kind"].as_str().is_some_and(|kind| !kind.starts_with("get")));
    writes.filter_map(|s| s["records"].as_u64()).sum()
}

/// Two processes send exactly the requests that one does, about the same keys, each exactly once; every read
/// is judged, and the result is one.
#[test]
fn two_agents_do_exactly_what_one_process_does() {
    let (server, scratch) = (redis(), Scratch::new());
    scratch.write("counted.toml", COUNTED);
    let line = format!("run counted.toml --quiet --store {}", server.url());
    let alone = monitored(&server, || {
        done(scratch.kvdyno(&format!("{line} --out one")));
    });
    let together = monitored(&server, || {
        done(scratch.kvdyno(&format!("{line} --out two --agents local:2")));
    });
    let sent: u64 = alone.values().sum();
    assert!(sent > 9_000, "{sent} requests were seen");
    let differing = alone.iter().filter(|(what, count)| together.get(*what) != Some(*count));
    let differing: Vec<_> =
        differing.take(3).map(|(what, n)| (what, n, together.get(what))).collect();
    assert!(alone == together, "for example: {differing:?}");

    let (one, two) = (scratch.result("one"), scratch.result("two"));
    for name in ["load", "mix", "mix:read-back"] {
        let (one, two) = (phase(&one, name), phase(&two, name));
        let records = |phase: &Value| -> Vec<(Value, Value)> {
            let series = phase["series"].as_array().expect("series").iter();
            series.map(|s| (s["kind"].clone(), s["records"].clone())).collect()
        };
        assert_eq!(records(two), records(one), "{name}");
        assert_eq!((&two["records"], &two["issued"]), (&one["records"], &one["issued"]), "{name}");
        for what in ["reads", "judged", "writes_acknowledged", "unknown", "anomalies"] {
            assert_eq!(two["tally"][what], one["tally"][what], "{name}: {what}");
        }
        let agents = two["agents"].as_array().expect("agents");
        let operations: u64 = agents.iter().filter_map(|agent| agent["operations"].as_u64()).sum();
        assert_eq!((agents.len(), Some(operations)), (2, two["started_operations"].as_u64()));
        assert!(agents.iter().all(|agent| agent["share"].as_f64() > Some(0.3)), "{agents:?}");
        assert!(one["agents"].is_null(), "one process has no agents");
    }
    let writes = |result: &Value| phase(result, "mix")["writes"].clone();
    assert_eq!(writes(&two), writes(&one), "the same account of the writes");
}

/// Each agent draws its own operations. It judges the stamps of others' records and its own in full, and together
/// they read all back.
#[test]
fn agents_that_read_anywhere_judge_their_own_records_in_full() {
    let (server, scratch) = (redis(), Scratch::new());
    scratch.write("counted.toml", COUNTED);
    let line =
        format!("run counted.toml --agents local:3 --reads anywhere --store {}", server.url());
    let ended = done(scratch.kvdyno(&format!("{line} --out r")));
    for words in [" by their stamp only", "agents read anywhere"] {
        assert!(ended.out.contains(words), "{}", ended.out);
    }
    let result = scratch.result("r");
    assert_eq!(result["runs"][0]["status"]["state"], "complete", "{}", ended.out);
    assert_eq!(written(phase(&result, "load")), 2_000, "no batch of 40 is left over");
    let mix = phase(&result, "mix");
    assert_eq!(mix["started_operations"], 5_000);
    let agents = mix["agents"].as_array().expect("agents");
    assert!(agents.iter().all(|agent| agent["share"].as_f64() > Some(0.3)), "{agents:?}");
    assert!(agents.iter().all(|agent| agent["passing"] == 0.0), "nobody draws others' operations");
    assert!(mix["records"].as_u64() >= Some(2_500), "each inserts its own: {}", mix["records"]);
    let reads = number(mix, "tally", "reads");
    let (judged, stamped) = (number(mix, "tally", "judged"), number(mix, "tally", "stamp_only"));
    assert!(5 * judged > reads && 2 * stamped > reads, "a third are its own: {judged} {stamped}");
    assert_eq!(judged + stamped, reads, "{}", mix["tally"]);
    let reading = phase(&result, "mix:read-back");
    assert_eq!(reading["tally"]["judged"], reading["tally"]["reads"], "{}", reading["tally"]);
    let writes = &mix["writes"];
    assert_eq!(writes["read"], mix["records"], "{writes}");
    assert_eq!((&writes["lost"], &writes["unknown"]), (&0.into(), &0.into()), "{writes}");
    let all: u64 = ["load", "mix"].iter().map(|name| written(phase(&result, name))).sum();
    assert_eq!(writes["acknowledged"], all);
}

/// A record is served in the place of another: every agent that reads it sees that by its stamp, whichever agent owns
/// it.
#[test]
fn agents_that_read_anywhere_see_a_wrong_record_of_another() {
    let (server, scratch) = (redis(), Scratch::new());
    let line = format!(
        "run --agents local:2 --reads anywhere --store {} --records 50 --mix get=100 --rate 500/s --duration 4s \
         --set warmup=false --set read-back=false --quiet --out r",
        server.url()
    );
    let mut running = scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>());
    let log = scratch.path("r/timeline.csv");
    running.until("intervals of the phase `run`", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains(",run,")
    });
    let mut stream = TcpStream::connect(server.address()).expect("the server");
    let swap =
        "local k = redis.call('keys', '*') return redis.call('set', k[1], redis.call('get', k[2]))";
    let command = format!("*3\r\n$4\r\nEVAL\r\n${}\r\n{swap}\r\n$1\r\n0\r\n", swap.len());
    stream.write_all(command.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("an answer");
    assert_eq!(answer, "+OK\r\n");
    running.wait().expect(1);
    let result = scratch.result("r");
    let run = phase(&result, "run");
    // One agent owns it and judges it in full, and the other has read it by its stamp.
    assert_eq!(run["tally"]["anomalies"], serde_json::json!([2, 0, 0, 0, 0]), "{}", run["tally"]);
    assert!(number(run, "tally", "stamp_only") > 500, "{}", run["tally"]);
}

/// With open arrivals, the rate is that of all agents together.
#[test]
fn the_rate_is_the_rate_of_all_agents() {
    let (server, scratch) = (redis(), Scratch::new());
    let line =
        format!("--records 2k --clients 4 --quiet --agents local:2 --store {}", server.url());
    done(scratch.kvdyno(&format!("run {line} --rate 1k/s --duration 2s --out r")));
    let result = scratch.result("r");
    let run = phase(&result, "run");
    assert_eq!(run["offered"], 2_000, "both agents together");
    assert_eq!(run["stopped"], "duration");
    let timeline = std::fs::read_to_string(scratch.path("r/timeline.csv")).expect("a timeline");
    assert_eq!(timeline.lines().filter(|line| line.contains(",run,")).count(), 2, "{timeline}");
}

#[test]
fn an_agent_that_is_killed_makes_the_run_invalid_and_is_named() {
    let (server, scratch) = (redis(), Scratch::new());
    let (conductor, [one, other]) = under_load(&scratch, &server);
    let killed = Instant::now();
    one.signal(libc::SIGKILL);
    lost_one(&scratch, conductor);
    assert!(killed.elapsed() < Duration::from_secs(15), "{:?}", killed.elapsed());
    other.wait().expect(0);
}

#[test]
fn when_every_agent_is_lost_all_that_was_written_is_unknown() {
    let (server, scratch) = (redis(), Scratch::new());
    let (conductor, agents) = under_load(&scratch, &server);
    agents.iter().for_each(|agent| agent.signal(libc::SIGKILL));
    conductor.wait().expect(2);
    let result = scratch.result("r");
    let mut names: Vec<&Value> = Vec::new();
    for agent in phase(&result, "run")["agents"].as_array().expect("agents") {
        assert!(!agent["lost"].is_null(), "{agent}");
        names.push(&agent["name"]);
    }
    let writes = account_without(&result, "run", &names);
    assert_eq!((&writes["read"], &writes["unknown"]), (&0.into(), &2_000.into()), "{writes}");
}

/// A server dies and comes back, and an agent is lost while the load goes on: what the other agent has written is
/// read back, and none of it is lost.
#[test]
fn an_agent_that_is_lost_after_a_fault_leaves_an_account_of_both() {
    let scratch = Scratch::new();
    let suite = COUNTED
        .replace("get = 50, update = 30, insert = 10, get-batch = 10", "get = 50, insert = 50");
    let suite = suite.replace("requests = 5000", "rate = \"800/s\"\nduration = \"40s\"");
    let fault = "[[phase.fault]]\ndo = \"kill\"\nnode = \"all\"\nat = \"1s\"\nrepair = \"1s\"\n";
    scratch.write("faulty.toml", &format!("{suite}{fault}"));
    let line = "run faulty.toml --testbed redis?persistence=aof-always --agents 2 --listen 127.0.0.1:0 --quiet --out r";
    let (mut conductor, address, token) = conducting_by(&scratch, line);
    let [one, other] = [0, 1].map(|_| agent(&scratch, &address, &token));
    let log = scratch.path("r/timeline.csv");
    conductor.until("what comes after the repair", || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.lines().filter(|line| line.contains(",mix,")).count() >= 4
    });
    one.signal(libc::SIGKILL);
    conductor.wait().expect(2);
    other.wait().expect(0);
    let result = scratch.result("r");
    let mix = phase(&result, "mix");
    assert_eq!(mix["stopped"], "agent-lost");
    let done: Vec<&Value> =
        mix["faults"].as_array().expect("faults").iter().map(|f| &f["what"]).collect();
    assert_eq!(done, ["kill", "start again"], "{}", mix["faults"]);
    assert!(!mix["account"].as_array().expect("an account").is_empty());
    let agents = mix["agents"].as_array().expect("agents");
    let lost = agents.iter().find(|agent| !agent["lost"].is_null()).expect("the lost one");
    let writes = account_without(&result, "mix", &[&lost["name"]]);
    assert_eq!(writes["exact"], true, "{writes}");
    let text = result["runs"][0]["verdict"].to_string();
    assert!(text.contains("agent-lost") && text.contains("\"level\":\"invalid\""), "{text}");
    let reading = phase(&result, "mix:read-back");
    assert_eq!(reading["tally"]["records"], writes["read"]);
}

#[test]
fn an_agent_that_stands_still_is_lost_after_five_seconds() {
    let (server, scratch) = (redis(), Scratch::new());
    let (conductor, [one, other]) = under_load(&scratch, &server);
    let stopped = Instant::now();
    one.signal(libc::SIGSTOP);
    let result = lost_one(&scratch, conductor);
    assert!(stopped.elapsed() > Duration::from_millis(4_500), "{:?}", stopped.elapsed());
    assert!(result.to_string().contains("nothing was heard of it for 5 s"));
    other.wait().expect(0);
    one.signal(libc::SIGCONT);
    one.wait().expect(69);
}

#[test]
fn agents_whose_conductor_is_killed_stop_and_end() {
    let (server, scratch) = (redis(), Scratch::new());
    let (conductor, agents) = under_load(&scratch, &server);
    conductor.signal(libc::SIGKILL);
    let killed = Instant::now();
    for agent in agents {
        let ended = agent.wait().expect(69);
        assert!(ended.err.contains("lost the connection to the conductor"), "{}", ended.err);
    }
    assert!(killed.elapsed() < Duration::from_secs(6), "{:?}", killed.elapsed());
}

/// One of three is stopped for a moment again and again: its p99 is that moment, in every interval, and the verdict
/// names it. Each agent's machine is seen, too.
#[test]
fn an_agent_that_is_unlike_the_others_is_named() {
    let (server, scratch) = (redis(), Scratch::new());
    let line = format!(
        "run --agents 3 --listen 127.0.0.1:0 --store {} --records 2k --clients 6 --quiet --out r --mix \
         get=50,update=50 --rate 1500/s --duration 14s",
        server.url()
    );
    let (mut conductor, address, token) = conducting_by(&scratch, &line);
    let odd = agent(&scratch, &address, &token);
    let even = [0, 1].map(|_| agent(&scratch, &address, &token));
    let process = odd.id();
    let log = scratch.path("r/timeline.csv");
    let begun = || std::fs::read_to_string(&log).unwrap_or_default().contains(",run,");
    conductor.until("intervals of the phase `run`", begun);
    while conductor.is_running() {
        odd.signal(libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(80));
        odd.signal(libc::SIGCONT);
        std::thread::sleep(Duration::from_millis(220));
    }
    done(conductor.wait());
    let result = scratch.result("r");
    let agents = phase(&result, "run")["agents"].as_array().expect("agents").clone();
    let named = agents.iter().find(|agent| agent["process"] == process).expect("the odd one");
    let reasons = result["runs"][0]["verdict"]["reasons"].as_array().expect("reasons").clone();
    let unlike: Vec<&Value> = reasons.iter().filter(|r| r["name"] == "agent-unlike").collect();
    assert_eq!(unlike.len(), 1, "{reasons:?}");
    let text = unlike[0]["text"].as_str().expect("a text");
    let name = named["name"].as_str().expect("a name");
    assert!(text.contains(&format!("{name} (")), "{name}: {text}");
    for agent in agents {
        let busy = agent["machine_busy"].as_f64().expect("its machine's processors");
        assert!(busy > 0.0 && busy <= 1.0, "{agent}");
        assert!(agent["queued_bytes"].is_u64() && agent["steal"].is_f64(), "{agent}");
        assert!(agent["p99s_ns"].as_array().is_some_and(|p99s| p99s.len() >= 9), "{agent}");
    }
    even.into_iter().chain([odd]).for_each(|agent| {
        agent.wait().expect(0);
    });
}

/// A deployment file names the machines that carry load, and how an agent is started and ended there.
#[test]
fn a_file_tells_where_agents_are_started_and_nothing_is_left() {
    let (server, scratch) = (redis(), Scratch::new());
    scratch.write("counted.toml", COUNTED);
    let load = |name: &str, start: &str| {
        format!("[[load]]\nname = {name:?}\nstart = {start:?}\nend = \"echo $LOAD >> ended\"\n")
    };
    // A shell stands for ssh: the first line stays until its agent ends, the second does not.
    let agent = format!("{KVDYNO} agent --conductor $KVDYNO_CONDUCTOR");
    let file = format!(
        "{}{}",
        load("load-1", &format!("{agent}; echo $? >> codes")),
        load("load-2", &format!("({agent}; echo $? >> codes) &"))
    );
    scratch.write("there.toml", &file);
    let line = format!("run counted.toml --store {} --quiet --agents there.toml", server.url());
    scratch.kvdyno(&line).expect_line(64, &["add --listen HOST:PORT"]);
    done(scratch.kvdyno(&format!("{line} --listen 127.0.0.1:0 --out r")));
    let result = scratch.result("r");
    assert_eq!(phase(&result, "mix")["agents"].as_array().map(Vec::len), Some(2));
    let read = |name: &str| std::fs::read_to_string(scratch.path(name)).unwrap_or_default();
    // End lines run side by side.
    let ended = || read("ended").lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let both = BTreeSet::from(["load-1", "load-2"].map(str::to_owned));
    assert_eq!((ended(), read("ended").lines().count()), (both.clone(), 2));
    assert_eq!(read("codes"), "0\n0\n", "both agents had ended");

    let wrong = file.replace("\"(/", "\"exit 3; (/");
    assert_ne!(wrong, file);
    scratch.write("there.toml", &wrong);
    let failed = scratch.kvdyno(&format!("{line} --listen 127.0.0.1:0 --data wipe --out s"));
    assert!(failed.expect(70).err.contains("exit status: 3"), "a start that fails is told");
    let count = read("ended").lines().count();
    assert_eq!((ended(), count), (both, 4), "what was started is ended");
}

/// A stranger is refused in one line, and the run does not suffer.
#[test]
fn strangers_and_one_too_many_are_refused_and_the_run_goes_on() {
    let (server, scratch) = (redis(), Scratch::new());
    let more = "--mix get=50,update=50 --requests 40k";
    let (conductor, address, token) = conducting(&scratch, &server, more);
    let stranger = agent(&scratch, &address, "not-the-token-of-this-run").wait();
    let stranger = stranger.expect_line(69, &["cannot join", "does not have this KVDYNO_TOKEN"]);
    assert!(!stranger.err.contains(&token));
    let mut plain = TcpStream::connect(&address).expect("the conductor");
    plain.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("it is sent");
    drop(plain);
    let agents = [0, 1].map(|_| agent(&scratch, &address, &token));
    let log = scratch.path("r/result.json");
    let mut conductor = conductor;
    conductor.until("the run", || log.exists());
    agent(&scratch, &address, &token).wait().expect_line(69, &["the run has its 2 agents"]);
    let ended = done(conductor.wait());
    // Two connections without the token came from one peer.
    assert_eq!(ended.err.matches("refused").count(), 2, "{}", ended.err);
    agents.into_iter().for_each(|agent| {
        agent.wait().expect(0);
    });
}

/// A load that agents cannot carry is refused before anything is begun.
#[test]
fn what_cannot_be_had_of_agents_is_refused_in_one_line() {
    let (server, scratch) = (redis(), Scratch::new());
    let refused = |more: &str, words: &[&str]| {
        let line = format!("run --records 500 --agents local:2 {more}");
        scratch.kvdyno(&line).expect_line(64, words);
    };
    let url = server.url();
    refused(&format!("--store {url} --linearizability"), &["linearizability", "a single process"]);
    refused(&format!("--store {url} --clients 1"), &["too few connections for 2 agents"]);
    for dry in ["", "--dry-run"] {
        let in_process = ["map: runs inside one process", "--testbed engine:NAME"];
        refused(&format!("--store map: {dry}"), &in_process);
        refused(&format!("--store lmdb:db {dry}"), &["lmdb:db runs inside one process"]);
        refused(&format!("--store cache(map:,null:)?ttl=none {dry}"), &["runs inside one process"]);
    }
    let plan = "run --records 500 --agents auto --store null: --dry-run";
    scratch.kvdyno(plan).expect_line(64, &["null: runs inside one process"]);
    assert!(!scratch.path("db").exists(), "a store was opened");
    // The conductor waits for no agent.
    let without = "run --records 500 --agents 2 --listen 127.0.0.1:0 --store null:";
    scratch.kvdyno(without).expect_line(64, &["runs inside one process"]);
    scratch.kvdyno("run --records 500 --agents 2 --store map:").expect_line(64, &["--listen"]);
    scratch.kvdyno("agent --conductor 127.0.0.1:1").expect_line(64, &["KVDYNO_TOKEN is not set"]);
}

/// Rank 0 finds that the suite is not there; the other rank does not wait for it, and is told why.
#[test]
fn a_conductor_that_does_not_begin_tells_the_agents_of_its_engine() {
    let scratch = Scratch::new();
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    let rank = |rank: &str| {
        let mut command = kvdyno(&format!(
            "run no-such-suite.toml --store redis://127.0.0.1:1 --agents auto --conductor 127.0.0.1:{}",
            port.port()
        ));
        command.env("KVDYNO_TOKEN", "0123456789abcdef0123456789abcdef");
        command.env("KVDYNO_COUNT", "2").env("KVDYNO_RANK", rank);
        scratch.spawn(command)
    };
    let begun = Instant::now();
    let (conductor, agent) = (rank("0"), rank("1"));
    let refused = agent.wait().expect(69);
    assert!(refused.err.contains("refused this agent: the run does not begin:"), "{}", refused.err);
    assert!(refused.err.contains("no-such-suite.toml"), "{}", refused.err);
    conductor.wait().expect(64);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// No agent joins these runs.
#[test]
fn what_can_be_known_is_said_before_agents_are_waited_for() {
    let (server, scratch) = (redis(), Scratch::new());
    std::fs::create_dir(scratch.path("r")).expect("a folder");
    scratch.write("r/result.json", "{}");
    let waits = "--agents 2 --listen 127.0.0.1:0 --records 100 --clients 4";
    let ended = |line: String| {
        let ended = scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>()).wait();
        assert!(!ended.err.contains("waiting for"), "{}", ended.err);
        ended
    };
    let occupied = ended(format!("run {waits} --store {} --out r", server.url())).expect(64);
    assert!(occupied.err.contains("result"), "{}", occupied.err);
    ended(format!("run {waits} --store redis://127.0.0.1:1 --out new")).expect(69);
    let alone = format!("run --records 100 --clients 4 --store {} --out one", server.url());
    done(scratch.start(&alone.split_ascii_whitespace().collect::<Vec<_>>()).wait());
    let held = ended(format!("run {waits} --store {} --out new", server.url())).expect(64);
    assert!(held.err.contains("--data"), "{}", held.err);
    assert!(!scratch.path("new").exists(), "nothing was begun");
}
