//! Gets that missed are shown apart in every form of a result, and improve no figure of the others.

use crate::cell::LatencyUnit;
use crate::compare::Samples;
use crate::lines::report_lines;
use crate::objective::met;
use crate::result::{Latency, PhaseResult, RunResult, SeriesResult};
use crate::terminal::{self, Style};
use crate::view::{Clock, PhaseView, phase_latency, rows};
use crate::{html, markdown, sample};
use kvdyno_core::measure::latency_histogram;
use kvdyno_core::verdict::Condition;
use kvdyno_core::workload::Kind;

/// Phase with a mix of gets and updates, a quarter of whose gets missed.
const MIXED: usize = 1;

fn missed() -> RunResult {
    let mut result = sample::two_stores();
    sample::with_misses(&mut result, MIXED);
    result
}

fn gets(phase: &PhaseResult) -> &SeriesResult {
    phase.series.iter().find(|series| series.kind == Kind::Get).unwrap()
}

fn row(phase: &PhaseResult, test: &str) -> Option<PhaseView> {
    rows(phase, false).unwrap().into_iter().find(|row| row.test.trim() == test)
}

#[test]
fn rates_and_latencies_are_of_hits_and_misses_have_a_row_of_their_own() {
    let (before, after) = (sample::two_stores(), missed());
    let (before, phase) = (&before.runs[0].phases[MIXED], &after.runs[0].phases[MIXED]);
    assert_eq!(phase.found(), before.ok());
    assert!(phase.ok() > phase.found());
    let (hits, misses) = phase.hits_and_misses();
    assert_eq!((hits, misses), (gets(before).ok, gets(phase).missed));
    for test in [&phase.label, "get", "update"] {
        let (before, after) = (row(before, test).unwrap(), row(phase, test).unwrap());
        assert_eq!((before.rate, before.latency), (after.rate, after.latency), "{test}");
    }
    assert_eq!(row(before, "get missed"), None);
    let missed = row(phase, "get missed").unwrap();
    assert_eq!(missed.latency.max, Some(sample::MISS as f64));
    let seconds = phase.wall_ns as f64 / 1e9;
    assert!((missed.rate.unwrap() - misses as f64 / seconds).abs() < 1e-9);
    assert_eq!(
        gets(phase).hit_rate.zip(gets(phase).miss_rate),
        Some((hits as f64 / seconds, misses as f64 / seconds))
    );
    let ratio = hits as f64 / (hits + misses) as f64;
    assert_eq!(row(phase, "get").unwrap().hit_ratio, Some(ratio));
    assert_eq!(row(phase, "update").unwrap().hit_ratio, None);
}

#[test]
fn the_hit_ratio_is_a_column_wherever_there_was_a_miss_and_nowhere_else() {
    for (result, there) in [(sample::two_stores(), false), (missed(), true)] {
        let folder = tempfile::tempdir().unwrap();
        let page = html::report(&result, folder.path()).unwrap();
        let shown = [
            (terminal::render(&result, Style::PLAIN).unwrap(), " Hit\n"),
            (markdown::render(&result).unwrap(), "| ValSeed | Hit |"),
            (page, ">Hit</th>"),
        ];
        for (text, heading) in shown {
            assert_eq!(text.contains(heading), there, "{heading}: {text}");
            assert_eq!(text.contains("get missed"), there, "{text}");
            assert!(!there || text.contains("75.0"), "{text}");
        }
    }
    let (plain, with) = (report_lines(false), report_lines(true));
    assert_eq!((plain.len(), with.len(), with[13].label), (13, 14, "Hit"));
    let told = |ratio| with[13].value_cell(ratio, LatencyUnit::Micros).text();
    assert_eq!((told(1.0), told(0.99999)), ("100.00%".to_owned(), "99.99%".to_owned()));
}

