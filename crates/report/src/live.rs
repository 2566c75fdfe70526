//! A run while it lasts, for its live page. The page and its charts are those of the report: the tables come from the
//! result of the events so far, the charts from the events, and both are drawn by the same code.

mod claim_now;
mod headline;
mod manual_control;
mod now;
mod phase;

use std::ops::Range;
use std::path::Path;

use kvdyno_core::suite::Plan;
use serde::Serialize;

use crate::claims;
use crate::events::fold::Fold;
use crate::events::{Event, Used};
use crate::html::HtmlError;
use crate::html::capacity::CapacityCharts;
use crate::html::charts::{Charts, PhaseCharts, RunCharts};
use crate::html::page::page;
pub use crate::html::page::{live_script, live_style};
use crate::ranking::store_labels;
use crate::result::{ClaimResult, FaultResult, ProbeResult, RunResult, Status, Verdict};
use crate::timeline::DrawnTimeline;

use claim_now::ClaimNow;
use now::{Activity, Now};
use phase::LivePhase;

/// Page before the run has begun. The browser asks for it again each second.
const NOT_BEGUN: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="1">
<title>kvdyno</title>
<link rel="stylesheet" href="style.css">
</head>
<body class="waits"><main><h1>kvdyno</h1><p>The run has not begun. This page shows it when it does.</p></main></body>
</html>
"#;

/// Script of the worker that all pages of one browser share: it asks for the stream of events once.
pub const STREAM_SCRIPT: &str = include_str!("../templates/page/stream.js");

/// Renders the page of a result on disk, and the message for its viewers: all of its charts, with the instruction to ask
/// for the page again. A run that goes on has the charts of its finished phases.
///
/// # Errors
/// [`HtmlError`] if a histogram of the result cannot be decoded.
pub fn of_folder(result: &RunResult, folder: &Path) -> Result<(String, String), HtmlError> {
    let charts = Charts::new(result, &DrawnTimeline::read(folder, result))?;
    let page = page(result, &charts, true)?;
    let now = Now::of_folder(result);
    Ok((page, to_json(&Message { charts: Some(charts), points: None, tables: true, now })))
}

/// A stretch of a phase's time that a viewer has zoomed to.
#[derive(Clone, Debug, PartialEq)]
pub struct Zoom {
    /// Index in the charts' phases.
    phase: usize,
    /// Seconds since the phase began.
    of_phase: Range<f64>,
}

impl Zoom {
    /// Parses the query of an address: `phase=1&from=2.5&to=9`. `None` if it is malformed.
    #[must_use]
    pub fn asked(query: &str) -> Option<Zoom> {
        let of = |name: &str| {
            query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        };
        let of_phase = of("from")?.parse().ok()?..of("to")?.parse().ok()?;
        Some(Zoom { phase: of("phase")?.parse().ok()?, of_phase })
    }
}

/// Returns the points of a stretch of a phase of a result on disk, as finely as charts can show them: as JSON for each
/// store.
///
/// # Errors
/// [`HtmlError`] if a histogram of the result cannot be decoded.
pub fn stretch_of_folder(
    result: &RunResult,
    folder: &Path,
    stretch: &Zoom,
) -> Result<String, HtmlError> {
    let runs = Charts::stretch(result, folder, stretch.phase, &stretch.of_phase)?;
    Ok(serde_json::to_string(&runs).expect("charts are plain JSON"))
}

/// State of a run so far, for its viewers.
#[derive(Default)]
pub struct LiveRun {
    fold: Fold,
    phases: Vec<LivePhase>,
    /// Probes of a search, until its result is known.
    probes: Vec<ProbeResult>,
    /// Verdict and claims so far of the store that is running.
    judged: Option<(Verdict, Vec<ClaimResult>)>,
    activity: Activity,
    /// Plan of the run, for its claims.
    plan: Option<Plan>,
    /// Examples of wrong reads, from all phases that are over.
    anomalies: Vec<String>,
    /// Faults and repairs, latest last.
    faults: Vec<FaultNow>,
    /// True if its viewers may steer it.
    may_steer: bool,
}

/// A fault or a repair.
#[derive(Clone, PartialEq)]
struct FaultNow {
    what: String,
    /// Begin, ns since its phase began.
    at_ns: u64,
    /// Name of the phase.
    phase: String,
}

impl FaultNow {
    fn text(&self) -> String {
        format!("{}, {:.1} s into {}", self.what, self.at_ns as f64 / 1e9, self.phase)
    }
}

/// Message to viewers about an event, as JSON.
#[derive(Serialize)]
struct Message {
    /// All charts; they replace the old ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    charts: Option<Charts>,
    /// New points of a phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    points: Option<Points>,
    /// True if the tables have changed, so that the viewer must ask for the page again.
    tables: bool,
    now: Now,
}

/// New points in the charts of a phase.
#[derive(Serialize)]
struct Points {
    /// Index in the charts' phases, and in the runs of that phase.
    phase: usize,
    run: usize,
    /// Number of old points that stay: of the timeline, and of each process.
    from: usize,
    used_from: Vec<usize>,
    charts: RunCharts,
}

