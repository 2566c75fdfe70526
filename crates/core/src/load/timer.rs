//! A kernel timer of nanosecond resolution that a Tokio task can wait for (Linux timerfd).

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
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
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: the timer owns the open descriptor and never exchanges it.
        let fd = unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)?;
        Ok(Timer { fd })
    }

    /// Sleeps for `wait` ns. If the kernel refuses the timer, sleeps by Tokio's coarser one.
    #[inline]
    pub async fn sleep(&mut self, wait: Nanos) {
        if !self.arm(wait) {
            tokio::time::sleep(Duration::from_nanos(wait)).await;
            return;
        }
        loop {
            let Ok(mut ready) = self.fd.readable().await else { return };
            let mut expirations = [0u8; 8];
            let read = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut expirations)?));
            if read.is_ok() {
                return;
            }
        }
    }

    #[inline]
    fn arm(&self, wait: Nanos) -> bool {
        // Zero would disarm the timer.
        let wait = wait.max(1);
        let it_value = Timespec {
            tv_sec: (wait / 1_000_000_000) as i64,
            tv_nsec: (wait % 1_000_000_000) as _,
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = Itimerspec { it_interval, it_value };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &spec).is_ok()
    }
}
