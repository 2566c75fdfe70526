//! Power cuts and acknowledged writes: of `sim`, whose truth is known, a cut takes just what it had not synced; of
//! Redis what its setting says. docs/TRUTH.md, docs/FAULTS.md.

mod known;
mod own_parts;
mod planted;

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::suite::Suite;
use crate::support::{Bench, Outcome, grouped, number_at};
use known::Known;
use kvdyno_core::suite::builtin;
use serde_json::Value;
use xtask::durability::{CutRow, cut_off};

/// Makes a suite that loads some records.
fn loaded() -> Suite {
    let suite = Suite::of(200).set("clients", 4);
    suite.line("key = { form = \"decimal\", length = 16 }").load()
}

/// Makes inserts at this rate, with a cut every second or so: each time the node comes back after 100 ms.
fn cuts(rate: &str, seconds: u32) -> Suite {
    cuts_after(loaded(), rate, seconds)
}

/// Makes the same after other phases.
fn cuts_after(before: Suite, rate: &str, seconds: u32) -> Suite {
    let cut = before.phase("cut", "insert").set("rate", rate);
    let cut = cut.set("duration", format!("{seconds}s"));
    let cut = cut.set("read-back", true).fault("power").set("node", "all").set("at", "700ms");
    cut.set("repair", "100ms").set("every", "1s")
}

/// Makes as many cuts as fit into this time, one soon after the other, on a disk that loses so much.
fn many_cuts(rate: &str, seconds: u32, lose: &str) -> Suite {
    let cut = loaded().phase("cut", "insert").set("rate", rate);
    let cut = cut.set("duration", format!("{seconds}s"));
    let cut = cut.set("read-back", true).fault("power").set("node", "all").set("lose", lose);
    cut.set("at", "400ms").set("spread", "100ms").set("repair", "50ms").set("every", "350ms")
}

/// Runs again until so many cuts were made, or as many as `KVDYNO_POWER_CUTS` says, then in longer runs; `one` makes
/// a run of so many seconds and returns its cuts. Returns the number of cuts.
fn until_cut(enough: usize, seconds: u32, mut one: impl FnMut(u32) -> usize) -> usize {
    let cuts_of_user = std::env::var("KVDYNO_POWER_CUTS").ok().and_then(|cuts| cuts.parse().ok());
    let (enough, seconds) = cuts_of_user.map_or((enough, seconds), |cuts| (cuts, 25));
    let mut cuts = 0;
    while cuts < enough {
        cuts += one(seconds);
    }
    cuts
}

/// Result of one run on a testbed.
struct Cut {
    outcome: Outcome,
    writes: Value,
    cuts: usize,
    /// Requests that the client waited for in vain.
    timed_out: u64,
}

fn run(bench: &Bench, suite: &Suite, testbed: &str) -> Cut {
    let suite = bench.suite(suite);
    let outcome = bench.run(&["run", &suite, "--quiet", "--testbed", testbed]);
    let phase = outcome.phases().iter().find(|phase| phase["name"] == "cut").cloned();
    let phase = phase.unwrap_or_else(|| panic!("{}{}", outcome.stdout, outcome.stderr));
    let faults = phase["faults"].as_array().expect("faults");
    for fault in faults {
        assert_eq!(fault["error"], Value::Null, "{fault}");
    }
    let power: Vec<&Value> = faults.iter().filter(|fault| fault["what"] == "power").collect();
    for (fault, repair) in power.iter().zip(faults.iter().filter(|f| f["what"] == "start again")) {
        let used = |of: &Value| of["used"].as_str().unwrap_or_default().to_owned();
        let disk = if testbed.contains("disk=xfs") { "xfs (rw," } else { "ext4 (rw," };
        for part in [disk, "of Linux ", "journal not flushed", "thrown away"] {
            assert!(used(fault).contains(part), "{fault}");
        }
        assert!(used(repair).contains("mounted again, its journal replayed"), "{repair}");
    }
    let (writes, cuts) = (phase["writes"].clone(), power.len());
    assert!(cuts > 0, "{faults:?}");
    assert_eq!(writes["exact"], true, "{writes}");
    let errors = phase["errors"].as_array().expect("errors").iter();
    let timed_out = errors.filter(|error| error["class"] == "timeout");
    let timed_out = timed_out.map(|error| number_at(error, "count")).sum();
    Cut { outcome, writes, cuts, timed_out }
}

