//! Disks of nodes' own: each node's folder is a file system of its own, so that it can be full without harm to
//! anybody else, and so that its power can be cut. They are mounted in a mount namespace of the keeper's: nobody
//! else sees them, and the kernel takes them away with it.

mod device;
mod image;
mod loop_device;

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kvdyno_core::ground::units::format_bytes;
use kvdyno_core::workload::fault::{DiskTrouble, Lose, Misbehaviour};
use rustix::fs::syncfs;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::system::uname;

use crate::disk_form::DiskForm;
use crate::error::TestbedError;
use crate::privilege;
pub use device::serve as serve_device;
pub use image::{DISK, DISK_SOFTWARE};
use image::{Image, Unwritten, hand_over, open_all, options, unwritten};

/// Name of the file that fills a disk.
const FILLER: &str = "kvdyno-filler";

/// Longest time to hand what is in memory to disks that are about to be cut off.
const HANDED_OVER_WITHIN: Duration = Duration::from_millis(200);

/// The disk of one node.
#[derive(Debug)]
struct Disk {
    folder: PathBuf,
    /// Image that it lies on; `None` in memory.
    image: Option<Image>,
}

/// Disks that answer no flush any more, where they can hold them.
#[derive(Debug)]
pub struct Held {
    /// The files on the disks: a file system that was shut down opens none.
    files: Vec<File>,
    /// Time from the order to the first until all of them did so; `None` if none can.
    pub skew: Option<Duration>,
}

/// Disks that were cut off.
#[derive(Debug)]
pub struct ShutDown {
    /// Words for the means of the cut, and for what that threw away.
    pub told: String,
    /// Time at which the last file system was shut.
    pub at: Instant,
    /// Bytes of files that lay in memory alone; `None` where the kernel does not tell.
    pub in_memory: Option<u64>,
    /// Number of writes since the last flush, or sectors of them, of which the cut decided what stays; `None` where disks
    /// keep all that they were handed.
    pub undecided: Option<u64>,
    /// Bytes that their file systems had handed to them since they were last cut off, or since the testbed was set up;
    /// `None` where the kernel does not tell.
    pub written: Option<u64>,
}

/// The disks of a testbed's nodes. They are unmounted when dropped, with all that is on them.
#[derive(Debug)]
pub struct Disks {
    form: DiskForm,
    /// True if the file systems lie on devices that can misbehave.
    can_misbehave: bool,
    /// The mount namespace that the calling thread left. A process that serves a device stays there: were it the last in the
    /// other one, it would unmount what waits for itself.
    outside: File,
    mounted: Vec<Disk>,
}

impl Disks {
    /// Prepares disks of this form, none of which is there yet; `can_misbehave`: their devices can. The calling thread gets
    /// a mount namespace of its own, and with it what that starts.
    ///
    /// # Errors
    /// See [`Disks::possible`].
    pub fn make(form: DiskForm, can_misbehave: bool) -> Result<Disks, TestbedError> {
        Disks::possible(form, can_misbehave)?;
        let outside = apart().map_err(TestbedError::system("make", "a mount namespace"))?;
        Ok(Disks { form, can_misbehave, outside, mounted: Vec::new() })
    }

    /// Checks that such disks can be made here, without making anything.
    ///
    /// # Errors
    /// [`TestbedError::Node`] without root or FUSE, [`TestbedError::NotInstalled`] if a tool is missing.
    pub fn possible(form: DiskForm, can_misbehave: bool) -> Result<(), TestbedError> {
        privilege::mount_namespace("a disk of each node's own (`disk=…`)")?;
        if can_misbehave {
            device::possible()?;
        }
        match form {
            DiskForm::Real(system, _) if system.software().find().is_none() => {
                Err(system.software().missing(DISK))
            }
            _ => Ok(()),
        }
    }

    /// Mounts a disk at an empty folder, unless one is there.
    ///
    /// # Errors
    /// [`TestbedError::System`] if the system refuses.
    pub fn mount(&mut self, folder: &Path) -> Result<(), TestbedError> {
        if self.mounted.iter().any(|known| known.folder == folder) {
            return Ok(());
        }
        let image = match self.form {
            DiskForm::Memory(bytes) => {
                mount_memory(bytes, folder).map_err(failed("mount a disk at", folder))?;
                None
            }
            DiskForm::Real(system, bytes) => {
                let outside = self.can_misbehave.then_some(&self.outside);
                Some(Image::make(system, bytes, outside, folder)?)
            }
        };
        self.mounted.push(Disk { folder: folder.to_owned(), image });
        Ok(())
    }

