//! One real server process on loopback. It ends when its guard is dropped, and when this process
//! dies; it can be killed, stopped, paused and started again on the same address and data.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::TestbedError;
use crate::http;
use crate::log_end;
use crate::network::{self, Namespace};
use crate::pin::Processors;
use crate::process;
use crate::still::{group_of, stands_still};

/// Pause between two looks at a server that is starting or stopping.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// Time in which a paused process comes to a stop.
const STANDS_STILL_WITHIN: Duration = Duration::from_secs(5);

/// Time that a server has to stop in good order.
const STOP_WITHIN: Duration = Duration::from_secs(60);

/// Evidence for a look at a starting server.
pub struct Probe<'a> {
    /// Address that it is to listen at.
    pub address: SocketAddr,
    /// Text that it has written since it was started.
    pub log: &'a str,
}

impl Probe<'_> {
    /// Connects, sends `request`, and returns the first bytes of the answer.
    #[must_use]
    pub fn ask(&self, request: &[u8]) -> Option<Vec<u8>> {
        first_answer(self.address, request, Duration::from_millis(500))
    }

    /// Returns the status code that `GET path` is answered with.
    #[must_use]
    pub fn http_status(&self, path: &str) -> Option<u16> {
        http::request(self.address, "GET", path, "").map(|(status, _)| status)
    }

    /// Returns true if something listens.
    #[must_use]
    pub fn listens(&self) -> bool {
        TcpStream::connect_timeout(&self.address, Duration::from_millis(500)).is_ok()
    }
}

/// Connects, sends `request`, and returns the first bytes of the answer.
pub(crate) fn first_answer(
    address: SocketAddr,
    request: &[u8],
    patience: Duration,
) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    stream.write_all(request).ok()?;
    let mut answer = [0; 256];
    let length = stream.read(&mut answer).ok().filter(|length| *length > 0)?;
    Some(answer[..length].to_vec())
}

/// Sends `request` and reads until the answer ends with `end`; `None` if it never does.
#[must_use]
pub fn conversation(address: SocketAddr, request: &[u8], end: &[u8]) -> Option<String> {
    let patience = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    stream.write_all(request).ok()?;
    let (mut answer, mut some) = (Vec::new(), [0; 4096]);
    while !answer.ends_with(end) {
        let length = stream.read(&mut some).ok().filter(|length| *length > 0)?;
        answer.extend_from_slice(&some[..length]);
    }
    String::from_utf8(answer).ok()
}

/// Test of whether a server serves by now.
pub type Ready = Box<dyn Fn(&Probe<'_>) -> bool + Send>;

/// Recipe to start a server, and to start it again.
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    address: SocketAddr,
    ready: Ready,
    patience: Duration,
    processors: Option<Processors>,
    network: Option<Namespace>,
}

