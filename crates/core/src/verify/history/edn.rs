//! A history in the format in which Jepsen keeps its own (`history.edn`): one map a line, an
//! invocation and a completion for each operation, values as `[record content]` of one register for
//! each record, as jepsen.independent writes them. A register is `nil` before its first write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::{Call, CallKind, Content, History, RecordHistory};
use crate::measure::Nanos;
use crate::verify::WriteEnd;

/// A line of the text to be written.
struct Event {
    time: Nanos,
    /// Stage of the operation: 0 for its invocation, 1 for its completion. Of events at the same
    /// time invocations come first, so that the operations overlap.
    stage: u8,
    operation: usize,
}

/// One operation of the text. What was there before the history is an operation, too: a write.
struct Operation {
    record: u64,
    call: Call,
}

impl History {
    /// Writes the history as text, in Jepsen's EDN.
    ///
    /// Times are ns since the history began. Processes are numbered so that each has one operation
    /// at a time, and none after one that came to no end. What a record held before is written by an
    /// operation at time 0, which comes to an end if nothing else from before can take effect.
    /// Reads that say nothing (see [`RecordHistory`]) are left out.
    #[must_use]
    pub fn edn(&self) -> String {
        let operations: Vec<Operation> = self.records.iter().flat_map(operations).collect();
        let last = operations.iter().map(|o| o.call).map(|c| finite(c.ended).unwrap_or(c.begun));
        let after_all = last.max().unwrap_or(0) + 1;
        let mut events: Vec<Event> = (0..)
            .zip(&operations)
            .flat_map(|(operation, Operation { call, .. })| {
                let ended = finite(call.ended).unwrap_or(after_all);
                [(call.begun, 0), (ended, 1)].map(|(time, stage)| Event { time, stage, operation })
            })
            .collect();
        events.sort_by_key(|event| (event.time, event.stage));
        write_all(&operations, &events)
    }
}

fn finite(moment: Nanos) -> Option<Nanos> {
    (moment < Nanos::MAX).then_some(moment)
}

fn write_all(operations: &[Operation], events: &[Event]) -> String {
    let mut text = String::new();
    let mut free: BTreeSet<u64> = BTreeSet::new();
    let mut busy: BTreeMap<usize, u64> = BTreeMap::new();
    let mut processes = 0;
    for (index, event) in events.iter().enumerate() {
        let Operation { record, call } = &operations[event.operation];
        let process = match event.stage {
            0 => free.pop_first().unwrap_or_else(|| {
                processes += 1;
                processes - 1
            }),
            _ => busy.remove(&event.operation).expect("it was invoked before"),
        };
        let kind = match (event.stage, call.end) {
            (0, _) => {
                busy.insert(event.operation, process);
                ":invoke"
            }
            (_, WriteEnd::Acknowledged) => ":ok",
            (_, WriteEnd::Failed) => ":fail",
            (_, WriteEnd::Indeterminate) => ":info",
        };
        if event.stage == 1 && call.end != WriteEnd::Indeterminate {
            free.insert(process);
        }
        let (function, value) = match call.action {
            CallKind::Write(content) => (":write", value(content)),
            CallKind::Read(_) if event.stage == 0 => (":read", "nil".to_owned()),
            CallKind::Read(content) => (":read", value(content)),
        };
        let _ = writeln!(
            text,
            "{{:index {index}, :type {kind}, :process {process}, :time {}, :f {function}, \
             :value [{record} {value}]}}",
            event.time
        );
    }
    text
}

/// Formats a content as a value of EDN; a version of an earlier run is negative.
fn value(content: Content) -> String {
    match content {
        Content::Nothing => "nil".to_owned(),
        Content::Version(version) => version.to_string(),
        Content::Earlier(version) => format!("-{version}"),
    }
}

