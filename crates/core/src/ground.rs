//! The ground floor: units, hints, numbers, draws, which every part needs and no part owns. Nothing here knows of a
//! store or a load.

pub mod hash;
pub mod hints;
mod median;
pub mod numbers;
pub mod random;
pub mod share_bound;
pub mod units;

pub use median::median;
