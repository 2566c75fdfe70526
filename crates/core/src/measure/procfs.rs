//! Counters that Linux keeps of the machine and of each process, read without allocation: files
//! stay open and are read again into one buffer. Formats: proc(5).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

/// Number of bytes of a file that are read: all that is wanted stands within them.
const HEAD: usize = 4096;

/// Error of a machine whose resources cannot be sampled.
#[derive(Debug, thiserror::Error)]
pub enum NotSampled {
    /// Counters are read from /proc, which only Linux has.
    #[error("processor time and memory are sampled on Linux only")]
    Platform,
    /// A file under /proc cannot be read.
    #[error("cannot read {}: {source}; mount /proc to have resources sampled", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Time of all processors together since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineTimes {
    /// Time in programs, niced ones and guests included.
    pub user: Duration,
    /// Time in the kernel, interrupts included.
    pub system: Duration,
    /// Time with nothing to do.
    pub idle: Duration,
    /// Time with nothing to do but wait for a disk.
    pub iowait: Duration,
    /// Time that was wanted here and given to another virtual machine.
    pub steal: Duration,
    /// Number of processors.
    pub processors: u32,
}

impl MachineTimes {
    /// Returns the time of all processors, whatever they did.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.user + self.system + self.idle + self.iowait + self.steal
    }

    /// Returns how many processors were kept busy on average: 1.5 is one and a half, and never more than there are. All
    /// times are counted in ticks, so that over less than a few of them their sum may be more than the clock's.
    #[must_use]
    pub fn busy(&self) -> f64 {
        let total = self.total().as_secs_f64();
        if total <= 0.0 {
            return 0.0;
        }
        (self.user + self.system).as_secs_f64() / total * f64::from(self.processors)
    }

    /// Returns what was added since `earlier`; zero where a counter went back, as idle time may.
    #[must_use]
    pub fn since(&self, earlier: &MachineTimes) -> MachineTimes {
        MachineTimes {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            idle: self.idle.saturating_sub(earlier.idle),
            iowait: self.iowait.saturating_sub(earlier.iowait),
            steal: self.steal.saturating_sub(earlier.steal),
            processors: self.processors,
        }
    }

    /// Parses /proc/stat: the first line is of all processors, those below of one each.
    pub(super) fn parse(text: &str) -> Option<MachineTimes> {
        let of_one = text.lines().skip(1).take_while(|line| line.starts_with("cpu"));
        let processors = of_one.count() as u32;
        let mut fields = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        let mut next = || fields.next()?.parse().ok().map(ticks);
        let (user, nice, system) = (next()?, next()?, next()?);
        let (idle, iowait, irq, softirq) = (next()?, next()?, next()?, next()?);
        let steal = next().unwrap_or_default();
        Some(MachineTimes {
            user: user + nice,
            system: system + irq + softirq,
            idle,
            iowait,
            steal,
            processors,
        })
    }
}

/// Resources that a process used since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCounters {
    /// Processor time in the program.
    pub user: Duration,
    /// Processor time in the kernel on its behalf.
    pub system: Duration,
    /// Memory that it holds now, bytes.
    pub rss: u64,
    /// Bytes that it had read from storage; `None` where that may not be asked.
    pub read_bytes: Option<u64>,
    /// Bytes that it sent to storage; `None` where that may not be asked.
    pub written_bytes: Option<u64>,
    /// Context switches of all its threads; known of this process only.
    pub context_switches: Option<u64>,
    /// Bytes received over all its interfaces but loopback, if its network namespace is its own.
    pub received_bytes: Option<u64>,
    /// Bytes sent over all its interfaces but loopback, if its network namespace is its own.
    pub sent_bytes: Option<u64>,
}

impl ProcessCounters {
    /// Returns these counts with those of a former process added. Memory and network bytes stay those of this one:
    /// network bytes are counted for a network namespace, which goes on when its process does not.
    pub(super) fn on_top_of(&self, former: &ProcessCounters) -> ProcessCounters {
        let sum = |mine: Option<u64>, its: Option<u64>| Some(mine? + its.unwrap_or_default());
        ProcessCounters {
            user: self.user + former.user,
            system: self.system + former.system,
            read_bytes: sum(self.read_bytes, former.read_bytes),
            written_bytes: sum(self.written_bytes, former.written_bytes),
            context_switches: sum(self.context_switches, former.context_switches),
            ..*self
        }
    }