/// Lists the record's operations: first, at time 0, writes of what was there before, then its calls
/// with times from 1 on.
fn operations(history: &RecordHistory) -> Vec<Operation> {
    let since = |moment: Nanos| match finite(moment) {
        Some(moment) => moment.saturating_sub(history.from) + 1,
        None => Nanos::MAX,
    };
    let written = history.written();
    let informative = history.calls.iter().filter(|call| !history.is_mute(call, &written));
    let calls: Vec<Call> = informative
        .map(|call| Call { begun: since(call.begun), ended: since(call.ended), ..*call })
        .collect();
    let before: BTreeSet<Content> = calls
        .iter()
        .filter_map(|call| match call.action {
            CallKind::Read(content) if content != Content::Nothing => Some(content),
            _ => None,
        })
        .filter(|content| history.is_from_before(*content))
        .collect();
    let (ended, end) = match history.settled {
        true => (0, WriteEnd::Acknowledged),
        false => (Nanos::MAX, WriteEnd::Indeterminate),
    };
    let before = before.into_iter().map(|content| {
        let action = CallKind::Write(content);
        Call { begun: 0, ended, action, end }
    });
    before.chain(calls).map(|call| Operation { record: history.record, call }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(begun: Nanos, ended: Nanos, action: CallKind, end: WriteEnd) -> Call {
        Call { begun, ended, action, end }
    }

    #[test]
    fn the_file_is_what_jepsen_would_have_written() {
        let (read, write) = (CallKind::Read, CallKind::Write);
        let ok = WriteEnd::Acknowledged;
        let calls = vec![
            call(1_000, 1_020, write(Content::Version(2)), ok),
            call(1_010, 1_030, read(Content::Version(1)), ok),
            call(1_040, Nanos::MAX, write(Content::Version(3)), WriteEnd::Indeterminate),
            call(1_050, 1_060, write(Content::Version(4)), WriteEnd::Failed),
            call(1_070, 1_080, read(Content::Nothing), ok),
        ];
        let record = RecordHistory {
            record: 62,
            from: 1_000,
            first_version: 2,
            settled: true,
            cut: None,
            calls,
        };
        let text = History { records: vec![record] }.edn();
        let expected = "\
{:index 0, :type :invoke, :process 0, :time 0, :f :write, :value [62 1]}
{:index 1, :type :ok, :process 0, :time 0, :f :write, :value [62 1]}
{:index 2, :type :invoke, :process 0, :time 1, :f :write, :value [62 2]}
{:index 3, :type :invoke, :process 1, :time 11, :f :read, :value [62 nil]}
{:index 4, :type :ok, :process 0, :time 21, :f :write, :value [62 2]}
{:index 5, :type :ok, :process 1, :time 31, :f :read, :value [62 1]}
{:index 6, :type :invoke, :process 0, :time 41, :f :write, :value [62 3]}
{:index 7, :type :invoke, :process 1, :time 51, :f :write, :value [62 4]}
{:index 8, :type :fail, :process 1, :time 61, :f :write, :value [62 4]}
{:index 9, :type :invoke, :process 1, :time 71, :f :read, :value [62 nil]}
{:index 10, :type :ok, :process 1, :time 81, :f :read, :value [62 nil]}
{:index 11, :type :info, :process 0, :time 82, :f :write, :value [62 3]}
";
        assert_eq!(text, expected);
    }

    #[test]
    fn reads_that_say_nothing_are_left_out() {
        let read = |begun, ended, content| {
            call(begun, ended, CallKind::Read(content), WriteEnd::Acknowledged)
        };
        let calls = vec![
            read(10, 20, Content::Nothing),
            read(30, 60, Content::Version(9)),
            read(30, 49, Content::Earlier(7)),
        ];
        let record = RecordHistory {
            record: 0,
            from: 10,
            first_version: 2,
            settled: false,
            cut: Some(50),
            calls,
        };
        let text = History { records: vec![record] }.edn();
        let values: Vec<&str> =
            text.lines().filter_map(|line| line.split(":type ").nth(1)).collect();
        let expected = [
            ":invoke, :process 0, :time 0, :f :write, :value [0 -7]}",
            ":invoke, :process 1, :time 21, :f :read, :value [0 nil]}",
            ":ok, :process 1, :time 40, :f :read, :value [0 -7]}",
            ":info, :process 0, :time 41, :f :write, :value [0 -7]}",
        ];
        assert_eq!(values, expected);
    }
}
