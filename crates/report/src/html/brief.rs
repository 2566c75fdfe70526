//! Precision of the figures in the charts of a page.

/// Four significant digits; `None` for what JSON cannot hold.
pub(super) fn rounded(value: f64) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    if value == 0.0 {
        return Some(0.0);
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let factor = 10f64.powi(digits.clamp(-12, 12));
    Some((value * factor).round() / factor)
}
