//! Results keep to the published schema, and the schema refuses what is none.

use super::*;
use crate::sample;

fn path() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/result.schema.json")
}

#[test]
fn the_published_schema_is_up_to_date() {
    if std::env::var_os("KVDYNO_RENEW").is_some() {
        std::fs::write(path(), RunResult::schema()).unwrap();
    }
    let published = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(
        published == RunResult::schema(),
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
    let text = std::fs::read(folder.path().join(crate::folder::RESULT_FILE)).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let errors: Vec<String> = validator.iter_errors(&written).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");

    for status in [Status::Running, Status::Failed { message: "x".into() }] {
        result.status = status;
        assert!(validator.is_valid(&serde_json::to_value(&result).unwrap()));
    }
    let merged = merge(&two_parts(&result), Absent::Refuse).unwrap();
    assert!(validator.is_valid(&serde_json::to_value(&merged).unwrap()));
}

#[test]
fn the_schema_refuses_what_is_no_result() {
    let validator =
        jsonschema::validator_for(&serde_json::from_str(&RunResult::schema()).unwrap()).unwrap();
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

fn two_parts(result: &RunResult) -> [RunResult; 2] {
    [0, 1].map(|index| RunResult { part: Part { index, count: 2 }, ..result.clone() })
}
