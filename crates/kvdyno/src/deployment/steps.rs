//! Runs the command lines of a step side by side, within their time, and keeps what they print, without secrets. The first
//! that fails stops the others, and the error names its machine and its last lines.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kvdyno_core::ground::numbers;
use kvdyno_core::load::Interrupt;
use kvdyno_core::redact;
use kvdyno_testbed::process::end_with_parent;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::environment::Environment;

/// Most command lines that run at once.
const AT_ONCE: usize = 64;
/// Time between two looks at a command line.
const LOOK: Duration = Duration::from_millis(20);
/// Time that a command line has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(30);
/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// Pause between two runs of a command line that is to succeed at last.
const AGAIN: Duration = Duration::from_millis(500);
/// Last lines of a command that an error shows.
const LAST_LINES: usize = 6;
/// Most characters of such a line.
const LINE_SHOWN: usize = 300;

/// Command line of a step.
#[derive(Clone, Debug)]
pub struct StepLine {
    /// Machine that it is for; `None` for the deployment as a whole.
    pub machine: Option<String>,
    /// The line, for `sh -c`.
    pub line: String,
    /// Names and values of its environment.
    pub environment: Environment,
}

/// Failure of a step.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A command line failed.
    #[error("`{step}`{place} {why}: {last}")]
    Failed {
        /// Name of the step.
        step: String,
        /// Machine, after " on ", if it was for one.
        place: String,
        /// Description of how it failed.
        why: String,
        /// Its last lines.
        last: String,
    },
    /// The user stopped it.
    #[error("interrupted at `{0}`")]
    Interrupted(String),
}

/// Output of a command line that succeeded.
#[derive(Clone, Debug)]
pub struct StepDone {
    /// Text that it printed on standard output.
    pub out: String,
}

/// Name and time of a step that is done.
#[derive(Clone, Debug)]
pub struct StepTime {
    /// Name of the step.
    pub name: String,
    /// Time that it took.
    pub took: Duration,
}

/// Runner of steps, which keeps their output in a folder.
pub struct Steps<'a> {
    interrupt: &'a Interrupt,
    /// Folder of the logs.
    logs: PathBuf,
    /// Longest time for one command line.
    within: Duration,
    /// Folder in which command lines run; `None` for that of this process.
    folder: Option<PathBuf>,
    /// Steps that are done.
    pub times: Vec<StepTime>,
}

/// Attempts at a command line.
#[derive(Clone, Copy)]
enum Attempts {
    /// One.
    Once,
    /// Attempts until one succeeds, within this time.
    Until(Duration),
}

/// Lines that wait for a place, and what became of the others.
struct Queue<'a> {
    waiting: Mutex<VecDeque<(usize, &'a StepLine)>>,
    done: Mutex<Vec<(usize, StepDone)>>,
    failed: Mutex<Option<StepError>>,
    stop: AtomicBool,
}

