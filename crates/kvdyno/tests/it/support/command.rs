//! Runs the real command in a folder of its own, with a deadline, and collects what it says. All tests
//! run it from here.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Longest that a command of these tests may take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(300);
/// Pause between two looks at something awaited.
const LOOK: Duration = Duration::from_millis(10);

/// Path of the command. This is the only place that says so (a house rule).
pub const KVDYNO: &str = env!("CARGO_BIN_EXE_kvdyno");

/// Makes the command, with arguments that hold no space.
pub fn kvdyno(arguments: &str) -> Command {
    let mut command = Command::new(KVDYNO);
    command.args(arguments.split_ascii_whitespace());
    command
}

/// Lets a command find `kvdyno` by its name.
pub fn finds_kvdyno(mut command: Command) -> Command {
    let folder = Path::new(KVDYNO).parent().expect("the folder of the command");
    let before = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{before}", folder.display()));
    command
}

/// A folder to run commands in; removed with all results on drop.
pub struct Scratch(TempDir);

/// A command that runs.
pub struct Running {
    child: Child,
    started: Instant,
    out: PathBuf,
    err: PathBuf,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// Time that it took.
    pub took: Duration,
    folder: PathBuf,
}

impl Scratch {
    /// Makes an empty folder.
    pub fn new() -> Scratch {
        Scratch(TempDir::new().expect("a temporary folder"))
    }

    /// Returns a path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the scratch folder can be written");
    }

    /// Runs kvdyno here until it ends.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ended {
        self.start(arguments).wait()
    }

    /// Runs kvdyno here with arguments that hold no space.
    pub fn kvdyno(&self, arguments: &str) -> Ended {
        self.spawn(kvdyno(arguments)).wait()
    }

    /// Runs kvdyno here at a terminal (a pseudo terminal of util-linux's `script`), at which `answer` is typed,
    /// unseen: it may come while a question is being shown. `out` has all that is shown.
    pub fn at_a_terminal(&self, arguments: &str, answer: &str) -> Ended {
        let line = format!("stty -echo; exec {KVDYNO} {arguments}");
        self.write(".typed", answer);
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        // One that can move its cursor, whatever the tests themselves run on.
        command.env("TERM", "xterm");
        let typed = File::open(self.path(".typed")).expect("the file just written");
        self.spawn_reading(command, typed.into()).wait()
    }

    /// Starts a line of the shell here, in which `kvdyno` is the command.
    pub fn shell(&self, line: &str) -> Running {
        let mut command = finds_kvdyno(Command::new("bash"));
        command.args(["-o", "pipefail", "-c", line]);
        self.spawn(command)
    }

    /// Starts a line of the shell in which the folder `disk` is a disk of `size` in memory. The disk goes with the
    /// process, and no other process sees it. `None` if the system does not allow that.
    pub fn on_small_disk(&self, size: &str, line: &str) -> Option<Running> {
        fs::create_dir_all(self.path("disk")).expect("the scratch folder can be written");
        let inside = |line: &str| {
            let mut command = finds_kvdyno(Command::new("unshare"));
            command.args(["--user", "--map-root-user", "--mount", "bash", "-c", line]);
            command
        };
        let mount = format!("mount -t tmpfs -o size={size} none disk");
        let allowed = self.spawn(inside(&mount)).wait().status.success();
        allowed.then(|| self.spawn(inside(&format!("{mount} && {line}"))))
    }

    /// Starts kvdyno here.
    pub fn start<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Running {
        let mut command = Command::new(KVDYNO);
        command.args(arguments);
        self.spawn(command)
    }

    /// Starts a command here, its output into files.
    pub fn spawn(&self, command: Command) -> Running {
        self.spawn_reading(command, Stdio::null())
    }

    fn spawn_reading(&self, mut command: Command, input: Stdio) -> Running {
        let number = fs::read_dir(self.0.path()).expect("the scratch folder").count();
        let (out, err) =
            (self.path(&format!(".out-{number}")), self.path(&format!(".err-{number}")));
        let file = |path: &Path| File::create(path).expect("the scratch folder can be written");
        let child = command
            .current_dir(self.0.path())
            .stdin(input)
            .stdout(file(&out))
            .stderr(file(&err))
            .spawn()
            .expect("the command starts");
        Running { child, started: Instant::now(), out, err }
    }

    /// Reads the `result.json` of a result folder.
    pub fn result(&self, folder: &str) -> Value {
        let path = self.path(folder).join("result.json");
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_str(&text).expect("result.json is JSON")
    }
}

