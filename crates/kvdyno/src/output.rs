//! The output of a run under way: its stream of events, and the subscribers. An error of the disk is told once, and
//! the run goes on: what was measured is still printed at its end.

mod kept;

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use kvdyno_core::measure::Nanos;
use kvdyno_report::events::recording::{EVENTS_FILE, Recording};
use kvdyno_report::events::stream::{EventStream, FinishedSubscription, Subscription};
use kvdyno_report::events::{Event, fold::Fold};
use kvdyno_report::files::REPORT_FILE;
use kvdyno_report::folder::ResultFolder;
use kvdyno_report::result::{RESULT_FILE, RunResult, Status, rfc3339};

use crate::console::Listener;
use crate::exit::{Exit, Failure};
use crate::metrics::MeteringListener;
use crate::progress::ProgressLine;
use kept::FolderSubscriber;

/// Longest time for the terminal to show the end of a phase.
const SHOWN: Duration = Duration::from_millis(100);
/// Reason why a file lacks events that were not written in time.
const TOO_SLOW: &str = "its disk was too slow";

/// Options of a run's output.
#[derive(Default)]
pub struct Manner {
    /// True if there is no progress line.
    pub quiet: bool,
    /// True if a suspect measurement counts as invalid.
    pub strict: bool,
    /// True if every event is kept in the result's folder.
    pub events: bool,
    /// Subscriber of the live page.
    pub listener: Option<Listener>,
    /// Subscriber of the metrics.
    pub metering: Option<MeteringListener>,
}

/// Output of a run under way.
pub struct Output {
    events: EventStream,
    origin: Nanos,
    strict: bool,
    path: PathBuf,
    folder: Subscription<FolderSubscriber>,
    line: Subscription<ProgressLine>,
    recording: Option<Subscription<Recording<BufWriter<File>>>>,
    console: Option<Subscription<Listener>>,
    metering: Option<Subscription<MeteringListener>>,
}

/// Outcome of a run that is over.
pub struct Finished {
    /// Its result.
    pub result: RunResult,
    /// Path of its report, if that could be written.
    pub report: Option<PathBuf>,
    /// Exit of the run.
    pub exit: Exit,
}

impl Output {
    /// Makes the output of a run that began at `origin` on core's clock, whose `result` has no figures yet, and which
    /// is kept in `folder`.
    ///
    /// # Errors
    /// [`Failure`] if the events are to be kept and their file cannot be made.
    pub fn new(
        folder: ResultFolder,
        result: RunResult,
        origin: Nanos,
        manner: Manner,
    ) -> Result<Self, Failure> {
        let (events, path) = (EventStream::default(), folder.path().to_owned());
        let file = manner.events.then(|| File::create(path.join(EVENTS_FILE))).transpose();
        let file = file.map_err(|error| {
            let shown = path.join(EVENTS_FILE).display().to_string();
            Failure::usage(format!(
                "cannot make {shown}: {error}; choose another folder with --out"
            ))
        })?;
        let recording = file.map(|file| events.subscribe(Recording::new(BufWriter::new(file))));
        let folder = events.subscribe(FolderSubscriber::new(folder));
        let line = events.subscribe(ProgressLine::new(manner.quiet));
        let console = manner.listener.map(|listener| events.subscribe(listener));
        let metering = manner.metering.map(|listener| events.subscribe(listener));
        events.publish(Event::run_began(result));
        let strict = manner.strict;
        Ok(Output { events, origin, strict, path, folder, line, recording, console, metering })
    }

    /// Returns the stream to which the run publishes its events.
    pub fn events(&self) -> &EventStream {
        &self.events
    }

    /// Returns the run's begin on core's clock, ns.
    pub fn origin(&self) -> Nanos {
        self.origin
    }

    /// Returns true if a suspect measurement counts as invalid.
    pub fn strict(&self) -> bool {
        self.strict
    }

