//! Throwaway deployments of real servers on loopback: one file for each system and one line in the
//! registry. A recipe builds its servers on a [`Site`]; a [`Deployment`] is what is then up, and
//! leaves nothing behind. docs/ADD_A_TESTBED.md walks through one.

// A testbed that is up, in this process or for as long as a keeper lives, and how it is asked for.
pub use deployment::{Deployment, ready_to_start, start};
pub use model::{Description, NodeDescription, Testbed};
pub use request::TestbedRequest;
pub mod keeper;
// A deployment of the user's own, which a file describes.
pub use described::{DESCRIBED, LoadMachine, is_file, load_machines};

// Which kinds of testbeds there are, what each can be asked for, and how its software is installed.
pub use kind::{Changes, TestbedKind};
pub use settings::{SHARED, Setting, TestbedSettings, Values};
pub mod install;
pub mod registry;

// What a recipe builds with: nodes and their roles, servers, proofs that they serve, certificates.
pub use certificates::Certificates;
pub use proof::{Announced, Exchange, Proof};
pub use role::Role;
pub use server::{Launch, Probe, Server, conversation};
pub use site::{Node, Served, Site, Step, StepListener};
pub mod http;
pub mod process;

// A network of a testbed's own, and who speaks to whom in it.
pub use network::{AmongClients, NETWORK, NETWORK_SOFTWARE, OwnNetwork};
pub use traffic::Traffic;

// A disk of each node's own, which can be filled or cut off.
pub use cut_figures::CutFigures;
pub use disk::{DISK, DISK_SOFTWARE, serve_device};
pub use disk_form::DiskForm;

// Servers and clients on processors of their own.
pub mod pin;
// What servers tell in their logs of their work beside requests.
pub use journal::{LogWatch, work_of};
// The processes of the testbeds `sim` and `engine`, and what they speak.
pub use engine::EngineNode;
pub mod resp;
pub mod sim;
// Why a testbed cannot be had.
pub use error::TestbedError;

mod acting;
mod addresses;
mod aerospike;
mod cassandra;
mod certificates;
mod couchbase;
mod cut_figures;
mod deployment;
mod described;
mod disk;
mod disk_form;
mod ehcache;
mod engine;
mod error;
mod etcd;
mod folder;
mod hazelcast;
mod infinispan;
mod java;
mod journal;
mod kind;
mod log_end;
mod memcached;
mod model;
mod mongodb;
mod nats;
mod network;
mod power;
mod privilege;
mod proof;
mod redis;
mod redis_cluster;
mod redis_sentinel;
mod request;
mod riak;
mod role;
mod server;
mod settings;
mod site;
mod still;
mod tarantool;
mod traffic;
mod valkey;
