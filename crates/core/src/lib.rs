//! kvdyno's load engine: what is asked of a store, how the asking is timed, and how every answer
//! is checked. It knows no store and writes no result.
//!
//! Data flows one way: [`suite`] → [`workload`] plan → [`load`] → [`store`] → [`measure`] and
//! [`verify`] → [`verdict`].

mod cache;
pub mod capacity;
pub mod cost;
pub mod folder;
pub mod ground;
pub mod load;
pub mod lock;
pub mod measure;
pub mod shown;
pub mod store;
pub mod suite;
pub mod verdict;
pub mod verify;
pub mod workload;
