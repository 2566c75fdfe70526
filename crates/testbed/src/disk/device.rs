//! A disk that can misbehave: one file of a FUSE file system, which a process of the keeper's serves. A loop device
//! lies over the file, so that the process sees each write and each flush of the file system on it.
//!
//! The FUSE file system is mounted nowhere: only the keeper has it open. When the process ends, however it does, the
//! kernel fails whatever is asked of the file from then on, and nobody waits for it.

mod cache;
mod served;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kvdyno_core::workload::fault::{DiskTrouble, Lose, Misbehaviour};
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::error::TestbedError;
pub use served::serve;

/// Device by which the kernel takes FUSE file systems.
const FUSE: &str = "/dev/fuse";

/// Variable that tells the process which of its descriptors are the FUSE device and the image.
const DESCRIPTORS: &str = "KVDYNO_DISK_DEVICE";

/// Arguments by which this program calls [`serve`].
#[cfg(not(test))]
const SERVES: [&str; 2] = ["testbed", "disk-device"];
#[cfg(test)]
const SERVES: [&str; 4] = ["--exact", "disk::tests::serves_a_device", "--ignored", "--nocapture"];

/// Time that the process has to end of its own accord.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Longest read of the kernel's, bytes.
const PIECE: u32 = 1 << 20;

/// Order to the process, one JSON object a line; each is answered with a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Order {
    /// Answer no flush from now on, until the cut or until it works again.
    Hold,
    /// Take and give nothing from now on, and lose what the cut takes.
    Cut {
        lose: Lose,
        seed: u64,
    },
    /// Work again.
    On,
    Begin {
        how: Misbehaviour,
        seed: u64,
    },
    End(DiskTrouble),
    /// Say what its image refused.
    Failure,
}

/// Report of the device on an order that it carried out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Said {
    /// Description in words.
    pub text: String,
    /// Number of writes since the last flush before a cut, or sectors of them, of which it was to be decided what stays.
    pub undecided: u64,
}

/// The report; or why the order was not carried out.
type Answer = Result<Said, String>;

/// The process of one device.
#[derive(Debug)]
pub(super) struct Device {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// Checks that there can be a device here.
///
/// # Errors
/// [`TestbedError::Node`] with what is missing.
pub(super) fn possible() -> Result<(), TestbedError> {
    match open_fuse() {
        Ok(_) => Ok(()),
        Err(error) => Err(TestbedError::Node(format!(
            "a disk that misbehaves needs {FUSE}, which cannot be had here: {error} (`modprobe fuse`)"
        ))),
    }
}

fn open_fuse() -> io::Result<File> {
    File::options().read(true).write(true).open(Path::new(FUSE))
}

impl Device {
    /// Starts a device over `image`. Returns it and the file to put a file system on, whose name is shown where loop devices
    /// are listed. Its process lives in the mount namespace `outside`.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(image: &File, name: &str, outside: &File) -> io::Result<(Device, File)> {
        let fuse = open_fuse()?;
        let system = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let number = fuse.as_raw_fd().to_string();
        let longest = PIECE.to_string();
        let settings = [
            ("source", "kvdyno"),
            ("fd", &number),
            ("rootmode", "40000"),
            ("user_id", "0"),
            ("group_id", "0"),
            ("max_read", &longest),
        ];
        for (key, value) in settings {
            fsconfig_set_string(&system, key, value)?;
        }
        fsconfig_create(&system)?;
        let root = fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let mut child = spawn(fuse.as_raw_fd(), image.as_raw_fd(), outside.as_raw_fd())?;
        // The process alone has it: what is asked of the file fails when that ends.
        drop((fuse, system));
        let orders = child.stdin.take();
        let answers = child.stdout.take().map(BufReader::new).ok_or(io::ErrorKind::BrokenPipe)?;
        let device = Device { child, orders, answers };
        let disk = openat(&root, name, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        Ok((device, File::from(disk)))
    }

    /// Cuts the power of the device. Says what that took.
    ///
    /// # Errors
    /// The device's own, or that it is gone.
    pub fn cut(&mut self, lose: Lose, seed: u64) -> io::Result<Said> {
        self.ask(&Order::Cut { lose, seed })
    }

    /// Has the device answer no flush from now on. [`Device::await_held`] says when it does so.
    ///
    /// # Errors
    /// See [`Device::cut`].
    pub fn begin_hold(&mut self) -> io::Result<()> {
        self.send(&Order::Hold)
    }

    /// Waits until the device holds flushes.
    ///
    /// # Errors
    /// See [`Device::cut`].
    pub fn await_held(&mut self) -> io::Result<()> {
        self.receive().map(drop)
    }

    /// Gives the device its power back.
    ///
    /// # Errors
    /// See [`Device::cut`].
    pub fn on(&mut self) -> io::Result<()> {
        self.ask(&Order::On).map(drop)
    }

    /// Has the device misbehave from now on. Says how.
    ///
    /// # Errors
    /// See [`Device::cut`]; also if it does so already.
    pub fn begin(&mut self, how: Misbehaviour, seed: u64) -> io::Result<String> {
        self.ask(&Order::Begin { how, seed }).map(|said| said.text)
    }

    /// Ends the misbehaviour. Says what it did.
    ///
    /// # Errors
    /// See [`Device::cut`]; also if it did not.
    pub fn end(&mut self, trouble: DiskTrouble) -> io::Result<String> {
        self.ask(&Order::End(trouble)).map(|said| said.text)
    }

    /// Returns what its image refused, if it refused anything.
    ///
    /// # Errors
    /// That it is gone.
    pub fn failure(&mut self) -> io::Result<Option<String>> {
        self.ask(&Order::Failure).map(|said| Some(said.text).filter(|said| !said.is_empty()))
    }

    fn ask(&mut self, order: &Order) -> io::Result<Said> {
        self.send(order)?;
        self.receive()
    }

    fn send(&mut self, order: &Order) -> io::Result<()> {
        let line = serde_json::to_string(order).expect("plain data") + "\n";
        let sent = self.orders.as_mut().map(|orders| orders.write_all(line.as_bytes()));
        sent.ok_or_else(gone)?.map_err(|_| gone())
    }

    fn receive(&mut self) -> io::Result<Said> {
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(gone());
            }
            // Another program's lines, in tests.
            if let Ok(answer) = serde_json::from_str::<Answer>(&line) {
                return answer.map_err(io::Error::other);
            }
        }
    }

    /// Returns the number of its process.
    #[cfg(test)]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // The closed pipe is the order to end.
        drop(self.orders.take());
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begin.elapsed() < END_WITHIN {
            thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn gone() -> io::Error {
    io::Error::other("the process that serves it is gone")
}

/// Starts this program once more, as the process of a device.
fn spawn(fuse: RawFd, image: RawFd, outside: RawFd) -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.args(SERVES).env(DESCRIPTORS, format!("{fuse},{image}"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let made_ready = move || {
        for descriptor in [fuse, image] {
            // SAFETY: the call takes no memory.
            if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // SAFETY: the call takes no memory; this process has one thread, having just been forked.
        if unsafe { libc::setns(outside, libc::CLONE_NEWNS) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // Whoever started it is gone: so is it.
        Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
    };
    // SAFETY: between fork and exec only system calls are made.
    unsafe { command.pre_exec(made_ready) };
    command.spawn()
}
