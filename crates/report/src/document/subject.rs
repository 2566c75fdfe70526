//! The subject of a report: a result, read once, and each of its stores.

use super::Detail;
use crate::cell::LatencyUnit;
use crate::lines::latency_unit;
use crate::ranking::{Ranking, store_labels};
use crate::result::{HistogramError, PhaseResult, RunResult, StoreRun};
use crate::view::{PhaseView, rows};
use crate::wording::shows_published;

/// A result with everything that several sections need, computed once.
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

/// One store of the result.
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
}

impl Subject<'_> {
    /// Returns one of the stores.
    pub fn store(&self, at: usize) -> StoreSubject<'_> {
        let (run, label) = (&self.result.runs[at], &self.labels[at]);
        StoreSubject { all: self, run, label, views: &self.views[at] }
    }
}

impl StoreSubject<'_> {
    /// Each phase with its rows of the main table.
    pub fn phases(&self) -> impl Iterator<Item = (&PhaseResult, &[PhaseView])> {
        self.run.phases.iter().zip(self.views.iter().map(Vec::as_slice))
    }
}

/// Returns the least detail of outputs that show figures of a phase: warm-ups are left out on a terminal unless something went wrong in them, and so
/// are probes of a search, which the search tells of.
pub(crate) fn detail_of(phase: &PhaseResult) -> Detail {
    let wrong = phase.tally.as_ref().is_some_and(|tally| tally.illegal() > 0);
    let tried = phase.probe.as_deref().is_some_and(|purpose| purpose != "confirm");
    match wrong || !tried && (!phase.warmup || phase.unsuccessful() > 0) {
        true => Detail::Always,
        false => Detail::Written,
    }
}
