//! One real server process on loopback. It ends when its guard is dropped, and when this process
//! dies; its data folder goes with it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Between two looks at a server that is starting.
const POLL: Duration = Duration::from_millis(10);

/// Another process may take a port between its choice and its use.
const PORT_ATTEMPTS: usize = 5;

/// Bytes of the server's log that an error shows.
const LOG_TAIL: u64 = 600;

/// A server could not be started or managed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The program is not there.
    #[error("`{program}` is not installed: install it with `{install}`")]
    NotInstalled {
        /// Name of the program.
        program: &'static str,
        /// The command that installs it.
        install: &'static str,
    },
    /// The process ended before it served.
    #[error("`{program}` ended at once ({status}); its log ends: {log}")]
    Ended {
        /// Name of the program.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote.
        log: String,
    },
    /// The process runs, but does not serve.
    #[error("`{program}` does not serve after {waited:?}; its log ends: {log}")]
    NotReady {
        /// Name of the program.
        program: &'static str,
        /// Time given to it.
        waited: Duration,
        /// The end of what it wrote.
        log: String,
    },
    /// The system refused something.
    #[error("cannot {action} `{program}`: {error}")]
    System {
        /// Name of the program.
        program: &'static str,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

/// What a look at a starting server can go by.
pub struct Probe<'a> {
    /// Where it is to listen.
    pub address: SocketAddr,
    /// What it has written since it was started.
    pub log: &'a str,
}

impl Probe<'_> {
    /// Connects, sends `request`, and gives the first bytes of the answer.
    #[must_use]
    pub fn ask(&self, request: &[u8]) -> Option<Vec<u8>> {
        let patience = Duration::from_millis(500);
        let mut stream = TcpStream::connect_timeout(&self.address, patience).ok()?;
        stream.set_read_timeout(Some(patience)).ok()?;
        stream.write_all(request).ok()?;
        let mut answer = [0; 64];
        let length = stream.read(&mut answer).ok().filter(|length| *length > 0)?;
        Some(answer[..length].to_vec())
    }

    /// Something listens.
    #[must_use]
    pub fn listens(&self) -> bool {
        TcpStream::connect_timeout(&self.address, Duration::from_millis(500)).is_ok()
    }
}

/// Gives a program's arguments for a port and a data folder.
pub type Arguments = Box<dyn Fn(u16, &Path) -> Vec<OsString> + Send>;

/// How to start a server.
pub struct Launch {
    /// Program, looked up in the search path.
    pub program: &'static str,
    /// The command that installs it, for the error message.
    pub install: &'static str,
    /// The arguments for a port and a data folder.
    pub arguments: Arguments,
    /// Whether it serves by now.
    pub ready: Box<dyn Fn(&Probe<'_>) -> bool + Send>,
    /// Time to start in.
    pub patience: Duration,
}

/// A running server process, ended and cleaned up on drop.
///
/// The kernel ends it too if the *thread* that started it ends, so start it from one that lives as
/// long as the server is to.
pub struct Server {
    launch: Launch,
    port: u16,
    folder: TempDir,
    child: Child,
}

impl Server {
    /// Starts the server in `folder` on a free port and waits until it serves.
    ///
    /// # Errors
    /// [`TestbedError`]; nothing is left behind.
    pub fn start(launch: Launch, folder: TempDir) -> Result<Server, TestbedError> {
        let mut attempt = 1;
        loop {
            let port = free_port().map_err(|error| TestbedError::System {
                program: launch.program,
                action: "find a free port for",
                error,
            })?;
            let mut child = spawn(&launch, port, folder.path())?;
            match wait_until_ready(&launch, port, folder.path(), &mut child) {
                Ok(()) => return Ok(Server { launch, port, folder, child }),
                Err(TestbedError::Ended { .. }) if attempt < PORT_ATTEMPTS => attempt += 1,
                Err(error) => {
                    end(&mut child);
                    return Err(error);
                }
            }
        }
    }

    /// Makes a folder for a server's data, removed with it.
    ///
    /// # Errors
    /// [`TestbedError::System`] if the system refuses.
    pub fn folder_for(program: &'static str) -> Result<TempDir, TestbedError> {
        tempfile::Builder::new().prefix(&format!("kvdyno-{program}-")).tempdir().map_err(|error| {
            TestbedError::System { program, action: "make a data folder for", error }
        })
    }

    /// Port on 127.0.0.1; the same for the server's whole life.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Number of the process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The data folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// File that holds what the server wrote to its standard output and error.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        log_path(self.folder.path())
    }

