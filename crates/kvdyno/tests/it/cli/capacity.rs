//! The highest rate that a store carries, what that costs, and which stores meet the requirements at all.

use serde_json::Value;

use crate::support::Scratch;

/// Four clients of five milliseconds each carry 800 requests a second, and no more.
const COMPUTED: f64 = 800.0;

#[test]
fn the_capacity_of_a_known_store_is_found_and_told_everywhere() {
    let scratch = Scratch::new();
    let ended = scratch.run(&[
        "run",
        "capacity",
        "--store",
        "sim:?service=5ms",
        "--records",
        "100",
        "--clients",
        "4",
        "--slo",
        "p99(get)<30ms,errors==0",
        "--set",
        "run.duration=1s",
        "--servers",
        "n1-standard-8=2",
        "--out",
        "r",
    ]);
    // A build without optimisation is invalid by design.
    assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    let result = scratch.result("r");
    let found = &result["runs"][0]["capacity"][0];
    let rate = |name: &str| found[name].as_f64().unwrap_or_else(|| panic!("{name}: {found:#}"));
    let (carried, missed) = (rate("carried"), rate("missed"));
    assert!((COMPUTED * 0.6..=COMPUTED * 1.05).contains(&carried), "{carried}: {found:#}");
    assert!(missed > carried, "{found:#}");
    let sweep = found["sweep"].as_array().expect("a sweep");
    let clients: Vec<u64> = sweep.iter().filter_map(|probe| probe["clients"].as_u64()).collect();
    assert_eq!(clients, [1, 2, 3, 4]);
    assert!(found["fit"]["r2"].as_f64().is_some_and(|r2| r2 > 0.9), "{found:#}");
    let confirmed = found["probes"].as_array().and_then(|probes| probes.last()).expect("probes");
    assert_eq!((&confirmed["purpose"], &confirmed["seen"]), (&"confirm".into(), &"meets".into()));
    let evidence = result["runs"][0]["evidence"].as_array().expect("evidence");
    for claimed in ["met-objective", "own-limit"] {
        assert!(evidence.iter().any(|one| one["claimed"] == claimed), "{evidence:#?}");
    }
    for words in ["run: capacity ", "law of scaling (Gunther)", "USD per million operations"] {
        assert!(ended.out.contains(words), "`{words}` is not in {}", ended.out);
    }
    let page = std::fs::read_to_string(scratch.path("r/report.html")).expect("the report");
    assert!(page.contains("capacity-latency") && page.contains("Latency against throughput"));
}

#[test]
fn a_rate_that_nothing_meets_is_no_capacity() {
    let scratch = Scratch::new();
    let words = "run capacity --store map: --records 100 --clients 1 --slo p50<1ns \
                 --set run.duration=10ms --set warmup=false --out r";
    // That every rate was missed refutes the claim, unless the measurement is invalid, as that of a debug build is.
    let (code, status) = if cfg!(debug_assertions) { (2, "inconclusive") } else { (1, "refuted") };
    let ended = scratch.kvdyno(words).expect(code);
    assert!(ended.out.contains("no rate was confirmed"), "{}", ended.out);
    let run = &scratch.result("r")["runs"][0];
    assert_eq!(run["capacity"][0]["carried"], Value::Null);
    let evidence = run["evidence"].as_array().expect("evidence");
    let asked = evidence.iter().find(|one| one["claimed"] == "met-objective").expect("the search");
    assert_eq!((&asked["phase"], &asked["status"]), (&"run".into(), &status.into()), "{asked}");
}

#[test]
fn costs_are_told_with_their_assumptions() {
    let scratch = Scratch::new();
    scratch.write(
        "mine.toml",
        "currency = 'EUR'\nhours-month = 100\n[[kind]]\nname = 'box'\nhour = 0.5\nsource = 'a bill'\n\
         date = '2026-11'\n",
    );
    let run = "run --store map: --records 200 --requests 500 --clients 2 --out r";
    scratch.kvdyno(run).expect_done();
    let ended = scratch.kvdyno("cost r --prices mine.toml --servers box=4 --load 1G/s").expect(0);
    for words in [
        "2.00 EUR an hour, 200.00 EUR a month of 100 hours: 4 × box at 0.5 an hour (a bill, 2026-11)",
        "cost of Run, ",
        "servers for 1,000,000,000/s: ",
        "warning: that goes beyond the 1 server(s) measured",
    ] {
        assert!(ended.out.contains(words), "`{words}` is not in {}", ended.out);
    }
    let published = scratch.kvdyno("cost").expect(0);
    assert_eq!(published.out.matches("CONTRADICTS").count(), 2, "{}", published.out);
    assert!(published.out.contains("cost of a month: printed 4,499: follows"), "{}", published.out);
}

