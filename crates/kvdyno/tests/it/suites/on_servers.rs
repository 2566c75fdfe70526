//! The built-in suites that need no scan, much smaller than life, on a real Redis and a real
//! Memcached. `cargo test -p kvdyno --features server-tests`.

use crate::one_server::{MemcachedServer, MemcachedSettings, RedisServer, RedisSettings};
use crate::suites::{assert_amesar_2011, assert_aws_2014, assert_gce_2015, assert_ycsb, run};

/// One server for each suite: what a suite leaves behind would be in the way of the next.
fn on_redis(check: impl FnOnce(&str)) {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    check(&server.url());
}

fn on_memcached(check: impl FnOnce(&str)) {
    let server = MemcachedServer::start(MemcachedSettings::default()).unwrap();
    check(&server.url());
}

#[test]
fn cache_on_memcached_before_redis() {
    let cache = MemcachedServer::start(MemcachedSettings::default()).unwrap();
    let store = RedisServer::start(RedisSettings::default()).unwrap();
    let url = format!("cache({}, {})?ttl=2s", cache.url(), store.url());
    let options = ["--scale", "0.01", "--requests", "4000", "--set", "warmup=false"];
    let run = run("cache", &url, &options);
    assert_eq!(run.done("mix"), [("get", 3_800), ("update", 200)]);
    assert!(run.printed.contains(" hit ratio "), "{}", run.printed);
    assert!(run.printed.contains("get of the store after a miss, median"), "{}", run.printed);
}

/// A suite and what its run phase does.
type Does = (&'static str, &'static [(&'static str, u64)]);

/// The YCSB core workloads without scans.
const YCSB: [Does; 5] = [
    ("ycsb-a", &[("get", 500), ("update", 500)]),
    ("ycsb-b", &[("get", 950), ("update", 50)]),
    ("ycsb-c", &[("get", 1_000)]),
    ("ycsb-d", &[("insert", 50), ("get", 950)]),
    ("ycsb-f", &[("get", 500), ("read-modify-write", 500)]),
];

/// fio on the device under an engine's folder, in the same go; a store elsewhere has none.
#[test]
fn helium_2015_b_stands_beside_the_bare_device() {
    let options = ["--scale", "0.001", "--clients", "4", "--duration", "2s"];
    let beside = run("helium-2015-b", "fjall:?durability=process", &options);
    for (phase, name) in
        [("get", "gets per read of the device"), ("update", "puts per write of the device")]
    {
        let phase = beside.phases().iter().find(|p| p["name"] == phase).unwrap();
        let figure = &phase["figures"][0];
        assert_eq!(figure["name"], name);
        assert!(figure["value"].as_f64().unwrap() > 0.0, "{figure}");
        assert!(figure["detail"].as_str().unwrap().contains("fio-"), "{figure}");
    }
    assert!(beside.printed.contains("gets per read of the device "), "{}", beside.printed);
    let none = run("helium-2015-b", "map:", &options);
    assert!(none.phases().iter().all(|phase| phase["figures"].as_array().unwrap().is_empty()));
}

#[test]
fn amesar_2011_on_redis() {
    on_redis(assert_amesar_2011);
}

#[test]
fn amesar_2011_on_memcached() {
    on_memcached(assert_amesar_2011);
}

#[test]
fn aws_2014_on_redis() {
    on_redis(assert_aws_2014);
}

#[test]
fn aws_2014_on_memcached() {
    on_memcached(assert_aws_2014);
}

#[test]
fn gce_2015_on_redis() {
    on_redis(assert_gce_2015);
}

#[test]
fn gce_2015_on_memcached() {
    on_memcached(assert_gce_2015);
}

#[test]
fn ycsb_on_redis() {
    for (suite, does) in YCSB {
        on_redis(|url| assert_ycsb(suite, url, does));
    }
}

#[test]
fn ycsb_on_memcached() {
    for (suite, does) in YCSB {
        on_memcached(|url| assert_ycsb(suite, url, does));
    }
}
