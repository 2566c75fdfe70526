//! A kernel timer of nanosecond resolution that a Tokio task can wait for (Linux timerfd).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use tokio::io::unix::AsyncFd;

use crate::measure::Nanos;

/// One timer of one task.
pub(super) struct Timer {
    fd: AsyncFd<OwnedFd>,
}

impl Timer {
    /// # Errors
    /// If the system has no timer left to give.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed; the result is checked before use.
        let fd = unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just made, is open, and is owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: the timer owns the open descriptor and never exchanges it.
        let fd = unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)?;
        Ok(Timer { fd })
    }

    /// Sleeps for `wait` ns. If the kernel refuses the timer, sleeps by Tokio's coarser one.
    pub async fn sleep(&mut self, wait: Nanos) {
        if !self.arm(wait) {
            tokio::time::sleep(Duration::from_nanos(wait)).await;
            return;
        }
        loop {
            let Ok(mut ready) = self.fd.readable().await else { return };
            let mut expirations = [0u8; 8];
            let read = ready.try_io(|fd| {
                // SAFETY: the buffer is 8 bytes long, as the call is told.
                let n = unsafe {
                    libc::read(fd.as_raw_fd(), expirations.as_mut_ptr().cast(), expirations.len())
                };
                if n < 0 { Err(io::Error::last_os_error()) } else { Ok(n) }
            });
            if read.is_ok() {
                return;
            }
        }
    }

    fn arm(&self, wait: Nanos) -> bool {
        // Zero would disarm the timer.
        let wait = wait.max(1);
        let value = libc::timespec {
            tv_sec: (wait / 1_000_000_000) as libc::time_t,
            tv_nsec: (wait % 1_000_000_000) as libc::c_long,
        };
        let spec = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: value,
        };
        // SAFETY: `spec` outlives the call; a null old value is allowed.
        let done =
            unsafe { libc::timerfd_settime(self.fd.as_raw_fd(), 0, &spec, std::ptr::null_mut()) };
        done == 0
    }
}
