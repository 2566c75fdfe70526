//! The drivers of the stores that kvdyno measures: one file for each system, and a registry from
//! the scheme of a URL to the driver.

pub mod error;
#[cfg(feature = "memcached")]
pub mod memcached;
#[cfg(feature = "redis")]
pub mod redis;
pub mod url;
#[cfg(feature = "wire")]
pub mod wire;

pub use error::StoreError;
pub use url::{Host, StoreUrl};
