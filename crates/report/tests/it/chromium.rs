//! Tests of the report in a real browser: every chart is drawn, nothing is written to the console, nothing is requested
//! from the network. `cargo test -p kvdyno-report --features server-tests`.

use std::path::Path;

use crate::browser::{Browser, Tab, assert_drawn};
use kvdyno_report::files::REPORT_FILE;
use kvdyno_report::folder::write_report;
use kvdyno_report::result::{RunResult, Status};
use serde_json::json;

/// Opens the report of a result in a window of some width.
fn open(browser: &mut Browser, result: &RunResult, folder: &Path, width: u32) -> (Tab, String) {
    let report = write_report(folder, result, &folder.join(REPORT_FILE)).unwrap();
    let url = format!("file://{}", report.display());
    let tab = browser.tab(width, 900);
    browser.go(&tab, &url);
    (tab, url)
}

fn assert_clean(browser: &mut Browser, (tab, url): &(Tab, String)) {
    let troubles = browser.troubles(tab, url);
    assert!(troubles.is_empty(), "{troubles:#?}");
}

#[test]
fn every_chart_is_drawn_without_an_error_or_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = crate::sample::written(folder.path());
    result.runs.iter_mut().for_each(|run| run.capacity = vec![crate::sample::capacity()]);
    let browser = &mut Browser::start();
    let page = open(browser, &result, folder.path(), 1280);
    let tab = &page.0;
    let mut seen = Vec::new();
    for phase in 0..3 {
        let choose = format!(
            "(() => {{ const phase = document.getElementById('phase'); phase.value = '{phase}';
            phase.dispatchEvent(new Event('change')); }})()"
        );
        browser.look(tab, &choose);
        seen.extend(assert_drawn(browser, tab));
    }
    let all = [
        "overview",
        "capacity-latency",
        "capacity-scaling",
        "throughput",
        "curve",
        "response",
        "service",
        "heat-0",
        "heat-1",
        "failed",
        "errors",
        "wrong",
        "late",
        "backlog",
        "processors",
        "memory",
        "written",
    ];
    for chart in all {
        assert!(seen.iter().any(|id| id == chart), "{chart} is not among {seen:?}");
    }
    // A store has its colour in every chart, as the style sheet defines it.
    let strokes = "(() => { const all = {};
        for (const line of document.querySelectorAll('.chart .u-legend .u-series')) {
          const marker = line.querySelector('.u-marker');
          if (!line.offsetParent || !marker?.style.borderColor) continue;
          const store = line.querySelector('.u-label').textContent.split(' ')[0];
          (all[store] ??= new Set()).add(marker.style.borderColor);
        }
        return Object.values(all).map((colours) => [...colours]); })()";
    let strokes = browser.look(tab, strokes);
    let of_stores = strokes.as_array().unwrap();
    let one = |colours: &serde_json::Value| colours.as_array().is_some_and(|all| all.len() == 1);
    assert!(of_stores.len() == 2 && of_stores.iter().all(one), "{strokes}");
    assert_ne!(of_stores[0], of_stores[1]);
    // With the keyboard, a line is hidden by its name in the legend.
    let hidden = "(() => { const name = document.querySelector('#service .u-legend .u-series th[role=button]');
        name.focus();
        name.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
        return document.activeElement === name && name.parentElement.classList.contains('u-off'); })()";
    assert_eq!(browser.look(tab, hidden), json!(true));
    assert_clean(browser, &page);
}

#[test]
fn it_fits_a_telephone_the_dark_and_paper() {
    let folder = tempfile::tempdir().unwrap();
    let result = crate::sample::written(folder.path());
    let browser = &mut Browser::start();
    let page = open(browser, &result, folder.path(), 400);
    let tab = &page.0;
    assert_drawn(browser, tab);
    let beyond = "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll') && e.offsetParent
        && e.getBoundingClientRect().right > 401).map((e) => e.outerHTML.slice(0, 200))";
    assert_eq!(browser.look(tab, beyond), json!([]), "wider than the window");
    let ground = "getComputedStyle(document.body).backgroundColor";
    let light = browser.look(tab, ground);
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.ask(tab, "Emulation.setEmulatedMedia", dark);
    assert_ne!(browser.look(tab, ground), light);
    assert_drawn(browser, tab);
    // The charts of a printed page are light, and twice as large, so that they are sharp.
    let printed = "(async () => { dispatchEvent(new Event('beforeprint'));
        await null;
        const width = document.querySelector('#service canvas').width;
        dispatchEvent(new Event('afterprint'));
        await null;
        return [width, document.querySelector('#service canvas').width]; })()";
    let widths = browser.look(tab, printed);
    assert!(widths[0] == 1360 && widths[1].as_u64() < Some(400), "{widths}");
    let paper = browser.ask(tab, "Page.printToPDF", json!({}));
    assert!(paper["data"].as_str().is_some_and(|data| data.len() > 30_000), "a page with charts");
    assert_clean(browser, &page);
}

#[test]
fn a_result_without_files_and_one_without_phases_are_pages_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = crate::sample::two_stores();
    let browser = &mut Browser::start();
    let page = open(browser, &result, folder.path(), 1280);
    assert_clean(browser, &page);
    result.runs[0].phases.clear();
    result.runs[1].phases.clear();
    result.runs[1].verdict = None;
    result.status = Status::Interrupted;
    let page = open(browser, &result, folder.path(), 1280);
    assert_clean(browser, &page);
}

#[test]
fn hostile_text_is_text_in_the_browser_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = crate::sample::written(folder.path());
    let hostile = "</script><img src=x onerror=\"console.log('owned')\"><script>console.log('owned')</script>\
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
    let browser = &mut Browser::start();
    let page = open(browser, &result, folder.path(), 1280);
    assert_drawn(browser, &page.0);
    let made = browser.look(&page.0, "document.querySelectorAll('img, a').length");
    assert_eq!(made, json!(0), "text became an element");
    let shown = browser
        .look(&page.0, "document.getElementById('service').textContent.includes('<img src=x')");
    assert_eq!(shown, json!(true), "it is shown as it is");
    assert_clean(browser, &page);
}
