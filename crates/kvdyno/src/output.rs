//! Where a run's figures go while it lasts: the result folder and the progress line. A disk that
//! refuses is said once, and the run goes on: what was measured is still printed at its end.

use std::path::PathBuf;
use std::time::SystemTime;

use kvdyno_core::load::{Observer, Progress};
use kvdyno_core::measure::{Interval, Nanos, PhaseMeasure, Resources};
use kvdyno_core::suite::Plan;
use kvdyno_core::verdict;
use kvdyno_core::workload::PhasePlan;
use kvdyno_report::files::{IntervalPlace, REPORT_FILE};
use kvdyno_report::folder::{FolderError, ResultFolder};
use kvdyno_report::result::{
    CapacityResult, PhaseResult, RESULT_FILE, RunResult, Status, StoreRun, TestbedNode, Verdict,
    WriteAccount, rfc3339,
};

use crate::exit::Exit;
use crate::progress::ProgressLine;

/// The result of a run in the making.
pub struct Output {
    folder: ResultFolder,
    result: RunResult,
    origin: Nanos,
    quiet: bool,
    strict: bool,
    trouble: Trouble,
    /// Why stores could not be run at all.
    failures: Vec<String>,
}

/// What a run that is over came to.
pub struct Finished {
    /// Its result.
    pub result: RunResult,
    /// Where its report is, if that could be written.
    pub report: Option<PathBuf>,
    /// How it ends.
    pub exit: Exit,
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
        let (trouble, failures) = (Trouble::default(), Vec::new());
        let mut output =
            Output { folder, result, origin, quiet, strict, trouble, failures };
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
        PhaseObserver {
            folder: &mut self.folder,
            place: IntervalPlace::new(run, store, phase),
            line,
            trouble: &mut self.trouble,
        }
    }

    /// Processors of this machine.
    pub fn processors(&self) -> usize {
        self.result.host.cores.map_or(1, |cores| cores as usize)
    }

    /// A phase of the store that began last is over.
    pub fn add_phase(&mut self, phase: &PhasePlan, measure: &PhaseMeasure, result: PhaseResult) {
        let number = self.result.runs.len().saturating_sub(1);
        let Some(run) = self.result.runs.last_mut() else { return };
        run.phases.push(result);
        let name = run.store.name.clone();
        let place = IntervalPlace::new(number, &name, phase);
        self.trouble.tell(self.folder.add_anomalies(place, measure));
        self.trouble.tell(self.folder.add_history(place, measure));
        self.save();
    }

    /// The phase that ended last, of the store that began last.
    pub fn last_phase_mut(&mut self) -> Option<&mut PhaseResult> {
        self.result.runs.last_mut()?.phases.last_mut()
    }

    /// What a search of the store that began last found.
    pub fn add_capacity(&mut self, found: CapacityResult) {
        if let Some(run) = self.result.runs.last_mut() {
            run.capacity.push(found);
        }
        self.save();
    }

    /// What was used during a phase of the store that began last. `nodes` are the names of the
    /// sampled servers.
    pub fn add_resources(&mut self, phase: &PhasePlan, resources: &Resources, nodes: &[String]) {
        let number = self.result.runs.len().saturating_sub(1);
        let Some(run) = self.result.runs.last() else { return };
        let place = IntervalPlace::new(number, &run.store.name, phase);
        self.trouble.tell(self.folder.add_resources(place, resources, nodes));
    }

    /// Processes of the testbed's nodes that came after it was up, all so far.
    pub fn add_nodes(&mut self, later: Vec<TestbedNode>) {
        if let Some(testbed) = self.result.runs.last_mut().and_then(|run| run.testbed.as_mut()) {
            testbed.later = later;
        }
    }

    /// What became of the writes until `phase` of the store that began last.
    pub fn account_for(&mut self, phase: &str, writes: WriteAccount) {
        let run = self.result.runs.last_mut();
        if let Some(phase) = run.and_then(|run| run.phases.iter_mut().find(|p| p.name == phase)) {
            phase.writes = Some(writes);
        }
        self.save();
    }

    /// Judges the suite's claims by what the store that began last did; how the run ends for them.
    pub fn judge_claims(&mut self, plan: &Plan) -> Exit {
        let Some(run) = self.result.runs.last_mut() else { return Exit::Done };
        run.claims = kvdyno_report::claims::judge(plan, run);
        let exit = Exit::of_claims(&run.claims);
        self.save();
        exit
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

    /// A store could not be run at all.
    pub fn add_failure(&mut self, line: &str) {
        self.failures.push(line.to_owned());
    }

    /// No store was run.
    pub fn is_empty(&self) -> bool {
        self.result.runs.is_empty()
    }

    /// Leaves no folder behind: there is nothing to keep.
    pub fn discard(self) {
        self.folder.discard();
    }

    /// Ends a run that ended with `exit`: writes the result a last time, and its report. What the
    /// folder lacks then makes it a failure.
    pub fn finish(mut self, exit: Exit) -> Finished {
        self.result.status = self.status(exit == Exit::Interrupted);
        self.result.ended = Some(rfc3339(SystemTime::now()));
        let mut lacks: Vec<String> = self.folder.cut_off().collect();
        let saved = self.folder.save(&self.result);
        lacks.extend(saved.is_err().then(|| RESULT_FILE.to_owned()));
        self.trouble.tell(saved);
        let report = self.folder.write_report(&self.result);
        lacks.extend(report.is_err().then(|| REPORT_FILE.to_owned()));
        let report = report.map_err(|error| self.trouble.tell(Err(error))).ok();
        let Some(first) = self.trouble.first else {
            return Finished { result: self.result, report, exit };
        };
        let what = match lacks.is_empty() {
            true => "a file of a phase".to_owned(),
            false => lacks.join(", "),
        };
        let folder = self.folder.path().display();
        warn_user!("kvdyno: {folder} lacks the whole of {what}: {first}; the rest is kept");
        Finished { result: self.result, report, exit: exit.worse(Exit::Internal) }
    }

    fn status(&self, interrupted: bool) -> Status {
        if interrupted {
            return Status::Interrupted;
        }
        let of_runs = self.result.runs.iter().filter_map(|run| match &run.status {
            Status::Failed { message } => Some(message),
            _ => None,
        });
        let messages: Vec<&str> = self.failures.iter().chain(of_runs).map(String::as_str).collect();
        match messages.is_empty() {
            true => Status::Complete,
            false => Status::Failed { message: messages.join("; ") },
        }
    }

    fn save(&mut self) {
        self.trouble.tell(self.folder.save(&self.result));
    }
}

