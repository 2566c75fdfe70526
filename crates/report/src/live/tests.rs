//! Tests of the messages to viewers of a run while it lasts.

use super::*;
use crate::sample;

fn live_after(events: &[Event]) -> (LiveRun, Vec<serde_json::Value>) {
    let mut live = LiveRun::default();
    let messages = events.iter().filter_map(|event| {
        let change = live.on_event(event);
        live.message(change)
    });
    let messages = messages.map(|text| serde_json::from_str(&text).unwrap()).collect();
    (live, messages)
}

#[test]
fn who_comes_before_the_run_begins_waits_for_it() {
    let page = LiveRun::default().page().unwrap();
    assert!(page.contains("has not begun") && page.contains("http-equiv=\"refresh\""));
    assert_eq!(LiveRun::steered().page().unwrap(), page);
}

/// Later messages begin where that one ends.
#[test]
fn who_comes_late_is_told_all_that_nobody_saw() {
    let events = sample::events();
    let mut live = LiveRun::default();
    for (at, event) in events.iter().enumerate() {
        let change = live.on_event(event);
        if at < events.len() / 2 {
            live.pass_over();
        } else {
            live.message(change);
        }
    }
    let (seen, _) = live_after(&events);
    assert_eq!(live.snapshot(), seen.snapshot());
}

fn now(live: &mut LiveRun) -> serde_json::Value {
    let text = live.message(Change::Now).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap()["now"].clone()
}

/// Waiting operations have no latency yet, and few operations give no percentile.
#[test]
fn figures_of_the_strip_are_lower_bounds_beside_a_backlog_and_no_percentiles_of_few() {
    let mut events = sample::events();
    let open = |event: &Event| {
        matches!(event, Event::Interval(interval) if interval.backlog > 0
            && interval.series.iter().any(|(_, measure)| measure.response.is_some()))
    };
    let at = events.iter().position(open).expect("a backlog");
    events.truncate(at + 1);
    let (mut live, _) = live_after(&events);
    let rows = now(&mut live)["rows"].as_array().unwrap().clone();
    assert!(rows.iter().all(|row| row["at_least"] == (row["clock"] == "response")), "{rows:#?}");
    let Some(Event::Interval(mut interval)) = events.pop() else { unreachable!() };
    let (_, measure) = &mut interval.series[0];
    let mut few = kvdyno_core::measure::latency_histogram::<u32>();
    few.record(5_000_000).unwrap();
    (measure.service, interval.backlog) = (Some(few), 0);
    interval.series.truncate(1);
    let (mut live, _) = live_after(&events);
    live.on_event(&Event::Interval(interval));
    let rows = now(&mut live)["rows"].as_array().unwrap().clone();
    let row = rows.iter().find(|r| r["scope"] == "last second" && r["clock"] == "service").unwrap();
    let latency = row["latency"].as_array().unwrap();
    assert!(latency[..4].iter().all(serde_json::Value::is_null) && latency[4].is_f64(), "{row}");
    assert!(rows.iter().all(|row| row["at_least"] == false), "{rows:#?}");
}

#[test]
fn faults_are_told_with_the_phase_that_they_were_of() {
    let (mut live, _) = live_after(&sample::events());
    let first = live.phases[0].plan().name.clone();
    live.phases.truncate(1);
    live.on_event(&Event::FaultBegan { what: "kill".to_owned(), at_ns: 1_500_000_000 });
    let mut next = sample::events().into_iter().filter(|e| matches!(e, Event::PhaseBegan(_)));
    live.on_event(&next.nth(1).unwrap());
    let faults = now(&mut live)["faults"].to_string();
    assert!(faults.contains(&format!("kill, 1.5 s into {first}")), "{faults}");
}

#[test]
fn of_two_faults_of_a_kind_the_one_that_is_done_ends() {
    let (mut live, _) = live_after(&sample::events());
    live.phases.truncate(1);
    let began = |at_ns| Event::FaultBegan { what: "pause".to_owned(), at_ns };
    let done = |node: &str, began_ns| {
        let (what, node, ended_ns) = ("pause".to_owned(), node.to_owned(), began_ns + 1_000);
        Event::FaultDone(Box::new(FaultResult {
            what,
            node,
            began_ns,
            ended_ns,
            ..FaultResult::default()
        }))
    };
    let (first, second) = (71_000_000_000, 72_000_000_000);
    for event in [began(first), began(second), done("n-1", first), done("n-2", first)] {
        live.on_event(&event);
    }
    let open: Vec<f64> =
        live.phases[0].all_marks().iter().filter(|m| m.end.is_none()).map(|m| m.begin).collect();
    assert_eq!(open, [72.0]);
    live.on_event(&done("n-1", second));
    assert!(live.phases[0].all_marks().iter().all(|mark| mark.end.is_some()));
}

