//! State of a run at this moment, for the strip at the head of its page.

use hdrhistogram::{Counter, Histogram};
use kvdyno_core::ground::numbers::{approximate_count, bytes_text, duration_text};
use kvdyno_core::load::Progress;
use kvdyno_core::measure::{KindMeasure, OldRecords, Series, Troubles};
use serde::Serialize;

use super::claim_now::ClaimNow;
use super::headline::Headline;
use super::manual_control::OfferedActions;
use super::phase::{LivePhase, latency};
use super::{FaultNow, LiveRun};
use crate::events::Event;
use crate::result::{RunResult, Status, TrialNumber};
use crate::timeline::Use;

/// Most texts of each list that are shown: the latest.
const LATEST: usize = 8;

/// Current activity of the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Activity {
    text: String,
    progress: Option<Progress>,
}

/// State of the run.
#[derive(Default, Serialize)]
pub(super) struct Now {
    /// True while the run goes on.
    is_running: bool,
    /// Current activity, or how the run ended.
    activity: String,
    store: String,
    phase: String,
    /// Share of the phase that is done; after it, seconds that are left at the present pace.
    done: Option<f64>,
    left_s: Option<f64>,
    /// Requests that are due and not started.
    backlog: u64,
    head: Headline,
    steps: Vec<Step>,
    rows: Vec<Row>,
    /// Claims about the phase so far.
    claims: Vec<ClaimNow>,
    /// Latest resource use of each process.
    uses: Vec<Vec<String>>,
    /// Wrong reads, as far as examples are kept.
    anomalies: Vec<String>,
    /// Errors and wrong reads in the phase so far.
    troubles: Vec<String>,
    faults: Vec<String>,
    /// Actions that viewers may choose from; `None` if they may not steer.
    #[serde(skip_serializing_if = "Option::is_none")]
    steer: Option<OfferedActions>,
}

/// A phase of the store that is running.
#[derive(Serialize)]
struct Step {
    name: String,
    /// `done`, `now` or `later`.
    state: &'static str,
    /// Number of its charts; `None` if it has none yet.
    charts: Option<usize>,
}

/// Figures of one kind of one group; latencies are µs.
#[derive(Serialize)]
struct Row {
    /// `last second` or `whole phase`.
    scope: &'static str,
    name: String,
    /// `service` or `response`.
    clock: &'static str,
    rate: f64,
    missed: u64,
    failed: u64,
    /// Median, 90 %, 99 %, 99.9 % and the longest; a percentile is left out if there are too few operations for it.
    latency: Option<[Option<f64>; 5]>,
    /// True if latencies are lower bounds: operations that are due and not started are in none of them.
    at_least: bool,
}

impl Activity {
    pub(super) fn on_event(&mut self, event: &Event) {
        let (text, progress) = match event {
            Event::Progress(progress) => ("load".to_owned(), Some(*progress)),
            Event::ReadingAgain(progress) => {
                let of = progress.requests.unwrap_or(0);
                let count = |count: u64| approximate_count(count as f64);
                let (done, of) = (count(progress.completed), count(of));
                (format!("reads again what looked wrong: {done} of {of}"), Some(*progress))
            }
            Event::RecoveryWait { what } => (format!("after the load: {what}"), None),
            Event::PhaseBegan(_) => ("load".to_owned(), None),
            Event::LoadEnded(_) | Event::PhaseEnded(_) | Event::StoreEnded(_) => {
                ("between phases".to_owned(), None)
            }
            Event::RunBegan(_) => ("begins".to_owned(), None),
            _ => return,
        };
        *self = Activity { text, progress };
    }
}

impl Now {
    /// Describes a result on disk, which has only finished phases.
    pub(super) fn of_folder(result: &RunResult) -> Now {
        let ended = ended(&result.status);
        let so_far = "the run goes on; its phases are shown when they are over".to_owned();
        Now { is_running: ended.is_none(), activity: ended.unwrap_or(so_far), ..Now::default() }
    }

