//! Trials, comparisons and gates: as a release pipeline would use them.

use std::fs;

use serde_json::Value;

use crate::support::{Ended, Scratch};

const SMALL: &str = "run --records 200 --requests 2k --clients 1 --mix get=60,update=40";

/// Gates passed: 0, and 2 where this build, which is not optimised, makes all figures invalid, or a
/// machine that others share does.
#[track_caller]
fn expect_passed(ended: Ended) -> Ended {
    assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    assert!(!ended.out.contains("gate FAILED"), "{ended:#?}");
    ended
}

fn stores(result: &Value) -> Vec<String> {
    let runs = result["runs"].as_array().expect("runs");
    runs.iter().map(|run| run["store"]["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn trials_take_turns_and_begin_alike() {
    let scratch = Scratch::new();
    let line = format!("{SMALL} --store map: --store lmdb:db --trials 3 --out t");
    let ended = scratch.kvdyno(&line);
    assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    let orders = [["map", "lmdb"], ["lmdb", "map"], ["map", "lmdb"]];
    for (number, order) in orders.iter().enumerate() {
        let result = scratch.result(&format!("t/trial-0{}", number + 1));
        assert_eq!(stores(&result), *order);
        assert_eq!(result["trial"], serde_json::json!({ "number": number + 1, "of": 3 }));
        for run in result["runs"].as_array().expect("runs") {
            let load = &run["phases"][0];
            assert_eq!((&load["name"], &load["records"]), (&"load".into(), &200.into()));
        }
    }
    for word in ["map: 3 trials", "lmdb: 3 trials", "Medians of 3 trials", "Report: t/report.html"]
    {
        assert!(ended.out.contains(word), "`{word}` is not in:\n{}", ended.out);
    }
    let page = fs::read_to_string(scratch.path("t/report.html")).expect("a report");
    assert!(page.contains("href=\"trial-02/report.html\""));
    // It can be shown again, and no second run goes on top of it.
    let shown = scratch.kvdyno("report t -o t.md").expect(0);
    assert!(shown.out.contains("Medians of 3 trials"), "{}", shown.out);
    assert!(fs::read_to_string(scratch.path("t.md")).expect("a page").contains("| Test |"));
    scratch.kvdyno(&line).expect_line(64, &["holds a result already"]);
    // A comparison names what is not there.
    assert!(!scratch.kvdyno("compare t --allow-unequal").out.contains("missing"));
    fs::remove_dir_all(scratch.path("t/trial-02")).expect("the second trial");
    let compared = scratch.kvdyno("compare t --allow-unequal");
    for side in ["map", "lmdb"] {
        let missing = format!("caution: {side}: trial 2 of 3 is missing");
        assert!(compared.out.contains(&missing), "{}", compared.out);
    }
    // So does what shows the trials together, in every form.
    let shown = scratch.kvdyno("report t -o t.md").expect(0);
    scratch.kvdyno("report t").expect(0);
    let read = |name: &str| fs::read_to_string(scratch.path(name)).expect("a page");
    for (form, text) in
        [("terminal", shown.out), ("md", read("t.md")), ("html", read("t/report.html"))]
    {
        let told = text.matches("2 trials").filter(|_| text.contains("trial 2 of 3 is missing"));
        assert!(told.count() >= 2, "{form}: {text}");
    }
}

#[test]
fn trials_refuse_what_does_not_go_with_them() {
    let scratch = Scratch::new();
    let line = format!("{SMALL} --store map: --trials 2");
    scratch.kvdyno(&format!("{line} --data reuse")).expect_line(64, &["--trials", "--data reuse"]);
    scratch.kvdyno(&format!("{SMALL} --store map: --trials 0")).expect_line(64, &["--trials"]);
    assert!(!scratch.path("kvdyno-results").exists());
}

#[test]
fn trials_as_json_are_one_document() {
    let scratch = Scratch::new();
    let ended = scratch.kvdyno(&format!("{SMALL} --store map: --trials 2 --json --out t"));
    let printed: Value = serde_json::from_str(&ended.out).expect("one JSON document");
    assert_eq!(printed["folders"], serde_json::json!(["trial-01", "trial-02"]));
    let rates = &printed["stores"][0]["rows"][0]["figures"][0]["trials"];
    assert_eq!(rates.as_array().map(Vec::len), Some(2));
    assert_eq!(ended.err, "");
    let written = fs::read_to_string(scratch.path("t/trials.json")).expect("a summary");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), printed);
}

