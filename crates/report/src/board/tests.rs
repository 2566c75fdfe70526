//! Boards of made-up results: which are skipped, escaped, ranked or told as a step; and how long a thousand of them take.

use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use crate::result::{
    CostResult, FaultResult, Level, PricedServers, RunResult, Verdict, WriteAccount, rfc3339,
};
use crate::sample;

/// Makes up a result of a day, whose store has this name.
fn result(day: u64, store: &str) -> RunResult {
    let mut result = sample::two_stores();
    let began = sample::started() + Duration::from_secs(day * 86_400);
    result.started = rfc3339(began);
    result.runs.truncate(1);
    let run = &mut result.runs[0];
    store.clone_into(&mut run.store.name);
    run.ended = Some(rfc3339(began + Duration::from_secs(60)));
    result
}

fn save(folder: &Path, name: &str, result: &RunResult) {
    let to = folder.join(name);
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::write(to, serde_json::to_string(result).unwrap()).unwrap();
}

/// Makes a result a quarter slower from day 15 on; days differ a little among themselves.
fn slow_down(result: &mut RunResult, day: u64) {
    let slower = if day >= 15 { 1.25 } else { 1.0 } * (1.0 + 0.01 * (day % 3) as f64);
    for phase in &mut result.runs[0].phases {
        for series in &mut phase.series {
            series.rate = series.rate.map(|rate| rate / slower);
        }
        phase.wall_ns = (phase.wall_ns as f64 * slower) as u64;
    }
}

fn built(from: &Path, site: &Path) -> Board {
    let board = Board::read(&[from.to_owned()], site).unwrap();
    board.write(site).unwrap();
    board
}

fn page(site: &Path, name: &str) -> String {
    std::fs::read_to_string(site.join(name)).unwrap()
}

#[test]
fn what_is_broken_old_or_hostile_is_skipped_or_escaped_and_named() {
    let (from, site) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    save(from.path(), "good/result.json", &result(0, "<script>alert(1)</script>"));
    let mut hostile = result(1, "redis");
    hostile.suite.name = "../<img src=x>".to_owned();
    hostile.runs[0].store.url = "redis://\"onload=alert(1)".to_owned();
    hostile.runs[0].store.version = Some("</script><script>alert(2)".to_owned());
    save(from.path(), "hostile.json", &hostile);
    std::fs::write(from.path().join("broken.json"), "{\"schema_version\": 1, ").unwrap();
    std::fs::write(from.path().join("<b>old.json"), "{\"schema_version\": 99}").unwrap();
    let board = built(from.path(), site.path());
    assert_eq!((board.results(), board.skipped().len()), (2, 2));
    let index = page(site.path(), "index.html");
    assert!(index.contains("broken.json") && index.contains("result version 99"), "{index}");
    for entry in std::fs::read_dir(site.path()).unwrap().flatten() {
        if entry.path().is_dir() {
            continue;
        }
        let name = entry.file_name().into_string().unwrap();
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        assert!(name.chars().all(is_plain), "{name}");
        let text = page(site.path(), &name);
        for bad in ["<script>alert", "<img src=x", "<b>old", "\"onload="] {
            assert!(!text.contains(bad), "{name} has {bad}");
        }
    }
    let stores = index.matches("href=\"store-").count();
    assert!(stores == 2 && index.contains("&#60;script&#62;alert(1)"), "{index}");
}