/// Part of the page that an event changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing on the page changes.
    Nothing,
    /// The strip at the head of the page, with the state of the run, changes.
    Now,
    /// The charts of the current phase have more points; so many points of the timeline stay.
    Points(usize),
    /// All charts change.
    Charts,
    /// All charts change, and the tables.
    Tables,
}

impl LiveRun {
    /// Creates a run that its viewers may steer.
    #[must_use]
    pub fn steered() -> LiveRun {
        LiveRun { may_steer: true, ..LiveRun::default() }
    }

    /// Takes the next event in. Returns the part of the page that it changes; [`LiveRun::message`] passes that on to viewers.
    pub fn on_event(&mut self, event: &Event) -> Change {
        // A viewer may miss events that a result needs, and is still a viewer.
        let _ = self.fold.apply(event);
        if matches!(event, Event::RunBegan(_)) {
            // Each of several trials begins anew.
            let (fold, may_steer) = (std::mem::take(&mut self.fold), self.may_steer);
            let plan = fold.result().map(|result| result.suite.plan.clone());
            let plan = plan.and_then(|plan| serde_json::from_value(plan).ok());
            *self = LiveRun { fold, may_steer, plan, ..LiveRun::default() };
        }
        let change = self.change(event);
        self.activity.on_event(event);
        change
    }

    /// Returns the message to viewers about the last event, as JSON; `None` if the page does not change.
    pub fn message(&mut self, change: Change) -> Option<String> {
        let mut message = Message { charts: None, points: None, tables: false, now: self.now() };
        match change {
            Change::Nothing => return None,
            Change::Now => {}
            Change::Points(from) => message.points = self.points(from),
            Change::Charts => message.charts = Some(self.charts()),
            Change::Tables => (message.charts, message.tables) = (Some(self.charts()), true),
        }
        self.pass_over();
        Some(to_json(&message))
    }

    /// Marks the last event as known to viewers: those that come later are told everything.
    pub fn pass_over(&mut self) {
        if let Some(phase) = self.phases.last_mut() {
            phase.mark_uses_published();
        }
    }

    /// Returns a message with everything.
    #[must_use]
    pub fn snapshot(&self) -> String {
        to_json(&Message {
            charts: Some(self.charts()),
            points: None,
            tables: true,
            now: self.now(),
        })
    }

    /// Renders the whole page, or one that waits for the run to begin.
    ///
    /// # Errors
    /// [`HtmlError`] if a histogram of the result cannot be decoded.
    pub fn page(&self) -> Result<String, HtmlError> {
        let Some(result) = self.result() else { return Ok(NOT_BEGUN.to_owned()) };
        Ok(page(&result, &self.charts(), true)?)
    }

    /// Returns the points of a stretch of a phase, as finely as they are kept: as JSON for each store that has the phase.
    #[must_use]
    pub fn stretch(&self, asked: &Zoom) -> String {
        let phases = self.in_charts();
        let runs = phases.get(asked.phase).into_iter().flatten();
        let charts: Vec<RunCharts> = runs.map(|live| live.stretch(&asked.of_phase)).collect();
        serde_json::to_string(&charts).expect("charts are plain JSON")
    }