/// The commands of docs/CI.md, as they stand there.
fn documented() -> Vec<String> {
    let page = include_str!("../../../../../docs/CI.md");
    let block = page.split("```sh\n").nth(1).expect("a block of commands");
    let block = block.split("```").next().expect("its end").replace("\\\n", " ");
    let lines = block.lines().filter_map(|line| line.strip_prefix("kvdyno "));
    lines.map(str::to_owned).collect()
}

/// Runs a documented line: words, with quotes around some.
fn as_typed(scratch: &Scratch, line: &str) -> Ended {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_ascii_whitespace().map(str::to_owned)),
        }
    }
    scratch.run(&words)
}

#[test]
fn the_documented_gate_passes_what_has_not_changed() {
    let scratch = Scratch::new();
    let lines = documented();
    let [baseline, new, compare] = &lines[..] else { panic!("three commands: {lines:#?}") };
    for line in [baseline, new] {
        let ended = as_typed(&scratch, line);
        assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    }
    let ended = expect_passed(as_typed(&scratch, compare));
    assert!(ended.out.contains("gate passed"), "{}", ended.out);
    let junit = fs::read_to_string(scratch.path("gate.xml")).expect("JUnit XML");
    let gates: Vec<&str> = junit.lines().filter(|line| line.contains("name=\"not p50")).collect();
    assert!(!gates.is_empty() && gates.iter().all(|g| !g.contains("<failure")), "{junit}");
    let comment = fs::read_to_string(scratch.path("gate.md")).expect("a summary");
    assert!(comment.contains("gate passed"), "{comment}");
}

#[test]
fn a_gate_stops_a_slower_release_and_says_by_how_much() {
    let scratch = Scratch::new();
    // Ten times slower, for a busy machine blurs what it measures; it does not blur that.
    let run = "run --records 100 --value 100B --clients 2 --duration 1s --trials 4";
    for (name, service) in [("old", "1ms"), ("new", "10ms")] {
        let ended = scratch.kvdyno(&format!("{run} --store sim:?service={service} --out {name}"));
        assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    }
    let gate = |more: &[&str]| {
        let mut words = vec!["compare", "old", "new"];
        words.extend(more);
        scratch.run(&words)
    };
    let ended = gate(&["--fail-on", "p50(get) > +50%", "--junit", "j.xml", "--markdown", "m.md"]);
    let ended = ended.expect(1);
    assert!(ended.out.contains("gate FAILED: p50(get) > +50% in run"), "{}", ended.out);
    assert!(ended.out.contains("slower"), "{}", ended.out);
    let junit = fs::read_to_string(scratch.path("j.xml")).expect("JUnit XML");
    assert!(junit.contains("<failure message=\"p50(get) &gt; +50%"), "{junit}");
    let summary = fs::read_to_string(scratch.path("m.md")).expect("a summary");
    assert!(summary.contains("gate FAILED"), "{summary}");
    gate(&["--fail-on", "p50(get) > +5ms"]).expect(1);
    // What is shown and not beyond the threshold passes; so does a change for the better.
    expect_passed(gate(&["--fail-on", "p50(get) > +9900%, rate < -99.9%, p50(get) > +60s"]));
    let back = scratch.run(&["compare", "new", "old", "--fail-on", "p50(get) > +5%"]);
    assert!(expect_passed(back).out.contains("faster"));
    // Whether it matters.
    let ended = expect_passed(gate(&["--needs", "p50(get) < 500ms"]));
    assert!(ended.out.contains("both meet p50(get) < 500ms"), "{}", ended.out);
    let ended = expect_passed(gate(&["--needs", "p50(get) < 800us"]));
    assert!(ended.out.contains("neither meets p50(get) < "), "{}", ended.out);
    let json = gate(&["--json", "--fail-on", "p50(get) > +50%"]).expect(1);
    let printed: Value = serde_json::from_str(&json.out).expect("one JSON document");
    assert_eq!(printed["gates"][0]["outcome"], "failed");
    assert_eq!(printed["comparisons"][0]["first_trials"], 4);
}

