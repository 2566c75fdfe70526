//! What a search for the highest rate found, and the sweep before it.

use kvdyno_core::capacity::Purpose;
use serde::{Deserialize, Serialize};

/// How much load a store carried under a condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CapacityResult {
    /// Name of the phase that is the search.
    pub phase: String,
    /// The conditions that had to hold.
    pub conditions: String,
    /// From one rate that is tried to the next, as a share.
    pub step: f64,
    /// Highest rate that met the conditions in a confirmation run, requests a second. `None`: none
    /// did, or the search did not come to its end.
    pub carried: Option<f64>,
    /// Lowest rate that did not meet them; `None`: every rate that was tried did.
    pub missed: Option<f64>,
    /// Why the store may carry more than that: the client was at its limit.
    pub client_limited: Option<String>,
    /// The closed sweep: numbers of clients, or of threads for a store in this process.
    pub sweep: Vec<ProbeResult>,
    /// The rates that were tried, in order.
    pub probes: Vec<ProbeResult>,
    /// The law of scaling that fits the sweep.
    pub fit: Option<FitResult>,
    /// Why there is no fit.
    pub no_fit: Option<String>,
}

/// One number of clients, or one rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProbeResult {
    /// Name of its phase, which holds all its figures.
    pub phase: String,
    /// `sweep`, `bracket`, `bisect`, `again` or `confirm`.
    pub purpose: String,
    /// Request slots.
    pub clients: u32,
    /// Requests a second asked for; `None` in a sweep.
    pub asked: Option<f64>,
    /// Operations a second that succeeded.
    pub rate: Option<f64>,
    /// Median of the response time (of the service time in a sweep), ns.
    pub p50_ns: Option<f64>,
    /// 99th percentile of the same, ns.
    pub p99_ns: Option<f64>,
    /// `meets`, `misses`, `unclear` or `overloaded`; `None` in a sweep.
    pub seen: Option<String>,
    /// What did not hold; empty if everything did.
    pub why: String,
}

impl ProbeResult {
    /// Returns true if the conditions held at its rate.
    #[must_use]
    pub fn met(&self) -> bool {
        self.seen.as_deref() == Some("meets")
    }

    /// Returns true if they did not, and something else than the store may be why.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        self.seen.as_deref() == Some("unclear")
    }

    /// Returns true if it is the longer run at a rate that is to be reported.
    #[must_use]
    pub fn confirms(&self) -> bool {
        self.purpose == Purpose::Confirm.name()
    }
}

/// Gunther's Universal Scalability Law, fitted to a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FitResult {
    /// Throughput of one client, operations a second.
    pub lambda: f64,
    /// Contention.
    pub sigma: f64,
    /// Coherency.
    pub kappa: f64,
    /// Share of the variance that the law explains.
    pub r2: f64,
    /// Most clients of the sweep.
    pub largest: f64,
    /// Number of clients at which throughput is highest, if the sweep reached it and the fit is good.
    pub peak_at: Option<f64>,
    /// Operations a second there.
    pub peak_rate: Option<f64>,
}
