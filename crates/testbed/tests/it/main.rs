//! Every test of this crate that needs no process of its own, as one program: each program is linked by itself, and
//! tests of one program share servers.

#[cfg(feature = "server-tests")]
mod cassandra;
#[cfg(feature = "server-tests")]
mod described;
#[cfg(feature = "server-tests")]
mod java_caches;
#[cfg(feature = "server-tests")]
mod network;
#[cfg(feature = "server-tests")]
mod one_server;
#[cfg(feature = "server-tests")]
mod real;
#[cfg(feature = "server-tests")]
mod redis_family;
#[cfg(feature = "server-tests")]
mod testbeds;
