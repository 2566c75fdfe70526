//! Every error that a user may meet says what to do next. A kind of error without an example here does not
//! compile; a text that ends with what went wrong fails.

use std::io;
use std::path::Path;

use kvdyno_core::cost::BillError;
use kvdyno_core::ground::units::{Quantity, UnitError, UnitFault};
use kvdyno_core::load::LoadError;
use kvdyno_core::suite::{Place, Problem, SuiteError};
use kvdyno_core::verify::LedgerError;
use kvdyno_core::workload::{Kind, PlanError};
use kvdyno_report::compare::CompareError;
use kvdyno_report::events::fold::FoldError;
use kvdyno_report::events::recording::RecordingError;
use kvdyno_report::folder::FolderError;
use kvdyno_report::result::ResultFileError;
use kvdyno_stores::StoreError;
use kvdyno_testbed::TestbedError;

use crate::device::DeviceError;

#[path = "../../tests/it/support/next_step.rs"]
mod next_step;
use next_step::says_what_to_do;

/// One text for each kind of an error; none for a kind whose whole text comes from elsewhere.
macro_rules! texts {
    ($error:ty { $($kind:pat => $example:expr,)* }) => {{
        // A kind that is not among them does not compile.
        let _every = |error: &$error| match error { $($kind => (),)* };
        let examples: Vec<Option<$error>> = vec![$({
            let example: Option<$error> = $example;
            assert!(example.as_ref().is_none_or(|error| matches!(error, $kind)));
            example
        },)*];
        examples.into_iter().flatten().map(|error| error.to_string()).collect::<Vec<_>>()
    }};
}

fn gone() -> io::Error {
    io::ErrorKind::NotFound.into()
}

#[track_caller]
fn all_advise(texts: Vec<String>) {
    let silent: Vec<_> = texts.into_iter().filter(|text| !says_what_to_do(text)).collect();
    assert!(silent.is_empty(), "no word on what to do next:\n{}", silent.join("\n"));
}

fn suite(problem: Problem) -> String {
    SuiteError::new(Place::Suite("s".to_owned()), problem, "").to_string()
}

#[test]
fn errors_of_suites_and_plans_say_what_to_do() {
    let [key, table] = ["key", "[[phase]]"].map(str::to_owned);
    let unit = |reason| UnitError { quantity: Quantity::Bytes, text: "1x".to_owned(), reason };
    let units = texts!(UnitFault {
        UnitFault::NoNumber => Some(UnitFault::NoNumber),
        UnitFault::UnknownUnit(_) => Some(UnitFault::UnknownUnit("x".to_owned())),
        UnitFault::NoUnit => Some(UnitFault::NoUnit),
        UnitFault::NotWhole(_) => Some(UnitFault::NotWhole("bytes")),
        UnitFault::TooLarge => Some(UnitFault::TooLarge),
        UnitFault::NotAShare => Some(UnitFault::NotAShare),
    });
    assert_eq!(units.len(), 6);
    let error = unit(UnitFault::UnknownUnit("x".to_owned()));
    let mut told = Vec::new();
    let problems = [
        Problem::Syntax("a stray bracket".to_owned()),
        Problem::UnknownKey { key: key.clone(), table: table.clone() },
        Problem::UnknownWord { word: key.clone(), what: "a kind".to_owned() },
        Problem::WrongType { key: key.clone(), expected: "a number", found: "text" },
        Problem::Quantity { key: key.clone(), error },
        Problem::OutOfRange { key, value: "0".to_owned(), range: "1 to 9".to_owned() },
        Problem::Missing { key: "name", table },
        Problem::MixSum("90".to_owned()),
        Problem::Unreadable("it is gone".to_owned()),
    ];
    told.extend(problems.into_iter().map(suite));
    let [what, allowed] = ["the rate", "above 0"];
    told.extend(texts!(PlanError {
        PlanError::Number { .. } => Some(PlanError::Number { what, value: 0.0, allowed }),
        PlanError::Count { .. } => Some(PlanError::Count { what, value: 0, min: 1, max: 9 }),
        PlanError::Order { .. } => Some(PlanError::Order { what, min: 2, max: 1 }),
        PlanError::NoChoice { .. } => Some(PlanError::NoChoice { what }),
        PlanError::MixSum { .. } => Some(PlanError::MixSum { sum: 999 }),
        PlanError::MixTwice { .. } => Some(PlanError::MixTwice { kind: Kind::Get }),
        PlanError::KeyCapacity { .. } =>
            Some(PlanError::KeyCapacity { length: 1, named: 9, needed: 99 }),
        PlanError::Capacity { .. } => Some(PlanError::Capacity { what, needed: 9, capacity: 1 }),
        PlanError::Part { .. } => Some(PlanError::Part { index: 3, count: 3 }),
        PlanError::TooManyParts { .. } => Some(PlanError::TooManyParts { records: 1, parts: 2 }),
    }));
    told.extend(texts!(BillError {
        BillError::Form(_) => Some(BillError::Form("x".to_owned())),
        // Its second half is the advice, with the names that are nearest.
        BillError::Unknown(..) => None,
    }));
    all_advise(told);
}

