//! Tests of suites as a whole: from text to plan.

mod claims;
mod curves;
mod faults;
mod hostile;
mod manual;
mod mistakes;
mod options;
mod plans;
mod published;
mod requirements;
mod standard;
mod ycsb;

use super::{Overrides, Plan, Suite, SuiteError};

/// Returns the plan of a suite's text without overrides.
fn plan(text: &str) -> Plan {
    plan_with(text, &Overrides::default())
}

fn plan_with(text: &str, overrides: &Overrides) -> Plan {
    let plan = Suite::parse("t.toml", text).and_then(|suite| suite.plan(overrides));
    plan.unwrap_or_else(|error| panic!("{error}\n{}", error.excerpt().unwrap_or_default()))
}

/// Returns the error of a suite's text.
fn mistake(text: &str) -> SuiteError {
    mistake_with(text, &Overrides::default())
}

fn mistake_with(text: &str, overrides: &Overrides) -> SuiteError {
    let plan = Suite::parse("t.toml", text).and_then(|suite| suite.plan(overrides));
    plan.expect_err("this suite has a mistake")
}

fn set(text: &str) -> Overrides {
    Overrides { set: vec![text.to_owned()], ..Overrides::default() }
}

/// A load and a phase of gets.
const SMALL: &str = r#"name = "small"
records = 1000
[[phase]]
name = "load"
load = true
[[phase]]
name = "get"
mix = "get"
requests = 5000
"#;