    /// Writes out all that is on the disks by now: what was set up is no part of what a cut of power may take.
    ///
    /// # Errors
    /// [`TestbedError::System`] if the system refuses.
    pub fn sync(&self) -> Result<(), TestbedError> {
        let on = self.mounted.iter().filter(|disk| !disk.is_off());
        on.map(|disk| disk.folder.as_path()).try_for_each(|folder| {
            let synced = File::open(folder).and_then(|root| Ok(syncfs(&root)?));
            synced.map_err(failed("sync the disk at", folder))
        })
    }

    /// Leaves what was handed to the disks by now out of what their cuts tell: the set-up is no load.
    pub fn count_anew(&mut self) {
        for image in self.mounted.iter_mut().flat_map(|disk| &mut disk.image) {
            image.take_written();
        }
    }

    /// Describes the disks for results; `None` before there is one.
    #[must_use]
    pub fn describe(&self) -> Option<String> {
        let (system, size) = (self.form.system(), format_bytes(self.form.bytes()));
        let mounted = self.mounted.iter().find_map(|disk| options(&disk.folder))?;
        let on = match self.form {
            DiskForm::Memory(_) => "in memory",
            DiskForm::Real(..) if self.can_misbehave => {
                "on an image behind a loop device and a device of kvdyno's own (FUSE)"
            }
            DiskForm::Real(..) => "on an image behind a loop device",
        };
        Some(format!("{system} of {size} {on}, {mounted}, {}", kernel()))
    }

