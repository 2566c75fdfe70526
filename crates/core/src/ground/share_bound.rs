//! An upper bound for a share from a few trials: it goes no further than the trials make sure.

/// Returns the upper bound of Clopper and Pearson: if a share `p` of all trials hit, so few as `hits` of `trials`
/// come with a chance of no more than 1 - `sure` for each `p` above it. Between 0 and 1; 1 if nothing was tried, or
/// all hit.
#[must_use]
pub fn largest_share(hits: u64, trials: u64, sure: f64) -> f64 {
    if hits >= trials {
        return 1.0;
    }
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    // The chance falls as the share grows: 60 halvings are as exact as the number.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match at_most(hits, trials, middle) > 1.0 - sure {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// Returns the chance of at most `hits` of `trials` where each hits with this chance, 0 < chance < 1.
fn at_most(hits: u64, trials: u64, chance: f64) -> f64 {
    let (hit, miss) = (chance.ln(), (-chance).ln_1p());
    let mut ways = 0.0_f64;
    let mut sum = 0.0;
    for n in 0..=hits {
        if n > 0 {
            ways += ((trials - n + 1) as f64 / n as f64).ln();
        }
        sum += (ways + n as f64 * hit + (trials - n) as f64 * miss).exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_tables() {
        // Clopper and Pearson, one-sided 95 %.
        for (hits, trials, bound) in [
            (0, 10, 0.258_87),
            (0, 1, 0.95),
            (1, 10, 0.394_16),
            (3, 20, 0.343_66),
            (0, 100, 0.029_51),
            (10, 10, 1.0),
            (0, 0, 1.0),
        ] {
            let found = largest_share(hits, trials, 0.95);
            assert!((found - bound).abs() < 1e-4, "{hits} of {trials}: {found}");
        }
    }
}
