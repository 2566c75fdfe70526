//! Processor time of threads, and the time that they waited for a processor: by its processor time alone a
//! client that is starved looks idle.

use std::fs::read_to_string;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::procfs::ProcFile;

/// Returns the processor time of the calling thread since it started, to the nanosecond.
#[must_use]
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Processor time and waits of a thread by some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Time that it worked.
    pub cpu: Duration,
    /// Time that it could have worked, but another thread or a quota of the control group held it up.
    pub waited: Duration,
}

impl ThreadTime {
    /// Returns the times of the calling thread since it began.
    #[must_use]
    pub fn now() -> ThreadTime {
        let text = read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        ThreadTime { cpu: thread_cpu(), waited: waited(&text).unwrap_or_default() }
    }

    /// Returns what was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: ThreadTime) -> ThreadTime {
        ThreadTime {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

/// Reader of the time that one thread has waited for a processor, made to be read often.
#[derive(Debug)]
pub(super) struct Waiting(Option<ProcFile>);

impl Waiting {
    /// Opens the reader for the calling thread.
    pub(super) fn of_this_thread() -> Waiting {
        Waiting(ProcFile::open("/proc/thread-self/schedstat").ok())
    }

    /// Reads the time since the thread began; zero where the system does not tell.
    pub(super) fn now(&mut self) -> Duration {
        self.0.as_mut().and_then(|file| waited(file.read()?)).unwrap_or_default()
    }
}

/// Parses the second figure of Linux's schedstat, in ns: time spent waiting
/// (Documentation/scheduler/sched-stats.rst).
pub(super) fn waited(schedstat: &str) -> Option<Duration> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::super::machine::{allowed_cpus, pin_current_thread};
    use super::*;

    #[test]
    fn the_kernels_figure_is_read() {
        assert_eq!(waited("100 2500 7\n"), Some(Duration::from_nanos(2_500)));
        assert_eq!(waited(""), None);
        assert!(ThreadTime::now().cpu > Duration::ZERO);
    }

    #[test]
    fn a_thread_that_shares_its_processor_waits_for_it() {
        let cpu = *allowed_cpus().last().unwrap();
        let work = move || {
            pin_current_thread(cpu).unwrap();
            let before = ThreadTime::now();
            while ThreadTime::now().since(before).cpu < Duration::from_millis(100) {
                std::hint::spin_loop();
            }
            ThreadTime::now().since(before)
        };
        let both = [(); 2].map(|()| std::thread::spawn(work)).map(|thread| thread.join().unwrap());
        let waited: Duration = both.iter().map(|time| time.waited).sum();
        assert!(waited > Duration::from_millis(20), "{both:?}");
    }

    #[test]
    fn thread_cpu_counts_work_and_not_sleep() {
        let before = thread_cpu();
        std::thread::sleep(Duration::from_millis(30));
        let slept = thread_cpu() - before;
        while thread_cpu() - before < slept + Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        assert!(slept < Duration::from_millis(20), "sleeping took {slept:?} of processor time");
    }
}