    /// Returns true if the run is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.fold.result().is_some_and(|result| result.status != Status::Running)
    }

    /// Returns the result of the events so far, with the verdict so far.
    fn result(&self) -> Option<RunResult> {
        let mut result = self.fold.result()?.clone();
        if let (Some(run), Some((verdict, claims))) = (result.runs.last_mut(), &self.judged)
            && run.verdict.is_none()
        {
            (run.verdict, run.claims) = (Some(verdict.clone()), claims.clone());
        }
        Some(result)
    }

    fn change(&mut self, event: &Event) -> Change {
        match event {
            Event::PhaseBegan(began) => {
                // A phase with the same number that was begun before begins anew.
                self.phases.retain(|phase| !phase.is(began.run, began.plan.index));
                self.phases.push(LivePhase::new(began));
                Change::Charts
            }
            Event::Interval(interval) => {
                let Some(phase) = self.phases.last_mut() else { return Change::Nothing };
                phase.interval(interval)
            }
            Event::Used(used) => self.used(used),
            Event::Worked { work } => match self.phases.last_mut() {
                Some(phase) => phase.worked(work),
                None => Change::Nothing,
            },
            Event::FaultBegan { what, at_ns } => self.fault_began(what, *at_ns),
            Event::FaultDone(fault) => self.fault_done(fault),
            Event::Steered(steered) => match self.phases.last_mut() {
                Some(phase) => phase.steered(steered),
                None => Change::Nothing,
            },
            Event::LoadEnded(ended) => {
                let found = ended.anomalies.iter();
                self.anomalies
                    .extend(found.map(|a| format!("{} record {}", a.kind.name(), a.record)));
                if let Some(phase) = self.phases.last_mut() {
                    phase.end(ended.old);
                }
                Change::Charts
            }
            Event::Probed(probe) => {
                self.probes.push((**probe).clone());
                Change::Charts
            }
            Event::Searched(_) => {
                self.probes.clear();
                Change::Tables
            }
            Event::JudgedSoFar { verdict, claims } => {
                self.judged = Some((verdict.clone(), claims.clone()));
                Change::Tables
            }
            Event::StoreBegan(_) => {
                self.judged = None;
                Change::Tables
            }
            Event::RunBegan(_)
            | Event::PhaseEnded(_)
            | Event::StoreFailed { .. }
            | Event::NodesCame { .. }
            | Event::StoreEnded(_)
            | Event::Judged { .. }
            | Event::RunEnded { .. } => Change::Tables,
            Event::Progress(_) | Event::ReadingAgain(_) | Event::RecoveryWait { .. } => Change::Now,
        }
    }

    /// Judges the claims about the current phase so far.
    fn claims_so_far(&self) -> Vec<ClaimNow> {
        let run = self.fold.result().and_then(|result| result.runs.last());
        let (Some(plan), Some(phase), Some(run)) = (&self.plan, self.phases.last(), run) else {
            return Vec::new();
        };
        if run.phases.iter().any(|ended| phase.is(phase.run(), ended.index)) {
            // The tables have the outcome of these claims.
            return Vec::new();
        }
        let stands = claims::so_far(plan, run, phase.plan(), || phase.so_far());
        stands.into_iter().map(ClaimNow::of).collect()
    }

    fn used(&mut self, used: &Used) -> Change {
        match self.phases.last_mut().filter(|phase| !phase.is_over()) {
            Some(phase) => phase.used(used),
            None => Change::Nothing,
        }
    }

    fn fault_now(&self, what: &str, at_ns: u64) -> FaultNow {
        let phase = self.phases.last().map_or_else(String::new, |phase| phase.plan().name.clone());
        FaultNow { what: what.to_owned(), at_ns, phase }
    }

    fn fault_began(&mut self, what: &str, at_ns: u64) -> Change {
        self.faults.push(self.fault_now(what, at_ns));
        match self.phases.last_mut() {
            Some(phase) => phase.fault_began(what, at_ns),
            None => Change::Now,
        }
    }

    fn fault_done(&mut self, fault: &FaultResult) -> Change {
        // This is the fault that was told to have begun, now with the nodes that it hit.
        let begun = self.fault_now(&fault.what, fault.began_ns);
        self.faults.retain(|fault| *fault != begun);
        let target = format!("{} {}", fault.what, fault.node);
        let target = target.trim_end();
        let what = match &fault.error {
            Some(why) => format!("{target} (not done: {why})"),
            None => target.to_owned(),
        };
        self.faults.push(FaultNow { what, ..begun });
        match self.phases.last_mut() {
            Some(phase) => phase.fault_done(fault),
            None => Change::Now,
        }
    }

    fn points(&self, from: usize) -> Option<Points> {
        let last = self.phases.last()?;
        let (mut phase, mut run) = (0, 0);
        let order = self.in_charts();
        for (index, runs) in order.iter().enumerate() {
            if let Some(at) = runs.iter().position(|live| std::ptr::eq(*live, last)) {
                (phase, run) = (index, at);
            }
        }
        let used_from = last.published_uses().to_vec();
        let charts = last.charts((from, &used_from), None)?;
        Some(Points { phase, run, from, used_from, charts })
    }

    /// Returns the phases in the order of the charts: those of several stores together.
    fn in_charts(&self) -> Vec<Vec<&LivePhase>> {
        let mut order: Vec<Vec<&LivePhase>> = Vec::new();
        for phase in &self.phases {
            match order.iter_mut().find(|runs| runs[0].goes_with(phase)) {
                Some(runs) => runs.push(phase),
                None => order.push(vec![phase]),
            }
        }
        order.sort_by_key(|runs| runs[0].place());
        order
    }

    fn charts(&self) -> Charts {
        let result = self.fold.result();
        let of_result = |live: &LivePhase| {
            let run = result?.runs.get(live.run())?;
            run.phases.iter().find(|phase| live.is(live.run(), phase.index))
        };
        let phases = self.in_charts().into_iter().map(|runs| PhaseCharts {
            title: runs[0].title(),
            prepares: runs[0].prepares(),
            open: runs[0].is_open(),
            runs: runs.iter().filter_map(|live| live.charts((0, &[]), of_result(live))).collect(),
        });
        let mut capacity = result.map(CapacityCharts::all).unwrap_or_default();
        let store = result.map_or(0, |result| result.runs.len().saturating_sub(1));
        capacity.extend(CapacityCharts::so_far(store, &self.probes));
        let stores = result.map(store_labels).unwrap_or_default();
        Charts { stores, phases: phases.collect(), capacity }
    }

    fn now(&self) -> Now {
        Now::of(self)
    }
}

fn to_json(message: &Message) -> String {
    serde_json::to_string(message).expect("what is told is plain JSON")
}

#[cfg(test)]
mod tests;