    /// Leaves no byte free on the disk at `folder`. Says by which means.
    ///
    /// # Errors
    /// [`TestbedError`] if there is no such disk, it is filled already, or the system refuses.
    pub fn fill(&self, folder: &Path) -> Result<String, TestbedError> {
        let file = self.filler(folder)?;
        let failed = |error| TestbedError::System {
            what: folder.display().to_string(),
            action: "fill the disk at",
            error,
        };
        let mut out =
            OpenOptions::new().write(true).create_new(true).open(&file).map_err(failed)?;
        let mut written = 0;
        for piece in [1 << 20, 1 << 12] {
            let zeros = vec![0; piece];
            loop {
                match out.write(&zeros) {
                    Ok(some) => written += some as u64,
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        let (written, size) = (format_bytes(written), format_bytes(self.form.bytes()));
        Ok(format!("a file of {written} on its {} of {size}", self.form.system()))
    }

    /// Frees what [`Disks::fill`] has taken. Says by which means.
    ///
    /// # Errors
    /// [`TestbedError`] if the disk was not filled.
    pub fn free(&self, folder: &Path) -> Result<String, TestbedError> {
        let file = self.filler(folder)?;
        std::fs::remove_file(&file)
            .map_err(TestbedError::system("free the disk at", folder.display().to_string()))?;
        Ok("the file that filled it removed".to_owned())
    }

    fn filler(&self, folder: &Path) -> Result<PathBuf, TestbedError> {
        match self.mounted.iter().find(|known| known.folder == folder) {
            Some(disk) if !disk.is_off() => Ok(folder.join(FILLER)),
            Some(_) => Err(off(folder)),
            None => Err(no_disk(folder)),
        }
    }

    /// Returns true if the power of the disk at `folder` is off.
    #[must_use]
    pub fn is_off(&self, folder: &Path) -> bool {
        self.mounted.iter().any(|known| known.folder == folder && known.is_off())
    }

    /// Checks that these are disks whose power can be cut, and is on.
    ///
    /// # Errors
    /// [`TestbedError::Node`] about the first that is not.
    pub fn all_on(&mut self, folders: &[PathBuf]) -> Result<(), TestbedError> {
        folders.iter().try_for_each(|folder| match self.image(folder)?.is_off() {
            true => Err(off(folder)),
            false => Ok(()),
        })
    }

    /// Makes ready to cut these disks off: has all that can hold flushes do so, at one moment. What they were asked to flush
    /// and had not is then still undecided, and a program that waits for it is told nothing any more.
    ///
    /// # Errors
    /// [`TestbedError`] if one is no such disk, or the system refuses.
    pub fn hold(&mut self, folders: &[PathBuf]) -> Result<Held, TestbedError> {
        let files = folders.iter().flat_map(|folder| open_all(folder)).collect();
        let begin = Instant::now();
        let mut holding = Vec::new();
        for folder in folders {
            if let Some(device) = self.image(folder)?.device() {
                device.begin_hold().map_err(failed("hold flushes of the disk at", folder))?;
                holding.push(folder);
            }
        }
        for folder in &holding {
            if let Some(device) = self.image(folder)?.device() {
                device.await_held().map_err(failed("hold flushes of the disk at", folder))?;
            }
        }
        let skew = (!holding.is_empty()).then(|| begin.elapsed());
        Ok(Held { files, skew })
    }

    /// Lets these disks flush again after a cut that was given up.
    pub fn let_go(&mut self, folders: &[PathBuf]) {
        for folder in folders {
            if let Ok(Some(device)) = self.image(folder).map(Image::device) {
                // One that is gone holds nothing.
                let _ = device.on();
            }
        }
    }

    /// Cuts these disks off: from one moment on nothing more is written to them, neither what their file systems have in
    /// memory nor their journals, and they lose what they are to lose. Says by which means, and what that throws away.
    ///
    /// # Errors
    /// [`TestbedError`] if one is no such disk, or the system refuses.
    pub fn shut_down(
        &mut self,
        folders: &[PathBuf],
        held: Held,
        lose: Lose,
        seed: u64,
    ) -> Result<ShutDown, TestbedError> {
        let mounted = folders.first().and_then(|folder| options(folder)).unwrap_or_default();
        // Any of what is in memory may have been on its way: it is left to chance, too.
        let on_its_way = matches!(lose, Lose::Some | Lose::Torn).then(|| hand_over_all(folders));
        let (mut told, mut undecided) = (Vec::new(), None);
        for (place, folder) in folders.iter().enumerate() {
            let cut = self.image(folder)?.cut(lose, seed.wrapping_add(place as u64));
            if let Some(said) = cut.map_err(failed("cut off the disk at", folder))? {
                undecided = Some(undecided.unwrap_or(0) + said.undecided);
                told.push(said.text);
            }
        }
        for folder in folders {
            self.image(folder)?
                .shut_down(folder)
                .map_err(failed("shut down the disk at", folder))?;
        }
        let at = Instant::now();
        let in_memory = unwritten(&held.files);
        let mut written = Some(0);
        for folder in folders {
            written = written.zip(self.image(folder)?.take_written()).map(|(sum, more)| sum + more);
        }
        // Each of them has its answer by now, and keeps no file open.
        on_its_way.into_iter().flatten().for_each(|one| _ = one.join());
        drop(held.files);
        let lost = match in_memory {
            Some(Unwritten { bytes, files }) => {
                let bytes = format_bytes(bytes);
                format!("{bytes} of {files} file(s) thrown away, and its journal's memory with it")
            }
            None => "this kernel does not tell what that threw away".to_owned(),
        };
        let system = self.form.system();
        let shut =
            format!("{system} ({mounted}) of {} shut down, journal not flushed; {lost}", kernel());
        told.insert(0, shut);
        let in_memory = in_memory.map(|lost| lost.bytes);
        Ok(ShutDown { told: told.join("; "), at, in_memory, undecided, written })
    }

    /// Has the disk at `folder` misbehave from now on. Says how.
    ///
    /// # Errors
    /// [`TestbedError`] if it cannot, or does so already.
    pub fn misbehave(
        &mut self,
        folder: &Path,
        how: Misbehaviour,
        seed: u64,
    ) -> Result<String, TestbedError> {
        self.device(folder)?.misbehave(how, seed).map_err(failed("do harm to the disk at", folder))
    }

    /// Ends the misbehaviour of the disk at `folder`. Says what it did.
    ///
    /// # Errors
    /// [`TestbedError`] if it did not.
    pub fn mend(&mut self, folder: &Path, trouble: DiskTrouble) -> Result<String, TestbedError> {
        self.device(folder)?.mend(trouble).map_err(failed("mend the disk at", folder))
    }

    /// Checks that the disks at these folders can misbehave.
    ///
    /// # Errors
    /// [`TestbedError::Node`] about the first that cannot.
    pub fn all_can_misbehave(&mut self, folders: &[PathBuf]) -> Result<(), TestbedError> {
        folders.iter().try_for_each(|folder| self.device(folder).map(drop))
    }

    fn device(&mut self, folder: &Path) -> Result<&mut Image, TestbedError> {
        let image = self.image(folder)?;
        match image.can_misbehave() {
            true => Ok(image),
            false => Err(TestbedError::Node(format!(
                "the disk of {} always does as it should: start it with `device=fuse`",
                name(folder)
            ))),
        }
    }

    /// Unmounts these disks, now that the processes on them are gone.
    ///
    /// # Errors
    /// See [`Disks::shut_down`].
    pub fn unmount(&mut self, folders: &[PathBuf]) -> Result<(), TestbedError> {
        folders.iter().try_for_each(|folder| {
            self.image(folder)?.unmount(folder).map_err(failed("unmount the disk at", folder))
        })
    }

    /// Mounts these disks again. Says by which means.
    ///
    /// # Errors
    /// See [`Disks::shut_down`].
    pub fn mount_again(&mut self, folders: &[PathBuf]) -> Result<String, TestbedError> {
        for folder in folders {
            let mounted = self.image(folder)?.mount_again(folder);
            mounted.map_err(failed("mount again the disk at", folder))?;
        }
        Ok(format!("{} mounted again, its journal replayed", self.form.system()))
    }

    /// Returns what failed below these disks, where no fault was asked for: an image that has no room, a read or
    /// write of it that its own disk refused, a process of kvdyno's own that is gone. `None` if nothing did.
    pub fn failure(&mut self) -> Option<String> {
        let failed = |disk: &mut Disk| {
            let said = disk.image.as_mut()?.failure()?;
            let node = name(&disk.folder);
            Some(format!("{said}; what {node} did after that is no doing of the store"))
        };
        self.mounted.iter_mut().find_map(failed)
    }

    fn image(&mut self, folder: &Path) -> Result<&mut Image, TestbedError> {
        let known = self.mounted.iter_mut().find(|known| known.folder == folder);
        let disk = known.ok_or_else(|| no_disk(folder))?;
        disk.image.as_mut().ok_or_else(|| {
            let folder = folder.display();
            TestbedError::Node(format!("{folder} lies in memory, which no cut of power survives"))
        })
    }
}

impl Disk {
    fn is_off(&self) -> bool {
        self.image.as_ref().is_some_and(Image::is_off)
    }
}

/// Hands over what is in memory of the files below these folders, each by a thread of its own, and waits for that a little:
/// a file behind a flush that is held comes no further.
fn hand_over_all(folders: &[PathBuf]) -> Vec<JoinHandle<()>> {
    let hand = |folder: &PathBuf| {
        let folder = folder.clone();
        // What a disk refuses is on its way no more.
        std::thread::spawn(move || _ = hand_over(&folder))
    };
    let threads: Vec<JoinHandle<()>> = folders.iter().map(hand).collect();
    let begin = Instant::now();
    while threads.iter().any(|one| !one.is_finished()) && begin.elapsed() < HANDED_OVER_WITHIN {
        std::thread::sleep(Duration::from_millis(1));
    }
    threads
}

fn mount_memory(bytes: u64, folder: &Path) -> io::Result<()> {
    let options = CString::new(format!("size={bytes},mode=0755"))?;
    Ok(mount("kvdyno", folder, "tmpfs", MountFlags::empty(), options.as_c_str())?)
}

fn failed(action: &'static str, folder: &Path) -> impl FnOnce(io::Error) -> TestbedError + use<> {
    TestbedError::system(action, folder.display().to_string())
}

fn off(folder: &Path) -> TestbedError {
    TestbedError::Node(format!("the power of {} is off already", name(folder)))
}

fn no_disk(folder: &Path) -> TestbedError {
    TestbedError::Node(format!("{} has no disk of its own", name(folder)))
}

/// Returns the name of a disk, that of the node's folder.
fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the kernel's name and version: `Linux 6.1.0`.
fn kernel() -> String {
    let told = uname();
    format!("{} {}", told.sysname().to_string_lossy(), told.release().to_string_lossy())
}

impl Drop for Disks {
    fn drop(&mut self) {
        for disk in self.mounted.iter_mut().filter(|disk| !disk.is_off()) {
            // Nobody waits for what a disk that stands still has not answered.
            let _ = disk.image.as_mut().map(|image| image.cut(Lose::Unwritten, 0));
            // What is not unmounted now goes with the namespace.
            let _ = unmount(&disk.folder, UnmountFlags::DETACH);
        }
    }
}

/// Makes a mount namespace for the calling thread, from which nothing spreads; returns the one that it leaves.
fn apart() -> io::Result<File> {
    let outside = File::open("/proc/thread-self/ns/mnt")?;
    privilege::set_mounts_apart()?;
    Ok(outside)
}

#[cfg(test)]
mod tests;
