//! Tests that cells follow from runs: each requirement met, not met and not shown.

use super::*;
use crate::result::{FaultResult, StoreRun, TestbedResult};
use crate::sample;
use kvdyno_core::store::{Consistency, Promise};
use kvdyno_core::verify::Tally;

const REQUIRED: &str = r#"
name = "r"
operations = ["get", "scan"]
consistency = "read-after-write"
durability = "process-kill"
ttl = "2s"
latency = { slo = "p99 < 1h", rate = "1k/s" }
survives-killed-node = true
nodes-added-live = true
budget = { month = 100, servers = {} }
"#;

fn required() -> Requirements {
    Requirements::parse("r.toml", REQUIRED).unwrap_or_else(|error| panic!("{error}"))
}

/// Makes up a run in which nothing went wrong: a phase of gets under each name, read back in the end.
fn run() -> StoreRun {
    let mut run = sample::two_stores().runs.remove(0);
    let good = run.phases.remove(0);
    let named = |name: &str| {
        let mut phase = good.clone();
        phase.name = name.to_owned();
        phase.errors.clear();
        phase.tally = Some(Tally { reads: 9, judged: 9, ..Tally::default() });
        phase
    };
    run.phases = ["op-get", "op-scan", "latency", "ttl-watch", "killed", "killed:read-back"]
        .map(named)
        .to_vec();
    run.phases[3].tally = Some(Tally { legal_misses: 4, ..Tally::default() });
    run.phases[4].faults = vec![FaultResult {
        what: "kill".into(),
        node: "redis-1".into(),
        role: None,
        began_ns: 1,
        ended_ns: 2,
        used: None,
        error: None,
        ..FaultResult::default()
    }];
    run.testbed = Some(TestbedResult::default());
    run.store.consistency = Promise::checked(Consistency::Linearizable);
    run.store.durability = Promise::checked(Durability::ProcessKill);
    run.store.capabilities.scan = true;
    run.store.capabilities.ttl = true;
    run
}

fn standings(run: &StoreRun, month: Option<f64>) -> Vec<RequirementStatus> {
    let cells = judge(&required(), run, month);
    cells.iter().map(|cell| cell.standing).collect()
}

#[test]
fn a_run_without_fault_meets_what_it_shows() {
    use RequirementStatus::{Met, NotShown};
    let expected = [Met, Met, Met, Met, Met, Met, Met, NotShown, Met];
    assert_eq!(standings(&run(), Some(99.0)), expected);
    assert_eq!(rows(&required()).len(), expected.len());
}

#[test]
fn each_cell_can_fail() {
    let cell = |number: usize, change: &dyn Fn(&mut StoreRun)| {
        let mut run = run();
        change(&mut run);
        judge(&required(), &run, Some(101.0)).remove(number).standing
    };
    type Change<'a> = &'a dyn Fn(&mut StoreRun);
    let cases: [(usize, Change<'_>); 8] = [
        (0, &|run| run.phases[0].series[0].failed = 1),
        (1, &|run| run.store.capabilities.scan = false),
        (2, &|run| run.store.consistency = Promise::checked(Consistency::Eventual)),
        (3, &|run| run.store.durability = Promise::checked(Durability::None)),
        (4, &|run| run.store.capabilities.ttl = false),
        (5, &|run| {
            let ok = run.phases[2].ok();
            run.phases[2].series[0].failed = ok;
        }),
        (6, &|run| {
            run.phases[5].tally = Some(Tally { anomalies: [0, 0, 0, 0, 1], ..Tally::default() });
        }),
        (8, &|_| {}),
    ];
    for (number, change) in cases {
        assert_eq!(cell(number, change), RequirementStatus::NotMet, "{number}");
    }
}

#[test]
fn nothing_is_met_that_no_run_shows() {
    let mut run = run();
    run.phases.clear();
    run.testbed = None;
    run.store.consistency = Promise::declared(Consistency::Linearizable);
    let standings = standings(&run, None);
    assert!(
        standings.iter().all(|standing| *standing == RequirementStatus::NotShown),
        "{standings:?}"
    );
    let unrun = unrun(&required(), "it would not start");
    assert!(unrun.iter().all(|cell| cell.standing == RequirementStatus::NotShown));
}

#[test]
fn the_table_is_the_same_everywhere_and_outside_text_stays_text() {
    let cells = judge(&required(), &run(), None);
    let column = |store: &str| Column {
        store: store.to_owned(),
        result: "1-redis".to_owned(),
        cells: cells.clone(),
    };
    let columns = [column("redis://<b>|x"), column("lmdb:")];
    let (text, page) = (markdown("t", &columns), html("<t>", &columns));
    assert!(text.contains("redis://&lt;b>\\|x") && text.contains("**not shown**"), "{text}");
    assert!(page.contains("&#60;t&#62;") && !page.contains("<b>|x"), "{page}");
    let terminal = terminal("t", &columns, crate::terminal::Style::PLAIN);
    assert!(terminal.contains("operation scan") && terminal.contains("[killed]"), "{terminal}");
    assert_eq!(columns[0].standing(), RequirementStatus::NotShown);
}
