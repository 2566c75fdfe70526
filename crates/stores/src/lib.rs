//! The drivers of the stores that kvdyno measures: one file for each system, and a registry from
//! the scheme of a URL to the driver.

pub mod error;
pub mod url;

pub use error::StoreError;
pub use url::{Host, StoreUrl};
