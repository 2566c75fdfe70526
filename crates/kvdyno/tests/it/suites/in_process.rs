//! Every built-in suite, much smaller than life, runs to its end on a correct store in this process.

use crate::suites::{assert_amesar_2011, assert_aws_2014, assert_gce_2015, assert_ycsb, run};
use crate::support::Scratch;

#[test]
fn amesar_2011_runs_its_twelve_rows_in_order() {
    assert_amesar_2011("map:");
}

#[test]
fn aws_2014_inserts_before_each_test() {
    assert_aws_2014("map:");
}

#[test]
fn gce_2015_populates_reads_and_writes_again() {
    assert_gce_2015("map:");
}

#[test]
fn helium_2015_sweeps_over_threads_from_empty_to_empty() {
    let options = ["--scale", "0.00001", "--set", "sweep.clients=[1, 2, 4]"];
    let all = [&options[..], &["--set", "sweep.within-processors=false"]].concat();
    let run = run("helium-2015", "map:", &all);
    run.assert_not_comparable();
    let steps = ["insert", "get-sequential", "get-random", "delete"];
    let expected: Vec<String> =
        [1, 2, 4].iter().flat_map(|n| steps.map(|step| format!("{step}@{n}"))).collect();
    assert_eq!(run.names(), expected);
    let clients = run.phases().iter().map(|phase| phase["groups"][0]["clients"].as_u64().unwrap());
    assert!(clients.eq([1, 2, 4].into_iter().flat_map(|n| [n; 4])));
    for (phase, name) in run.phases().iter().zip(&expected) {
        let (step, _) = name.split_once('@').unwrap();
        assert_eq!(phase["started_operations"], 1_000);
        // Each insert begins at record 0 again, since the deletes before it emptied the store.
        let kind = step.split('-').next().unwrap();
        assert_eq!(run.done(name), [(kind, 1_000)]);
        assert_eq!(phase["records"], 1_000, "{name}");
    }
}

#[test]
fn expiry_watches_records_go_when_they_are_due() {
    let options = ["--scale", "0.05", "--set", "ttl=1s", "--set", "renew.rate=2000"];
    let durations = ["--set", "watch.duration=2s", "--set", "renew.duration=2s"];
    let run = run("expiry", "map:", &[&options[..], &durations].concat());
    assert_eq!(run.names(), ["load", "watch", "renew"]);
    let misses =
        |phase: usize| run.phases()[phase]["tally"]["legal_misses"].as_u64().unwrap() as f64;
    // A second of two.
    let share = misses(1) / 40_000.0;
    assert!((0.3..0.7).contains(&share), "{share} of the reads found nothing");
    assert!(misses(2) > 0.0 && misses(2) < 3_200.0, "{} of 3,200", misses(2));
}

#[test]
fn negative_looks_for_what_was_never_written() {
    let options = ["--scale", "0.001", "--requests", "1000", "--set", "warmup=false"];
    let run = run("negative", "map:", &options);
    assert_eq!(run.names(), ["load", "load:read-back", "present", "absent", "both"]);
    assert_eq!(run.done("present"), [("get", 1_000)]);
    assert_eq!(run.done("absent"), [("get-absent", 1_000)]);
    assert_eq!(run.done("both"), [("get", 500), ("get-absent", 500)]);
    let misses = |phase: usize| run.phases()[phase]["tally"]["legal_misses"].as_u64().unwrap();
    assert_eq!([misses(2), misses(3), misses(4)], [0, 1_000, 500]);
}

#[test]
fn churn_inserts_as_many_as_it_deletes() {
    let options = ["--scale", "0.01", "--duration", "2s", "--set", "warmup=false"];
    let run = run("churn", "map:", &options);
    assert_eq!(run.names(), ["load", "churn", "churn:read-back"]);
    let done = run.done("churn");
    let of = |kind| done.iter().find(|d| d.0 == kind).unwrap().1 as f64;
    assert!((of("insert") / of("delete") - 1.0).abs() < 0.05, "{done:?}");
    assert!((2.0..3.5).contains(&(of("get") / of("insert") / 2.0)), "{done:?}");
}

