//! The page: complete, small enough, and harmless whatever text comes in.

use super::*;
use crate::result::Status;
use crate::sample;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'&";

fn page(result: &RunResult) -> String {
    let folder = tempfile::tempdir().unwrap();
    report(result, folder.path()).unwrap()
}

fn without_library(page: &str) -> String {
    page.replacen(chart_library(), "", 1)
}

#[test]
fn the_page_stays_below_its_limit_and_asks_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let result = sample::written(folder.path());
    let page = report(&result, folder.path()).unwrap();
    assert!(page.len() < 500_000, "{}", page.len());
    let own = without_library(&page);
    assert!(own.len() < 300_000, "{}", own.len());
    for asked in ["http://", "https://", "src=\"", "@import", "url("] {
        assert!(!own.contains(asked), "{asked}");
    }
}

#[test]
fn the_library_is_whole_and_has_its_licence() {
    let library = chart_library();
    assert!(page(&sample::two_stores()).contains(library), "no cleaning has changed it");
    assert!(library.contains("uPlot=function") && library.contains("The MIT License"));
    assert!(!library.contains("</script"));
}

#[test]
fn the_verdict_comes_first_and_which_is_ahead_before_the_figures() {
    let own = without_library(&page(&sample::two_stores()));
    let at = |text: &str| own.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    assert!(at("class=\"level suspect\">suspect") < at("Which is ahead"));
    assert!(at("Which is ahead") < at("<h2>Figures"));
}

#[test]
fn outside_text_is_escaped_wherever_it_goes() {
    let mut result = sample::two_stores();
    let hostile = || HOSTILE.to_owned();
    result.suite.name = hostile();
    result.suite.plan = serde_json::json!({ HOSTILE: HOSTILE });
    result.command.push(hostile());
    result.host.cpu = Some(hostile());
    result.kvdyno.git = Some(hostile());
    result.started = hostile();
    result.status = Status::Failed { message: hostile() };
    for run in &mut result.runs {
        run.store.url = hostile();
        run.store.version = Some(hostile());
        run.store.settings.push((hostile(), hostile()));
        run.status = Status::Failed { message: hostile() };
        run.verdict.as_mut().unwrap().reasons.push(crate::result::Reason {
            name: hostile(),
            text: hostile(),
            advice: hostile(),
            unit: hostile(),
            ..sample::reason(1.0, 1.0)
        });
        for phase in &mut run.phases {
            phase.label = hostile();
            phase
                .published
                .push(crate::result::Published { store: hostile(), ..sample::published() });
            phase.errors.iter_mut().for_each(|error| error.first_message = hostile());
            for figure in &mut phase.figures {
                (figure.name, figure.detail) = (hostile(), hostile());
                figure.warning = Some(hostile());
            }
            phase.anomalies.iter_mut().for_each(|anomaly| anomaly.again = hostile());
            phase.anomalies.iter_mut().for_each(|anomaly| anomaly.detail = hostile());
        }
    }
    result.runs[0].store.name = hostile();
    result.runs[1].store.name = hostile();
    let own = without_library(&page(&result));
    assert!(!own.contains("<img"));
    assert_eq!(own.matches("</script>").count(), 3, "data, library, script");
    assert!(own.contains("onerror"), "the text itself is still shown");
}

#[test]
fn a_testbed_is_disclosed_and_escaped() {
    let mut result = sample::two_stores();
    result.runs[0].testbed = Some(sample::testbed("<b>word</b>"));
    let page = without_library(&page(&result));
    assert!(!page.contains("<b>word"), "outside text became an element");
    assert!(page.contains("Whole effective configuration (1 settings)"));
}

#[test]
fn a_folder_without_files_says_that_there_is_no_timeline() {
    assert!(page(&sample::two_stores()).contains("holds no timeline"));
    let folder = tempfile::tempdir().unwrap();
    let result = sample::written(folder.path());
    assert!(!report(&result, folder.path()).unwrap().contains("holds no timeline"));
}

