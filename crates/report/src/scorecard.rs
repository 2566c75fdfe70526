//! Criteria of a good key-value benchmark that a run met, so that a quick look is never mistaken
//! for a full one; and the headline of a standard suite. The criteria are those that the authors of
//! the published evaluations named.

use kvdyno_core::evidence::{Claimed, Evidence, EvidenceStatus, OpenReason, ViolationKind};
use kvdyno_core::store::Durability;
use kvdyno_core::suite::Plan;
use kvdyno_core::workload::SizeModel;
use kvdyno_core::workload::fault::{FaultKind, KILL, POWER};

use crate::evidence::{self, durability_text, reason_text};
use crate::result::{PhaseResult, RunResult, StoreRun};
use crate::wording::judged_text;
use kvdyno_core::ground::numbers::{bytes_text, duration_text, grouped, significant, small};

/// Objects that a full test holds.
const OBJECTS: u64 = 100_000_000;
/// Length of a full test's measured phases.
const HOURS: f64 = 2.0 * 3_600e9;
/// From this length on a phase shows latency over time.
const OVER_TIME: u64 = 60_000_000_000;

/// A criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    /// Criterion.
    pub name: &'static str,
    /// The run met it.
    pub met: bool,
    /// Figure of the run for it.
    pub figure: String,
}

/// Every criterion, in the order in which they are always listed.
#[must_use]
pub fn criteria(result: &RunResult, run: &StoreRun) -> Vec<Criterion> {
    let plan: Option<Plan> = serde_json::from_value(result.suite.plan.clone()).ok();
    let phases: Vec<&PhaseResult> = run.phases.iter().filter(|phase| counts(phase)).collect();
    let of = |name, (met, figure): (bool, String)| Criterion { name, met, figure };
    vec![
        of("data larger than memory", larger_than_memory(result, run, plan.as_ref())),
        of("10⁸ objects or more", objects(run)),
        of("sizes varied", sizes(plan.as_ref())),
        of("latency over time under load", over_time(&phases)),
        of("hours long", hours(&phases)),
        of("a node failed", node_failed(run)),
        of("replication and persistence on", replicated(run)),
        of("mixed load", mixed(&phases)),
        of("scaled out", scaled_out(run)),
        of("repeated", repeated(result)),
        of("response time from due time", response_time(&phases)),
        of("every read checked", checked(run)),
    ]
}

/// Measured, and no try on the way to a rate.
fn counts(phase: &PhaseResult) -> bool {
    let tried = phase.probe.as_deref().is_some_and(|purpose| purpose != "confirm");
    !phase.prepares() && !tried
}

/// The headline and the scorecard in sentences; nothing for a suite that asks for none.
#[must_use]
pub fn scorecard_lines(result: &RunResult, run: &StoreRun) -> Vec<String> {
    if !result.suite.scorecard {
        return Vec::new();
    }
    let criteria = criteria(result, run);
    let list = |met: bool| -> String {
        let told: Vec<String> = (criteria.iter())
            .filter(|criterion| criterion.met == met)
            .map(|criterion| format!("{} ({})", criterion.name, criterion.figure))
            .collect();
        if told.is_empty() { "none".to_owned() } else { told.join("; ") }
    };
    let met = criteria.iter().filter(|criterion| criterion.met).count();
    vec![
        headline(result, run),
        format!("scorecard: {met} of {} criteria met: {}", criteria.len(), list(true)),
        format!("scorecard: not met: {}", list(false)),
    ]
}

