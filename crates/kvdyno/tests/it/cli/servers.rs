//! Real servers that refuse, are full, hold another program's data, die or stall under load.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::one_server::{RedisServer, RedisSettings};
use serde_json::Value;

use crate::support::{Running, Scratch};

fn redis(settings: RedisSettings) -> RedisServer {
    RedisServer::start(settings).expect("redis-server starts")
}

/// Sends inline commands that a test needs the server to carry out. Returns the answers as text.
fn ask(server: &RedisServer, commands: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).expect("the server");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    stream.write_all(format!("{commands}\r\nQUIT\r\n").as_bytes()).expect("commands are sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Starts a load on `server`, and waits until it is in the phase `run`.
fn under_load(scratch: &Scratch, url: &str, more: &str) -> Running {
    let line = format!("run --records 500 --clients 4 --out r --store {url} {more}");
    let mut running = scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>());
    let log = scratch.path("r/timeline.csv");
    running.until("intervals of the phase `run`", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains(",run,")
    });
    running
}

fn phase<'a>(result: &'a Value, name: &str) -> &'a Value {
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no phase {name}"))
}

fn sum(phase: &Value, what: &str) -> u64 {
    let series = phase["series"].as_array().expect("series").iter();
    series.map(|series| series[what].as_u64().expect("a count")).sum()
}

#[test]
fn wrong_passwords_are_told_and_never_shown() {
    let settings = RedisSettings { password: Some("sw0rdfish".into()), ..Default::default() };
    let server = redis(settings);
    let (address, scratch) = (server.address(), Scratch::new());
    for (user, words) in [(":gu3ss@", &["WRONGPASS", "password"]), ("", &["NOAUTH", "password"])] {
        let url = format!("redis://{user}{address}");
        let ended = scratch.kvdyno(&format!("run --records 1k --store {url}"));
        let ended = ended.expect_line(69, words);
        assert!(!ended.err.contains("gu3ss"), "{}", ended.err);
    }
    scratch.kvdyno(&format!("check --store {}", server.url())).expect(0);
    let run = format!("run --records 200 --duration 300ms --out r --store {}", server.url());
    let ended = scratch.kvdyno(&run).expect_done();
    let mut told = format!("{}{}", ended.out, ended.err);
    for file in std::fs::read_dir(scratch.path("r")).expect("the folder").flatten() {
        told += &String::from_utf8_lossy(&std::fs::read(file.path()).expect("a file"));
    }
    assert!(told.contains(&format!(":***@{address}")));
    assert!(!told.contains("sw0rdfish"), "the password is somewhere");
    // A rerun needs the password again.
    scratch.kvdyno("rerun r").expect_line(64, &["passwords are not kept"]);
}

#[test]
fn a_connection_carries_as_many_clients_as_its_pipeline_is_deep() {
    let server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let line = "run --records 200 --requests 4k --clients 8 --pipeline 4 --out r --store";
    scratch.kvdyno(&format!("{line} {}", server.url())).expect_done();
    let result = scratch.result("r");
    let group = &phase(&result, "run")["groups"][0];
    assert_eq!((&group["clients"], &group["pipeline"]), (&8.into(), &4.into()));
    // An engine in this process has nothing to pipeline.
    scratch
        .kvdyno("run --records 200 --pipeline 4 --store map:")
        .expect(69)
        .expect_words(&["no pipelining"]);
}

#[test]
fn records_of_a_megabyte_are_loaded() {
    let server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let line = "run --records 24 --value 1MB --requests 24 --clients 8 --out r --store";
    scratch.kvdyno(&format!("{line} {}", server.url())).expect_done();
    let result = scratch.result("r");
    let load = phase(&result, "load");
    assert_eq!((sum(load, "ok"), sum(load, "failed")), (24, 0), "each batch is one record");
}

#[test]
fn tls_to_a_plain_port_is_told() {
    let server = redis(RedisSettings::default());
    let url = format!("rediss://{}", server.address());
    Scratch::new()
        .kvdyno(&format!("run --records 1k --store {url}"))
        .expect_line(69, &["TLS port", "answers Redis's protocol"]);
}

