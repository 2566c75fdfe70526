//! Fuzz targets: whatever bytes reach one of kvdyno's parsers, it answers, it never panics, and its answer does not
//! depend on how the bytes came. Each function is a fuzz target; [`TARGETS`] lists them with the inputs that
//! mutations start from.

mod mutate;
mod seeds;

use std::path::Path;

use kvdyno_core::cost::Prices;
use kvdyno_core::store::Capabilities;
use kvdyno_core::suite::{Overrides, Requirements, Suite};
use kvdyno_report::result::RunResult;
use kvdyno_stores::{StoreUrl, couchbase, memcached, redis, rest, riak, tarantool};

pub use mutate::Mutator;

/// Longest input whose arrival in pieces is tried, bytes; the time for that grows with the square of the length.
const PIECEWISE_MOST: usize = 2048;
/// A password that must not come out again.
const PASSWORD: &str = "pA55w0rd";

/// A parser under test.
#[derive(Clone, Copy)]
pub struct FuzzTarget {
    /// Name, also of the libFuzzer program.
    pub name: &'static str,
    /// Feeds it one input; panics if something does not hold.
    pub run: fn(&[u8]),
    /// Good inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every parser that reads input which kvdyno did not write itself.
pub const TARGETS: [FuzzTarget; 12] = [
    FuzzTarget { name: "redis_reply", run: redis_reply, seeds: seeds::redis_replies },
    FuzzTarget { name: "memcached_reply", run: memcached_reply, seeds: seeds::memcached_replies },
    FuzzTarget { name: "rest_reply", run: rest_reply, seeds: seeds::rest_replies },
    FuzzTarget { name: "couchbase_reply", run: couchbase_reply, seeds: seeds::couchbase_replies },
    FuzzTarget { name: "riak_reply", run: riak_reply, seeds: seeds::riak_replies },
    FuzzTarget { name: "tarantool_reply", run: tarantool_reply, seeds: seeds::tarantool_replies },
    FuzzTarget { name: "suite_file", run: suite_file, seeds: seeds::suites },
    FuzzTarget { name: "requirements_file", run: requirements_file, seeds: seeds::requirements },
    FuzzTarget { name: "prices_file", run: prices_file, seeds: seeds::prices },
    FuzzTarget { name: "ycsb_file", run: ycsb_file, seeds: seeds::ycsb_files },
    FuzzTarget { name: "result_file", run: result_file, seeds: seeds::results },
    FuzzTarget { name: "store_url", run: store_url, seeds: seeds::store_urls },
];

/// Checks an answer of Redis: the end that is found does not depend on the pieces in which it came, and all its
/// tokens can be walked.
///
/// # Panics
/// If that does not hold.
pub fn redis_reply(data: &[u8]) {
    use redis::codec::{Progress, Tokens, scan};
    for parts in [1, 3] {
        let whole = scan(&mut Progress::default(), parts, data);
        if data.len() <= PIECEWISE_MOST {
            let mut progress = Progress::default();
            same_in_pieces(data, &whole, |so_far| scan(&mut progress, parts, so_far));
        }
        if let Ok(Some((_, length))) = whole {
            let mut tokens = Tokens::new(&data[..length]);
            for _ in 0..parts {
                let (first, _) = tokens.next().expect("a whole answer holds its parts");
                tokens.skip_children(first);
            }
            assert!(tokens.next().is_none(), "more tokens than parts");
        }
    }
}

/// Checks an answer of Memcached like [`redis_reply`].
///
/// # Panics
/// If that does not hold.
pub fn memcached_reply(data: &[u8]) {
    use memcached::codec::{Progress, Tokens, scan};
    for parts in [1, 3] {
        let whole = scan(&mut Progress::default(), parts, data);
        if data.len() <= PIECEWISE_MOST {
            let mut progress = Progress::default();
            same_in_pieces(data, &whole, |so_far| scan(&mut progress, parts, so_far));
        }
        if let Ok(Some((_, length))) = whole {
            assert_eq!(Tokens::new(&data[..length]).count(), parts as usize);
        }
    }
}

/// Checks an answer over HTTP like [`redis_reply`], and that its body lies within it.
///
/// # Panics
/// If that does not hold.
pub fn rest_reply(data: &[u8]) {
    use rest::codec::{Body, Chunks, Progress, scan};
    let whole = scan(&mut Progress::default(), data);
    if data.len() <= PIECEWISE_MOST {
        let mut progress = Progress::default();
        same_in_pieces(data, &whole, |so_far| scan(&mut progress, so_far));
    }
    if let Ok(Some((reply, length))) = whole {
        assert!(reply.status >= 200);
        match reply.body {
            Body::Whole { start, end } => assert!(start <= end && end == length),
            Body::Chunked { start } => {
                let body: usize = Chunks::new(&data[..length], start).map(<[u8]>::len).sum();
                // Each answer in chunks ends with the last one, `0`, and an empty line.
                assert!(start + body + 5 <= length);
            }
        }
    }
}

/// Checks an answer of Couchbase like [`redis_reply`], and that its value lies within it.
///
/// # Panics
/// If that does not hold.
pub fn couchbase_reply(data: &[u8]) {
    use couchbase::codec::scan;
    let whole = scan(data);
    if data.len() <= PIECEWISE_MOST {
        same_in_pieces(data, &whole, scan);
    }
    if let Ok(Some((reply, length))) = whole {
        assert!(reply.value(&data[..length]).len() < length);
    }
}

/// Checks an answer of Riak: the end that is found does not depend on the pieces in which it came, and the values in
/// an answer to a get are its own bytes, none twice.
///
/// # Panics
/// If that does not hold.
pub fn riak_reply(data: &[u8]) {
    use riak::codec::{Object, message, scan};
    let whole = scan(data);
    if data.len() <= PIECEWISE_MOST {
        same_in_pieces(data, &whole, scan);
    }
    let Ok(Some((_, length))) = whole else { return };
    let message = message(&data[..length]);
    if let Ok(object) = Object::read(message) {
        let values: usize = object.contents().map(|content| content.value.len()).sum();
        assert!(values <= message.len(), "more bytes of values than of the message");
        assert!(object.vclock().is_none_or(|clock| clock.len() <= message.len()));
    }
}

/// Checks an answer of Tarantool like [`redis_reply`], and that the records in it are its own bytes.
///
/// # Panics
/// If that does not hold.
pub fn tarantool_reply(data: &[u8]) {
    use tarantool::codec::{Reader, scan};
    let whole = scan(data);
    if data.len() <= PIECEWISE_MOST {
        same_in_pieces(data, &whole, scan);
    }
    let Ok(Some((reply, length))) = whole else { return };
    let mut reader = Reader::of(&data[..length], reply);
    let mut bytes = 0;
    for _ in 0..reader.array().unwrap_or(0) {
        let Some((key, value)) = reader.record() else { break };
        bytes += key.len() + value.len();
    }
    assert!(bytes <= length, "more bytes of records than of the answer");
}

/// Gives the parser one byte more each time. It must find what it found in the whole, at the byte where that ends,
/// and must not have declined before.
fn same_in_pieces<T: PartialEq + std::fmt::Debug, E>(
    data: &[u8],
    whole: &Result<Option<(T, usize)>, E>,
    mut scan: impl FnMut(&[u8]) -> Result<Option<(T, usize)>, E>,
) {
    for so_far in 0..=data.len() {
        match scan(&data[..so_far]) {
            Ok(None) => {}
            Ok(found) => {
                assert_eq!(found.as_ref().map(|(_, length)| *length), Some(so_far));
                assert_eq!(whole.as_ref().ok(), Some(&found));
                return;
            }
            Err(_) => {
                assert!(whole.is_err(), "declined after {so_far} bytes, and not as a whole");
                return;
            }
        }
    }
    assert!(matches!(whole, Ok(None)), "found as a whole, and not in pieces");
}

/// Checks a suite file: it gives a plan, or an error with a text.
///
/// # Panics
/// If that does not hold.
pub fn suite_file(data: &[u8]) {
    planned(Suite::parse("suite.toml", &String::from_utf8_lossy(data)));
}

/// Checks a YCSB workload file: it gives a plan, or an error with a text.
///
/// # Panics
/// If that does not hold.
pub fn ycsb_file(data: &[u8]) {
    planned(Suite::parse_ycsb("workload", &String::from_utf8_lossy(data)));
}

/// Checks a file of requirements: they become a suite for any store, or it gives an error with a text.
///
/// # Panics
/// If that does not hold.
pub fn requirements_file(data: &[u8]) {
    match Requirements::parse("requirements.toml", &String::from_utf8_lossy(data)) {
        Ok(required) => {
            for nodes in [false, true] {
                let suite = required.suite(&Capabilities::default(), nodes);
                suite.expect("what fits a store that can do all fits one that can do less");
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let _ = error.excerpt();
        }
    }
}

/// Checks a file of prices: every published cost can be computed again, or it gives an error with a text.
///
/// # Panics
/// If that does not hold.
pub fn prices_file(data: &[u8]) {
    match Prices::parse("prices.toml", &String::from_utf8_lossy(data)) {
        Ok(prices) => {
            for statement in &prices.statements {
                statement.recomputed(&prices).expect("its servers have prices");
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let _ = error.excerpt();
        }
    }
}

fn planned(suite: Result<Suite, kvdyno_core::suite::SuiteError>) {
    match suite.and_then(|suite| suite.plan(&Overrides::default())) {
        Ok(plan) => {
            for phase in &plan.phases {
                let parts = |group: &kvdyno_core::workload::GroupPlan| -> u32 {
                    group.mix.parts.iter().map(|&(_, parts)| u32::from(parts)).sum()
                };
                assert!(
                    phase.groups.iter().all(|group| parts(group) == 1000),
                    "a mix of {phase:?}"
                );
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let _ = error.excerpt();
        }
    }
}

/// Checks a `result.json`: a result that is read can be written, and read again.
///
/// # Panics
/// If that does not hold.
pub fn result_file(data: &[u8]) {
    let path = Path::new("result.json");
    match RunResult::parse(data, path) {
        Ok(result) => {
            let written = serde_json::to_vec(&result).expect("what was read can be written");
            RunResult::parse(&written, path).expect("what was written can be read");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Checks a store's URL: no option is lost silently, and no password comes out again.
///
/// # Panics
/// If that does not hold.
pub fn store_url(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(mut url) = StoreUrl::parse(&text) {
        let _ = (url.take_number::<u16>("db"), url.take_bytes("size"));
        let _ = (url.take_duration("timeout"), url.take_flag("tls"), url.take("log"));
        assert_eq!(url.finish().is_ok(), url.clone().finish().is_ok());
    }
    if !text.contains(PASSWORD) {
        let shown = match StoreUrl::parse(&format!("redis://user:{PASSWORD}@{text}")) {
            Ok(url) => format!("{url} {url:?} {}", url.wrong("problem", "advice")),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!shown.contains(PASSWORD), "a password came out: {shown}");
    }
}