    /// Parses /proc/PID/stat; the name in parentheses may itself hold spaces and parentheses. `None` for one that has
    /// ended and that nobody has waited for yet.
    pub(super) fn parse(stat: &str) -> Option<ProcessCounters> {
        let after_name = &stat[stat.rfind(')')? + 1..];
        let mut fields = after_name.split_ascii_whitespace();
        // The first field after the name is number 3.
        let state = fields.next()?;
        if matches!(state, "Z" | "X") {
            return None;
        }
        let user = ticks(fields.nth(14 - 4)?.parse().ok()?);
        let system = ticks(fields.next()?.parse().ok()?);
        let pages: u64 = fields.nth(24 - 16)?.parse().ok()?;
        Some(ProcessCounters { user, system, rss: pages * page_bytes(), ..Default::default() })
    }
}

/// Reads (`read_bytes`, `write_bytes`) from /proc/PID/io.
pub(super) fn parse_io(text: &str) -> Option<(u64, u64)> {
    let find = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok());
    Some((find("read_bytes:")?, find("write_bytes:")?))
}

/// Reads (received, sent) bytes of all interfaces but loopback from /proc/PID/net/dev.
pub(super) fn parse_network(text: &str) -> Option<(u64, u64)> {
    let lines = text.lines().filter(|line| line.contains(':')).count();
    let links = parse_network_of(text);
    let others = links.iter().filter(|(name, ..)| name != "lo");
    let sum = others.fold((0, 0), |sum, (_, received, sent)| (sum.0 + received, sum.1 + sent));
    (links.len() == lines).then_some(sum)
}

/// Reads each interface of /proc/PID/net/dev: name, bytes received and sent.
pub(super) fn parse_network_of(text: &str) -> Vec<(String, u64, u64)> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let link = |(name, counts): (&str, &str)| {
        let mut counts = counts.split_ascii_whitespace();
        let received = counts.next()?.parse().ok()?;
        // The ninth count is that of bytes sent.
        Some((name.trim().to_owned(), received, counts.nth(7)?.parse().ok()?))
    };
    lines.filter_map(link).collect()
}

/// Returns true if the process has another network namespace than kvdyno, so that its interfaces are its own.
fn has_own_network(who: &str) -> bool {
    let network = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/net")).ok();
    network(who).zip(network("self")).is_some_and(|(its, ours)| its != ours)
}

/// A file under /proc, kept open. A process that ended answers with an error from then on, even
/// when another one has got its number.
#[derive(Debug)]
pub(super) struct ProcFile {
    file: File,
    buffer: Box<[u8; HEAD]>,
}

impl ProcFile {
    pub(super) fn open(path: impl Into<PathBuf>) -> Result<ProcFile, NotSampled> {
        if !cfg!(target_os = "linux") {
            return Err(NotSampled::Platform);
        }
        let path = path.into();
        match File::open(&path) {
            Ok(file) => Ok(ProcFile { file, buffer: Box::new([0; HEAD]) }),
            Err(source) => Err(NotSampled::Unreadable { path, source }),
        }
    }

    /// Reads the first bytes of the file as it is now; `None` if it can no longer be read.
    pub(super) fn read(&mut self) -> Option<&str> {
        let length = self.file.read_at(&mut self.buffer[..], 0).ok().filter(|&n| n > 0)?;
        let valid = match std::str::from_utf8(&self.buffer[..length]) {
            Ok(_) => length,
            Err(cut) => cut.valid_up_to(),
        };
        std::str::from_utf8(&self.buffer[..valid]).ok()
    }
}

/// Open files that tell of one process.
#[derive(Debug)]
pub(super) struct ProcessFiles {
    stat: ProcFile,
    io: Option<ProcFile>,
    network: Option<ProcFile>,
}

