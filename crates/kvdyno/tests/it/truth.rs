//! Reports of kvdyno compared with what is known to have happened: runs on the processes of the testbed `sim`, whose
//! nodes log each thing that they do wrong. docs/TRUTH.md.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use crate::support::suite::{self, Suite};
use crate::support::{Running, Scratch, number_at};
use serde_json::Value;

/// Longest wait for anything, on a machine that is fully loaded.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run on a testbed of its own, under way.
struct Run {
    scratch: Scratch,
    running: Running,
}

/// A run that is over.
struct Ran {
    scratch: Scratch,
    code: i32,
    told: String,
    result: Value,
    anomalies: Vec<Value>,
}

impl Run {
    /// Starts `suite` on `sim:NODES?SETTINGS`.
    fn start(nodes: u16, settings: &str, suite: &Suite) -> Run {
        let scratch = Scratch::new();
        suite::write(&scratch.path("truth.toml"), suite);
        let testbed = format!("sim:{nodes}?folder={}{settings}", scratch.path("sim").display());
        let arguments = ["run", "truth.toml", "--quiet", "--out", "out", "--testbed", &testbed];
        let running = scratch.start(&arguments);
        Run { scratch, running }
    }

    /// Waits until the primary holds so many records, and sends a line to it.
    fn send_to_primary(&self, records: u64, words: &str) {
        self.send_lines("master", records, &[words]);
    }

