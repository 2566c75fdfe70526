//! A cache in front of a store, each a real server: the suite `cache`, and the ledger's hold on what is
//! declared.

use crate::one_server::{MemcachedServer, MemcachedSettings};
use kvdyno_testbed::Deployment;

use crate::suites::run;
use crate::support::{Bench, number_at};

/// Runs the suite `cache` in small. What earlier tests have left in the store is replaced.
pub fn assert_cache(cache: &str, store: &str, clients: &str) {
    let url = format!("cache({cache}, {store})");
    let size = ["--scale", "0.01", "--requests", "1000", "--clients", clients];
    let options = [&size[..], &["--data", "wipe", "--set", "warmup=false"][..]].concat();
    let run = run("cache", &url, &options);
    assert_eq!(run.done("mix"), [("get", 950), ("update", 50)]);
    for figure in [" hit ratio ", "get of the cache, median", "get of the store after a miss"] {
        assert!(run.printed.contains(figure), "{}", run.printed);
    }
}

/// Suite of few records and many writers: again and again a get that missed puts into the cache what was written over
/// meanwhile, and there it stays.
const RACES: &str = r#"
records = 20
clients = 32
[[phase]]
name = "load"
load = true
clients = 1
[[phase]]
name = "mix"
mix = { get = 50, update = 50 }
requests = 8000
"#;

/// Asserts that a value older than declared is named, and that a younger old value is counted and legal.
pub fn assert_staleness_is_held(cache: &str, store: &str) {
    let bench = Bench::new();
    let suite = bench.suite(RACES);
    let run = |options: &str| {
        let url = format!("cache({cache}, {store})?ttl=60s{options}");
        bench.run(&["run", &suite, "--store", &url, "--data", "wipe", "--quiet"])
    };
    let too_little = run("&staleness=1ms");
    let (stale, lost) = (too_little.named("stale"), too_little.named("lost"));
    // An old value that is still there when the load is over is named lost.
    assert!(stale > 0, "{}{}", too_little.stdout, too_little.stderr);
    assert_eq!(stale + lost, too_little.anomalies.len());
    assert_eq!(too_little.code, 1);
    let truly = run("");
    truly.is_clean();
    assert!(truly.tally("legal_stale") > 0, "{}{}", truly.stdout, truly.stderr);
    let promised = &truly.result["runs"][0]["store"]["consistency"]["level"];
    let nanos = promised.as_str().and_then(|level| level.strip_prefix("bounded-staleness-"));
    let nanos: u64 = nanos.and_then(|level| level.strip_suffix("ns")).unwrap().parse().unwrap();
    assert!(nanos >= 60_000_000_000, "the time to live is in it: {promised}");
    assert!(number_at(&truly.result["runs"][0]["phases"][1], "started_operations") == 8_000);
}

/// Runs Memcached before a store that is up.
pub fn behind_memcached(store: &str) {
    let cache = MemcachedServer::start(MemcachedSettings::default()).unwrap();
    assert_cache(&cache.url(), store, "16");
    assert_staleness_is_held(&cache.url(), store);
}

/// Runs a cache that is up before FerretDB, whose writers wait for each other.
pub fn before_ferretdb(cache: &str) {
    let store = Deployment::up("mongodb").unwrap();
    assert_cache(cache, &format!("{}?timeout=1m", store.url()), "8");
}