/// Requests a second under the suite's conditions with nothing lost, and what that costs.
fn headline(result: &RunResult, run: &StoreRun) -> String {
    let all = evidence::of(run);
    // That no rate met the conditions is told as that.
    let refuted = all.iter().filter(|one| one.status() == EvidenceStatus::Refuted);
    let broken = refuted.filter(|one| one.claimed != Claimed::MetObjective).map(Evidence::violated);
    let search = run.capacity.first();
    let met = search.map(|found| evidence::of_search(run, found)[0].status());
    let found = search.filter(|_| met == Some(EvidenceStatus::Confirmed));
    let found = found.and_then(|found| Some((found.carried?, &found.conditions)));
    let (rate, conditions) = match (found, broken.max().unwrap_or(0)) {
        (_, broken) if broken > 0 => {
            return format!(
                "headline: none: {} reads were wrong, writes lost, or nodes did not come back",
                grouped(broken as f64)
            );
        }
        (None, _) => {
            let why = met.and_then(EvidenceStatus::reason).map(reason_text);
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            return format!("headline: none: no rate was confirmed to meet the conditions{why}");
        }
        (Some(found), _) => found,
    };
    let kept = kept(run, &all);
    let price = result.cost.as_ref().map_or(String::new(), |cost| {
        let price = kvdyno_core::cost::per_million(cost.hourly(), rate);
        format!("; {} {} per million requests", small(price), cost.currency)
    });
    let rate = grouped(rate.round());
    format!("headline: {rate} requests a second with {conditions}, {kept}{price}")
}

/// Describes the fate of acknowledged writes, as far as the run shows it, as the end of a sentence.
fn kept(run: &StoreRun, all: &[Evidence]) -> String {
    if run.phases.iter().all(|phase| phase.tally.is_none()) {
        return "nothing was checked".to_owned();
    }
    let lost = all.iter().find(|one| one.claimed == Claimed::NothingLost);
    let Some(lost) = lost else { return "nothing was checked".to_owned() };
    let count = |count: u64| grouped(count as f64);
    let when = befell(run).map_or(String::new(), |befell| format!(" when {befell}"));
    match lost.status() {
        EvidenceStatus::Confirmed if when.is_empty() => {
            "nothing lost; no node was killed".to_owned()
        }
        EvidenceStatus::Confirmed => format!("nothing lost{when}"),
        EvidenceStatus::NothingToShow => "no write was at stake".to_owned(),
        EvidenceStatus::Inconclusive(OpenReason::Overwritten) => format!(
            "nothing seen lost{when} (the loss of a write that was written over before is not seen)"
        ),
        EvidenceStatus::Inconclusive(reason) if lost.left() > 0 => {
            let left = count(lost.left());
            format!("nothing seen lost; of {left} it is not known ({})", reason_text(reason))
        }
        EvidenceStatus::Inconclusive(reason) => {
            format!("not decided what was lost: {}", reason_text(reason))
        }
        // Told above.
        EvidenceStatus::Refuted => "writes were lost".to_owned(),
        EvidenceStatus::Observed if lost.found(ViolationKind::Lost) == 0 => match lost.hidden {
            0 => format!("nothing lost{when}"),
            _ => format!("nothing seen lost{when}"),
        },
        EvidenceStatus::Observed => format!(
            "{} of {} acknowledged writes lost{when}, which the store does not promise to keep",
            count(lost.found(ViolationKind::Lost)),
            count(lost.stake())
        ),
    }
}

fn larger_than_memory(result: &RunResult, run: &StoreRun, plan: Option<&Plan>) -> (bool, String) {
    let Some(plan) = plan else { return (false, "size of the data not known".to_owned()) };
    let data = plan.estimate().stored_bytes;
    let told = bytes_text(data);
    let here = run.testbed.is_some() || !run.store.url.contains("//");
    match result.host.memory_bytes.filter(|_| here) {
        Some(memory) => {
            let memory_text = bytes_text(memory as f64);
            (data > memory as f64, format!("{told} in {memory_text}"))
        }
        None => (false, format!("{told}; the servers' memory is not known")),
    }
}

fn objects(run: &StoreRun) -> (bool, String) {
    let most = run.phases.iter().map(|phase| phase.records).max().unwrap_or(0);
    (most >= OBJECTS, grouped(most as f64))
}