    /// The process is there (paused counts).
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the process with SIGKILL and waits until it is gone. The data stay.
    ///
    /// # Errors
    /// [`TestbedError::System`] if the system refuses.
    pub fn kill9(&mut self) -> Result<(), TestbedError> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(drop).map_err(|error| self.system("kill", error))
    }

    /// Stops the process where it is (SIGSTOP): its connections stay open and silent.
    ///
    /// # Errors
    /// [`TestbedError::System`] if the process is gone.
    pub fn pause(&mut self) -> Result<(), TestbedError> {
        self.signal(libc::SIGSTOP, "pause")
    }

    /// Lets a paused process go on (SIGCONT).
    ///
    /// # Errors
    /// [`TestbedError::System`] if the process is gone.
    pub fn resume(&mut self) -> Result<(), TestbedError> {
        self.signal(libc::SIGCONT, "resume")
    }

    /// Starts the process again on the same port and data, after killing it if it runs, and waits
    /// until it serves.
    ///
    /// # Errors
    /// [`TestbedError`]
    pub fn restart(&mut self) -> Result<(), TestbedError> {
        if self.is_running() {
            self.kill9()?;
        }
        self.child = spawn(&self.launch, self.port, self.folder.path())?;
        wait_until_ready(&self.launch, self.port, self.folder.path(), &mut self.child)
    }

    fn signal(&mut self, signal: libc::c_int, action: &'static str) -> Result<(), TestbedError> {
        if !self.is_running() {
            return Err(self.system(action, io::ErrorKind::NotFound.into()));
        }
        // SAFETY: kill takes no pointers, and the number is that of our own child, which was not
        // waited for yet and so cannot be another process by now.
        let result = unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        if result == 0 { Ok(()) } else { Err(self.system(action, io::Error::last_os_error())) }
    }

    fn system(&self, action: &'static str, error: io::Error) -> TestbedError {
        TestbedError::System { program: self.launch.program, action, error }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Kills and waits; a process that is already gone is as good.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("server.log")
}

fn spawn(launch: &Launch, port: u16, folder: &Path) -> Result<Child, TestbedError> {
    let program = launch.program;
    let system = |error| TestbedError::System { program, action: "start", error };
    // A log for each start: what an earlier process wrote must not be taken for this one's.
    let log = log_path(folder);
    if log.exists() {
        fs::rename(&log, folder.join("server.log.before")).map_err(system)?;
    }
    let out = OpenOptions::new().create(true).append(true).open(log).map_err(system)?;
    let err = out.try_clone().map_err(system)?;
    let parent = std::process::id();
    let mut command = Command::new(program);
    command
        .args((launch.arguments)(port, folder))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err);
    // SAFETY: between fork and exec this makes two system calls and builds an error from a number;
    // none of it allocates or locks.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died before the call above.
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
    command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => TestbedError::NotInstalled { program, install: launch.install },
        _ => system(error),
    })
}

fn wait_until_ready(
    launch: &Launch,
    port: u16,
    folder: &Path,
    child: &mut Child,
) -> Result<(), TestbedError> {
    let program = launch.program;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let begin = Instant::now();
    loop {
        let status = child.try_wait().map_err(|error| TestbedError::System {
            program,
            action: "watch",
            error,
        })?;
        if let Some(status) = status {
            return Err(TestbedError::Ended { program, status, log: log_tail(folder) });
        }
        let log = fs::read_to_string(log_path(folder)).unwrap_or_default();
        if (launch.ready)(&Probe { address, log: &log }) {
            return Ok(());
        }
        if begin.elapsed() > launch.patience {
            let log = log_tail(folder);
            return Err(TestbedError::NotReady { program, waited: launch.patience, log });
        }
        thread::sleep(POLL);
    }
}

/// The end of the log, in one line.
fn log_tail(folder: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(log_path(folder))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).lines().collect::<Vec<_>>().join(" | "))
    };
    read().unwrap_or_else(|error| format!("(no log: {error})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(program: &'static str, seconds: &'static str, ready: bool) -> Launch {
        Launch {
            program,
            install: "apt-get install coreutils",
            arguments: Box::new(move |_, _| vec![seconds.into()]),
            ready: Box::new(move |_| ready),
            patience: Duration::from_millis(100),
        }
    }

    fn start(launch: Launch) -> Result<Server, TestbedError> {
        let folder = Server::folder_for(launch.program)?;
        Server::start(launch, folder)
    }

    fn exists(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_missing_program_says_how_to_install_it() {
        let message = start(sleeper("no-such-program", "1", true)).err().unwrap().to_string();
        assert_eq!(
            message,
            "`no-such-program` is not installed: install it with `apt-get install coreutils`"
        );
    }

    #[test]
    fn process_and_folder_are_gone_after_drop() {
        let server = start(sleeper("sleep", "1000", true)).unwrap();
        let (pid, folder) = (server.pid(), server.folder().to_owned());
        assert!(exists(pid) && folder.exists());
        drop(server);
        assert!(!exists(pid) && !folder.exists());
    }

    #[test]
    fn a_server_that_ends_or_never_serves_is_an_error_with_its_log() {
        let ended = start(sleeper("sleep", "not-a-number", false)).err().unwrap();
        assert!(matches!(&ended, TestbedError::Ended { .. }));
        assert!(ended.to_string().contains("not-a-number"), "{ended}");
        let silent = start(sleeper("sleep", "1000", false)).err().unwrap();
        assert!(matches!(silent, TestbedError::NotReady { .. }), "{silent}");
    }

    #[test]
    fn a_paused_server_stands_still_and_goes_on() {
        let mut server = start(sleeper("sleep", "1000", true)).unwrap();
        let state = |pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
        };
        let reaches = |wanted: char, pid: u32| {
            (0..100).any(|_| {
                thread::sleep(POLL);
                state(pid) == wanted
            })
        };
        server.pause().unwrap();
        assert!(reaches('T', server.pid()));
        server.resume().unwrap();
        assert!(reaches('S', server.pid()));
        server.kill9().unwrap();
        assert!(server.pause().is_err());
        let port = server.port();
        server.restart().unwrap();
        assert!(server.is_running() && server.port() == port);
    }
}
