//! Resources that a run takes from the machine: processors, memory and storage, of the machine as a whole,
//! of this process and of the servers. The verdict needs them (it asks if the client was the limit, and if
//! another virtual machine took processor time), and so do those who pay for the servers.

mod nursery;
mod server;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::busy::Busy;
use super::clock::{Nanos, now};
use super::neighbours;
use super::procfs::{MachineTimes, NotSampled, ProcFile, ProcessCounters, ProcessFiles, ticks};
use nursery::Nursery;
use server::Server;

/// Time between two samples, as long as there are few.
const EVERY: Duration = Duration::from_secs(1);
/// Highest number of samples kept; at this number each two become one, and samples are taken half as
/// often.
const SAMPLES_KEPT: usize = 4096;

/// Returns processor time (in the program, in the kernel) and context switches of this process, exact
/// where /proc counts in ticks.
fn own_use() -> (Duration, Duration, u64) {
    // SAFETY: a rusage of zeros is a valid value.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live rusage, which the call fills.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut used) };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    (time(used.ru_utime), time(used.ru_stime), (used.ru_nvcsw + used.ru_nivcsw) as u64)
}

/// Counters at one moment. They only grow (memory excepted), so any two samples tell what
/// happened between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample, ns on the clock of [`super::now`].
    pub at: Nanos,
    /// Times of all processors of the machine.
    pub machine: MachineTimes,
    /// Counters of this process. Its `rss` is the highest seen since the sample before.
    pub own: ProcessCounters,
    /// Counters of each server, in the order given, followed by those that were added meanwhile; `None`
    /// while a server is not there. One that was started again goes on from the counts of its process
    /// before. `rss` is as for `own`.
    pub servers: Vec<Option<ProcessCounters>>,
}

/// Resources that a process used over a span.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// Number of processors kept busy: 1.5 is one and a half, whatever the machine has.
    pub processors: f64,
    /// Processor time in the program.
    pub user: Duration,
    /// Processor time in the kernel on its behalf.
    pub system: Duration,
    /// Most memory held at a sample, bytes.
    pub peak_rss: u64,
    /// Bytes read from storage, where that may be asked.
    pub read_bytes: Option<u64>,
    /// Bytes sent to storage, where that may be asked.
    pub written_bytes: Option<u64>,
    /// Context switches; known of this process only.
    pub context_switches: Option<u64>,
}

impl ProcessUse {
    fn between(first: &ProcessCounters, last: &ProcessCounters, peak: u64, span: f64) -> Self {
        let user = last.user.saturating_sub(first.user);
        let system = last.system.saturating_sub(first.system);
        let grown = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
        ProcessUse {
            processors: share((user + system).as_secs_f64(), span),
            user,
            system,
            peak_rss: peak,
            read_bytes: grown(first.read_bytes, last.read_bytes),
            written_bytes: grown(first.written_bytes, last.written_bytes),
            context_switches: grown(first.context_switches, last.context_switches),
        }
    }
}

/// Resources that a server process used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// Number of the process; of the last one, if it was started again.
    pub pid: u32,
    /// Use from the first sample to the last that found it; `None` if fewer than two did.
    pub used: Option<ProcessUse>,
    /// True if it was still there at the last sample.
    pub alive: bool,
    /// Share of the time that its busiest thread worked; `None` if the process was not the same at both
    /// ends.
    pub busiest_thread: Option<f64>,
    /// Share of the time that a thread of it waited for a processor, of the thread that waited longest;
    /// `None` as for `busiest_thread`.
    #[serde(default)]
    pub longest_wait: Option<f64>,
}

/// A process that a server started meanwhile: Redis writes snapshots and rewrites its file in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offspring {
    /// Index of the server that started it.
    pub server: usize,
    /// Name that it gives itself.
    pub name: String,
    /// Time at which it was first seen, ns on the clock of [`super::now`].
    pub from: Nanos,
    /// Time at which it was last seen, ns.
    pub to: Nanos,
    /// Processor time that it had had in all by some moments (ns), in order, about a second apart.
    pub work: Vec<(Nanos, Duration)>,
}

