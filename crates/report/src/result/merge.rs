//! Parts of one load, carried by several processes, become one result: histograms and counts are
//! added, the wall clock is the union. Nothing is averaged, and nothing of one part stands for all: every
//! field of a result is decided here by name, so that a new one does not compile until it is.

mod judged;
mod phases;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use kvdyno_core::ground::numbers::duration_text;
use kvdyno_core::suite::Plan;
use kvdyno_core::workload::Part;

use super::{Build, HistogramError, Host, MergedPart, RunResult, Status, StoreResult, StoreRun};

/// What to do about parts that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Refuse to merge.
    Refuse,
    /// Merge what there is; `merged_from` tells which parts those are.
    Allow,
}

/// Results that are not parts of one load.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Fewer than two results.
    #[error("merge needs the results of two or more parts; name each part's folder")]
    TooFew,
    /// They differ in something that all parts share.
    #[error("part {part} differs from the first in its {what}: name the parts of one load")]
    Differs {
        /// Number of the part, from 1.
        part: u32,
        /// What differs.
        what: String,
    },
    /// The same part twice.
    #[error("part {part}/{count} is there twice; name each part's folder once")]
    Twice {
        /// Number of the part, from 1.
        part: u32,
        /// Number of parts.
        count: u32,
    },
    /// A part is missing.
    #[error("part {part}/{count} is missing; add its folder")]
    Missing {
        /// Number of the part, from 1.
        part: u32,
        /// Number of parts.
        count: u32,
    },
    /// A histogram cannot be decoded.
    #[error("phase {phase}: {source}; name results as kvdyno wrote them")]
    Histogram {
        /// Name of the phase.
        phase: String,
        /// What is wrong.
        source: HistogramError,
    },
}

/// Makes one result of the parts of a load.
///
/// # Errors
/// [`MergeError`] if suite, seed, stores or phases differ, or parts overlap or are missing.
pub fn merge(parts: &[RunResult], absent: Absent) -> Result<RunResult, MergeError> {
    let [first, rest @ ..] = parts else { return Err(MergeError::TooFew) };
    if rest.is_empty() {
        return Err(MergeError::TooFew);
    }
    check_parts(parts, absent)?;
    for other in rest {
        check_same_load(first, other)?;
    }
    let mut whole = first.clone();
    whole.command = without_part(&first.command);
    for number in 0..whole.runs.len() {
        whole.runs[number] = whole_run(parts, number)?;
    }
    for other in rest {
        unite(&mut whole, other.clone());
    }
    phases::set_offsets(&mut whole);
    whole.part = Part::WHOLE;
    whole.merged_from = parts
        .iter()
        .map(|p| MergedPart { part: p.part, started: p.started.clone(), host: p.host.clone() })
        .collect();
    judge(&mut whole, parts);
    Ok(whole)
}

/// Everything of a result but its runs.
fn unite(whole: &mut RunResult, other: RunResult) {
    let RunResult {
        schema_version,
        kvdyno,
        command: _,
        started,
        ended,
        status,
        host,
        // The same: see `check_same_load`.
        seed: _,
        suite: _,
        // The whole's own.
        part: _,
        merged_from: _,
        trial,
        compare_unequal,
        cost,
        runs: _,
    } = other;
    whole.schema_version = whole.schema_version.max(schema_version);
    unite_builds(&mut whole.kvdyno, kvdyno);
    whole.started = whole.started.clone().min(started);
    whole.ended = latest(whole.ended.take(), ended);
    whole.status = worse(whole.status.clone(), status);
    whole.host = alike(&whole.host, &host);
    whole.trial = whole.trial.filter(|mine| Some(*mine) == trial);
    whole.compare_unequal |= compare_unequal;
    // The servers are the same: prices that differ are no price.
    whole.cost = whole.cost.take().filter(|mine| Some(mine) == cost.as_ref());
}

fn unite_builds(mine: &mut Build, theirs: Build) {
    let Build { version: _, git, debug, profile } = theirs;
    mine.git = mine.git.take().filter(|mine| Some(mine) == git.as_ref());
    mine.debug |= debug;
    mine.profile = mine.profile.take().filter(|mine| Some(mine) == profile.as_ref());
}

