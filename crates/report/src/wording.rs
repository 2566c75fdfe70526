//! Words that every output has in common: stamps, figures, faults, histories, reasons, promises.

use std::collections::BTreeMap;

use kvdyno_core::evidence::Claimed;
use kvdyno_core::store::Certainty;
use kvdyno_core::verdict::ClaimStatus;
use kvdyno_core::verify::{AnomalyKind, Tally};

use crate::evidence;
use crate::result::{
    ClaimResult, ConditionResult, FaultResult, LinearizabilityAnswer, LinearizabilityResult,
    LookedBackResult, Redundancy, RequestResult, RunResult, Status, StoreRun, TestbedResult,
};
use kvdyno_core::ground::numbers::{bytes_text, duration_text, grouped};

/// Published figures stand beside measured ones only where nothing differs from the suite.
#[must_use]
pub fn shows_published(result: &RunResult) -> bool {
    result.suite.scale.is_none() && result.suite.changes.is_empty()
}

/// Returns the stamp of a result that differs from its suite; `None` if it does not.
#[must_use]
pub fn difference_stamp(result: &RunResult) -> Option<String> {
    let suite = &result.suite;
    match (suite.scale, suite.changes.is_empty()) {
        (Some(scale), _) => {
            Some(format!("scaled ×{scale}: not comparable with the published figures"))
        }
        (None, false) => {
            Some(format!("not the suite as it is defined: {}", suite.changes.join(" ")))
        }
        (None, true) => None,
    }
}

/// Describes a fault or a repair, such as `kill redis-1 (primary) at 10.0 s, done after 3.2 ms`.
#[must_use]
pub fn fault_text(fault: &FaultResult) -> String {
    let node = match (fault.node.as_str(), &fault.role) {
        ("", _) => String::new(),
        (node, Some(role)) => format!(" {node} ({role})"),
        (node, None) => format!(" {node}"),
    };
    let (at, took) = (fault.began_ns as f64 / 1e9, fault.ended_ns.saturating_sub(fault.began_ns));
    let end = match &fault.error {
        Some(error) => format!("not done: {error}"),
        None => format!("done after {}", duration_text(took as f64)),
    };
    let used = fault.used.as_deref().map_or(String::new(), |used| format!(" ({used})"));
    let whole = fault.whole.as_ref().map_or(String::new(), redundancy_text);
    let second = fault.not_whole.as_ref().map_or(String::new(), |missing| {
        format!("; a second failure before copies were whole: {missing}")
    });
    let looked =
        fault.cut.as_ref().and_then(|cut| cut.looked_back).map_or(String::new(), looked_text);
    format!("{}{node} at {at:.3} s, {end}{used}{whole}{looked}{second}", fault.what)
}

/// Says what became of the inserts that a cut met, as the end of a sentence.
fn looked_text(looked: LookedBackResult) -> String {
    let [acknowledged, answered, absent] =
        [looked.acknowledged, looked.answered, looked.absent].map(|count| grouped(count as f64));
    match looked.answered {
        0 => format!("; none of the {acknowledged} inserts since the last cut could be looked for"),
        _ => format!(
            "; of {acknowledged} inserts since the last cut {answered} were looked for before the next, {absent} of them absent"
        ),
    }
}

/// The time to full redundancy, as the end of a sentence.
fn redundancy_text(whole: &Redundancy) -> String {
    let Redundancy { after_ns, watched_ns, missing } = whole;
    match after_ns {
        Some(after) => format!("; time to full redundancy {}", duration_text(*after as f64)),
        None => {
            let watched = duration_text(*watched_ns as f64);
            format!("; copies not whole within {watched}: {missing}")
        }
    }
}