impl ProcessFiles {
    /// Opens the files of a process. `who` is its number, or `self`.
    pub(super) fn open(who: &str) -> Result<ProcessFiles, NotSampled> {
        let stat = ProcFile::open(format!("/proc/{who}/stat"))?;
        let open = |name: &str| ProcFile::open(format!("/proc/{who}/{name}")).ok();
        let network = if has_own_network(who) { open("net/dev") } else { None };
        Ok(ProcessFiles { stat, io: open("io"), network })
    }

    /// Reads the counters; `None` once the process has ended.
    pub(super) fn read(&mut self) -> Option<ProcessCounters> {
        let mut counters = ProcessCounters::parse(self.stat.read()?)?;
        let io = self.io.as_mut().and_then(|file| parse_io(file.read()?));
        counters.read_bytes = io.map(|(read, _)| read);
        counters.written_bytes = io.map(|(_, written)| written);
        let network = self.network.as_mut().and_then(|file| parse_network(file.read()?));
        counters.received_bytes = network.map(|(received, _)| received);
        counters.sent_bytes = network.map(|(_, sent)| sent);
        Some(counters)
    }
}

/// Converts clock ticks, the unit of processor times in /proc, to time.
pub(super) fn ticks(count: u64) -> Duration {
    let a_second = rustix::param::clock_ticks_per_second();
    Duration::from_nanos(count.saturating_mul(1_000_000_000 / a_second.max(1)))
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hundredths(n: u64) -> Duration {
        ticks(n)
    }

    #[test]
    fn machine_times_come_from_the_first_line() {
        let text = "cpu  10 5 20 300 40 3 7 50 2 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let times = MachineTimes::parse(text).unwrap();
        assert_eq!(times.user, hundredths(15));
        assert_eq!(times.system, hundredths(30));
        assert_eq!(times.idle, hundredths(300));
        assert_eq!(times.iowait, hundredths(40));
        assert_eq!(times.steal, hundredths(50));
        assert_eq!(times.total(), hundredths(435));
        assert_eq!(times.processors, 1);
        assert_eq!(MachineTimes::parse("cpu0 1 2 3"), None);
        assert_eq!(MachineTimes::parse("cpu  1 2 x"), None);
    }

    /// Over 30 ms of two processors 11 ticks went by instead of 6: 3.67 processors would have been busy.
    #[test]
    fn no_more_processors_are_busy_than_there_are() {
        let text =
            |user: u64| format!("cpu  {user} 0 0 0 0 0 0 0 0 0\ncpu0 1 1\ncpu1 1 1\nintr 5\n");
        let [before, after] = [100, 111].map(|user| MachineTimes::parse(&text(user)).unwrap());
        assert_eq!(after.since(&before).busy(), 2.0);
        assert_eq!(after.since(&after).busy(), 0.0);
    }

    #[test]
    fn process_times_are_found_behind_any_name() {
        let stat = "42 (odd) name) R 1 1 1 0 -1 4194304 100 0 0 0 17 4 0 0 20 0 1 0 900 1000 25 \
                    18446744073709551615 1 1";
        let counters = ProcessCounters::parse(stat).unwrap();
        assert_eq!(counters.user, hundredths(17));
        assert_eq!(counters.system, hundredths(4));
        assert_eq!(counters.rss, 25 * page_bytes());
        assert_eq!(ProcessCounters::parse(&stat.replace(") R", ") Z")), None, "it has ended");
        assert_eq!(ProcessCounters::parse("42 (cut) R 1 1"), None);
        assert_eq!(ProcessCounters::parse(""), None);
    }

    #[test]
    fn network_bytes_leave_out_loopback() {
        let text = "Inter-|   Receive                            |  Transmit\n \
                    face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n\
                    \x20   lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n\
                    \x20 veth0: 100 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n\
                    \x20 veth1:7 1 0 0 0 0 0 0 3 1 0 0 0 0 0 0\n";
        assert_eq!(parse_network(text), Some((107, 2003)));
        assert_eq!(parse_network("a: x"), None);
        assert!(!has_own_network("self"));
    }

    #[test]
    fn storage_bytes_leave_out_the_cancelled_ones() {
        let io = "rchar: 9\nwchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n\
                  cancelled_write_bytes: 77\n";
        assert_eq!(parse_io(io), Some((4096, 8192)));
        assert_eq!(parse_io("rchar: 9\n"), None);
    }
}
