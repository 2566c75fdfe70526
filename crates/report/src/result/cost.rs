//! What the servers of a run cost: the prices that the user stated, kept with the figures that they
//! are divided by.

use kvdyno_core::cost::Bill;
use serde::{Deserialize, Serialize};

/// What the servers of a run cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CostResult {
    /// What prices are in.
    pub currency: String,
    /// Hours that a month is taken to have.
    pub hours_a_month: f64,
    /// Kinds of servers and disks.
    pub servers: Vec<PricedServers>,
}

/// So many of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PricedServers {
    /// Name of the kind.
    pub kind: String,
    /// How many.
    pub count: u32,
    /// Price of one for an hour.
    pub hourly: f64,
    /// Where the price is from.
    pub source: String,
    /// Of when it is.
    pub date: String,
}

impl CostResult {
    /// Cost of an hour.
    #[must_use]
    pub fn hourly(&self) -> f64 {
        self.servers.iter().map(|kind| kind.hourly * f64::from(kind.count)).sum()
    }

    /// Cost of a month.
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
