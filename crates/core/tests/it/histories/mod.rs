//! Histories of a register to compare checkers with each other: those of a register that works, the
//! same with something changed in them, and histories read from files.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;

use kvdyno_core::verify::{Call, CallKind, Content, RecordHistory, WriteEnd};
use kvdyno_core::workload::Random;

/// Time at which histories begin, ns.
pub const FROM: u64 = 100;
/// Version that the register holds then.
const FIRST: u32 = 7;

/// A request on its way.
struct Pending {
    begun: u64,
    action: CallKind,
    applied: bool,
}

/// Makes the history of a register that works: `clients` clients make `requests` requests, each of
/// which takes effect at one instant; some writes are in doubt, and take effect then or later or
/// never, or failed. Moments often coincide.
pub fn correct(random: &mut Random, clients: usize, requests: usize) -> RecordHistory {
    let mut calls: Vec<Call> = Vec::new();
    let mut pending: Vec<Option<Pending>> = (0..clients).map(|_| None).collect();
    // Writes in doubt that may yet take effect.
    let mut late: Vec<Content> = Vec::new();
    let (mut register, mut next, mut time) = (Content::Version(FIRST), FIRST + 1, FROM);
    while calls.len() < requests {
        time += random.below(3);
        if !late.is_empty() && random.below(20) == 0 {
            register = late.swap_remove(random.below(late.len() as u64) as usize);
        }
        let client = &mut pending[random.below(clients as u64) as usize];
        match client {
            None => {
                let action = match random.below(2) {
                    0 => CallKind::Read(Content::Nothing),
                    _ => CallKind::Write(Content::Version(next)),
                };
                next += u32::from(action != CallKind::Read(Content::Nothing));
                *client = Some(Pending { begun: time, action, applied: false });
            }
            Some(request) if !request.applied => {
                request.applied = true;
                match &mut request.action {
                    CallKind::Read(content) => *content = register,
                    // An even chance to fail or be in doubt keeps all sorts of ends about.
                    CallKind::Write(content) if random.below(8) > 0 => register = *content,
                    CallKind::Write(content) => {
                        let end = match random.below(2) {
                            0 => WriteEnd::Failed,
                            _ => WriteEnd::Indeterminate,
                        };
                        if end == WriteEnd::Indeterminate {
                            late.push(*content);
                        }
                        let ended = if end == WriteEnd::Failed { time } else { u64::MAX };
                        calls.push(Call {
                            begun: request.begun,
                            ended,
                            action: request.action,
                            end,
                        });
                        *client = None;
                    }
                }
            }
            Some(request) => {
                let end = WriteEnd::Acknowledged;
                calls.push(Call { begun: request.begun, ended: time, action: request.action, end });
                *client = None;
            }
        }
    }
    // What is on its way at the end stays in doubt.
    let left = pending.into_iter().flatten();
    calls.extend(left.filter(|request| matches!(request.action, CallKind::Write(_))).map(
        |request| {
            let Pending { begun, action, .. } = request;
            Call { begun, ended: u64::MAX, action, end: WriteEnd::Indeterminate }
        },
    ));
    calls.sort_by_key(|call| (call.begun, call.ended));
    history(calls)
}

/// Returns the history of these calls on a register that holds a version from before.
pub fn history(calls: Vec<Call>) -> RecordHistory {
    let first_version = FIRST + 1;
    RecordHistory { record: 0, from: FROM, first_version, settled: true, cut: None, calls }
}

/// Changes one thing in a history: the content that a read found, the begin or end of a request, or
/// its outcome.
pub fn mutate(random: &mut Random, history: &mut RecordHistory) {
    let versions = history.calls.len() as u64 + 2;
    let index = random.below(history.calls.len() as u64) as usize;
    let call = &mut history.calls[index];
    match random.below(4) {
        0 if call.ended < u64::MAX => call.ended = call.begun + random.below(4),
        1 if call.ended < u64::MAX => {
            call.begun = FROM + random.below(call.ended - FROM + 1);
        }
        2 if matches!(call.action, CallKind::Write(_)) => {
            call.end = WriteEnd::Failed;
            call.ended = call.ended.min(call.begun + 3);
        }
        _ => {
            if let CallKind::Read(content) = &mut call.action {
                *content = match random.below(versions) {
                    0 => Content::Nothing,
                    n => Content::Version(FIRST + n as u32 - 1),
                };
            }
        }
    }
    history.calls.sort_by_key(|call| (call.begun, call.ended));
}

/// Reads the histories of a file as kvdyno exports it (see [`kvdyno_core::verify::History::edn`]),
/// one for each record.
pub fn recorded(name: &str) -> Vec<RecordHistory> {
    let path = format!("{}/tests/it/histories/{name}.edn", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut calls: BTreeMap<u64, Vec<Call>> = BTreeMap::new();
    let mut open: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for line in text.lines() {
        // {:index 7, :type :ok, :process 1, :time 31, :f :read, :value [62 1]}
        let words: Vec<&str> = line.split([' ', ',', '{', '}', '[', ']']).collect();
        let word = |name: &str| {
            let at = words.iter().position(|word| *word == name).expect(name);
            words[at + 1]
        };
        let at = words.iter().position(|word| *word == ":value").unwrap();
        let record = words[at + 2].parse().unwrap();
        let content = match words[at + 3] {
            "nil" => Content::Nothing,
            version => Content::Version(version.parse().unwrap()),
        };
        let action = match word(":f") {
            ":write" => CallKind::Write(content),
            _ => CallKind::Read(content),
        };
        let time = word(":time").parse().unwrap();
        let of_record = calls.entry(record).or_default();
        match word(":type") {
            ":invoke" => {
                open.insert(word(":process"), (record, of_record.len()));
                let end = WriteEnd::Indeterminate;
                of_record.push(Call { begun: time, ended: u64::MAX, action, end });
            }
            kind => {
                let (_, at) = open.remove(word(":process")).expect("it was invoked before");
                let call = &mut of_record[at];
                call.action = action;
                (call.ended, call.end) = match kind {
                    ":ok" => (time, WriteEnd::Acknowledged),
                    ":fail" => (time, WriteEnd::Failed),
                    _ => (u64::MAX, WriteEnd::Indeterminate),
                };
            }
        }
    }
    let history = |(record, calls)| RecordHistory {
        record,
        from: 0,
        first_version: 0,
        settled: true,
        cut: None,
        calls,
    };
    calls.into_iter().map(history).collect()
}
