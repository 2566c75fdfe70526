//! Each option does what it says, seen in the plan, the figures or the output.

use serde_json::Value;

use crate::support::Scratch;
use crate::support::suite::{self, Suite};

const RUN: &str = "run --store map: --records 200 --requests 500 --clients 2";

/// Returns the value at a path of the phase `run` of a result.
fn of_run(result: &Value, pointer: &str) -> Value {
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    let run = phases.iter().find(|phase| phase["name"] == "run").expect("the phase");
    run.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {run:#}")).clone()
}

#[test]
fn options_change_what_is_run() {
    let plan = |text: &str| format!("/suite/plan{text}");
    let cases: &[(&str, &str, &str)] = &[
        ("--seed 99", "/seed", "99"),
        ("--threads 1", &plan("/threads"), "1"),
        ("--scale 0.5", "/suite/scale", "0.5"),
        ("--data reuse", "/status/state", "\"complete\""),
    ];
    let scratch = Scratch::new();
    for (number, (option, pointer, expected)) in cases.iter().enumerate() {
        scratch.kvdyno(&format!("{RUN} {option} --out r{number}")).expect_done();
        let result = scratch.result(&format!("r{number}"));
        let value = result.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
        assert_eq!(value.to_string(), *expected, "{option}");
    }
}

#[test]
fn options_change_the_phases() {
    let cases: &[(&str, &str, &str)] = &[
        ("--clients 3", "/groups/0/clients", "3"),
        ("--mix update=100", "/series/0/kind", "\"update\""),
        ("--requests 700", "/series/0/ok", "700"),
        ("--set run.requests=600 --requests 600", "/series/0/ok", "600"),
    ];
    let scratch = Scratch::new();
    let base = "run --store map: --records 200 --set run.warmup=0s";
    for (number, (option, pointer, expected)) in cases.iter().enumerate() {
        let requests = if option.contains("--requests") { "" } else { "--requests 500" };
        let clients = if option.contains("--clients") { "" } else { "--clients 2" };
        scratch
            .kvdyno(&format!("{base} {requests} {clients} {option} --out r{number}"))
            .expect_done();
        let value = of_run(&scratch.result(&format!("r{number}")), pointer);
        assert_eq!(value.to_string(), *expected, "{option}");
    }
}

#[test]
fn a_rate_makes_arrivals_open() {
    let scratch = Scratch::new();
    let ended = scratch.kvdyno(&format!("{RUN} --rate 1k/s --out r"));
    // A busy machine sends late, which makes the figures invalid and the arrivals no less open.
    assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    let result = scratch.result("r");
    assert_eq!(of_run(&result, "/groups/0/open"), true);
    assert_eq!(of_run(&result, "/series/0/response/count"), 500);
    let wall = of_run(&result, "/wall_ns").as_u64().expect("a time");
    assert!(wall > 400_000_000, "500 requests at 1k/s take half a second: {wall}");
    // The course of a changing rate ends when 500 are due, and the output says so.
    std::fs::write(scratch.path("day.csv"), "s,rate\n0,500\n200ms,500/s\n0.2,2k/s\n").unwrap();
    let dry = scratch.kvdyno(&format!("{RUN} --rate day.csv --dry-run")).expect(0);
    let told = "day.csv (3 points, 500/s to 2k/s over 200ms)";
    assert!(dry.out.contains(&format!("2 clients at {told}")), "{}", dry.out);
    let ended = scratch.kvdyno(&format!("{RUN} --rate day.csv --out c"));
    assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    let result = scratch.result("c");
    assert_eq!(of_run(&result, "/groups/0/curve"), told);
    let wall = of_run(&result, "/wall_ns").as_u64().expect("a time");
    assert!(wall >= 400_000_000, "100 in the first 200 ms, then 400 at 2k/s: {wall}");
    scratch.kvdyno(&format!("{RUN} --rate no.csv")).expect_line(64, &["--rate: no.csv: "]);
}

#[test]
fn short_options_are_those_of_other_tools() {
    let scratch = Scratch::new();
    let dry = |options: &str| {
        let line = format!("run --store map: --records 100 --dry-run {options}");
        scratch.kvdyno(&line).expect(0).out
    };
    let long = dry("--clients 3 --duration 2s --rate 200/s --threads 1");
    assert!(long.contains("3 clients at 200/s"), "{long}");
    assert_eq!(dry("-c 3 -d 2s -r 200/s -t 1"), long);
    assert_eq!(dry("-c3 -n 400"), dry("--clients 3 --requests 400"));
    scratch.kvdyno("run --store map: --records 100 -n 500 --quiet -o short").expect_done();
    assert_eq!(of_run(&scratch.result("short"), "/started_operations"), 500);
    // Users of redis-benchmark mean a number of keys.
    let bare = scratch.kvdyno("run --store map: --records 100 -r 1000000").expect(64);
    let told = bare.err.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["write 1000000/s", "--records 1000000"] {
        assert!(told.contains(part), "{told}");
    }
    for (typed, hint) in [
        ("-d 100", "is --value 100B"),
        ("--ratio=1:10", "--ratio of memtier_benchmark is --mix update=10,get=90 here"),
        ("-P 16", "-P of redis-benchmark is --pipeline 16 here"),
    ] {
        let line = format!("run --store map: --records 100 {typed}");
        let told = scratch.kvdyno(&line).expect(64).err;
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(hint), "{typed}: {told}");
    }
}

