//! One real server for a test, with passwords, users and TLS, which a testbed has no settings for.

// Each program of tests uses a part.
#![allow(dead_code, unused_imports)]

mod memcached;
mod redis;

use std::path::PathBuf;
use std::sync::Arc;

use kvdyno_testbed::{Site, TestbedError, TestbedRequest, process};

pub use memcached::{MemcachedServer, MemcachedSettings};
pub use redis::{AppendOnly, RedisServer, RedisSettings};

/// An empty site of a testbed of this kind: a folder and addresses, which go when it is dropped.
fn site(kind: &str) -> Result<Site, TestbedError> {
    Site::new(TestbedRequest::parse(kind)?.settings, Box::new(|_| {}), Arc::default())
}

fn program(name: &str) -> PathBuf {
    process::look_up(name).unwrap_or_else(|| panic!("{name} is not installed"))
}