impl Offspring {
    /// Returns the processor time that it had between two moments, as if it had worked evenly between two
    /// looks.
    #[must_use]
    pub fn worked(&self, from: Nanos, to: Nanos) -> Duration {
        let had = self.work.windows(2).map(|pair| {
            let [(begin, before), (end, after)] = [pair[0], pair[1]];
            let within = end.min(to).saturating_sub(begin.max(from)) as f64;
            let share = within / end.saturating_sub(begin).max(1) as f64;
            after.saturating_sub(before).mul_f64(share)
        });
        had.sum()
    }
}

/// Resources that a phase took from the machine. Shares are of all processors' time, 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceSummary {
    /// Time from the first sample to the last.
    pub span: Duration,
    /// Share spent working, for any program.
    pub busy: f64,
    /// Share that was wanted here and given to other virtual machines (`st` in top).
    pub steal: f64,
    /// Share idle while waiting for storage.
    pub iowait: f64,
    /// Use of this process.
    pub own: ProcessUse,
    /// Use of the servers, in the order given, followed by those that were added meanwhile.
    pub servers: Vec<ServerUse>,
    /// Share of its speed that the fullest network link carried in one direction; `None` where no link
    /// tells its speed.
    pub link: Option<f64>,
    /// Share of all processors' time that other programs took; `None` where that cannot be told.
    pub others: Option<f64>,
}

impl ResourceSummary {
    /// Returns the clock ticks that went by on each processor. The shares of the processors' time are
    /// counted in them, each share one tick wrong at worst.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        (self.span.as_nanos() / ticks(1).as_nanos().max(1)) as u64
    }
}

/// Samples of a phase, and their summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Resources {
    /// Samples in order of time, at most 4,096.
    pub samples: Vec<Sample>,
    /// Summary from the first sample to the last.
    pub summary: ResourceSummary,
    /// Processes that the servers started and that were seen at their work.
    pub offspring: Vec<Offspring>,
}

/// Message to the sampling thread.
#[derive(Debug)]
enum Word {
    /// New list of the servers' process numbers.
    Follow(Vec<u32>),
    /// End of sampling.
    Stop,
}

/// Result of the sampling thread.
#[derive(Debug)]
struct Kept {
    samples: Vec<Sample>,
    offspring: Vec<Offspring>,
    /// Process numbers of the servers at the end.
    servers: Vec<u32>,
}

/// Handle that tells a [`Sampler`] which processes the servers are now.
#[derive(Clone, Debug)]
pub struct Follow(Sender<Word>);

impl Follow {
    /// Makes the process of each number in the list the server at that place: another one than before,
    /// where it was started again. Numbers behind the last place are new servers.
    pub fn now(&self, servers: &[u32]) {
        // A sampler that is over follows nobody.
        let _ = self.0.send(Word::Follow(servers.to_vec()));
    }
}

/// Thread that samples this machine once a second, from [`Sampler::start`] to [`Sampler::stop`]. Its own
/// cost is a few file reads a second.
#[derive(Debug)]
pub struct Sampler {
    words: Sender<Word>,
    thread: JoinHandle<Kept>,
    servers: Vec<u32>,
    began: Busy,
    interrupts: Duration,
}

impl Sampler {
    /// Takes the first sample, and starts the thread that takes the others. `servers` are process numbers,
    /// of any process on this machine; one that is not there is reported as such, not an error.
    ///
    /// # Errors
    /// [`NotSampled`] where the machine's own counters cannot be read.
    pub fn start(servers: &[u32]) -> Result<Sampler, NotSampled> {
        Sampler::start_publishing(servers, Box::new(|_, _| {}))
    }

    /// Does the same as [`Sampler::start`]; besides, `sink` gets each sample with the one before it.
    ///
    /// # Errors
    /// Those of [`Sampler::start`].
    pub fn start_publishing(servers: &[u32], sink: SampleSink) -> Result<Sampler, NotSampled> {
        Sampler::start_every(EVERY, SAMPLES_KEPT, servers, sink)
    }

    fn start_every(
        every: Duration,
        keep: usize,
        servers: &[u32],
        sink: SampleSink,
    ) -> Result<Sampler, NotSampled> {
        let (began, interrupts) = (Busy::look(servers), neighbours::interrupts());
        let nursery = Nursery::new(servers);
        let mut sources = Sources::open(servers)?;
        let last = sources.sample()?;
        let samples = Thinned::new(keep, last.clone());
        let (words, received) = channel();
        let sampling = Sampling { every, sources, nursery, samples, last, sink };
        let thread = std::thread::spawn(move || sampling.go_on(&received));
        Ok(Sampler { words, thread, servers: servers.to_vec(), began, interrupts })
    }

