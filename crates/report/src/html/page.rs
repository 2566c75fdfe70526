//! The page around a report: its head, the strip of a run that goes on, the regions that such a run replaces, and the
//! charts' data and script.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kvdyno_core::redact::plain_lines;
use ring::digest::{SHA256, digest};

use crate::document::sections;
use crate::document::subject::Subject;
use crate::document::{Detail, Document, Place};
use crate::result::{HistogramError, RunResult};

use super::charts::Charts;
use super::write::{cards, escaped, folding, header, sections as written};
use super::{chart_library, decision, page_style, script_json};

/// Script that draws the page's charts and lets the reader choose them.
const SCRIPT: &str = concat!(
    include_str!("../../templates/page/charts.js"),
    include_str!("../../templates/page/picture.js"),
    include_str!("../../templates/page/page.js")
);

const CHART_STYLE: &str = include_str!("../../templates/uplot/uPlot.min.css");

/// Place of the report's head on a live page, whose own head is larger.
const HEADER_PLACE: &str = "<!-- header -->";

/// Figures of a page that follows a run, and the script that keeps the page up to date.
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
    let told = |name: &str, text: String| format!("<div data-told=\"{name}\">\n{text}</div>\n");
    let decision = if is_live { String::new() } else { decision::write(&subject, &document) };
    let figures = [
        decision,
        cards(&document),
        written(&document, Place::Summary),
        written(&document, Place::Figures),
    ];
    let [figures, charts_html, tables] =
        [figures.concat(), written(&document, Place::Charts), written(&document, Place::Tables)]
            .map(|text| if is_live { folding(&text) } else { text });
    let main = match is_live {
        // What is seen while it happens stands before what is told afterwards.
        true => {
            format!("{LIVE}{charts_html}{}{}", told("figures", figures), told("tables", tables))
        }
        false => format!("{}{charts_html}{}", told("figures", figures), told("tables", tables)),
    };
    let head = header(&document, "report");
    let (above, main) = match is_live {
        true => (String::new(), main.replacen(HEADER_PLACE, &head, 1)),
        false => (head, main),
    };
    let body = format!(
        "{above}<main>\n{main}</main>\n\
         <footer>Made by kvdyno {}. Charts by uPlot 1.6.32 (MIT licence).</footer>\n\
         <div class=\"paper\" hidden></div>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n",
        escaped(&result.kvdyno.version),
        script_json(charts),
    );
    let parts = match is_live {
        true => Parts::Beside,
        false => Parts::Inside { styles: &[CHART_STYLE], scripts: &[chart_library(), SCRIPT] },
    };
    Ok(shell(&document.title, "report", &parts, &body))
}

/// Returns a report with charts that is no report of one result.
pub(crate) fn charts_page(document: &Document, what: &str, charts: &Charts) -> String {
    let places = [Place::Summary, Place::Figures, Place::Charts, Place::Tables];
    let body = format!(
        "{}<main>\n{}</main>\n<footer>Made by kvdyno. Charts by uPlot 1.6.32 (MIT licence).</footer>\n\
         <div class=\"paper\" hidden></div>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n",
        header(document, what),
        places.map(|place| written(document, place)).concat(),
        script_json(charts),
    );
    let scripts = [chart_library(), SCRIPT];
    shell(
        &document.title,
        what,
        &Parts::Inside { styles: &[CHART_STYLE], scripts: &scripts },
        &body,
    )
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
    shell(&document.title, what, &Parts::Inside { styles: &[], scripts: &[] }, &body)
}

/// Styles and scripts of a page.
pub(crate) enum Parts<'a> {
    /// They are on the page itself, which works offline.
    Inside {
        /// Styles beyond that of every page.
        styles: &'a [&'a str],
        /// Scripts, in the order in which they run.
        scripts: &'a [&'a str],
    },
    /// A server has them beside the page.
    Beside,
}

impl Parts<'_> {
    /// Returns what allows them and nothing else, what stands in the head of the page, and what stands behind its body.
    fn text(&self) -> (String, String, String) {
        let Parts::Inside { styles, scripts } = self else {
            let policy = "script-src 'self'; style-src 'self'; connect-src 'self'; ".to_owned();
            let head = "<link rel=\"stylesheet\" href=\"style.css\">\n".to_owned();
            return (policy, head, "<script src=\"page.js\"></script>\n".to_owned());
        };
        let styles: Vec<&str> = styles.iter().copied().chain([page_style()]).collect();
        let allowed = |kind: &str, texts: &[&str]| {
            let hashes = texts.iter().map(|text| format!(" 'sha256-{}'", sha256(text)));
            if texts.is_empty() {
                String::new()
            } else {
                format!("{kind}{}; ", hashes.collect::<String>())
            }
        };
        let policy = allowed("script-src", scripts) + &allowed("style-src", &styles);
        let inside = |name: &str, texts: &[&str]| {
            texts.iter().map(|text| format!("<{name}>{text}</{name}>\n")).collect::<String>()
        };
        (policy, inside("style", &styles), inside("script", scripts))
    }
}

/// Returns the hash by which a policy names a script or a style.
fn sha256(text: &str) -> String {
    BASE64.encode(digest(&SHA256, text.as_bytes()))
}

/// The head of every page, which lets nothing in but what stands on it or beside it.
pub(crate) fn shell(title: &str, what: &str, parts: &Parts<'_>, body: &str) -> String {
    let (policy, head, behind) = parts.text();
    let text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; {policy}img-src data:\">\n\
         <link rel=\"icon\" id=\"icon\" href=\"data:,\">\n<title>{} · kvdyno {what}</title>\n\
         {head}</head>\n<body>\n{body}{behind}</body>\n</html>\n",
        escaped(title),
    );
    plain_lines(&text).into_owned()
}

/// Returns the styles of a live page, which its server has beside it.
#[must_use]
pub fn live_style() -> String {
    [CHART_STYLE, page_style()].concat()
}

/// Returns the scripts of a live page, which its server has beside it.
#[must_use]
pub fn live_script() -> String {
    [chart_library(), SCRIPT, LIVE_SCRIPT].join("\n")
}