/// Returns the output without the ends of lines.
fn flowing(outcome: &Outcome) -> String {
    outcome.stdout.split_whitespace().collect::<Vec<&str>>().join(" ")
}

impl Cut {
    fn lost(&self) -> u64 {
        number_at(&self.writes, "lost")
    }

    /// Asserts that nothing is wrong but losses.
    fn only_lost(&self) {
        self.outcome.only("lost");
        assert_eq!(self.lost(), self.outcome.named("lost") as u64, "{}", self.outcome.stdout);
    }
}

fn records(outcome: &Outcome) -> BTreeSet<u64> {
    let lost = outcome.anomalies.iter().filter(|anomaly| anomaly["kind"] == "lost");
    lost.map(|anomaly| number_at(anomaly, "record")).collect()
}

fn sim(truth: &Path, more: &str) -> String {
    format!("sim:1?takeover=200ms&log=disk&disk=ext4&truth={}{more}", truth.display())
}

/// Asserts that kvdyno's account of the acknowledged writes is what the node knows, record by record. A cut may come
/// between an answer and the node's note that it was sent: such a write is in question. So is a write that was
/// answered after the client had given up, as happens on a disk that takes seconds to sync. No other is.
fn agrees(cut: &Cut, known: &Known) -> usize {
    assert_eq!(known.cuts().count(), cut.cuts);
    let acknowledged = known.acknowledged().certain.len() as u64;
    let not_heard = acknowledged.saturating_sub(number_at(&cut.writes, "acknowledged"));
    let told = &cut.outcome.stdout;
    assert!(not_heard <= cut.timed_out, "{not_heard}, {} timed out: {told}", cut.timed_out);
    let (lost, told) = (known.lost(), records(&cut.outcome));
    let (missed, wrong): (Vec<_>, Vec<_>) =
        (lost.certain.difference(&told).collect(), told.difference(&lost.possible).collect());
    let right = missed.len() as u64 <= not_heard && wrong.is_empty();
    assert!(right, "not told: {missed:?} with {not_heard} not heard; accused: {wrong:?}");
    assert_eq!(cut.lost(), told.len() as u64);
    for (what, known) in [("acknowledged", known.acknowledged()), ("recovered", known.recovered())]
    {
        let (told, bounds) = (&cut.writes[what], (known.certain.len(), known.possible.len()));
        let is_in_range = (number_at(&cut.writes, what)..=number_at(&cut.writes, what) + not_heard)
            .any(|count| known.count(count));
        assert!(is_in_range, "{told} {what} of {bounds:?}, {not_heard} not heard");
    }
    told.len()
}

#[test]
fn a_log_that_is_synced_at_each_tenth_write_loses_exactly_what_came_after_the_last_sync() {
    let bench = Bench::new();
    let truth = bench.path("truth");
    let cut = run(&bench, &cuts("400/s", 8), &sim(&truth, "&sync=10"));
    cut.only_lost();
    let known = Known::read(&truth);
    assert!(agrees(&cut, &known) > 0);
    // The kernel may write any of the rest out just before a cut.
    assert!(
        known.cuts().all(|incarnation| incarnation.survived >= Some(incarnation.synced)),
        "{known:?}"
    );
    let exact = known.cuts().filter(|incarnation| incarnation.kept_what_was_synced()).count();
    assert!(2 * exact >= cut.cuts, "{exact} of {} cuts: {known:?}", cut.cuts);
    // It does not say that it syncs each write: what it loses is told, and breaks no promise. A build of the tests is
    // INVALID.
    assert_eq!(cut.outcome.code, 2, "{}", cut.outcome.stdout);
}

