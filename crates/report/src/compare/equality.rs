//! Checks that two sides may be compared: equal promises, data, load and client. A difference that makes them unequal
//! refuses the comparison; one that may matter is told beside it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::evidence::durability_text;
use crate::result::{Level, PART, PhaseResult, RunResult, Status, StoreRun};

use super::source::Source;

/// Members of a plan's groups that name or number something, and change no figure.
const NAMES_ONLY: [&str; 2] = ["name", "seed"];
/// Members of a plan's phases and groups that give a length and not the kind of work: told, not refused.
const LENGTHS: [&str; 3] = ["duration", "requests", "time_limit"];
/// Most characters of a value in a message.
const LONGEST_VALUE: usize = 60;

/// Differences between two sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Differences that make it another test.
    pub unequal: Vec<String>,
    /// Differences and doubts to keep in mind.
    pub cautions: Vec<String>,
}

impl Differences {
    /// Finds differences between the sides, and between the trials of each.
    #[must_use]
    pub fn between(first: &Source, second: &Source) -> Differences {
        let mut found = Differences::default();
        let Some(base) = first.runs().next() else { return found };
        for run in first.runs().skip(1).chain(second.runs()) {
            found.compare(base, run);
        }
        for source in [first, second] {
            found.doubts(source);
        }
        let mut seen = BTreeSet::new();
        found.unequal.retain(|line| seen.insert(line.clone()));
        found.cautions.retain(|line| seen.insert(line.clone()));
        found
    }

    fn compare(&mut self, first: (&RunResult, &StoreRun), second: (&RunResult, &StoreRun)) {
        let ((a, run_a), (b, run_b)) = (first, second);
        let (store_a, store_b) = (&run_a.store, &run_b.store);
        let known = (durability_text(run_a), durability_text(run_b));
        if store_a.durability.level != store_b.durability.level {
            self.unequal_if("durability", &known.0, &known.1);
        } else if known.0 != known.1 {
            let line = format!("durability is not equally known ({} and {})", known.0, known.1);
            self.cautions.push(line);
        }
        self.unequal_if(
            "consistency",
            &store_a.consistency.level.describe(),
            &store_b.consistency.level.describe(),
        );
        self.data(run_a, run_b);
        self.load(&a.suite.plan, &b.suite.plan);
        self.client(a, run_a, b, run_b);
        if a.seed != b.seed {
            self.cautions.push(format!("seeds differ: {} and {}", a.seed, b.seed));
        }
        if a.kvdyno.version != b.kvdyno.version || a.kvdyno.git != b.kvdyno.git {
            self.cautions.push("measured by different versions of kvdyno".to_owned());
        }
        self.hits(run_a, run_b);
        if a.host.kernel != b.host.kernel {
            self.cautions.push("kernels differ".to_owned());
        }
    }

    /// Warns where a side missed records: the figures are of hits, and a store that misses has less to do.
    fn hits(&mut self, first: &StoreRun, second: &StoreRun) {
        for phase in first.phases.iter().filter(|phase| !phase.prepares()) {
            let other = second.phases.iter().find(|other| other.name == phase.name);
            let both = (phase.hit_ratio(), other.and_then(PhaseResult::hit_ratio));
            let (Some(a), Some(b)) = both else { continue };
            if a < 1.0 || b < 1.0 {
                let percent = |ratio: f64| format!("{:.2} %", (ratio * 1e4).floor() / 1e2);
                self.cautions.push(format!(
                    "gets of phase {} found {} and {} of what they asked for: its figures are of hits",
                    phase.name,
                    percent(a),
                    percent(b)
                ));
            }
        }
    }

    fn unequal_if(&mut self, what: &str, first: &str, second: &str) {
        if first != second {
            self.unequal.push(format!("{what} differs ({} and {})", cut(first), cut(second)));
        }
    }

    fn data(&mut self, first: &StoreRun, second: &StoreRun) {
        let (Some(a), Some(b)) = (first.dataset, second.dataset) else { return };
        let told = |d: kvdyno_core::workload::Dataset| {
            format!(
                "{} records of {} field(s), keys of {} bytes",
                d.capacity, d.fields, d.key.length
            )
        };
        if (a.capacity, a.fields, a.key) != (b.capacity, b.fields, b.key) {
            self.unequal.push(format!("data differs ({} and {})", told(a), told(b)));
        }
    }

    /// Compares phases of the same name, member by member.
    fn load(&mut self, first: &Value, second: &Value) {
        let phases = |plan: &Value| plan["phases"].as_array().cloned().unwrap_or_default();
        let others = phases(second);
        for phase in phases(first) {
            let Some(other) = others.iter().find(|other| other["name"] == phase["name"]) else {
                let name = phase["name"].as_str().unwrap_or_default();
                self.cautions.push(format!("phase {name} is on one side only"));
                continue;
            };
            self.members(&phase, &phase, other, &["duration", "verify", "faults", "time_limit"]);
            let groups = |phase: &Value| phase["groups"].as_array().cloned().unwrap_or_default();
            let (a, b) = (groups(&phase), groups(other));
            if a.len() != b.len() {
                let name = phase["name"].as_str().unwrap_or_default();
                self.unequal.push(format!("phase {name} has {} and {} groups", a.len(), b.len()));
            }
            for (a, b) in a.iter().zip(&b) {
                let names = a.as_object().into_iter().flat_map(|members| members.keys());
                let names: Vec<&str> = names.map(String::as_str).collect();
                self.members(&phase, a, b, &names);
            }
        }
    }

