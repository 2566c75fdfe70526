//! The board of results that were measured here, in a real browser: sorted and filtered, its histories drawn, its links
//! whole; and what is exported, read back.
#![cfg(feature = "server-tests")]

#[path = "../../report/tests/browser/mod.rs"]
mod browser;
mod support;

use browser::{Browser, assert_drawn};
use serde_json::{Value, json};
use support::Scratch;

/// As if it had been measured on another day, and a fourth slower from the 15th on.
fn on_day(result: &Value, day: u64) -> Value {
    let mut result = result.clone();
    result["started"] = json!(format!("2026-03-{:02}T00:00:00Z", day + 1));
    let slower = if day >= 15 { 1.25 } else { 1.0 } * (1.0 + 0.01 * (day % 3) as f64);
    let run = &mut result["runs"][0];
    run["verdict"] = json!({ "level": "valid", "reasons": [] });
    for phase in run["phases"].as_array_mut().unwrap() {
        phase["wall_ns"] = json!((phase["wall_ns"].as_u64().unwrap() as f64 * slower) as u64);
    }
    result
}

#[test]
fn a_board_of_own_results_is_seen_in_a_browser() {
    let scratch = Scratch::new();
    for store in ["map:", "null:"] {
        let words = format!(
            "run --store {store} --records 2k --mix get=80,update=20 --duration 2s --quiet --out own/{}",
            store.trim_end_matches(':')
        );
        scratch.kvdyno(&words).expect_done();
    }
    let measured = scratch.result("own/map");
    std::fs::create_dir(scratch.path("own/days")).unwrap();
    for day in 0..20 {
        scratch.write(&format!("own/days/{day}.json"), &on_day(&measured, day).to_string());
    }
    scratch.write("own/days/broken.json", "{");
    let made = scratch.kvdyno("board own -o site").expect(0);
    assert!(
        made.err.contains("skipped own/days/broken.json")
            && made.out.contains("Board of 22 results")
    );

    let browser = &mut Browser::start();
    let site = format!("file://{}/", scratch.path("site").display());
    let tab = browser.tab(1280, 900);
    browser.go(&tab, &format!("{site}index.html"));
    let seen = browser.look(&tab, "document.querySelectorAll('.step-worse').length > 0 && document.querySelector('#skipped').textContent.includes('broken.json')");
    assert_eq!(seen, json!(true));

    let suite = browser.look(&tab, "document.querySelector('a[href^=suite-]').href");
    browser.go(&tab, suite.as_str().unwrap());
    // The ranking with the most rows: what was measured, and the days.
    let table = "[...document.querySelectorAll('table.board')].reduce((a, b) => b.tBodies[0].rows.length > a.tBodies[0].rows.length ? b : a)";
    let rates = format!("[...{table}.tBodies[0].rows].map((row) => +row.cells[5].dataset.value)");
    let head = format!("{table}.querySelectorAll('thead button')[5]");
    // By keyboard: a button that has the focus is pressed.
    for sign in [1.0, -1.0] {
        browser.look(&tab, &format!("{head}.focus()"));
        for kind in ["keyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13 });
            browser.ask(&tab, "Input.dispatchKeyEvent", key);
        }
        let told: Vec<f64> = serde_json::from_value(browser.look(&tab, &rates)).unwrap();
        assert!(
            told.len() > 1 && told.windows(2).all(|pair| sign * pair[0] <= sign * pair[1]),
            "{told:?}"
        );
    }
    let filtered = "(() => { const chosen = document.querySelector('select[data-filter=store]'); chosen.value = 'null';
        chosen.dispatchEvent(new Event('input')); const rows = [...document.querySelectorAll('table.board tbody tr')];
        return [rows.filter((row) => !row.hidden).length > 0, rows.every((row) => row.hidden === (row.dataset.store !== 'null'))]; })()";
    assert_eq!(browser.look(&tab, filtered), json!([true, true]));

    let narrow = browser.tab(400, 900);
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.ask(&narrow, "Emulation.setEmulatedMedia", dark);
    for tab in [&tab, &narrow] {
        browser.go(tab, &format!("{site}store-map.html"));
        let drawn = assert_drawn(browser, tab);
        assert!(drawn.len() >= 2, "{drawn:?}");
        let seen = browser.look(tab, "document.querySelectorAll('.steps .step-worse').length");
        assert!(seen.as_u64() > Some(0), "{seen}");
        let beyond = "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll') && e.offsetParent
            && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 120))";
        assert_eq!(browser.look(tab, beyond), json!([]), "wider than the window");
        assert_eq!(browser.troubles(tab, &site), Vec::<String>::new());
    }
    let report = browser.look(&tab, "document.querySelector('table.board tbody a').href");
    browser.go(&tab, report.as_str().unwrap());

    exported(&scratch);
}

/// Each format is written, and is what it says it is.
fn exported(scratch: &Scratch) {
    for format in ["bencher", "github-action-benchmark", "csv"] {
        let told = scratch.kvdyno(&format!("export own/map --as {format} -o out")).expect(0);
        assert_eq!(told.err, "");
        let text = std::fs::read_to_string(scratch.path("out")).unwrap();
        match format {
            "csv" => {
                assert!(text.lines().count() > 3 && text.starts_with("run,suite,store"), "{text}")
            }
            _ => assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}"),
        }
    }
}
