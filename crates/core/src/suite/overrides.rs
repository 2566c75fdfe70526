//! The changes of the command line to a suite. An option writes the key of the same name into the suite's document,
//! wherever the document describes the measured load, so that it is read and refused as in the file.

use std::time::Duration;

use crate::workload::Curve;

use super::document::{Document, Item};
use super::error::{Place, Problem, SuiteError};
use super::file::SuiteSpec;
use super::keys::{self, KeyLevel};
use crate::ground::hints;
use crate::ground::units::{format_count, format_duration, format_rate};

/// Changes of the command line to a suite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--scale`: factor of the records and requests; durations and rates stay.
    pub scale: Option<f64>,
    /// `--records`: number of records of the suite.
    pub records: Option<u64>,
    /// `--value`: size of the values of every phase, as typed.
    pub value: Option<String>,
    /// `--mix`: operations of each phase but those that make the records, as typed.
    pub mix: Option<String>,
    /// `--keys`: distribution of keys in each phase but those that make the records, as typed.
    pub keys: Option<String>,
    /// `--pipeline`: clients that share a connection, in every phase.
    pub pipeline: Option<u32>,
    /// `--clients`: number of clients in each phase; groups share them out in proportion to their own numbers.
    pub clients: Option<u32>,
    /// `--threads`: worker threads.
    pub threads: Option<u32>,
    /// `--rate`: requests a second of each phase but loads, shared out like clients.
    pub rate: Option<Curve>,
    /// `--duration`: duration of each phase but loads and inserts that stop by requests, instead of its requests.
    pub duration: Option<Duration>,
    /// `--requests`: requests of each phase but loads and inserts that stop by requests, instead of its duration.
    pub requests: Option<u64>,
    /// `--seed`: seed of everything that is random.
    pub seed: Option<u64>,
    /// `--linearizability`: histories are kept and judged in each phase that does not set the key otherwise.
    pub linearizability: bool,
    /// `--set`: changes of any key, each as typed: `phase.key=value`, `phase.group.key=value` or `key=value`.
    pub set: Vec<String>,
    /// `--slo`: the conditions of each search, as typed.
    pub slo: Option<String>,
    /// Processors that a sweep may use; `None`: those of this machine.
    pub processors: Option<u32>,
}

impl Overrides {
    /// Returns the options that change the measured load, as typed.
    pub(super) fn changes(&self) -> Vec<String> {
        let mut changes = Vec::new();
        let mut say = |option: &str, value: Option<String>| {
            changes.extend(value.map(|value| format!("{option} {value}")));
        };
        say("--records", self.records.map(format_count));
        say("--value", self.value.clone());
        say("--mix", self.mix.clone());
        say("--keys", self.keys.clone());
        say("--pipeline", self.pipeline.map(|pipeline| pipeline.to_string()));
        say("--clients", self.clients.map(|clients| clients.to_string()));
        say("--rate", self.rate.as_ref().map(Curve::to_string));
        say("--duration", self.duration.map(format_duration));
        say("--requests", self.requests.map(format_count));
        say("--slo", self.slo.clone());
        for set in &self.set {
            say("--set", Some(set.clone()));
        }
        changes.extend(self.linearizability.then(|| "--linearizability".to_owned()));
        changes
    }

