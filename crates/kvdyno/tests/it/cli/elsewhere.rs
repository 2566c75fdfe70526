//! A store that is not what its URL says, or that cannot go on: the message names the node, its trouble, and what to
//! do, whatever the driver. Everything here listens on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use kvdyno_stores::Entry;

use crate::support::Scratch;

/// Starts a listener that does this with each connection. Returns its port.
fn listen(converse: impl Fn(TcpStream) + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let converse = converse.clone();
            thread::spawn(move || converse(stream));
        }
    });
    port
}

/// Starts a server that answers every message with the same bytes.
fn says(bytes: &'static [u8]) -> u16 {
    listen(move |mut stream| {
        let mut asked = [0; 4_096];
        while stream.read(&mut asked).is_ok_and(|length| length > 0) {
            if stream.write_all(bytes).is_err() {
                return;
            }
        }
    })
}

/// Starts a server that takes connections and sends nothing.
fn silent() -> u16 {
    listen(|mut stream| {
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    })
}

/// Returns every scheme of servers that this build has, with what follows the server in its URL.
fn schemes() -> Vec<(&'static str, &'static str)> {
    let entries = kvdyno_stores::stores().iter();
    let has_host = |entry: &&&Entry| entry.example[entry.schemes[0].len()..].starts_with("://");
    let servers = entries.filter(has_host);
    let schemes = servers.flat_map(|entry| entry.schemes.iter().copied());
    let schemes = schemes.filter(|scheme| !scheme.split('+').any(|word| word == "unix"));
    let path = |scheme: &str| match scheme.split_once('+') {
        Some(("rest", _)) => "/{key}",
        Some((_, "sentinel")) => "/main",
        _ if ["aerospike", "couchbase"].contains(&scheme) => "/test",
        _ => "",
    };
    schemes.map(|scheme| (scheme, path(scheme))).collect()
}

/// Returns true if servers of a scheme speak TLS.
fn is_of_tls(scheme: &str) -> bool {
    let system = scheme.split('+').next().unwrap_or_default();
    scheme == "rest+https" || (system.ends_with('s') && !["redis", "nats"].contains(&system))
}

#[test]
fn every_driver_names_the_node_and_what_answers_there() {
    let http = says(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let tls = says(&[21, 3, 3, 0, 2, 2, 40]);
    let schemes = schemes();
    assert!(schemes.len() >= 15, "{schemes:?}");
    let scratch = Scratch::new();
    for (port, speaks) in [(http, "HTTP"), (tls, "TLS"), (silent(), "")] {
        let told = |scheme: &str| match (scheme, speaks) {
            ("etcd", "HTTP") => "answers HTTP, but not as etcd does".to_owned(),
            ("couchbase", "HTTP") => "answers HTTP, but not as Couchbase does".to_owned(),
            // The server speaks HTTP, but sends no answer that can be used.
            ("rest+http", "HTTP") => "400 Bad Request".to_owned(),
            // Its servers greet in plain words before TLS begins.
            ("natss", "TLS") => format!("127.0.0.1:{port} answers TLS"),
            (scheme, "TLS") if is_of_tls(scheme) => "HandshakeFailure".to_owned(),
            ("etcds", "HTTP") => "answers HTTP".to_owned(),
            (_, "") => String::new(),
            (_, speaks) => format!("127.0.0.1:{port} answers {speaks}"),
        };
        let start = |(scheme, path): &(&'static str, &str)| {
            let url = format!("{scheme}://127.0.0.1:{port}{path}?timeout=700ms");
            let words = ["run", "--records", "10", "--requests", "10", "--quiet", "--store", &url];
            (*scheme, scratch.start(&words))
        };
        // A few at a time, so that each is served in time.
        let waves = schemes.chunks(4).map(|wave| wave.iter().map(start).collect::<Vec<_>>());
        for (scheme, running) in waves.flatten() {
            let ended = running.wait();
            let without_url = ended.err.split_once(": ").map_or("", |(_, rest)| rest);
            let without_url = without_url.replacen(&format!("{scheme}://127.0.0.1:{port}"), "", 1);
            let node = format!("127.0.0.1:{port}");
            // The words of `rest+http` are the server's own.
            let named = without_url.contains(&node) || (scheme, speaks) == ("rest+http", "HTTP");
            assert!(named, "{scheme} at {speaks}: {}", ended.err);
            ended.expect_line(69, &[&told(scheme)]);
        }
    }
}

/// Starts a server of HTTP that has no record and answers every write with this status.
fn refuses_writes_with(status: &'static str) -> u16 {
    listen(move |stream| {
        let mut input = BufReader::new(stream.try_clone().expect("a second handle"));
        while let Some((method, length)) = request(&mut input) {
            let mut body = vec![0; length];
            let status = if method == "GET" { "404 Not Found" } else { status };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            let read = input.read_exact(&mut body);
            if read.and_then(|()| (&stream).write_all(answer.as_bytes())).is_err() {
                return;
            }
        }
    })
}

/// Returns method and length of the body of the next request; `None` at the end.
fn request(input: &mut impl BufRead) -> Option<(String, usize)> {
    let (mut method, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return Some((method, length));
        }
        match line.strip_prefix("content-length:") {
            Some(told) => length = told.trim().parse().ok()?,
            None if method.is_empty() => {
                method = line.split(' ').next()?.to_ascii_uppercase();
            }
            None => {}
        }
    }
}

#[test]
fn one_that_wants_fewer_requests_is_told_from_one_that_cannot_serve() {
    for (status, class, advice) in [
        ("429 Too Many Requests", "overloaded", "fewer --clients, or a lower --rate"),
        ("503 Service Unavailable", "unavailable", "see its log"),
        ("507 Insufficient Storage", "full", "give it more room"),
    ] {
        let port = refuses_writes_with(status);
        let scratch = Scratch::new();
        let url = format!("rest+http://127.0.0.1:{port}/{{key}}");
        let words = ["run", "--records", "50", "--mix", "update", "--requests", "100", "--quiet"];
        let ended = scratch.run(&[&words[..], &["--out", "r", "--store", &url]].concat());
        ended.expect_line(69, &[status, advice]);
        let errors = &scratch.result("r")["runs"][0]["phases"][0]["errors"];
        let classes: Vec<&str> = errors
            .as_array()
            .expect("errors")
            .iter()
            .filter_map(|error| error["class"].as_str())
            .collect();
        assert_eq!(classes, [class], "{errors}");
    }
}

/// RocksDB is left out: a library of it with assertions, such as Debian's, ends the process.
#[test]
fn an_engine_on_a_full_disk_says_that_it_is_full() {
    let urls = [
        "lmdb:disk?durability=process",
        "fjall:disk?durability=process",
        // This engine keeps in memory what it can.
        "redb:disk?durability=none&cache=64KiB",
    ];
    for url in urls {
        let scratch = Scratch::new();
        let words = "--records 30k --value 1KB --mix update --requests 10 --quiet";
        let run = format!("exec kvdyno run {words} --out r --store '{url}'");
        let Some(running) = scratch.on_small_disk("6m", &run) else { return };
        let ended = running.wait().expect_words(&["give it more room"]).expect(69);
        let told = ended.err.to_lowercase();
        assert!(told.contains("no space left") && !told.contains("server runs"), "{}", ended.err);
        // The disk was full before.
        let filled = format!("{{ dd if=/dev/zero of=disk/all bs=4k 2>/dev/null; {run}; }}");
        let Some(running) = scratch.on_small_disk("6m", &filled) else { return };
        running.wait().expect_line(69, &["its disk is full: make room there"]);
    }
}
