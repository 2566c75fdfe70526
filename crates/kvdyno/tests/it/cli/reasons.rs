//! Each reason to doubt a measurement, made to happen through the command: it is told with its figure, beyond its
//! threshold, and with advice. docs/VERDICT.md lists which test makes which.

use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;
use std::time::Duration;

use serde_json::Value;

use crate::support::suite::{self, Suite};
use crate::support::{Ended, Scratch};

/// Reasons of a run against itself, and its output.
struct Judged {
    reasons: Vec<Value>,
    printed: String,
}

impl Judged {
    /// Reads the first run of the result `r`.
    fn of(scratch: &Scratch, ended: &Ended) -> Judged {
        let result = scratch.result("r");
        let reasons = result["runs"][0]["verdict"]["reasons"].as_array().expect("reasons");
        Judged { reasons: reasons.clone(), printed: ended.out.clone() }
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.reasons.iter().find(|reason| reason["name"] == name)
    }

    /// Asserts that the reason is there, at this level, with a figure on the wrong side of its threshold, and that
    /// the terminal tells it with its advice. Returns its figure.
    #[track_caller]
    fn assert_reason(&self, name: &str, level: &str) -> f64 {
        let reason = self.find(name).unwrap_or_else(|| panic!("no {name}: {:#?}", self.reasons));
        assert_eq!(reason["level"], level, "{reason:#}");
        let number = |key: &str| reason[key].as_f64().unwrap_or_else(|| panic!("{key}: {reason}"));
        let (figure, threshold) = (number("figure"), number("threshold"));
        let less_is_worse = ["too-short", "too-few-samples", "incomplete"].contains(&name);
        let crossed = if less_is_worse { figure < threshold } else { figure > threshold };
        assert!(crossed, "{reason:#}");
        // Lines are broken where the terminal ends.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let printed = words(&self.printed);
        // Of a reason that several phases share, the worst is told.
        let alike =
            |other: &&Value| ["name", "level"].iter().all(|key| other[*key] == reason[*key]);
        for key in ["text", "advice"] {
            let is_printed =
                |reason: &Value| printed.contains(&words(reason[key].as_str().expect(key)));
            let any = self.reasons.iter().filter(alike).any(is_printed);
            assert!(any, "`{}` is not in:\n{}", reason[key], self.printed);
        }
        figure
    }
}

/// Runs a command line without spaces in its words; its result is `r`.
fn judged(line: &str) -> Judged {
    let scratch = Scratch::new();
    let ended =
        scratch.kvdyno(&format!("run {line} --set run.warmup=false --quiet --verbose --out r"));
    Judged::of(&scratch, &ended)
}

fn judged_suite(suite: &Suite, store: &str) -> Judged {
    let scratch = Scratch::new();
    suite::write(&scratch.path("s.toml"), suite);
    let ended =
        scratch.run(&["run", "s.toml", "--store", store, "--quiet", "--verbose", "--out", "r"]);
    Judged::of(&scratch, &ended)
}

/// Runs again if a busy machine may have hidden the reason.
#[track_caller]
fn judged_until(name: &str, run: impl Fn() -> Judged) -> Judged {
    for _ in 0..3 {
        let judged = run();
        if judged.find(name).is_some() {
            return judged;
        }
    }
    run()
}

#[test]
fn kvdyno_itself_takes_much_of_the_time_beside_a_store_that_does_little() {
    let judged_run = judged("--store map: --records 1k --mix get=100 --clients 1 --requests 200k");
    assert!(judged_run.assert_reason("harness-share", "suspect") <= 1.0);
}

#[test]
fn a_rate_that_is_not_reached_is_invalid() {
    let judged_run =
        judged("--store sim:?service=1ms --records 100 --clients 1 --rate 4k/s --duration 1500ms");
    let missed = judged_run.assert_reason("missed-schedule", "invalid");
    assert!((0.5..1.0).contains(&missed), "one client in a millisecond each: {missed}");
}

