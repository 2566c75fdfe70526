//! Advice is tried as it is printed: what a message says to type is typed, and works.

use std::path::Path;

use crate::support::Scratch;

/// The words between backticks in a message.
fn quoted(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

#[test]
fn winnow_takes_the_data_policies_that_it_advises() {
    let scratch = Scratch::new();
    scratch.write(
        "w.toml",
        "name = \"w\"\nrecords = 200\nvalue = \"40B\"\noperations = [\"get\"]\nconsistency = \"linearizable\"\n",
    );
    let winnow = "winnow w.toml --store lmdb:db --quiet --out";
    scratch.kvdyno(&format!("{winnow} a"));
    let again = scratch.kvdyno(&format!("{winnow} b"));
    assert!(
        again.err.contains("--data reuse") && again.err.contains("--data wipe"),
        "{}",
        again.err
    );
    for policy in ["reuse", "wipe"] {
        let ended = scratch.kvdyno(&format!("{winnow} {policy} --data {policy}"));
        assert!(ended.err.is_empty(), "{}", ended.err);
        assert!(scratch.path(&format!("{policy}/1-lmdb-db/result.json")).exists());
    }
}

#[test]
fn an_engine_in_memory_advises_a_level_that_it_keeps() {
    let memory = Path::new("/dev/shm");
    let Ok(place) = tempfile::tempdir_in(memory) else { return };
    let scratch = Scratch::new();
    for engine in ["redb", "lmdb", "fjall"] {
        let url = format!("{engine}:{}/{engine}", place.path().display());
        let refused = scratch.kvdyno(&format!("check --store {url}"));
        let advised: Vec<String> = quoted(&refused.err)
            .into_iter()
            .filter(|word| word.starts_with("durability="))
            .map(str::to_owned)
            .collect();
        refused.expect(64);
        assert!(!advised.is_empty(), "{engine}");
        for option in advised {
            scratch.kvdyno(&format!("check --store {url}?{option}")).expect(0);
        }
    }
}

#[test]
fn a_key_behind_the_question_mark_is_told_where_it_goes() {
    let scratch = Scratch::new();
    let refused = scratch.kvdyno("check --store rest+http://127.0.0.1:1/get?key={key}");
    assert!(!refused.err.contains("TLS"), "{}", refused.err);
    let advised = quoted(&refused.err).into_iter().find(|word| word.contains("/path/"));
    let advised = advised.expect("an example").replace("//h/", "//127.0.0.1:1/");
    refused.expect(64);
    // It is taken; that nobody listens is another matter.
    scratch.kvdyno(&format!("check --store {advised}")).expect(69);
}

#[test]
fn options_and_schemes_of_other_clients_are_told_what_to_write() {
    let scratch = Scratch::new();
    for (url, words) in [
        ("redis://127.0.0.1:1?socket_timeout=5", &["timeout=2s"][..]),
        ("redis://127.0.0.1:1?ssl_cert_reqs=none", &["tls=insecure", "pin="]),
        ("memcached://127.0.0.1:1?tcp_nodelay=1", &["leave it out"]),
        ("mongodb+srv://h/db", &["dig SRV", "mongodb://host1"]),
        ("http://127.0.0.1:1/x", &["rest+http://"]),
    ] {
        scratch.kvdyno(&format!("check --store {url}")).expect_line(64, words);
    }
    for taken in ["redis://127.0.0.1:1?timeout=2s", "rediss://127.0.0.1:1?tls=INSECURE"] {
        scratch.kvdyno(&format!("check --store {taken}")).expect(69);
    }
}

#[test]
fn an_unescaped_password_is_told_how_to_be_written() {
    let scratch = Scratch::new();
    let refused = scratch.kvdyno("check --store redis://:hun@ter/2secret@127.0.0.1:1");
    let mut password = "hun@ter/2secret".to_owned();
    let words = quoted(&refused.err).into_iter().map(str::to_owned).collect::<Vec<_>>();
    for pair in words.windows(2).filter(|pair| pair[1].starts_with('%') && pair[0].len() == 1) {
        if pair[0] != "%" {
            password = password.replace(&pair[0], &pair[1]);
        }
    }
    refused.expect(64);
    assert_eq!(password, "hun%40ter%2F2secret");
    scratch.kvdyno(&format!("check --store redis://:{password}@127.0.0.1:1")).expect(69);
}

#[test]
fn the_node_and_what_it_answers_are_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 1_024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let scratch = Scratch::new();
    for scheme in ["redis", "redis+cluster", "memcached"] {
        let url = format!("{scheme}://127.0.0.1:{port},127.0.0.1:1?timeout=1s");
        let url = if scheme == "redis" { url.replace(",127.0.0.1:1", "") } else { url };
        let told = scratch.kvdyno(&format!("check --store {url}"));
        let words = format!("127.0.0.1:{port} answers HTTP");
        told.expect_line(69, &[&words]);
    }
}