/// On a disk that forgets all that was not flushed the kernel saves nothing: each cut takes just what came after the
/// last sync, and that is told.
#[test]
fn of_many_cuts_each_takes_exactly_what_came_after_the_last_sync() {
    let (mut lost, mut acknowledged) = (0, 0);
    let cuts = until_cut(4, 12, |seconds| {
        let bench = Bench::new();
        let truth = bench.path("truth");
        let cut = run(&bench, &many_cuts("600/s", seconds, "unflushed"), &sim(&truth, "&sync=10"));
        cut.only_lost();
        let known = Known::read(&truth);
        for incarnation in known.cuts() {
            assert!(incarnation.kept_what_was_synced(), "{incarnation:?}");
        }
        lost += agrees(&cut, &known);
        acknowledged += number_at(&cut.writes, "acknowledged");
        cut.cuts
    });
    println!("{cuts} cuts, {lost} lost of {acknowledged} acknowledged");
    assert!(lost > 0);
}

/// A store that syncs before it answers loses nothing, whatever else the disk loses; nor does it break.
#[test]
fn a_store_that_syncs_properly_is_never_accused_whatever_the_disk_loses() {
    for (lose, words) in [
        ("some", "sim:1?takeover=200ms&log=disk&disk=ext4&sync=1"),
        ("torn", "engine:lmdb?durability=power&disk=xfs"),
        ("torn", "engine:redb?durability=power&disk=ext4"),
        ("some", "redis?persistence=aof-always&disk=ext4"),
    ] {
        let mut acknowledged = 0;
        let cuts = until_cut(2, 6, |seconds| {
            let bench = Bench::new();
            let cut = run(&bench, &many_cuts("300/s", seconds, lose), words);
            let told = &cut.outcome.stdout;
            assert!(cut.outcome.anomalies.is_empty() && cut.lost() == 0, "{words}: {told}");
            acknowledged += number_at(&cut.writes, "acknowledged");
            cut.cuts
        });
        println!("{words}: {cuts} cuts with {lose}, nothing lost of {acknowledged}");
        assert!(acknowledged > 200, "{words}: {acknowledged}");
    }
}

/// Returns the chance of at least `missed` cuts of `cuts` without anything to tear, if one in ten has nothing.
fn chance_of_missed(missed: usize, cuts: usize) -> f64 {
    let choose = |of: usize| (0..of).fold(1.0, |c, i| c * (cuts - i) as f64 / (i + 1) as f64);
    (missed..=cuts)
        .map(|k| choose(k) * 0.1_f64.powi(k as i32) * 0.9_f64.powi((cuts - k) as i32))
        .sum()
}

/// At full load a cut that tears meets something to tear in nine of ten cuts: flushes are held before anything else is
/// done. A cut may come just between a flush and the next write, so a few cuts refute that only beyond chance (1 %).
#[test]
fn at_full_load_nearly_every_cut_has_something_to_tear() {
    for words in
        ["engine:lmdb?durability=power&disk=ext4", "redis?persistence=aof-always&disk=ext4"]
    {
        let bench = Bench::new();
        let cut = loaded().phase("cut", "insert").set("duration", "15s").set("read-back", true);
        let cut = cut.fault("power").set("node", "all").set("lose", "torn").set("at", "400ms");
        let cut = cut.set("spread", "100ms").set("repair", "50ms").set("every", "350ms");
        let ran = run(&bench, &cut, words);
        let told = &ran.outcome.stdout;
        assert!(ran.outcome.anomalies.is_empty() && ran.lost() == 0, "{words}: {told}");
        let faults = ran.outcome.phase("cut")["faults"].as_array().expect("faults").clone();
        let cuts: Vec<&Value> = faults.iter().filter(|fault| fault["what"] == "power").collect();
        let torn = cuts.iter().filter(|fault| number_at(&fault["cut"], "undecided") > 0).count();
        let held: Vec<u64> =
            cuts.iter().map(|fault| number_at(&fault["cut"], "held_within_ns") / 1_000).collect();
        println!("{words}: {torn} of {} cuts tore something; held within {held:?} us", cuts.len());
        let by_chance = chance_of_missed(cuts.len() - torn, cuts.len());
        assert!(cuts.len() > 3 && by_chance > 0.01, "{words}: {cuts:?}");
    }
}