    /// Returns the number of the store that began last, zero-based.
    pub fn store_number(&self) -> usize {
        self.events.look(|fold| stores(fold).saturating_sub(1))
    }

    /// Waits a moment for the terminal, so that what is printed next finds it free.
    pub fn show(&self) {
        self.line.catch_up(SHOWN);
    }

    /// Returns true if no store was run.
    pub fn is_empty(&self) -> bool {
        self.events.look(stores) == 0
    }

    /// Removes the folder, for there is nothing to keep.
    pub fn discard(self) {
        self.line.leave();
        if let Some(console) = self.console {
            console.leave();
        }
        if let Some(metering) = self.metering {
            metering.leave();
        }
        if let Some(recording) = self.recording {
            drop(recording.end());
            let _ = std::fs::remove_file(self.path.join(EVENTS_FILE));
        }
        if let Some(FinishedSubscription { subscriber, .. }) = self.folder.end() {
            subscriber.folder.discard();
        }
    }

    /// Ends a run that ended with `exit`: writes the result a last time, and its report. If the folder lacks
    /// something then, the exit is a failure.
    pub fn finish(self, exit: Exit) -> Finished {
        let status = self.events.look(|fold| status(fold, exit == Exit::Interrupted));
        self.events.publish(Event::RunEnded { status, at: rfc3339(SystemTime::now()) });
        let result = self.events.result();
        self.line.catch_up(SHOWN);
        self.line.leave();
        // Viewers receive the end before the page's server may go.
        drop(self.console.and_then(Subscription::end));
        drop(self.metering.and_then(Subscription::end));
        let recorded = self.recording.map_or(Ok(()), |recording| match recording.end() {
            Some(FinishedSubscription { subscriber, missed: 0 }) => {
                subscriber.finish().map_err(|e| e.to_string())
            }
            _ => Err(TOO_SLOW.to_owned()),
        });
        let Some(FinishedSubscription { subscriber: mut kept, missed }) = self.folder.end() else {
            warn_user!("kvdyno: {} is not whole: writing it failed", self.path.display());
            return Finished { result, report: None, exit: exit.worse(Exit::Internal) };
        };
        let mut lacks: Vec<String> = kept.folder.cut_off().collect();
        if let Err(why) = recorded {
            lacks.push(EVENTS_FILE.to_owned());
            kept.trouble.note(&why);
        }
        lacks.extend((!kept.is_saved).then(|| RESULT_FILE.to_owned()));
        let report = kept.folder.write_report(&result);
        lacks.extend(report.is_err().then(|| REPORT_FILE.to_owned()));
        let report = report.map_err(|error| kept.trouble.warn(&error)).ok();
        if missed > 0 {
            lacks.push(format!("what {missed} intervals and samples tell"));
            kept.trouble.note(TOO_SLOW);
        }
        let Some(first) = kept.trouble.first else {
            return Finished { result, report, exit };
        };
        let what = match lacks.is_empty() {
            true => "a file of a phase".to_owned(),
            false => lacks.join(", "),
        };
        let folder = self.path.display();
        warn_user!("kvdyno: {folder} lacks the whole of {what}: {first}; the rest is kept");
        Finished { result, report, exit: exit.worse(Exit::Internal) }
    }
}

fn stores(fold: &Fold) -> usize {
    fold.result().map_or(0, |result| result.runs.len())
}

fn status(fold: &Fold, interrupted: bool) -> Status {
    if interrupted {
        return Status::Interrupted;
    }
    let runs = fold.result().into_iter().flat_map(|result| &result.runs);
    let of_runs = runs.filter_map(|run| match &run.status {
        Status::Failed { message } => Some(message),
        _ => None,
    });
    let messages: Vec<&str> = fold.failures().iter().chain(of_runs).map(String::as_str).collect();
    match messages.is_empty() {
        true => Status::Complete,
        false => Status::Failed { message: messages.join("; ") },
    }
}
