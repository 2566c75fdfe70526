//! A real file system on an image behind a loop device, whose plug can be pulled: what was not synced is gone,
//! as after a cut of power with a disk that honours flushes.
//!
//! The image has no name, and the device frees itself: what is not unmounted when its holder ends goes with the
//! mount namespace.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use kvdyno_core::ground::units::format_bytes;
use kvdyno_core::workload::fault::{DiskTrouble, Lose, Misbehaviour};
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::device::{Device, Said};
use super::loop_device::{LoopDevice, await_free, written};
use crate::disk_form::FileSystem;
use crate::error::TestbedError;
use crate::install::Software;
use crate::process;

static MKFS_EXT4: Software = Software::of_debian("mkfs.ext4", &["e2fsprogs"]);

static MKFS_XFS: Software = Software::of_debian("mkfs.xfs", &["xfsprogs"]);

/// Software that file systems of nodes' own need. `kvdyno testbed install disk` installs it.
pub static DISK_SOFTWARE: [&Software; 2] = [&MKFS_EXT4, &MKFS_XFS];
/// Name of this software for `kvdyno testbed install`.
pub const DISK: &str = "disk";

/// `FS_IOC_SHUTDOWN`, which ext4 and XFS have under this number (`XFS_IOC_GOINGDOWN`).
const FS_IOC_SHUTDOWN: Opcode = opcode::read::<u32>(b'X', 125);
/// Flag by which neither data nor journal is written out.
const NO_LOG_FLUSH: u32 = 2;

/// Longest time that what has just been killed may keep a file system busy.
const LET_GO_WITHIN: Duration = Duration::from_secs(10);

impl FileSystem {
    /// Returns the tool that makes it.
    pub(super) fn software(self) -> &'static Software {
        match self {
            FileSystem::Ext4 => &MKFS_EXT4,
            FileSystem::Xfs => &MKFS_XFS,
        }
    }

    /// Returns its mount options. An image keeps all that it was handed, so that there is nothing to flush, and ext4 is told
    /// so: else one sync of a store would be several of the file system that the image lies on. XFS cannot be told. A disk
    /// of kvdyno's own forgets what was not flushed.
    fn options(self, forgets: bool) -> Option<&'static CStr> {
        match self {
            FileSystem::Ext4 if !forgets => Some(c"nobarrier"),
            _ => None,
        }
    }

    /// Returns the arguments of its tool: quietly, whatever was there, and all of it at once, so that nothing of it is
    /// still being made under load.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            FileSystem::Ext4 => {
                &["-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]
            }
            FileSystem::Xfs => &["-q", "-f", "-K"],
        }
    }
}

/// Part of a file system's files that had not been handed to its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unwritten {
    pub bytes: u64,
    pub files: u64,
}

/// A file system on an image, mounted at a folder.
#[derive(Debug)]
pub(super) struct Image {
    system: FileSystem,
    file: File,
    /// The file below it.
    backing: Backing,
    /// The device that it is mounted from; `None` while its power is off.
    device: Option<PathBuf>,
    /// Bytes that were handed to its disk and are counted, through devices that it has no more; `None` where the kernel does
    /// not tell.
    written: Option<u64>,
    /// Number of bytes that its device had been given to write before; of these none is counted.
    written_before: u64,
    /// Device whose file it lies on, if the disk can misbehave. Mended last: an unmount waits for it.
    below: Option<Device>,
}

impl Image {
    /// Makes an image of `bytes` and mounts it at `folder`. It lies, without a name, beside that; with a mount namespace for
    /// the process that serves it a device of kvdyno's own lies between.
    ///
    /// # Errors
    /// [`TestbedError`] if the tool is missing or the system refuses.
    pub fn make(
        system: FileSystem,
        bytes: u64,
        outside: Option<&File>,
        folder: &Path,
    ) -> Result<Image, TestbedError> {
        let failed = || TestbedError::system("make a disk at", folder.display().to_string());
        let beside = folder.parent().unwrap_or(folder);
        let image = tempfile::tempfile_in(beside).map_err(failed())?;
        let backing = Backing { image, bytes, lies_in: beside.to_owned(), node: shown(folder) };
        backing.allocate()?;
        let (below, file) = match outside {
            Some(outside) => Device::start(&backing.image, &backing.node, outside)
                .map(|(device, disk)| (Some(device), disk)),
            None => backing.image.try_clone().map(|file| (None, file)),
        }
        .map_err(failed())?;
        let device = LoopDevice::attach(&file).map_err(failed())?;
        let tool = system.software().find().ok_or_else(|| system.software().missing(DISK))?;
        let arguments = system.arguments().iter().map(Path::new).chain([device.path()]);
        process::run(&tool, arguments)?;
        // The tool may have given parts of it back.
        backing.allocate()?;
        let mut image = Image {
            system,
            file,
            backing,
            device: None,
            written: Some(0),
            written_before: 0,
            below,
        };
        image.mount_from(&device, folder).map_err(failed())?;
        // Servers want their folder empty.
        let _ = fs::remove_dir(folder.join("lost+found"));
        Ok(image)
    }