#[test]
fn conditions_are_about_hits_unless_misses_are_asked_for() {
    let result = missed();
    let phase = &result.runs[0].phases[MIXED];
    let holds = |text: &str| {
        let found = met(&Condition::parse_list(text).unwrap(), phase, false);
        (found.why.is_empty(), found.why)
    };
    let (misses, hits) = (gets(phase).missed as f64, gets(phase).found() as f64);
    let seconds = phase.wall_ns as f64 / 1e9;
    let rate = |count: f64| format!("{:.0}/s", count / seconds);
    for (text, expected) in [
        ("p50(get) < 100ns".to_owned(), false),
        ("p50(hits) < 100ns".to_owned(), false),
        ("max(misses) < 100ns".to_owned(), true),
        ("p1(hits-and-misses) < 100ns".to_owned(), true),
        ("p1 < 100ns".to_owned(), false),
        ("hit_ratio(get) >= 74%, hit_ratio < 76%".to_owned(), true),
        (format!("rate(get) <= {}", rate(hits + 1.0 * seconds)), true),
        (format!("rate(hits-and-misses) > {}", rate(hits + misses / 2.0)), true),
        (format!("rate(misses) < {}", rate(misses * 2.0)), true),
        ("hit_ratio(update) > 0%".to_owned(), false),
    ] {
        assert_eq!(holds(&text).0, expected, "{text}: {}", holds(&text).1);
    }
}

/// In a phase that reads deleted records on purpose, the misses are shown.
#[test]
fn a_phase_of_nothing_but_misses_shows_them() {
    let mut result = sample::two_stores();
    let phase = &mut result.runs[0].phases[MIXED];
    phase.series.retain(|series| series.kind == Kind::Get);
    let series = &mut phase.series[0];
    series.missed = series.records;
    series.missed_service = series.service.take();
    let (phase, all) = (&result.runs[0].phases[MIXED], gets(&result.runs[0].phases[MIXED]).ok);
    assert!(phase.only_misses());
    let shown = row(phase, &phase.label).unwrap();
    assert_eq!(shown.hit_ratio, Some(0.0));
    assert_eq!(phase_latency(phase, Clock::Service).unwrap().map(|l| l.count), Some(all));
    assert!((shown.rate.unwrap() - all as f64 * 1e9 / phase.wall_ns as f64).abs() < 1e-6);
    let asked = met(&Condition::parse_list("p99(get) < 1h").unwrap(), phase, false);
    assert!(asked.why.contains("no get found a record; `(misses)` asks for"), "{}", asked.why);
}

/// Comparisons use hits, with intervals or without.
#[test]
fn comparisons_are_of_hits() {
    let folder = tempfile::tempdir().unwrap();
    let result = missed();
    let phase = &result.runs[0].phases[MIXED];
    let slots = Samples::read(folder.path(), &result).unwrap().phase(0, phase.index);
    let slots = slots.of(|kind| kind == Kind::Get);
    assert_eq!(slots.iter().map(|slot| slot.ok).sum::<u64>(), gets(phase).found());
    let shortest = slots.iter().flat_map(|slot| &slot.latencies).map(|cell| cell.0).min();
    assert!(shortest.unwrap() > sample::MISS, "{shortest:?}");
}

/// A broken histogram is found when a result is read, also one of misses.
#[test]
fn broken_histograms_of_misses_are_found() {
    let mut result = missed();
    let text = |result: &RunResult| serde_json::to_vec(result).unwrap();
    let parse = |bytes: &[u8]| RunResult::parse(bytes, std::path::Path::new("r/result.json"));
    assert_eq!(parse(&text(&result)).unwrap(), result);
    let series = result.runs[0].phases[MIXED].series.iter_mut();
    let mut missed: Vec<&mut Latency> =
        series.filter_map(|series| series.missed_service.as_mut()).collect();
    missed[0].histogram.truncate(40);
    assert!(parse(&text(&result)).is_err());
    assert_eq!(latency_histogram::<u64>().len(), 0);
}
