//! Throwaway deployments of real servers on loopback: one file for each system, all of them around
//! one guard that starts a process, waits until it serves, and leaves nothing behind.

mod certificates;
mod memcached;
mod redis;
mod server;

pub use certificates::Certificates;
pub use memcached::{MemcachedServer, MemcachedSettings};
pub use redis::{AppendOnly, RedisServer, RedisSettings};
pub use server::{Arguments, Launch, Probe, Server, TestbedError};
