//! The one list of what a report of a run holds, in order. A new section is a function that makes its blocks, in a file of
//! its own, and a line here: every output has it then.

use super::{Block, Detail, Document, Place, Section};
use super::{
    agents, anomalies, claims, course, disclosure, drivers, errors, faults, figures, findings,
    heading, ranking, resources, verdict,
};
use crate::cell::LatencyUnit;
use crate::lines::latency_unit;
use crate::ranking::{Ranking, store_labels};
use crate::result::{HistogramError, PhaseResult, RunResult, StoreRun};
use crate::view::{PhaseView, rows};
use crate::wording::{difference_stamp, shows_published};

/// A section: what it is called, who shows it, and how it is made.
struct Kind {
    id: &'static str,
    title: &'static str,
    place: Place,
    detail: Detail,
    build: Build,
}

/// How the blocks of a section are made: once for the run, or for each store.
#[derive(Clone, Copy)]
enum Build {
    Run(fn(&Subject<'_>) -> Vec<Block>),
    Store(fn(&StoreSubject<'_>) -> Vec<Block>),
}

use Build::{Run, Store};
use Detail::{Always, Demand, Page};
use Place::{Card, Charts, Figures, Summary, Tables};

/// Every section, in order; those without a title go on where the one before them ends.
const SECTIONS: &[Kind] = &[
    kind("verdict", "", Card, Always, Store(verdict::blocks)),
    kind("verification", "", Card, Always, Store(findings::verification)),
    kind("findings", "", Card, Always, Store(findings::findings)),
    kind("notes", "", Card, Always, Store(findings::notes)),
    kind("remarks", "", Card, Demand, Store(verdict::remarks)),
    kind("claims", "Claims", Tables, Always, Store(claims::blocks)),
    kind("figures", "Figures", Figures, Always, Store(figures::blocks)),
    kind("agents", "Agents", Tables, Always, Store(agents::blocks)),
    kind("drivers", "Noticed by the drivers", Tables, Always, Store(drivers::blocks)),
    kind("course", "What limited it, and what happened", Tables, Always, Store(course::blocks)),
    kind("faults", "Done to the testbed", Tables, Always, Store(faults::done)),
    kind("costs", "What the faults cost", Tables, Always, Store(faults::costs)),
    kind("writes", "What became of the writes", Tables, Always, Store(faults::writes)),
    kind("errors", "Errors", Tables, Always, Store(errors::blocks)),
    kind("anomalies", "Anomalies", Tables, Page, Store(anomalies::blocks)),
    kind("resources", "Resources", Tables, Page, Store(resources::blocks)),
    kind("disclosure", "Disclosure", Tables, Page, Store(disclosure::of_store)),
    kind("ranking", "Which is ahead", Summary, Always, Run(ranking::blocks)),
    kind("columns", "", Figures, Page, Run(figures::meanings)),
    kind("capacity", "Capacity", Charts, Page, Run(figures::capacity_charts)),
    kind("charts", "Charts", Charts, Page, Run(figures::charts)),
    kind("host", "Machine of the load", Tables, Page, Run(disclosure::of_host)),
    kind("command", "Command", Tables, Page, Run(disclosure::of_command)),
];

const fn kind(
    id: &'static str,
    title: &'static str,
    place: Place,
    detail: Detail,
    build: Build,
) -> Kind {
    Kind { id, title, place, detail, build }
}

/// What a report is about, read once.
pub(crate) struct Subject<'a> {
    pub result: &'a RunResult,
    pub labels: Vec<String>,
    /// Rows of the main table, of each store and phase.
    pub views: Vec<Vec<Vec<PhaseView>>>,
    pub ranking: Option<Ranking>,
    pub unit: LatencyUnit,
    /// The run may go on.
    pub is_live: bool,
    /// There are points of time to draw.
    pub has_timeline: bool,
}

/// A store of what a report is about.
pub(crate) struct StoreSubject<'a> {
    pub all: &'a Subject<'a>,
    pub run: &'a StoreRun,
    pub label: &'a str,
    views: &'a [Vec<PhaseView>],
}

impl<'a> Subject<'a> {
    /// Reads a result. Unless it is told otherwise its run is over and its output has no charts over time.
    ///
    /// # Errors
    /// [`HistogramError`] if a histogram of the result cannot be decoded.
    pub fn of(result: &'a RunResult) -> Result<Subject<'a>, HistogramError> {
        let mut views = Vec::new();
        for run in &result.runs {
            let of_phase = |phase| rows(phase, shows_published(result));
            views.push(run.phases.iter().map(of_phase).collect::<Result<_, _>>()?);
        }
        Ok(Subject {
            result,
            labels: store_labels(result),
            views,
            ranking: Ranking::of(result)?,
            unit: latency_unit(result),
            is_live: false,
            has_timeline: false,
        })
    }

    /// Builds the whole report.
    pub fn document(&self) -> Document {
        let is_of_store = |kind: &&Kind| matches!(kind.build, Store(_));
        let first = SECTIONS.iter().position(|kind| is_of_store(&kind)).unwrap_or(0);
        let (before, after) = SECTIONS.split_at(first);
        let mut sections: Vec<Section> = before.iter().filter_map(|kind| self.section(kind)).collect();
        for at in 0..self.result.runs.len() {
            let of_store = SECTIONS.iter().filter(is_of_store);
            sections.extend(of_store.filter_map(|kind| self.of_store(kind, at)));
        }
        sections.extend(after.iter().filter_map(|kind| self.section(kind)));
        let title = |(run, label): (&StoreRun, &String)| match &run.store.version {
            Some(version) => format!("{label} {version}"),
            None => format!("{label} (version unknown)"),
        };
        Document {
            title: self.result.suite.name.clone(),
            subtitle: self.result.suite.title.clone(),
            facts: heading::facts(self.result),
            stamps: difference_stamp(self.result).into_iter().chain(heading::stamps(self)).collect(),
            stores: self.result.runs.iter().zip(&self.labels).map(title).collect(),
            sections,
        }
    }

    fn section(&self, kind: &Kind) -> Option<Section> {
        let Run(build) = kind.build else { return None };
        kind.section(None, build(self))
    }

    fn of_store(&self, kind: &Kind, at: usize) -> Option<Section> {
        let Store(build) = kind.build else { return None };
        let (run, label) = (&self.result.runs[at], &self.labels[at]);
        let store = StoreSubject { all: self, run, label, views: &self.views[at] };
        kind.section(Some(at), build(&store))
    }
}

impl StoreSubject<'_> {
    /// Each phase with its rows of the main table.
    pub fn phases(&self) -> impl Iterator<Item = (&PhaseResult, &[PhaseView])> {
        self.run.phases.iter().zip(self.views.iter().map(Vec::as_slice))
    }
}

impl Kind {
    fn section(&self, store: Option<usize>, blocks: Vec<Block>) -> Option<Section> {
        let Kind { id, title, place, detail, .. } = *self;
        (!blocks.is_empty()).then_some(Section { id, title, place, detail, store, blocks })
    }
}

/// Builds the report of a run that is over, for outputs without charts.
///
/// # Errors
/// [`HistogramError`] if a histogram of the result cannot be decoded.
pub(crate) fn of_result(result: &RunResult) -> Result<Document, HistogramError> {
    Ok(Subject::of(result)?.document())
}

/// Returns who shows what is of a phase: warm-ups are left out on a terminal unless something went wrong in them, and so
/// are probes of a search, which the search tells of.
pub(crate) fn detail_of(phase: &PhaseResult) -> Detail {
    let wrong = phase.tally.as_ref().is_some_and(|tally| tally.illegal() > 0);
    let tried = phase.probe.as_deref().is_some_and(|purpose| purpose != "confirm");
    match wrong || !tried && (!phase.warmup || phase.unsuccessful() > 0) {
        true => Always,
        false => Detail::Written,
    }
}