    pub(super) fn of(live: &LiveRun) -> Now {
        let phase = live.phases.last();
        let result = live.fold.result();
        let ended = result.and_then(|result| ended(&result.status));
        let store = result.and_then(|result| result.runs.last());
        let (done, left_s) = match (&live.activity.progress, phase) {
            (Some(progress), Some(phase)) => far(progress, phase),
            _ => (None, None),
        };
        let claims = live.claims_so_far();
        Now {
            head: Headline::of(live, &claims),
            is_running: ended.is_none(),
            activity: ended.unwrap_or_else(|| activity(live)),
            store: store.map_or(String::new(), |run| run.store.name.clone()),
            phase: phase.map_or(String::new(), LivePhase::title),
            done,
            left_s,
            backlog: phase.map_or(0, |phase| phase.latest.backlog),
            steps: steps(live),
            rows: phase.map_or_else(Vec::new, rows),
            claims,
            uses: phase.map_or_else(Vec::new, |phase| {
                phase.last_uses().map(|(name, used)| use_text(name, &used)).collect()
            }),
            anomalies: latest(&live.anomalies).to_vec(),
            troubles: phase.map_or_else(Vec::new, troubles),
            faults: latest(&live.faults).iter().map(FaultNow::text).collect(),
            steer: (live.may_steer && live.fold.is_loading())
                .then(|| phase.map(|phase| OfferedActions::of(phase, store)))
                .flatten(),
        }
    }
}

/// Describes the activity of the run, and which of several trials it is: the page shows no other.
fn activity(live: &LiveRun) -> String {
    match live.fold.result().and_then(|result| result.trial) {
        Some(TrialNumber { number, of }) => {
            format!("trial {number} of {of}, which begins anew · {}", live.activity.text)
        }
        None => live.activity.text.clone(),
    }
}

/// Returns the last items of a list.
fn latest<T>(all: &[T]) -> &[T] {
    &all[all.len().saturating_sub(LATEST)..]
}

/// Describes the latest resource use of a process: processors and memory, and bytes written and sent where they are known.
fn use_text(name: &str, used: &Use) -> Vec<String> {
    let memory = bytes_text(used.rss_bytes as f64);
    let mut text = vec![name.to_owned(), format!("{:.2} CPUs", used.processors), memory];
    let a_second = |bytes: u64| bytes_text(bytes as f64 / used.length_s.max(1e-3));
    let written = used.written_bytes.filter(|bytes| *bytes > 0);
    text.extend(written.map(|bytes| format!("{}/s to storage", a_second(bytes))));
    text.extend(used.network_bytes.map(|bytes| format!("{}/s of network", a_second(bytes))));
    text
}

/// Describes the errors and wrong reads of a phase so far, one line each.
fn troubles(phase: &LivePhase) -> Vec<String> {
    let Troubles { errors, wrong, latest_send } = &phase.troubles;
    let counts = |counts: Vec<(&str, u64)>| {
        let texts = counts.iter().map(|(name, count)| format!("{count} {name}"));
        texts.collect::<Vec<_>>().join(", ")
    };
    let mut lines = Vec::new();
    if !errors.is_empty() {
        let errors = errors.iter().map(|(class, count)| (class.name(), *count));
        lines.push(format!("errors: {}", counts(errors.collect())));
    }
    if !wrong.is_empty() {
        let wrong = wrong.iter().map(|(kind, count)| (kind.name(), *count));
        let note =
            if phase.old.is_none() { "; their records are read again after the load" } else { "" };
        lines.push(format!("wrong reads as they were made: {}{note}", counts(wrong.collect())));
    }
    if let Some(old) = phase.old.filter(|old| *old != OldRecords::default()) {
        lines.push(format!(
            "records that were old or absent, read again: {} lost, {} right, {} not answered",
            old.lost, old.late, old.unread
        ));
    }
    if *latest_send > 0 {
        let [last, all] =
            [phase.latest.troubles.latest_send, *latest_send].map(|ns| duration_text(ns as f64));
        lines.push(format!("sent later than due although a client was free: at most {last} in the last second, {all} in the phase"));
    }
    lines
}

/// Describes how a run ended; `None` while it goes on.
fn ended(status: &Status) -> Option<String> {
    match status {
        Status::Running => None,
        Status::Complete => Some("the run is complete".to_owned()),
        Status::Interrupted => Some("the run was interrupted".to_owned()),
        Status::Failed { message } => Some(format!("the run failed: {message}")),
    }
}

