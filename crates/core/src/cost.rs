//! The cost of servers and the throughput for it: arithmetic over prices that the user states, so that every figure
//! can be traced to its assumptions. Published costs are recomputed the same way.

use serde::{Deserialize, Serialize};

/// Share by which a printed figure may differ from its own assumptions: rounding, not contradiction.
const ROUNDING: f64 = 0.02;
/// Operations that a price is quoted for.
const MILLION: f64 = 1e6;
/// Seconds of an hour.
const HOUR: f64 = 3_600.0;

/// The prices that a user states: `prices.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices {
    /// Currency of the prices, such as `USD`.
    pub currency: String,
    /// Hours that a month is taken to have.
    pub hours_a_month: f64,
    /// Prices of the kinds of servers and disks.
    pub kinds: Vec<Price>,
    /// Published costs, with their assumptions.
    pub statements: Vec<Statement>,
}

/// The price of a kind of server or disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// Its name: `n1-standard-8`.
    pub name: String,
    /// Price of one for an hour.
    pub hourly: f64,
    /// Description of the kind.
    pub what: String,
    /// Source of the price.
    pub source: String,
    /// Date of the price.
    pub date: String,
}

/// Servers and disks with their cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Bill {
    /// Price and number of each kind.
    pub items: Vec<(Price, u32)>,
    /// Currency of the prices.
    pub currency: String,
    /// Hours that a month is taken to have.
    pub hours_a_month: f64,
}

impl Bill {
    /// Returns the cost of an hour.
    #[must_use]
    pub fn hourly(&self) -> f64 {
        self.items.iter().map(|(price, count)| price.hourly * f64::from(*count)).sum()
    }

    /// Returns the cost of a month.
    #[must_use]
    pub fn monthly(&self) -> f64 {
        self.hourly() * self.hours_a_month
    }
}

/// Error because of which `--servers` cannot be priced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BillError {
    /// A word that is not `KIND=NUMBER`.
    #[error("`{0}` is not KIND=NUMBER; write for example n1-standard-8=20,local-ssd-375=4")]
    Form(String),
    /// A kind without a price, and a hint.
    #[error("there is no price for `{0}`; {1}")]
    Unknown(String, String),
}

impl Prices {
    /// Makes the bill for `servers`, written as `KIND=NUMBER,KIND=NUMBER`.
    ///
    /// # Errors
    /// [`BillError`] if it is written otherwise or names a kind that has no price.
    pub fn bill(&self, servers: &str) -> Result<Bill, BillError> {
        let mut items = Vec::new();
        for word in servers.split(',').map(str::trim) {
            let form = || BillError::Form(word.to_owned());
            let (kind, count) = word.split_once('=').ok_or_else(form)?;
            let count = count.trim().parse().ok().filter(|n| (1..=1_000_000).contains(n));
            items.push((kind.trim(), count.ok_or_else(form)?));
        }
        self.priced(&items)
    }

    /// Makes the bill for so many of each kind.
    ///
    /// # Errors
    /// [`BillError::Unknown`] if a kind has no price.
    pub fn priced(&self, items: &[(&str, u32)]) -> Result<Bill, BillError> {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
        let price = |&(name, count): &(&str, u32)| {
            let found = self.kinds.iter().find(|kind| kind.name == name);
            let unknown =
                || BillError::Unknown(name.to_owned(), crate::ground::hints::hint(name, &names));
            Ok((found.ok_or_else(unknown)?.clone(), count))
        };
        Ok(Bill {
            items: items.iter().map(price).collect::<Result<_, BillError>>()?,
            currency: self.currency.clone(),
            hours_a_month: self.hours_a_month,
        })
    }
}

/// Returns the cost of a million operations at `rate` operations a second, from the cost of an hour.
#[must_use]
pub fn per_million(hourly: f64, rate: f64) -> f64 {
    hourly / (rate * HOUR) * MILLION
}

/// Returns the operations a second for each unit of currency an hour.
#[must_use]
pub fn rate_per_hourly(hourly: f64, rate: f64) -> f64 {
    rate / hourly
}

/// Published costs and their stated assumptions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Subject of the statement.
    pub title: String,
    /// Kinds and numbers of servers, where stated.
    pub servers: Vec<(String, u32)>,
    /// Operations a second, where stated.
    pub rate: Option<f64>,
    /// Hours of its month, where stated.
    pub hours_a_month: Option<f64>,
    /// Cost of an hour as printed.
    pub hour: Option<f64>,
    /// Cost of a month as printed.
    pub month: Option<f64>,
    /// Operations a second for each unit of currency an hour, as printed.
    pub rate_per_hourly: Option<f64>,
    /// Further note on it.
    pub note: String,
}

/// A printed figure beside the one that its assumptions give.
#[derive(Clone, Debug, PartialEq)]
pub struct Recomputed {
    /// Name of the figure.
    pub what: &'static str,
    /// Figure as printed.
    pub printed: f64,
    /// Figure that follows from the assumptions.
    pub follows: f64,
    /// The rate that the printed figure rests on, where it is a rate for a price.
    pub rests_on: Option<f64>,
}

impl Recomputed {
    /// Returns true if the publication contradicts itself by more than rounding explains.
    #[must_use]
    pub fn contradicts(&self) -> bool {
        (self.printed / self.follows - 1.0).abs() > ROUNDING
    }
}