fn sizes(plan: Option<&Plan>) -> (bool, String) {
    let groups = || plan.into_iter().flat_map(|plan| &plan.phases).flat_map(|phase| &phase.groups);
    let mut sizes: Vec<&SizeModel> = Vec::new();
    for group in groups() {
        let writes = group.mix.has(|kind| !kind.read_only());
        if writes && !sizes.contains(&&group.values.size) {
            sizes.push(&group.values.size);
        }
    }
    let fixed = |size: &&SizeModel| matches!(size, SizeModel::Fixed { .. });
    let met = sizes.len() > 1 || sizes.iter().any(|size| !fixed(size));
    (met, format!("{} model(s) of sizes", sizes.len()))
}

fn over_time(phases: &[&PhaseResult]) -> (bool, String) {
    let longest = phases.iter().map(|phase| phase.wall_ns).max().unwrap_or(0);
    (longest >= OVER_TIME, format!("longest phase {}", duration_text(longest as f64)))
}

fn hours(phases: &[&PhaseResult]) -> (bool, String) {
    let all: f64 = phases.iter().map(|phase| phase.wall_ns as f64).sum();
    (all >= HOURS, format!("{} h measured", significant(all / 3_600e9)))
}

/// Counts the faults of a kind that were done to nodes.
fn done(run: &StoreRun, kind: &FaultKind) -> usize {
    let faults = run.phases.iter().flat_map(|phase| &phase.faults);
    faults.filter(|fault| fault.was(kind)).count()
}

/// Names the faults of the run, as a part of a sentence; `None` if nothing did.
fn befell(run: &StoreRun) -> Option<&'static str> {
    match (done(run, &KILL) > 0, done(run, &POWER) > 0) {
        (true, true) => Some("a node was killed and when the power of one was cut"),
        (true, false) => Some("a node was killed"),
        (false, true) => Some("the power of a node was cut"),
        (false, false) => None,
    }
}

fn node_failed(run: &StoreRun) -> (bool, String) {
    let (killed, cut) = (done(run, &KILL), done(run, &POWER));
    let cuts = if cut > 0 { format!(", {cut} cut off") } else { String::new() };
    (killed + cut > 0, format!("{killed} killed{cuts}"))
}

fn replicated(run: &StoreRun) -> (bool, String) {
    let durable = run.store.durability.level >= Durability::ProcessKill;
    let replicas = run.testbed.iter().flat_map(|testbed| &testbed.nodes).any(|node| {
        node.role.as_deref().is_some_and(|role| role.contains("replica") || role == "secondary")
    });
    let number = |text: &str| {
        let digits =
            text.split(|c: char| !c.is_ascii_digit()).filter_map(|d| d.parse::<u32>().ok());
        digits.max().unwrap_or(0)
    };
    let told = run
        .store
        .settings
        .iter()
        .any(|(name, value)| name.to_lowercase().contains("replica") && number(value) >= 2);
    let copies = if replicas || told { "replicated" } else { "no replica seen" };
    let figure = format!("{copies}, durability {}", durability_text(run));
    (durable && (replicas || told), figure)
}

fn mixed(phases: &[&PhaseResult]) -> (bool, String) {
    let mixes = |phase: &&&PhaseResult| {
        let reads = phase.series.iter().filter(|series| series.kind.read_only()).count();
        reads > 0 && reads < phase.series.len()
    };
    let count = phases.iter().filter(mixes).count();
    (count > 0, format!("{count} phase(s) read and write"))
}

fn scaled_out(run: &StoreRun) -> (bool, String) {
    let nodes = run.testbed.as_ref().map_or(0, |testbed| testbed.nodes.len());
    match nodes {
        0 => (false, "number of servers not known".to_owned()),
        nodes => (nodes > 1, format!("{nodes} server process(es)")),
    }
}

