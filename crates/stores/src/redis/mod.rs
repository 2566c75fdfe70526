//! Redis and what speaks its protocol (Valkey, Dragonfly, Infinispan's RESP endpoint), over RESP2 or
//! RESP3 with kvdyno's own codec: one server, several that kvdyno shards keys over, a Redis Cluster,
//! a primary that sentinels watch. Which commands go on the wire: docs/stores/redis.md and the pages
//! beside it.

mod client;
mod cluster;
pub mod codec;
mod commands;
pub mod entries;
mod errors;
mod learned;
mod profile;
mod request;
mod resharding;
mod router;
mod sending;
mod sharded;
mod store;
mod wire;
mod words;

pub use client::RedisClient;
pub use store::{RedisStore, RedisTransport};