/// Describes the linearizability result in one sentence, such as `linearizable: 3,000 requests about 16 records`.
#[must_use]
pub fn linearizability_text(result: &LinearizabilityResult) -> String {
    let count = |n: u64| grouped(n as f64);
    let looked = format!("{} requests about {} records", count(result.requests), result.records);
    let why = &result.why;
    match (result.answer, &result.violation) {
        (LinearizabilityAnswer::Ok, _) => format!("linearizable: {looked}"),
        (LinearizabilityAnswer::Unknown, _) => format!("linearizable or not is unknown: {why}"),
        (LinearizabilityAnswer::Violated, None) => format!("NOT LINEARIZABLE: {why} ({looked})"),
        (LinearizabilityAnswer::Violated, Some(violation)) => {
            let requests: Vec<String> = violation.requests.iter().map(request_text).collect();
            let (record, requests) = (violation.record, requests.join("; "));
            format!("NOT LINEARIZABLE: {why}, record {record}: {requests} ({looked})")
        }
    }
}

/// Such as `write of version 3 from 1.000000 s to 1.000200 s`.
fn request_text(request: &RequestResult) -> String {
    let seconds = |ns: u64| format!("{:.6} s", ns as f64 / 1e9);
    let what = match request.version {
        Some(version) if version < 0 => format!("version {} of an earlier run", -version),
        Some(version) => format!("version {version}"),
        None => "nothing".to_owned(),
    };
    let failed = if request.failed { "failed " } else { "" };
    let verb = if request.write { "write of" } else { "read of" };
    let until = match request.answered_ns {
        Some(answered) => format!("to {}", seconds(answered)),
        None => "on, without an answer".to_owned(),
    };
    format!("{failed}{verb} {what} from {} {until}", seconds(request.sent_ns))
}

/// An RFC 3339 moment as people read it, to the second.
pub(crate) fn moment_text(rfc3339: &str) -> String {
    match humantime::parse_rfc3339(rfc3339) {
        Ok(moment) => humantime::format_rfc3339_seconds(moment)
            .to_string()
            .replace('T', " ")
            .replace('Z', " UTC"),
        Err(_) => rfc3339.to_owned(),
    }
}

/// Describes the parts of a testbed and the time to set it up, in a sentence without a stop.
pub(crate) fn testbed_summary(testbed: &TestbedResult) -> String {
    let counted = |count: usize, what: &str, plural: &str| {
        format!("{count} {what}{}", if count == 1 { "" } else { plural })
    };
    let steps: Vec<String> = (testbed.steps.iter())
        .map(|step| format!("{} {}", step.name, duration_text(step.took_ns as f64)))
        .collect();
    let pinned = match (&testbed.server_processors, &testbed.client_processors) {
        (Some(servers), Some(clients)) => {
            format!(", servers on processors {servers:?} and clients on {clients:?}")
        }
        _ => String::new(),
    };
    let disk = match &testbed.disk {
        Some(disk) => format!(", each node's disk {disk}"),
        None => String::new(),
    };
    format!(
        "{}, {} changed from the server's defaults, ready after {} ({}){pinned}{disk}",
        counted(testbed.nodes.len(), "process", "es"),
        counted(testbed.changed.len(), "setting", "s"),
        duration_text(testbed.ready_after_ns as f64),
        steps.join(", ")
    )
}

/// Durability and consistency in words: each is declared, read back, or, where power was cut, shown with the figures.
pub(crate) fn promises(run: &StoreRun) -> (String, String) {
    let (durability, consistency) = (run.store.durability, run.store.consistency);
    let level = durability.level.describe();
    let cuts = evidence::of_run(run, Claimed::SurvivesPowerLoss);
    let durable = match cuts.filter(|cuts| cuts.exposure.moments > 0) {
        None => format!("{level} ({})", durability.origin_text()),
        Some(cuts) => {
            let (text, shut) = (evidence::cut_text(&cuts), shut_text(run).unwrap_or_default());
            format!("{level} ({}; {text}{shut})", durability.origin_text())
        }
    };
    (durable, format!("{} ({})", consistency.level.describe(), consistency.origin_text()))
}