/// LMDB without syncs keeps its own order of writes in memory alone. A disk that keeps some of them and not others
/// leaves a tree that leads nowhere: the store does not come back, or returns wrong values, and the result says
/// which.
#[test]
fn lmdb_without_syncs_breaks_on_a_disk_that_loses_some() {
    let bench = Bench::new();
    let suite = bench.suite(many_cuts("1k/s", 12, "some"));
    let words = "engine:lmdb?durability=process&disk=ext4";
    let outcome = bench.run(&["run", &suite, "--quiet", "--give-up", "2s", "--testbed", words]);
    let output = || format!("{}{}", outcome.stdout, outcome.stderr);
    let phase = outcome.phases().iter().find(|phase| phase["name"] == "cut").expect("the phase");
    let faults = phase["faults"].as_array().expect("faults");
    let failed = |fault: &&Value| fault["what"] == "start again" && fault["error"].is_string();
    let failed = faults.iter().find(failed);
    let not_back = failed.and_then(|fault| fault["error"].as_str());
    let wrong = outcome.anomalies.iter().filter(|anomaly| anomaly["kind"] != "lost").count();
    assert!(not_back.is_some() || wrong > 0, "{}", output());
    if let Some(error) = not_back {
        println!("{error}");
        assert!(
            error.contains("engine-1 ended at once") || error.contains("does not serve"),
            "{error}"
        );
        assert!(outcome.stdout.contains("start again engine-1"), "{}", output());
        // Judged by the kind of the failure, not by its words; and the last cut that was done left the node dark.
        let is_ended = failed.is_some_and(|fault| fault["failure"] == "process-ended");
        assert_eq!(is_ended, error.contains("engine-1 ended at once"), "{failed:?}");
        let last = faults.iter().rfind(|fault| fault["dark"].is_object()).expect("a cut");
        let dark = &last["dark"];
        assert!(dark["from_ns"].is_u64() && dark["to_ns"].is_null(), "{last}");
    }
    assert_ne!(outcome.code, 0);
}

/// Returns a built-in suite with an eighth of its times.
fn in_short(bench: &Bench, name: &str) -> String {
    let text = builtin(name).expect("a built-in suite").text;
    let short = |line: &str| {
        let (key, value) = line.split_once(" = ").unwrap_or((line, ""));
        match value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix("s\"")?.parse::<u64>().ok())
        {
            Some(seconds) => format!("{key} = \"{}ms\"\n", seconds * 1_000 / 8),
            None => format!("{line}\n"),
        }
    };
    let text: String = text.lines().map(short).collect();
    let path = bench.path(&format!("{name}.toml"));
    std::fs::write(&path, text).expect("a suite file");
    path.display().to_string()
}