impl Statement {
    /// Computes again each printed figure that follows from the statement's own assumptions.
    ///
    /// # Errors
    /// [`BillError`] if a server has no price.
    pub fn recomputed(&self, prices: &Prices) -> Result<Vec<Recomputed>, BillError> {
        let mut found = Vec::new();
        let mut add = |what, printed: Option<f64>, follows: Option<f64>, rests_on| {
            if let (Some(printed), Some(follows)) = (printed, follows) {
                found.push(Recomputed { what, printed, follows, rests_on });
            }
        };
        let servers: Vec<(&str, u32)> =
            self.servers.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        let billed = match servers.is_empty() {
            true => None,
            false => Some(prices.priced(&servers)?.hourly()),
        };
        add("cost of an hour", self.hour, billed, None);
        let hourly = billed.or(self.hour);
        let month =
            hourly.map(|hourly| hourly * self.hours_a_month.unwrap_or(prices.hours_a_month));
        add("cost of a month", self.month, month, None);
        let follows = hourly.zip(self.rate).map(|(hourly, rate)| rate_per_hourly(hourly, rate));
        let rests_on = hourly.zip(self.rate_per_hourly).map(|(hourly, rate)| hourly * rate);
        add("operations a second per price of an hour", self.rate_per_hourly, follows, rests_on);
        Ok(found)
    }
}

/// Numbers of servers that a load needs: the fewest that the measured capacity may allow, and the number that it gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needed {
    /// Servers with the capacity at the upper end of its interval.
    pub least: f64,
    /// Servers with the capacity as measured.
    pub servers: f64,
    /// The number goes beyond the numbers of servers that were measured.
    pub extrapolates: bool,
}

/// Returns the number of servers that carry `load` operations a second. `rate` is the throughput that `measured`
/// servers carried, and `upper` the most that they may have carried. `fitted`, where several numbers of servers were
/// measured, gives the throughput of a number of servers; without it each server is taken to carry as much as the
/// next. `None` if no number of servers that the fit knows carries the load.
#[must_use]
pub fn servers_needed(
    load: f64,
    (rate, upper): (f64, f64),
    measured: f64,
    fitted: Option<&crate::capacity::Fit>,
) -> Option<Needed> {
    let carried = |n: f64, scale: f64| match fitted {
        Some(fit) => fit.scaling.rate(n) * scale,
        None => rate * n / measured * scale,
    };
    let best = fitted.and_then(|fit| fit.scaling.peak()).map_or(f64::INFINITY, |peak| peak.at);
    let fewest = |scale: f64| {
        let mut n = 1.0f64;
        // Doubled until it is enough, then narrowed: the law rises up to its peak.
        while carried(n.min(best), scale) < load {
            if n >= best || n > 1e9 {
                return None;
            }
            n *= 2.0;
        }
        let (mut low, mut high) = ((n / 2.0).floor(), n.min(best).ceil());
        while high - low > 1.0 {
            let middle = ((low + high) / 2.0).floor();
            if carried(middle, scale) < load { low = middle } else { high = middle }
        }
        Some(high)
    };
    let servers = fewest(1.0)?;
    let least = fewest(upper / rate).unwrap_or(servers);
    let known = fitted.map_or(measured, |fit| fit.largest);
    Some(Needed { least, servers, extrapolates: servers > known })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{Fit, Scaling};

    #[test]
    fn costs_follow_from_price_and_rate() {
        // 20 servers at 0.304 an hour that carry 4 million requests a second.
        assert!((per_million(6.08, 4e6) - 0.000_422_2).abs() < 1e-6);
        assert!((rate_per_hourly(6.08, 4e6) - 657_894.7).abs() < 0.1);
    }

    #[test]
    fn servers_are_counted_up_and_told_to_be_extrapolated() {
        let needed = servers_needed(1e6, (90_000.0, 100_000.0), 1.0, None).unwrap();
        assert_eq!((needed.least, needed.servers, needed.extrapolates), (10.0, 12.0, true));
        let needed = servers_needed(80_000.0, (90_000.0, 95_000.0), 1.0, None).unwrap();
        assert_eq!((needed.servers, needed.extrapolates), (1.0, false));
        let needed = servers_needed(150_000.0, (90_000.0, 95_000.0), 3.0, None).unwrap();
        assert_eq!((needed.servers, needed.extrapolates), (5.0, true));
    }

    #[test]
    fn a_fitted_curve_bends_the_count() {
        let law = Scaling { lambda: 10_000.0, sigma: 0.05, kappa: 0.002 };
        let points = [1.0, 2.0, 4.0, 8.0].map(|n| (n, law.rate(n)));
        let fit = Fit::of(&points).unwrap();
        let needed = |load| servers_needed(load, (10_000.0, 10_500.0), 1.0, Some(&fit));
        let within = needed(40_000.0).unwrap();
        assert_eq!((within.servers, within.extrapolates), (5.0, false), "4 if none slowed another");
        assert!(law.rate(5.0) >= 40_000.0 && law.rate(4.0) < 40_000.0);
        assert!(needed(70_000.0).unwrap().extrapolates);
        assert_eq!(needed(1e9), None, "more than the peak of the curve");
    }
}