/// Watches one phase.
pub struct PhaseObserver<'a> {
    folder: &'a mut ResultFolder,
    place: IntervalPlace<'a>,
    line: ProgressLine,
    trouble: &'a mut Trouble,
}

impl PhaseObserver<'_> {
    /// The clients are done, and this is put right or waited for.
    pub fn repairs(&self, what: &str) {
        self.line.show_repair(what);
    }
}

impl Observer for PhaseObserver<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.line.interval(interval);
        self.trouble.tell(self.folder.add_interval(self.place, interval));
    }

    fn progress(&mut self, progress: &Progress) {
        self.line.show(progress);
    }

    fn again(&mut self, progress: &Progress) {
        self.line.show_again(progress);
    }
}

/// Trouble with the result folder is told once while the run lasts: a full disk refuses every file,
/// every second.
#[derive(Debug, Default)]
struct Trouble {
    /// What the first file that was refused was refused for.
    first: Option<String>,
}

impl Trouble {
    fn tell(&mut self, written: Result<(), FolderError>) {
        let Err(error) = written else { return };
        if self.first.is_none() {
            warn_user!(
                "kvdyno: {error}; the run goes on and its tables are printed, but its folder will \
                 not hold everything: make room, or choose another with --out"
            );
            self.first = Some(error.to_string());
        }
    }
}