/// No phase of these suites ends the run of a store that lives through it.
#[test]
fn the_suites_of_disks_that_misbehave_come_to_their_end() {
    let bench = Bench::new();
    for (name, harms) in [
        ("disk-faults", vec!["disk-slow", "disk-stall", "disk-error", "power", "disk-error"]),
        ("disk-rot", vec!["bit-rot"]),
    ] {
        let suite = in_short(&bench, name);
        let words = "engine:lmdb?durability=power&disk=xfs:512MiB";
        let outcome =
            bench.run(&["run", &suite, "--quiet", "--set", "records=500", "--testbed", words]);
        let output = || format!("{}{}", outcome.stdout, outcome.stderr);
        let faults = outcome.phases().iter().filter_map(|phase| phase["faults"].as_array());
        let mut done: Vec<&str> = Vec::new();
        for fault in faults.flatten() {
            assert_eq!(fault["error"], Value::Null, "{fault}");
            done.extend(fault["what"].as_str().filter(|what| harms.contains(what)));
        }
        done.dedup();
        assert_eq!(done, harms, "{}", output());
        assert_eq!(outcome.result["runs"][0]["status"]["state"], "complete", "{}", output());
        // LMDB has no checksums: it may hand on what rots, which is a finding. Else a claim may stay open, if one cut
        // needs what another writes.
        let rotten = outcome.anomalies.iter().all(|anomaly| anomaly["kind"] == "corrupt");
        match outcome.anomalies.is_empty() {
            true => assert!(matches!(outcome.code, 0 | 2), "{}", output()),
            false => assert!(name == "disk-rot" && rotten && outcome.code == 1, "{}", output()),
        }
    }
}

/// Redis refuses an append-only file whose end ext4 could not write, which happens most times. That is a finding of
/// the run: the store is not unreachable, and what came before is kept and judged.
#[test]
fn a_store_that_does_not_come_back_is_a_finding() {
    let bench = Bench::new();
    let suite = Suite::of(200).set("clients", 4).load();
    let suite = suite.phase("before", "insert").set("requests", 500).set("read-back", true);
    let suite = suite.phase("refused", "insert").set("rate", "2k/s").set("duration", "3s");
    let suite = suite.set("read-back", true).fault("disk-error").set("refuses", "writes");
    let suite = suite.set("node", "any").set("at", "1s").set("repair", "500ms");
    let suite = suite.claim("what was there stays", "acked_lost in before == 0");
    let suite = bench.suite(&suite);
    let words = "redis?persistence=aof-always&disk=ext4:64MiB";
    let outcome = bench.run(&["run", &suite, "--quiet", "--testbed", words]);
    let output = || format!("{}{}", outcome.stdout, outcome.stderr);
    let run = &outcome.result["runs"][0];
    assert_eq!(run["claims"][0]["standing"], "confirmed", "{}", output());
    let faults = outcome.phases().iter().filter_map(|phase| phase["faults"].as_array()).flatten();
    let mut mended = faults.filter(|fault| fault["what"] == "disk mended");
    if mended.next().expect("a repair")["error"].is_null() {
        println!("this time ext4 left a file that Redis loads");
        assert_eq!(run["status"]["state"], "complete", "{}", output());
        return;
    }
    assert_eq!(outcome.code, 1, "{}", output());
    let said = run["status"]["message"].as_str().expect("a message");
    for part in ["did not come back after the faults of phase refused", "redis-1 ended at once"] {
        assert!(said.contains(part), "{said}");
    }
    // The end of the log says why, and is shown.
    assert!(outcome.stdout.contains("redis-check-aof"), "{}", output());
}

/// NATS syncs every two minutes unless it is told otherwise, and a cut takes what came since. It says so, and keeps what it
/// says where it syncs before it answers.
#[cfg(feature = "nats")]
#[test]
fn nats_loses_what_it_had_not_synced_and_nothing_where_it_always_syncs() {
    for (words, keeps) in
        [("nats?sync=always&disk=ext4", true), ("nats?sync=interval&disk=ext4", false)]
    {
        let bench = Bench::new();
        let cut = run(&bench, &cuts("300/s", 6), words);
        let told = &cut.outcome.stdout;
        match keeps {
            true => assert!(cut.outcome.anomalies.is_empty() && cut.lost() == 0, "{words}: {told}"),
            false => cut.only_lost(),
        }
        assert_eq!(cut.lost() == 0, keeps, "{words}: {told}");
        let durability = &cut.outcome.result["runs"][0]["store"]["durability"];
        let expected = if keeps { "power-loss" } else { "process-kill" };
        assert_eq!(
            (&durability["level"], &durability["checked"]),
            (&expected.into(), &true.into())
        );
    }
}

