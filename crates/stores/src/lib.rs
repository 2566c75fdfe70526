//! The drivers of the stores that kvdyno measures: one file for each system, and a registry from
//! the scheme of a URL to the driver.

#[cfg(feature = "aerospike")]
pub mod aerospike;
pub mod bare_load;
pub mod cache;
#[cfg(feature = "cassandra")]
pub mod cassandra;
pub mod conformance;
#[cfg(feature = "couchbase")]
pub mod couchbase;
pub mod diagnosis;
#[cfg(any(feature = "embedded", feature = "plugin", feature = "rocksdb"))]
mod engine;
pub mod entry;
pub mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "embedded")]
pub mod fjall;
mod in_process;
mod lives;
#[cfg(feature = "embedded")]
pub mod lmdb;
pub mod map;
#[cfg(feature = "memcached")]
pub mod memcached;
#[cfg(feature = "mongodb")]
pub mod mongodb;
pub mod null;
#[cfg(feature = "wire")]
mod on_servers;
#[cfg(feature = "wire")]
pub mod placement;
#[cfg(feature = "plugin")]
pub mod plugin;
#[cfg(feature = "embedded")]
pub mod redb;
#[cfg(feature = "redis")]
pub mod redis;
pub mod registry;
mod request;
#[cfg(feature = "rest")]
pub mod rest;
#[cfg(feature = "riak")]
pub mod riak;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
mod shards;
pub mod sim;
pub mod url;
#[cfg(feature = "wire")]
pub mod wire;

pub use entry::{Entry, Opened};
pub use error::StoreError;
pub use registry::{LeftOut, entry, left_out, open, open_boxed, stores};
pub use request::ShownRequest;
pub use url::{StoreUrl, UrlHost};
