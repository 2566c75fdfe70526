//! Tests of the report in a real browser: every chart is drawn, nothing is written to the console, nothing is requested
//! from the network. `cargo test -p kvdyno-report --features server-tests`.

use std::path::Path;

use crate::browser::{Browser, Tab, assert_accessible, assert_drawn, printed_pages};
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
    // On paper each phase that measures has two charts, light ones, as lines.
    let printed = "(() => { dispatchEvent(new Event('beforeprint'));
        const drawn = [...document.querySelectorAll('#paper svg')];
        const light = getComputedStyle(document.querySelector('.paper')).getPropertyValue('--store-0').trim();
        return [drawn.length, drawn.every((svg) => svg.querySelector(`path[stroke='${light}']`) && !svg.outerHTML.includes('NaN'))]; })()";
    let measured = result.runs[0].phases.iter().filter(|phase| !phase.prepares()).count();
    assert_eq!(browser.look(tab, printed), json!([2 * measured, true]));
    assert!(printed_pages(browser, tab, (8.27, 11.69)) > 0);
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

/// Ticks of an axis of seconds and of one of amounts, as a chart of this span would have them, with what they say.
const TICKS: &str = "(low, high, kind) => {
    const lines = [{ name: 'a', store: 0, x: [low, high], y: [low, high], text: String }];
    const axis = { ...Charts.AXES[kind], range: (a, b) => [a, b] };
    const other = { ...Charts.AXES.plain, range: (a, b) => [a, b] };
    const svg = Picture.svg({ x: axis, y: other, lines, legend: false }, 700, 300);
    const at = [...svg.querySelectorAll('text[text-anchor=middle]')];
    const left = 11 * 5.2, right = 692;
    return at.map((text) => [low + (high - low) * (+text.getAttribute('x') - left) / (right - left), text.textContent]); }";

#[test]
fn ticks_stand_where_they_say_and_no_two_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let result = crate::sample::written(folder.path());
    let browser = &mut Browser::start();
    let page = open(browser, &result, folder.path(), 1280);
    for (low, high) in [(0.0, 40.0), (100.0, 101.0), (12.0, 13.5), (0.0, 0.02), (0.0, 5_400.0)] {
        for kind in ["seconds", "amount"] {
            let ticks = browser.look(&page.0, &format!("({TICKS})({low}, {high}, '{kind}')"));
            let ticks = ticks.as_array().unwrap();
            assert!(ticks.len() > 1, "{low} to {high}: {ticks:?}");
            let mut said: Vec<&str> = ticks.iter().filter_map(|tick| tick[1].as_str()).collect();
            for tick in ticks {
                let (at, text) = (tick[0].as_f64().unwrap(), tick[1].as_str().unwrap());
                let parsed =
                    |end: &str| text.strip_suffix(end).and_then(|n| n.trim().parse::<f64>().ok());
                let clock = || {
                    let (hours, minutes) = text.strip_suffix(" h")?.split_once(':')?;
                    Some(hours.parse::<f64>().ok()? * 3_600.0 + minutes.parse::<f64>().ok()? * 60.0)
                };
                let value =
                    parsed(" min").map(|n| n * 60.0).or_else(|| parsed(" s")).or_else(clock);
                let value = value
                    .or_else(|| parsed("k").map(|n| n * 1e3))
                    .or_else(|| parsed(""))
                    .expect(text);
                assert!((value - at).abs() < (high - low) / 1_000.0, "{text} at {at}");
            }
            said.dedup();
            assert_eq!(said.len(), ticks.len(), "{said:?}");
        }
    }
    // The axes on the screen say the same: none twice.
    let shown = browser.look(
        &page.0,
        "Charts.AXES.seconds.tick(12.5, 0.5) + Charts.AXES.amount.tick(100500, 500)",
    );
    assert_eq!(shown, json!("12.5 s100.5k"));
    assert_clean(browser, &page);
}

#[test]
fn a_chart_changes_its_scale_and_is_kept_as_picture_and_data() {
    let folder = tempfile::tempdir().unwrap();
    let result = crate::sample::written(folder.path());
    let browser = &mut Browser::start();
    let page = open(browser, &result, folder.path(), 1280);
    let tab = &page.0;
    let tools = "[...document.querySelectorAll('#throughput-figure .tools button')].map((button) => button.textContent)";
    assert_eq!(browser.look(tab, tools), json!(["log", "SVG", "PNG", "CSV"]));
    let turned = "(() => { const button = document.querySelector('#throughput-figure .tools button');
        const before = Charts.spec('throughput').y.log; button.click();
        return [!!before, !!Charts.spec('throughput').y.log, button.getAttribute('aria-pressed')]; })()";
    assert_eq!(browser.look(tab, turned), json!([false, true, "true"]));
    let csv = browser.look(tab, "Picture.csv(Charts.spec('throughput'))");
    let csv = csv.as_str().unwrap();
    let points = browser
        .look(tab, "new Set(Charts.spec('throughput').lines.flatMap((line) => line.x)).size");
    assert_eq!(csv.lines().count() as u64, 1 + points.as_u64().unwrap(), "{csv}");
    assert!(csv.starts_with("time (s),"), "{csv}");
    let svg = browser.look(tab, "Picture.svgText('a < b', Charts.spec('service'))");
    let svg = svg.as_str().unwrap();
    assert!(
        svg.starts_with("<svg xmlns=") && svg.contains("a &lt; b") && !svg.contains("NaN"),
        "{svg}"
    );
    let png = "(async () => (await Picture.png('a', Charts.spec('service'))).size)()";
    assert!(browser.look(tab, png).as_u64() > Some(5_000));
    assert_clean(browser, &page);
}

#[test]
fn many_servers_have_a_panel_each_on_one_scale() {
    let folder = tempfile::tempdir().unwrap();
    let result = crate::sample::written(folder.path());
    let browser = &mut Browser::start();
    let page = open(browser, &result, folder.path(), 1280);
    let draw = |count: usize| {
        format!(
            "(() => {{ const {{ lines, ...rest }} = Charts.spec('processors');
            const many = Array.from({{ length: {count} }}, (_, n) => ({{ ...lines[0], name: 'node-' + n, y: lines[0].y.map((y) => y && y * (n + 1)) }}));
            Charts.draw('processors', {{ ...rest, lines: many }});
            const panels = [...document.querySelectorAll('#processors .chart')];
            return [panels.length, new Set(panels.map((panel) => Charts.spec(panel.id).y.range(0, 1)[1])).size]; }})()"
        )
    };
    assert_eq!(browser.look(&page.0, &draw(3))[0], json!(0), "three are told apart in one chart");
    assert_eq!(browser.look(&page.0, &draw(6)), json!([6, 1]));
    assert_drawn(browser, &page.0);
    assert_eq!(browser.look(&page.0, &draw(2))[0], json!(0));
    assert_clean(browser, &page);
}

#[test]
fn axe_finds_nothing_serious_on_a_report_light_or_dark() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = crate::sample::written(folder.path());
    result.runs.iter_mut().for_each(|run| run.capacity = vec![crate::sample::capacity()]);
    let browser = &mut Browser::start();
    let page = open(browser, &result, folder.path(), 1280);
    assert_accessible(browser, &page.0);
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.ask(&page.0, "Emulation.setEmulatedMedia", dark);
    assert_accessible(browser, &page.0);
    assert_clean(browser, &page);
}