impl Launch {
    /// Launches a program that is to listen at `address`. It is ready as soon as it does, unless
    /// [`Launch::ready`] asks for more, and has 60 s for it.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, address: SocketAddr) -> Launch {
        Launch {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            address,
            ready: Box::new(|probe| probe.listens()),
            patience: Duration::from_secs(60),
            processors: None,
            network: None,
        }
    }

    /// Returns the address that it is to listen at.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts it in this network namespace.
    pub(crate) fn within(mut self, network: Namespace) -> Launch {
        self.network = Some(network);
        self
    }

    /// Keeps it to these processors, by their numbers.
    #[must_use]
    pub fn processors(mut self, numbers: &[usize]) -> Launch {
        self.processors = Some(Processors::new(numbers));
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<A: Into<OsString>>(mut self, more: impl IntoIterator<Item = A>) -> Launch {
        self.arguments.extend(more.into_iter().map(Into::into));
        self
    }

    /// Adds a variable to the environment.
    #[must_use]
    pub fn environment(mut self, name: &str, value: impl Into<OsString>) -> Launch {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts `wrapper` in its place, with these arguments and then the program and its own.
    #[must_use]
    pub fn through<A: Into<OsString>>(
        mut self,
        wrapper: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Launch {
        let program = std::mem::replace(&mut self.program, wrapper.into());
        let own = std::mem::take(&mut self.arguments);
        let wrapping = arguments.into_iter().map(Into::into);
        self.arguments = wrapping.chain([program.into_os_string()]).chain(own).collect();
        self
    }

    /// Sets the test of whether it serves: the look must be quick and change nothing.
    #[must_use]
    pub fn ready(mut self, ready: impl Fn(&Probe<'_>) -> bool + Send + 'static) -> Launch {
        self.ready = Box::new(ready);
        self
    }

    /// Sets the longest time that it may take to start on a machine that is fully loaded.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Launch {
        self.patience = patience;
        self
    }
}

/// A server process, ended on drop with all that it started.
///
/// The kernel ends it too if the *thread* that started it ends, so start it from one that lives as
/// long as the server is to.
pub struct Server {
    name: String,
    launch: Launch,
    folder: PathBuf,
    child: Child,
    /// Number of the process as /proc shows it.
    pid: u32,
    started: Instant,
    paused: bool,
    /// True if an order ends, or has ended, the process.
    ordered_to_end: bool,
}

impl Server {
    /// Starts the process in `folder` and does not wait for it.
    ///
    /// # Errors
    /// [`TestbedError::System`] if it cannot be started.
    pub fn spawn(name: &str, launch: Launch, folder: &Path) -> Result<Server, TestbedError> {
        let child = spawn(name, &launch, folder)?;
        let pid = process::visible_pid(child.id());
        let (name, folder) = (name.to_owned(), folder.to_owned());
        let started = Instant::now();
        let (paused, ordered_to_end) = (false, false);
        Ok(Server { name, launch, folder, child, pid, started, paused, ordered_to_end })
    }

    /// Waits until it serves.
    ///
    /// # Errors
    /// [`TestbedError`] with the end of its log if it ends or takes too long.
    pub fn wait_until_ready(&mut self) -> Result<(), TestbedError> {
        while !self.serves()? {
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Looks once whether it serves.
    ///
    /// # Errors
    /// [`TestbedError`] with the end of its log if it has ended or had time enough.
    pub fn serves(&mut self) -> Result<bool, TestbedError> {
        let status = self.child.try_wait().map_err(TestbedError::system("watch", &self.name))?;
        if let Some(status) = status {
            let log = log_end::of(&self.log());
            return Err(TestbedError::Ended { node: self.name.clone(), status, log });
        }
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let probe = Probe { address: self.launch.address, log: &log };
        if (self.launch.ready)(&probe) {
            return Ok(true);
        }
        if self.started.elapsed() > self.launch.patience {
            return Err(self.not_ready(self.launch.patience, "it does not serve"));
        }
        Ok(false)
    }

    /// Returns the error for what this server should be by now and is not.
    #[must_use]
    pub fn not_ready(&self, waited: Duration, awaited: &str) -> TestbedError {
        let (node, log) = (self.name.clone(), log_end::of(&self.log()));
        TestbedError::NotReady { node, waited, awaited: awaited.to_owned(), log }
    }

    /// Returns its name within the testbed: `redis-1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address that it listens at; the same for its whole life.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.launch.address
    }

    /// Returns the port of [`Server::address`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.launch.address.port()
    }

    /// Returns the number of the process, as this machine's /proc shows it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the data folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the file that holds what the server wrote to its standard output and error.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        log_path(&self.folder)
    }

    /// Returns true if the process is there (paused counts).
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the exit status and the end of the log of a process that no order ended.
    pub fn ended_by_itself(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten().filter(|_| !self.ordered_to_end)?;
        Some(format!("{status}; the end of its log: {}", log_end::of(&self.log())))
    }

    /// Notes an order that ends the process, if it is still there.
    fn note_order_to_end(&mut self) {
        self.ordered_to_end |= self.is_running();
    }

    /// Kills the process with SIGKILL and waits until it is gone. The data stay.
    ///
    /// # Errors
    /// [`TestbedError::System`] if the system refuses.
    pub fn kill9(&mut self) -> Result<(), TestbedError> {
        self.paused = false;
        self.note_order_to_end();
        end(&mut self.child).map_err(TestbedError::system("kill", &self.name))
    }

    /// Kills the process and does not wait: for several that are to go at one moment.
    pub(crate) fn begin_kill(&mut self) {
        self.note_order_to_end();
        if self.is_running() {
            // Whoever waits for it afterwards tells what went wrong.
            let _ = signal_group(self.child.id(), Signal::KILL);
        }
    }

    /// Returns true if it stands still by [`Server::pause`].
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Asks the process to end (SIGTERM) and waits until it has. The data stay.
    ///
    /// # Errors
    /// [`TestbedError::System`] if it is gone already or does not end within 60 s.
    pub fn stop(&mut self) -> Result<(), TestbedError> {
        self.begin_stop()?;
        self.await_stop()
    }

    /// The first half of [`Server::stop`].
    pub(crate) fn begin_stop(&mut self) -> Result<(), TestbedError> {
        self.note_order_to_end();
        self.signal(Signal::TERM, "stop")
    }

    /// The second half of [`Server::stop`].
    pub(crate) fn await_stop(&mut self) -> Result<(), TestbedError> {
        let begin = Instant::now();
        while self.is_running() {
            if begin.elapsed() > STOP_WITHIN {
                return Err(self.not_ready(STOP_WITHIN, "it does not stop"));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Stops the process where it is (SIGSTOP): its connections stay open and silent. Returns when
    /// each of its threads stands still, which those on other processors do a little later.
    ///
    /// # Errors
    /// [`TestbedError::System`] if the process is gone.
    pub fn pause(&mut self) -> Result<(), TestbedError> {
        self.begin_pause()?;
        self.await_pause();
        Ok(())
    }

    /// The first half of [`Server::pause`].
    pub(crate) fn begin_pause(&mut self) -> Result<(), TestbedError> {
        self.signal(Signal::STOP, "pause")?;
        self.paused = true;
        Ok(())
    }

    /// The second half of [`Server::pause`].
    pub(crate) fn await_pause(&self) {
        let begin = Instant::now();
        while !stands_still(self.pid) && begin.elapsed() < STANDS_STILL_WITHIN {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the numbers of its processes: itself and all that it started, to look at without looking for them.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let group = group_of(self.pid);
        group.filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
    }

    /// Runs a tool to its end in the network of this server; returns what it printed.
    ///
    /// # Errors
    /// [`TestbedError::Refused`] with the last of its words if it fails.
    pub(crate) fn run_beside(&self, mut tool: Command) -> Result<String, TestbedError> {
        if let Some(namespace) = &self.launch.network {
            network::run_within(&mut tool, namespace);
        }
        process::run_command(tool.current_dir(&self.folder))
    }

    /// Lets a paused process go on (SIGCONT).
    ///
    /// # Errors
    /// [`TestbedError::System`] if the process is gone.
    pub fn resume(&mut self) -> Result<(), TestbedError> {
        self.paused = false;
        self.signal(Signal::CONT, "resume")
    }

    /// Starts the process again on the same address and data, after killing it if it runs, and
    /// waits until it serves.
    ///
    /// # Errors
    /// [`TestbedError`]
    pub fn restart(&mut self) -> Result<(), TestbedError> {
        self.begin_restart()?;
        self.wait_until_ready()
    }

    /// The first half of [`Server::restart`]; the second is [`Server::wait_until_ready`].
    pub(crate) fn begin_restart(&mut self) -> Result<(), TestbedError> {
        self.kill9()?;
        self.child = spawn(&self.name, &self.launch, &self.folder)?;
        self.pid = process::visible_pid(self.child.id());
        self.ordered_to_end = false;
        self.started = Instant::now();
        Ok(())
    }

    /// Sends a signal to the process and to all that it started.
    fn signal(&mut self, signal: Signal, action: &'static str) -> Result<(), TestbedError> {
        let sent = match self.is_running() {
            true => signal_group(self.child.id(), signal),
            false => Err(io::ErrorKind::NotFound.into()),
        };
        sent.map_err(TestbedError::system(action, &self.name))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A process that is already gone is as good.
        let _ = end(&mut self.child);
    }
}

/// Kills a process and all that it started, and waits for it.
fn end(child: &mut Child) -> io::Result<()> {
    if matches!(child.try_wait(), Ok(None)) {
        signal_group(child.id(), Signal::KILL)?;
    }
    child.wait().map(drop)
}

/// Sends a signal to the group of `leader`, a child of ours that was not waited for yet, and so cannot be another process.
fn signal_group(leader: u32, signal: Signal) -> io::Result<()> {
    // Each server leads a process group of its own.
    let leader = Pid::from_raw(leader as i32).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process_group(leader, signal)?)
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("server.log")
}

fn spawn(name: &str, launch: &Launch, folder: &Path) -> Result<Child, TestbedError> {
    let system = |error| TestbedError::System { what: name.to_owned(), action: "start", error };
    // A log for each start: what an earlier process wrote must not be taken for this one's.
    let log = log_path(folder);
    if log.exists() {
        fs::rename(&log, folder.join("server.log.before")).map_err(system)?;
    }
    let out = OpenOptions::new().create(true).append(true).open(log).map_err(system)?;
    let err = out.try_clone().map_err(system)?;
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        // Away from the terminal's Ctrl-C, and one target for signals to all that it starts.
        .process_group(0);
    process::end_with_parent(&mut command);
    if let Some(processors) = launch.processors {
        // SAFETY: between fork and exec this makes one system call on memory of its own.
        unsafe { command.pre_exec(move || processors.restrict()) };
    }
    if let Some(namespace) = &launch.network {
        network::run_within(&mut command, namespace);
    }
    command.spawn().map_err(|error| {
        let program = launch.program.display();
        let told = io::Error::new(error.kind(), format!("{program}: {error}"));
        system(told)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(words: &str, ready: bool) -> Launch {
        Launch::new("sleep", SocketAddr::from(([127, 0, 0, 1], 1)))
            .arguments([words])
            .ready(move |_| ready)
            .patience(Duration::from_millis(100))
    }

    fn start(launch: Launch, folder: &Path) -> Result<Server, TestbedError> {
        let mut server = Server::spawn("node-1", launch, folder)?;
        server.wait_until_ready()?;
        Ok(server)
    }

    fn exists(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_missing_program_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch::new("no-such-program", SocketAddr::from(([127, 0, 0, 1], 1)));
        let message = start(launch, folder.path()).err().unwrap().to_string();
        assert!(message.starts_with("cannot start node-1: no-such-program: "), "{message}");
    }

    #[test]
    fn the_process_and_what_it_started_are_gone_after_drop() {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch::new("sh", SocketAddr::from(([127, 0, 0, 1], 1)))
            .arguments(["-c", "sleep 1000 & echo $!; wait"])
            .ready(|probe| probe.log.ends_with('\n'));
        let server = start(launch, folder.path()).unwrap();
        let below: u32 = fs::read_to_string(server.log()).unwrap().trim().parse().unwrap();
        let pid = server.pid();
        assert!(exists(pid) && exists(below));
        drop(server);
        assert!(!exists(pid));
        // Its parent is gone; who inherits it may take a moment to notice its end.
        let gone = || !exists(below) || state(below) == 'Z';
        assert!((0..500).any(|_| gone() || {
            thread::sleep(POLL);
            false
        }));
    }

    fn state(pid: u32) -> char {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('-')
    }

    #[test]
    fn a_server_that_ends_or_never_serves_is_an_error_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let ended = start(sleeper("not-a-number", false), folder.path()).err().unwrap();
        assert!(matches!(&ended, TestbedError::Ended { .. }));
        assert!(ended.to_string().contains("not-a-number"), "{ended}");
        let silent = start(sleeper("1000", false), folder.path()).err().unwrap();
        assert!(matches!(silent, TestbedError::NotReady { .. }), "{silent}");
    }

    #[test]
    fn a_server_is_paused_resumed_stopped_and_restarted() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = start(sleeper("1000", true), folder.path()).unwrap();
        let reaches = |wanted: char, pid: u32| {
            (0..500).any(|_| {
                thread::sleep(POLL);
                state(pid) == wanted
            })
        };
        server.pause().unwrap();
        assert!(reaches('T', server.pid()));
        server.resume().unwrap();
        assert!(reaches('S', server.pid()));
        server.stop().unwrap();
        assert!(!server.is_running());
        assert!(server.pause().is_err() && server.stop().is_err());
        server.restart().unwrap();
        assert!(server.is_running());
        server.kill9().unwrap();
        assert!(!server.is_running());
        server.kill9().unwrap();
    }
}
