//! A run tells its story once: the events that are kept come to the same result, whatever the run was.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use kvdyno_report::events::recording::replay;
use kvdyno_report::result::RunResult;
use serde_json::Value;

use crate::support::Scratch;

/// The events of a result folder, folded again, are its `result.json`. All events.
fn fold_again(folder: &Path) -> Vec<Value> {
    let path = folder.join("events.jsonl");
    let events = BufReader::new(File::open(&path).expect("events were kept"));
    let result = RunResult::load(folder).expect("a result");
    assert_eq!(replay(events).expect("events of a whole run"), result);
    let text = std::fs::read_to_string(path).expect("events were kept");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn count(events: &[Value], what: &str) -> usize {
    events.iter().filter(|event| event["event"] == what).count()
}

#[test]
fn trials_of_a_search_come_to_the_same_results_again() {
    let scratch = Scratch::new();
    let words = "run capacity --store sim:?service=5ms --records 100 --clients 2 --slo p99(get)<50ms \
                 --set run.duration=300ms --set run.read-back=true --trials 2 --events --out r";
    let ended = scratch.kvdyno(words);
    assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    for trial in ["r/trial-01", "r/trial-02"] {
        let events = fold_again(&scratch.path(trial));
        let result = scratch.result(trial);
        let found = &result["runs"][0]["capacity"][0];
        let tried = ["sweep", "probes"].map(|list| found[list].as_array().map_or(0, Vec::len));
        assert_eq!(count(&events, "probed"), tried.iter().sum::<usize>(), "{found:#}");
        let phases = result["runs"][0]["phases"].as_array().expect("phases");
        assert_eq!(count(&events, "phase-ended"), phases.len());
        assert!(count(&events, "interval") >= phases.len());
        // A search is no phase by itself: what became of the writes is told with their reading.
        let read_back = phases.last().expect("a phase");
        assert_eq!(read_back["label"], "Read back");
        assert_eq!(read_back["writes"]["lost"], 0, "{read_back:#}");
    }
}

#[test]
fn a_run_with_faults_comes_to_the_same_result_again() {
    let scratch = Scratch::new();
    scratch.write(
        "kill.toml",
        "name = \"kill\"\ntitle = \"A kill\"\nrecords = 500\nclients = 2\nwarmup = false\n[[phase]]\nname = \"load\"\nload = true\n\
         [[phase]]\nname = \"mix\"\nmix = \"get = 50, update = 50\"\nduration = \"3s\"\nrate = \"200/s\"\n\
         read-back = true\n[[phase.fault]]\ndo = \"kill\"\nnode = \"any\"\nat = \"1s\"\n\
         [[phase.claim]]\nsays = \"nothing is lost\"\nholds = \"acked_lost == 0\"\n",
    );
    let ended = scratch.kvdyno("run kill.toml --testbed sim:2 --events --out r");
    assert!([0, 1, 2].contains(&ended.code()), "{ended:#?}");
    let events = fold_again(&scratch.path("r"));
    let result = scratch.result("r");
    let mix = &result["runs"][0]["phases"][1];
    let faults = mix["faults"].as_array().expect("faults");
    assert_eq!(faults.len(), 2, "a kill and its repair: {mix:#}");
    assert_eq!((count(&events, "fault-began"), count(&events, "fault-done")), (2, 2));
    let recovery_waits: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "mending").collect();
    assert!(
        recovery_waits[0]["what"]
            .as_str()
            .is_some_and(|what| what.starts_with("start again: sim-"))
    );
    assert!(mix["writes"].is_object() && result["runs"][0]["claims"].is_array(), "{mix:#}");
    // What was done is told while the phase runs, not when it is over.
    let at = |what: &str, nth: usize| {
        let of_kind = events.iter().enumerate().filter(|(_, event)| event["event"] == what);
        of_kind.map(|(place, _)| place).nth(nth).unwrap_or_else(|| panic!("no {what}"))
    };
    let (killed, ended) = (at("fault-done", 0), at("load-ended", 1));
    let after = events[killed..ended].iter().filter(|event| event["event"] == "interval");
    assert!(after.count() >= 1, "intervals follow the kill");
    assert!(count(&events, "used") >= 2, "what was used is told while it runs");
}

#[test]
fn events_are_kept_only_where_they_are_asked_for() {
    let scratch = Scratch::new();
    scratch.kvdyno("run --store map: --records 100 --mix get --requests 100 --out r").expect(2);
    assert!(!scratch.path("r/events.jsonl").exists());
    // What is asked for and cannot be had is said before anything is measured.
    std::fs::create_dir_all(scratch.path("s/events.jsonl")).expect("a folder in its place");
    let refused = scratch.kvdyno("run --store map: --records 100 --events --out s");
    refused.expect_line(64, &["events.jsonl", "--out"]);
}