#[test]
fn cache_reads_with_few_updates() {
    let options = ["--scale", "0.01", "--requests", "2000", "--set", "warmup=false"];
    let run = run("cache", "map:", &options);
    assert_eq!(run.names(), ["load", "get", "mix", "mix:read-back"]);
    assert_eq!(run.done("get"), [("get", 2_000)]);
    assert_eq!(run.done("mix"), [("get", 1_900), ("update", 100)]);
}

#[test]
fn ycsb_core_workloads_do_what_they_say() {
    assert_ycsb("ycsb-a", "map:", &[("get", 500), ("update", 500)]);
    assert_ycsb("ycsb-b", "map:", &[("get", 950), ("update", 50)]);
    assert_ycsb("ycsb-c", "map:", &[("get", 1_000)]);
    assert_ycsb("ycsb-d", "map:", &[("insert", 50), ("get", 950)]);
    assert_ycsb("ycsb-e", "map:", &[("insert", 50), ("scan", 950)]);
    assert_ycsb("ycsb-f", "map:", &[("get", 500), ("read-modify-write", 500)]);
}

#[test]
fn a_ycsb_file_runs_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.properties");
    let text = "recordcount=300\noperationcount=2000\nworkload=site.ycsb.workloads.CoreWorkload\n\
                readproportion=0.7\nupdateproportion=0.3\nrequestdistribution=zipfian\n\
                fieldcount=2\nfieldlength=50\nthreadcount=3\n";
    std::fs::write(&file, text).unwrap();
    let word = format!("ycsb:{}", file.display());
    let run = run(&word, "map:", &["--set", "warmup=100ms"]);
    assert_eq!(run.names(), ["load", "run:warm-up", "run", "run:read-back"]);
    assert_eq!(run.done("load"), [("insert", 300)]);
    assert_eq!(run.done("run"), [("get", 1_400), ("update", 600)]);
    assert_eq!(run.done("run:read-back"), [("get", 300)]);
    assert_eq!(run.phases()[2]["groups"][0]["clients"], 3);
}

#[test]
fn suites_of_servers_ask_for_a_store_in_one_line() {
    let scratch = Scratch::new();
    let listed = scratch.kvdyno("suites").expect(0).out;
    for suite in ["amesar-2011", "aws-2014", "gce-2015", "helium-2015", "ycsb-a", "ycsb-e"] {
        assert!(listed.lines().any(|line| line.split(' ').next() == Some(suite)), "{listed}");
        let said = scratch.kvdyno(&format!("run {suite}")).expect(64).err;
        let lines: Vec<&str> = said.lines().collect();
        let [line] = lines[..] else { panic!("{said}") };
        assert!(line.contains(suite) && line.contains("--store URL"), "{line}");
    }
}

/// The plan of a suite at full scale costs nothing to look at, however many records it is about.
#[test]
fn dry_runs_at_full_scale_are_quick_and_small() {
    // 512 MiB of addresses: nothing that grows with the records fits.
    let bounded = |suite| {
        format!(
            "ulimit -v 524288; exec timeout 5 kvdyno run {suite} --dry-run \
             --store redis://127.0.0.1 --set warmup=2s"
        )
    };
    for (suite, says) in [
        ("quick", "records: 200k"),
        ("amesar-2011", "120M requests"),
        ("aws-2014", "210M requests"),
        ("gce-2015", "5120 clients"),
        ("helium-2015", "records: 100M"),
        ("ycsb-a", "50% update"),
        ("ycsb-f", "50% read-modify-write"),
    ] {
        let plan = Scratch::new().shell(&bounded(suite)).wait().expect(0).out;
        assert!(plan.contains(says) && plan.contains("first operations"), "{suite}:\n{plan}");
    }
}
