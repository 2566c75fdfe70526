//! The report in a real browser: every chart is drawn, nothing is written to the console, nothing
//! is asked of the network. `cargo test -p kvdyno-report --features server-tests`.
#![cfg(feature = "server-tests")]

mod sample;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kvdyno_report::files::REPORT_FILE;
use kvdyno_report::folder::write_report;
use kvdyno_report::result::{RunResult, Status};

/// The browser's answer to a page: what it logged and the page after its scripts ran.
struct Rendered {
    log: String,
    page: String,
}

fn chromium() -> PathBuf {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file());
    found.expect("this test needs Chromium; install it with: apt-get install chromium")
}

fn run(page: &Path, profile: &Path, arguments: &[&str]) -> Output {
    Command::new(chromium())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"])
        .args(["--disable-background-networking", "--no-first-run", "--virtual-time-budget=8000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("Chromium starts")
}

/// Opens the page of a result with a first script that keeps count of errors and requests.
fn render(result: &RunResult, folder: &Path) -> Rendered {
    let report = write_report(folder, result, &folder.join(REPORT_FILE)).unwrap();
    let page = std::fs::read_to_string(&report).unwrap();
    let watch = "<script>window.onerror = (m) => { document.documentElement.dataset.error = m; };
        document.addEventListener('securitypolicyviolation', (e) => {
          document.documentElement.dataset.violation = e.violatedDirective + ' ' + e.blockedURI; });
        new PerformanceObserver((list) => { for (const entry of list.getEntries()) {
          if (!/^(data|blob):/.test(entry.name)) document.documentElement.dataset.request = entry.name;
        } }).observe({ type: 'resource', buffered: true });</script>";
    let watched = folder.join("watched.html");
    std::fs::write(&watched, page.replacen("<head>", &format!("<head>{watch}"), 1)).unwrap();
    let output = run(&watched, &folder.join("profile"), &["--dump-dom"]);
    Rendered {
        log: String::from_utf8_lossy(&output.stderr).into_owned(),
        page: String::from_utf8_lossy(&output.stdout).into_owned(),
    }
}

fn assert_clean(rendered: &Rendered) {
    let console: Vec<&str> = rendered.log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:#?}");
    let root = rendered.page.split('>').nth(1).unwrap_or_default();
    for trouble in ["data-error", "data-violation", "data-request"] {
        assert!(!root.contains(trouble), "{root}");
    }
    assert!(rendered.page.contains("data-charts="), "the script did not come to its end");
}

#[test]
fn every_chart_is_drawn_without_an_error_or_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let rendered = render(&sample::written(folder.path()), folder.path());
    assert_clean(&rendered);
    for chart in ["overview", "throughput", "curve", "service"] {
        let at = rendered.page.find(&format!("id=\"{chart}\"")).unwrap();
        assert!(rendered.page[at..].starts_with(&format!("id=\"{chart}\" class=\"chart")));
        assert!(rendered.page[at..at + 4_000].contains("main-svg"), "{chart} is empty");
    }
}

#[test]
fn what_a_search_found_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = sample::written(folder.path());
    result.runs.iter_mut().for_each(|run| run.capacity = vec![sample::capacity()]);
    let rendered = render(&result, folder.path());
    assert_clean(&rendered);
    for chart in ["capacity-latency", "capacity-scaling"] {
        let at = rendered.page.find(&format!("id=\"{chart}\"")).unwrap();
        assert!(rendered.page[at..at + 4_000].contains("main-svg"), "{chart} is empty");
    }
}

#[test]
fn a_result_without_files_and_one_without_phases_are_pages_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = sample::two_stores();
    assert_clean(&render(&result, folder.path()));
    result.runs[0].phases.clear();
    result.runs[1].phases.clear();
    result.runs[1].verdict = None;
    result.status = Status::Interrupted;
    assert_clean(&render(&result, folder.path()));
}

#[test]
fn hostile_text_is_text_in_the_browser_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = sample::written(folder.path());
    let hostile = "</script><img src=x onerror=\"document.documentElement.dataset.error='x'\">\
                   <a href='javascript:0'>x</a>";
    result.suite.name = hostile.into();
    for run in &mut result.runs {
        run.store.name = hostile.into();
        run.store.url = format!("{hostile}{}", run.store.url);
        for phase in &mut run.phases {
            phase.label = hostile.into();
            phase.errors.iter_mut().for_each(|error| error.first_message = hostile.into());
        }
    }
    let rendered = render(&result, folder.path());
    assert_clean(&rendered);
    let own = rendered.page.split("Plotly, Inc").next().unwrap();
    assert!(!own.contains("<img src=\"x\""));
}