/// What the machines have in common.
fn alike(mine: &Host, theirs: &Host) -> Host {
    let Host {
        os,
        kernel,
        architecture,
        cpu,
        cores,
        memory_bytes,
        cpu_governor,
        clock_source,
        huge_pages,
    } = mine;
    fn same<T: Clone + PartialEq>(mine: &Option<T>, theirs: &Option<T>) -> Option<T> {
        mine.clone().filter(|_| mine == theirs)
    }
    let word = |mine: &String, theirs: &String| match mine == theirs {
        true => mine.clone(),
        false => "several".to_owned(),
    };
    Host {
        os: word(os, &theirs.os),
        kernel: same(kernel, &theirs.kernel),
        architecture: word(architecture, &theirs.architecture),
        cpu: same(cpu, &theirs.cpu),
        cores: same(cores, &theirs.cores),
        memory_bytes: same(memory_bytes, &theirs.memory_bytes),
        cpu_governor: same(cpu_governor, &theirs.cpu_governor),
        clock_source: same(clock_source, &theirs.clock_source),
        huge_pages: same(huge_pages, &theirs.huge_pages),
    }
}

/// The command that carries the whole load in one process.
fn without_part(command: &[String]) -> Vec<String> {
    let mut words = command.iter();
    let mut whole = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--part" | "--start-at" => {
                words.next();
            }
            word if word.starts_with("--part=") || word.starts_with("--start-at=") => {}
            _ => whole.push(word.clone()),
        }
    }
    whole
}

/// The run of one store, by all parts.
fn whole_run(parts: &[RunResult], number: usize) -> Result<StoreRun, MergeError> {
    let runs: Vec<(u32, StoreRun)> =
        (parts.iter()).map(|part| (part.part.index + 1, part.runs[number].clone())).collect();
    let of_parts = said_by_parts(&runs);
    let mut runs = runs.into_iter().map(|(part, mut run)| {
        run.phases.iter_mut().for_each(|phase| phases::of_part(phase, part));
        run
    });
    let mut whole = runs.next().ok_or(MergeError::TooFew)?;
    for (other, part) in runs.zip(&parts[1..]) {
        unite_runs(&mut whole, other, part.part)?;
    }
    whole.of_parts = of_parts;
    whole.of_parts.extend(not_known(&whole));
    for (index, phase) in whole.phases.iter_mut().enumerate() {
        let of_parts: Vec<_> = parts.iter().map(|p| &p.runs[number].phases[index]).collect();
        phase.apart = phases::apart(&of_parts);
    }
    Ok(whole)
}

fn unite_runs(whole: &mut StoreRun, other: StoreRun, part: Part) -> Result<(), MergeError> {
    let StoreRun {
        store,
        testbed,
        started,
        ended,
        status,
        cause,
        dataset: _,
        // Judged anew over the whole.
        verdict: _,
        claims: _,
        evidence: _,
        notes,
        // The whole's own.
        of_parts: _,
        phases,
        skipped,
        // A search looks for the rate of its own clients: those of parts do not add up.
        capacity: _,
    } = other;
    unite_stores(&mut whole.store, store);
    for note in notes {
        if !whole.notes.contains(&note) {
            whole.notes.push(note);
        }
    }
    whole.testbed = match (whole.testbed.take(), testbed) {
        (Some(mine), Some(theirs)) if mine.nodes != theirs.nodes => {
            return Err(differs(part.index, "testbed: each part started its own"));
        }
        (mine, theirs) => mine.or(theirs),
    };
    whole.started = whole.started.clone().min(started);
    whole.ended = latest(whole.ended.take(), ended);
    whole.status = worse(whole.status.clone(), status);
    whole.cause = whole.cause.or(cause);
    whole.capacity.clear();
    whole.evidence.clear();
    for phase in skipped {
        if !whole.skipped.contains(&phase) {
            whole.skipped.push(phase);
        }
    }
    for (mine, theirs) in whole.phases.iter_mut().zip(phases) {
        let name = mine.name.clone();
        phases::unite(mine, theirs)
            .map_err(|source| MergeError::Histogram { phase: name, source })?;
    }
    Ok(())
}

/// The store as its parts saw it alike.
fn unite_stores(mine: &mut StoreResult, theirs: StoreResult) {
    let StoreResult {
        // A part may go to another node: see `said_by_parts`.
        url: _,
        name: _,
        version: _,
        durability: _,
        consistency: _,
        capabilities: _,
        ttl_precision_ns,
        timeout_ns,
        settings,
    } = theirs;
    mine.ttl_precision_ns = mine.ttl_precision_ns.max(ttl_precision_ns);
    mine.timeout_ns = mine.timeout_ns.max(timeout_ns);
    mine.settings.retain(|setting| settings.contains(setting));
}

/// What nobody can tell of all parts together.
fn not_known(whole: &StoreRun) -> Vec<String> {
    let mut notes = vec![
        "each part's moments are by its own machine's calendar: how far these are apart was not measured"
            .to_owned(),
        "for how long nothing succeeded in any part is not known: each part's own result tells it of its clients"
            .to_owned(),
    ];
    if whole.phases.iter().any(|phase| !phase.faults.is_empty()) {
        notes.push(
            "what followed a fault is not known of all parts: each part's own result tells it of its clients"
                .to_owned(),
        );
    }
    notes
}