/// Describes how long it took from the freeze of processes until their file systems were shut, of cuts without a disk that
/// holds flushes: syncs under way may have ended meanwhile. `None` where there was no such cut.
fn shut_text(run: &StoreRun) -> Option<String> {
    let phases = run.phases.iter().enumerate();
    let cuts = phases.flat_map(|(at, phase)| phase.faults.iter().map(move |fault| (at, fault)));
    let cuts = cuts.filter_map(|(at, fault)| Some(((at, fault.began_ns), fault.cut.as_ref()?)));
    let without = cuts.filter(|(_, cut)| cut.held_within_ns.is_none());
    let each: BTreeMap<(usize, u64), u64> = without.map(|(at, cut)| (at, cut.frozen_ns)).collect();
    let mut took: Vec<u64> = each.into_values().collect();
    took.sort_unstable();
    let last = took.len().checked_sub(1)?;
    let at = |share: f64| duration_text(took[(last as f64 * share).ceil() as usize] as f64);
    let (usual, most) = (at(0.5), at(0.99));
    Some(format!("; file systems shut {usual} (median), {most} (99 %) after processes were frozen"))
}

/// A condition with what was measured, such as `errors == 0: 12 in killed`.
pub(crate) fn condition_text(condition: &ConditionResult) -> String {
    let ConditionResult { condition: asked, phase, standing, measured, why, .. } = condition;
    // What names its phase itself need not be told it again.
    let place = phase.as_ref().filter(|phase| !asked.contains(&format!(" in {phase}")));
    let place = place.map_or(String::new(), |phase| format!(" in {phase}"));
    let measured = if measured.is_empty() { "not known" } else { measured };
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    match standing {
        ClaimStatus::Confirmed => format!("{asked}{place}: {measured}"),
        ClaimStatus::Refuted => format!("{asked}{place}: NO, {measured}"),
        ClaimStatus::Inconclusive | ClaimStatus::NothingToShow => {
            format!("{asked}{place}: {measured}{why}")
        }
    }
}

/// Describes the reach of a claim in one sentence.
pub(crate) fn reach_text(claim: &ClaimResult) -> String {
    format!("reaches {}", claim.reach)
}

/// Describes the end of a run that was cut short, in words that follow "the run"; `None` if it is complete.
pub(crate) fn status_text(status: &Status) -> Option<String> {
    match status {
        Status::Complete => None,
        Status::Running => Some("did not come to its end".to_owned()),
        Status::Interrupted => Some("was interrupted".to_owned()),
        Status::Failed { message } => Some(format!("failed: {message}")),
    }
}

/// Describes the findings of verification in a run, in one line.
pub(crate) fn verification_line(run: &StoreRun) -> String {
    if run.phases.is_empty() {
        return "verified: nothing; no phase was measured".to_owned();
    }
    let Some(tally) = &run.tally() else {
        return "verified: nothing; verification was off".to_owned();
    };
    if tally.reads == 0 && tally.illegal() == 0 && tally.missed() == 0 {
        return "verified: nothing; nothing was read".to_owned();
    }
    let count = |n: u64| grouped(n as f64);
    let mut parts = vec![
        judged_text(tally),
        format!("{} checked", bytes_text(tally.bytes_checked as f64)),
        anomalies_text(tally) + &still_lost_text(run, tally),
        format!("{} unknown", count(tally.unknown)),
    ];
    if tally.not_read_again > 0 {
        parts.push(format!("{} could not be read again", count(tally.not_read_again)));
    }
    if tally.legal_stale > 0 {
        parts.push(format!("{} stale as the store declares", count(tally.legal_stale)));
    }
    if tally.stamp_only > 0 {
        parts.push(format!("{} by their stamp only", count(tally.stamp_only)));
    }
    if tally.other_run > 0 {
        parts.push(format!("{} of another run", count(tally.other_run)));
    }
    if tally.missed() > 0 {
        parts.push(format!("{} unexpected misses", count(tally.missed())));
    }
    format!("verified: {}", parts.join(", "))
}

/// Counts the reads that could be judged, in words. Where the fields of a record are written apart, each is.
pub(crate) fn judged_text(tally: &Tally) -> String {
    let count = |n: u64| grouped(n as f64);
    let (judged, reads) = (count(tally.judged), count(tally.reads));
    match tally.records {
        // Versions before did not count them.
        0 => format!("{judged} of {reads} reads judged"),
        records if records == tally.reads => format!("{judged} of {reads} reads judged"),
        records => format!("{judged} of {reads} fields of {} reads judged", count(records)),
    }
}

