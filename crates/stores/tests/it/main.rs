//! Every test of this crate that needs no process of its own, as one program: each program is linked by itself, and
//! tests of one program share servers.

#[cfg(feature = "aerospike")]
mod aerospike;
mod cache;
#[cfg(all(feature = "server-tests", feature = "cassandra", feature = "memcached"))]
mod cassandra;
mod conformance;
mod conformance_networked;
#[cfg(feature = "redis")]
mod connection;
#[cfg(all(feature = "server-tests", feature = "couchbase"))]
mod couchbase;
#[cfg(all(feature = "server-tests", feature = "rest"))]
mod ehcache;
#[cfg(all(feature = "server-tests", feature = "etcd"))]
mod etcd;
mod harness;
#[cfg(all(feature = "server-tests", feature = "memcached"))]
mod hazelcast;
#[cfg(all(feature = "server-tests", feature = "rest", feature = "redis", feature = "memcached"))]
mod infinispan;
#[cfg(all(feature = "server-tests", feature = "memcached"))]
mod memcached;
#[cfg(all(feature = "server-tests", feature = "memcached"))]
mod memcached_several;
#[cfg(all(feature = "server-tests", feature = "mongodb"))]
mod mongodb;
#[cfg(all(feature = "server-tests", feature = "nats"))]
mod nats;
#[cfg(feature = "server-tests")]
#[path = "../../../testbed/tests/it/one_server/mod.rs"]
mod one_server;
#[cfg(all(feature = "server-tests", feature = "redis", feature = "memcached"))]
mod placement;
#[cfg(all(feature = "server-tests", feature = "plugin"))]
mod plugin;
#[cfg(feature = "embedded")]
mod process_kill;
#[cfg(all(feature = "server-tests", feature = "redis", feature = "memcached"))]
#[path = "../../../report/tests/it/python/mod.rs"]
mod python;
#[cfg(all(feature = "server-tests", feature = "redis", feature = "memcached"))]
mod reached;
#[cfg(all(feature = "server-tests", feature = "redis"))]
mod redis;
#[cfg(all(feature = "server-tests", feature = "redis", feature = "memcached"))]
mod redis_and_memcached;
#[cfg(all(feature = "server-tests", feature = "redis"))]
mod redis_cluster;
#[cfg(all(feature = "server-tests", feature = "redis"))]
mod redis_sentinel;
#[cfg(all(feature = "server-tests", feature = "redis"))]
mod redis_sharded;
#[cfg(feature = "rest")]
mod rest;
#[cfg(feature = "riak")]
mod riak;
#[cfg(all(feature = "server-tests", feature = "mongodb"))]
mod scripted_mongod;
mod sim;
#[cfg(all(feature = "server-tests", feature = "tarantool"))]
mod tarantool;
#[cfg(all(feature = "server-tests", feature = "redis"))]
mod valkey;
