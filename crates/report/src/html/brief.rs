//! How much of a text and of a figure the page holds.

/// Most characters of an outside message on the page.
const MESSAGE_ON_PAGE: usize = 500;

/// The beginning of a text, where that is long.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_ON_PAGE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

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
