//! Rates that change over time: from a suite or the command line, into plans and their words.

use super::{mistake, plan, plan_with};
use crate::suite::{Overrides, Suite};
use crate::workload::{Arrival, Course, Curve, CurveText};

fn suite(keys: &str) -> String {
    format!(
        "name = \"s\"\nrecords = 10\nwarmup = \"1s\"\n[[phase]]\nname = \"get\"\nmix = \"get\"\nduration = \"9s\"\n{keys}\n"
    )
}

fn curve(text: &str) -> Curve {
    text.parse::<CurveText>().unwrap().read(std::path::Path::new("")).unwrap()
}

#[test]
fn what_a_suite_writes_is_what_the_plan_says() {
    for (text, warm) in [
        ("steps 1k/s to 10k/s by 1k/s every 30s", "1k/s"),
        ("sine 1k/s to 9k/s every 1m", "1k/s"),
        // Nothing is asked for at first: the warm-up has the mean.
        ("sine 0/s to 9k/s every 1m", "4.5k/s"),
        ("spikes 1k/s to 9k/s for 2s every 30s", "1k/s"),
    ] {
        for (word, shown) in [("", ""), ("arrival = \"poisson\"", " (Poisson)")] {
            let told = plan(&suite(&format!("rate = \"{text}\"\n{word}")));
            let lines = told.describe();
            let has = |end: String| lines.iter().any(|line| line.ends_with(&end));
            assert!(has(format!("1 client at {text}{shown}")), "{lines:?}");
            assert!(has(format!("1 client at {warm}{shown}")), "{lines:?}");
            let poisson = !word.is_empty();
            let expected = Arrival::Curve { curve: curve(text), poisson };
            assert_eq!(told.phases[1].groups[0].arrival, expected);
            // The command line says the same.
            let rate = Some(curve(text));
            let overrides = Overrides { rate, ..Overrides::default() };
            let asked = plan_with(&suite(word), &overrides);
            assert_eq!(asked.phases[1].groups[0].arrival, expected);
            assert_eq!(asked.changes, [format!("--rate {text}")]);
        }
    }
    // What can be said in two ways is one plan.
    let ramp = "ramp = { from = \"1k/s\", to = \"5k/s\", over = \"9s\" }";
    let same = plan(&suite("rate = \"ramp 1k/s to 5k/s over 9s\""));
    assert_eq!(plan(&suite(ramp)), same);
    assert!(matches!(same.phases[1].groups[0].arrival, Arrival::Ramp { .. }));
}

#[test]
fn groups_share_a_curve_out_and_inserts_are_bounded_by_it() {
    let text = "name = \"s\"\nrecords = 10\n[[phase]]\nname = \"p\"\nduration = \"9s\"\n\
        [[phase.group]]\nname = \"a\"\nclients = 1\nmix = \"insert\"\n\
        [[phase.group]]\nname = \"b\"\nclients = 3\nmix = \"get\"\n";
    let all = curve("spikes 1k/s to 9k/s for 2s every 3s");
    let overrides = Overrides { rate: Some(all.clone()), ..Overrides::default() };
    let plan = plan_with(text, &overrides);
    let phase = plan.phases.last().unwrap();
    let [a, b] = &phase.groups[..] else { panic!() };
    assert_eq!(a.arrival.curve().unwrap(), all.scaled(0.25));
    assert_eq!(b.arrival.curve().unwrap(), all.scaled(0.75));
    let due = Course::of(&all.scaled(0.25)).due_by(9.0);
    assert_eq!(a.requests, Some(due as u64 + 1));
}

#[test]
fn a_file_of_points_is_read_from_beside_the_suite_and_kept_in_the_plan() {
    let folder = std::env::temp_dir().join(format!("kvdyno-curve-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("day.csv"), "seconds,rate\n0,1k/s\n1m,3k/s\n").unwrap();
    let file = folder.join("s.toml");
    std::fs::write(&file, suite("rate = \"day.csv\"")).unwrap();
    let read = Suite::find(file.to_str().unwrap()).and_then(|s| s.plan(&Overrides::default()));
    std::fs::remove_dir_all(&folder).unwrap();
    let read = read.unwrap();
    let points = vec![(0.0, 1_000.0), (60.0, 3_000.0)];
    let expected = Curve::Points { file: "day.csv".to_owned(), points };
    assert_eq!(read.phases[1].groups[0].arrival.curve(), Some(expected));
    let told = read.describe().join("\n");
    assert!(told.contains("at day.csv (2 points, 1k/s to 3k/s over 1m)"), "{told}");
}

#[test]
fn a_curve_that_is_none_is_shown_where_it_stands() {
    let told = mistake(&suite("rate = \"ramp 1k/s to 5k/s\"")).to_string();
    assert!(
        told.starts_with("t.toml:8:8: `ramp 1k/s to 5k/s` is no ramp; write \"50k/s\""),
        "{told}"
    );
    let told = mistake(&suite("rate = \"no-such.csv\"")).to_string();
    assert!(told.starts_with("t.toml:8:8: no-such.csv: "), "{told}");
}
