//! The few figures that the live page shows largest: what somebody who passes by a screen wants to know at once.

use hdrhistogram::Histogram;
use kvdyno_core::measure::latency_histogram;
use serde::Serialize;

use super::LiveRun;
use super::claim_now::ClaimNow;
use super::phase::{LivePhase, latency};
use crate::result::{TrialNumber, add};

/// Figures of the last second, and counts of what went wrong. Latencies are µs.
#[derive(Default, Serialize)]
pub(super) struct Headline {
    /// Suite that is run, and the version of the store.
    suite: String,
    version: String,
    /// Trial that is shown, such as `2 of 5`; empty if there is one only.
    trial: String,
    /// True if the phase measures the store.
    measures: bool,
    /// Successful operations a second.
    rate: Option<f64>,
    /// Operations that fell due a second; `None` with closed arrivals.
    asked: Option<f64>,
    /// `service` or `response`.
    clock: &'static str,
    /// Median, 90 %, 99 %, 99.9 % and the longest.
    latency: Option<[Option<f64>; 5]>,
    /// True if latencies are lower bounds.
    at_least: bool,
    /// Objective for the p99 of this phase, if a claim has one.
    slo: Option<ClaimNow>,
    /// Requests that did not succeed: in the phase, and in the last second.
    errors: u64,
    errors_now: u64,
    /// True if the phase judges its reads.
    judges: bool,
    /// Wrong reads and lost records, in all phases of the store.
    wrong: u64,
    lost: u64,
}

impl Headline {
    pub(super) fn of(live: &LiveRun, claims: &[ClaimNow]) -> Headline {
        let Some(result) = live.fold.result() else { return Headline::default() };
        let store = result.runs.last();
        let trial = result.trial.map(|TrialNumber { number, of }| format!("{number} of {of}"));
        let named = Headline {
            suite: result.suite.name.clone(),
            version: store.and_then(|run| run.store.version.clone()).unwrap_or_default(),
            trial: trial.unwrap_or_default(),
            ..Headline::default()
        };
        let Some(phase) = live.phases.last() else { return named };
        let of_store = || live.phases.iter().filter(|one| one.run() == phase.run());
        let wrong = |phase: &LivePhase| phase.troubles.wrong.iter().map(|(_, n)| n).sum::<u64>();
        let seconds = phase.latest.length() as f64 / 1e9;
        let a_second = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let (clock, latest) = last_second(phase);
        Headline {
            measures: !phase.prepares(),
            rate: a_second(in_time(phase)),
            asked: phase.is_open().then(|| a_second(phase.latest.offered)).flatten(),
            clock,
            latency: latest.as_ref().map(latency),
            at_least: clock == "response" && phase.latest.backlog > 0,
            slo: claims.iter().find(|claim| claim.is_about_p99()).cloned(),
            errors: phase.troubles.errors.iter().map(|(_, count)| count).sum(),
            errors_now: phase.latest.failed,
            judges: phase.plan().verify,
            wrong: of_store().map(wrong).sum(),
            lost: of_store().filter_map(|phase| phase.old).map(|old| old.lost).sum(),
            ..named
        }
    }
}

/// Counts the operations of the last interval that succeeded before it ended.
fn in_time(phase: &LivePhase) -> u64 {
    let series = phase.latest.series.iter();
    series.map(|(_, measure)| measure.ok.saturating_sub(measure.drained.ok)).sum()
}

/// Returns the clock by which the phase is judged, and the latencies of the last interval by it: of gets that found nothing
/// only if all of them did.
fn last_second(phase: &LivePhase) -> (&'static str, Option<Histogram<u64>>) {
    let all = || phase.latest.series.iter().map(|(_, measure)| measure);
    let is_miss = all().all(|measure| measure.found() == 0);
    let mut sum: Option<Histogram<u64>> = None;
    for measure in all() {
        let part = match (phase.is_open(), is_miss) {
            (true, false) => &measure.response,
            (true, true) => &measure.missed_response,
            (false, false) => &measure.service,
            (false, true) => &measure.missed_service,
        };
        if let Some(part) = part {
            add(sum.get_or_insert_with(latency_histogram), part);
        }
    }
    (if phase.is_open() { "response" } else { "service" }, sum)
}
