//! Conditions as people write them, their meaning, and the answers to mistakes.

use super::*;

fn read(text: &str) -> Condition {
    Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

#[test]
fn conditions_are_read_and_written_alike() {
    let cases = [
        ("acked_lost == 0", "acked_lost == 0"),
        ("unavailable<5s", "unavailable < 5s"),
        ("p99(get) < 10ms", "p99(get) < 10ms"),
        (
            " p99.90 ( read-modify-write )in read@8>=1.5ms ",
            "p99.9(read-modify-write) in read@8 >= 1.5ms",
        ),
        ("errors = 0", "errors == 0"),
        ("error-ratio <= 0.1%", "error_ratio <= 0.1%"),
        ("rate in run:warm-up > 50k/s", "rate in run:warm-up > 50k/s"),
        ("rate > 1234.5", "rate > 1234.5/s"),
        ("rate < -5%", "rate < -5%"),
        ("p99(get) < +0.2ms", "p99(get) < +200us"),
        ("rate > -5k/s", "rate > -5k/s"),
        ("p99 > +10%", "p99 > +10%"),
        ("recovers to 95% within 10s", "recovers to 95% within 10s"),
        ("recovers(writes) in killed to 0.9 < 500ms", "recovers(writes) in killed to 90% < 500ms"),
        (
            "figure(records on the fullest server, over the mean) < 1.1",
            "figure(records on the fullest server, over the mean) < 1.1",
        ),
        ("figure(hit ratio) >= 80%", "figure(hit ratio) >= 0.8"),
        ("unavailable(reads) != 0s", "unavailable(reads) != 0s"),
    ];
    for (text, written) in cases {
        let condition = read(text);
        assert_eq!(condition.to_string(), written);
        assert_eq!(read(written), condition, "{written}");
        let json = serde_json::to_string(&condition).unwrap();
        assert_eq!(serde_json::from_str::<Condition>(&json).unwrap(), condition);
    }
}

#[test]
fn a_list_is_separated_by_commas() {
    let text = "p99(get)<10ms, figure(a, b) < 2,errors==0";
    let all = Condition::parse_list(text).unwrap();
    let written: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(written, ["p99(get) < 10ms", "figure(a, b) < 2", "errors == 0"]);
    assert!(Condition::parse(text).is_err(), "one condition is not three");
}

#[test]
fn mistakes_are_told_with_place_and_advice() {
    let cases = [
        ("", 0, "a figure is missing here"),
        ("acked_lots == 0", 0, "did you mean `acked_lost`?"),
        ("p100 < 1ms", 0, "`p100` is not a figure"),
        ("p99(gett) < 10ms", 4, "did you mean `get`?"),
        ("p99(get < 10ms", 3, "not closed"),
        ("p99(get) 10ms", 9, "write < <= > >= == or !="),
        ("p99(get) < 10", 11, "it lacks a unit"),
        ("p99(get) < 10 sec", 11, "did you mean `10s`?"),
        ("rate > 5k/fortnight", 7, "unknown unit"),
        ("errors == 0.5", 10, "not a whole number"),
        ("errors < +3", 9, "per cent"),
        ("error_ratio < 120%", 14, "not between 0 and 100 %"),
        ("acked_lost(get) == 0", 11, "one figure for all operations"),
        ("unavailable in < 5s", 15, "lacks the name of a phase"),
        ("recovers within 10s", 9, "recovers to 95% within 10s"),
        ("recovers to 95% in 10s", 16, "neither `within` nor an operator"),
        ("recovers to 950% within 10s", 12, "not between 0 and 100 %"),
        ("figure > 3", 0, "lacks the name"),
        ("errors == 0,", 12, "a figure is missing here"),
        ("ärger < 3", 0, "a figure is missing here"),
    ];
    for (text, start, part) in cases {
        let error = Condition::parse_list(text).expect_err(text);
        assert_eq!(error.start, start, "{text}: {error:?}");
        assert!(error.end >= error.start && error.end <= text.len(), "{text}: {error:?}");
        assert!(error.line().contains(part), "{text}: {}", error.line());
    }
    assert!(Condition::parse_list(&"p99<1s,".repeat(2_000)).is_err());
}

#[test]
fn every_known_figure_is_found_by_its_name() {
    for known in FIGURES {
        let figure = ConditionFigure::of_name(known.name).unwrap();
        assert_eq!(figure.name(), known.name);
        assert_eq!(figure.dimension(), known.dimension);
        assert_eq!(figure.lower_is_better(), Some(known.lower_is_better));
    }
    assert_eq!(ConditionFigure::of_name("p99.99"), Some(ConditionFigure::Percentile(99_990)));
    assert_eq!(ConditionFigure::of_name("p50").unwrap().name(), "p50");
    for wrong in ["p", "p0", "p100", "p99.", "p9a", "p99.9999", "p+9", "px"] {
        assert_eq!(ConditionFigure::of_name(wrong), None, "{wrong}");
    }
}

#[test]
fn a_lower_bound_decides_only_what_it_can() {
    let holds = |text: &str, measured| read(text).holds(measured);
    let (three, least_three) = (Measured::Exactly(3.0), Measured::AtLeast(3.0));
    for (text, exactly, at_least) in [
        ("errors < 3", Some(false), Some(false)),
        ("errors < 4", Some(true), None),
        ("errors <= 3", Some(true), None),
        ("errors <= 2", Some(false), Some(false)),
        ("errors > 2", Some(true), Some(true)),
        ("errors > 3", Some(false), None),
        ("errors >= 3", Some(true), Some(true)),
        ("errors == 3", Some(true), None),
        ("errors == 2", Some(false), Some(false)),
        ("errors != 2", Some(true), Some(true)),
        ("errors != 3", Some(false), None),
        ("errors < +3%", None, None),
    ] {
        assert_eq!(holds(text, three), exactly, "{text}");
        assert_eq!(holds(text, least_three), at_least, "{text}");
    }
    let never = Measured::Exactly(f64::INFINITY);
    assert_eq!(holds("p99 < 10ms", never), Some(false), "what failed took for ever");
}

#[test]
fn gets_are_hits_unless_misses_are_asked_for() {
    let of = |text: &str| Condition::parse(text).unwrap().subject.operations;
    let asked = [
        ("p99(get) < 1ms", true, false),
        ("p99 < 1ms", true, false),
        ("p99(hits) < 1ms", true, false),
        ("p99(misses) < 1ms", false, true),
        ("rate(hits-and-misses) > 1k/s", true, true),
    ];
    for (text, hits, misses) in asked {
        let operations = of(text);
        assert_eq!(
            (operations.include_hits(), operations.include_misses()),
            (hits, misses),
            "{text}"
        );
        assert_eq!(Condition::parse(text).unwrap().to_string(), text, "it comes back");
    }
    assert!(of("p99(misses) < 1ms").include(Kind::GetBatch));
    assert!(!of("p99(misses) < 1ms").include(Kind::GetAbsent), "those are meant to find nothing");
    assert!(Condition::parse("hit_ratio(get) > 99%").is_ok());
}

#[test]
fn operations_are_included_by_what_they_do() {
    let by_what = [
        ("rate > 1/s", true, true),
        ("rate(reads) > 1/s", true, false),
        ("rate(writes) > 1/s", false, true),
        ("rate(hits) > 1/s", true, false),
        ("rate(get) > 1/s", true, false),
        ("rate(update) > 1/s", false, true),
    ];
    for (text, gets, updates) in by_what {
        let operations = read(text).subject.operations;
        let included = [Kind::Get, Kind::Update].map(|kind| operations.include(kind));
        assert_eq!(included, [gets, updates], "{text}");
    }
}

#[test]
fn changes_are_told_from_values() {
    let is_change = |text: &str| read(text).bound.is_change();
    assert!(is_change("rate > -5%") && is_change("p99 < +1ms"));
    assert!(!is_change("errors < 3"));
}
