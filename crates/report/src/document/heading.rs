//! The head of a report: what was run, when, by which kvdyno, and what must be known of it first.

use super::subject::Subject;
use crate::cell::Cell;
use crate::result::{Build, RunResult, Status};
use crate::wording::{moment_text, status_text};
use kvdyno_core::ground::numbers::bytes_text;

/// Returns the facts, as (name, value).
pub(super) fn facts(result: &RunResult) -> Vec<(String, Cell)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), Cell::Text(value))));
    };
    fact("kvdyno", Some(build(&result.kvdyno)));
    fact("suite", Some(result.suite.name.clone()));
    fact("seed", Some(result.seed.to_string()));
    fact("", Some(moment_text(&result.started)));
    fact("took", took(result));
    fact("on", machine(result));
    facts
}

/// Returns what must be known before a figure is read.
pub(super) fn stamps(subject: &Subject<'_>) -> Vec<String> {
    let debug = subject.result.kvdyno.debug;
    let debug = debug.then(|| "debug build: these figures are worth nothing".to_owned());
    // A store that ended in the same way says so itself; the head of a page that goes on always tells.
    let is_of_a_store = subject.result.runs.iter().any(|run| run.status == subject.result.status);
    let is_told = !subject.is_live && is_of_a_store;
    let status = status(&subject.result.status, subject.is_live).filter(|_| !is_told);
    debug.into_iter().chain(status.map(|status| format!("the run {status}"))).collect()
}

/// Returns how far a run came, where it is not simply complete.
pub(super) fn status(status: &Status, is_live: bool) -> Option<String> {
    match status {
        Status::Running if is_live => Some("goes on".to_owned()),
        status => status_text(status),
    }
}

fn build(build: &Build) -> String {
    let git = build.git.as_ref().map_or(String::new(), |git| format!(" ({git})"));
    let profile = match &build.profile {
        _ if build.debug => " DEBUG BUILD".to_owned(),
        Some(profile) => format!(", {profile} build"),
        None => String::new(),
    };
    format!("{}{git}{profile}", build.version)
}

fn took(result: &RunResult) -> Option<String> {
    let begin = humantime::parse_rfc3339(&result.started).ok()?;
    let end = humantime::parse_rfc3339(result.ended.as_ref()?).ok()?;
    let seconds = end.duration_since(begin).ok()?.as_secs();
    Some(humantime::format_duration(std::time::Duration::from_secs(seconds)).to_string())
}

fn machine(result: &RunResult) -> Option<String> {
    let cores = result.host.cores.map(|cores| format!("{cores} CPUs"));
    let memory = result.host.memory_bytes.map(|bytes| bytes_text(bytes as f64));
    let parts: Vec<String> =
        cores.into_iter().chain(result.host.cpu.clone()).chain(memory).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