#[test]
fn errors_of_loads_stores_and_testbeds_say_what_to_do() {
    let [text, phase, store] = ["x", "p", "map"].map(str::to_owned);
    let mut told = texts!(LoadError {
        LoadError::Plan(_) => None,
        LoadError::Unsupported { .. } =>
            Some(LoadError::Unsupported { phase, store, operation: "scan" }),
        LoadError::Unseen { .. } =>
            Some(LoadError::Unseen { phase: text.clone(), why: "w: leave `ttl` out" }),
        // What is told of it depends on the servers (`Failure::of_load`).
        LoadError::Unavailable(_) => None,
        LoadError::System { .. } =>
            Some(LoadError::System { what: "a thread", source: gone() }),
        LoadError::Memory(_) => None,
        // Its text is an agent's own.
        LoadError::Agents(_) => None,
        LoadError::CalledOff => Some(LoadError::CalledOff),
        LoadError::Panicked => Some(LoadError::Panicked),
    });
    told.extend(texts!(LedgerError {
        LedgerError::TooLarge { .. } =>
            Some(LedgerError::TooLarge { slots: 9, bytes: 72, machine: 1 }),
        LedgerError::Refused { .. } =>
            Some(LedgerError::Refused { slots: 9, bytes: 72, limit: Some(1) }),
    }));
    let (url, advice) = ("map:x".to_owned(), "write `map:`".to_owned());
    let problem = text.clone();
    told.extend(texts!(StoreError {
        StoreError::Url { .. } => Some(StoreError::Url {
            url: url.clone(), problem: problem.clone(), advice: advice.clone(),
        }),
        StoreError::UnknownStore { .. } => Some(StoreError::UnknownStore {
            scheme: text.clone(), advice: advice.clone(),
        }),
        StoreError::NotBuilt { .. } =>
            Some(StoreError::NotBuilt { scheme: text.clone(), feature: "x" }),
        StoreError::Open { .. } => Some(StoreError::Open { url, problem, advice: advice.clone() }),
    }));
    let status = std::os::unix::process::ExitStatusExt::from_raw(256);
    let (word, problem) = (text.clone(), text.clone());
    let [node, log, awaited] = ["redis-1", "ready", "PING"].map(str::to_owned);
    told.extend(texts!(TestbedError {
        TestbedError::Word { .. } =>
            Some(TestbedError::Word { word, problem: problem.clone(), advice: advice.clone() }),
        TestbedError::NotInstalled { .. } => Some(TestbedError::NotInstalled {
            what: text.clone(), install: "install it with `kvdyno testbed install x`".to_owned(),
        }),
        TestbedError::Install { .. } =>
            Some(TestbedError::Install { what: text.clone(), problem }),
        TestbedError::Ended { .. } =>
            Some(TestbedError::Ended { node: node.clone(), status, log: log.clone() }),
        TestbedError::NotReady { .. } => Some(TestbedError::NotReady {
            node, waited: std::time::Duration::from_secs(9), awaited, log,
        }),
        // What a node or the keeper said, whole.
        TestbedError::Refused { .. } => None,
        TestbedError::Node(_) => None,
        TestbedError::Kept { .. } => None,
        TestbedError::Machine(_) => None,
        TestbedError::Interrupted => Some(TestbedError::Interrupted),
        TestbedError::System { .. } => Some(TestbedError::System {
            what: text.clone(), action: "make", error: gone(),
        }),
    }));
    told.extend(texts!(DeviceError {
        DeviceError::NotInstalled => Some(DeviceError::NotInstalled),
        DeviceError::NoFolder => Some(DeviceError::NoFolder),
        DeviceError::Refused { .. } =>
            Some(DeviceError::Refused { folder: text.clone(), reason: text }),
    }));
    all_advise(told);
}

