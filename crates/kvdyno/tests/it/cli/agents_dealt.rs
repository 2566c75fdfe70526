//! Closed phases of several agents against a real Redis: by the server's own count the keys have the shares that were
//! asked for, however unequally quick agents are; and reads of others' records are judged.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::agents::{done, monitored, number, phase, redis};
use crate::one_server::RedisServer;
use crate::support::Scratch;

/// Zipfian keys, a few of which are hot.
const CLOSED: &str = r#"
name = "closed"
records = 1000
clients = 4
warmup = false
read-back = false

[[phase]]
name = "load"
label = "Load"
load = true

[[phase]]
name = "mix"
label = "Mix"
mix = { get = 90, update = 10 }
keys = "zipfian"
duration = "3s"
"#;

/// Returns the number of requests of one kind, and the share of each key in them.
fn shares(sent: &BTreeMap<(String, String), u64>, command: &str) -> (f64, BTreeMap<String, f64>) {
    let of_kind = || sent.iter().filter(|((kind, _), _)| kind == command);
    let all = of_kind().map(|(_, count)| count).sum::<u64>() as f64;
    (all, of_kind().map(|((_, key), count)| (key.clone(), *count as f64 / all)).collect())
}

/// Asserts that the shares of the hottest keys are the same, as far as chance allows.
fn assert_alike(
    alone: &BTreeMap<(String, String), u64>,
    together: &BTreeMap<(String, String), u64>,
    command: &str,
) {
    let ((of_one, one), (of_all, all)) = (shares(alone, command), shares(together, command));
    assert!(of_one > 1_000.0 && of_all > 1_000.0, "{command}: {of_one} {of_all}");
    let mut hottest: Vec<(&String, &f64)> = one.iter().collect();
    hottest.sort_by(|a, b| b.1.total_cmp(a.1));
    for (key, &share) in hottest.into_iter().take(10) {
        let other = all.get(key).copied().unwrap_or(0.0);
        let deviation = (share * (1.0 - share) * (1.0 / of_one + 1.0 / of_all)).sqrt();
        let off = (other - share).abs() / deviation;
        assert!(
            off < 5.0,
            "{command} {key}: {share:.4} alone, {other:.4} together, off by {off:.1} σ"
        );
    }
}

fn reasons(result: &Value) -> Vec<&str> {
    let reasons = result["runs"][0]["verdict"]["reasons"].as_array().expect("reasons");
    reasons.iter().filter_map(|reason| reason["name"].as_str()).collect()
}

/// One agent has two connections, and the two others one each: the first is about twice as quick.
#[test]
fn keys_have_the_shares_that_were_asked_for_at_any_speed_of_agents() {
    let (server, scratch) = (redis(), Scratch::new());
    scratch.write("closed.toml", CLOSED);
    let line = format!("run closed.toml --quiet --store {}", server.url());
    let alone = monitored(&server, || {
        done(scratch.kvdyno(&format!("{line} --out one")));
    });
    let together = monitored(&server, || {
        done(scratch.kvdyno(&format!("{line} --out three --agents local:3 --reads own")));
    });
    // Each record was written once by the load.
    for command in ["GET", "SET"] {
        assert_alike(&alone, &together, command);
    }
    let result = scratch.result("three");
    assert!(!reasons(&result).contains(&"keys-skewed"), "{:?}", reasons(&result));
    let mix = phase(&result, "mix");
    let agents = mix["agents"].as_array().expect("agents");
    let sum = |what: &str| agents.iter().filter_map(|agent| agent[what].as_u64()).sum::<u64>();
    let (read, judged) = (sum("foreign_reads"), sum("foreign_judged"));
    let reads = number(mix, "tally", "reads");
    assert!(2 * read > reads, "most records are another's: {read} of {reads}");
    assert!(10 * judged > 9 * read, "{judged} of {read} judged");
    let (all_judged, stamped) =
        (number(mix, "tally", "judged"), number(mix, "tally", "stamp_only"));
    assert_eq!((all_judged + stamped, stamped), (reads, read - judged), "{}", mix["tally"]);
}

/// Runs a script on the server.
fn eval(server: &RedisServer, script: &str) {
    let mut stream = TcpStream::connect(server.address()).expect("the server");
    let command = format!("*3\r\n$4\r\nEVAL\r\n${}\r\n{script}\r\n$1\r\n0\r\n", script.len());
    stream.write_all(command.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("an answer");
    assert_eq!(answer, "+OK\r\n", "{script}");
}

/// The server goes back to its state of a second before: both agents see that in the records of the other, too.
#[test]
fn an_agent_sees_that_a_record_of_another_is_stale() {
    let (server, scratch) = (redis(), Scratch::new());
    let line = format!(
        "run --agents local:2 --store {} --records 50 --clients 2 --mix get=95,update=5 --duration 6s \
         --set warmup=false --set read-back=false --quiet --out r",
        server.url()
    );
    let mut running = scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>());
    let log = scratch.path("r/timeline.csv");
    running.until("intervals of the phase `run`", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains(",run,")
    });
    let each = "for _, k in ipairs(redis.call('keys', '*')) do";
    let kept = "string.sub(k, 1, 5) == 'kept:'";
    eval(
        &server,
        &format!(
            "{each} redis.call('set', 'kept:' .. k, redis.call('get', k)) end return redis.status_reply('OK')"
        ),
    );
    std::thread::sleep(Duration::from_secs(1));
    eval(
        &server,
        &format!(
            "{each} if {kept} then redis.call('set', string.sub(k, 6), redis.call('get', k)) end end \
             return redis.status_reply('OK')"
        ),
    );
    running.wait().expect(1);
    let anomalies = std::fs::read_to_string(scratch.path("r/anomalies.jsonl")).expect("anomalies");
    let stale = anomalies.lines().filter(|line| line.contains("stale"));
    let (foreign, own): (Vec<&str>, Vec<&str>) =
        stale.partition(|line| line.contains("not read again: another agent owns it"));
    assert!(foreign.len() > 10 && own.len() > 10, "{} {}", foreign.len(), own.len());
}

/// Reads follow inserts, so each agent has to carry out the operations of its own records. One of two has two
/// connections of three, so the keys have other shares than was asked for. The result says so.
#[test]
fn a_phase_that_cannot_be_dealt_says_how_far_its_keys_are_off() {
    let (server, scratch) = (redis(), Scratch::new());
    let line = format!(
        "run --agents local:2 --store {} --records 1k --clients 3 --mix get=95,insert=5 --set keys=\"latest\" \
         --duration 3s --set warmup=false --set read-back=false --out r",
        server.url()
    );
    let ended = done(scratch.kvdyno(&line));
    let result = scratch.result("r");
    let found = result["runs"][0]["verdict"]["reasons"].as_array().expect("reasons").iter();
    let skewed = found.clone().find(|reason| reason["name"] == "keys-skewed");
    let skewed = skewed.unwrap_or_else(|| panic!("{:?}", reasons(&result)));
    assert!(skewed["figure"].as_f64() > Some(0.02), "{skewed}");
    assert!(ended.out.contains("went to other records than the key distribution"), "{}", ended.out);
    let judged = &phase(&result, "run")["tally"];
    assert_eq!(judged["judged"], judged["reads"], "each reads its own: {judged}");
}
