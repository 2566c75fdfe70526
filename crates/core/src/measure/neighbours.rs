//! What other programs on this machine took: from one thread, which waited for a processor, and of all
//! processors. A client that is starved looks idle by its own processor time alone.

use std::fs::read_to_string;
use std::time::Duration;

use super::procfs::{ProcFile, ticks};
use super::resources::{ProcessUse, Resources, thread_cpu};

/// What the calling thread had of its processors by some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// It worked.
    pub cpu: Duration,
    /// It could have worked, and another thread or a quota of the control group held it up.
    pub waited: Duration,
}

impl ThreadTime {
    /// Since the thread began.
    #[must_use]
    pub fn now() -> ThreadTime {
        let text = read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        ThreadTime { cpu: thread_cpu(), waited: waited(&text).unwrap_or_default() }
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: ThreadTime) -> ThreadTime {
        ThreadTime {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

/// How long one thread has waited for a processor, read often.
#[derive(Debug)]
pub(super) struct Waiting(Option<ProcFile>);

impl Waiting {
    /// Of the calling thread.
    pub(super) fn of_this_thread() -> Waiting {
        Waiting(ProcFile::open("/proc/thread-self/schedstat").ok())
    }

    /// Since the thread began; zero where the system does not tell.
    pub(super) fn now(&mut self) -> Duration {
        self.0.as_mut().and_then(|file| waited(file.read()?)).unwrap_or_default()
    }
}

/// The second figure of Linux's schedstat, ns (Documentation/scheduler/sched-stats.rst).
fn waited(schedstat: &str) -> Option<Duration> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Time of all processors that went to interrupts and what they left to do, and to no process.
pub(super) fn interrupts() -> Duration {
    let text = read_to_string("/proc/stat").unwrap_or_default();
    of_interrupts(&text).unwrap_or_default()
}

fn of_interrupts(stat: &str) -> Option<Duration> {
    let mut fields = stat.lines().next()?.split_ascii_whitespace().skip(6);
    let mut next = || fields.next()?.parse().ok().map(ticks);
    Some(next()? + next()?)
}

/// Share of all processors' time that went neither to this process, nor to the servers, nor to
/// `interrupts`. `None` where servers had processes of their own, whose time is nowhere counted.
pub(super) fn others(found: &Resources, interrupts: Duration) -> Option<f64> {
    let (first, last) = (found.samples.first()?, found.samples.last()?);
    let machine = last.machine.since(&first.machine);
    let total = machine.total().as_secs_f64();
    let time = |used: &ProcessUse| (used.user + used.system).as_secs_f64();
    let servers: f64 = found.summary.servers.iter().filter_map(|s| s.used.as_ref()).map(time).sum();
    let ours = time(&found.summary.own) + servers + interrupts.as_secs_f64();
    let busy = (machine.user + machine.system).as_secs_f64();
    (total > 0.0 && found.offspring.is_empty()).then(|| ((busy - ours) / total).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::super::procfs::{MachineTimes, ProcessCounters};
    use super::super::resources::{ResourceSummary, Sample};
    use super::*;

    #[test]
    fn figures_of_the_kernel_are_read() {
        assert_eq!(waited("100 2500 7\n"), Some(Duration::from_nanos(2_500)));
        assert_eq!(waited(""), None);
        let ticked = of_interrupts("cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1").unwrap();
        assert_eq!(ticked, ticks(6) + ticks(7));
        assert!(ThreadTime::now().cpu > Duration::ZERO);
    }

    #[test]
    fn a_thread_that_shares_its_processor_waits_for_it() {
        let cpu = *super::super::machine::allowed_cpus().last().unwrap();
        let work = move || {
            super::super::machine::pin_current_thread(cpu).unwrap();
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
    fn what_is_nobodys_of_ours_is_the_others() {
        let seconds = Duration::from_secs;
        let counters = |user| ProcessCounters { user, ..ProcessCounters::default() };
        let sample = |at, user, idle, own| Sample {
            at,
            machine: MachineTimes { user, idle, ..MachineTimes::default() },
            own: counters(own),
            servers: vec![],
        };
        let zero = Duration::ZERO;
        let samples = vec![
            sample(0, zero, zero, zero),
            sample(10_000_000_000, seconds(12), seconds(8), seconds(5)),
        ];
        let own = ProcessUse {
            processors: 0.5,
            user: seconds(5),
            system: zero,
            peak_rss: 0,
            read_bytes: None,
            written_bytes: None,
            context_switches: None,
        };
        let (span, servers) = (seconds(10), vec![]);
        let (busy, steal, iowait, link, others) = (0.6, 0.0, 0.0, None, None);
        let summary = ResourceSummary { span, busy, steal, iowait, own, servers, link, others };
        let found = Resources { samples, summary, offspring: vec![] };
        assert_eq!(super::others(&found, seconds(1)), Some(0.3));
        assert_eq!(super::others(&found, seconds(100)), Some(0.0));
    }
}
