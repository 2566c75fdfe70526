//! Sentences of reasons that depend on the figures found.

use std::time::Duration;

use crate::ground::numbers::{duration_text, grouped};
use crate::measure::StopReason;
use crate::verdict::{AgentFigure, Level, Reason};
use crate::verify::AnomalyKind;
use crate::workload::Kind;

/// Describes what ended a phase.
pub(super) fn of_cut(stopped: StopReason) -> &'static str {
    match stopped {
        StopReason::Requests | StopReason::Duration => "the phase ended as planned",
        StopReason::TimeLimit => "the phase reached its time limit with requests left",
        StopReason::Interrupted => "the phase was interrupted",
        StopReason::AgentLost => "the phase ended early: an agent was lost",
        StopReason::StoreLost => "no client could go on: the store was lost",
    }
}

/// Describes a run at another size than the published one.
pub(super) fn of_scale(scale: f64) -> String {
    format!("scaled: not comparable; ran at {scale} of the published size")
}

/// Describes who else had the processors' time.
pub(super) fn of_other_work(reason: &Reason) -> String {
    let who = match reason {
        Reason::Disturbed { .. } => "other virtual machines (steal)",
        _ => "other programs on this machine",
    };
    format!("{} of the processors' time went to {who}", reason.percent())
}

/// Names the lost agents of those that carried the load.
pub(super) fn of_lost_agents(agents: &[String], of: u64) -> String {
    let (count, who) = (agents.len(), agents.join("; "));
    format!("{count} of {of} agents lost: {who}; what they had written is unknown")
}

/// Names a server that ended without an order of the run, with when and how; or says that the whole
/// testbed was taken down.
pub(super) fn of_testbed(reason: &Reason) -> String {
    let Reason::ServerEnded { node, at, how, .. } = reason else {
        return "the testbed was taken down while the run went on".to_owned();
    };
    let when = match at {
        Some(at) => format!("{} after the phase began", duration_text(at.as_nanos() as f64)),
        None => "before the phase began".to_owned(),
    };
    format!("{node} ended, and no order of the run ended it: {when}, {how}")
}

/// Describes in what an agent differs from the others.
pub(super) fn of_agent_outlier(
    agent: &str,
    figure: AgentFigure,
    (unlike, intervals): (u64, u64),
    times: f64,
) -> String {
    let found = match figure {
        AgentFigure::P99 => {
            format!("its p99 was far above that of the median agent ({times:.1} times as long)")
        }
        AgentFigure::Rate => format!(
            "its clients did far less than those of the median agent ({:.0} % of it)",
            100.0 / times.max(1.0)
        ),
        AgentFigure::Backlog => format!(
            "what it had to send was far more than it sent ({times:.1} times as much as with the median agent)"
        ),
    };
    format!("{agent} is unlike the other agents: in {unlike} of {intervals} stretches {found}")
}

/// Names the agent that began after the others.
pub(super) fn of_late_begin(reason: &Reason, agent: &str, late: Duration) -> String {
    let share = reason.percent();
    let late = duration_text(late.as_nanos() as f64);
    format!(
        "{agent} began {late} after the agreed moment ({share} of the phase): what fell due before is late by its own \
         doing, not the store's"
    )
}

/// Names the agents that got unequally far in the operations, and the share of operations that went to
/// other records for that reason.
pub(super) fn of_skewed_keys(reason: &Reason, (ahead, behind): (&str, &str), times: f64) -> String {
    let share = reason.percent();
    format!(
        "{share} of the operations went to other records than the key distribution asks: {ahead} got {times:.2} times as \
         far in them as {behind}, and each carries out those of its own records"
    )
}

/// Names the agent whose clock is known too little, and the shortest stretch that the phase tells apart.
pub(super) fn of_clock(agent: &str, off: Duration, of: Duration) -> String {
    let [off, of] = [off, of].map(|time| duration_text(time.as_nanos() as f64));
    format!(
        "the clock of {agent} is known to ± {off} only, and the phase tells apart what is {of} long"
    )
}

/// Describes reads that verification could not decide.
pub(super) fn of_unjudged(unknown: u64, reads: u64) -> String {
    let (unknown, reads) = (grouped(unknown as f64), grouped(reads as f64));
    format!("{unknown} of {reads} reads could not be judged right or wrong")
}

/// Describes how often a user has changed the phase.
pub(super) fn of_steering(changes: u64) -> String {
    let times = if changes == 1 { "once".to_owned() } else { format!("{changes} times") };
    format!("steered by hand ({times}): not comparable")
}

/// Describes anomalies by their kinds alone: a lost record is one anomaly, however many reads have found
/// it, and so is each field that is wrong.
pub(super) fn of_anomalies(counts: [u64; 5]) -> String {
    let kinds: Vec<_> = (AnomalyKind::ALL.iter().zip(counts))
        .filter(|&(_, count)| count > 0)
        .map(|(kind, count)| format!("{} {}", grouped(count as f64), kind.name()))
        .collect();
    format!("reads were wrong: {}", kinds.join(", "))
}

/// Describes reads that found values of another run.
pub(super) fn of_other_run(values: u64, reads: u64) -> String {
    let (values, reads) = (grouped(values as f64), grouped(reads as f64));
    format!("{values} of {reads} reads found values of another run, written meanwhile")
}

/// Names the percentiles for which the samples are too few.
pub(super) fn of_few(kind: Kind, samples: u64, level: Level) -> String {
    let from = if level == Level::Valid { "p99.9" } else { "p99" };
    let (kind, samples) = (kind.name(), grouped(samples as f64));
    format!("{samples} {kind} operations: too few to believe their {from} and above")
}
