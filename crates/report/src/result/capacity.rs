//! Result of a search for the highest rate, and the sweep before it.

use kvdyno_core::capacity::Purpose;
use serde::{Deserialize, Serialize};

/// Load that a store carried under conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CapacityResult {
    /// Name of the search's phase.
    pub phase: String,
    /// Conditions that had to hold.
    pub conditions: String,
    /// Step from one rate to the next, as a share.
    pub step: f64,
    /// Highest rate that met the conditions in a confirmation run, requests a second. `None` if no rate did, or the
    /// search did not come to its end.
    pub carried: Option<f64>,
    /// Lowest rate that did not meet them, requests a second; `None` if every rate that was tried did.
    pub missed: Option<f64>,
    /// Reason why the store may carry more than that: the client was at its limit.
    pub client_limited: Option<String>,
    /// Closed sweep over numbers of clients, or of threads for a store in this process.
    pub sweep: Vec<ProbeResult>,
    /// Probes of rates, in order.
    pub probes: Vec<ProbeResult>,
    /// Law of scaling that fits the sweep.
    pub fit: Option<FitResult>,
    /// Reason why there is no fit.
    pub no_fit: Option<String>,
}

/// Probe of one number of clients, or of one rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProbeResult {
    /// Name of its phase, which has all its figures.
    pub phase: String,
    /// `sweep`, `bracket`, `bisect`, `again` or `confirm`.
    pub purpose: String,
    /// Request slots.
    pub clients: u32,
    /// Rate that was asked for, requests a second; `None` in a sweep.
    pub asked: Option<f64>,
    /// Operations a second that succeeded.
    pub rate: Option<f64>,
    /// Median of the response time (of the service time in a sweep), ns.
    pub p50_ns: Option<f64>,
    /// 99th percentile of the same, ns.
    pub p99_ns: Option<f64>,
    /// `meets`, `misses`, `unclear` or `overloaded`; `None` in a sweep.
    pub seen: Option<String>,
    /// Conditions that did not hold, with the figures; empty if all held.
    pub why: String,
}

impl ProbeResult {
    /// Returns true if the conditions held at its rate.
    #[must_use]
    pub fn met(&self) -> bool {
        self.seen.as_deref() == Some("meets")
    }

    /// Returns true if the conditions did not hold, and something else than the store may be the cause.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        self.seen.as_deref() == Some("unclear")
    }

    /// Returns true for the longer confirmation run at a rate that is to be reported.
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
    /// Throughput there, operations a second.
    pub peak_rate: Option<f64>,
}