#[test]
fn stores_are_winnowed_by_what_their_runs_show() {
    let scratch = Scratch::new();
    scratch.write(
        "r.toml",
        "name = 'r'\nrecords = 500\noperations = ['get', 'delete']\nconsistency = 'linearizable'\n\
         latency = { slo = 'p50 < 10s', rate = '200/s', duration = '1s' }\n",
    );
    let words = "winnow r.toml --store map: --store sim:?corrupt=50 --out w --quiet";
    let ended = scratch.kvdyno(words);
    let text = std::fs::read_to_string(scratch.path("w/winnow.json")).expect("the cells");
    let columns: Value = serde_json::from_str(&text).expect("JSON");
    let standing = |store: usize, cell: usize| columns[store]["cells"][cell]["standing"].clone();
    assert_eq!((standing(0, 0), standing(0, 1)), ("met".into(), "met".into()), "{columns:#}");
    assert_eq!(standing(0, 2), "met", "{columns:#}");
    assert_eq!((standing(1, 0), standing(1, 2)), ("not-met".into(), "not-met".into()));
    // The first latency is met, or not shown on a machine that is too busy to show it.
    assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    assert!(ended.out.contains("operation delete"), "{}", ended.out);
    for name in ["winnow.md", "winnow.html", "1-map/report.html"] {
        assert!(scratch.path("w").join(name).exists(), "{name}");
    }
}

#[test]
fn mistakes_are_told_in_one_line() {
    let scratch = Scratch::new();
    scratch.write("r.toml", "name = 'r'\noperatoins = []\n");
    scratch.write("p.toml", "currency = 'EUR'\n[[kind]]\nname = 'box'\nhuor = 1\n");
    let run = "run --store map: --records 10 --requests 10";
    let capacity = "capacity --store map:";
    let one_line: &[(String, &[&str])] = &[
        (format!("{capacity} --slo p99(gte)<5ms"), &["--slo p99(gte)<5ms", "`get`"]),
        (format!("{capacity} --slo p99<+5%"), &["no condition on one phase"]),
        ("run quick --slo p99<5ms".to_owned(), &["no phase of this suite is a search"]),
        (format!("{run} --servers n1-standard-9=1"), &["did you mean `n1-standard-8`?"]),
        (format!("{run} --servers box"), &["KIND=NUMBER"]),
        (format!("{run} --prices p.toml"), &["--servers"]),
        (format!("{run} --hours-month 5"), &["--servers"]),
        ("cost nowhere --servers n1-standard-8=1".to_owned(), &["nowhere"]),
        ("winnow nowhere.toml --store map:".to_owned(), &["nowhere.toml"]),
    ];
    for (words, told) in one_line {
        scratch.kvdyno(words).expect_line(64, told);
    }
    let ended = scratch.kvdyno("winnow r.toml --store map:").expect(64);
    assert!(ended.err.contains("r.toml:2:1") && ended.err.contains("did you mean `operations`?"));
    let ended = scratch.kvdyno("cost --prices p.toml").expect(64);
    assert!(ended.err.contains("p.toml:4:1") && ended.err.contains("did you mean `hour`?"));
    scratch.write("good.toml", "name = 'r'\n");
    scratch.kvdyno("winnow good.toml").expect_line(64, &["--store URL"]);
    scratch.write("kills.toml", "name = 'r'\nsurvives-killed-node = true\n");
    let own = "winnow kills.toml --testbed servers.toml";
    scratch.kvdyno(own).expect_line(64, &["servers of your own", "survives-killed-node"]);
}