    /// Waits until nodes of this role hold so many records, and sends one line to each.
    fn send_lines(&self, role: &str, records: u64, words: &[&str]) {
        let begin = Instant::now();
        let is = |node: &String| {
            said(node, "INFO").is_some_and(|info| info.contains(&format!("role:{role}")))
        };
        let held =
            |node: &String| said(node, "DBSIZE")?.strip_prefix(':')?.trim().parse::<u64>().ok();
        loop {
            let nodes: Vec<String> = self.nodes().into_iter().filter(is).collect();
            if nodes.len() >= words.len()
                && nodes.iter().all(|node| held(node).is_some_and(|held| held >= records))
            {
                for (node, words) in nodes.iter().zip(words) {
                    assert_eq!(said(node, words).as_deref(), Some("+OK\r\n"), "{words}");
                }
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "no {role} with {records} records");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn nodes(&self) -> Vec<String> {
        let settings = std::fs::read(self.scratch.path("sim/sim-1/sim.json"));
        let settings: Value =
            serde_json::from_slice(&settings.unwrap_or_default()).unwrap_or_default();
        let nodes = settings["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().map(|node| node.as_str().unwrap().to_owned()).collect()
    }

    /// Waits until the truth tells `count` things of a kind.
    fn await_truth(&self, kind: &str, count: usize) {
        let begin = Instant::now();
        while truth(&self.scratch, kind).len() < count {
            assert!(begin.elapsed() < PATIENCE, "{count} × {kind} did not happen");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn end(self) -> Ran {
        let ended = self.running.wait();
        let out = self.scratch.path("out");
        let lines = std::fs::read_to_string(out.join("anomalies.jsonl")).unwrap_or_default();
        let result = std::fs::read(out.join("result.json")).unwrap_or_default();
        Ran {
            code: ended.code(),
            told: ended.out + &ended.err,
            result: serde_json::from_slice(&result).unwrap_or_default(),
            anomalies: lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            scratch: self.scratch,
        }
    }
}

/// Returns the answer of a node to a line: one line, or a text of a known length.
fn said(node: &str, line: &str) -> Option<String> {
    let mut stream = TcpStream::connect(node).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(format!("{line}\r\n").as_bytes()).ok()?;
    let mut reader = BufReader::new(stream);
    let mut answer = String::new();
    reader.read_line(&mut answer).ok()?;
    if let Some(length) = answer.strip_prefix('$') {
        let mut text = vec![0; length.trim().parse().ok()?];
        reader.read_exact(&mut text).ok()?;
        return String::from_utf8(text).ok();
    }
    Some(answer)
}

/// Returns the entries of a kind that the nodes logged, in the order of time.
fn truth(scratch: &Scratch, kind: &str) -> Vec<Value> {
    let file = |node: u16| scratch.path(&format!("sim/sim-{node}/truth.jsonl"));
    let texts = (1..=5).filter_map(|node| std::fs::read_to_string(file(node)).ok());
    let text: String = texts.collect();
    // The last line may be on its way.
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut lines: Vec<Value> = lines.filter(|line| line["kind"] == kind).collect();
    lines.sort_by_key(|line| number_at(line, "at_ns"));
    lines
}

/// Returns the record that a key names.
fn record_of(line: &Value) -> u64 {
    line["key"].as_str().unwrap().parse().unwrap()
}

impl Ran {
    fn truth(&self, kind: &str) -> Vec<Value> {
        truth(&self.scratch, kind)
    }

    fn phase(&self, name: &str) -> &Value {
        let phases = self.result["runs"][0]["phases"].as_array();
        let phase = phases.and_then(|phases| phases.iter().find(|phase| phase["name"] == name));
        phase.unwrap_or_else(|| panic!("no phase {name}: {}", self.told))
    }

    /// Returns the records of which an acknowledged write is gone; each is named once.
    fn lost(&self) -> BTreeSet<u64> {
        let lost = self.anomalies.iter().filter(|anomaly| anomaly["kind"] == "lost");
        let records: Vec<u64> = lost.map(|anomaly| number_at(anomaly, "record")).collect();
        let set: BTreeSet<u64> = records.iter().copied().collect();
        assert_eq!(records.len(), set.len(), "one was named twice: {}", self.told);
        set
    }

    /// Asserts that the account of the inserts names just these as lost, with ten of their keys, and that this breaks
    /// a promise.
    fn accounts_for(&self, known: &BTreeSet<u64>) {
        self.names_as_lost(known);
        assert_eq!(self.code, 1, "{}", self.told);
    }

    /// Asserts that the account of the inserts names just these as lost, with ten of their keys.
    fn names_as_lost(&self, known: &BTreeSet<u64>) {
        assert_eq!(self.lost(), *known, "{}", self.told);
        let writes = &self.phase("insert")["writes"];
        assert_eq!(number_at(writes, "lost"), known.len() as u64, "{writes}");
        assert_eq!(writes["exact"], true, "{writes}");
        let examples = writes["examples"].as_array().unwrap();
        assert_eq!(examples.len(), known.len().min(10));
        assert!(examples.iter().all(|example| known.contains(&record_of(example))), "{writes}");
        assert_eq!(self.anomalies.len(), known.len(), "{}", self.told);
    }

    /// Returns the longest time in which no insert succeeded, ms.
    fn unavailable(&self) -> f64 {
        number_at(&self.phase("insert")["unavailable"]["writes"], "length_ns") as f64 / 1e6
    }

    /// Asserts that nothing was wrong with any read.
    fn is_whole(&self) {
        assert!(self.anomalies.is_empty(), "{:?}: {}", self.anomalies.first(), self.told);
        let tally = &self.phase("insert:read-back")["tally"];
        assert_eq!(number_at(tally, "unknown"), 0);
        let copies = &self.phase("insert")["writes"]["copies"];
        assert!(copies["not_shown"] == "", "{copies}");
        assert!(matches!(self.code, 0 | 2), "{}: {}", self.code, self.told);
    }

    /// Returns the begin of the phase of inserts, ns since 1970.
    fn began(&self) -> u64 {
        let started = self.phase("insert")["started"].as_str().unwrap();
        let started = humantime::parse_rfc3339(started).unwrap();
        started.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
    }

    /// Returns the log entries of nodes that took over since the inserts began.
    fn successions(&self) -> Vec<Value> {
        let mut all = self.truth("takes-over");
        all.retain(|line| number_at(line, "at_ns") > self.began());
        all
    }

    /// Asserts that acknowledged writes are gone, and that each was on a node that gave it up.
    fn lost_what_was_discarded(&self) {
        let discarded: BTreeSet<u64> = self.truth("discarded").iter().map(record_of).collect();
        let lost = self.lost();
        assert!(!lost.is_empty(), "{}", self.told);
        assert!(lost.is_subset(&discarded), "{lost:?} of {discarded:?}: {}", self.told);
        self.accounts_for(&lost);
    }

    /// Returns the time from the first error of the inserts to the last.
    fn errors_lasted(&self) -> Duration {
        let errors = self.phase("insert")["errors"].as_array().unwrap();
        let first = errors.iter().map(|error| number_at(error, "first_at_ns")).min();
        let last = errors.iter().map(|error| number_at(error, "last_at_ns")).max();
        let (first, last) = first.zip(last).unwrap_or_else(|| panic!("no error: {}", self.told));
        Duration::from_nanos(last - first)
    }
}

/// Form of the keys, which are record numbers, so that both sides name a record alike.
const KEY: &str = "key = { form = \"decimal\", length = 16 }";

/// Makes a suite of inserts only, so that loss is exact.
fn inserts(records: u64) -> Suite {
    Suite::of(records)
        .line(KEY)
        .phase("insert", "insert")
        .set("requests", "records")
        .set("clients", 10)
        .set("rate", "1k/s")
}

/// Makes a suite with a fault of the primary after three seconds; all is well again before the inserts end.
fn with_fault(act: &str, repair: &str) -> Suite {
    let fault = inserts(8_000).fault(act).set("node", "primary");
    fault.set("at", "3s").set("repair", repair)
}

#[test]
fn thirty_seven_lost_inserts_are_reported_as_those_thirty_seven() {
    let run = Run::start(1, "", &inserts(5_000));
    run.send_to_primary(500, "SIM LOSE 37");
    let ran = run.end();
    let known: BTreeSet<u64> = ran.truth("lose").iter().map(record_of).collect();
    assert_eq!(known.len(), 37);
    ran.accounts_for(&known);
}

#[test]
fn inserts_that_no_replica_had_when_the_primary_was_killed_are_reported_one_by_one() {
    let run = Run::start(3, "&takeover=1s", &with_fault("kill", "1s"));
    run.send_to_primary(500, "SIM UNREPLICATED 37");
    let ran = run.end();
    let known: BTreeSet<u64> = ran.truth("unreplicated").iter().map(record_of).collect();
    assert_eq!(known.len(), 37, "{}", ran.told);
    ran.names_as_lost(&known);
    // A store without a log promises nothing of a killed process; a build of the tests is INVALID.
    assert_eq!(ran.code, 2, "{}", ran.told);
    assert_eq!(ran.successions().len(), 1, "{}", ran.told);
}

#[test]
fn a_killed_primary_whose_replicas_have_everything_costs_nothing_but_the_takeover() {
    let settings = "&takeover=1s&ack=after";
    let ran = Run::start(3, settings, &with_fault("kill", "1500ms")).end();
    ran.is_whole();
    let led = ran.successions();
    assert_eq!(led.len(), 1, "{led:?}");
    // The successor came when it was due, a second after the kill.
    let kill = &ran.phase("insert")["faults"][0];
    let killed = number_at(kill, "began_ns")..=number_at(kill, "ended_ns") + 50_000_000;
    let due = number_at(&led[0], "at_ns") - ran.began() - 1_000_000_000;
    assert!(killed.contains(&due), "{due} ns: {kill}");
    // No request could be served in that second.
    assert!(ran.unavailable() >= 900.0, "{} ms: {}", ran.unavailable(), ran.told);
}

#[test]
fn writes_that_replicas_confirmed_and_have_not_are_named_with_who_lacks_them() {
    let run = Run::start(3, "&takeover=10s&ack=after", &inserts(5_000));
    run.send_lines("slave", 500, &["SIM SKIP 4", "SIM SKIP 5"]);
    let ran = run.end();
    // No read of the run has met them, and nothing is lost while the primary lives.
    ran.is_whole();
    let known: BTreeSet<(u64, String)> = ran
        .truth("skip")
        .iter()
        .map(|line| (record_of(line), format!("sim-{}", number_at(line, "node"))))
        .collect();
    assert_eq!(known.len(), 9);
    let copies = &ran.phase("insert")["writes"]["copies"];
    let figures = ["asked", "compared", "partly", "late"].map(|key| number_at(copies, key));
    assert_eq!(figures, [5_000, 5_000, 0, 0], "{copies}");
    let mut lacking = BTreeSet::new();
    for example in copies["examples"].as_array().unwrap() {
        let found = example["found"].as_array().unwrap();
        assert_eq!(found.len(), 3, "{example}");
        for copy in found {
            match copy[1].as_str().unwrap() {
                "nothing" => {
                    let node = copy[0].as_str().unwrap().to_owned();
                    lacking.insert((number_at(example, "record"), node));
                }
                text => assert!(text.starts_with("version 1"), "{example}"),
            }
        }
    }
    assert_eq!(lacking, known, "{copies}");
    let records: BTreeSet<u64> = known.iter().map(|(record, _)| *record).collect();
    assert_eq!(number_at(copies, "differ"), records.len() as u64, "{copies}");
    let told = format!("replicas differ on {} records: 3 copies of all 5,000", records.len());
    let one_line = ran.told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains(&told), "{}", ran.told);
}

#[test]
fn what_a_paused_primary_had_to_itself_is_lost_and_nothing_else() {
    // It passes its writes on late; while it stands still another takes over.
    let settings = "&takeover=1s&lag=200ms";
    let ran = Run::start(3, settings, &with_fault("pause", "2s")).end();
    ran.lost_what_was_discarded();
}

#[test]
fn what_a_primary_took_that_was_cut_off_from_its_replicas_is_lost_and_nothing_else() {
    let suite = with_fault("partition", "2s").set("from", "nodes");
    let ran = Run::start(3, "&takeover=1s", &suite).end();
    ran.lost_what_was_discarded();
    assert_eq!(ran.successions().len(), 1, "{}", ran.told);
}

#[test]
fn two_seconds_of_refusals_are_two_seconds() {
    // On a busy machine kvdyno itself may stand still just when they begin or end; not every time.
    let mut reported = Vec::new();
    for _ in 0..6 {
        let run = Run::start(1, "", &inserts(5_000));
        run.send_to_primary(500, "SIM DOWN 2000");
        let ran = run.end();
        assert!(ran.anomalies.is_empty(), "{}", ran.told);
        let both = [ran.errors_lasted().as_secs_f64() * 1e3, ran.unavailable()];
        if both.iter().all(|millis| (millis - 2_000.0).abs() <= 50.0) {
            return;
        }
        reported.push(both);
    }
    panic!("errors over, and no success for, so many ms: {reported:?}");
}

#[test]
fn old_versions_are_reported_with_how_old_they_are() {
    let mix = Suite::of(20).line(KEY).load().phase("mix", "get = 50, update = 50");
    let run = Run::start(1, "", &mix.set("rate", "2k/s").set("duration", "6s"));
    for behind in 1..=5 {
        run.send_to_primary(20, &format!("SIM STALE 20 {behind}"));
        run.await_truth("stale", 20 * behind);
    }
    let ran = run.end();
    let known = ran.truth("stale");
    let known: Vec<(u64, u64)> =
        known.iter().map(|line| (record_of(line), number_at(line, "more"))).collect();
    let found: Vec<(u64, u64)> = ran
        .anomalies
        .iter()
        .map(|a| {
            assert_eq!(a["kind"], "stale", "{a}");
            (number_at(a, "record"), number_at(a, "floor") - number_at(a, "seen"))
        })
        .collect();
    assert_eq!(found, known, "{}", ran.told);
    let stale = &ran.phase("mix")["stale"];
    let figures = ["reads", "least_versions", "most_versions"].map(|key| number_at(stale, key));
    assert_eq!(figures, [100, 1, 5], "{stale}");
    assert_eq!(ran.code, 1);
}

#[test]
fn what_survives_a_kill_of_all_nodes_goes_by_the_log() {
    let killed = inserts(5_000).fault("kill").set("node", "all");
    let suite = killed.set("at", "3s").set("repair", "500ms");
    let kept = Run::start(3, "&ack=after&log=disk", &suite).end();
    kept.is_whole();
    let gone = Run::start(3, "&ack=after", &suite).end();
    // All that was acknowledged in three seconds at 1,000 a second; fewer on a busy machine.
    let lost = gone.lost().len();
    assert!((500..=3_100).contains(&lost), "{lost}: {}", gone.told);
}

#[test]
fn a_healthy_group_is_linearizable_and_one_that_serves_old_values_is_not() {
    let suite = Suite::of(500)
        .line(KEY)
        .load()
        .phase("insert", "get = 50, update = 50")
        .set("clients", 16)
        .set("linearizability", true)
        .set("rate", "4k/s")
        .set("duration", "3s");
    let healthy = Run::start(3, "&ack=after&takeover=10s", &suite).end();
    healthy.is_whole();
    let answer = |ran: &Ran| ran.phase("insert")["linearizability"]["answer"].clone();
    assert_eq!(answer(&healthy), "ok", "{}", healthy.told);
    let run = Run::start(3, "&takeover=10s", &suite);
    run.send_to_primary(500, "SIM STALE 5000 1");
    let lying = run.end();
    assert_eq!((answer(&lying), lying.code), ("violated".into(), 1), "{}", lying.told);
}
