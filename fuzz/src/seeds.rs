//! Good inputs to start from: answers as servers give them, and the files of this project.

/// The made-up run of the report's tests.
#[path = "../../crates/report/tests/it/sample/mod.rs"]
mod sample;

use std::path::{Path, PathBuf};

fn owned(inputs: &[&[u8]]) -> Vec<Vec<u8>> {
    inputs.iter().map(|input| input.to_vec()).collect()
}

/// Every file in `folder`, from the project's own, and below it.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut paths: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        // In one order everywhere, so that a seed of mutations means the same inputs.
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                found.push(bytes);
            }
        }
    }
    found
}

pub(crate) fn redis_replies() -> Vec<Vec<u8>> {
    owned(&[
        b"+OK\r\n",
        b"$5\r\nhello\r\n",
        b"$-1\r\n",
        b"_\r\n",
        b":1\r\n:0\r\n:-7\r\n",
        b"-ERR unknown command\r\n",
        b"!9\r\nERR later\r\n",
        b"*3\r\n$1\r\na\r\n$-1\r\n*1\r\n:5\r\n",
        b"%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n",
        b"~1\r\n,1.5\r\n",
        b"=7\r\ntxt:abc\r\n",
        b"#t\r\n(12345678901234567890\r\n",
        b"*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*0\r\n+OK\r\n+QUEUED\r\n",
    ])
}

pub(crate) fn memcached_replies() -> Vec<Vec<u8>> {
    owned(&[
        b"VA 5 f0 t0\r\nhello\r\n",
        b"VA 0\r\n\r\n",
        b"HD\r\n",
        b"EN\r\n",
        b"HD f0 c7\r\nNF\r\nNS\r\nEX\r\nMN\r\n",
        b"VA 3 kkey\r\nabc\r\nEN\r\nMN\r\n",
        b"ERROR\r\n",
        b"CLIENT_ERROR bad data chunk\r\n",
        b"SERVER_ERROR out of memory storing object\r\n",
        b"VERSION 1.6.18\r\n",
        b"STAT pid 1\r\nSTAT evictions 0\r\nEND\r\n",
    ])
}

pub(crate) fn rest_replies() -> Vec<Vec<u8>> {
    owned(&[
        b"HTTP/1.1 204 No Content\r\netag: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nServer: Jetty(9.4.58)\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200\r\ntransfer-encoding:chunked\r\n\r\nA;x=1\r\n0123456789\r\n0\r\nA: b\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\nx",
        b"HTTP/1.1 503 Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n\r\n",
    ])
}

pub(crate) fn tarantool_replies() -> Vec<Vec<u8>> {
    let greeting = [&b"Tarantool 2.6.0 (Binary) 0c0d\n"[..], &[b' '; 97]].concat();
    let mut all = owned(&[
        b"\xce\0\0\0\x20\x83\0\xce\0\0\0\0\x01\xcf\0\0\0\0\0\0\0\0\x05\xce\0\0\0\x50\x81\x30\xdd\0\0\0\x01\x92\xa1k",
        b"\xce\0\0\0\x23\x83\0\xce\0\0\0\0\x01\xcf\0\0\0\0\0\0\0\0\x05\xce\0\0\0\x50\x81\x30\xdd\0\0\0\x01\x92\xa1k\xa1v",
        b"\xce\0\0\0\x1b\x83\0\xce\0\0\x80\x24\x01\xcf\0\0\0\0\0\0\0\0\x05\xce\0\0\0\x50\x81\x31\xa1x",
    ]);
    all.push(greeting);
    all
}

pub(crate) fn couchbase_replies() -> Vec<Vec<u8>> {
    owned(&[
        b"\x81\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01",
        b"\x81\0\0\0\x04\0\0\0\0\0\0\x09\0\0\0\x07\0\0\0\0\0\0\0\x01\0\0\0\0hello",
        b"\x81\0\0\0\0\0\0\x01\0\0\0\x09\0\0\0\0\0\0\0\0\0\0\0\0Not found",
        b"\x81\x10\0\x03\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0pid13",
    ])
}

pub(crate) fn riak_replies() -> Vec<Vec<u8>> {
    owned(&[
        b"\x00\x00\x00\x01\x02",
        b"\x00\x00\x00\x01\x0a",
        b"\x00\x00\x00\x0d\x0a\x0a\x07\x0a\x01a\x38\x01\x58\x01\x12\x01c",
        b"\x00\x00\x00\x15\x0a\x0a\x07\x0a\x01a\x38\xbb\xd7\x02\x0a\x05\x0a\x01b\x40\x09\x12\x02cl",
        b"\x00\x00\x00\x0c\x00\x0a\x07timeout\x10\x00",
        b"\x00\x00\x00\x07\x14\x0a\x04\x08\x05\x10\x01",
    ])
}

pub(crate) fn suites() -> Vec<Vec<u8>> {
    files("../suites")
}

pub(crate) fn requirements() -> Vec<Vec<u8>> {
    let manual = include_str!("../../docs/WINNOW.md");
    let examples = manual.split("```toml\n").skip(1);
    let examples = examples.map(|rest| rest.split("```").next().unwrap_or_default());
    examples.map(|example| example.as_bytes().to_vec()).collect()
}

pub(crate) fn prices() -> Vec<Vec<u8>> {
    vec![kvdyno_core::suite::EXAMPLE_PRICES.as_bytes().to_vec()]
}

pub(crate) fn ycsb_files() -> Vec<Vec<u8>> {
    files("../suites/ycsb")
}

pub(crate) fn results() -> Vec<Vec<u8>> {
    let result = sample::two_stores();
    vec![serde_json::to_vec(&result).expect("the sample is plain data")]
}

pub(crate) fn store_urls() -> Vec<Vec<u8>> {
    owned(&[
        b"redis://127.0.0.1:6379",
        b"redis://user:secret@host:6379,other:6380/3?timeout=1s&protocol=3",
        b"rediss://[::1]:6380/0?ca=%2Fetc%2Fca.pem",
        b"memcached://h:11211?timeout=500ms",
        b"lmdb:path/to%20folder?durability=none&size=1GiB",
        b"rest+http://user:secret@h:80/a/{key}?ttl=Ttl&header.X-Api-Key=k&query=w%3D2",
        b"sim:?service=100us&stall=1s@5s&lose=1/1000",
        b"null:",
    ])
}