    /// Checks the ranges of options, which their types do not.
    pub(super) fn check(&self) -> Result<(), SuiteError> {
        let fail = |option: &str, value: String, range: &str| {
            let place = Place::Argument(format!("--{option} {value}"));
            let (key, range) = (option.to_owned(), range.to_owned());
            Err(SuiteError::new(place, Problem::OutOfRange { key, value, range }, ""))
        };
        match self {
            Overrides { scale: Some(s), .. } if !(*s > 0.0 && *s <= 1e6) => {
                fail("scale", s.to_string(), "above 0 and at most 1000000")
            }
            Overrides { rate: Some(Curve::Constant { rate }), .. }
                if !(*rate > 0.0 && *rate <= 1e9) =>
            {
                fail("rate", format_rate(*rate), "above 0 and at most 1G/s")
            }
            Overrides { clients: Some(0), .. } => fail("clients", "0".into(), "at least 1"),
            Overrides { clients: Some(c), .. } if *c > super::file::MOST_CLIENTS => {
                fail("clients", c.to_string(), "at most 1M")
            }
            Overrides { threads: Some(0), .. } => fail("threads", "0".into(), "at least 1"),
            Overrides { requests: Some(0), .. } => fail("requests", "0".into(), "at least 1"),
            Overrides { requests: Some(r), .. } if *r > super::file::MOST => {
                fail("requests", format_count(*r), "at most 1T")
            }
            Overrides { duration: Some(d), .. } if d.is_zero() || d.as_secs() > 315_360_000 => {
                fail("duration", format_duration(*d), "above 0s and at most 3650d")
            }
            _ => Ok(()),
        }
    }

    /// Writes the options that are keys of the file into it.
    pub(super) fn edit(&self, document: &mut Document) -> Result<(), SuiteError> {
        for (key, value) in [("records", self.records), ("seed", self.seed)] {
            if let Some(value) = value {
                // As text: TOML's own numbers end at 63 bits.
                let text = format!("\"{value}\"");
                document.set(format!("--{key} {value}"), &[], &[key], &text)?;
            }
        }
        if self.linearizability {
            document.set("--linearizability".to_owned(), &[], &["linearizability"], "true")?;
        }
        self.set.iter().try_for_each(|text| set(document, text))?;
        if let Some(value) = &self.value {
            set_everywhere(document, "value", value)?;
        }
        if let Some(pipeline) = self.pipeline {
            set_everywhere(document, "pipeline", &pipeline.to_string())?;
        }
        for (key, value) in [("mix", &self.mix), ("keys", &self.keys)] {
            if let Some(value) = value {
                set_load(document, key, value)?;
            }
        }
        self.slo.iter().try_for_each(|slo| set_condition(document, slo))
    }
}

/// Sets a key at the top, and in each phase and group that has it, too.
fn set_everywhere(document: &mut Document, key: &str, value: &str) -> Result<(), SuiteError> {
    let option = format!("--{key} {value}");
    let before = document.clone();
    let phases = named(&before, &[], "phase").into_iter().map(|(_, at)| at);
    let groups = phases.clone().flat_map(|at| named(&before, &at, "group")).map(|(_, at)| at);
    let inner = phases.chain(groups).filter(|at| before.has(at, key));
    for at in std::iter::once(Vec::new()).chain(inner) {
        // Of a value only its size is meant: its seed and its fields stay.
        let path: &[&str] = if before.has_table(&at, key) { &[key, "size"] } else { &[key] };
        document.set(option.clone(), &at, path, value)?;
    }
    Ok(())
}

/// Sets a key in each phase but those that make the records. Refuses a phase with several groups: they differ in more
/// than one option could express.
fn set_load(document: &mut Document, key: &str, value: &str) -> Result<(), SuiteError> {
    let option = format!("--{key} {value}");
    let spec = SuiteSpec::read(document)?;
    let before = document.clone();
    for (name, at) in named(&before, &[], "phase") {
        let phase = spec.phases.iter().find(|phase| phase.name == name);
        if phase.is_some_and(|phase| spec.makes_records(phase)) {
            continue;
        }
        let groups = named(&before, &at, "group");
        if let [(first, _), _, ..] = &groups[..] {
            let problem =
                format!("phase `{name}` has {} groups of clients, each with its own", groups.len());
            let hint =
                format!("instead, write --set {name}.{first}.{key}={value}, and so for each");
            let place = Place::Argument(option);
            return Err(SuiteError::new(place, Problem::Conflict(problem), hint));
        }
        document.set(option.clone(), &at, &[key], value)?;
        let mut own = groups.iter().filter(|(_, at)| before.has(at, key));
        own.try_for_each(|(_, at)| document.set(option.clone(), at, &[key], value))?;
    }
    Ok(())
}