/// Viewers would believe a green VALID beside a backlog.
#[test]
fn a_store_that_is_measured_is_not_called_valid() {
    let mut live = LiveRun::default();
    let mut checked = 0;
    for event in sample::events() {
        live.on_event(&event);
        if let (Event::PhaseEnded(_), Some(result)) = (&event, live.fold.result()) {
            let over = result.runs.last().unwrap().phases.len();
            let verdict = Verdict::of(Vec::new());
            live.on_event(&Event::JudgedSoFar { verdict, claims: Vec::new() });
            let page = live.page().unwrap();
            let phases = if over == 1 {
                "1 phase that is".into()
            } else {
                format!("{over} phases that are")
            };
            assert!(page.contains(&format!("nothing against {phases} over")), "{page}");
            checked += 1;
        }
    }
    assert!(checked > 0);
}

#[test]
fn of_several_trials_the_page_says_which_one_it_shows() {
    let Some(Event::RunBegan(mut began)) = sample::events().into_iter().next() else { panic!() };
    began.result.trial = Some(crate::result::TrialNumber { number: 2, of: 3 });
    let (mut live, _) = live_after(&[Event::RunBegan(began)]);
    let activity = now(&mut live)["activity"].to_string();
    assert!(activity.contains("trial 2 of 3"), "{activity}");
}

#[test]
fn a_run_that_is_over_has_the_charts_of_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let result = sample::written(folder.path());
    let (live, _) = live_after(&sample::events());
    let report = crate::html::charts_json(&result, folder.path()).unwrap();
    let now: serde_json::Value = serde_json::from_str(&live.snapshot()).unwrap();
    let phases = |charts: &serde_json::Value| charts["phases"].as_array().unwrap().clone();
    assert_eq!(now["charts"]["stores"], report["stores"]);
    for (live, report) in phases(&now["charts"]).iter().zip(phases(&report)) {
        assert_eq!(live["title"], report["title"]);
        for (live, report) in
            live["runs"].as_array().unwrap().iter().zip(report["runs"].as_array().unwrap())
        {
            for figure in [
                "rate",
                "start",
                "length",
                "backlog",
                "due",
                "latest_send",
                "errors",
                "wrong",
                "kinds",
                "heat",
                "marks",
            ] {
                assert_eq!(live[figure], report[figure], "{figure}");
            }
            assert_eq!(live["service_curve"], report["service_curve"]);
        }
    }
}

#[test]
fn a_stretch_has_the_points_that_overlap_it_live_and_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let result = sample::written(folder.path());
    let (live, _) = live_after(&sample::events());
    let whole = crate::html::charts_json(&result, folder.path()).unwrap();
    let starts: Vec<f64> =
        serde_json::from_value(whole["phases"][1]["runs"][0]["start"].clone()).unwrap();
    assert!(starts.len() > 3, "{starts:?}");
    let query = format!("phase=1&from={}&to={}", starts[1] + 0.001, starts[3]);
    let asked = Zoom::asked(&query).unwrap();
    let disk = stretch_of_folder(&result, folder.path(), &asked).unwrap();
    for text in [live.stretch(&asked), disk] {
        let runs: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(runs.len(), 2, "of both stores");
        assert_eq!(runs[0]["start"], serde_json::json!(starts[1..3]));
        let whole = &whole["phases"][1]["runs"][0]["kinds"][0];
        for figure in ["rate", "failed"] {
            let all = whole[figure].as_array().unwrap();
            assert_eq!(runs[0]["kinds"][0][figure], serde_json::json!(all[1..3]), "{figure}");
        }
        let p99s = whole["service"]["p99"].as_array().unwrap();
        assert_eq!(runs[0]["kinds"][0]["service"]["p99"], serde_json::json!(p99s[1..3]));
    }
}

#[test]
fn an_address_that_asks_for_no_stretch_is_none() {
    let asked = |query| Zoom::asked(query);
    assert_eq!(asked("phase=2&from=1.5&to=9"), Some(Zoom { phase: 2, of_phase: 1.5..9.0 }));
    assert_eq!(asked("to=9&phase=2&from=1.5&more"), asked("phase=2&from=1.5&to=9"));
    for query in
        ["", "phase=2", "phase=-1&from=1&to=2", "phase=2&from=x&to=9", "phases=2&from=1&to=9"]
    {
        assert_eq!(asked(query), None, "{query}");
    }
    let (live, nobody) = (LiveRun::default(), asked("phase=9&from=NaN&to=inf").unwrap());
    assert_eq!(live.stretch(&nobody), "[]");
    let folder = tempfile::tempdir().unwrap();
    let result = sample::written(folder.path());
    assert_eq!(stretch_of_folder(&result, folder.path(), &nobody).unwrap(), "[]");
    let backwards = asked("phase=1&from=9&to=NaN").unwrap();
    assert!(!stretch_of_folder(&result, folder.path(), &backwards).unwrap().is_empty());
    assert!(!live_after(&sample::events()).0.stretch(&backwards).is_empty());
}

