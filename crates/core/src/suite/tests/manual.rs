//! docs/SUITES.md says everything that a suite can say, and its examples work.

use crate::suite::claims::CLAIM_KEYS;
use crate::suite::faults::fault_keys;
use crate::suite::file::{
    CLIENT_KEYS, EXPECT_KEYS, PHASE_KEYS, RAMP_KEYS, SUITE_KEYS, SWEEP_KEYS, VALUE_KEYS,
};
use crate::suite::models::{DISTRIBUTION_KEYS, KEY_KEYS, LOG_NORMAL_KEYS, SIZE_KEYS};
use crate::suite::published::{PUBLISHED_KEYS, column_names};
use crate::suite::{Overrides, Suite, builtins, ycsb};
use crate::workload::Kind;

const MANUAL: &str = include_str!("../../../../../docs/SUITES.md");

#[test]
fn the_manual_names_every_key() {
    let mut keys: Vec<&str> = [
        &SUITE_KEYS[..],
        &PHASE_KEYS[..],
        &CLIENT_KEYS[..],
        &VALUE_KEYS[..],
        &EXPECT_KEYS[..],
        &RAMP_KEYS[..],
        &SWEEP_KEYS[..],
        &fault_keys(),
        &CLAIM_KEYS[..],
        &KEY_KEYS[..],
        &LOG_NORMAL_KEYS[..],
        &SIZE_KEYS[..],
        &PUBLISHED_KEYS[..],
        &ycsb::PROPERTIES[..],
        &column_names(),
        &["sequential", "uniform", "closed", "constant", "poisson", "decimal", "hash"],
    ]
    .concat();
    for (name, settings) in DISTRIBUTION_KEYS {
        keys.push(name);
        keys.extend(settings);
    }
    keys.extend(Kind::ALL.map(Kind::name));
    for key in keys {
        assert!(MANUAL.contains(&format!("`{key}`")), "docs/SUITES.md lacks `{key}`");
    }
    for option in [
        "scale",
        "records",
        "clients",
        "threads",
        "rate",
        "duration",
        "requests",
        "seed",
        "set",
        "value",
        "mix",
        "keys",
        "linearizability",
    ] {
        assert!(MANUAL.contains(&format!("`--{option}")), "docs/SUITES.md lacks --{option}");
    }
}

#[test]
fn the_manual_lists_every_built_in_suite() {
    for builtin in builtins() {
        let row = format!("| `{}` | {} |", builtin.name, builtin.title);
        assert!(MANUAL.contains(&row), "docs/SUITES.md lacks the row {row}");
    }
}

#[test]
fn the_examples_of_the_manual_work() {
    let examples: Vec<&str> = MANUAL
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    assert!(examples.len() >= 3);
    for example in examples {
        let suite = Suite::parse("docs/SUITES.md", example);
        let plan = suite.and_then(|suite| suite.plan(&Overrides::default()));
        plan.unwrap_or_else(|error| panic!("{error}\n{}", error.excerpt().unwrap_or_default()));
    }
}