    fn members(&mut self, phase: &Value, a: &Value, b: &Value, names: &[&str]) {
        for name in names.iter().filter(|name| !NAMES_ONLY.contains(name)) {
            if a[name] == b[name] {
                continue;
            }
            let phase = phase["name"].as_str().unwrap_or_default();
            let (a, b) = (cut(&a[name].to_string()), cut(&b[name].to_string()));
            let line = format!("{name} of phase {phase} differs ({a} and {b})");
            match LENGTHS.contains(name) {
                true => self.cautions.push(line),
                false => self.unequal.push(line),
            }
        }
    }

    fn client(&mut self, a: &RunResult, run_a: &StoreRun, b: &RunResult, run_b: &StoreRun) {
        let processor = |result: &RunResult| {
            let cpu = result.host.cpu.as_deref().unwrap_or("unknown processor");
            format!("{} × {cpu}", result.host.cores.unwrap_or(0))
        };
        self.unequal_if("the client's machine", &processor(a), &processor(b));
        // Results without a profile are of fully optimised builds, or of debug builds.
        let build = |result: &RunResult| match (&result.kvdyno.profile, result.kvdyno.debug) {
            (Some(profile), _) => profile.clone(),
            (None, true) => "debug".to_owned(),
            (None, false) => "dist".to_owned(),
        };
        self.unequal_if("kvdyno's build", &build(a), &build(b));
        // Only results of earlier versions are of a part of the load: see `RunResult::parse`.
        let part = |result: &RunResult| {
            let part = result.suite.changes.iter().find(|change| change.starts_with(PART));
            part.map_or_else(|| "the whole load".to_owned(), String::clone)
        };
        self.unequal_if("the part of the load", &part(a), &part(b));
        for phase in run_a.phases.iter().filter(|phase| !phase.prepares()) {
            let Some(other) = run_b.phases.iter().find(|other| other.name == phase.name) else {
                continue;
            };
            let threads = |count: usize| format!("{count} in phase {}", phase.name);
            self.unequal_if(
                "the number of client threads",
                &threads(phase.workers.len()),
                &threads(other.workers.len()),
            );
            if phase.tally.is_some() != other.tally.is_some() {
                self.unequal.push("only one side checked what it read".to_owned());
            }
        }
    }

    fn doubts(&mut self, source: &Source) {
        let count = source.trials.len();
        let of =
            |n: usize| if count > 1 { format!(" in {n} of {count} trials") } else { String::new() };
        for level in [Level::Invalid, Level::Suspect] {
            let doubted = source.runs().filter(|(_, run)| level_of(run) == Some(level));
            match doubted.count() {
                0 => {}
                n => self.cautions.push(format!(
                    "figures of {source} are {}{}, see the verdict",
                    level.name(),
                    of(n)
                )),
            }
        }
        match source.runs().filter(|(_, run)| run.status != Status::Complete).count() {
            0 => {}
            n => {
                self.cautions.push(format!("the run of {source} did not come to its end{}", of(n)))
            }
        }
    }
}

fn level_of(run: &StoreRun) -> Option<Level> {
    run.verdict.as_ref().map(|verdict| verdict.level)
}

/// Returns true if some run of a side must not be believed, or did not come to its end.
#[must_use]
pub fn is_invalid(source: &Source) -> bool {
    source.runs().any(|(_, run)| {
        level_of(run).is_none_or(|level| level == Level::Invalid) || run.status != Status::Complete
    })
}

/// Returns true if some run of a side is suspect or worse.
#[must_use]
pub fn is_suspect(source: &Source) -> bool {
    source.runs().any(|(_, run)| level_of(run).is_none_or(|level| level > Level::Valid))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::source::sources_of;
    use super::*;
    use crate::sample;

    #[test]
    fn a_part_of_a_load_is_another_test_than_the_whole() {
        let whole = sample::two_stores();
        let mut part = whole.clone();
        part.suite.changes.push(format!("{PART}2/3"));
        let side = |result: &RunResult| {
            sources_of(&[(PathBuf::from("nowhere"), result.clone())]).unwrap().remove(0)
        };
        let told = Differences::between(&side(&part), &side(&whole)).unequal;
        assert_eq!(told, ["the part of the load differs (--part 2/3 and the whole load)"]);
        assert!(Differences::between(&side(&part), &side(&part)).unequal.is_empty());
    }
}