impl<'a> Steps<'a> {
    /// Makes a runner that stops at the interrupt.
    pub fn new(interrupt: &'a Interrupt, logs: &Path, within: Duration) -> Steps<'a> {
        Steps { interrupt, logs: logs.to_owned(), within, folder: None, times: Vec::new() }
    }

    /// Runs command lines in this folder, in which relative names of the file mean what they meant at first.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Runs all lines of a step, side by side. Returns their output, in their order.
    ///
    /// # Errors
    /// [`StepError`] of the first that failed; no other runs any more.
    pub fn run(&mut self, step: &str, lines: &[StepLine]) -> Result<Vec<StepDone>, StepError> {
        self.carry_out(step, lines, Attempts::Once)
    }

    /// Runs all lines of a step, each again and again until it succeeds.
    ///
    /// # Errors
    /// [`StepError`] of the first that does not succeed in time.
    pub fn run_until(
        &mut self,
        step: &str,
        lines: &[StepLine],
        within: Duration,
    ) -> Result<(), StepError> {
        self.carry_out(step, lines, Attempts::Until(within)).map(drop)
    }

    fn carry_out(
        &mut self,
        step: &str,
        lines: &[StepLine],
        attempts: Attempts,
    ) -> Result<Vec<StepDone>, StepError> {
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let begin = Instant::now();
        let queue = Queue {
            waiting: Mutex::new(lines.iter().enumerate().collect()),
            done: Mutex::default(),
            failed: Mutex::default(),
            stop: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            let workers = (0..lines.len().min(AT_ONCE))
                .map(|_| scope.spawn(|| self.work(step, &queue, attempts)));
            let workers: Vec<_> = workers.collect();
            let mut told = Instant::now();
            while workers.iter().any(|worker| !worker.is_finished()) {
                std::thread::sleep(LOOK);
                if told.elapsed() > PROGRESS {
                    told = Instant::now();
                    let (done, all) = (locked(&queue.done).len(), lines.len());
                    let seconds = begin.elapsed().as_secs();
                    warn_user!("kvdyno: {step}: {done} of {all} done after {seconds} s");
                }
            }
        });
        if let Some(error) = queue.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let took = begin.elapsed();
        let of = lines.iter().filter(|line| line.machine.is_some()).count();
        let of = if of > 0 { format!(": {of} machines") } else { String::new() };
        let shown = numbers::approximate_duration(took.as_secs_f64());
        warn_user!("kvdyno: {step}{of} ({shown})");
        self.times.push(StepTime { name: step.to_owned(), took });
        let mut done = queue.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(index, _)| *index);
        Ok(done.into_iter().map(|(_, done)| done).collect())
    }

    /// Takes one line after the other, until none is left or one has failed.
    fn work(&self, step: &str, queue: &Queue<'_>, attempts: Attempts) {
        while !queue.stop.load(Ordering::Relaxed) {
            let Some((index, line)) = locked(&queue.waiting).pop_front() else { return };
            match self.one(step, line, attempts, &queue.stop) {
                Ok(done) => locked(&queue.done).push((index, done)),
                Err(error) => {
                    // The others are stopped by this one: theirs is no cause.
                    if !queue.stop.swap(true, Ordering::Relaxed) {
                        *locked(&queue.failed) = Some(error);
                    }
                }
            }
        }
    }

    fn one(
        &self,
        step: &str,
        line: &StepLine,
        attempts: Attempts,
        stop: &AtomicBool,
    ) -> Result<StepDone, StepError> {
        let begin = Instant::now();
        loop {
            let until = match attempts {
                Attempts::Once => begin + self.within,
                Attempts::Until(within) => begin + within,
            };
            let error = match self.attempt(step, line, until, stop) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let again = matches!(attempts, Attempts::Until(_))
                && matches!(error, StepError::Failed { .. })
                && Instant::now() + AGAIN < until
                && !stop.load(Ordering::Relaxed);
            if !again {
                return Err(error);
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Runs a line once. It prints into files without a name, so that what it leaves running keeps nobody waiting.
    fn attempt(
        &self,
        step: &str,
        line: &StepLine,
        until: Instant,
        stop: &AtomicBool,
    ) -> Result<StepDone, StepError> {
        let place = line.machine.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
        let failed = |why: String, last: String| StepError::Failed {
            step: step.to_owned(),
            place: place.clone(),
            why,
            last,
        };
        let files = || Some((nameless(&self.logs)?, nameless(&self.logs)?));
        let (mut out, mut err) = files().ok_or_else(|| {
            failed("was not run".to_owned(), "no file can be made for its output".to_owned())
        })?;
        let child = spawn(step, (line, self.folder.as_deref()), &out, &err);
        let mut child =
            child.map_err(|error| failed("was not run".to_owned(), error.to_string()))?;
        let ended = self.wait(&mut child, until, stop);
        let (told, errors) = (contents(&mut out), contents(&mut err));
        self.keep(step, line, &told, &errors);
        let last = || last_lines(&told, &errors);
        match ended {
            Ended::Well => Ok(StepDone { out: told }),
            Ended::Badly(why) => Err(failed(format!("failed ({why})"), last())),
            Ended::Late => Err(failed("did not end in time".to_owned(), last())),
            Ended::Stopped => Err(StepError::Interrupted(step.to_owned())),
        }
    }

    fn wait(&self, child: &mut Child, until: Instant, stop: &AtomicBool) -> Ended {
        loop {
            let over = match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ended::Well,
                Ok(Some(status)) => return Ended::Badly(status.to_string()),
                Err(error) => return Ended::Badly(error.to_string()),
                Ok(None) if self.interrupt.is_raised() || stop.load(Ordering::Relaxed) => {
                    Ended::Stopped
                }
                Ok(None) if Instant::now() >= until => Ended::Late,
                Ok(None) => {
                    std::thread::sleep(LOOK);
                    continue;
                }
            };
            end(child);
            return over;
        }
    }

    /// Adds the output to the step's log. A log that cannot be written is no reason to stop.
    fn keep(&self, step: &str, line: &StepLine, told: &str, errors: &str) {
        let name = match &line.machine {
            Some(machine) => format!("{step}-{}.log", machine.replace('/', "_")),
            None => format!("{step}.log"),
        };
        let written = [told, errors].map(masked).concat();
        let mut options = File::options();
        let file = options.create(true).append(true).open(self.logs.join(name));
        let _ = file.and_then(|mut file| file.write_all(written.as_bytes()));
    }
}

/// Ends a command line with all that it started. A tool that is asked to end still notes what it has made, so that it can be
/// destroyed; who does not end is killed.
fn end(child: &mut Child) {
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    let until = Instant::now() + GRACE;
    // The group is there as long as one of its processes is.
    while test_kill_process_group(group).is_ok() && Instant::now() < until {
        let _ = child.try_wait();
        std::thread::sleep(LOOK);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// End of a command line.
enum Ended {
    Well,
    Badly(String),
    Late,
    Stopped,
}

fn spawn(
    step: &str,
    (line, folder): (&StepLine, Option<&Path>),
    out: &File,
    err: &File,
) -> std::io::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", &line.line]).stdin(Stdio::null());
    command.stdout(out.try_clone()?).stderr(err.try_clone()?);
    let environment = line.environment.iter().map(|(name, value)| (name, value));
    // Ctrl-C is kvdyno's to hear: what was begun is undone in order.
    command.envs(environment).env("STEP", step).process_group(0);
    // One that is gone must not keep machines from being destroyed.
    if let Some(folder) = folder.filter(|folder| folder.is_dir()) {
        command.current_dir(folder);
    }
    end_with_parent(&mut command);
    command.spawn()
}

fn nameless(folder: &Path) -> Option<File> {
    let path = folder.join(format!(".output-{:?}", std::thread::current().id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).ok()?;
    std::fs::remove_file(&path).ok()?;
    Some(file)
}

fn contents(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns text without secrets, line by line.
fn masked(text: &str) -> String {
    let each = text
        .lines()
        .map(|line| redact::hide(redact::redact_message(line).into()).into_owned() + "\n");
    each.collect()
}

fn last_lines(told: &str, errors: &str) -> String {
    let of = |text: &str| {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| line.chars().take(LINE_SHOWN).collect::<String>()).collect::<Vec<_>>()
    };
    // Tools complain on standard error.
    let lines = if of(errors).is_empty() { of(told) } else { of(errors) };
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
    if last.is_empty() {
        "it printed nothing".to_owned()
    } else {
        masked(&last).trim_end().to_owned()
    }
}

fn locked<T>(of_all: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of_all.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(machine: &str, line: &str) -> StepLine {
        let environment = vec![("WORD".to_owned(), "x y; exit 3".to_owned())];
        StepLine { machine: Some(machine.to_owned()), line: line.to_owned(), environment }
    }

    fn with<T>(work: impl FnOnce(&mut Steps<'_>) -> T) -> (T, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::default();
        let done = work(&mut Steps::new(&interrupt, folder.path(), Duration::from_secs(20)));
        (done, folder)
    }

    #[test]
    fn lines_run_side_by_side_and_their_output_is_kept_without_secrets() {
        let begin = Instant::now();
        let slow = "sleep 1; echo \"$STEP $WORD\"; echo redis://u:hidden@h >&2";
        let lines = ["a", "b", "c"].map(|name| line(name, slow));
        let (done, folder) = with(|steps| steps.run("prepare", &lines).unwrap());
        assert!(begin.elapsed() < Duration::from_millis(2900), "{:?}", begin.elapsed());
        assert_eq!(done.len(), 3);
        assert_eq!(done[0].out, "prepare x y; exit 3\n", "a variable is no shell");
        let log = std::fs::read_to_string(folder.path().join("prepare-b.log")).unwrap();
        assert!(
            log.contains("x y") && log.contains("redis://***@h") && !log.contains("hidden"),
            "{log}"
        );
    }

    #[test]
    fn the_first_that_fails_stops_the_others_and_is_named_with_its_last_lines() {
        let begin = Instant::now();
        let lines = [line("a", "sleep 60"), line("b", "echo one; echo why >&2; exit 7")];
        let (error, _) = with(|steps| steps.run("create", &lines).unwrap_err().to_string());
        assert!(begin.elapsed() < Duration::from_secs(20), "{error}");
        assert_eq!(error, "`create` on b failed (exit status: 7): why");
        let (error, _) = with(|steps| {
            steps.within = Duration::from_millis(100);
            steps.run("create", &[line("a", "sleep 60")]).unwrap_err().to_string()
        });
        assert_eq!(error, "`create` on a did not end in time: it printed nothing");
    }

    #[test]
    fn a_line_that_is_to_succeed_at_last_is_tried_again() {
        let tries = "echo x >> $STEP.tries; test $(wc -l < $STEP.tries) -ge 2";
        let (done, _) = with(|steps| {
            let there = format!("cd {}; {tries}", steps.logs.display());
            let all = steps.run_until("ready", &[line("a", &there)], Duration::from_secs(20));
            let never =
                steps.run_until("never", &[line("a", "exit 1")], Duration::from_millis(700));
            (all.is_ok(), never.unwrap_err().to_string())
        });
        assert!(done.0);
        assert!(done.1.contains("`never` on a"), "{}", done.1);
    }

    #[test]
    fn an_interrupt_ends_what_runs() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::default();
        interrupt.raise();
        let mut steps = Steps::new(&interrupt, folder.path(), Duration::from_secs(20));
        let error = steps.run("create", &[line("a", "sleep 60")]).unwrap_err();
        assert!(matches!(error, StepError::Interrupted(_)), "{error}");
    }
}