    fn mount_from(&mut self, device: &LoopDevice, folder: &Path) -> io::Result<()> {
        // Without flushes a disk of kvdyno's own would lose what was synced.
        if self.below.is_some() {
            device.flush()?;
        }
        let options = self.system.options(self.below.is_some());
        mount(device.path(), folder, self.system.name(), MountFlags::empty(), options)?;
        self.device = Some(device.path().to_owned());
        self.written_before = written(device.path()).unwrap_or(0);
        Ok(())
    }

    /// Counts what its device was given to write by now.
    fn count(&mut self) {
        if let Some(device) = &self.device {
            let now = written(device);
            let more = now.map(|now| now.saturating_sub(self.written_before));
            self.written = self.written.zip(more).map(|(sum, more)| sum + more);
            self.written_before = now.unwrap_or(0);
        }
    }

    /// Returns the bytes that its file system has handed to its disk, and counts from 0 from now on; `None` where the kernel
    /// does not tell.
    pub fn take_written(&mut self) -> Option<u64> {
        self.count();
        self.written.replace(0)
    }

    /// Returns true if its power is off.
    pub fn is_off(&self) -> bool {
        self.device.is_none()
    }

    /// Cuts the disk below off: it gets nothing more, and loses what it is to lose. Says what that was; `None` if there is
    /// no such disk, and nothing is to be lost of it.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::Unsupported`] if there is no disk that can lose anything.
    pub fn cut(&mut self, lose: Lose, seed: u64) -> io::Result<Option<Said>> {
        match &mut self.below {
            Some(device) => Ok(Some(device.cut(lose, seed)?).filter(|said| !said.text.is_empty())),
            None if lose == Lose::Unwritten => Ok(None),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Has the disk below misbehave from now on. Says how.
    ///
    /// # Errors
    /// See [`Image::cut`].
    pub fn misbehave(&mut self, how: Misbehaviour, seed: u64) -> io::Result<String> {
        self.below()?.begin(how, seed)
    }

    /// Ends the misbehaviour of the disk below. Says what it did.
    ///
    /// # Errors
    /// See [`Image::cut`].
    pub fn mend(&mut self, trouble: DiskTrouble) -> io::Result<String> {
        self.below()?.end(trouble)
    }

    /// Returns the disk below, if there is one that can hold flushes.
    pub fn device(&mut self) -> Option<&mut Device> {
        self.below.as_mut()
    }

    fn below(&mut self) -> io::Result<&mut Device> {
        self.below.as_mut().ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Returns true if it lies on a disk that can misbehave.
    pub fn can_misbehave(&self) -> bool {
        self.below.is_some()
    }

    /// Returns what failed below it where no fault was asked for; `None` if nothing did.
    pub fn failure(&mut self) -> Option<String> {
        let Backing { bytes, node, lies_in, .. } = &self.backing;
        let said = match &mut self.below {
            Some(device) => match device.failure() {
                Ok(said) => said.map(|said| {
                    let (size, place) = (format_bytes(*bytes), lies_in.display());
                    format!(
                        "the image of {size} below the disk of {node}, in {place}, failed: {said}; see to the \
                         disk that it lies on, or set TMPDIR to a folder of another"
                    )
                }),
                Err(_) => Some(format!(
                    "the process of kvdyno's own that serves the disk of {node} was killed or ended: see whether \
                     the machine ran out of memory (`dmesg`), and run it again"
                )),
            },
            None => None,
        };
        said.or_else(|| self.backing.allocate().err().map(|error| error.to_string()))
    }

    /// Returns the file below, for tests that spoil it.
    #[cfg(test)]
    pub fn backing_file(&self) -> &File {
        &self.backing.image
    }

    /// Returns the number of the process of the disk below.
    #[cfg(test)]
    pub fn device_process(&self) -> Option<u32> {
        self.below.as_ref().map(Device::pid)
    }

    /// Stops all writes: neither what the file system has in memory is written from now on, nor its journal. XFS shuts
    /// itself down when its journal cannot be written, and opens nothing from then on, its root neither: there is nothing
    /// left to do.
    ///
    /// # Errors
    /// The system's error.
    pub fn shut_down(&self, folder: &Path) -> io::Result<()> {
        let root = match File::open(folder) {
            Err(error) if self.has_shut_itself(&error) => return Ok(()),
            opened => opened?,
        };
        // SAFETY: the call reads one number.
        Ok(unsafe { ioctl(&root, Setter::<FS_IOC_SHUTDOWN, u32>::new(NO_LOG_FLUSH)) }?)
    }

    fn has_shut_itself(&self, error: &io::Error) -> bool {
        self.system == FileSystem::Xfs && error.raw_os_error() == Some(Errno::IO.raw_os_error())
    }

    /// Unmounts it, now that the processes on it are gone, and waits until its device is free, so that nothing of it is left
    /// in memory.
    ///
    /// # Errors
    /// The system's error.
    pub fn unmount(&mut self, folder: &Path) -> io::Result<()> {
        self.count();
        let begin = Instant::now();
        loop {
            match unmount(folder, UnmountFlags::empty()) {
                Ok(()) => break,
                Err(Errno::BUSY) if begin.elapsed() < LET_GO_WITHIN => {
                    thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.device.take().map_or(Ok(()), |device| await_free(&device))
    }

    /// Mounts it again: the file system replays its journal.
    ///
    /// # Errors
    /// The system's error.
    pub fn mount_again(&mut self, folder: &Path) -> io::Result<()> {
        // A kernel that zeroes blocks may give them back to where the image lies.
        self.backing.allocate().map_err(io::Error::other)?;
        if let Some(device) = &mut self.below {
            device.on()?;
        }
        let device = LoopDevice::attach(&self.file)?;
        self.mount_from(&device, folder)
    }
}

/// The image below a node's disk. All of it is allocated, so that a program that fills the folder that it lies in takes
/// nothing from a store.
#[derive(Debug)]
struct Backing {
    image: File,
    bytes: u64,
    lies_in: PathBuf,
    /// Name of the node whose disk it is.
    node: String,
}

impl Backing {
    /// Allocates the parts that are not allocated yet, and leaves what is on it as it is.
    ///
    /// # Errors
    /// [`TestbedError::Machine`] with the size that it needs.
    fn allocate(&self) -> Result<(), TestbedError> {
        let allocated = match fallocate(&self.image, FallocateFlags::empty(), 0, self.bytes) {
            // Not every file system can; then it is as long as it has to be, and written when it comes to that.
            Err(Errno::OPNOTSUPP) => self.image.set_len(self.bytes),
            other => other.map_err(io::Error::from),
        };
        allocated.map_err(|error| {
            let (size, place) = (format_bytes(self.bytes), self.lies_in.display());
            let free = fstatvfs(&self.image)
                .map_or(0, |system| system.f_bavail.saturating_mul(system.f_frsize));
            TestbedError::Machine(format!(
                "the disk of {} is an image of {size} in {place}, where {} are free: {error}; make room there, give \
                 the nodes smaller disks (`disk=ext4:SIZE`), or set TMPDIR to a folder with more room",
                self.node,
                format_bytes(free)
            ))
        })
    }
}

/// Returns the name by which the disk of a node is shown: `redis-x7Bq2w.redis-1`.
fn shown(folder: &Path) -> String {
    let last = |path: Option<&Path>| {
        let name = path.and_then(Path::file_name).unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    format!("{}.{}", last(folder.parent()), last(Some(folder)))
}

/// Opens every file below `folder`, to be asked of once its file system opens none any more.
pub(super) fn open_all(folder: &Path) -> Vec<File> {
    let mut open = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => open.extend(open_all(&entry.path())),
            Ok(kind) if kind.is_file() => open.extend(File::open(entry.path())),
            _ => {}
        }
    }
    open
}

/// Returns the bytes of these files that lie in memory alone; `None` where the kernel does not tell (before 6.5).
pub(super) fn unwritten(files: &[File]) -> Option<Unwritten> {
    let mut sum = Unwritten::default();
    for file in files {
        let bytes = dirty(file)?;
        sum.bytes += bytes;
        sum.files += u64::from(bytes > 0);
    }
    Some(sum)
}

/// Hands to the disk what of the files below `folder` lies in memory alone, as the kernel does in its own time, and
/// has the disk flush nothing.
///
/// # Errors
/// The system's error.
pub(super) fn hand_over(folder: &Path) -> io::Result<()> {
    const ALL: libc::c_uint = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    for entry in fs::read_dir(folder)?.flatten() {
        let kind = entry.file_type()?;
        if kind.is_dir() {
            hand_over(&entry.path())?;
        } else if kind.is_file() {
            let file = File::open(entry.path())?;
            // SAFETY: the call takes no memory.
            if unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, ALL) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Returns the bytes of a file that the kernel has not written out: cachestat(2), by whole pages.
fn dirty(file: &File) -> Option<u64> {
    #[repr(C)]
    #[derive(Default)]
    struct Counts {
        cached: u64,
        dirty: u64,
        under_way: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let (whole, mut counts) = ([0_u64; 2], Counts::default());
    // SAFETY: the kernel reads the range, from 0 to the end, and writes the five counts.
    let told =
        unsafe { libc::syscall(451, file.as_raw_fd(), &raw const whole, &raw mut counts, 0_u32) };
    let page = rustix::param::page_size() as u64;
    (told == 0).then(|| (counts.dirty + counts.under_way) * page)
}

/// Returns the mount options of the file system at `folder`: `rw,relatime`.
pub(super) fn options(folder: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").ok()?;
    let shown = folder.to_str()?;
    mounts.lines().rev().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(4);
        if mount.next()? != shown {
            return None;
        }
        let mut all: Vec<&str> = mount.next()?.split(',').collect();
        for option in system.split(' ').nth(2)?.split(',') {
            if !all.contains(&option) {
                all.push(option);
            }
        }
        Some(all.join(","))
    })
}
