//! Loop devices: a file as a block device. A device is held by all that have it open or mounted, and frees itself when the
//! last of them lets go, however that one ends.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Setter, ioctl};

/// Code of the call, in linux/loop.h.
const LOOP_CONFIGURE: Opcode = 0x4C0A;
const LOOP_CTL_GET_FREE: Opcode = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// Number of attempts to get a free device: others take devices, too.
const ATTEMPTS: u32 = 64;
/// Longest time until the kernel frees a device that nobody has open.
const FREE_WITHIN: Duration = Duration::from_secs(10);

/// `struct loop_info64`.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    real_device: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct Configuration {
    file: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

/// `LOOP_CTL_GET_FREE`: the number of a device that is free.
struct FreeNumber;

// SAFETY: the call takes no memory; what it returns is a number.
unsafe impl Ioctl for FreeNumber {
    type Output = u32;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_CTL_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut libc::c_void {
        std::ptr::null_mut()
    }

    // SAFETY: nothing is read from where the pointer leads.
    unsafe fn output_from_ptr(
        output: IoctlOutput,
        _: *mut libc::c_void,
    ) -> rustix::io::Result<u32> {
        Ok(output as u32)
    }
}

/// A device over a file.
#[derive(Debug)]
pub(super) struct LoopDevice {
    path: PathBuf,
    _open: File,
}

impl LoopDevice {
    /// Makes a device over `image`, past the page cache where the image's file system lets it.
    ///
    /// # Errors
    /// The system's error: devices may be missing, or not ours to take.
    pub fn attach(image: &File) -> io::Result<LoopDevice> {
        let control = read_write(Path::new("/dev/loop-control"))?;
        for _ in 0..ATTEMPTS {
            // SAFETY: the call takes no memory.
            let number = unsafe { ioctl(&control, FreeNumber) }?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = read_write(&path)?;
            // SAFETY: the structure is the one that the kernel reads for this code.
            let configured = unsafe {
                let configure = Setter::<LOOP_CONFIGURE, _>::new(configuration(image));
                ioctl(&device, configure)
            };
            match configured {
                Ok(()) => return Ok(LoopDevice { path, _open: device }),
                // Somebody else was faster.
                Err(Errno::BUSY) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::BUSY.into())
    }

    /// Sees to it that the kernel flushes the file below. A device remembers beyond its image that somebody has told the
    /// kernel not to.
    ///
    /// # Errors
    /// The system's error.
    pub fn flush(&self) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default();
        let cache = Path::new("/sys/block").join(name).join("queue/write_cache");
        match fs::read_to_string(&cache)?.trim() {
            "write back" => Ok(()),
            _ => fs::write(cache, "write back"),
        }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns the bytes that the device at `path` has been given to write since it came up, by whoever had it; `None` where the
/// kernel does not count them.
pub(super) fn written(path: &Path) -> Option<u64> {
    /// Place of the sectors that were written, in `stat` of a block device.
    const WRITTEN: usize = 6;
    /// The unit of that, whatever the device's own sectors are.
    const SECTOR: u64 = 512;
    let stat = Path::new("/sys/block").join(path.file_name()?).join("stat");
    let counts = fs::read_to_string(stat).ok()?;
    let sectors: u64 = counts.split_whitespace().nth(WRITTEN)?.parse().ok()?;
    Some(sectors * SECTOR)
}

/// Waits until the kernel has freed a device that nobody has open any more.
///
/// # Errors
/// If somebody still has it.
pub(super) fn await_free(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default();
    let held = Path::new("/sys/block").join(name).join("loop");
    let begin = Instant::now();
    while held.exists() {
        if begin.elapsed() > FREE_WITHIN {
            return Err(Errno::BUSY.into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn read_write(path: &Path) -> io::Result<File> {
    let told =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    OpenOptions::new().read(true).write(true).open(path).map_err(told)
}

fn configuration(image: &File) -> Configuration {
    let info = Info {
        device: 0,
        inode: 0,
        real_device: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    Configuration { file: image.as_raw_fd() as u32, block_size: 0, info, reserved: [0; 8] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_long_as_the_kernel_has_them() {
        assert_eq!((size_of::<Info>(), size_of::<Configuration>()), (232, 304));
    }
}
