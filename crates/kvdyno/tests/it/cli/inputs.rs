//! Wrong input ends in one line that says what is wrong, where, and what to do, and in the documented exit code.

use std::ffi::OsString;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::ffi::OsStringExt;

use crate::support::Scratch;

/// Arguments, exit code, words of the line.
type Case = (&'static str, i32, &'static [&'static str]);

#[test]
fn wrong_arguments_end_in_one_line() {
    let cases: &[Case] = &[
        ("bogus", 64, &["bogus", "--help"]),
        ("rnu", 64, &["rnu", "--help"]),
        ("run --bogus", 64, &["--bogus", "--help"]),
        ("run --scale abc", 64, &["--scale", "abc"]),
        ("run --scale 0", 64, &["--scale 0", "above 0"]),
        ("run --scale -1", 64, &["-1"]),
        ("run --records 1k --mix get=50 --store map:", 64, &["--mix get=50", "50 %"]),
        ("run --records 1k --mix gte=100 --store map:", 64, &["--mix gte=100", "`get`"]),
        ("run --records 1k --keys zipfain --store map:", 64, &["--keys zipfain", "zipfian"]),
        ("run --records 1k --value 3X --store map:", 64, &["--value 3X: `3X` is not", "100B"]),
        ("run --records lots --store map:", 64, &["'lots' for '--records", "10M"]),
        ("run --set put.clients=x", 64, &["--set put.clients=x", "10M"]),
        ("run --set putt.clients=3", 64, &["--set putt.clients=3", "`put`"]),
        ("run --set put.clinets=3", 64, &["--set put.clinets=3", "`clients`"]),
        ("run --set put", 64, &["--set put", "PHASE.KEY=VALUE"]),
        ("run --clients 0", 64, &["--clients 0", "at least 1"]),
        ("run --threads 0", 64, &["--threads 0", "at least 1"]),
        ("run --duration soon", 64, &["--duration", "soon", "30s"]),
        ("run --rate fast", 64, &["--rate", "fast", "50k"]),
        ("run --give-up never", 64, &["--give-up", "never"]),
        ("run quik", 64, &["quik", "`quick`"]),
        ("run nothing-like-it", 64, &["nothing-like-it", "amesar-2011"]),
        ("run ycsb:missing-file", 64, &["missing-file"]),
        ("run churn --mix get --store map:", 64, &["--mix get", "--set churn.writers.mix=get"]),
        (
            "testbed fault kill --testbed own.toml",
            64,
            &["own.toml is a file", "testbed up own.toml"],
        ),
        ("report nowhere", 64, &["nowhere"]),
        ("rerun nowhere", 64, &["nowhere"]),
        ("check --store redi://h", 64, &["redi", "`redis:`"]),
    ];
    let scratch = Scratch::new();
    for (arguments, code, words) in cases {
        let ended = scratch.kvdyno(arguments).expect_line(*code, words);
        assert_eq!(ended.out, "", "{arguments}");
    }
    assert!(!scratch.path("kvdyno-results").exists(), "nothing was measured");
}

/// Mistakes that need no store are told before a store is opened, set up or loaded: with `--dry-run` and without.
#[test]
fn what_can_be_known_is_said_before_the_run() {
    let scratch = Scratch::new();
    let suite = |name: &str, phase: &str| {
        let head = "name = \"s\"\nrecords = 100\nwarmup = false\n[[phase]]\nname = \"load\"\nload = true\n";
        scratch
            .write(name, &format!("{head}[[phase]]\nname = \"p\"\nduration = \"10ms\"\n{phase}\n"));
    };
    suite("scan.toml", "mix = \"scan\"");
    suite("ttl.toml", "mix = \"update\"\nttl = \"5s\"");
    suite(
        "claim.toml",
        "mix = \"get\"\n[[phase.claim]]\nsays = \"fast\"\nholds = \"p99(update) < 1ms\"",
    );
    suite(
        "fault.toml",
        "mix = \"get\"\n[[phase.claim]]\nsays = \"back\"\nholds = \"last_error < 1s\"",
    );
    let nowhere = "redis://127.0.0.1:1";
    let cases: &[(&str, i32, &[&str])] = &[
        (
            "run grow --testbed memcached:3",
            64,
            &["can take another node while it runs; memcached cannot"],
        ),
        (&format!("run scan.toml --store {nowhere}"), 69, &["phase p", "redis has no scan"]),
        ("run scan.toml --testbed redis", 69, &["redis has no scan"]),
        ("run ttl.toml --store lmdb:db", 69, &["lmdb has no time to live"]),
        (&format!("run --records 1k --store {nowhere}?timeuot=1s"), 64, &["timeuot", "`timeout`"]),
        ("run --records 1k --store redb:db?durability=process", 64, &["`redb` cannot", "`power`"]),
        (
            "run --records 1k --store cache(map:,lmdb:db?durability=process&sync=map)",
            64,
            &["`sync=map` without `writemap`"],
        ),
        ("run --records 1k --store sim:?log=db&lie=x", 64, &["bad value `x`", "`lie`"]),
        (&format!("run --records 1k --store {nowhere}?timeout=0"), 64, &["timeout of 0"]),
        ("run --records 1k --store plugin:", 64, &["plugin:./mine.so"]),
        (
            "run capacity --records 1k --mix get=100 --slo p99(update)<10ms --store map:",
            64,
            &["p99(update) < 10ms", "has no update"],
        ),
        ("run claim.toml --store map:", 64, &["\"fast\"", "phase p has no update"]),
        ("run fault.toml --store map:", 64, &["\"back\"", "phase p has no fault"]),
        ("run quick --store map: --trials 2 --data reuse", 64, &["--trials", "--data reuse"]),
        ("run quick --store map: --servers no-such-server=1", 64, &["no-such-server"]),
        ("run failover --store map:", 64, &["--testbed"]),
    ];
    for (arguments, code, words) in cases {
        for dry in ["", " --dry-run"] {
            scratch.kvdyno(&format!("{arguments}{dry}")).expect_line(*code, words);
        }
    }
    assert!(!scratch.path("db").exists() && !scratch.path("kvdyno-results").exists());
    // A claim that an option makes empty is told.
    let changed =
        scratch.kvdyno("run claim.toml --store map: --set p.mix=scan --dry-run").expect(0);
    changed.expect_words(&["\"fast\" cannot be judged", "has no update"]);
}

/// Mistakes that only the opened store can tell are told before anything is loaded.
#[test]
fn what_a_store_lacks_is_said_before_the_load() {
    let scratch = Scratch::new();
    let line = "run --records 100 --mix scan=100 --store cache(map:,null:) --out r";
    scratch.kvdyno(line).expect_line(69, &["has no scan"]);
    assert!(!scratch.path("r").exists(), "nothing was loaded");
}

#[test]
fn wrong_urls_end_in_one_line() {
    let cases: &[(&str, &[&str])] = &[
        ("redi://127.0.0.1", &["`redi`", "`redis:`"]),
        ("127.0.0.1:6379", &["redis://"]),
        ("lmdb:?durabilty=none", &["`durabilty`", "`durability`"]),
        ("lmdb:?durability=sometimes", &["sometimes", "power"]),
        ("redis://[::1", &["[::1]"]),
        ("redis://h:99999", &["99999"]),
        ("redis://h?tls=perhaps", &["tls"]),
    ];
    let scratch = Scratch::new();
    for (url, words) in cases {
        scratch.run(&["run", "--records", "1k", "--store", url]).expect_line(64, words);
    }
    assert!(!scratch.path("kvdyno-results").exists(), "nothing was measured");
}

#[test]
fn a_mistake_in_a_suite_is_shown_where_it_stands() {
    let scratch = Scratch::new();
    scratch.write(
        "s.toml",
        "name = \"x\"\nrecords = \"1k\"\n\n[[phase]]\nname = \"a\"\nmxi = \"get\"\n",
    );
    let ended = scratch.kvdyno("run s.toml --store map:").expect(64);
    let lines: Vec<&str> = ended.err.lines().collect();
    assert_eq!(
        lines,
        [
            "kvdyno: s.toml:6:1: unknown key `mxi` in [[phase]]; did you mean `mix`?",
            "6 | mxi = \"get\"",
            "  | ^^^",
        ]
    );
}

#[test]
fn values_too_small_to_verify_are_refused() {
    let scratch = Scratch::new();
    let run = "run --store map: --records 100 --duration 100ms --out r --value";
    for value in ["3B", "7B..100B"] {
        let words = ["8 bytes", "--no-verify"];
        scratch.kvdyno(&format!("{run} {value}")).expect_line(64, &words);
        assert!(!scratch.path("r").exists());
    }
    scratch.kvdyno(&format!("{run} 3B --no-verify")).expect_done();
    let result = scratch.result("r");
    assert_eq!(result["runs"][0]["phases"][0]["tally"], serde_json::Value::Null);
}

#[test]
fn an_unreachable_server_leaves_no_result() {
    let scratch = Scratch::new();
    for _ in 0..2 {
        // The second run would be refused if the first had left a result.
        let words = ["redis://127.0.0.1:1", "refused"];
        scratch
            .kvdyno("run --records 1k --store redis://127.0.0.1:1 --out r")
            .expect_line(69, &words);
    }
    assert!(!scratch.path("r").exists());
    scratch.kvdyno("check --store redis://127.0.0.1:1").expect(69).expect_words(&["refused"]);
    let words = ["no-such-host.invalid"];
    scratch.kvdyno("run --records 1k --store redis://no-such-host.invalid").expect_line(69, &words);
}

#[test]
fn a_server_of_another_protocol_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        }
    });
    let scratch = Scratch::new();
    for scheme in ["redis", "memcached"] {
        let url = format!("{scheme}://127.0.0.1:{port}");
        scratch.run(&["run", "--records", "1k", "--store", &url]).expect_line(69, &[&url]);
    }
}

#[test]
fn more_records_than_memory_are_refused() {
    let scratch = Scratch::new();
    let words = ["memory", "--no-verify"];
    scratch.kvdyno("run --store map: --records 900G --out r").expect_line(64, &words);
    assert!(!scratch.path("r").exists());
}

/// A folder's name is bytes; the part of it that is text goes into the result.
#[test]
fn a_folder_need_not_be_named_in_utf_8() {
    let scratch = Scratch::new();
    let folder = OsString::from_vec(b"r\xe9sultat".to_vec());
    let words =
        "run --store null: --records 100 --mix get=100 --requests 100 --set warmup=false --out";
    let mut arguments: Vec<OsString> = words.split(' ').map(OsString::from).collect();
    arguments.push(folder.clone());
    let ended = scratch.run(&arguments);
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    let path = scratch.path("").join(folder).join("result.json");
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let typed = result["command"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert_eq!(typed, "r\u{fffd}sultat");
}
