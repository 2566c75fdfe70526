//! The duration of a phase as it is told: the time that was asked for, and rates by that.

use serde_json::Value;

use crate::support::{Ended, Scratch};

/// Returns the phase `run` of a result.
fn phase(scratch: &Scratch, folder: &str) -> Value {
    let result = scratch.result(folder);
    let phases = result["runs"][0]["phases"].as_array().expect("phases").clone();
    phases.into_iter().find(|phase| phase["name"] == "run").expect("the phase")
}

/// Returns begin and length of each interval of the phase `run`, s since the phase began.
fn intervals(scratch: &Scratch, folder: &str) -> Vec<(f64, f64)> {
    let path = scratch.path(folder).join("timeline.csv");
    let text = std::fs::read_to_string(path).expect("a timeline");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("names");
    let of = |name: &str| names.iter().position(|known| *known == name).expect("a column");
    let [name, start, length] = ["phase_name", "start_s", "length_s"].map(of);
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let rows = lines.filter(|row| row[name] == "run");
    let mut all: Vec<_> = rows.map(|row| (number(row[start]), number(row[length]))).collect();
    all.dedup();
    let began = all[0].0;
    all.iter_mut().for_each(|interval| interval.0 -= began);
    all
}

/// Returns true if the intervals follow each other from the begin to the end of a phase of `seconds`.
fn covers(intervals: &[(f64, f64)], seconds: f64) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    let follow = intervals.windows(2).all(|pair| near(pair[0].0 + pair[0].1, pair[1].0));
    let (from, length) = intervals[intervals.len() - 1];
    follow && from < seconds && near(from + length, seconds)
}

#[test]
fn a_phase_is_as_long_as_was_asked_for_and_so_is_its_rate() {
    // Arrival, seconds, requests, and how rate and time are printed.
    let cases = [
        ("--rate 1/s --duration 3s", 3.0, 3, "1.00", "3,000"),
        ("--rate 0.5/s --duration 10s", 10.0, 5, "0.500", "10,000"),
        ("--rate 2/s --requests 6", 3.0, 6, "2.00", "3,000"),
        ("--rate 4/s --duration 2500ms", 2.5, 10, "4.00", "2,500"),
    ];
    let scratch = Scratch::new();
    let start = |(number, case): (usize, &(&str, f64, u64, &str, &str))| {
        let line = format!(
            "run --store map: --records 100 --clients 2 --set run.warmup=0s {} --out r{number}",
            case.0
        );
        scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>())
    };
    let running: Vec<_> = cases.iter().enumerate().map(start).collect();
    let ended: Vec<Ended> = running.into_iter().map(|running| running.wait()).collect();
    for (number, (case, ended)) in cases.iter().zip(&ended).enumerate() {
        let (asked, seconds, requests, rate, millis) = *case;
        // So few samples are suspect, and a busy machine sends late.
        assert!([0, 2].contains(&ended.code()), "{ended:#?}");
        let run = phase(&scratch, &format!("r{number}"));
        assert_eq!(run["wall_ns"].as_f64(), Some(seconds * 1e9), "{asked}");
        assert_eq!(run["offered"], requests, "{asked}");
        assert_eq!(run["series"][0]["ok"], requests, "{asked}");
        let told = run["series"][0]["rate"].as_f64().expect("a rate");
        assert!((told - requests as f64 / seconds).abs() < 1e-9, "{asked}: {told}");
        let row = ended.out.lines().find(|line| line.contains(millis)).unwrap_or_default();
        assert!(row.split_whitespace().any(|cell| cell == rate), "{asked}: {}", ended.out);
        let intervals = intervals(&scratch, &format!("r{number}"));
        assert!(covers(&intervals, seconds), "{asked}: {intervals:?}");
    }
}

#[test]
fn a_closed_phase_ends_at_its_deadline_too() {
    let scratch = Scratch::new();
    let line = "run --store map: --records 100 --clients 2 --set run.warmup=0s --duration 1300ms";
    scratch.kvdyno(&format!("{line} --out r")).expect_done();
    let run = phase(&scratch, "r");
    assert_eq!((&run["wall_ns"], &run["stopped"]), (&1_300_000_000_u64.into(), &"duration".into()));
    assert!(covers(&intervals(&scratch, "r"), 1.3));
    let (ok, drained) = (run["series"][0]["ok"].as_u64(), run["series"][0]["drained"].as_u64());
    let in_time = ok.zip(drained).map(|(ok, drained)| (ok - drained) as f64 / 1.3);
    assert_eq!(run["series"][0]["rate"].as_f64().map(f64::round), in_time.map(f64::round));
}