    /// Returns a handle for the caller that knows when servers are started again, or added.
    #[must_use]
    pub fn follow(&self) -> Follow {
        Follow(self.words.clone())
    }

    /// Takes the last sample and sums up.
    ///
    /// # Panics
    /// If the sampling thread has panicked.
    #[must_use]
    pub fn stop(self) -> Resources {
        // An error means that the thread is over already; joining tells why.
        let _ = self.words.send(Word::Stop);
        let Kept { samples, offspring, servers } =
            self.thread.join().expect("the sampling thread does not panic");
        let mut summary = summarize(&samples, &servers);
        let ended = Busy::look(&servers);
        summary.link = self.began.fullest_link(&ended, summary.span);
        for (index, server) in summary.servers.iter_mut().enumerate() {
            // The threads of another process are not those that were looked at.
            if self.servers.get(index) == Some(&server.pid) {
                server.busiest_thread = self.began.busiest_thread(&ended, index, summary.span);
                server.longest_wait = self.began.longest_wait(&ended, index, summary.span);
            }
        }
        let interrupts = neighbours::interrupts().saturating_sub(self.interrupts);
        let mut found = Resources { samples, summary, offspring };
        found.summary.others = found.others(interrupts);
        found
    }
}

impl Resources {
    /// Returns the share of all processors' time that went to other programs. `None` where servers had
    /// started processes, whose time is nowhere counted.
    fn others(&self, interrupts: Duration) -> Option<f64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let time = |used: &ProcessUse| used.user + used.system;
        let servers = self.summary.servers.iter().filter_map(|server| server.used.as_ref());
        let ours = time(&self.summary.own) + servers.map(time).sum::<Duration>() + interrupts;
        let told = self.offspring.is_empty();
        told.then(|| neighbours::others(&last.machine.since(&first.machine), ours)).flatten()
    }
}

/// Callback that gets the sample before and each new sample, when it is taken.
pub type SampleSink = Box<dyn FnMut(&Sample, &Sample) + Send>;

/// State of the sampling thread.
struct Sampling {
    every: Duration,
    sources: Sources,
    nursery: Nursery,
    samples: Thinned,
    /// Newest sample.
    last: Sample,
    sink: SampleSink,
}

impl Sampling {
    fn go_on(mut self, words: &Receiver<Word>) -> Kept {
        loop {
            let due = now() + (self.every * self.samples.stride).as_nanos() as u64;
            let over = loop {
                self.nursery.look();
                let left = Duration::from_nanos(due.saturating_sub(now()));
                match words.recv_timeout(left.min(nursery::EVERY)) {
                    Ok(Word::Follow(servers)) => self.follow(&servers),
                    Err(RecvTimeoutError::Timeout) if now() < due => {}
                    Err(RecvTimeoutError::Timeout) => break false,
                    Ok(Word::Stop) | Err(RecvTimeoutError::Disconnected) => break true,
                }
            };
            if let Ok(sample) = self.sources.sample() {
                (self.sink)(&self.last, &sample);
                self.last = sample.clone();
                self.samples.push(sample);
            }
            if over {
                let servers = self.sources.servers.iter().map(Server::pid).collect();
                let (samples, offspring) = (self.samples.kept, self.nursery.seen());
                return Kept { samples, offspring, servers };
            }
        }
    }

    fn follow(&mut self, pids: &[u32]) {
        let servers = &mut self.sources.servers;
        for (index, &pid) in pids.iter().enumerate() {
            match servers.get_mut(index) {
                Some(server) if server.pid() == pid => continue,
                Some(server) => server.started_again(pid),
                None => servers.push(Server::open(pid)),
            }
            self.nursery.watch(index, pid);
        }
    }
}

/// Open files from which samples are read.
#[derive(Debug)]
struct Sources {
    machine: ProcFile,
    own: ProcessFiles,
    servers: Vec<Server>,
}