#[test]
fn unequal_durability_or_scale_is_never_in_one_ranking_and_nothing_is_hidden() {
    let (from, site) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut all = [result(0, "a"), result(1, "b"), result(2, "c"), result(3, "d"), result(4, "e")];
    let other = kvdyno_core::store::Durability::None;
    assert_ne!(other, all[0].runs[0].store.durability.level);
    all[1].runs[0].store.durability.level = other;
    all[2].suite.scale = Some(0.1);
    all[3].runs[0].verdict = Some(Verdict::of(vec![crate::result::Reason {
        level: Level::Invalid,
        ..sample::reason(1.0, 0.5)
    }]));
    all[4].cost = Some(CostResult {
        currency: "EUR".to_owned(),
        hours_a_month: 730.0,
        servers: vec![PricedServers {
            kind: "one".to_owned(),
            count: 1,
            hourly: 0.5,
            ..PricedServers::default()
        }],
    });
    for (day, result) in all.iter().enumerate() {
        save(from.path(), &format!("{day}.json"), result);
    }
    built(from.path(), site.path());
    let suite = page(site.path(), &pages::suite_file(&all[0].suite.name));
    let rankings: Vec<&str> = suite.split("<section class=\"ranking\">").skip(1).collect();
    let having = |store: &str| {
        let mark = format!("data-store=\"{store}\"");
        let found: Vec<usize> =
            (0..rankings.len()).filter(|at| rankings[*at].contains(&mark)).collect();
        assert_eq!(found.len(), 1, "{store} is in {found:?}");
        found[0]
    };
    let [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map(having);
    assert!(a != b && a != c && b != c && a == d && a == e);
    assert!(rankings[c].contains("scaled ×0.1"));
    let rows: Vec<&str> = suite.lines().filter(|line| line.starts_with("<tr class=")).collect();
    let invalid: Vec<&&str> = rows.iter().filter(|row| row.contains("data-store=\"d\"")).collect();
    assert!(!invalid.is_empty());
    for row in invalid {
        assert!(row.contains("<tr class=\"invalid\"") && row.contains("<td>–</td><td><a"), "{row}");
    }
    for row in &rows {
        assert!(
            row.contains(" (") && row.contains("href=\"reports/"),
            "promises and a report: {row}"
        );
    }
    assert!(rows.iter().any(|row| row.contains("data-store=\"e\"") && row.contains(" EUR")));
    for link in suite.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(
            link.starts_with("data:") || site.path().join(link).is_file(),
            "{link} leads nowhere"
        );
    }
}

/// An entry of a run that was cut off shows the promise by the other results of the same store, version and setup, and of
/// no others; a result that refutes the promise is told, however many others have shown it.
#[test]
fn a_promise_says_which_result_shows_it() {
    let cut_off = |day, lost| {
        let mut result = result(day, "redis");
        let phase = &mut result.runs[0].phases[0];
        let power = FaultResult { what: "power".to_owned(), ..FaultResult::default() };
        let account = WriteAccount { acknowledged: 9, exact: true, lost, ..Default::default() };
        (phase.faults, phase.writes) = (vec![power], Some(account));
        result
    };
    let mut all = vec![result(0, "redis"), cut_off(1, 0), result(2, "redis")];
    all[2].runs[0].store.version = Some("another".to_owned());
    let rows = |all: &[RunResult]| {
        let (from, site) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (day, result) in all.iter().enumerate() {
            let mut result = result.clone();
            let power = kvdyno_core::store::Durability::PowerLoss;
            result.runs[0].store.durability = kvdyno_core::store::Promise::checked(power);
            save(from.path(), &format!("{day}.json"), &result);
        }
        built(from.path(), site.path());
        let store = page(site.path(), "store-redis.html");
        let rows = store.lines().filter(|line| line.starts_with("<tr class="));
        let of_day = |day: u64| {
            let when = rfc3339(sample::started() + Duration::from_secs(day * 86_400));
            let mut rows = rows.clone().filter(|row| row.contains(&when[..10]));
            rows.next().expect("a row of the day").to_owned()
        };
        [0, 1, 2].map(of_day)
    };
    let [before, own, other] = rows(&all);
    let figures = "1 cut of power, 0 of 9 acknowledged writes lost";
    assert!(own.contains(&format!("shown by this run: {figures}")), "{own}");
    assert!(!own.contains("another result"), "{own}");
    let link = before.split("href=\"reports/").nth(6).expect("a link of its own");
    assert!(link.contains(&format!("\">shown by another result: {figures}")), "{before}");
    assert!(own.contains(link.split('"').next().unwrap()), "the report of that day: {own}");
    assert!(other.contains("(setting read back)") && !other.contains("shown"), "{other}");
    all.push(cut_off(3, 2));
    let [before, own, _] = rows(&all);
    assert!(before.contains("refuted by another result: 1 cut of power, 2 of 9"), "{before}");
    assert!(own.contains("shown by this run"), "{own}");
}

