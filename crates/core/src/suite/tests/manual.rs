//! docs/SUITES.md describes every key of a suite, and its examples work.

use crate::suite::claims::CLAIM_KEYS;
use crate::suite::faults::fault_keys;
use crate::suite::file::{EXPECT_KEYS, RAMP_KEYS, SWEEP_KEYS, VALUE_KEYS};
use crate::suite::keys::{KEYS, KeyLevel};
use crate::suite::models::{DISTRIBUTION_KEYS, KEY_KEYS, LOG_NORMAL_KEYS, SIZE_KEYS};
use crate::suite::published::{PUBLISHED_KEYS, column_names};
use crate::suite::{Overrides, Suite, builtins, ycsb};
use crate::workload::Kind;

const MANUAL: &str = include_str!("../../../../../docs/SUITES.md");

#[test]
fn the_manual_names_every_key() {
    let mut keys: Vec<&str> = [
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
    let options = KEYS.iter().filter(|key| key.option.is_some()).map(|key| key.name);
    for option in options.chain(["scale", "threads", "set"]) {
        assert!(MANUAL.contains(&format!("`--{option}")), "docs/SUITES.md lacks --{option}");
    }
}

/// `KVDYNO_RENEW=1 cargo test -p kvdyno-core the_manual_has` writes the tables anew.
#[test]
fn the_manual_has_the_table_of_keys() {
    let mut page = MANUAL.to_owned();
    for level in [KeyLevel::Suite, KeyLevel::Phase, KeyLevel::Clients] {
        let (begin, end) = (format!("<!-- keys: {level:?} -->"), "<!-- end of keys -->");
        let mut table = "\n\n| key | meaning | default |\n| --- | --- | --- |\n".to_owned();
        for key in KEYS.iter().filter(|key| key.level == level) {
            table += &format!("| `{}` | {} | {} |\n", key.name, key.meaning, key.default);
        }
        let from = page.find(&begin).expect("the begin of the table") + begin.len();
        let to = from + page[from..].find(end).expect("its end");
        page.replace_range(from..to, &format!("{table}\n"));
    }
    if std::env::var_os("KVDYNO_RENEW").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SUITES.md");
        std::fs::write(path, &page).expect("the page can be written");
    }
    assert!(page == MANUAL, "docs/SUITES.md has other keys than the table: renew it");
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
