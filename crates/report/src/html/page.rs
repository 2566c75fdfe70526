//! The page around a report: its head, the strip of a run that goes on, the regions that such a run replaces, and the
//! charts' data and script.

use kvdyno_core::redact::plain_lines;

use crate::document::sections;
use crate::document::subject::Subject;
use crate::document::{Detail, Document, Place};
use crate::result::{HistogramError, RunResult};

use super::charts::Charts;
use super::write::{cards, escaped, header, sections as written};
use super::{chart_library, page_style, script_json};

/// Script that draws the page's charts and lets the reader choose them.
const SCRIPT: &str = concat!(
    include_str!("../../templates/page/charts.js"),
    include_str!("../../templates/page/page.js")
);

/// Strip of a page that follows a run, and the script that keeps the page up to date.
const LIVE: &str = include_str!("../../templates/page/live.html");
const LIVE_SCRIPT: &str = include_str!("../../templates/page/live.js");

/// Returns the page of a result. `is_live`: the run may go on, and the page is told what happens.
///
/// # Errors
/// [`HistogramError`] if a histogram cannot be decoded.
pub(crate) fn page(
    result: &RunResult,
    charts: &Charts,
    is_live: bool,
) -> Result<String, HistogramError> {
    let subject = Subject { is_live, has_timeline: charts.has_timeline(), ..Subject::of(result)? };
    let document = sections::document(&subject).at(Detail::Page);
    let (live, live_script) = if is_live { (LIVE, LIVE_SCRIPT) } else { ("", "") };
    let body = format!(
        "{}<main>\n{live}<div data-told=\"figures\">\n{}{}{}</div>\n{}<div data-told=\"tables\">\n{}</div>\n</main>\n\
         <footer>Made by kvdyno {}. Charts by uPlot 1.6.32 (MIT licence).</footer>\n\
         <div class=\"paper\" hidden></div>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n\
         <script>{}</script>\n<script>{SCRIPT}{live_script}</script>\n",
        header(&document, "report"),
        cards(&document),
        written(&document, Place::Summary),
        written(&document, Place::Figures),
        written(&document, Place::Charts),
        written(&document, Place::Tables),
        escaped(&result.kvdyno.version),
        script_json(charts),
        chart_library(),
    );
    let allowed = if is_live { "connect-src 'self'; " } else { "" };
    let allowed = format!("script-src 'unsafe-inline'; {allowed}");
    let style = include_str!("../../templates/uplot/uPlot.min.css");
    Ok(shell(&document.title, "report", &allowed, style, &body))
}

/// Returns a report without charts as a page that works offline.
pub(crate) fn plain_page(document: &Document, what: &str) -> String {
    let document = document.at(Detail::Page);
    let body = format!(
        "{}<main>\n{}</main>\n<footer>Made by kvdyno.</footer>\n",
        header(&document, what),
        [Place::Summary, Place::Figures, Place::Tables]
            .map(|place| written(&document, place))
            .concat()
    );
    shell(&document.title, what, "", "", &body)
}

/// The head of every page, which lets nothing in but what stands on it. `allowed` is what its policy allows beyond.
pub(crate) fn shell(title: &str, what: &str, allowed: &str, style: &str, body: &str) -> String {
    let text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; {allowed}style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{} · kvdyno {what}</title>\n\
         <style>{style}</style>\n<style>{}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escaped(title),
        page_style()
    );
    plain_lines(&text).into_owned()
}
