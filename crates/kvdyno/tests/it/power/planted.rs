//! Engines of which it is known what they do: a liar is caught as what it is, an honest one is not accused. `cargo xtask truth`
//! runs all of them, many times; these five stand for the kinds of faults. docs/TRUTH.md.

use std::path::Path;
use std::thread;

use crate::support::{Bench, KVDYNO};
use xtask::truth::judgement::TrialOutcome;
use xtask::truth::load::Load;
use xtask::truth::{trial, try_once};

#[test]
fn three_liars_are_caught_and_two_honest_engines_are_not_accused() {
    let bench = Bench::new();
    let folder = bench.path("planted");
    let run = &|(name, load): (&str, Load)| {
        let trial = trial(name, load).expect("an engine and a load of it");
        try_once(Path::new(KVDYNO), &folder, &trial, 0).expect("a run")
    };
    let five = [
        ("liar_syncs_every_tenth_write", Load::Cuts),
        ("liar_keeps_data_elsewhere", Load::Cuts),
        ("liar_ignores_errors", Load::DiskErrors),
        ("honest_syncs_each_write", Load::CutsOfCaches),
        ("honest_ends_at_an_error", Load::DiskErrors),
    ];
    thread::scope(|scope| {
        let all = five.map(|one| (one, scope.spawn(move || run(one))));
        for (one, judged) in all {
            assert_eq!(judged.join().expect("a judgement"), TrialOutcome::Right, "{one:?}");
        }
    });
}
