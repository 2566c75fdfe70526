//! Quantiles of Student's t distribution: with few trials a normal quantile would promise more than they can keep.

/// Most terms of the continued fraction; it settles after some dozens.
const TERMS: u32 = 300;
/// Halvings of the interval in which a quantile is searched: more than a double has binary digits.
const HALVINGS: u32 = 90;
/// Upper end of that interval: beyond any quantile that is needed here.
const FARTHEST: f64 = 1e6;

/// Returns the value below which a share `probability` (0.5 to below 1) of Student's t distribution with `freedom`
/// degrees of freedom lies; the more degrees of freedom, the closer to the normal distribution.
#[must_use]
pub fn quantile(probability: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, FARTHEST);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if distribution(middle, freedom) < probability { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Returns the share of the distribution below `t`, which is not negative (Abramowitz and Stegun, Handbook of
/// Mathematical Functions, 26.7.1).
fn distribution(t: f64, freedom: f64) -> f64 {
    let freedom = freedom.clamp(1e-3, 1e7);
    1.0 - 0.5 * incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// Computes the regularised incomplete beta function by its continued fraction (Abramowitz and Stegun 26.5.8), evaluated
/// from the front (Lentz, Applied Optics 15, 1976).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction settles fast on one side of the mean only; the other is its mirror image.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front =
        (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let apart = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / apart(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..=TERMS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / apart(1.0 + term * d);
            c = apart(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// Computes the logarithm of the gamma function by Lanczos' approximation (SIAM Journal on Numerical Analysis B 1, 1964)
/// with g = 7 and nine terms: fifteen digits for positive arguments.
fn log_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let terms = TERMS.iter().enumerate().skip(1);
    let sum: f64 = terms.map(|(i, term)| term / (x + i as f64)).sum::<f64>() + TERMS[0];
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        // Abramowitz and Stegun, table 26.10.
        let cases = [
            (0.975, 1.0, 12.706),
            (0.975, 4.0, 2.776),
            (0.975, 10.0, 2.228),
            (0.995, 8.0, 3.355),
            (0.995, 30.0, 2.750),
            (0.975, 1e9, 1.960),
            (0.9995, 5.0, 6.869),
        ];
        for (probability, freedom, expected) in cases {
            let found = quantile(probability, freedom);
            assert!((found - expected).abs() < 6e-4, "{probability} {freedom}: {found}");
        }
    }
}