/// Carries out `--slo` in every phase that is a search.
fn set_condition(document: &mut Document, slo: &str) -> Result<(), SuiteError> {
    let option = format!("--slo {slo}");
    let phases = named(document, &[], "phase");
    let before = document.clone();
    let searches = phases.iter().filter(|(_, at)| before.has(at, "slo"));
    let mut found = false;
    for (_, at) in searches {
        found = true;
        document.set(option.clone(), at, &["slo"], slo)?;
    }
    if found {
        return Ok(());
    }
    let problem = Problem::Conflict("no phase of this suite is a search".to_owned());
    let hint = "use `kvdyno capacity`, or give a phase the key `slo`";
    Err(SuiteError::new(Place::Argument(option), problem, hint))
}

/// Carries out one `--set`.
fn set(document: &mut Document, text: &str) -> Result<(), SuiteError> {
    let option = format!("--set {text}");
    let fail =
        |problem, hint: &str| Err(SuiteError::new(Place::Argument(option.clone()), problem, hint));
    let Some((path, value)) = text.split_once('=') else {
        let problem = Problem::Conflict("it has no `=`".to_owned());
        return fail(problem, "write --set PHASE.KEY=VALUE");
    };
    let path: Vec<&str> = path.split('.').map(str::trim).collect();
    let (first, rest) = (path[0], &path[1..]);
    let phases = named(document, &[], "phase");
    if let Some((_, at)) = phases.iter().find(|(name, _)| name == first && !rest.is_empty()) {
        let groups = named(document, at, "group");
        let group = groups.iter().find(|(name, _)| name == rest[0] && rest.len() > 1);
        return match group {
            Some((_, at)) => document.set(option, at, &rest[1..], value),
            None => document.set(option, at, rest, value),
        };
    }
    let keys = keys::names(&[KeyLevel::Suite, KeyLevel::Clients]);
    if keys.contains(&first) {
        return document.set(option, &[], &path, value);
    }
    let mut words: Vec<&str> = phases.iter().map(|(name, _)| name.as_str()).collect();
    if rest.is_empty() {
        words = keys;
    }
    let what = if rest.is_empty() { "a key of the suite" } else { "a phase of this suite" };
    let is_group =
        |at: &[usize]| named(document, at, "group").iter().any(|(name, _)| name == first);
    let hint = match phases.iter().find(|(_, at)| is_group(at)) {
        Some((phase, _)) => format!("it is a group: write --set {phase}.{text}"),
        None => hints::hint(first, &words),
    };
    fail(Problem::UnknownWord { word: first.to_owned(), what: what.to_owned() }, &hint)
}

/// Returns the tables of the list at `key` below the table at `at`: the `name` of each, with its path.
pub(super) fn named(document: &Document, at: &[usize], key: &str) -> Vec<(String, Vec<usize>)> {
    let mut node = &document.root;
    for index in at {
        node = match &node.item {
            Item::Table(entries) => &entries[*index].node,
            Item::List(nodes) => &nodes[*index],
            _ => return Vec::new(),
        };
    }
    let Item::Table(entries) = &node.item else { return Vec::new() };
    let Some(position) = entries.iter().position(|entry| entry.key == key) else {
        return Vec::new();
    };
    let Item::List(tables) = &entries[position].node.item else { return Vec::new() };
    let name_of = |(index, table): (usize, &super::document::Node)| {
        let Item::Table(entries) = &table.item else { return None };
        let name = entries.iter().find(|entry| entry.key == "name")?;
        let Item::Text(name) = &name.node.item else { return None };
        Some((name.clone(), [at, &[position, index]].concat()))
    };
    tables.iter().enumerate().filter_map(name_of).collect()
}