/// A log that is synced before each answer keeps what was acknowledged through a cut, and one that is only written does not.
/// Its end may make no sense after a cut, and then the server starts only if it may leave it out.
#[test]
fn tarantool_keeps_what_its_log_has_synced() {
    for (words, level) in [
        ("tarantool?wal=fsync&disk=ext4", "power-loss"),
        ("tarantool?recovery=force&disk=ext4", "process-kill"),
    ] {
        let bench = Bench::new();
        let cut = run(&bench, &cuts("300/s", 6), words);
        let told = &cut.outcome.stdout;
        match level {
            "power-loss" => {
                assert!(cut.outcome.anomalies.is_empty() && cut.lost() == 0, "{words}: {told}")
            }
            _ => cut.only_lost(),
        }
        let durability = &cut.outcome.result["runs"][0]["store"]["durability"];
        assert_eq!((&durability["level"], &durability["checked"]), (&level.into(), &true.into()));
    }
}

#[test]
fn a_store_that_answers_before_it_syncs_is_caught() {
    let bench = Bench::new();
    let truth = bench.path("truth");
    let cut = run(&bench, &cuts("400/s", 5), &sim(&truth, "&sync=1&sync-lag=40ms"));
    cut.only_lost();
    assert!(agrees(&cut, &Known::read(&truth)) > 0);
    let durability = &cut.outcome.result["runs"][0]["store"]["durability"];
    assert_eq!(durability["level"], "power-loss", "it says that it syncs: {durability}");
    let refuted = format!("refuted by this run: {} cuts of power, ", cut.cuts);
    let told = flowing(&cut.outcome);
    assert!(told.contains(&refuted), "{told}");
}

