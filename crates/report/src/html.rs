//! The report: one self-contained page that works offline. Everything that comes from outside is
//! escaped: text by the writer, chart data as JSON without a `<`.

mod brief;
pub(crate) mod capacity;
pub(crate) mod charts;
mod decision;
pub(crate) mod page;
pub(crate) mod write;

use std::path::Path;

use crate::result::{HistogramError, RunResult};
use crate::timeline::DrawnTimeline;

use charts::Charts;
use page::page;

/// Largest page, bytes.
pub const LARGEST_PAGE: usize = 3_000_000;

/// A report that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// A histogram cannot be decoded.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// The page would be too large.
    #[error(
        "the page would have {0} bytes, more than {LARGEST_PAGE}; \
         report the stores in runs of their own"
    )]
    TooLarge(usize),
}

/// The page for a result. Charts over time come from the files in `folder`; where those are
/// missing the page says so.
///
/// # Errors
/// [`HtmlError`] if a histogram cannot be decoded or the page would be too large.
pub fn report(result: &RunResult, folder: &Path) -> Result<String, HtmlError> {
    let timeline = DrawnTimeline::read(folder, result);
    let text = page(result, &Charts::new(result, &timeline)?, false)?;
    match text.len() {
        length if length <= LARGEST_PAGE => Ok(text),
        length => Err(HtmlError::TooLarge(length)),
    }
}

/// The data of the charts of a result, as the page has them.
#[cfg(test)]
pub(crate) fn charts_json(
    result: &RunResult,
    folder: &Path,
) -> Result<serde_json::Value, HtmlError> {
    let charts = Charts::new(result, &DrawnTimeline::read(folder, result))?;
    Ok(serde_json::to_value(charts).expect("chart data is plain JSON"))
}

/// The source of uPlot with its licence (`templates/uplot/README.md` says where it comes from).
pub(crate) fn chart_library() -> &'static str {
    concat!(
        "/*\n",
        include_str!("../templates/uplot/LICENSE"),
        "*/\n",
        include_str!("../templates/uplot/uPlot.iife.min.js")
    )
}

/// The style of every page.
pub(crate) fn page_style() -> &'static str {
    include_str!("../templates/page/style.css")
}

/// JSON that may stand inside a script element: no `<`, so nothing in it ends the element.
pub(crate) fn script_json(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_string(value).expect("chart data is plain JSON");
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests;
