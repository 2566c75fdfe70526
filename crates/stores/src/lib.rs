//! The drivers of the stores that kvdyno measures: one file for each system, and a registry from
//! the scheme of a URL to the driver.

pub mod conformance;
mod engine;
pub mod error;
#[cfg(feature = "embedded")]
pub mod fjall;
#[cfg(feature = "embedded")]
pub mod lmdb;
pub mod map;
#[cfg(feature = "embedded")]
pub mod redb;
pub mod registry;
mod shards;
pub mod sim;
pub mod url;

pub use error::StoreError;
pub use registry::{AnyStore, Entry, LeftOut, Opened, entry, left_out, open, stores};
pub use url::{Host, StoreUrl};
