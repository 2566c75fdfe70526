//! Tests that results conform to their published schema, and take plans and verdicts as core makes them.

use super::*;
use crate::sample;

fn path() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/result.schema.json")
}

#[test]
fn the_published_schema_is_up_to_date() {
    if std::env::var_os("KVDYNO_RENEW").is_some() {
        std::fs::write(path(), schema::schema()).unwrap();
    }
    let published = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(
        published == schema::schema(),
        "docs/result.schema.json is out of date; renew it with: \
         KVDYNO_RENEW=1 cargo test -p kvdyno-report schema"
    );
}

#[test]
fn results_keep_to_the_published_schema() {
    let schema = std::fs::read_to_string(path()).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut result = sample::written(folder.path());
    let text = std::fs::read(folder.path().join(RESULT_FILE)).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let errors: Vec<String> = validator.iter_errors(&written).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");

    for status in [Status::Running, Status::Failed { message: "x".into() }] {
        result.status = status;
        assert!(validator.is_valid(&serde_json::to_value(&result).unwrap()));
    }
}

#[test]
fn the_schema_refuses_what_is_no_result() {
    let validator =
        jsonschema::validator_for(&serde_json::from_str(&schema::schema()).unwrap()).unwrap();
    let good = serde_json::to_value(sample::two_stores()).unwrap();
    assert!(validator.is_valid(&good));
    let refused = |pointer: &str, value: serde_json::Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert!(!validator.is_valid(&bad), "{pointer}");
    };
    refused("/seed", serde_json::json!("42"));
    refused("/status/state", serde_json::json!("perhaps"));
    refused("/runs/0/phases/0/wall_ns", serde_json::json!(-1));
    refused("/runs/0/phases/0/series/0/service/p99_ns", serde_json::Value::Null);
    refused("/runs/0/verdict/level", serde_json::json!("fine"));
}

#[test]
fn published_figures_are_set_beside_the_phase_that_they_are_about() {
    let mut plan = builtin_plan();
    let phase = plan.published[0].rows[0].phase.clone();
    let own = Published::of(&plan, &plan.published[0].store, &phase);
    assert_eq!((own.len(), own[0].rate), (1, plan.published[0].rows[0].rate));
    assert_eq!(Published::of(&plan, "some other store", &phase).len(), plan.published.len());
    plan.scale = Some(0.5);
    assert!(Published::of(&plan, "some other store", &phase).is_empty());
}

#[test]
fn a_verdict_keeps_its_figures_and_words() {
    let whole = verdict::Extent { planned: 1, ended: 1, failed: false };
    let judged = verdict::judge_run(Vec::new(), whole, Some(0.01), true);
    let verdict = Verdict::from(&judged);
    assert_eq!(verdict.level, Level::Invalid);
    let names: Vec<&str> = verdict.reasons.iter().map(|reason| reason.name.as_str()).collect();
    assert_eq!(names, ["debug-build", "scaled"]);
    assert_eq!(verdict.reasons[1].figure, Some(0.01));
    assert!(verdict.reasons.iter().all(|reason| !reason.advice.is_empty()));
}

fn builtin_plan() -> Plan {
    let suite = kvdyno_core::suite::Suite::find("amesar-2011").unwrap();
    suite.plan(&kvdyno_core::suite::Overrides::default()).unwrap()
}

/// Reads results of the version before this one: a phase with a fault on a testbed, and a load by agents.
#[test]
fn results_of_the_last_version_are_read() {
    let read = |name: &str| {
        let golden = "tests/it/golden/last_version";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(golden).join(name);
        RunResult::load(path).unwrap_or_else(|error| panic!("{error}"))
    };
    let faults = read("faults.json");
    let done: Vec<_> = faults.runs[0].phases.iter().flat_map(|phase| &phase.faults).collect();
    assert_eq!(
        done.iter().map(|fault| fault.what.as_str()).collect::<Vec<_>>(),
        ["kill", "start again"]
    );
    assert!(serde_json::from_value::<Plan>(faults.suite.plan).is_ok(), "it can be run again");
    let agents = read("agents.json");
    assert_eq!(agents.runs[0].of_agents.len(), 1, "of the member that was called `of_parts`");
    assert!(agents.runs[0].phases.iter().any(|phase| phase.agents.len() == 2));
}
