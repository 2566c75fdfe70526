//! Errors in plans that cannot be drawn from: the value, and what is allowed.

use super::plan::Kind;

/// Error of a plan that holds a value without a meaning.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A number that is not in its range.
    #[error("{what} is {value}; it must be {allowed}")]
    Number {
        /// Name of the value.
        what: &'static str,
        /// The value in the plan.
        value: f64,
        /// Values that are allowed, in words.
        allowed: &'static str,
    },
    /// A whole number that is not in its range.
    #[error("{what} is {value}; it must be {min} to {max}")]
    Count {
        /// Name of the value.
        what: &'static str,
        /// The value in the plan.
        value: u64,
        /// Least allowed.
        min: u64,
        /// Most allowed.
        max: u64,
    },
    /// Bounds in the wrong order.
    #[error("{what} runs from {min} to {max}; the first must not be above the second")]
    Order {
        /// Name of the bounds.
        what: &'static str,
        /// Lower bound of the plan.
        min: u32,
        /// Upper bound of the plan.
        max: u32,
    },
    /// A weighted list without an entry.
    #[error("{what} is a weighted list without an entry; it must have at least one")]
    NoChoice {
        /// Name of the list.
        what: &'static str,
    },
    /// The parts of a mix do not make a whole.
    #[error("the parts of the mix sum to {sum}; they must sum to 1,000")]
    MixSum {
        /// Their sum.
        sum: u64,
    },
    /// A mix names a kind twice.
    #[error("the mix names {} twice; name each kind once", .kind.name())]
    MixTwice {
        /// The kind.
        kind: Kind,
    },
    /// Keys are too short to name every record.
    #[error(
        "keys of {length} bytes name {named} records; this run needs {needed}: use longer keys or \
         fewer records (gets of absent keys keep half of the keys)"
    )]
    KeyCapacity {
        /// Bytes of a key.
        length: u16,
        /// Records that such keys can name.
        named: u64,
        /// Records of the dataset.
        needed: u64,
    },
    /// More records than the dataset has room for.
    #[error(
        "{what} reach to {needed} records; the dataset has room for {capacity}: raise its capacity \
         or ask for less"
    )]
    Capacity {
        /// Name of what makes or needs the records.
        what: &'static str,
        /// Records that it takes.
        needed: u64,
        /// Records that the dataset can hold.
        capacity: u64,
    },
    /// A part that does not exist.
    #[error("part {index} of {count} does not exist; parts count from 0 and there is at least one")]
    Part {
        /// Number of the part, zero-based.
        index: u32,
        /// Number of parts.
        count: u32,
    },
    /// A part would have no record of its own to write.
    #[error(
        "with --reads anywhere each of {parts} agents needs a record of its own, but there are only {records}: load \
         at least {parts} records first, or use fewer --agents or --reads own"
    )]
    TooManyParts {
        /// Records that exist.
        records: u64,
        /// Parts of the load.
        parts: u32,
    },
}

/// Checks that `value` lies in 0 to 1, both included.
pub(super) fn share(what: &'static str, value: f64) -> Result<f64, PlanError> {
    number(what, value, (0.0..=1.0).contains(&value), "0 to 1")
}

/// Returns the rate of an endless exponential law, a share of the records being the unit: `percentile` of it lies
/// below `share`. YCSB draws again whatever lies beyond the last record, which makes the share of operations there
/// somewhat greater than `percentile`.
pub(super) fn endless_exponential(percentile: f64, share: f64) -> Result<f64, PlanError> {
    check_exponential(percentile, share, share <= 1.0, "above 0 and at most 1")?;
    Ok(-(-percentile).ln_1p() / share)
}

/// Returns the rate of an exponential law that ends with the last record, of whose operations `percentile` go to the
/// first `share` of the records. It is negative where `percentile` is less than `share`, and 0 where both are the
/// same.
pub(super) fn exponential(percentile: f64, share: f64) -> Result<f64, PlanError> {
    check_exponential(percentile, share, share < 1.0, "above 0 and below 1")?;
    Ok(if percentile >= share {
        falling(percentile, share)
    } else {
        -falling(1.0 - percentile, 1.0 - share)
    })
}

fn check_exponential(
    percentile: f64,
    share: f64,
    within: bool,
    allowed: &'static str,
) -> Result<(), PlanError> {
    number(
        "the percentile of the exponential distribution",
        percentile,
        percentile > 0.0 && percentile < 1.0,
        "above 0 and below 1",
    )?;
    number("the share of the exponential distribution", share, share > 0.0 && within, allowed)?;
    Ok(())
}

/// Solves (1 − e^(−rate·share)) / (1 − e^(−rate)) = percentile, which is not below `share`.
fn falling(percentile: f64, share: f64) -> f64 {
    let below = |rate: f64| match rate {
        0.0 => share,
        rate => (-rate * share).exp_m1() / (-rate).exp_m1(),
    };
    // Of the endless law at least so many are within.
    let (mut low, mut high) = (0.0, -(-percentile).ln_1p() / share);
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return low;
        }
        if below(middle) <= percentile { low = middle } else { high = middle }
    }
}

/// Checks `holds`, the condition on `value` that `allowed` describes.
pub(super) fn number(
    what: &'static str,
    value: f64,
    holds: bool,
    allowed: &'static str,
) -> Result<f64, PlanError> {
    if holds { Ok(value) } else { Err(PlanError::Number { what, value, allowed }) }
}

/// Checks that `value` lies in `min` to `max`, both included.
pub(super) fn count(what: &'static str, value: u64, min: u64, max: u64) -> Result<u64, PlanError> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(PlanError::Count { what, value, min, max })
    }
}