fn repeated(result: &RunResult) -> (bool, String) {
    match result.trial {
        Some(trial) => (trial.of > 1, format!("trial {} of {}", trial.number, trial.of)),
        None => (false, "one trial".to_owned()),
    }
}

fn response_time(phases: &[&PhaseResult]) -> (bool, String) {
    let open = phases.iter().filter(|phase| phase.open()).count();
    (open > 0, format!("{open} of {} phases have open arrivals", phases.len()))
}

fn checked(run: &StoreRun) -> (bool, String) {
    let off = run.phases.iter().filter(|phase| phase.tally.is_none()).count();
    match run.tally() {
        Some(tally) if off == 0 => {
            let met = tally.judged == tally.reads && tally.reads > 0;
            (met, judged_text(&tally))
        }
        _ => (false, format!("{off} phase(s) unchecked")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{CapacityResult, FaultResult, WriteAccount};
    use crate::sample;

    #[test]
    fn a_quick_look_is_told_to_be_one() {
        let mut result = sample::two_stores();
        assert!(
            scorecard_lines(&result, &result.runs[0]).is_empty(),
            "asked for by the suite only"
        );
        result.suite.scorecard = true;
        let criteria = criteria(&result, &result.runs[0]);
        assert_eq!(criteria.len(), 12);
        let met = |name: &str| criteria.iter().find(|c| c.name == name).unwrap().met;
        assert!(met("mixed load") && met("response time from due time"));
        assert!(!met("10⁸ objects or more") && !met("hours long") && !met("a node failed"));
        let lines = scorecard_lines(&result, &result.runs[0]);
        assert!(lines[2].contains("hours long (0.0"), "{lines:?}");
    }

    #[test]
    fn a_headline_needs_a_confirmed_rate_and_nothing_lost() {
        let mut result = sample::two_stores();
        result.suite.scorecard = true;
        let told = |result: &RunResult, run| scorecard_lines(result, &result.runs[run]).remove(0);
        let clean = usize::from(result.runs[0].tally().unwrap().illegal() > 0);
        assert!(told(&result, clean).contains("no rate was confirmed"), "{}", told(&result, clean));
        for run in &mut result.runs {
            run.capacity = vec![CapacityResult {
                conditions: "p99 < 10ms".into(),
                carried: Some(51_200.0),
                probes: vec![sample::confirmation(51_200.0)],
                ..CapacityResult::default()
            }];
        }
        let mut unsure = result.clone();
        let account = WriteAccount {
            acknowledged: 9,
            read: 9,
            unknown: 3,
            exact: true,
            ..WriteAccount::default()
        };
        unsure.runs[clean].phases[0].writes = Some(account);
        let text = told(&unsure, clean);
        assert!(text.contains("nothing seen lost; of 3 it is not known"), "{text}");
        let mut harmed = result.clone();
        let fault = |what: &str| FaultResult { what: what.to_owned(), ..FaultResult::default() };
        let phase = &mut harmed.runs[clean].phases[0];
        phase.faults = vec![fault("power"), fault("start again"), fault("power")];
        phase.writes =
            Some(WriteAccount { acknowledged: 9, exact: true, ..WriteAccount::default() });
        let text = told(&harmed, clean);
        assert!(text.contains(", nothing lost when the power of a node was cut"), "{text}");
        assert_eq!(node_failed(&harmed.runs[clean]), (true, "0 killed, 2 cut off".to_owned()));
        harmed.runs[clean].phases[0].faults.push(fault("kill"));
        let text = told(&harmed, clean);
        assert!(text.contains("a node was killed and when the power of one was cut"), "{text}");
        for (number, run) in result.runs.iter().enumerate() {
            let text = told(&result, number);
            match run.tally().unwrap().illegal() {
                0 => assert!(text.contains("51,200 requests a second with p99 < 10ms"), "{text}"),
                _ => assert!(text.contains("none:"), "{text}"),
            }
        }
    }
}