#[test]
fn a_claim_about_two_deployments_is_judged_by_their_comparison() {
    let scratch = Scratch::new();
    let suite = "name = \"two\"\nrecords = 200\n[[phase]]\nname = \"read\"\nmix = \"get\"\n\
                 duration = \"500ms\"\n\
                 [[claim]]\nsays = \"it costs little\"\nholds = \"mean(get) < +10ms\"\nbetween = BOTH\n\
                 [[claim]]\nsays = \"it costs nothing\"\nholds = \"mean(get) < +1us\"\nbetween = BOTH\n\
                 [[claim]]\nsays = \"not these\"\nholds = \"rate > +5%\"\nbetween = [\"readers=7\", \"readers=9\"]\n";
    let both = "[\"readers=7\", \"readers=8\"]";
    fs::write(scratch.path("two.toml"), suite.replace("BOTH", both)).expect("a suite");
    let line = "run two.toml --clients 2 --trials 3 --out t \
                --store lmdb:?durability=process&readers=7 --store lmdb:?durability=process&readers=8";
    let ran = scratch.kvdyno(line);
    let compared = scratch.kvdyno("compare t --junit j.xml --json");
    let printed: Value = serde_json::from_str(&compared.out).expect("one JSON document");
    let claims = printed["comparisons"][0]["claims"].as_array().expect("claims").clone();
    let says: Vec<_> =
        claims.iter().map(|claim| claim["says"].as_str().expect("a claim")).collect();
    assert_eq!(says, ["it costs little", "it costs nothing"]);
    let condition = &claims[0]["conditions"][0];
    assert!(condition["measured"].as_str().expect("text").contains("mean "), "{condition}");
    // A build that is not optimised makes all figures invalid, and nothing is decided by those.
    let standing = |claim: usize| claims[claim]["standing"].as_str().expect("a standing");
    let invalid = printed["comparisons"][0]["invalid"].as_bool().expect("a flag");
    assert_eq!(standing(0), if invalid { "inconclusive" } else { "confirmed" });
    for ended in [ran, compared] {
        assert!(ended.code() == 2 || !invalid, "{ended:#?}");
    }
    let told = scratch.kvdyno("compare t").out;
    assert!(told.contains(&format!("claim {}: it costs little", standing(0))), "{told}");
    let junit = fs::read_to_string(scratch.path("j.xml")).expect("JUnit XML");
    assert!(junit.contains("name=\"it costs nothing\""), "{junit}");
    let page = fs::read_to_string(scratch.path("t/report.html")).expect("a report");
    assert!(page.contains("it costs little"), "the page of the trials");
    // One run of one deployment says nothing of it.
    let alone = scratch.kvdyno("run two.toml --clients 2 --out alone --store lmdb:");
    assert_eq!(
        scratch.result("alone")["runs"][0]["claims"],
        serde_json::json!([]),
        "{}",
        alone.out
    );
}

#[test]
fn what_operations_cost_is_compared_and_gated() {
    let scratch = Scratch::new();
    let run = "run --records 100 --clients 2 --duration 1s --trials 2 --quiet";
    for (name, service, servers) in [("small", "1ms", 1), ("large", "10ms", 20)] {
        let store = format!("sim:?service={service}");
        let servers = format!("n1-standard-8={servers}");
        let line = format!("{run} --store {store} --servers {servers} --out {name}");
        assert!([0, 2].contains(&scratch.kvdyno(&line).code()), "{line}");
    }
    // A tenth of the rate on twenty times the servers.
    let ended = scratch.run(&["compare", "small", "large", "--fail-on", "cost > +900%"]);
    let ended = ended.expect(1);
    for word in
        ["gate FAILED: cost > +900% in run", "dearer", "cost is in USD per million operations"]
    {
        assert!(ended.out.contains(word), "no {word:?} in {}", ended.out);
    }
    let json = scratch.run(&["compare", "small", "large", "--json"]).out;
    let printed: Value = serde_json::from_str(&json).expect("one JSON document");
    let row = &printed["comparisons"][0]["phases"][0]["rows"][0];
    let figures = row["figures"].as_array().expect("figures");
    let of = |name: &str| figures.iter().find(|figure| figure["figure"] == name).expect(name);
    let ratio = of("cost")["change"].as_f64().expect("a ratio");
    let rate = of("rate")["change"].as_f64().expect("a ratio");
    assert!((ratio * rate / 20.0 - 1.0).abs() < 1e-9, "{row}");
    // Servers that are stated now are those of both sides.
    let same = "compare small large --servers n1-standard-8=1 --json";
    let printed: Value = serde_json::from_str(&scratch.kvdyno(same).out).expect("JSON");
    let costs = printed["comparisons"][0]["cost"].as_str().expect("costs");
    assert!(costs.contains("servers of 0.304 and 0.304 an hour"), "{costs}");
    // Without prices there is nothing to gate.
    scratch.kvdyno(&format!("{SMALL} --store map: --out free"));
    let ask = ["compare", "free", "free", "--fail-on", "cost > +5%"];
    scratch.run(&ask).expect_line(64, &["cost > +5%", "write --servers KIND=N"]);
    let ask = ["compare", "small", "large", "--fail-on", "cost(get) > +5%"];
    scratch.run(&ask).expect(64).expect_words(&["one figure for all operations"]);
}

