//! Everything that a reader needs to repeat the run: stores, testbeds, the machine, the command and the plan.

use super::subject::{StoreSubject, Subject};
use super::{Block, DataColumn, DataRow, DataTable};
use crate::cell::Cell;
use crate::result::{StoreRun, TestbedResult};
use kvdyno_core::ground::numbers::{bytes_text, duration_text, grouped};
use kvdyno_core::store::Capabilities;

/// Builds what a store can do, how it is set, and how its testbed was set up.
pub(super) fn of_store(store: &StoreSubject<'_>) -> Vec<Block> {
    let of_testbed = store.run.testbed.iter().flat_map(of_testbed);
    std::iter::once(Block::Facts(of_driver(store.run))).chain(of_testbed).collect()
}

fn of_driver(run: &StoreRun) -> Vec<(String, Cell)> {
    let store = &run.store;
    let fact = |name: &str, value: String| (name.to_owned(), Cell::Text(value));
    let mut facts = vec![
        fact("time allowed for a request", duration_text(store.timeout_ns as f64)),
        fact("can also do", capabilities(store.capabilities)),
    ];
    facts.extend(run.dataset.map(|dataset| {
        let text = format!(
            "{} records at most, {}-byte keys, {} field(s)",
            grouped(dataset.capacity as f64),
            dataset.key.length,
            dataset.fields
        );
        fact("data", text)
    }));
    facts.extend(settings(&store.settings));
    facts
}

fn settings(all: &[(String, String)]) -> impl Iterator<Item = (String, Cell)> {
    let shown = |value: &str| if value.is_empty() { "(empty)" } else { value }.to_owned();
    all.iter().map(move |(name, value)| (name.clone(), Cell::Text(shown(value))))
}

fn capabilities(has: Capabilities) -> String {
    let all = [
        (has.scan, "scans"),
        (has.batch_get, "batches of reads"),
        (has.batch_put, "batches of writes"),
        (has.ttl, "time to live"),
        (has.fields, "fields written apart"),
        (has.pipeline, "pipelining"),
        (has.may_forget, "may forget under memory pressure"),
        (has.fabricates, "stores nothing, makes values up"),
        (has.may_apply_again, "its driver sends requests again"),
    ];
    let words: Vec<&str> = all.iter().filter(|(has, _)| *has).map(|(_, word)| *word).collect();
    if words.is_empty() {
        "nothing beyond get, put and delete".to_owned()
    } else {
        words.join(", ")
    }
}

fn of_testbed(testbed: &TestbedResult) -> Vec<Block> {
    let text = |text: &str| Cell::Text(text.to_owned());
    let steps = DataTable {
        caption: format!("Testbed {}", testbed.request),
        columns: vec![DataColumn::words("Step of the set-up"), DataColumn::figures("Took")],
        rows: (testbed.steps.iter())
            .map(|step| DataRow::new([text(&step.name), Cell::Time(step.took_ns)]))
            .collect(),
        ..DataTable::default()
    };
    let nodes = DataTable {
        columns: ["Node", "Address", "Role"].map(DataColumn::words).into(),
        rows: (testbed.nodes.iter())
            .map(|node| {
                let role = node.role.as_deref().map_or(Cell::Blank, text);
                DataRow::new([text(&node.name), text(&node.address), role])
            })
            .collect(),
        ..DataTable::default()
    };
    let mut blocks: Vec<Block> = steps.block().into_iter().chain(nodes.block()).collect();
    if !testbed.changed.is_empty() {
        blocks.push(Block::sentence("settings that differ from the server's defaults"));
        blocks.push(Block::Facts(settings(&testbed.changed).collect()));
    }
    let all = &testbed.configuration;
    let name = format!("Whole effective configuration ({} settings)", all.len());
    blocks.push(Block::Folded(name, vec![Block::Facts(settings(all).collect())]));
    blocks
}

/// Builds what the machine is that the load came from.
pub(super) fn of_host(subject: &Subject<'_>) -> Vec<Block> {
    let host = &subject.result.host;
    let facts = [
        ("operating system", Some(host.os.clone())),
        ("kernel", host.kernel.clone()),
        ("architecture", Some(host.architecture.clone())),
        ("CPU", host.cpu.clone()),
        ("CPUs", host.cores.map(|cores| cores.to_string())),
        ("memory", host.memory_bytes.map(|bytes| bytes_text(bytes as f64))),
        ("frequency governor", host.cpu_governor.clone()),
        ("clock source", host.clock_source.clone()),
        ("transparent huge pages", host.huge_pages.clone()),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    vec![Block::Facts(known.map(|(name, value)| (name, Cell::Text(value))).collect())]
}

/// Builds the command that was typed and what came of it.
pub(super) fn of_command(subject: &Subject<'_>) -> Vec<Block> {
    let plan = &subject.result.suite.plan;
    let plan = serde_json::to_string_pretty(plan).expect("a plan is plain JSON");
    vec![
        Block::Code(subject.result.command.join(" ")),
        Block::Folded("Suite, as it was resolved".to_owned(), vec![Block::Code(plan)]),
    ]
}