/// Core's tests show how each keeps its promise; this one, that the option reaches the load.
#[test]
fn waiting_spins_as_much_as_it_is_told_to() {
    let scratch = Scratch::new();
    let load = "run --store map: --records 100 --clients 1 --rate 500/s --duration 500ms";
    let spun = |name: &str, pace: &str| {
        let ended = scratch.kvdyno(&format!("{load} {pace} --out {name}"));
        // As above: sending late is no failure here.
        assert!([0, 2].contains(&ended.code()), "{ended:#?}");
        of_run(&scratch.result(name), "/workers/0/spun_ns").as_u64().expect("ns")
    };
    assert_eq!(spun("timer", "--pace timer"), 0);
    assert!(spun("spin", "--pace spin") > spun("both", "--pace both"));
    let wrong = scratch.kvdyno(&format!("{load} --pace never")).expect(64);
    assert!(wrong.err.contains("spin") && wrong.err.contains("timer"), "{}", wrong.err);
}

#[test]
fn scale_shrinks_records_and_requests_and_is_stamped() {
    let scratch = Scratch::new();
    let suite = Suite::of(1_000).set("stores", ["map:"]).load();
    let suite = suite.phase("run", "get").set("requests", "3k");
    suite::write(&scratch.path("s.toml"), suite);
    let ended = scratch.kvdyno("run s.toml --scale 0.1 --out r").expect_done();
    assert!(ended.out.contains("scaled ×0.1: not comparable"), "{}", ended.out);
    let result = scratch.result("r");
    assert_eq!(result["runs"][0]["phases"][0]["series"][0]["ok"], 100);
    assert_eq!(of_run(&result, "/series/0/ok"), 300);
}

#[test]
fn duration_value_and_keys_reach_the_load() {
    let scratch = Scratch::new();
    let base = "run --store map: --clients 2 --set run.warmup=0s --records 1k";
    scratch.kvdyno(&format!("{base} --duration 700ms --value 500B --out a")).expect_done();
    let result = scratch.result("a");
    let wall = of_run(&result, "/wall_ns").as_u64().expect("a time");
    assert!((650_000_000..3_000_000_000).contains(&wall), "{wall}");
    let tally = |what: &str| of_run(&result, "/tally")[what].as_u64().expect("a count");
    assert_eq!(tally("bytes_checked"), tally("judged") * 500);
    let first = |keys: &str| {
        let shown = scratch.kvdyno(&format!("{base} --requests 9 --keys {keys} --dry-run"));
        shown.expect(0).out
    };
    assert_ne!(first("sequential"), first("zipfian"));
}

