//! The board of results that were measured here, in a real browser: sorted and filtered, its histories drawn, its links
//! whole; and what is exported, read back.

use std::collections::BTreeSet;
use std::process::Command;

use crate::browser::{Browser, assert_drawn};
use crate::python::python_with;
use crate::support::Scratch;
use serde_json::{Value, json};

/// Returns a result as if it had been measured on another day, and a fourth slower from the 15th on.
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

/// Reads the tables as DuckDB and pandas do, and holds them against the result and each other.
const READ_TABLES: &str = "
import json, sys, duckdb, pandas
text = dict(keep_default_na=False, na_values=[''])
for table in ['kinds', 'intervals']:
    parquet, csv = pandas.read_parquet(table + '.parquet'), pandas.read_csv(table + '.csv', **text)
    pandas.testing.assert_frame_equal(parquet, csv, check_dtype=False, check_exact=True)
    types = {str(t) for t in parquet[['phase', 'prepares', 'rate', 'operations' if table == 'kinds' else 'ok']].dtypes}
    assert types == {'str', 'bool', 'float64', 'int64'}, parquet.dtypes
    both = ['select * from \\'' + table + kind + '\\'' for kind in ['.parquet', '.csv']]
    for one, other in [both, both[::-1]]:
        assert duckdb.sql('(' + one + ') except (' + other + ')').fetchall() == []
    assert len(parquet) == len(duckdb.sql(both[0]).fetchall()) > 3
run = json.load(open(sys.argv[1]))['runs'][0]
of_intervals = 'select sum(ok), max(service_max_ns) from \\'intervals.parquet\\' where phase = ? and kind = ?'
of_kinds = 'select operations, p50_ns, p99_9_ns, clock from \\'kinds.parquet\\' where phase = ? and row = ?'
checked = 0
for phase in run['phases']:
    for series in phase['series']:
        name, kind, latency = phase['name'], series['kind'], series['service']
        told = duckdb.execute(of_intervals, [name, kind]).fetchone()
        assert told == (series['ok'], latency['max_ns']), (name, kind, told)
        row = kind if len(phase['series']) > 1 else 'all'
        told = duckdb.execute(of_kinds, [name, row]).fetchall()
        carried = lambda figure, least: latency[figure] if latency['count'] >= least else None
        figures = (carried('p50_ns', 20), carried('p99_9_ns', 10_000))
        assert told == [(latency['count'], *figures, 'service')], (name, kind, told)
        checked += 1
print(checked)
";

/// Checks a text against Bencher's Metric Format, as its page defines it, and against what kvdyno promises beside that.
fn is_metric_format(told: &Value) {
    let number = json!({ "type": "number", "exclusiveMinimum": 0 });
    let metric = json!({
        "type": "object",
        "properties": { "value": number, "lower_value": number, "upper_value": number },
        "required": ["value"],
        "additionalProperties": false,
    });
    let named = |most: u32, of: Value| {
        json!({ "type": "object", "minProperties": 1, "propertyNames": { "minLength": 1, "maxLength": most },
            "additionalProperties": of })
    };
    let schema = jsonschema::validator_for(&named(1024, named(64, metric))).unwrap();
    let broken: Vec<String> = schema.iter_errors(told).map(|error| error.to_string()).collect();
    assert_eq!(broken, Vec::<String>::new(), "{told}");
    // Its limits count bytes, those of a schema characters.
    let mut names = told.as_object().unwrap().iter();
    assert!(names.all(|(name, of)| name.len() <= 1024
        && of.as_object().unwrap().keys().all(|key| key.len() <= 64)));
    let metrics =
        told.as_object().unwrap().values().flat_map(|of| of.as_object().unwrap().values());
    for metric in metrics {
        let [low, high] = ["lower_value", "upper_value"].map(|key| metric[key].as_f64());
        let value = metric["value"].as_f64().unwrap();
        // A lower bound has no upper value.
        assert!(low.is_some() || high.is_none(), "{metric}");
        assert!(low.unwrap_or(value) <= value && value <= high.unwrap_or(value), "{metric}");
    }
}

/// Checks the input of github-action-benchmark with `customSmallerIsBetter`: a list of figures, each with a name of
/// its own.
fn is_list_of_figures(told: &Value) {
    let figure = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 1 },
            "unit": { "type": "string" },
            "value": { "type": "number", "exclusiveMinimum": 0 },
            "range": { "type": "string" },
        },
        "required": ["name", "unit", "value"],
        "additionalProperties": false,
    });
    let schema = json!({ "type": "array", "minItems": 4, "items": figure });
    let broken: Vec<String> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(told)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(broken, Vec::<String>::new(), "{told}");
    let list = told.as_array().unwrap();
    let names: BTreeSet<&str> =
        list.iter().map(|figure| figure["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), list.len(), "{told}");
}

/// Writes each format, and reads it with the tools it is for, or by their published schema.
fn exported(scratch: &Scratch) {
    let written = |words: &str, file: &str| {
        let told = scratch.kvdyno(&format!("export own/map --as {words} -o {file}")).expect(0);
        assert_eq!(told.err, "");
        std::fs::read(scratch.path(file)).unwrap()
    };
    for table in ["kinds", "intervals"] {
        for format in ["csv", "parquet"] {
            written(&format!("{format} --table {table}"), &format!("{table}.{format}"));
        }
    }
    let python = python_with(&["duckdb==2.0.0", "pandas==3.1.1", "pyarrow==26.0.1"]);
    let read = Command::new(python)
        .current_dir(scratch.path(""))
        .args(["-c", READ_TABLES, "own/map/result.json"])
        .output()
        .unwrap();
    let checked = String::from_utf8_lossy(&read.stdout);
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert!(checked.trim().parse::<u32>().unwrap() >= 3, "{checked}");

    is_metric_format(
        &serde_json::from_slice(&written("bencher --include-invalid", "bencher.json")).unwrap(),
    );
    let list = written("github-action-benchmark --include-invalid", "action.json");
    is_list_of_figures(&serde_json::from_slice(&list).unwrap());

    let result = std::fs::read(scratch.path("own/map/result.json")).unwrap();
    let result: Value = serde_json::from_slice(&result).unwrap();
    // A debug build's figures are not to be believed.
    if result["runs"][0]["verdict"]["level"] == "invalid" {
        let none = scratch.kvdyno("export own/map --as bencher -o none.json").expect(2).err;
        assert!(none.contains("--include-invalid"), "{none}");
        assert!(!scratch.path("none.json").exists());
    }

    for (words, told) in [
        ("--as parquet", "name a file"),
        ("--as csv --include-invalid", "every phase"),
        ("--as bencher --table intervals", "only for csv and parquet"),
        // A bare result has no files beside it, whatever lies there.
        ("--as parquet --table intervals -o x", "has no intervals"),
    ] {
        let ended = scratch.kvdyno(&format!("export own/days/3.json {words}"));
        ended.expect_line(64, &[told]);
    }
}