#[test]
fn a_client_that_is_kept_from_sending_says_so() {
    let scratch = Scratch::new();
    let line = "run --store null: --records 100 --clients 2 --rate 1k/s --mix get=100 --duration 3s \
                --no-verify --quiet --set run.warmup=false --out r";
    let mut running = scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>());
    // Stopped half of the time: what falls due meanwhile is sent late.
    while running.is_running() {
        running.signal(libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(60));
        running.signal(libc::SIGCONT);
        std::thread::sleep(Duration::from_millis(60));
    }
    let judged_run = Judged::of(&scratch, &running.wait());
    let late = judged_run
        .find("late-sends")
        .unwrap_or_else(|| panic!("{:#?}", judged_run.reasons))
        .clone();
    judged_run.assert_reason("late-sends", late["level"].as_str().expect("a level"));
    assert_ne!(late["level"], "valid");
}

#[test]
fn ninety_per_cent_unexpected_misses_are_invalid() {
    let scratch = Scratch::new();
    let store = "lmdb:db?durability=none";
    suite::write(&scratch.path("load.toml"), Suite::of(100).load());
    scratch.kvdyno(&format!("run load.toml --store {store} --quiet --out l")).expect_done();
    // Ten times as many records are read as were loaded.
    let reads = Suite::of(1_000).phase("read", "get").set("requests", 20_000);
    suite::write(&scratch.path("read.toml"), reads);
    let line = format!("run read.toml --store {store} --data reuse --quiet --out r");
    let ended = scratch.kvdyno(&line).expect(2);
    let missed = Judged::of(&scratch, &ended).assert_reason("unexpected-misses", "invalid");
    assert!((0.85..0.95).contains(&missed), "{missed}");
}

#[test]
fn operations_that_fail_are_invalid_in_numbers_and_suspect_in_few() {
    let run = "--records 100 --clients 1 --requests 40k --set run.read-back=false";
    let many = judged(&format!("--store sim:?refuse=10 {run}"));
    let share = many.assert_reason("error-ratio", "invalid");
    assert!((0.08..0.12).contains(&share), "{share}");
    let few = judged(&format!("--store sim:?refuse=200 {run}"));
    let in_run = few.reasons.iter().find(|r| r["name"] == "error-ratio" && r["phase"] == "run");
    assert_eq!(in_run.expect("errors in the run")["level"], "suspect");
}

#[test]
fn few_operations_in_a_short_time_are_suspect() {
    let judged_run = judged("--store map: --records 100 --clients 1 --requests 500 --mix get=100");
    assert_eq!(judged_run.assert_reason("too-few-samples", "suspect"), 500.0);
    assert!(judged_run.assert_reason("too-short", "suspect") < 1.0);
    let more = judged("--store map: --records 100 --clients 1 --requests 5k --mix get=100");
    assert_eq!(more.assert_reason("too-few-samples", "valid"), 5_000.0, "a remark on p99.9");
}

#[test]
fn a_phase_that_its_time_limit_ends_is_suspect() {
    let suite = Suite::of(100).load().phase("get", "get");
    let suite = suite.set("requests", "1G").set("time-limit", "1100ms");
    let judged_run = judged_suite(&suite, "map:");
    assert_eq!(judged_run.assert_reason("cut-short", "suspect"), 1.0);
}

/// Runs gets that take the longer, the longer the phase lasts.
fn slower(per_cent: u32, seconds: u32) -> Judged {
    let gets = Suite::of(100).load().phase("get", "get");
    let suite = gets.set("duration", format!("{seconds}s")).set("clients", 2);
    judged_suite(&suite, &format!("sim:?service=4ms&slower={per_cent}"))
}

#[test]
fn throughput_that_falls_from_one_half_to_the_other_drifts() {
    let judged_run = judged_until("drift", || slower(25, 9));
    let fell = judged_run.assert_reason("drift", "suspect");
    assert!((0.2..0.8).contains(&fell), "{fell}");
}

#[test]
fn throughput_that_goes_on_falling_never_settled() {
    let judged_run = judged_until("never-settled", || slower(3, 14));
    let reason =
        judged_run.find("never-settled").unwrap_or_else(|| panic!("{:#?}", judged_run.reasons));
    judged_run.assert_reason("never-settled", reason["level"].as_str().expect("a level"));
}

#[test]
fn a_debug_build_is_invalid_and_no_other_build_is() {
    let judged_run = judged("--store map: --records 100 --clients 1 --requests 500");
    match cfg!(debug_assertions) {
        true => assert_eq!(judged_run.assert_reason("debug-build", "invalid"), 1.0),
        false => assert!(judged_run.find("debug-build").is_none(), "{:#?}", judged_run.reasons),
    }
}