impl Running {
    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: kill has no memory effects; the child has not been waited for, so the id is its.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the child can be asked").is_none()
    }

    /// Waits until something holds while it runs.
    pub fn until(&mut self, what: &str, holds: impl Fn() -> bool) {
        while !holds() {
            assert!(self.is_running(), "it ended before {what}:\n{}", self.said());
            assert!(self.started.elapsed() < DEADLINE, "no sign of {what}:\n{}", self.said());
            std::thread::sleep(LOOK);
        }
    }

    /// Returns its output so far.
    pub fn said(&self) -> String {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        format!("{}{}", read(&self.out), read(&self.err))
    }

    /// Waits until it ends; fails the test at the deadline.
    pub fn wait(mut self) -> Ended {
        while self.is_running() {
            if self.started.elapsed() > DEADLINE {
                let _ = self.child.kill();
                panic!("it did not end within {:?}:\n{}", DEADLINE, self.said());
            }
            std::thread::sleep(LOOK);
        }
        let read = |path: &Path| {
            String::from_utf8_lossy(&fs::read(path).expect("its output")).into_owned()
        };
        Ended {
            status: self.child.wait().expect("its status"),
            out: read(&self.out),
            err: read(&self.err),
            took: self.started.elapsed(),
            folder: self.out.parent().expect("the scratch folder").to_owned(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns true if this reason may make invalid a result that a test asked for: a build without optimisation says so
/// by design, and a machine that others share may be disturbed, or leave kvdyno without a processor.
pub fn is_excused(reason: &str) -> bool {
    ["debug-build", "disturbed", "client-stalled"].contains(&reason)
}

impl Ended {
    /// Returns the exit code; −1 if a signal ended it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// Asserts that it ended with `code`.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code(), code, "signal {:?}\n{self:#?}", self.status.signal());
        self
    }

    /// Asserts that it did all that it was asked to.
    #[track_caller]
    pub fn expect_done(self) -> Ended {
        let reasons = self.invalid_reasons();
        let excused = reasons.iter().all(|name| is_excused(name));
        assert!(excused, "{reasons:?}\n{self:#?}");
        self.expect(if cfg!(debug_assertions) || !reasons.is_empty() { 2 } else { 0 })
    }

    /// Returns the names of the reasons that make invalid the result whose report it named.
    fn invalid_reasons(&self) -> Vec<String> {
        let named = self.out.lines().find_map(|line| line.trim_end().strip_prefix("Report: "));
        let Some(report) = named else { return Vec::new() };
        let path = self.folder.join(report).with_file_name("result.json");
        let text = fs::read_to_string(path).expect("the result beside the report");
        let result: Value = serde_json::from_str(&text).expect("result.json is JSON");
        let reasons = |run: &Value| run["verdict"]["reasons"].as_array().cloned();
        let runs = result["runs"].as_array().expect("runs").iter();
        let all = runs.filter_map(reasons).flatten();
        let invalid = all.filter(|reason| reason["level"] == "invalid");
        invalid.map(|reason| reason["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Asserts that it ended with `code` and one line on standard error that holds all of `words`, and with nothing
    /// on standard output.
    #[track_caller]
    pub fn expect_line(self, code: i32, words: &[&str]) -> Ended {
        let ended = self.expect(code);
        let lines: Vec<&str> = ended.err.lines().collect();
        assert_eq!(lines.len(), 1, "one line is wanted:\n{}", ended.err);
        assert!(lines[0].starts_with("kvdyno: "), "{}", ended.err);
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
        ended.expect_words(words)
    }

    /// Asserts that standard error holds all of `words`.
    #[track_caller]
    pub fn expect_words(self, words: &[&str]) -> Ended {
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in:\n{}", self.err);
        }
        self
    }
}