#[test]
fn without_verification_nothing_is_judged() {
    let scratch = Scratch::new();
    let ended = scratch.kvdyno(&format!("{RUN} --no-verify --out r")).expect_done();
    assert!(ended.out.contains("verification was off"), "{}", ended.out);
    assert_eq!(of_run(&scratch.result("r"), "/tally"), Value::Null);
}

#[test]
fn a_dry_run_shows_all_and_runs_nothing() {
    let scratch = Scratch::new();
    // Nothing listens there: it would end with 69 if it were asked.
    let line =
        "run --store redis://:sw0rdfish@127.0.0.1:1 --records 10k --mix get=50,update=50 --dry-run";
    let ended = scratch.kvdyno(line).expect(0);
    for word in
        ["load", "run", "GET ", "SET ", "32 s", "MB written", "10k", "redis://:***@127.0.0.1:1"]
    {
        assert!(ended.out.contains(word), "`{word}` is not in:\n{}", ended.out);
    }
    assert!(!ended.out.contains("sw0rdfish"));
    assert!(!scratch.path("kvdyno-results").exists());
}

#[test]
fn json_is_one_document_of_the_published_schema() {
    let scratch = Scratch::new();
    let ended = scratch.kvdyno(&format!("{RUN} --json")).expect_done();
    let printed: Value = serde_json::from_str(&ended.out).expect("one JSON document");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/result.schema.json");
    let schema = std::fs::read_to_string(path).expect("the schema");
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let problems: Vec<String> = validator.iter_errors(&printed).map(|e| e.to_string()).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    assert_eq!(ended.err, "");
}

#[test]
fn progress_is_shown_on_a_terminal_only_and_not_if_quiet() {
    let scratch = Scratch::new();
    let line = "run --store map: --records 500 --clients 2 --duration 3s";
    let on_terminal =
        |more: &str| scratch.at_a_terminal(&format!("{line} {more}"), "").expect_done().out;
    let shown = on_terminal("");
    for word in ["map run", " of ", "/s", "p99 ", " left"] {
        assert!(shown.contains(word), "`{word}` is not in:\n{shown}");
    }
    assert!(!on_terminal("--quiet").contains(" left"));
    assert_eq!(scratch.kvdyno(line).expect_done().err, "", "no terminal, no progress");
}

#[test]
fn strict_takes_suspect_figures_for_none() {
    let scratch = Scratch::new();
    // 500 samples are too few for a p99: suspect.
    let code = if cfg!(debug_assertions) { 2 } else { 0 };
    scratch.kvdyno(&format!("{RUN} --out a")).expect(code);
    scratch.kvdyno(&format!("{RUN} --strict --out b")).expect(2);
    let verdict = scratch.result("b")["runs"][0]["verdict"]["reasons"].to_string();
    assert!(verdict.contains("too-few-samples"), "{verdict}");
}

#[test]
fn unequal_durability_is_compared_on_demand_only() {
    let scratch = Scratch::new();
    let line = "run --records 200 --requests 300 --clients 2 \
                --store lmdb:?durability=power --store lmdb:?durability=none";
    let refused = scratch.kvdyno(&format!("{line} --out a")).expect_done();
    let compared = scratch.kvdyno(&format!("{line} --allow-unequal --out b")).expect_done();
    let page = |name: &str| {
        std::fs::read_to_string(scratch.path(name).join("report.html")).expect("a report")
    };
    for text in [&refused.out, &page("a")] {
        assert!(text.contains("not compared; --allow-unequal compares them"));
        assert!(!text.contains("is ahead by"));
    }
    for text in [&compared.out, &page("b")] {
        assert!(text.contains("is ahead by") || text.contains("no clear leader"));
        assert!(text.contains("durability differs"));
    }
}

