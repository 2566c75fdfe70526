//! Parts of one load, each a process, and what `merge` makes of them.

use serde_json::{Value, json};

use crate::support::Scratch;
use crate::support::suite::{Suite, write};

/// Each part has a map of its own here: what is inserted is not read.
fn suite(verify: bool) -> Suite {
    let suite = Suite::of(1_000).set("verify", verify).set("read-back", false);
    suite.phase("insert", "insert").set("duration", "1s").set("rate", "2k/s")
}

#[test]
fn parts_that_ran_one_after_the_other_are_not_one_load() {
    let scratch = Scratch::new();
    write(&scratch.path("s.toml"), suite(false));
    for part in ["1", "2"] {
        let words = format!(
            "run s.toml --store map: --part {part}/2 --servers n1-standard-8=2 --out {part}"
        );
        let ended = scratch.kvdyno(&words);
        assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    }
    let merged = scratch.kvdyno("merge 1 2 --out whole").expect(2);
    for words in ["INVALID", "parts of the load did not run together for", "--start-at", "not told"]
    {
        assert!(merged.out.contains(words), "`{words}` is not in {}", merged.out);
    }
    let result = scratch.result("whole");
    let run = &result["runs"][0];
    let reasons = run["verdict"]["reasons"].as_array().expect("reasons");
    let apart = reasons.iter().find(|r| r["name"] == "apart").expect("the reason");
    assert_eq!((&apart["level"], &apart["threshold"]), (&"invalid".into(), &0.05.into()));
    assert!(run["phases"][0]["apart"].as_f64().is_some_and(|share| share > 0.9), "{run:#}");
    // Their timelines are one: what both completed, second by second, the second part behind the first.
    let offered = |folder: &str| -> Vec<u64> {
        let text = std::fs::read_to_string(scratch.path(folder).join("timeline.csv")).expect("it");
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().expect("a header");
        let column = names.iter().position(|name| *name == "offered").expect("the column");
        lines.filter_map(|cells| cells[column].parse().ok()).collect()
    };
    let (one, two, both) = (offered("1"), offered("2"), offered("whole"));
    assert_eq!(both.iter().sum::<u64>(), one.iter().chain(&two).sum::<u64>(), "{both:?}");
    assert!(both.len() >= 2, "{one:?} {two:?} {both:?}");
    let told = run["of_parts"].to_string();
    assert!(told.contains("part 2: began insert ") && told.contains("not measured"), "{told}");
    let log = std::fs::read_to_string(scratch.path("whole/intervals.hlog")).expect("histograms");
    let logged = log.lines().filter(|line| line.contains("Tag=0-map/0-insert/0/insert/service"));
    assert_eq!(logged.count(), both.len(), "{log}");
}

/// Records are loaded in batches, of which one part of three would have one more than another.
#[test]
fn parts_whose_batches_do_not_divide_evenly_load_the_same_records() {
    let scratch = Scratch::new();
    let loads = |part: u32| {
        let words = format!(
            "run --records 2k --requests 300 --store map: --part {part}/3 --quiet --out {part}"
        );
        let ended = scratch.kvdyno(&words);
        assert!([0, 2].contains(&ended.code()), "{ended:#?}");
        let result = scratch.result(&part.to_string());
        let load = &result["runs"][0]["phases"][0];
        assert_eq!(load["name"], "load");
        load["tally"]["writes_acknowledged"].as_u64().expect("writes")
    };
    assert_eq!((1..=3).map(loads).sum::<u64>(), 2_000);
}

#[test]
fn merging_ends_as_a_run_with_that_result_would() {
    let scratch = Scratch::new();
    write(&scratch.path("s.toml"), suite(true));
    for part in ["1", "2"] {
        let words = format!("run s.toml --store map: --part {part}/2 --out {part} --quiet");
        let ended = scratch.kvdyno(&words);
        assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    }
    let sound = scratch.result("2");
    let whole = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut part = sound.clone();
        change(&mut part["runs"][0]);
        scratch.write("2/result.json", &part.to_string());
        let merged = scratch.kvdyno(&format!("merge 1 2 --out {name}"));
        let verdict = scratch.result(name)["runs"][0]["verdict"]["level"].clone();
        (merged.code(), verdict)
    };
    // They ran one after the other, which is no load.
    assert_eq!(whole("apart", &|_| ()), (2, "invalid".into()));
    let failed = |run: &mut Value| {
        run["status"] = json!({ "state": "failed", "message": "the server was lost" });
    };
    let late = |run: &mut Value| {
        failed(run);
        run["phases"][0]["stopped"] = "time-limit".into();
    };
    let interrupted = |run: &mut Value| run["status"] = json!({ "state": "interrupted" });
    let wrong = |run: &mut Value| run["phases"][0]["tally"]["anomalies"] = json!([1, 0, 0, 0, 0]);
    let lost = |run: &mut Value| run["phases"][0]["tally"]["anomalies"] = json!([0, 0, 0, 0, 1]);
    for (name, change, code) in [
        ("failed", &failed as &dyn Fn(&mut Value), 69),
        ("late", &late, 2),
        ("interrupted", &interrupted, 130),
        ("wrong", &wrong, 1),
        ("lost", &lost, 1),
    ] {
        assert_eq!(whole(name, change).0, code, "{name}");
    }
}
