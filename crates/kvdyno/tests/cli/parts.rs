//! Parts of one load, each a process, and what `merge` makes of them.

use crate::suite::{Suite, write};
use crate::support::Scratch;

/// Each part has a map of its own here: what is inserted is not read.
fn suite() -> Suite {
    let suite = Suite::of(1_000).set("verify", false).set("read-back", false);
    suite.phase("insert", "insert").set("duration", "1s").set("rate", "2k/s")
}

#[test]
fn parts_that_ran_one_after_the_other_are_not_one_load() {
    let scratch = Scratch::new();
    write(&scratch.path("s.toml"), suite());
    for part in ["1", "2"] {
        let words = format!(
            "run s.toml --store map: --part {part}/2 --servers n1-standard-8=2 --out {part}"
        );
        let ended = scratch.kvdyno(&words);
        assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    }
    let merged = scratch.kvdyno("merge 1 2 --out whole");
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
}
