//! `--console` and `kvdyno view`: the page of a result, served to browsers while a run lasts, or afterwards: on this
//! machine, or at an address that the user has named. It subscribes to the run's events, on a thread of its own, and
//! delays nothing.

pub mod http;
mod open_port;
mod server;
mod viewers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use kvdyno_core::load::Interrupt;
use kvdyno_report::events::Event;
use kvdyno_report::events::stream::Subscriber;
use kvdyno_report::live::{self, LiveRun, Zoom};
use kvdyno_report::result::{RESULT_FILE, RunResult, Status};

use crate::args::ViewArguments;
use crate::exit::{Exit, Failure};
use crate::signals;
use crate::steering::Steering;
use open_port::OpenPort;
use server::serve;
use viewers::{Story, Viewers};

/// Time between two looks at a result that may change.
const LOOK: Duration = Duration::from_secs(2);
/// Shortest pause between two readings of a result, in durations of one reading: that of a long run's result takes
/// seconds.
const LEFT_ALONE: u32 = 20;
/// Pause between two looks whether the user wants to stop.
const ASK: Duration = Duration::from_millis(100);
/// Time that viewers have to receive the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Live page of a run.
#[derive(Clone)]
pub struct Console {
    viewers: Arc<Viewers<LiveRun>>,
    /// Orders of its viewers; `None` if they may give none.
    steering: Option<Arc<Steering>>,
}

impl Console {
    /// Serves the page on loopback or `at` an address of this machine, and prints its address. `steers`: its viewers
    /// may steer the run.
    ///
    /// # Errors
    /// [`Failure`] if no port can be opened.
    pub fn open(steers: bool, at: Option<&str>) -> Result<Console, Failure> {
        let live = if steers { LiveRun::steered() } else { LiveRun::default() };
        let viewers = Arc::new(Viewers::new(live));
        let steering = steers.then(Arc::<Steering>::default);
        publish(at, &viewers, steering.clone())?;
        Ok(Console { viewers, steering })
    }

    /// Returns the orders of its viewers; `None` if they may give none.
    pub fn steering(&self) -> Option<&Steering> {
        self.steering.as_deref()
    }

    /// Makes the subscriber that tells viewers of a run.
    pub fn listener(&self) -> Listener {
        Listener(Arc::clone(&self.viewers))
    }

    /// Ends the page with the run: viewers receive its end, and may `stay` until the user ends it.
    pub fn close(&self, stay: bool, interrupt: &Interrupt) {
        if stay && !interrupt.is_raised() {
            warn_user!("kvdyno: the console stays until Ctrl-C");
            while !interrupt.is_raised() {
                std::thread::sleep(ASK);
            }
        }
        self.viewers.end(FAREWELL);
    }
}

/// Subscriber that passes the run's events to its viewers.
pub struct Listener(Arc<Viewers<LiveRun>>);

impl Subscriber for Listener {
    fn on_event(&mut self, event: &Event) {
        self.0.change(|live, is_seen| {
            let change = live.on_event(event);
            if is_seen {
                return live.message(change);
            }
            // Without viewers nothing is drawn: a new viewer gets all that there is.
            live.pass_over();
            None
        });
    }
}

impl Story for LiveRun {
    fn page(&self) -> Result<String, String> {
        LiveRun::page(self).map_err(|error| error.to_string())
    }

    fn snapshot(&self) -> String {
        LiveRun::snapshot(self)
    }

    fn stretch(&self, asked: &Zoom) -> Result<String, String> {
        Ok(LiveRun::stretch(self, asked))
    }
}

/// Story of a result on disk.
struct FolderStory {
    result: RunResult,
    folder: PathBuf,
    page: String,
    message: String,
}

impl FolderStory {
    fn read(path: &Path) -> Result<FolderStory, String> {
        let result = RunResult::load(path).map_err(|error| error.to_string())?;
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
        let (page, message) =
            live::of_folder(&result, folder).map_err(|error| error.to_string())?;
        Ok(FolderStory { folder: folder.to_owned(), result, page, message })
    }

    fn is_running(&self) -> bool {
        self.result.status == Status::Running
    }
}

impl Story for FolderStory {
    fn page(&self) -> Result<String, String> {
        Ok(self.page.clone())
    }

    fn snapshot(&self) -> String {
        self.message.clone()
    }

    fn stretch(&self, asked: &Zoom) -> Result<String, String> {
        let points = live::stretch_of_folder(&self.result, &self.folder, asked);
        points.map_err(|error| error.to_string())
    }
}

/// `kvdyno view`: the page of a result folder, until Ctrl-C.
///
/// # Errors
/// [`Failure`] if the result cannot be read or no port can be opened.
pub fn view(arguments: &ViewArguments) -> Result<Exit, Failure> {
    let path = &arguments.result;
    let began = Instant::now();
    let story = FolderStory::read(path).map_err(Failure::usage)?;
    let mut pause = LOOK.max(began.elapsed() * LEFT_ALONE);
    let mut is_running = story.is_running();
    let interrupt = signals::watch().map_err(Failure::internal)?;
    let viewers = Arc::new(Viewers::new(story));
    publish(arguments.console_on.as_deref(), &viewers, None)?;
    let (mut seen, mut waited) = (changed_at(path), Duration::ZERO);
    while !interrupt.is_raised() {
        std::thread::sleep(ASK);
        waited += ASK;
        if is_running && waited >= pause {
            waited = Duration::ZERO;
            let (now, began) = (changed_at(path), Instant::now());
            if now != seen
                && let Ok(story) = FolderStory::read(path)
            {
                pause = LOOK.max(began.elapsed() * LEFT_ALONE);
                (seen, is_running) = (now, story.is_running());
                viewers.change(|known, _| {
                    *known = story;
                    Some(known.snapshot())
                });
            }
        }
    }
    viewers.end(FAREWELL);
    Ok(Exit::Done)
}

/// Returns the time at which the result was written last.
fn changed_at(path: &Path) -> Option<SystemTime> {
    let file = if path.is_dir() { path.join(RESULT_FILE) } else { PathBuf::from(path) };
    std::fs::metadata(file).and_then(|file| file.modified()).ok()
}

/// Serves the page, and prints its address.
fn publish<S: Story>(
    at: Option<&str>,
    viewers: &Arc<Viewers<S>>,
    steering: Option<Arc<Steering>>,
) -> Result<(), Failure> {
    let place = OpenPort::open(at).map_err(|error| match at {
        Some(_) => Failure::usage(format!("--console-on: {error}")),
        None => Failure::internal(format!(
            "the console cannot be served: {error}; run without --console"
        )),
    })?;
    let fingerprint = place.fingerprint();
    let address = serve(place, Arc::clone(viewers), steering).map_err(Failure::internal)?;
    warn_user!("kvdyno: console at {address}");
    if let Some(fingerprint) = fingerprint {
        warn_user!(
            "kvdyno: its certificate was made for this run, so that browsers ask whether to trust it; SHA-256 {fingerprint}"
        );
    }
    Ok(())
}
