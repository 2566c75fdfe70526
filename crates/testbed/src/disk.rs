//! Small disks: each node's folder is a tmpfs of its own, so that it can be full without harm to anybody
//! else. They are mounted in a mount namespace of the keeper's: nobody else sees them, and the kernel
//! takes them away with it.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kvdyno_core::ground::units::format_bytes;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::error::TestbedError;
use crate::network::need_root;

/// Name of the file that fills a disk.
const FILLER: &str = "kvdyno-filler";

/// The disks of a testbed's nodes. They are unmounted when dropped, with all that is on them.
#[derive(Debug)]
pub struct Disks {
    size: u64,
    mounted: Vec<PathBuf>,
}

impl Disks {
    /// Disks of `size` bytes, none of which is there yet. The calling thread gets a mount namespace of
    /// its own, and with it what that starts.
    ///
    /// # Errors
    /// [`TestbedError::Node`] without root.
    pub fn make(size: u64) -> Result<Disks, TestbedError> {
        need_root("a disk of each node's own (`disk=SIZE`)")?;
        apart().map_err(TestbedError::system("make", "a mount namespace"))?;
        Ok(Disks { size, mounted: Vec::new() })
    }

    /// Mounts a disk at an empty folder, unless one is there.
    ///
    /// # Errors
    /// [`TestbedError::System`] if the system refuses.
    pub fn mount(&mut self, folder: &Path) -> Result<(), TestbedError> {
        if self.mounted.iter().any(|known| known == folder) {
            return Ok(());
        }
        let options = format!("size={},mode=0755", self.size);
        let mounted = CString::new(options).map_err(io::Error::from).and_then(|options| {
            Ok(mount("kvdyno", folder, "tmpfs", MountFlags::empty(), options.as_c_str())?)
        });
        mounted.map_err(TestbedError::system("mount a disk at", folder.display().to_string()))?;
        self.mounted.push(folder.to_owned());
        Ok(())
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
        let (written, size) = (format_bytes(written), format_bytes(self.size));
        Ok(format!("a file of {written} on its tmpfs of {size}"))
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
        match self.mounted.iter().any(|known| known == folder) {
            true => Ok(folder.join(FILLER)),
            false => Err(TestbedError::Node(format!("{} is no disk", folder.display()))),
        }
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for folder in &self.mounted {
            // What is not unmounted now goes with the namespace.
            let _ = unmount(folder, UnmountFlags::DETACH);
        }
    }
}

/// A mount namespace for the calling thread, from which nothing spreads.
fn apart() -> io::Result<()> {
    // SAFETY: descriptors stay shared; only what is mounted is the calling thread's own.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}