/// What each part has to say for itself: its node, its bottlenecks, its search.
fn said_by_parts(runs: &[(u32, StoreRun)]) -> Vec<String> {
    let mut said = Vec::new();
    let same_url = runs.iter().all(|(_, run)| run.store.url == runs[0].1.store.url);
    for (part, run) in runs {
        if !same_url {
            said.push(format!("part {part}: reached the store at {}", run.store.url));
        }
        for (index, phase) in run.phases.iter().enumerate().filter(|(_, p)| !p.prepares()) {
            let began = runs.iter().map(|(_, run)| run.phases[index].started_at());
            let late = phase.started_at().zip(began.min().flatten());
            let late = late.map_or(0, |(began, first)| phases::nanos_between(first, began));
            if late > 0 {
                let late = duration_text(late as f64);
                said.push(format!("part {part}: began {} {late} after the first", phase.label));
            }
            let limit = phase.limit.as_ref().map(|l| l.text(|pid| format!("process {pid}")));
            said.extend(limit.map(|limit| format!("part {part}: {}: {limit}", phase.label)));
        }
        for capacity in &run.capacity {
            let found =
                capacity.carried.map_or_else(|| "no rate".to_owned(), |r| format!("{r:.0}/s"));
            said.push(format!("part {part}: {} found {found} for its own clients", capacity.phase));
        }
    }
    said
}

/// Judges measurement and claims by what the parts measured together.
fn judge(whole: &mut RunResult, parts: &[RunResult]) {
    let plan: Option<Plan> = serde_json::from_value(whole.suite.plan.clone()).ok();
    for (number, run) in whole.runs.iter_mut().enumerate() {
        let of_parts: Option<Vec<_>> = (parts.iter())
            .map(|part| Some((part.part.index + 1, part.runs[number].verdict.as_ref()?)))
            .collect();
        // A part that was not judged leaves the whole without a verdict.
        run.verdict = of_parts.map(|of_parts| judged::verdict(run, &of_parts, plan.as_ref()));
        run.claims = plan.iter().flat_map(|plan| crate::claims::judge(plan, run)).collect();
    }
}

fn check_parts(parts: &[RunResult], absent: Absent) -> Result<(), MergeError> {
    let count = parts[0].part.count;
    let mut seen = BTreeSet::new();
    for Part { index, count: theirs } in parts.iter().map(|p| p.part) {
        if theirs != count || index >= count {
            return Err(differs(index, "number of parts"));
        }
        if !seen.insert(index) {
            return Err(MergeError::Twice { part: index + 1, count });
        }
    }
    match (0..count).find(|index| !seen.contains(index)) {
        Some(index) if absent == Absent::Refuse => {
            Err(MergeError::Missing { part: index + 1, count })
        }
        _ => Ok(()),
    }
}

fn check_same_load(first: &RunResult, other: &RunResult) -> Result<(), MergeError> {
    let part = other.part.index;
    let same = |same: bool, what: &str| if same { Ok(()) } else { Err(differs(part, what)) };
    same(first.suite == other.suite, "suite")?;
    same(first.seed == other.seed, "seed")?;
    same(first.kvdyno.version == other.kvdyno.version, "version of kvdyno")?;
    same(first.runs.len() == other.runs.len(), "number of stores")?;
    for (mine, theirs) in first.runs.iter().zip(&other.runs) {
        let (a, b) = (&mine.store, &theirs.store);
        same(a.name == b.name && a.version == b.version, "store")?;
        same(a.durability == b.durability && a.consistency == b.consistency, "promises")?;
        let dataset = |run: &StoreRun| run.dataset.map(|d| (d.id, d.fields, d.key, d.capacity));
        same(a.capabilities == b.capabilities, "capabilities of the store")?;
        same(dataset(mine) == dataset(theirs), "dataset")?;
        let phases = |run: &StoreRun| -> Vec<(u16, String, usize)> {
            run.phases.iter().map(|p| (p.index, p.name.clone(), p.groups.len())).collect()
        };
        same(phases(mine) == phases(theirs), "phases")?;
    }
    Ok(())
}

fn differs(index: u32, what: &str) -> MergeError {
    MergeError::Differs { part: index.saturating_add(1), what: what.to_owned() }
}

/// RFC 3339 moments of one precision sort as text; a part without an end has none for the whole.
fn latest(a: Option<String>, b: Option<String>) -> Option<String> {
    a.zip(b).map(|(a, b)| a.max(b))
}

fn worse(a: Status, b: Status) -> Status {
    let badness = |status: &Status| match status {
        Status::Complete => 0,
        Status::Running => 1,
        Status::Interrupted => 2,
        Status::Failed { .. } => 3,
    };
    if badness(&b) > badness(&a) { b } else { a }
}