impl Sources {
    fn open(servers: &[u32]) -> Result<Sources, NotSampled> {
        Ok(Sources {
            machine: ProcFile::open("/proc/stat")?,
            own: ProcessFiles::open("self")?,
            servers: servers.iter().map(|pid| Server::open(*pid)).collect(),
        })
    }

    fn sample(&mut self) -> Result<Sample, NotSampled> {
        let gone = |path: &str| NotSampled::Unreadable {
            path: path.into(),
            source: std::io::ErrorKind::InvalidData.into(),
        };
        let machine = self.machine.read().and_then(MachineTimes::parse);
        let machine = machine.ok_or_else(|| gone("/proc/stat"))?;
        let mut own = self.own.read().ok_or_else(|| gone("/proc/self/stat"))?;
        let (user, system, switches) = own_use();
        (own.user, own.system, own.context_switches) = (user, system, Some(switches));
        let servers = self.servers.iter_mut().map(Server::read).collect();
        Ok(Sample { at: now(), machine, own, servers })
    }
}

/// Samples in bounded memory: when it is full, every second one is dropped, and the highest memory seen is
/// kept in the one that stays. The first sample is never dropped, nor is the last.
#[derive(Debug)]
struct Thinned {
    kept: Vec<Sample>,
    keep: usize,
    /// Factor by which samples are rarer now than at the start.
    stride: u32,
}

impl Thinned {
    fn new(keep: usize, first: Sample) -> Thinned {
        let mut kept = Vec::with_capacity(keep.max(3));
        kept.push(first);
        Thinned { kept, keep: keep.max(3), stride: 1 }
    }

    fn push(&mut self, sample: Sample) {
        if self.kept.len() == self.keep {
            self.halve();
        }
        self.kept.push(sample);
    }

    fn halve(&mut self) {
        let mut to = 1;
        let mut from = 1;
        while from < self.kept.len() {
            if from + 1 < self.kept.len() {
                let (head, tail) = self.kept.split_at_mut(from + 1);
                tail[0].take_peaks(&head[from]);
                self.kept.swap(to, from + 1);
            } else {
                self.kept.swap(to, from);
            }
            (to, from) = (to + 1, from + 2);
        }
        self.kept.truncate(to);
        self.stride = self.stride.saturating_mul(2);
    }
}

impl Sample {
    /// Takes over the memory peaks of the sample before, which is about to be dropped.
    fn take_peaks(&mut self, dropped: &Sample) {
        self.own.rss = self.own.rss.max(dropped.own.rss);
        for (mine, theirs) in self.servers.iter_mut().zip(&dropped.servers) {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                mine.rss = mine.rss.max(theirs.rss);
            }
        }
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn summarize(samples: &[Sample], servers: &[u32]) -> ResourceSummary {
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    let span = Duration::from_nanos(last.at - first.at);
    let machine = last.machine.since(&first.machine);
    let total = machine.total().as_secs_f64();
    let of_all = |part: Duration| share(part.as_secs_f64(), total);
    let peak = samples.iter().map(|s| s.own.rss).max().unwrap_or_default();
    ResourceSummary {
        span,
        busy: of_all(machine.user + machine.system),
        steal: of_all(machine.steal),
        iowait: of_all(machine.iowait),
        own: ProcessUse::between(&first.own, &last.own, peak, span.as_secs_f64()),
        servers: (servers.iter().enumerate())
            .map(|(index, &pid)| server_use(samples, index, pid))
            .collect(),
        link: None,
        others: None,
    }
}

fn server_use(samples: &[Sample], index: usize, pid: u32) -> ServerUse {
    let seen = || samples.iter().filter_map(|s| Some((s.at, s.servers.get(index)?.as_ref()?)));
    let used = seen().next().zip(seen().next_back()).filter(|((from, _), (to, _))| from < to);
    let used = used.map(|((from, first), (to, last))| {
        let peak = seen().map(|(_, counters)| counters.rss).max().unwrap_or_default();
        ProcessUse::between(first, last, peak, Duration::from_nanos(to - from).as_secs_f64())
    });
    let alive = samples.last().is_some_and(|s| matches!(s.servers.get(index), Some(Some(_))));
    ServerUse { pid, used, alive, busiest_thread: None, longest_wait: None }
}

#[cfg(test)]
mod tests;
