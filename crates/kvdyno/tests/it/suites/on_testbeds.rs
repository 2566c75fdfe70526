//! The published suite of 2011, much smaller than life, to its end on every testbed whose software
//! can be had without asking anybody. `cargo xtask test` has every driver built and installs it.

use kvdyno_testbed::{Deployment, registry};

use super::caches::{before_ferretdb, behind_memcached};
use crate::suites::{assert_amesar_2011, assert_aws_2014};

/// Names a test for each kind of testbed, so that those that fail are told apart. Behind the options of
/// the store's URL stands what else is tried with a server that took long to start.
macro_rules! on {
    ($($test:ident $kind:literal $words:literal $options:literal $($more:path)?;)*) => {
        $(
            #[test]
            fn $test() {
                let testbed = Deployment::up($words).unwrap();
                let url = format!("{}{}", testbed.url(), $options);
                assert_amesar_2011(&url);
                $($more(&url);)?
            }
        )*

        const TRIED: &[&str] = &[$($kind),*];
    };
}

on! {
    amesar_2011_on_redis_sharded "redis-sharded" "redis-sharded:4" "";
    amesar_2011_on_redis_cluster "redis-cluster" "redis-cluster" "";
    amesar_2011_on_redis_sentinel "redis-sentinel" "redis-sentinel" "";
    amesar_2011_on_valkey "valkey" "valkey" "";
    amesar_2011_on_memcached "memcached" "memcached:3" "";
    // A cold JVM on a busy machine stands still for seconds.
    amesar_2011_on_cassandra "cassandra" "cassandra:1" "?timeout=30s" behind_memcached;
    amesar_2011_on_infinispan "infinispan" "infinispan" "" before_ferretdb;
    amesar_2011_on_infinispans_memcached "infinispan" "infinispan?endpoint=memcached" "";
    amesar_2011_on_infinispans_rest "infinispan" "infinispan?endpoint=rest&tls=yes" "";
    amesar_2011_on_ehcache "ehcache" "ehcache" "";
    amesar_2011_on_hazelcast "hazelcast" "hazelcast:2" "&timeout=10s";
    // FerretDB over SQLite has one writer at a time, and the others wait.
    amesar_2011_on_mongodb "mongodb" "mongodb" "?timeout=1m";
    amesar_2011_on_etcd "etcd" "etcd:3" "";
    amesar_2011_on_nats "nats" "nats:3" "";
    amesar_2011_on_tarantool "tarantool" "tarantool:2" "";
    amesar_2011_on_couchbase "couchbase" "couchbase" "";
}

#[test]
fn no_testbed_is_left_out() {
    // A single Redis has a test of its own, and so have sim (truth.rs) and engines (power.rs), whose nodes only
    // kvdyno itself can be; the other two have no software of their own here.
    let elsewhere = ["redis", "sim", "engine", "aerospike", "riak"];
    let kinds = registry::kinds().iter().map(|kind| kind.name);
    let untried: Vec<&str> =
        kinds.filter(|kind| !TRIED.contains(kind) && !elsewhere.contains(kind)).collect();
    assert!(untried.is_empty(), "{untried:?}");
}

/// The published setting: a process for each of twelve processors, the client divides the keys.
#[test]
fn aws_2014_on_twelve_shards_with_and_without_persistence() {
    for words in ["redis-sharded:12", "redis-sharded:12?persistence=aof-everysec&rewrites=held-off"]
    {
        assert_aws_2014(Deployment::up(words).unwrap().url());
    }
}
