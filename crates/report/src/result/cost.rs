//! Cost of a run's servers: the prices that the user stated, kept with the figures that they are divided by.

use kvdyno_core::cost::Bill;
use serde::{Deserialize, Serialize};

/// Cost of a run's servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CostResult {
    /// Currency of the prices.
    pub currency: String,
    /// Hours that count as a month.
    pub hours_a_month: f64,
    /// Priced kinds of servers and disks.
    pub servers: Vec<PricedServers>,
}

/// A number of servers or disks of one kind, with their price.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PricedServers {
    /// Name of the kind.
    pub kind: String,
    /// Number of them.
    pub count: u32,
    /// Price of one for an hour.
    pub hourly: f64,
    /// Source of the price.
    pub source: String,
    /// Date of the price.
    pub date: String,
}

impl CostResult {
    /// Returns the cost of an hour.
    #[must_use]
    pub fn hourly(&self) -> f64 {
        self.servers.iter().map(|kind| kind.hourly * f64::from(kind.count)).sum()
    }

    /// Returns the cost of a month.
    #[must_use]
    pub fn monthly(&self) -> f64 {
        self.hourly() * self.hours_a_month
    }
}

impl From<&Bill> for CostResult {
    fn from(bill: &Bill) -> CostResult {
        let servers = bill.items.iter().map(|(price, count)| PricedServers {
            kind: price.name.clone(),
            count: *count,
            hourly: price.hourly,
            source: price.source.clone(),
            date: price.date.clone(),
        });
        CostResult {
            currency: bill.currency.clone(),
            hours_a_month: bill.hours_a_month,
            servers: servers.collect(),
        }
    }
}
