//! Wrong input: one line that says what, where and what to do, and the documented exit code.

use std::io::Write;
use std::net::TcpListener;

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
        ("run --part 4/3 --store map:", 64, &["--part 4/3", "2/3"]),
        ("run --part x --store map:", 64, &["--part x", "2/3"]),
        ("run --records 1k --mix get=50 --store map:", 64, &["--mix get=50", "50 %"]),
        ("run --records 1k --mix gte=100 --store map:", 64, &["--mix gte=100", "`get`"]),
        ("run --records 1k --keys zipfain --store map:", 64, &["--keys zipfain", "zipfian"]),
        ("run --records 1k --value 3X --store map:", 64, &["--value 3X", "100B"]),
        ("run --records lots --store map:", 64, &["--records lots", "10M"]),
        ("run --set put.clients=x", 64, &["--set put.clients=x", "10M"]),
        ("run --set putt.clients=3", 64, &["--set putt.clients=3", "`put`"]),
        ("run --set put.clinets=3", 64, &["--set put.clinets=3", "`clients`"]),
        ("run --set put", 64, &["--set put", "PHASE.KEY=VALUE"]),
        ("run --clients 0", 64, &["--clients 0", "at least 1"]),
        ("run --threads 0", 64, &["--threads 0", "at least 1"]),
        ("run --duration soon", 64, &["--duration", "soon", "30s"]),
        ("run --rate fast", 64, &["--rate", "fast", "50k"]),
        ("run --store map: --start-at 1e300", 64, &["--start-at", "since 1970"]),
        ("run --store map: --start-at NaN", 64, &["--start-at", "since 1970"]),
        ("run --give-up never", 64, &["--give-up", "never"]),
        ("run quik", 64, &["quik", "`quick`"]),
        ("run nothing-like-it", 64, &["nothing-like-it", "amesar-2011"]),
        ("run ycsb:missing-file", 64, &["missing-file"]),
        ("run quick --records 5", 64, &["--records"]),
        ("report nowhere", 64, &["nowhere"]),
        ("rerun nowhere", 64, &["nowhere"]),
        ("merge nowhere", 64, &["RESULT"]),
        ("merge nowhere elsewhere", 64, &["nowhere"]),
        ("check --store redi://h", 64, &["redi", "`redis:`"]),
    ];
    let scratch = Scratch::new();
    for (arguments, code, words) in cases {
        let ended = scratch.kvdyno(arguments).expect_line(*code, words);
        assert_eq!(ended.out, "", "{arguments}");
    }
    assert!(!scratch.path("kvdyno-results").exists(), "nothing was measured");
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
        // The second one would be refused if the first had left a result.
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
