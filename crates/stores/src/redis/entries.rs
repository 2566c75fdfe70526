//! The store's lines in `kvdyno stores`, one entry for each way to reach Redis.

use std::sync::Arc;

use kvdyno_core::load::Need;

use super::{RedisStore, words};
use crate::entry::{Entry, threading_of};
use crate::placement::{WEIGHTS_OPTION, hash_option};

/// Options of every Redis store.
macro_rules! options {
    ($($more:expr,)*) => {
        &[
            ("timeout", "longest time for a request and for an attempt to connect, 2s"),
            ("resp", "2 or 3: version of the protocol; the newest that the server knows (redis-rs: `protocol`)"),
            ("db", "number of the database, where the path does not give it; 0"),
            ("username", "user, where none stands before the host (redis-rs: `user`); none"),
            ("password", "password, likewise (redis-rs: `pass`); none"),
            $($more,)*
            ("tls", "rediss, valkeys: insecure takes any certificate, and the result says so; verify"),
            ("pin", "rediss, valkeys: SHA-256 fingerprint of the one certificate to take; none"),
            ("ca", "rediss, valkeys: PEM file of the authorities to trust, or of the server's own \
                    certificate; those that Mozilla trusts"),
            ("cert", "rediss, valkeys: PEM file of a client certificate; none"),
            ("key", "rediss, valkeys: PEM file of its private key; none"),
        ]
    };
}
const DURABILITY: &str = "read back: appendonly yes with appendfsync always survives power loss, with no \
                          process kill, everything else nothing for sure";

/// Entry of one server.
pub const ONE: Entry = Entry {
    schemes: &["redis", "rediss", "valkey", "valkeys", "redis+unix", "valkey+unix", "unix"],
    name: "redis",
    summary: "one Redis or Valkey server, or one that speaks its protocol; rediss and valkeys are the \
              same over TLS, redis+unix:///path, valkey+unix and unix over a socket of this machine",
    options: options![],
    operations: "GET, SET (PX for a time to live), DEL, MGET, MSET; several fields: HGETALL, HSET, \
                 with a time to live MULTI HSET PEXPIRE EXEC; docs/stores/redis.md",
    durability: DURABILITY,
    consistency: "linearizable for a primary without replicas, read back",
    example: "redis://127.0.0.1:6379",
    lacks: &[Need::Scan],
    threading: threading_of::<RedisStore>(),
    request: words::of,
    check: |url| RedisStore::open(url).map(drop),
    open: |url| Ok(Arc::new(RedisStore::open(url)?)),
};

/// Entry of several servers that kvdyno shards keys over.
pub const SHARDED: Entry = Entry {
    schemes: &["redis+sharded", "rediss+sharded", "valkey+sharded", "valkeys+sharded"],
    name: "redis, client-sharded",
    summary: "several Redis servers over which kvdyno shards the keys itself; reports how even they are",
    options: options![("hash", hash_option!("mix")), ("weights", WEIGHTS_OPTION),],
    operations: "as redis, each request to the server of its key; a batch is one MGET or MSET for \
                 each server that has a part of it; docs/stores/redis-sharded.md",
    durability: DURABILITY,
    consistency: "of each record as its server's, read back from all; a batch is not atomic",
    example: "redis+sharded://127.0.0.1:6379,127.0.0.1:6380",
    lacks: &[Need::Scan],
    threading: threading_of::<RedisStore>(),
    request: words::of_sharded,
    check: |url| RedisStore::open(url).map(drop),
    open: |url| Ok(Arc::new(RedisStore::open(url)?)),
};

/// Entry of a Redis Cluster.
pub const CLUSTER: Entry = Entry {
    schemes: &["redis+cluster", "rediss+cluster", "valkey+cluster", "valkeys+cluster"],
    name: "redis cluster",
    summary: "a Redis or Valkey Cluster, named by one or more of its nodes; changes are followed",
    options: options![(
        "read",
        "primary or replica: which of a slot's nodes is read from; primary"
    ),],
    operations: "as redis, each request to the node of its key's slot; a batch is one GET or SET for \
                 each key, in one write to each node; MOVED and ASK are followed; \
                 docs/stores/redis-cluster.md",
    durability: DURABILITY,
    consistency: "linearizable until a replica takes over, which may lack acknowledged writes \
                  (declared); eventual with read=replica",
    example: "redis+cluster://127.0.0.1:7000,127.0.0.1:7001",
    lacks: &[Need::Scan],
    threading: threading_of::<RedisStore>(),
    request: words::of_cluster,
    check: |url| RedisStore::open(url).map(drop),
    open: |url| Ok(Arc::new(RedisStore::open(url)?)),
};

/// Entry of a primary that sentinels watch.
pub const WATCHED: Entry = Entry {
    schemes: &["redis+sentinel", "rediss+sentinel", "valkey+sentinel", "valkeys+sentinel"],
    name: "redis, watched by sentinels",
    summary: "a Redis primary that sentinels name; a fail-over is followed",
    options: options![
        ("read", "primary or replica: where reads go; primary"),
        ("sentinel-password", "password of the sentinels themselves; none"),
    ],
    operations: "as redis; each connection first asks the sentinels for the primary; \
                 docs/stores/redis-sentinel.md",
    durability: DURABILITY,
    consistency: "linearizable until a replica takes over, which may lack acknowledged writes \
                  (declared); eventual with read=replica",
    example: "redis+sentinel://127.0.0.1:26379,127.0.0.1:26380,127.0.0.1:26381/mymaster",
    lacks: &[Need::Scan],
    threading: threading_of::<RedisStore>(),
    request: words::of,
    check: |url| RedisStore::open(url).map(drop),
    open: |url| Ok(Arc::new(RedisStore::open(url)?)),
};
