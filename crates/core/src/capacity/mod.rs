//! A store's capacity: the search for the highest rate that meets a condition, and the law of scaling that a sweep
//! over clients, threads or servers follows. Both are pure functions, of a probe and of points, so that they can be
//! tried on stores with a known knee.

mod probe;
mod scaling;
mod search;

pub use probe::{ProbeLoad, probe};
pub use scaling::{Fit, Peak, Scaling, TooFewPoints};
pub use search::{Attempt, Purpose, Search, SearchOutcome, Seen};