#[test]
fn records_of_an_earlier_run_are_refused_reused_or_wiped() {
    let server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    ask(&server, "SET somebody-else 1");
    let run = |more: &str| {
        scratch
            .kvdyno(&format!("run --records 300 --requests 1000 --store {} {more}", server.url()))
    };
    run("--out a").expect_done();
    run("--out b").expect_line(64, &["--data reuse", "--data wipe"]);
    assert!(!scratch.path("b").exists());
    run("--out c --data reuse").expect_done();
    assert_eq!(scratch.result("c")["runs"][0]["phases"][0]["load"], false, "nothing to load");
    run("--out d --data wipe").expect_done();
    assert!(ask(&server, "EXISTS somebody-else").contains(":1"), "only own keys are deleted");
}

#[test]
fn only_what_is_missing_is_loaded_and_nothing_foreign_is_written_over() {
    let server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let run = |out: &str, more: &str| {
        let mix = "--mix get=50,update=50";
        let line = format!("run --records 2000 --requests 500 {mix} --quiet --out {out} {more}");
        scratch.kvdyno(&format!("{line} --store {}", server.url()))
    };
    run("a", "").expect_done();
    let some_key = || ask(&server, "RANDOMKEY").lines().nth(1).expect("a key").to_owned();
    let (one, other) = (some_key(), some_key());
    ask(&server, &format!("DEL {one} {other}"));
    let missing = if one == other { 1 } else { 2 };
    run("b", "--data reuse").expect_done();
    let loaded = |out: &str| {
        let result = scratch.result(out);
        let series = phase(&result, "load")["series"].as_array().expect("series").clone();
        series.iter().map(|one| one["records"].as_u64().expect("records")).sum::<u64>()
    };
    assert_eq!((loaded("a"), loaded("b")), (2_000, missing), "what was missing, and no more");
    assert!(ask(&server, "DBSIZE").contains(":2000"));

    // With nothing missing it would be updated; with something, loaded over.
    let foreign = some_key();
    for value in ["of-somebody-else", "of-somebody-else-and-longer-than-a-stamp-is"] {
        ask(&server, &format!("SET {foreign} {value}"));
        run("c", "--data reuse").expect_line(64, &["1 of the keys", &foreign, "--data wipe"]);
        assert!(ask(&server, &format!("GET {foreign}")).contains(value));
    }
    ask(&server, &format!("DEL {foreign}\r\nRPUSH {foreign} x"));
    run("d", "--data reuse").expect_line(69, &["1 of the", "WRONGTYPE", "--data wipe"]);
    assert!(ask(&server, &format!("TYPE {foreign}")).contains("list"));
    run("e", "--data wipe").expect_done();
    assert_eq!(loaded("e"), 2_000);
}

#[test]
fn two_runs_on_the_same_records_are_told_and_the_store_is_not_accused() {
    let server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let line = format!("run --records 500 --store {}", server.url());
    // The first run has loaded its records, and measures.
    let first = under_load(&scratch, &server.url(), "--mix get=50,update=50 --duration 6s --quiet");
    let second = "--mix get=50,update=50 --data reuse --duration 2s --out second --quiet";
    let second = scratch.kvdyno(&format!("{line} {second}"));
    let ended = first.wait();
    let told = format!("{}{}", ended.out, ended.err);
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let run = scratch.result("r")["runs"][0].clone();
    let reasons = run["verdict"]["reasons"].as_array().expect("reasons");
    let reason = reasons.iter().find(|reason| reason["name"] == "other-run").expect(&told);
    assert_eq!(reason["level"], "invalid", "{told}");
    assert!(told.contains("values of another run, written meanwhile"), "{told}");
    assert!(told.contains("end it, or share one load with --agents"), "{told}");
    ended.expect(2);
    let text = std::fs::read_to_string(scratch.path("r/anomalies.jsonl")).unwrap_or_default();
    assert_eq!(text, "", "nothing is wrong with the store");

    // For the second run the first run's values are older than its own: they are named, and proven to be no fault.
    let run = scratch.result("second")["runs"][0].clone();
    let reasons = run["verdict"]["reasons"].as_array().expect("reasons");
    assert!(reasons.iter().any(|reason| reason["name"] == "other-run"), "{second:#?}");
    let phases = run["phases"].as_array().expect("phases");
    let writers = |phase: &Value| phase["tally"]["other_writers"].as_array().map_or(0, Vec::len);
    assert_eq!(phases.iter().map(writers).max(), Some(1), "{run}");
    second.expect(2);
}