/// A load that is refused, what its message says to write, and the load that has that written, with something
/// for what stands for something (`URL`, `N`, `KIND`).
const FOLLOWED: &[(&str, &str, &str)] = &[
    (
        "--store map: --records 10 --value 4B",
        "--no-verify",
        "--store map: --records 10 --value 4B --no-verify",
    ),
    (
        "--store map: --records 10 --value 4B",
        "at least 8 bytes",
        "--store map: --records 10 --value 8B",
    ),
    (
        "churn --store map: --mix get",
        "--set churn.writers.mix=get",
        "churn --store map: --set churn.writers.mix=get",
    ),
    (
        "quick --store map: --set clients",
        "--set PHASE.KEY=VALUE",
        "quick --store map: --set load.clients=2",
    ),
    (
        "quick --store map: --prices prices.toml",
        "--servers KIND=N",
        "quick --store map: --prices prices.toml --servers n1-standard-8=2",
    ),
    (
        "quick --store map: --trials 2 --data reuse",
        "leave out one",
        "quick --store map: --trials 2",
    ),
    ("quick --store map: --rate abc", "50k/s", "quick --store map: --set load.rate=50k/s"),
    (
        "--store map: --records 10 --slo p99(get)<10ms",
        "`kvdyno capacity`",
        "capacity --store map: --slo p99(get)<10ms",
    ),
    (
        "--store couchbase://127.0.0.1:1/b",
        "--set load.mix=insert",
        "--store couchbase://127.0.0.1:1/b --set load.mix=insert",
    ),
];

#[test]
fn what_a_refused_load_is_told_to_write_is_a_load() {
    let scratch = Scratch::new();
    scratch.write("prices.toml", include_str!("../../../../../prices.toml"));
    for (refused, advice, followed) in FOLLOWED {
        let ended = scratch.kvdyno(&format!("run {refused} --dry-run"));
        assert!([64, 69].contains(&ended.code()), "{refused}: {ended:#?}");
        assert!(ended.err.contains(advice), "{refused}: `{advice}` is not in {}", ended.err);
        let ended = scratch.kvdyno(&format!("run {followed} --dry-run"));
        assert_eq!(ended.code(), 0, "{advice}: run {followed}: {}", ended.err);
    }
}

#[test]
fn options_in_the_advice_on_verdicts_are_options_of_the_command() {
    let scratch = Scratch::new();
    let help = scratch.kvdyno("run --help").out;
    let page = include_str!("../../../../../docs/VERDICT.md");
    let mut found = 0;
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        // That one is Cargo's.
        let row = row.replace("cargo build --release", "");
        let is_of_option = |c: char| c.is_ascii_lowercase() || c == '-';
        for (at, _) in row.match_indices("--") {
            let option = row[at..].split(|c: char| !is_of_option(c)).next().unwrap_or_default();
            let known =
                help.split_ascii_whitespace().any(|word| word.trim_end_matches(',') == option);
            assert!(known || option.len() < 4, "{option} in {row}");
            found += usize::from(option.len() >= 4);
        }
    }
    assert!(found >= 8, "{found}");
}