#[test]
fn errors_of_results_say_what_to_do() {
    let path = || Path::new("r/result.json").to_owned();
    let text = || "x".to_owned();
    let mut told = texts!(ResultFileError {
        ResultFileError::SeveralTrials { .. } =>
            Some(ResultFileError::SeveralTrials { path: path(), first: path() }),
        ResultFileError::Unreadable { .. } =>
            Some(ResultFileError::Unreadable { path: path(), source: gone() }),
        ResultFileError::TooLarge { .. } => Some(ResultFileError::TooLarge { path: path() }),
        ResultFileError::CutShort { .. } => Some(ResultFileError::CutShort { path: path(), line: 1 }),
        ResultFileError::NotJson { .. } => Some(ResultFileError::NotJson {
            path: path(),
            line: 1,
            column: 1,
            problem: text(),
        }),
        ResultFileError::Malformed { .. } => Some(ResultFileError::Malformed {
            path: path(), line: 1, column: 1, problem: text(),
        }),
        ResultFileError::OtherVersion { .. } =>
            Some(ResultFileError::OtherVersion { path: path(), found: 99 }),
        ResultFileError::Count { .. } =>
            Some(ResultFileError::Count { path: path(), phase: text() }),
        // Only a histogram that cannot be decoded makes its source; the text is that of the last one.
        ResultFileError::Histogram { .. } => None,
    });
    told.extend(texts!(CompareError {
        CompareError::Load(_) => None,
        CompareError::Histogram(_) => None,
        CompareError::Empty(_) => Some(CompareError::Empty(path())),
        CompareError::Alone { .. } => Some(CompareError::Alone { path: path(), store: text() }),
        CompareError::NoCounterpart { .. } => Some(CompareError::NoCounterpart {
            store: text(), first: path(), second: path(), others: text(),
        }),
        CompareError::NoPhase { .. } =>
            Some(CompareError::NoPhase { first: text(), second: text() }),
        CompareError::Unequal(_) => Some(CompareError::Unequal(vec![text()])),
        CompareError::NoMargin { .. } =>
            Some(CompareError::NoMargin { condition: text(), known: text() }),
        // The parser of conditions says what is wrong and what to write.
        CompareError::Condition { .. } => None,
        CompareError::NotThere { .. } =>
            Some(CompareError::NotThere { condition: text(), known: text() }),
    }));
    told.extend(texts!(FolderError {
        FolderError::Create { .. } => Some(FolderError::Create { path: path(), source: gone() }),
        FolderError::Occupied { .. } => Some(FolderError::Occupied { path: path() }),
        FolderError::Write { .. } => Some(FolderError::Write { path: path(), source: gone() }),
        // Their sources say it.
        FolderError::Report { .. } => None,
    }));
    told.extend(texts!(RecordingError {
        RecordingError::Unreadable(_) => Some(RecordingError::Unreadable(gone())),
        RecordingError::Malformed { .. } =>
            Some(RecordingError::Malformed { line: 1, problem: text() }),
        RecordingError::Unfounded { .. } => Some(RecordingError::Unfounded {
            line: 1, source: FoldError::NoBegin { what: "an interval" },
        }),
        RecordingError::Empty => Some(RecordingError::Empty),
    }));
    told.extend(texts!(FoldError {
        FoldError::OtherFormat { .. } => Some(FoldError::OtherFormat { found: 99 }),
        FoldError::NoBegin { .. } => Some(FoldError::NoBegin { what: "an interval" }),
    }));
    all_advise(told);
}

/// Texts that are written where they are told, read off the sources.
#[test]
fn what_the_command_itself_refuses_says_what_to_do() {
    let mut told = Vec::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut told);
    assert!(told.len() > 30, "{told:#?}");
    all_advise(told);
}

/// Adds the texts that sources under `folder` hand to a failure.
fn read(folder: &Path, told: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, told);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for maker in ["usage", "unavailable", "internal"] {
            for call in text.split(&format!("Failure::{maker}(")).skip(1) {
                let call = call.trim_start();
                let call = call.strip_prefix("format!(").unwrap_or(call).trim_start();
                let Some(literal) = call.strip_prefix('"') else { continue };
                let literal = literal.split('"').next().unwrap_or_default();
                // A literal may go on in the next line.
                let mut words = literal.split_whitespace().filter(|word| *word != "\\");
                let line = words.by_ref().collect::<Vec<_>>().join(" ");
                // Advice that is made up as it is told (names that are near, servers that do not answer), or the
                // whole text of another error.
                let made_up = ["; {}", "; {advice}", "; {way}", "{servers}", "{url}: {error}"];
                if !line.is_empty() && !made_up.iter().any(|end| line.ends_with(end)) {
                    told.push(line);
                }
            }
        }
    }
}