#[test]
fn stores_of_one_run_are_compared_and_unequal_ones_only_on_demand() {
    let scratch = Scratch::new();
    let both = "--store map: --store lmdb:?durability=power";
    let ended = scratch.kvdyno(&format!("{SMALL} {both} --out r"));
    assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    scratch.kvdyno("compare r").expect_line(
        64,
        &[
            "not compared",
            "durability differs (none (as set up) and survives power loss (as set up))",
            "--allow-unequal",
        ],
    );
    let ended = expect_passed(scratch.kvdyno("compare r --allow-unequal"));
    for word in ["unequal: durability differs", "caution: one trial each", "rate", "p99.9"] {
        assert!(ended.out.contains(word), "`{word}` is not in:\n{}", ended.out);
    }
}

#[test]
fn other_data_load_or_client_refuses_the_comparison() {
    let scratch = Scratch::new();
    let base = "run --store map: --requests 500";
    let cases = [
        ("a", "--records 200 --clients 1", ""),
        ("b", "--records 300 --clients 1", "data differs"),
        ("c", "--records 200 --clients 2", "clients of phase run differs (1 and 2)"),
        ("d", "--records 200 --clients 1 --mix update=100", "mix of phase run differs"),
        ("e", "--records 200 --clients 1 --no-verify", "only one side checked what it read"),
    ];
    for (name, options, _) in &cases {
        scratch.kvdyno(&format!("{base} {options} --out {name}"));
    }
    for (name, _, word) in &cases[1..] {
        scratch.kvdyno(&format!("compare a {name}")).expect_line(64, &["not compared", word]);
    }
    scratch.kvdyno(&format!("{base} --records 200 --clients 1 --seed 7 --out f"));
    let ended = expect_passed(scratch.kvdyno("compare a f"));
    assert!(ended.out.contains("caution: seeds differ"), "{}", ended.out);
}

#[test]
fn what_cannot_be_compared_is_told_in_one_line() {
    let scratch = Scratch::new();
    scratch.kvdyno(&format!("{SMALL} --store map: --out a"));
    fs::create_dir(scratch.path("empty")).expect("the scratch folder can be written");
    let line = |arguments: &[&str], words: &[&str]| {
        let mut all = vec!["compare"];
        all.extend(arguments);
        scratch.run(&all).expect_line(64, words);
    };
    line(&["a"], &["one store only (map)"]);
    line(&["empty", "a"], &["empty has no result.json"]);
    line(&["nowhere", "a"], &["cannot read nowhere"]);
    line(&["a", "a", "--fail-on", "p99(get) >"], &["--fail-on"]);
    line(&["a", "a", "--fail-on", "p99(scan) > +5%"], &["no such phase", "run (get, update)"]);
    line(&["a", "a", "--fail-on", "anomalies > +5%"], &["comparisons know rate"]);
    line(&["a", "a", "--fail-on", "rate == +5%"], &["use < or >"]);
    line(&["a", "a", "--needs", "p99 < +5%"], &["--fail-on"]);
}

#[test]
fn a_result_becomes_junit_xml() {
    let scratch = Scratch::new();
    scratch.kvdyno(&format!("{SMALL} --store map: --out a"));
    scratch.kvdyno("report a -o a.xml").expect(0);
    let text = fs::read_to_string(scratch.path("a.xml")).expect("JUnit XML");
    assert!(text.contains("classname=\"run\" name=\"every read was right\"/>"), "{text}");
    scratch.kvdyno("report a -o a.txt").expect(64).expect_words(&[".html, .md or .xml"]);
}