#[test]
fn a_long_run_stays_below_the_limit() {
    let mut result = sample::two_stores();
    for run in &mut result.runs {
        let phase = run.phases[1].clone();
        run.phases = (0..60)
            .map(|n| crate::result::PhaseResult {
                index: n,
                name: format!("p{n}"),
                ..phase.clone()
            })
            .collect();
    }
    result.suite.plan = serde_json::Value::String("x".repeat(5_000_000));
    assert!(page(&result).len() < LARGEST_PAGE);
}

#[test]
fn charts_of_searches_have_a_place_where_there_is_one_and_a_hidden_one_while_a_run_goes_on() {
    let mut result = sample::two_stores();
    let folder = tempfile::tempdir().unwrap();
    let live = |result: &RunResult| crate::live::of_folder(result, folder.path()).unwrap().0;
    let [none, shown, hidden] =
        ["id=\"capacity-latency\"", "<section id=\"capacity\">", "<details id=\"capacity\" hidden"];
    let open = "<details id=\"capacity\" class=\"part\" open>";
    assert!(!page(&result).contains(none) && live(&result).contains(hidden));
    result.runs[0].capacity = vec![sample::capacity()];
    assert!(page(&result).contains(shown) && live(&result).contains(open));
    for region in ["header", "figures", "tables"] {
        assert_eq!(live(&result).matches(&format!("data-told=\"{region}\"")).count(), 1);
    }
    assert!(!page(&result).contains("id=\"steer\"") && live(&result).contains("id=\"steer\""));
}

#[test]
fn a_page_has_so_many_rows_and_says_how_many_more_there_are() {
    let mut result = sample::two_stores();
    let phase = &mut result.runs[1].phases[1];
    phase.errors = vec![phase.errors[0].clone(); 207];
    let page = page(&result);
    assert_eq!(page.matches("<td class=\"words\">no answer within 2 s</td>").count(), 200);
    assert!(page.contains("7 more are in result.json"));
}

#[test]
fn a_folder_is_linked_by_its_address() {
    use crate::cell::Cell;
    use crate::document::Document;
    let facts = vec![(String::new(), Cell::Report("1 <a>&\"/ü".to_owned()))];
    let page = page::plain_page(&Document { facts, ..Document::default() }, "trials");
    let link = "<a href=\"1%20%3Ca%3E%26%22/%C3%BC/report.html\">1 &#60;a&#62;&#38;&#34;/ü</a>";
    assert!(page.contains(link), "{page}");
}

#[test]
fn a_page_allows_the_scripts_and_styles_that_are_on_it_and_no_other() {
    let result = sample::two_stores();
    let folder = tempfile::tempdir().unwrap();
    for page in [page(&result), page::plain_page(&Default::default(), "trials")] {
        let policy = page.split("Content-Security-Policy\" content=\"").nth(1).unwrap();
        let policy = policy.split('"').next().unwrap();
        assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe-inline"));
        let parts =
            ["<script>", "<style>"].map(|tag| page.matches(tag).count()).iter().sum::<usize>();
        assert_eq!(policy.matches("'sha256-").count(), parts, "{policy}");
        let markup = page.split("<script>").next().unwrap();
        assert!(!markup.contains(" style=\"") && !markup.contains(" onclick="), "not allowed");
    }
    let live = crate::live::of_folder(&result, folder.path()).unwrap().0;
    assert!(live.contains("script-src 'self'; style-src 'self'") && !live.contains("<style>"));
    assert_eq!(live.matches("<script").count(), 2, "data, and a file beside it");
}

#[test]
fn a_printed_report_begins_with_answer_figures_verdict_and_cost() {
    let own = without_library(&page(&sample::two_stores()));
    let at = |text: &str| own.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    let places =
        ["<h2>Answer", "<h2>Key figures", "<h2>Verdict", "Cost: not stated", "<h2>Figures"];
    let places = places.map(at);
    assert!(places.is_sorted(), "{places:?}");
    assert!(at("class=\"appendix\"") > at("<h2>Figures"));
}
