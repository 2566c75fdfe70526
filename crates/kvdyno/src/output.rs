//! Where a run's figures go while it lasts: the result folder and the progress line. A disk that
//! refuses is said once, and the run goes on: what was measured is still printed at its end.

use std::path::PathBuf;
use std::time::SystemTime;

use kvdyno_core::load::{Observer, Progress};
use kvdyno_core::measure::{Interval, Nanos, PhaseMeasure};
use kvdyno_core::verdict;
use kvdyno_core::workload::PhasePlan;
use kvdyno_report::folder::{FolderError, Place, ResultFolder};
use kvdyno_report::result::{PhaseResult, RunResult, Status, StoreRun, Verdict, rfc3339};

use crate::progress::ProgressLine;

/// The result of a run in the making.
pub struct Output {
    folder: ResultFolder,
    result: RunResult,
    origin: Nanos,
    quiet: bool,
    strict: bool,
}

impl Output {
    /// Output into `folder`, whose clock's origin is `origin`.
    pub fn new(
        folder: ResultFolder,
        result: RunResult,
        origin: Nanos,
        quiet: bool,
        strict: bool,
    ) -> Self {
        let output = Output { folder, result, origin, quiet, strict };
        output.save();
        output
    }

    /// The run's begin on core's clock.
    pub fn origin(&self) -> Nanos {
        self.origin
    }

    /// A suspect measurement is as good as none.
    pub fn strict(&self) -> bool {
        self.strict
    }

    /// The next store begins.
    pub fn begin_store(&mut self, run: StoreRun) {
        self.result.runs.push(run);
        self.save();
    }

    /// Watches a phase of the store that began last.
    pub fn observer<'a>(&'a mut self, store: &'a str, phase: &'a PhasePlan) -> PhaseObserver<'a> {
        let line = ProgressLine::new(store, phase, self.quiet);
        let run = self.result.runs.len().saturating_sub(1);
        PhaseObserver { folder: &mut self.folder, place: Place::new(run, store, phase), line }
    }

    /// A phase of the store that began last is over.
    pub fn add_phase(&mut self, phase: &PhasePlan, measure: &PhaseMeasure, result: PhaseResult) {
        let number = self.result.runs.len().saturating_sub(1);
        let Some(run) = self.result.runs.last_mut() else { return };
        run.phases.push(result);
        let name = run.store.name.clone();
        warn(self.folder.add_anomalies(Place::new(number, &name, phase), measure));
        self.save();
    }

    /// The store that began last is done with.
    pub fn end_store(&mut self, verdict: &verdict::Verdict, status: Status) {
        if let Some(run) = self.result.runs.last_mut() {
            run.verdict = Some(Verdict::from(verdict));
            run.ended = Some(rfc3339(SystemTime::now()));
            run.status = status;
        }
        self.save();
    }

    /// Ends the run: writes the result a last time, and its report. The report's path, if there
    /// is one.
    pub fn finish(mut self, status: Status) -> (RunResult, Option<PathBuf>) {
        self.result.status = status;
        self.result.ended = Some(rfc3339(SystemTime::now()));
        self.save();
        let report = self.folder.write_report(&self.result).map_err(complain).ok();
        (self.result, report)
    }

    fn save(&self) {
        warn(self.folder.save(&self.result));
    }
}

/// Watches one phase.
pub struct PhaseObserver<'a> {
    folder: &'a mut ResultFolder,
    place: Place<'a>,
    line: ProgressLine,
}

impl Observer for PhaseObserver<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.line.interval(interval);
        warn(self.folder.add_interval(self.place, interval));
    }

    fn progress(&mut self, progress: &Progress) {
        self.line.show(progress);
    }
}

fn warn(written: Result<(), FolderError>) {
    if let Err(error) = written {
        complain(error);
    }
}

fn complain(error: FolderError) {
    eprintln!("kvdyno: {error}; the run goes on, and its figures are printed at the end");
}
