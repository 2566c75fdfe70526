//! Files of requirements: docs/WINNOW.md describes all of their keys, and errors about mistakes have a place.

use std::time::Duration;

use crate::store::{Capabilities, Consistency, Durability};
use crate::suite::prices::{KIND_KEYS, PRICES_KEYS, STATEMENT_KEYS};
use crate::suite::requirements::{BUDGET_KEYS, LATENCY_KEYS, REQUIREMENT_KEYS};
use crate::suite::{Overrides, Requirements};
use crate::workload::Kind;

const MANUAL: &str = include_str!("../../../../../docs/WINNOW.md");
const COSTS: &str = include_str!("../../../../../docs/COST.md");

fn example() -> Requirements {
    let text = MANUAL.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let text = text.expect("the manual has an example");
    Requirements::parse("requirements.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn phases(has: &Capabilities, nodes: bool) -> Vec<String> {
    let suite = example().suite(has, nodes).unwrap();
    let plan = suite.plan(&Overrides::default()).unwrap();
    plan.phases.into_iter().filter(|phase| !phase.warmup).map(|phase| phase.name).collect()
}

#[test]
fn the_manuals_name_every_key() {
    let keys = [&REQUIREMENT_KEYS[..], &LATENCY_KEYS, &BUDGET_KEYS].concat();
    for key in keys {
        assert!(MANUAL.contains(&format!("`{key}`")), "docs/WINNOW.md lacks `{key}`");
    }
    for key in [&PRICES_KEYS[..], &KIND_KEYS, &STATEMENT_KEYS].concat() {
        assert!(COSTS.contains(&format!("`{key}`")), "docs/COST.md lacks `{key}`");
    }
}

#[test]
fn the_example_is_read_whole() {
    let example = example();
    assert_eq!(example.operations, [Kind::Get, Kind::Update, Kind::Delete, Kind::Scan]);
    assert_eq!(example.consistency, Some(Consistency::ReadAfterWrite));
    assert_eq!(example.durability, Some(Durability::ProcessKill));
    assert_eq!(example.ttl, Some(Duration::from_secs(4)));
    assert!(example.survives_killed_node && example.nodes_added_live);
    assert_eq!(example.budget.unwrap().month, 500.0);
    assert_eq!(example.latency.unwrap().rate, 1_000.0);
}

#[test]
fn only_what_a_store_says_it_can_is_asked_of_it() {
    let all = Capabilities { scan: true, ttl: true, ..Capabilities::default() };
    let with_nodes = phases(&all, true);
    for name in ["load", "op-get", "op-scan", "latency", "op-delete", "ttl-watch", "killed"] {
        assert!(with_nodes.iter().any(|phase| phase == name), "{name} is not in {with_nodes:?}");
    }
    let few = phases(&Capabilities::default(), false);
    assert_eq!(few, ["load", "op-get", "op-update", "latency", "op-delete"]);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let cases = [
        ("name = 'a'\noperation = ['get']", "r.toml:2:1: unknown key `operation`", "`operations`"),
        ("name = 'a'\noperations = ['read']", "`read` is not an operation", "`get`"),
        ("name = 'a'\noperations = ['get', 'get']", "get is required twice", ""),
        ("name = 'a'\nconsistency = 'linear'", "is not a consistency", "linearizable"),
        ("name = 'a'\ndurability = 'kill'", "is not a durability", "process-kill"),
        ("name = 'a'\nlatency = { slo = 'p99 < 5' , rate = '1/s' }", "r.toml:2:19", ""),
        ("name = 'a'\nlatency = { slo = 'p99 < 5ms' }", "lacks `rate`", ""),
        ("name = 'a'\nlatency = { slo = 'p99 < +5%', rate = '1/s' }", "no condition on one", ""),
        ("name = 'a'\nbudget = { month = 0, servers = {} }", "`month` must be above 0", ""),
        ("title = 'x'", "lacks `name`", ""),
    ];
    for (text, message, hint) in cases {
        let error = Requirements::parse("r.toml", text).unwrap_err().to_string();
        assert!(error.contains(message) && error.contains(hint), "{error}");
    }
}
