//! Throwaway deployments of real servers on loopback: one file for each system and one line in the
//! registry. A recipe builds its servers on a [`Site`]; a [`Deployment`] is what is then up, and
//! leaves nothing behind. docs/ADD_A_TESTBED.md walks through one.

mod acting;
mod addresses;
mod aerospike;
mod cassandra;
mod certificates;
mod couchbase;
mod deployment;
mod described;
mod disk;
mod ehcache;
mod error;
mod etcd;
mod folder;
pub mod http;
mod infinispan;
pub mod install;
pub mod java;
mod journal;
pub mod keeper;
mod kind;
mod memcached;
mod mongodb;
mod network;
pub mod pin;
pub mod process;
mod proof;
mod redis;
mod redis_cluster;
mod redis_sentinel;
pub mod registry;
mod request;
mod riak;
mod server;
pub mod sim;
mod site;
mod traffic;
mod valkey;

pub use certificates::Certificates;
pub use deployment::{
    Action, Deployment, Description, NodeDescription, Testbed, ready_to_start, start,
};
pub use described::{DESCRIBED, is_file};
pub use error::TestbedError;
pub use journal::work_of;
pub use kind::{Changes, Kind, Role, SHARED, Setting, Values};
pub use memcached::{MemcachedServer, MemcachedSettings};
pub use network::{AmongClients, NETWORK, NETWORK_SOFTWARE, OwnNetwork, Trouble};
pub use proof::{Announced, Exchange, Proof};
pub use redis::{AppendOnly, RedisServer, RedisSettings};
pub use request::Request;
pub use server::{Launch, Probe, Server, conversation};
pub use site::{Node, Served, Site, Step, Tell};
pub use traffic::Traffic;
