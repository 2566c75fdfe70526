//! Result folders: where they go, full disks, and the commands that read them again.

use std::fs;

use serde_json::Value;

use crate::support::Scratch;

const SMALL: &str =
    "run --store map: --records 200 --requests 2k --clients 2 --mix get=60,update=40";

fn operations(result: &Value, phase: usize) -> Vec<(String, u64)> {
    let series = result["runs"][0]["phases"][phase]["series"].as_array().expect("series");
    let pair = |s: &Value| (s["kind"].to_string(), s["ok"].as_u64().expect("a count"));
    series.iter().map(pair).collect()
}

#[test]
fn a_full_disk_stops_neither_the_run_nor_its_table() {
    let scratch = Scratch::new();
    // Room for result.json and a few intervals, not for the report.
    let run = "{ kvdyno run --store map: --records 500 --clients 2 --duration 3s --out disk/r
               code=$?; cp -r disk kept; exit $code; }";
    let ended = scratch.on_small_disk("128k", run).expect("the right to mount").wait().expect(70);
    let [first, last] = ended.err.lines().collect::<Vec<_>>()[..] else {
        panic!("said once, and at the end:\n{}", ended.err);
    };
    assert!(first.contains("No space left") && first.contains("--out"), "{first}");
    assert!(last.contains("disk/r lacks the whole of ") && last.contains("report.html"), "{last}");
    assert!(ended.out.contains("Req/Sec") && ended.out.contains("verified:"), "{}", ended.out);
    let result = scratch.result("kept/r");
    assert!(!result["runs"][0]["phases"].as_array().expect("phases").is_empty());
}

#[test]
fn output_that_a_full_disk_swallows_is_a_failure() {
    let scratch = Scratch::new();
    let ended = scratch.shell("kvdyno stores > /dev/full").wait();
    ended.expect_line(70, &["standard output lost", "No space left"]);
    // A reader that goes away is no failure.
    scratch.shell("kvdyno stores | head -n 1").wait().expect(0);
}

#[test]
fn more_records_than_the_disk_holds_are_errors_of_the_class_full() {
    for store in ["lmdb:disk?durability=none", "lmdb:disk?durability=none&size=2MiB"] {
        let scratch = Scratch::new();
        let run = format!(
            "exec kvdyno run --store '{store}' --records 20k --value 1KB --duration 300ms --out r"
        );
        let ended = scratch.on_small_disk("8m", &run).expect("the right to mount").wait();
        assert!([2, 69].contains(&ended.code()), "{ended:#?}");
        let result = scratch.result("r");
        let errors = result["runs"][0]["phases"][0]["errors"].as_array().expect("errors");
        assert!(errors.iter().all(|error| error["class"] == "full"), "{errors:#?}");
        assert!(!errors.is_empty());
        let row = |line: &str| line.split_ascii_whitespace().take(2).eq(["load", "full"]);
        assert!(ended.out.lines().any(row), "{}", ended.out);
    }
}

#[test]
fn a_folder_with_a_result_is_not_overwritten() {
    let scratch = Scratch::new();
    scratch.kvdyno(&format!("{SMALL} --out r")).expect_done();
    let before = fs::read(scratch.path("r/result.json")).expect("a result");
    scratch.kvdyno(&format!("{SMALL} --out r")).expect_line(64, &["holds a result", "--out"]);
    assert_eq!(fs::read(scratch.path("r/result.json")).expect("a result"), before);
}

#[test]
fn without_out_each_run_gets_a_folder_of_its_own() {
    let scratch = Scratch::new();
    for _ in 0..2 {
        let ended = scratch.kvdyno(SMALL).expect_done();
        assert!(ended.out.contains("Report: kvdyno-results/"), "{}", ended.out);
    }
    assert_eq!(fs::read_dir(scratch.path("kvdyno-results")).expect("results").count(), 2);
}

#[test]
fn a_report_is_made_again_in_each_format() {
    let scratch = Scratch::new();
    let run = scratch.kvdyno(&format!("{SMALL} --out r")).expect_done();
    fs::remove_file(scratch.path("r/report.html")).expect("a report");
    let again = scratch.kvdyno("report r").expect(0);
    assert_eq!(again.out, run.out, "the same tables");
    assert!(scratch.path("r/report.html").exists());
    scratch.kvdyno("report r/result.json -o x.html").expect(0);
    scratch.kvdyno("report r -o x.md").expect(0);
    let html = fs::read_to_string(scratch.path("x.html")).expect("the page");
    let markdown = fs::read_to_string(scratch.path("x.md")).expect("the text");
    assert!(html.contains("<html") && markdown.contains("| Test "), "{markdown}");
    scratch.kvdyno("report r -o x.pdf").expect_line(64, &["x.pdf", ".html", ".md"]);
    scratch.kvdyno("report r r -o x.md").expect_line(64, &["-o"]);
    scratch.write("broken.json", "{\"schema_version\": 1");
    scratch.kvdyno("report broken.json").expect_line(64, &["broken.json is cut short"]);
}

#[test]
fn a_rerun_makes_the_same_operations_in_a_new_folder() {
    let scratch = Scratch::new();
    scratch.kvdyno(&format!("{SMALL} --seed 77 --out a")).expect_done();
    scratch.kvdyno("rerun a --out b").expect_done();
    // An earlier version kept the command line only.
    let mut old = scratch.result("b");
    assert!(old["config"]["carrying"].is_object(), "{}", old["config"]);
    old.as_object_mut().expect("a result").remove("config");
    scratch.write("b/result.json", &old.to_string());
    scratch.kvdyno("rerun b --out c").expect_done();
    let (a, b, c) = (scratch.result("a"), scratch.result("b"), scratch.result("c"));
    assert_eq!((&a["seed"], &a["suite"]["plan"]), (&b["seed"], &b["suite"]["plan"]));
    assert_eq!(a["seed"], 77);
    let phases = a["runs"][0]["phases"].as_array().expect("phases");
    for (index, phase) in phases.iter().enumerate() {
        assert_eq!(phase["name"], b["runs"][0]["phases"][index]["name"]);
        if phase["warmup"] == false {
            assert_eq!(operations(&a, index), operations(&b, index), "{}", phase["name"]);
            assert_eq!(operations(&a, index), operations(&c, index), "{}", phase["name"]);
        }
    }
}