/// A value of a run that is over is no other run's doing: here it comes back after its record was written again.
#[test]
fn values_of_a_run_that_is_over_are_told_as_the_stores_fault() {
    let server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let line = format!("run --records 500 --store {} --mix get=50,update=50", server.url());
    scratch.kvdyno(&format!("{line} --requests 500 --out before --quiet")).expect_done();
    let key = ask(&server, "RANDOMKEY").lines().nth(1).expect("a key").to_owned();
    ask(&server, &format!("COPY {key} kept"));
    let more = "--mix get=50,update=50 --data wipe --duration 3s";
    let running = under_load(&scratch, &server.url(), more);
    // An update may come before a get.
    for _ in 0..20 {
        ask(&server, &format!("COPY kept {key} REPLACE"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = running.wait().expect(1);
    assert!(ended.out.contains("phantom"), "{}", ended.out);
    assert!(!ended.out.contains("other-run"), "{}", ended.out);
}

#[test]
fn foreign_values_under_our_keys_are_corrupt() {
    let server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let run = |more: &str| {
        scratch.kvdyno(&format!(
            "run --records 50 --requests 2000 --mix get=100 --store {} {more}",
            server.url()
        ))
    };
    run("--out a").expect_done();
    let key = ask(&server, "RANDOMKEY").lines().nth(1).expect("a key").to_owned();
    ask(&server, &format!("SET {key} of-somebody-else"));
    let ended = run("--out b --data reuse").expect(1);
    assert!(ended.out.contains("ANOMALIES:") && ended.out.contains("corrupt"), "{}", ended.out);
    let text = std::fs::read_to_string(scratch.path("b/anomalies.jsonl")).expect("anomalies");
    let records: std::collections::BTreeSet<String> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["record"].to_string())
        .collect();
    assert_eq!(records.len(), 1, "{text}");
    ask(&server, &format!("DEL {key}\r\nRPUSH {key} x"));
    let ended = run("--out c --data reuse");
    assert!(ended.out.contains("WRONGTYPE") && ended.out.contains("(error-ratio"), "{}", ended.out);
}

#[test]
fn a_server_that_dies_ends_the_run_and_what_was_measured_is_kept() {
    let mut server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let url = server.url();
    let running = under_load(&scratch, &url, "--duration 60s --give-up 2s");
    server.kill9().expect("it is killed");
    let ended = running.wait().expect_words(&[&url, "phase run", "see whether the server runs"]);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    let ended = ended.expect(69);
    assert!(ended.took < Duration::from_secs(40), "{:?}", ended.took);
    let result = scratch.result("r");
    assert_eq!(result["status"]["state"], "failed");
    assert_eq!(result["runs"][0]["status"]["state"], "failed");
    assert!(sum(phase(&result, "load"), "ok") > 0);
    assert!(sum(phase(&result, "run"), "ok") > 0, "figures of the broken phase");
    assert!(!phase(&result, "run")["errors"].as_array().expect("errors").is_empty());
    assert!(ended.out.contains("Report: r/report.html"), "{}", ended.out);
}

#[test]
fn a_stall_shows_in_the_figures_and_the_run_goes_on() {
    let mut server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let url = format!("{}?timeout=20s", server.url());
    let running = under_load(&scratch, &url, "--duration 6s");
    server.pause().expect("it is paused");
    std::thread::sleep(Duration::from_secs(2));
    server.resume().expect("it goes on");
    running.wait().expect_done();
    let result = scratch.result("r");
    assert_eq!(result["status"]["state"], "complete");
    let run = phase(&result, "run");
    let longest = run["series"][0]["service"]["max_ns"].as_u64().expect("a latency");
    assert!((1_900_000_000..5_000_000_000).contains(&longest), "{longest}");
    assert_eq!(run["errors"].as_array().expect("errors").len(), 0);
}

#[test]
fn a_rate_out_of_reach_is_told_with_both_figures() {
    let server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let line = "run --records 500 --duration 2s --rate 5M/s --out r --store";
    let ended = scratch.kvdyno(&format!("{line} {}", server.url())).expect(2);
    let text = ended.out.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    // The client's thread or the server is the limit at such a rate, and either is told.
    let both = text.contains(" of 5,000,000 ops/s") && text.contains("; backlog ");
    assert!(both, "{text}");
    assert!(!phase(&scratch.result("r"), "run")["unstarted"].is_null());
}

#[test]
fn more_records_than_the_server_s_memory_end_the_run() {
    let max_memory = Some((3 << 20, "noeviction".to_owned()));
    let server = redis(RedisSettings { max_memory, ..Default::default() });
    let scratch = Scratch::new();
    let line = "run --records 1M --value 1KB --give-up 2s --out r --store";
    let ended = scratch.kvdyno(&format!("{line} {}", server.url())).expect(69);
    let ended = ended.expect_words(&["OOM", "more room"]);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    let result = scratch.result("r");
    let load = phase(&result, "load");
    assert_eq!(load["errors"][0]["class"], "full");
    assert!(sum(load, "ok") > 0);
}

#[test]
fn a_second_signal_does_not_wait_for_a_paused_server() {
    let mut server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let url = format!("{}?timeout=60s", server.url());
    let mut running = under_load(&scratch, &url, "--duration 300s --give-up 300s");
    server.pause().expect("it is paused");
    std::thread::sleep(Duration::from_millis(500));
    running.signal(libc::SIGINT);
    std::thread::sleep(Duration::from_secs(2));
    assert!(running.is_running(), "the first waits for the answers");
    let second = std::time::Instant::now();
    running.signal(libc::SIGINT);
    running.wait().expect(130);
    assert!(second.elapsed() < Duration::from_secs(10), "{:?}", second.elapsed());
    let result = scratch.result("r");
    assert_eq!(result["status"]["state"], "interrupted");
    assert!(sum(phase(&result, "run"), "ok") > 0);
    assert!(scratch.path("r/report.html").exists());
}

#[test]
fn what_a_driver_noticed_is_in_every_output() {
    let (one, two) = (redis(RedisSettings::default()), redis(RedisSettings::default()));
    let scratch = Scratch::new();
    let url = format!("redis+sharded://{},{}", one.address(), two.address());
    let run = format!("run --records 2k --duration 300ms --out r --store {url}");
    let ended = scratch.kvdyno(&run).expect_done();
    let row = |line: &str| {
        line.starts_with("run") && line.contains("keys on the fullest server, over the mean  ")
    };
    assert!(ended.out.lines().any(row), "{}", ended.out);
    let result = scratch.result("r");
    let figures = phase(&result, "run")["figures"].as_array().expect("figures").clone();
    let of = |name: &str| figures.iter().find(|figure| figure["name"] == name).expect("a figure");
    let keys = of("keys on the fullest server, over the mean");
    let counts = keys["detail"].as_str().expect("a detail").split(", ");
    let counts = counts.map(|part| part.rsplit_once(' ').expect("a count").1);
    let records: u64 = counts.map(|count| count.parse::<u64>().expect("a number")).sum();
    assert!((2_000..=2_001).contains(&records), "the heartbeat record is one: {records}");
    assert_eq!(of("chi-square of requests")["unit"], "ratio");
    let page = std::fs::read_to_string(scratch.path("r/report.html")).expect("the page");
    assert!(page.contains("Noticed by the drivers"));
}

/// The soft limit of open files is no limit; the hard one is told with the command that raises it.
#[test]
fn more_clients_than_open_files_are_told_what_to_type() {
    let server = redis(RedisSettings::default());
    let scratch = Scratch::new();
    let limited = |limit: &str, out: &str| {
        let line = format!(
            "ulimit {limit}; exec kvdyno run --store {} --records 100 --clients 300 --duration 300ms \
             --data wipe --out {out}",
            server.url()
        );
        scratch.shell(&line).wait()
    };
    limited("-Sn 200", "a").expect_done();
    let ended = limited("-n 200", "b").expect(69);
    assert!(ended.err.contains("`ulimit -n 556` or more"), "{}", ended.err);
    assert!(!ended.err.contains("start the server"), "it runs: {}", ended.err);
    let reasons = &scratch.result("b")["runs"][0]["verdict"]["reasons"];
    assert_eq!(reasons[0]["name"], "incomplete", "{reasons:#}");
}