/// Programs that keep every processor of this machine busy; ended on drop.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start() -> Hogs {
        let number = available_parallelism().map_or(2, usize::from);
        let hog = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            shell.spawn().expect("a shell")
        };
        Hogs((0..number).map(hog).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

#[test]
fn a_hog_beside_the_store_is_told() {
    let hogs = Hogs::start();
    let judged_run = judged("--store sim:?service=1ms --records 100 --clients 1 --duration 2s");
    drop(hogs);
    let share = judged_run.assert_reason("other-load", "suspect");
    assert!(share <= 1.0, "{share}");
}

#[test]
fn hogs_beside_a_server_are_told_by_what_threads_waited() {
    let hogs = [(); 4].map(|()| Hogs::start());
    let judged_run = judged("--testbed sim --records 100 --clients 4 --duration 2s");
    drop(hogs);
    let share = judged_run.assert_reason("waited-to-run", "suspect");
    assert!(share <= 1.0, "{share}");
}

/// A store that refuses what is loaded is never measured: nothing says that it may be believed.
#[test]
fn a_run_that_failed_is_invalid_in_every_output() {
    let scratch = Scratch::new();
    let suite = Suite::of(1_000).load().phase("get", "get").set("requests", "10k");
    suite::write(&scratch.path("s.toml"), suite);
    let ended = scratch.kvdyno("run s.toml --store sim:?refuse=20 --quiet --out r").expect(69);
    let judged = Judged::of(&scratch, &ended);
    assert_eq!(judged.assert_reason("incomplete", "invalid"), 0.0);
    assert!(ended.out.contains("verdict: INVALID"), "{}", ended.out);
    for file in ["r.md", "r.html", "r.xml"] {
        scratch.kvdyno(&format!("report r -o {file}")).expect(0);
        let text = std::fs::read_to_string(scratch.path(file)).expect("the report");
        assert!(text.contains("no phase came to its end"), "{file}:\n{text}");
        assert!(text.contains("failed: sim:"), "{file}:\n{text}");
    }
}

/// Phases that need servers of kvdyno's own are left out on a store of the user's, and named.
#[test]
fn phases_that_are_left_out_are_told() {
    let scratch = Scratch::new();
    let suite = Suite::of(1_000).load().phase("get", "get").set("requests", "10k");
    let suite = suite.phase("killed", "get").set("requests", 10).set("needs-nodes", true);
    suite::write(&scratch.path("s.toml"), suite.fault("kill").set("node", "any").set("at", "1s"));
    scratch.kvdyno("run s.toml --store map: --quiet --out r").expect_done();
    let sentence = "phase killed was not run: it does something to servers";
    for file in ["r.md", "r.html"] {
        let ended = scratch.kvdyno(&format!("report r -o {file}")).expect(0);
        let text = std::fs::read_to_string(scratch.path(file)).expect("the report");
        assert!(text.contains(sentence), "{file}: {ended:#?}");
    }
    let ended = scratch.kvdyno("report r").expect(0);
    assert!(ended.out.contains(sentence), "{}", ended.out);
}

#[test]
fn another_size_than_the_published_one_is_stamped() {
    let scratch = Scratch::new();
    let suite = Suite::of(1_000).load().phase("get", "get").set("requests", "10k");
    suite::write(&scratch.path("s.toml"), suite);
    let ended = scratch.kvdyno("run s.toml --store map: --scale 0.5 --quiet --out r");
    assert_eq!(Judged::of(&scratch, &ended).assert_reason("scaled", "suspect"), 0.5);
}

#[test]
fn reads_of_what_nobody_can_know_are_unjudged() {
    // Half of the writes may have been applied, and the ledger keeps no more than 4,096 of one record.
    let suite = Suite::of(2).phase("mix", "get = 10, update = 90");
    let suite = suite.set("requests", 30_000).set("read-back", false);
    let judged_run = judged_suite(&suite, "sim:?timeout=2&timeout-after=1us&late=1us");
    assert!(judged_run.assert_reason("unjudged", "suspect") > 10.0);
}

#[test]
fn wrong_reads_are_told_first_and_leave_the_measurement_as_it_is() {
    let suite = Suite::of(200).load().phase("mix", "get = 50, update = 50");
    let judged_run = judged_suite(&suite.set("requests", 20_000), "sim:?stale=20");
    assert!(judged_run.assert_reason("anomalies", "valid") > 10.0);
}