/// Losses are looked for after each cut, so that they are known if the node never comes back and nothing can be read
/// at the end.
#[test]
fn losses_are_known_of_a_store_that_does_not_start_again() {
    let bench = Bench::new();
    let truth = bench.path("truth");
    let words = sim(&truth, "&sync=1&sync-lag=200ms&starts=3");
    let suite = bench.suite(cuts("400/s", 15));
    let outcome = bench.run(&["run", &suite, "--quiet", "--testbed", &words]);
    let output = || format!("{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.code, 1, "{}", output());
    let cut = outcome.phase("cut");
    let faults = cut["faults"].as_array().expect("faults");
    let looked = faults.iter().filter_map(|f| f["cut"].get("looked_back"));
    let looked: Vec<_> = looked.filter(|looked| number_at(looked, "answered") > 0).collect();
    assert_eq!(looked.len(), 2, "{}", output());
    let absent: u64 = looked.iter().map(|looked| number_at(looked, "absent")).sum();
    assert!(looked.iter().all(|l| number_at(l, "answered") == number_at(l, "acknowledged")));
    let lost = Known::read(&truth).lost();
    assert!(absent > 0 && absent <= lost.possible.len() as u64, "{absent}: {}", output());
    let writes = &cut["writes"];
    assert_eq!(number_at(writes, "lost"), absent, "{writes}");
    for example in writes["examples"].as_array().expect("examples") {
        assert!(lost.possible.contains(&number_at(example, "record")), "{example}");
    }
    let text = flowing(&outcome);
    assert!(text.contains("refuted by this run: "), "{text}");
}

/// Writes of earlier phases over the same records, as those of `standard-2`, do not hide it either: the inserts of
/// the phase with the cuts are accounted for by themselves.
#[test]
fn a_store_that_syncs_each_write_is_not_accused_and_its_promise_is_shown() {
    for (disk, overwrites) in [("ext4", true), ("xfs", false)] {
        let bench = Bench::new();
        let words = sim(&bench.path("truth"), "&sync=1").replace("ext4", disk);
        let before = match overwrites {
            true => loaded().phase("over", "update").set("requests", 400),
            false => loaded(),
        };
        let suite = bench.suite(cuts_after(before, "300/s", 5));
        let outcome = bench.run(&["run", &suite, "--quiet", "--testbed", &words]);
        assert!(outcome.anomalies.is_empty(), "{}", outcome.stdout);
        let writes = &outcome.phase("cut")["writes"];
        assert_eq!((number_at(writes, "lost"), &writes["exact"]), (0, &Value::from(!overwrites)));
        let own = number_at(&writes["inserts"], "acknowledged");
        // The number depends on how fast the machine brings the node back.
        assert!(own > 100 && number_at(&writes["inserts"], "lost") == 0, "{writes}");
        let of = if overwrites { own } else { number_at(writes, "acknowledged") };
        let shown = format!(" cuts of power, 0 of {} acknowledged writes lost", grouped(of));
        let told = flowing(&outcome);
        let by_run = told.split("(setting read back; shown by this run: ").nth(1);
        let by_run = by_run.and_then(|by_run| by_run.split(&shown).nth(1));
        assert!(by_run.is_some_and(|more| more.contains("; at most ")), "{shown}: {told}");
    }
}

/// Four rows of docs/DURABILITY.md, as `cargo xtask durability` makes them, with three cuts each. `always` loses
/// nothing; `everysec` what was written in the last second or two; `none` all that the kernel had not written out by
/// itself.
#[test]
fn four_rows_of_the_table_come_out_as_the_settings_say() {
    let bench = Bench::new();
    let row = |testbed: &str, rate: &str| {
        let kvdyno = Path::new(crate::support::KVDYNO);
        let row = cut_off(kvdyno, &bench.path("rows"), testbed, rate, 3).expect("a row");
        assert!(row.lost.len() >= 3 && row.at_stake.len() == row.lost.len(), "{testbed}: {row:?}");
        assert_eq!((row.not_back, row.wrong, row.unknown), (0, 0, 0), "{testbed}: {row:?}");
        assert!(row.at_stake.iter().any(|writes| *writes > 0), "{testbed}: {row:?}");
        row
    };
    let lost = |row: &CutRow| row.lost.iter().sum::<u64>();
    for testbed in
        ["redis?persistence=aof-always&disk=ext4", "engine:lmdb?durability=power&disk=ext4"]
    {
        let row = row(testbed, "50% of capacity");
        assert_eq!((row.promised.as_str(), lost(&row)), ("power loss", 0), "{testbed}: {row:?}");
        assert!(row.acknowledged > 500, "{testbed}: {row:?}");
    }
    let everysec = row("redis?persistence=aof-everysec&disk=ext4", "1k/s");
    let none = row("redis?persistence=none&disk=ext4", "1k/s");
    // All that was acknowledged before the last cut is gone; what came after it is there.
    assert!(lost(&everysec) > 100 && lost(&none) > lost(&everysec), "{everysec:?} {none:?}");
    assert!(lost(&none) > none.acknowledged / 4 && none.reach_ms > 0, "{none:?}");
}

#[test]
fn a_rack_of_nodes_with_a_network_of_their_own_goes_dark_at_one_moment() {
    let bench = Bench::new();
    let suite = Suite::of(200).set("clients", 4).load().phase("cut", "insert").set("rate", "500/s");
    let suite = suite.set("duration", "6s").set("read-back", true).fault("power");
    let suite = suite.set("count", 2).set("at", "1s").set("repair", "500ms");
    let words = "redis-sharded:3?network=own&disk=ext4:64MiB&persistence=aof-always";
    let suite = bench.suite(&suite);
    let outcome = bench.run(&["run", &suite, "--quiet", "--testbed", words]);
    assert!(outcome.anomalies.is_empty(), "{}", outcome.stdout);
    let phase = outcome.phases().iter().find(|phase| phase["name"] == "cut").expect("the phase");
    let faults = phase["faults"].as_array().expect("faults");
    let of = |what: &str| faults.iter().filter(|f| f["what"] == what).collect::<Vec<_>>();
    let (power, back) = (of("power"), of("start again"));
    assert_eq!((power.len(), back.len(), faults.len()), (2, 2, 4), "{faults:?}");
    assert_ne!(power[0]["node"], power[1]["node"]);
    assert_eq!(power[0]["began_ns"], power[1]["began_ns"]);
    assert!(power[0]["used"].as_str().expect("means").contains("; links down"), "{}", power[0]);
    // Nothing told the clients: they waited, and no connection was refused or reset meanwhile.
    let errors = phase["errors"].as_array().expect("errors");
    let during = number_at(power[0], "ended_ns")..number_at(back[0], "began_ns");
    for error in errors {
        let first = number_at(error, "first_at_ns");
        assert!(!during.contains(&first), "{error} at a time when all was dark: {faults:?}");
    }
    let request = &outcome.result["runs"][0]["testbed"];
    assert!(request["disk"].as_str().expect("a disk").starts_with("ext4 of 64MiB"), "{request}");
}

/// Builds the plug-in that comes with kvdyno, SQLite, as docs/stores/plugin.md tells to.
fn sqlite(bench: &Bench) -> String {
    let library = bench.path("sqlite.so").display().to_string();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../stores/plugin");
    let source = format!("{sources}/sqlite.c");
    let options = ["-O2", "-shared", "-fPIC", "-o", &library, &source, "-lsqlite3"];
    let built = std::process::Command::new("cc").args(options).status().expect("cc");
    assert!(built.success(), "is libsqlite3-dev installed?");
    library
}

/// Each engine is run at the durability of its URL; and its result says what it is of.
#[test]
fn a_served_engine_keeps_what_it_promises_when_its_power_is_cut() {
    let lost = |words: &str| {
        let bench = Bench::new();
        let cut = run(&bench, &cuts("500/s", 7), &format!("{words}&disk=ext4"));
        cut.only_lost();
        let store = &cut.outcome.result["runs"][0]["store"];
        let served = store["settings"].as_array().expect("settings").iter();
        let mut served = served.filter(|setting| setting[0] == "served by");
        let said = served.next().and_then(|setting| setting[1].as_str()).unwrap_or_default();
        assert!(said.ends_with("figures are of engine and wire"), "{store}");
        let durability = &store["durability"];
        let (name, level) = (store["name"].clone(), durability["level"].clone());
        (
            name,
            level,
            durability["checked"].clone(),
            cut.lost(),
            number_at(&cut.writes, "acknowledged"),
        )
    };
    for engine in ["fjall", "redb"] {
        let (name, level, checked, lost, acknowledged) =
            lost(&format!("engine:{engine}?durability=power"));
        assert_eq!((name, level, checked), (engine.into(), "power-loss".into(), true.into()));
        assert!(lost == 0 && acknowledged > 200, "{engine}: {lost} of {acknowledged}");
    }
    // An engine of the user's own, without batches.
    let bench = Bench::new();
    let library = sqlite(&bench);
    let (name, level, checked, gone, acknowledged) =
        lost(&format!("engine:plugin?library={library}&durability=power"));
    // It declares that itself.
    assert_eq!((name, level, checked), ("sqlite".into(), "power-loss".into(), false.into()));
    assert!(gone == 0 && acknowledged > 100, "sqlite: {gone} of {acknowledged}");
    let (_, level, _, lost, acknowledged) = lost("engine:fjall?durability=process");
    assert_eq!(level, "process-kill");
    assert!(lost > 0 && lost <= acknowledged, "{lost} of {acknowledged}");
}