/// Illegal reads by kind, such as `2 stale, 1 lost`; empty if there are none.
pub(crate) fn kinds_text(tally: &Tally) -> String {
    let found = AnomalyKind::ALL.into_iter().filter(|kind| tally.of(*kind) > 0);
    let told = found.map(|kind| format!("{} {}", grouped(tally.of(kind) as f64), kind.name()));
    told.collect::<Vec<_>>().join(", ")
}

/// Says how many records were lost at the end, where that is not the number that phases have found lost: a record counts in
/// each phase that found it so, and a later write puts a new value in its place.
fn still_lost_text(run: &StoreRun, tally: &Tally) -> String {
    let found = tally.of(AnomalyKind::Lost);
    let account = run.phases.iter().rev().find_map(|phase| phase.writes.as_ref());
    match account.filter(|account| found > 0 && account.read > 0 && account.lost != found) {
        Some(account) => format!(
            " (lost: one for each phase that found it; {} when all records were read back at the end)",
            grouped(account.lost as f64)
        ),
        None => String::new(),
    }
}

fn anomalies_text(tally: &Tally) -> String {
    match kinds_text(tally) {
        none if none.is_empty() => "no anomaly".to_owned(),
        kinds => format!("ANOMALIES: {kinds}"),
    }
}

/// Names the certainty with which requests were not applied.
pub(crate) fn certainty_text(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Failed => "surely not applied",
        Certainty::Indeterminate => "perhaps applied",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::LatencyUnit;
    use crate::lines::latency_unit;
    use crate::result::{CutResult, WriteAccount};
    use crate::sample;

    #[test]
    fn faults_are_told_with_node_and_time() {
        let mut fault = FaultResult {
            what: "kill".to_owned(),
            node: "redis-1".to_owned(),
            role: Some("primary".to_owned()),
            began_ns: 10_000_000_000,
            ended_ns: 10_003_200_000,
            used: None,
            error: None,
            ..FaultResult::default()
        };
        assert_eq!(fault_text(&fault), "kill redis-1 (primary) at 10.000 s, done after 3.20 ms");
        fault.used = Some("SIGKILL".to_owned());
        assert!(fault_text(&fault).ends_with("done after 3.20 ms (SIGKILL)"));
        fault.used = None;
        let whole = Redundancy { after_ns: Some(12_300_000_000), ..Redundancy::default() };
        fault.whole = Some(whole.clone());
        assert!(fault_text(&fault).ends_with("3.20 ms; time to full redundancy 12.3 s"));
        let missing = "aerospike-2 has 7 partitions left to migrate".to_owned();
        let watched_ns = 60_000_000_000;
        fault.whole = Some(Redundancy { after_ns: None, watched_ns, missing: missing.clone() });
        let expected = format!("; copies not whole within 60.0 s: {missing}");
        assert!(fault_text(&fault).ends_with(&expected), "{}", fault_text(&fault));
        fault.whole = None;
        let mut looked = |answered, absent| {
            let looked_back = Some(LookedBackResult { acknowledged: 1_281, answered, absent });
            fault.cut = Some(CutResult { looked_back, ..CutResult::default() });
            fault_text(&fault)
        };
        let (told, none) = (looked(1_200, 3), looked(0, 0));
        let expected = "; of 1,281 inserts since the last cut 1,200 were looked for before the next, 3 of them absent";
        assert!(told.ends_with(expected), "{told}");
        assert!(
            none.ends_with("; none of the 1,281 inserts since the last cut could be looked for")
        );
        fault.cut = None;
        fault.not_whole = Some(missing.clone());
        let expected = format!("; a second failure before copies were whole: {missing}");
        assert!(fault_text(&fault).ends_with(&expected), "{}", fault_text(&fault));
        fault.not_whole = None;
        (fault.node, fault.error) = (String::new(), Some("no node is a primary".to_owned()));
        assert_eq!(fault_text(&fault), "kill at 10.000 s, not done: no node is a primary");
    }

    /// "0 of 0 reads judged, no anomaly" would say that something was looked at.
    #[test]
    fn without_a_read_nothing_is_verified() {
        let mut run = crate::sample::two_stores().runs.remove(0);
        assert!(verification_line(&run).contains("reads judged"));
        run.phases.iter_mut().for_each(|phase| phase.tally = Some(Tally::default()));
        assert_eq!(verification_line(&run), "verified: nothing; nothing was read");
    }

    /// Two numbers of one thing on a screen, and no word why, would make the reader doubt both.
    #[test]
    fn what_phases_found_lost_stands_beside_what_is_lost_at_the_end() {
        let mut run = crate::sample::two_stores().runs.remove(0);
        let mut tally = run.phases[0].tally.clone().unwrap_or_default();
        tally.anomalies[AnomalyKind::Lost as usize] += 196;
        run.phases[0].tally = Some(tally);
        let found = run.tally().unwrap_or_default().of(AnomalyKind::Lost);
        let account = WriteAccount { lost: 22, read: 2_000, ..WriteAccount::default() };
        let last = run.phases.len() - 1;
        run.phases[last].writes = Some(account);
        let told = format!("{found} lost (lost: one for each phase that found it; 22 when all");
        assert!(verification_line(&run).contains(&told), "{}", verification_line(&run));
        run.phases[last].writes.as_mut().unwrap().lost = found;
        assert!(!verification_line(&run).contains("one for each phase"));
    }

    #[test]
    fn histories_are_told_with_the_requests_that_contradict_each_other() {
        let request = |write, version, sent_ns, answered_ns| RequestResult {
            write,
            version,
            sent_ns,
            answered_ns,
            failed: false,
        };
        let mut result = LinearizabilityResult {
            answer: LinearizabilityAnswer::Ok,
            why: String::new(),
            records: 16,
            full: 0,
            requests: 3_000,
            indeterminate: 1,
            violation: None,
        };
        assert_eq!(linearizability_text(&result), "linearizable: 3,000 requests about 16 records");
        result.answer = LinearizabilityAnswer::Unknown;
        result.why = "verification is off".to_owned();
        let text = linearizability_text(&result);
        assert_eq!(text, "linearizable or not is unknown: verification is off");
        result.answer = LinearizabilityAnswer::Violated;
        result.why = "it went back".to_owned();
        let requests = vec![
            request(true, Some(2), 1_000_000_000, None),
            request(false, None, 1_500_000_000, Some(1_500_001_000)),
            request(false, Some(-4), 2_000_000_000, Some(2_100_000_000)),
        ];
        result.violation = Some(crate::result::ViolationResult { record: 62, requests });
        assert_eq!(
            linearizability_text(&result),
            "NOT LINEARIZABLE: it went back, record 62: \
             write of version 2 from 1.000000 s on, without an answer; \
             read of nothing from 1.500000 s to 1.500001 s; \
             read of version 4 of an earlier run from 2.000000 s to 2.100000 s \
             (3,000 requests about 16 records)"
        );
    }

    #[test]
    fn published_figures_are_shown_in_their_unit_and_at_full_scale_only() {
        let mut result = sample::two_stores();
        assert_eq!(latency_unit(&result), LatencyUnit::Micros);
        result.runs[0].phases[0].published.push(sample::published());
        assert_eq!(latency_unit(&result), LatencyUnit::Millis);
        result.suite.scale = Some(0.001);
        assert_eq!(latency_unit(&result), LatencyUnit::Micros);
        let stamp = difference_stamp(&result).unwrap();
        assert_eq!(stamp, "scaled ×0.001: not comparable with the published figures");
        result.suite.scale = None;
        result.suite.changes.push("--clients 7".into());
        assert!(!shows_published(&result));
        let stamp = difference_stamp(&result).unwrap();
        assert_eq!(stamp, "not the suite as it is defined: --clients 7");
    }
}