#[test]
fn who_takes_in_every_message_has_the_charts_of_one_who_comes_later() {
    let events = sample::events();
    let half = events.len() / 2;
    let (live, messages) = live_after(&events[..half]);
    let mut charts = serde_json::Value::Null;
    for message in &messages {
        if let Some(all) = message.get("charts") {
            charts = all.clone();
        }
        if let Some(points) = message.get("points") {
            take_in(&mut charts, points);
        }
    }
    let late: serde_json::Value = serde_json::from_str(&live.snapshot()).unwrap();
    assert!(messages.iter().filter(|message| message.get("points").is_some()).count() > 10);
    assert_eq!(charts, late["charts"]);
}

/// Adds points to charts in the same way as `live.js`.
fn take_in(charts: &mut serde_json::Value, points: &serde_json::Value) {
    let number = |name: &str| points[name].as_u64().unwrap() as usize;
    let run = &mut charts["phases"][number("phase")]["runs"][number("run")];
    let used: Vec<usize> = serde_json::from_value(points["used_from"].clone()).unwrap();
    extend(run, &points["charts"], number("from"), &used);
}

fn extend(old: &mut serde_json::Value, new: &serde_json::Value, from: usize, used: &[usize]) {
    use serde_json::Value;
    let Value::Object(new) = new else { return };
    for (name, value) in new {
        match (&mut old[name], value) {
            (Value::Array(all), Value::Array(more))
                if ["kinds", "processes", "errors", "wrong"].contains(&name.as_str()) =>
            {
                assert_eq!(all.len(), more.len(), "a line more is told by all charts");
                for (number, (old, new)) in all.iter_mut().zip(more).enumerate() {
                    let from = if name == "processes" { used[number] } else { from };
                    extend(old, new, from, used);
                }
            }
            (Value::Array(all), Value::Array(more)) if name != "marks" => {
                all.truncate(from);
                all.extend(more.iter().cloned());
            }
            (old @ Value::Object(_), Value::Object(_)) if !name.ends_with("_curve") => {
                extend(old, value, from, used);
            }
            (old, value) => *old = value.clone(),
        }
    }
}

#[test]
fn the_page_of_a_run_that_goes_on_is_the_report_s_and_says_so() {
    let events = sample::events();
    let (live, _) = live_after(&events[..events.len() - 2]);
    assert!(!live.is_over());
    let page = live.page().unwrap();
    assert!(page.contains("id=\"live\"") && page.contains("connect-src 'self'"));
    assert!(page.contains("figures-table") && page.contains("the run goes on"));
    let (live, _) = live_after(&events);
    assert!(live.is_over());
    assert!(!live.page().unwrap().contains("the run goes on"));
}

/// The largest figures of the page are those of the last second; errors are those of the phase, wrong reads those of the run.
#[test]
fn the_headline_tells_the_last_second_and_what_went_wrong() {
    let mut events = sample::events();
    let failed = |event: &Event| matches!(event, Event::Interval(one) if one.failed > 0);
    let at = events.iter().position(failed).expect("an interval with errors");
    events.truncate(at + 1);
    let Some(Event::Interval(last)) = events.last().cloned() else { unreachable!() };
    let (mut live, _) = live_after(&events);
    let told = now(&mut live);
    let head = &told["head"];
    let ok: u64 = last.series.iter().map(|(_, measure)| measure.ok - measure.drained.ok).sum();
    let rate = ok as f64 / (last.length() as f64 / 1e9);
    assert!((head["rate"].as_f64().unwrap() - rate).abs() < 1e-6, "{head}");
    assert_eq!(head["errors_now"], last.failed);
    let of_phase: u64 = live.phases.last().unwrap().troubles.errors.iter().map(|(_, n)| n).sum();
    assert_eq!(head["errors"], of_phase);
    assert!(head["latency"].is_array() && head["slo"].is_null(), "{head}");
    let running = told["steps"].as_array().unwrap().iter().find(|s| s["state"] == "now").unwrap();
    assert!(running["charts"].is_u64(), "{running}");
}