fn far(progress: &Progress, phase: &LivePhase) -> (Option<f64>, Option<f64>) {
    let elapsed = progress.elapsed.as_secs_f64();
    let by_time = phase.plan().duration.map(|whole| elapsed / whole.as_secs_f64());
    let of = progress.requests.filter(|of| *of > 0);
    let by_count = of.map(|of| progress.completed as f64 / of as f64);
    let done = [by_time, by_count].into_iter().flatten().reduce(f64::max);
    let done = done.map(|done| done.clamp(0.0, 1.0));
    let left = done.filter(|done| *done > 0.0).map(|done| elapsed / done - elapsed);
    (done, left)
}

/// Lists the phases of the store that is running: those that ran, and those that the plan has for later.
fn steps(live: &LiveRun) -> Vec<Step> {
    let Some(result) = live.fold.result() else { return Vec::new() };
    let run = result.runs.len().saturating_sub(1);
    let begun: Vec<&LivePhase> = live.phases.iter().filter(|phase| phase.run() == run).collect();
    let order = live.in_charts();
    let charts = |phase: &LivePhase| {
        order.iter().position(|runs| runs.iter().any(|other| std::ptr::eq(*other, phase)))
    };
    let mut steps: Vec<Step> = begun
        .iter()
        .map(|phase| Step {
            name: phase.plan().name.clone(),
            state: if phase.is_over() { "done" } else { "now" },
            charts: charts(phase),
        })
        .collect();
    let planned = result.suite.plan["phases"].as_array().into_iter().flatten();
    let named = planned.filter_map(|phase| phase["name"].as_str().or(phase.as_str()));
    let skipped = |name: &str| {
        let run = result.runs.last();
        run.is_some_and(|run| run.skipped.iter().any(|skipped| skipped.name == name))
    };
    let is_running = result.status == Status::Running;
    let later = named.filter(|name| {
        is_running && !skipped(name) && begun.iter().all(|phase| phase.plan().name != *name)
    });
    steps.extend(later.map(|name| Step { name: name.to_owned(), state: "later", charts: None }));
    steps
}

fn rows(phase: &LivePhase) -> Vec<Row> {
    let seconds = phase.latest.length() as f64 / 1e9;
    let mut rows = Vec::new();
    for (series, measure) in &phase.latest.series {
        add_rows(&mut rows, "last second", name(phase, *series), measure, seconds);
    }
    for (series, measure) in &phase.whole {
        add_rows(&mut rows, "whole phase", name(phase, *series), measure, phase.measured_s);
    }
    for row in rows.iter_mut().filter(|row| row.clock == "response") {
        row.at_least = phase.latest.backlog > 0;
    }
    rows
}

/// Names the kind, with its group where there are several.
fn name(phase: &LivePhase, series: Series) -> String {
    let groups = &phase.plan().groups;
    match groups.get(usize::from(series.group)).filter(|_| groups.len() > 1) {
        Some(group) => format!("{} {}", group.name, series.kind.name()),
        None => series.kind.name().to_owned(),
    }
}

fn add_rows<C: Counter>(
    rows: &mut Vec<Row>,
    scope: &'static str,
    name: String,
    measure: &KindMeasure<Histogram<C>>,
    seconds: f64,
) {
    let found = measure.found();
    let missed = measure.ok - found;
    let in_time = measure.ok.saturating_sub(measure.drained.ok) as f64;
    let rate = if seconds > 0.0 { in_time / seconds } else { 0.0 };
    let clocks = match found > 0 {
        true => [("service", &measure.service), ("response", &measure.response)],
        false => [("service", &measure.missed_service), ("response", &measure.missed_response)],
    };
    for (clock, histogram) in clocks {
        if clock == "response" && histogram.is_none() {
            continue;
        }
        let latency = histogram.as_ref().map(latency);
        let failed = measure.failed + measure.indeterminate;
        let name = name.clone();
        rows.push(Row { scope, name, clock, rate, missed, failed, latency, at_least: false });
    }
}