#[test]
fn lists_and_checks_tell_something_useful() {
    let scratch = Scratch::new();
    let stores = scratch.kvdyno("stores").expect(0).out;
    for word in ["lmdb", "redis", "memcached", "sim", "durability", "consistency", "?timeout"] {
        assert!(stores.contains(word), "`{word}` is not in:\n{stores}");
    }
    let suites = scratch.kvdyno("suites").expect(0).out;
    for word in ["quick", "amesar-2011", "helium-2015", "ycsb-f"] {
        assert!(suites.contains(word), "`{word}` is not in:\n{suites}");
    }
    let machine = scratch.kvdyno("check").expect(0).out;
    for word in ["clock", "disk sync", "open files", "ceiling", "worker threads are kept on"] {
        assert!(machine.contains(word), "`{word}` is not in:\n{machine}");
    }
    let store = scratch.kvdyno("check --store map:").expect(0).out;
    assert!(store.contains("The store answers"), "{store}");
    let needed = scratch.kvdyno("check --for gce-2015").expect(0).out;
    assert!(needed.contains("for gce-2015: 4M/s (published, phase read), at "), "{needed}");
    let refused = scratch.kvdyno("check --for quick").expect(64).err;
    assert!(refused.contains("add --rate"), "{refused}");
}

#[test]
fn alone_it_helps() {
    let ended = Scratch::new().run::<&str>(&[]).expect(64);
    assert!(ended.err.contains("Usage:") && ended.err.contains("rerun"), "{}", ended.err);
    let helped = Scratch::new().kvdyno("--help").expect(0);
    assert!(helped.out.contains("Usage:"), "{}", helped.out);
    let capacity = Scratch::new().kvdyno("capacity --help").expect(0);
    assert!(
        capacity.out.contains("--slo") && capacity.out.contains("Examples:"),
        "{}",
        capacity.out
    );
    assert!(!capacity.out.contains("[SUITE]"), "{}", capacity.out);
}

#[test]
fn documented_exit_codes_are_those_of_the_code() {
    let documented = include_str!("../../../../../docs/RESULTS.md");
    let code = include_str!("../../../src/exit.rs");
    let table = documented.split("## Exit codes").nth(1).expect("the chapter");
    let rows =
        table.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok());
    let mut documented: Vec<u8> = rows.collect();
    let numbers =
        code.lines().filter_map(|line| line.split_once(" = ")?.1.strip_suffix(',')?.parse().ok());
    let mut coded: Vec<u8> = numbers.collect();
    documented.sort_unstable();
    coded.sort_unstable();
    assert_eq!(documented, coded);
    assert_eq!(coded.len(), 7);
}

#[test]
fn a_reader_that_leaves_early_is_no_fault() {
    let scratch = Scratch::new();
    let ended = scratch.shell("{ sleep 1; kvdyno stores; echo code $? >&2; } | true").wait();
    assert_eq!(ended.err, "code 0\n");
}

/// The more agents there are, the more operations each draws that others carry out, and the less time a request of a
/// pipeline takes beside that. Many agents do without, and say so.
#[test]
fn many_agents_tell_that_they_read_anywhere() {
    let scratch = Scratch::new();
    let said = |agents: &str| {
        let load =
            "run --records 1000 --mix get=100 --clients 64 --store redis://127.0.0.1:1 --dry-run";
        scratch.kvdyno(&format!("{load} --agents {agents}")).expect(0).err
    };
    for (many, told) in [
        ("local:17", "17 agents read anywhere, as more than 16 do with a pipeline of 1;"),
        (
            "local:3 --pipeline 16",
            "3 agents read anywhere, as more than 2 do with a pipeline of 16;",
        ),
    ] {
        let told = format!("{told} with --reads own every read is judged");
        assert!(said(many).contains(&told), "{}", said(many));
        for other in ["--reads own", "--reads anywhere"] {
            assert!(!said(&format!("{many} {other}")).contains("read anywhere"), "{many} {other}");
        }
    }
    for few in ["local:16", "local:2 --pipeline 16"] {
        assert!(!said(few).contains("read anywhere"), "{few}");
    }
}
