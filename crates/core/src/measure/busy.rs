//! Busyness of single threads of servers, and of single links, between two moments.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use super::procfs::{ProcessCounters, parse_network_of};
use super::thread_time::{ThreadTime, waited};

/// Counters of threads and links at one moment.
#[derive(Debug, Default)]
pub(super) struct Busy {
    /// Processor time and waits of each thread of each server.
    threads: Vec<BTreeMap<u32, ThreadTime>>,
    /// Bytes received and sent by each link whose speed is known, with that speed in bytes a second.
    links: BTreeMap<String, (u64, u64, f64)>,
}

impl Busy {
    pub(super) fn look(servers: &[u32]) -> Busy {
        Busy { threads: servers.iter().map(|pid| threads_of(*pid)).collect(), links: links() }
    }

    /// Returns the share of `span` that the busiest thread of a server worked from this moment to `then`; `None` if the
    /// server has no threads at `then`.
    pub(super) fn busiest_thread(&self, then: &Busy, server: usize, span: Duration) -> Option<f64> {
        self.most(then, server, span, |time| time.cpu)
    }

    /// Returns the share of `span` that a thread of a server waited for a processor from this moment to `then`, of the
    /// thread that waited longest; `None` if the server has no threads at `then`.
    pub(super) fn longest_wait(&self, then: &Busy, server: usize, span: Duration) -> Option<f64> {
        self.most(then, server, span, |time| time.waited)
    }

    fn most(
        &self,
        then: &Busy,
        server: usize,
        span: Duration,
        of: fn(ThreadTime) -> Duration,
    ) -> Option<f64> {
        let (before, after) = (self.threads.get(server)?, then.threads.get(server)?);
        let since = |(thread, time): (&u32, &ThreadTime)| {
            of(time.since(before.get(thread).copied().unwrap_or_default()))
        };
        let most = after.iter().map(since).max()?;
        (!span.is_zero()).then(|| most.as_secs_f64() / span.as_secs_f64())
    }

    /// Returns the share of its speed that the fullest link carried from this moment to `then`, in one direction.
    pub(super) fn fullest_link(&self, then: &Busy, span: Duration) -> Option<f64> {
        let used = |(name, (received, sent, speed)): (&String, &(u64, u64, f64))| {
            let before = self.links.get(name)?;
            let most = received.saturating_sub(before.0).max(sent.saturating_sub(before.1));
            Some(most as f64 / speed / span.as_secs_f64())
        };
        let shares = then.links.iter().filter_map(used).filter(|share| share.is_finite());
        shares.reduce(f64::max)
    }
}

fn threads_of(pid: u32) -> BTreeMap<u32, ThreadTime> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let thread = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let counters = ProcessCounters::parse(&stat)?;
        let schedstat = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
        let waited = waited(&schedstat).unwrap_or_default();
        Some((number, ThreadTime { cpu: counters.user + counters.system, waited }))
    };
    entries.filter_map(thread).collect()
}

fn links() -> BTreeMap<String, (u64, u64, f64)> {
    let text = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let link = |(name, received, sent): (String, u64, u64)| {
        let speed = fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok()?;
        // Mbit/s; −1 where there is no such thing, as on loopback.
        let speed: f64 = speed.trim().parse().ok().filter(|speed| *speed > 0.0)?;
        Some((name, (received, sent, speed * 1e6 / 8.0)))
    };
    parse_network_of(&text).into_iter().filter_map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::super::thread_time::thread_cpu;
    use super::*;

    #[test]
    fn the_busiest_thread_of_a_process_is_found() {
        let busy = std::thread::Builder::new().spawn(|| {
            let begin = thread_cpu();
            while thread_cpu() - begin < Duration::from_millis(200) {
                std::hint::spin_loop();
            }
        });
        let pid = std::process::id();
        let before = Busy::look(&[pid]);
        busy.unwrap().join().unwrap();
        // The thread is gone with its count: what is left is that of the others.
        let after = Busy::look(&[pid]);
        let share = before.busiest_thread(&after, 0, Duration::from_secs(1)).unwrap();
        assert!((0.0..100.0).contains(&share), "{share}");
        assert_eq!(before.busiest_thread(&after, 1, Duration::from_secs(1)), None);
        let this = thread_cpu();
        while thread_cpu() - this < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
        let later = Busy::look(&[pid]);
        let share = after.busiest_thread(&later, 0, Duration::from_millis(200)).unwrap();
        assert!(share > 0.5, "{share}");
    }
}
