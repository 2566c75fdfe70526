//! Real servers that evict or are restarted under load: gets without a value are told everywhere, and count against
//! the measurement.

use crate::one_server::{MemcachedServer, MemcachedSettings, RedisServer, RedisSettings};
use kvdyno_testbed::Server;
use serde_json::Value;

use crate::support::{Ended, Scratch};

/// Command with about four times as many records as the servers below hold.
const TOO_MUCH: &str = "run --records 40k --value 400B --mix get=80,update=20 --clients 8 \
                        --requests 40k --set run.warmup=false --set run.read-back=false";

fn phase(result: &Value) -> &Value {
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["name"] == "run").expect("the phase run")
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

fn reason(result: &Value) -> Option<&Value> {
    let reasons = result["runs"][0]["verdict"]["reasons"].as_array().expect("reasons");
    reasons.iter().find(|reason| reason["name"] == "unexpected-misses")
}

/// Asserts that misses are told apart in the result and in all that is made of it.
#[track_caller]
fn assert_misses_everywhere(scratch: &Scratch, folder: &str, ended: &Ended) {
    let result = scratch.result(folder);
    let series = phase(&result)["series"].as_array().expect("series");
    let gets = series.iter().find(|series| series["kind"] == "get").expect("gets");
    let (missed, records) = (count(&gets["missed"]), count(&gets["records"]));
    assert!(missed > 0 && missed < records, "{gets}");
    assert_eq!(count(&gets["missed_service"]["count"]), missed);
    assert_eq!(count(&gets["service"]["count"]), records - missed);
    let rate = |name: &str| gets[name].as_f64().unwrap_or_else(|| panic!("{name}: {gets}"));
    assert!((rate("hit_rate") + rate("miss_rate") - rate("rate")).abs() < 1e-6 * rate("rate"));
    let (told, page) =
        (&ended.out, std::fs::read_to_string(scratch.path(folder).join("report.html")));
    let texts = [told.as_str(), &page.expect("the page")];
    assert!(texts.iter().all(|text| text.contains("get missed") && text.contains("Hit")), "{told}");
    let table = std::fs::read_to_string(scratch.path(folder).join("timeline.csv")).unwrap();
    let mut rows = table.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let columns = rows.next().expect("a heading");
    let at = |name: &str| columns.iter().position(|column| *column == name).expect("the column");
    let of_phase = rows.filter(|row| row[at("phase_name")] == "run");
    assert_eq!(of_phase.map(|row| row[at("missed")].parse::<u64>().unwrap()).sum::<u64>(), missed);
    let log = std::fs::read_to_string(scratch.path(folder).join("intervals.hlog")).unwrap();
    assert!(log.contains("/get/missed-service"));
}

/// Runs against a store that evicts. More than half of the expected hits are missing: the run is invalid, and valid
/// where that is expected.
fn a_store_that_evicts(url: &str) {
    let scratch = Scratch::new();
    let ended = scratch.kvdyno(&format!("{TOO_MUCH} --store {url} --out r")).expect(2);
    assert_misses_everywhere(&scratch, "r", &ended);
    let result = scratch.result("r");
    let misses = reason(&result).unwrap_or_else(|| panic!("no reason: {}", ended.out));
    assert_eq!(misses["level"], "invalid", "{misses}");
    let tally = &phase(&result)["tally"];
    assert!(count(&tally["unexpected_misses"]) > 0, "{tally}");
    assert_eq!((&tally["wrong_misses"], &tally["legal_misses"]), (&0.into(), &0.into()), "{tally}");
    assert_eq!(tally["anomalies"], serde_json::json!([0, 0, 0, 0, 0]));
    let line = format!("{TOO_MUCH} --set expect.hits=5% --data reuse --store {url} --out again");
    let again = scratch.kvdyno(&line);
    let result = scratch.result("again");
    assert_eq!(reason(&result), None, "{}", again.out);
    assert!(phase(&result)["series"].to_string().contains("missed_service"), "{}", again.out);
}

#[test]
fn a_redis_that_evicts_gives_no_valid_figures_of_gets() {
    let max_memory = Some((6 << 20, "allkeys-lru".to_owned()));
    let server = RedisServer::start(RedisSettings { max_memory, ..Default::default() }).unwrap();
    a_store_that_evicts(&server.url());
}

#[test]
fn a_memcached_that_evicts_gives_no_valid_figures_of_gets() {
    let settings = MemcachedSettings { memory: 4, ..Default::default() };
    let server = MemcachedServer::start(settings).unwrap();
    a_store_that_evicts(&server.url());
}

/// Loads `url`, and restarts its server under load. Returns the result with the output.
fn started_anew(server: &mut Server, url: &str, code: i32) -> (Value, Ended) {
    let scratch = Scratch::new();
    let line = format!(
        "run --records 20k --mix get=95,update=5 --clients 2 --duration 4s --out r --store {url} \
         --set run.warmup=false --set run.read-back=false"
    );
    let mut running = scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>());
    let log = scratch.path("r/timeline.csv");
    running.until("intervals of the phase `run`", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains(",run,")
    });
    server.kill9().unwrap();
    server.restart().unwrap();
    let ended = running.wait().expect(code);
    assert_misses_everywhere(&scratch, "r", &ended);
    (scratch.result("r"), ended)
}

/// Asserts that the misses are explained by a restart: values in memory only are gone, so gets find little from then
/// on, whatever the store promises.
#[track_caller]
fn explains_the_misses(result: &Value, ended: &Ended, promised: bool) {
    let figures = phase(result)["figures"].as_array().expect("figures");
    let anew = figures.iter().find(|figure| figure["name"] == "servers started anew");
    let anew = anew.unwrap_or_else(|| panic!("the restart was not seen: {figures:?}"));
    assert_eq!(anew["value"], 1.0);
    let row = |line: &str| line.contains("servers started anew") && line.contains(" 1.00 ");
    assert!(ended.out.lines().any(row), "{}", ended.out);
    let misses = reason(result).unwrap_or_else(|| panic!("no reason: {}", ended.out));
    let text = misses["text"].as_str().expect("a text");
    assert!(text.contains("; started anew meanwhile: ") && text.contains(", up for "), "{text}");
    let tally = &phase(result)["tally"];
    let of = if promised { "wrong_misses" } else { "unexpected_misses" };
    assert!(count(&tally[of]) > 0, "{tally}");
}

#[test]
fn a_memcached_that_was_started_anew_is_seen_to_be() {
    let mut server = MemcachedServer::start(MemcachedSettings::default()).unwrap();
    let url = server.url();
    let (result, ended) = started_anew(&mut server, &url, 2);
    explains_the_misses(&result, &ended, false);
}

/// A server that promised to keep what it acknowledged is wrong besides.
#[test]
fn a_redis_that_was_started_anew_is_seen_to_be() {
    let mut server = RedisServer::start(RedisSettings::default()).unwrap();
    let url = server.url();
    let (result, ended) = started_anew(&mut server, &url, 1);
    explains_the_misses(&result, &ended, true);
}
