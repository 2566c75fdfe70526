//! The checker of linearizability against Porcupine, a well-known one that works by search: both
//! give the same answer to histories of correct registers and of faulty ones, read from the file
//! that kvdyno exports. Needs `go`, and its module proxy or cache for the pinned version.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::histories::{correct, mutate, recorded};
use kvdyno_core::verify::linearizability::{Linearizability, judge};
use kvdyno_core::verify::{History, RecordHistory};
use kvdyno_core::workload::Random;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/porcupine");
const HISTORIES: u64 = 1_200;

fn record(number: u64, record: u64, mutated: bool) -> RecordHistory {
    let mut random = Random::new(21 + record, number);
    let (clients, requests) = (2 + random.below(9) as usize, 5 + random.below(60) as usize);
    let mut history = correct(&mut random, clients, requests);
    if mutated {
        (0..1 + random.below(3)).for_each(|_| mutate(&mut random, &mut history));
        history.settled = random.below(8) > 0;
        let middle = history.calls[history.calls.len() / 2].begun;
        history.cut = (random.below(8) == 0).then_some(middle);
    }
    RecordHistory { record, ..history }
}

/// Returns Porcupine's answers to histories in kvdyno's export, one a line.
fn porcupine(histories: &str) -> Vec<String> {
    let mut program = Command::new("go")
        .args(["run", "."])
        .current_dir(PROGRAM)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs Go: install it, or leave out the feature server-tests");
    let mut input = program.stdin.take().unwrap();
    let text = histories.to_owned();
    let writing = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = program.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success(), "go run failed; what it said is above");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn porcupine_agrees_on_every_history() {
    let mut text = String::new();
    let mut ours = Vec::new();
    for number in 0..HISTORIES {
        // Every other one is as the register made it.
        let records = (0..2).map(|i| record(number, i, number % 2 == 1 && i == 0)).collect();
        let history = History { records };
        let _ = writeln!(text, "{}---", history.edn());
        ours.push(match judge(&history) {
            Linearizability::Ok => "ok",
            Linearizability::Violated(_) => "violated",
            Linearizability::Unknown(why) => panic!("{number}: {why}"),
        });
    }
    for name in ["timeouts", "stale-reads", "paused-primary"] {
        let history = History { records: recorded(name) };
        let _ = writeln!(text, "{}---", history.edn());
        ours.push(if judge(&history) == Linearizability::Ok { "ok" } else { "violated" });
    }
    let theirs = porcupine(&text);
    assert_eq!(theirs.len(), ours.len());
    for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "history {number}");
    }
    let violated = ours.iter().filter(|answer| **answer == "violated").count();
    assert!((200..=600).contains(&violated), "{violated} of {HISTORIES}");
}
