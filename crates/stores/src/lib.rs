//! The drivers of the stores that kvdyno measures: one file or folder for each system, and a registry
//! from the scheme of a URL to the driver.

// From a URL to a store, and why one could not be opened.
pub use entry::{Entry, Opened, threading_of};
pub use error::StoreError;
pub use registry::{LeftOut, entry, left_out, open, open_boxed, stores};
pub use request::ShownRequest;
pub use url::{StoreUrl, UrlHost};
pub mod registry;
pub mod url;

// What every store must keep, as checks that anybody can run.
pub mod conformance;
// What a store's servers are like when it could not be opened.
pub mod diagnosis;
// The load loop on a store that answers at once: what kvdyno itself costs.
pub mod bare_load;

// Drivers of servers.
#[cfg(feature = "aerospike")]
pub mod aerospike;
#[cfg(feature = "cassandra")]
pub mod cassandra;
#[cfg(feature = "couchbase")]
pub mod couchbase;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "memcached")]
pub mod memcached;
#[cfg(feature = "mongodb")]
pub mod mongodb;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "rest")]
pub mod rest;
#[cfg(feature = "riak")]
pub mod riak;
#[cfg(feature = "tarantool")]
pub mod tarantool;

// Drivers of engines in this process.
#[cfg(feature = "embedded")]
pub mod fjall;
#[cfg(feature = "embedded")]
pub mod lmdb;
#[cfg(feature = "plugin")]
pub mod plugin;
#[cfg(feature = "embedded")]
pub mod redb;
#[cfg(feature = "embedded")]
pub mod rocksdb;

// One store in front of another; a correct store, and one that is wrong on purpose.
pub mod cache;
pub mod map;
pub mod sim;

#[cfg(any(feature = "etcd", feature = "nats"))]
mod attempts;
#[cfg(any(feature = "embedded", feature = "plugin"))]
mod engine;
mod entry;
mod error;
mod in_process;
mod incarnations;
mod null;
#[cfg(feature = "wire")]
mod on_servers;
#[cfg(feature = "wire")]
mod placement;
mod request;
mod shards;
#[cfg(any(feature = "embedded", feature = "plugin"))]
mod shared_library;
#[cfg(feature = "wire")]
mod wire;
