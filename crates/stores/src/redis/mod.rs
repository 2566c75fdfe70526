//! Redis and what speaks its protocol (Valkey, Dragonfly, Infinispan's RESP endpoint), over RESP2 or
//! RESP3 with kvdyno's own codec: one server, several that kvdyno shards keys over, a Redis Cluster,
//! a primary that sentinels watch. Which commands go on the wire: docs/stores/redis.md and the pages
//! beside it.

mod client;
pub mod cluster;
pub mod codec;
mod commands;
mod copies;
mod errors;
mod handshake;
mod profile;
mod resharding;
mod router;
mod sending;
pub mod sentinel;
pub mod sharded;
mod store;
mod wire;
mod words;

use std::sync::Arc;

use kvdyno_core::load::Need;

use crate::entry::Entry;

pub use client::RedisClient;
pub use store::{RedisStore, RedisTransport};

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
use options;

const DURABILITY: &str = "read back: appendonly yes with appendfsync always survives power loss, with no \
                          process kill, everything else nothing for sure";

/// What `kvdyno stores` says of it.
pub const ENTRY: Entry = Entry {
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
    request: words::of,
    check: |url| RedisStore::open(url).map(drop),
    open: |url| Ok(Arc::new(RedisStore::open(url)?)),
};