#[test]
fn a_change_that_stays_is_on_the_first_page_and_a_suspect_one_proves_nothing() {
    let (from, site) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for day in 0..20 {
        let mut result = result(day, "redis");
        slow_down(&mut result, day);
        save(from.path(), &format!("{day}/result.json"), &result);
        if day >= 15 {
            result.runs[0].store.name = "doubtful".to_owned();
            result.runs[0].verdict = Some(Verdict::of(vec![sample::reason(1.0, 0.5)]));
        }
        result.runs[0].store.name = "doubtful".to_owned();
        result.runs[0].store.url = "redis://doubtful:1".to_owned();
        save(from.path(), &format!("doubtful-{day}/result.json"), &result);
    }
    built(from.path(), site.path());
    let index = page(site.path(), "index.html");
    assert!(index.contains("step-worse") && index.contains("throughput -"), "{index}");
    assert!(!index.contains(">doubtful</a>, "), "{index}");
    let store = page(site.path(), "store-redis.html");
    let day = rfc3339(sample::started() + Duration::from_secs(15 * 86_400));
    assert!(store.contains(&format!("since {}", &day[..10])), "where it is");
    let doubtful = page(site.path(), "store-doubtful.html");
    assert!(
        doubtful.contains("<tr class=\"suspect\">") && doubtful.matches("<tr class=").count() >= 20
    );
}

#[test]
fn a_thousand_results_are_built_soon_and_the_first_page_is_light() {
    let (from, site) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The time that it takes to make up a run is not measured.
    let stores = ["redis", "etcd", "lmdb", "valkey"].map(|store| result(0, store));
    for number in 0..1_000 {
        let mut result = stores[(number % 4) as usize].clone();
        result.started = rfc3339(sample::started() + Duration::from_secs(number / 4 * 86_400));
        result.seed = number;
        save(from.path(), &format!("{number}/result.json"), &result);
        std::fs::write(from.path().join(format!("{number}/report.html")), "its report").unwrap();
    }
    let began = Instant::now();
    let board = built(from.path(), site.path());
    let took = began.elapsed();
    println!("1,000 results in {took:?}");
    assert_eq!((board.results(), board.skipped().len()), (1_000, 0));
    assert!(page(site.path(), "index.html").len() < 1 << 20);
    // Ten seconds are promised for a machine that does nothing else.
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[test]
fn steps_are_a_feed_and_each_suite_and_store_has_a_badge() {
    let (from, site) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for day in 0..20 {
        let mut result = result(day, "redis");
        slow_down(&mut result, day);
        save(from.path(), &format!("{day}/result.json"), &result);
    }
    built(from.path(), site.path());
    let feed = page(site.path(), "feed.xml");
    assert!(
        feed.matches("<entry>").count() > 0 && feed.contains("<link href=\"store-redis.html\"/>"),
        "{feed}"
    );
    assert!(feed.contains("worse: throughput"), "{feed}");
    let again = tempfile::tempdir().unwrap();
    built(from.path(), again.path());
    assert_eq!(feed, page(again.path(), "feed.xml"), "equal boards have equal feeds");
    assert!(page(site.path(), "index.html").contains("href=\"feed.xml\""));
    let badge = std::fs::read_dir(site.path()).unwrap().flatten().map(|file| file.file_name());
    let badge =
        badge.map(|name| name.to_string_lossy().into_owned()).find(|name| name.ends_with(".svg"));
    let badge = page(site.path(), &badge.expect("a badge"));
    assert!(
        badge.starts_with("<svg ") && badge.contains("redis · ") && badge.contains("/s</text>"),
        "{badge}"
    );
}
