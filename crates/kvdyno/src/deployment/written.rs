//! The deployment as it came to be, written as a plain deployment file (docs/TESTBEDS.md): a run takes its nodes and load
//! machines from there, like those of a file that somebody wrote by hand.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::environment::{self, address, node_addresses, ports};
use super::file::LifeFile;
use super::machines::MachineKind;
use super::record::Record;
use super::steps::StepTime;
use crate::exit::Failure;

/// Name of the file, in the record's folder.
const NAME: &str = "nodes.toml";

/// A plain deployment file.
#[derive(Serialize)]
struct Plain {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    ready_within: String,
    configuration: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    commands: BTreeMap<String, String>,
    node: Vec<PlainNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    load: Vec<PlainLoad>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    step: Vec<PlainStep>,
}

/// A node of the store: one port of a machine.
#[derive(Serialize)]
struct PlainNode {
    name: String,
    address: String,
    outer: String,
}

/// A load machine.
#[derive(Serialize)]
struct PlainLoad {
    name: String,
    start: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    outer: String,
    inner: String,
}

/// A step that was done before the run.
#[derive(Serialize)]
struct PlainStep {
    name: String,
    took: String,
}

/// Writes the file. Returns its path.
///
/// # Errors
/// [`Failure`] if it cannot be written.
pub fn write(
    file: &LifeFile,
    record: &Record,
    times: &[StepTime],
    tuned: BTreeMap<String, String>,
) -> Result<PathBuf, Failure> {
    let path = record.folder().join(NAME);
    let mut plain = plain(file, record, times)?;
    plain.configuration.extend(tuned);
    let text = toml::to_string(&plain).map_err(Failure::internal)?;
    std::fs::write(&path, text).map_err(|error| {
        Failure::internal(format!("cannot write {}: {error}; make room there", path.display()))
    })?;
    Ok(path)
}

fn plain(file: &LifeFile, record: &Record, times: &[StepTime]) -> Result<Plain, Failure> {
    let machines = &record.entry.machines;
    let addresses = node_addresses(file, machines).join(",");
    let url = file.variables.expand(&file.url, &[("NODES", &addresses)]).map_err(Failure::usage)?;
    let nodes = machines.iter().filter(|machine| machine.kind == MachineKind::Node);
    let node = nodes.flat_map(|machine| {
        ports(file).map(|port| PlainNode {
            name: match file.ports {
                1 => machine.name.clone(),
                _ => format!("{}-{port}", machine.name),
            },
            address: address(&machine.inner, port),
            outer: machine.outer.clone(),
        })
    });
    let loads = machines.iter().filter(|machine| machine.kind == MachineKind::Load);
    let load = loads.zip(file.agent.iter().cycle()).map(|(machine, lines)| PlainLoad {
        name: machine.name.clone(),
        start: file.line(&lines.start),
        end: lines.end.as_deref().map(|line| file.line(line)),
        outer: machine.outer.clone(),
        inner: machine.inner.clone(),
    });
    let took = |time: &StepTime| PlainStep {
        name: format!("deployment: {}", time.name),
        took: format!("{}ms", time.took.as_millis()),
    };
    Ok(Plain {
        url,
        version: file.version.clone(),
        ready_within: format!("{}ms", file.ready_within.as_millis()),
        configuration: file.configuration.clone(),
        variables: environment::of_all(file, record).into_iter().collect(),
        commands: file
            .commands
            .iter()
            .map(|(name, line)| (name.clone(), file.line(line)))
            .collect(),
        node: node.collect(),
        load: load.collect(),
        step: times.iter().map(took).collect(),
    })
}
