//! Fitness of this machine for measurements. Short probes, all bounded, of what every measurement rests on:
//! the clock, timers, loopback, storage, and the processor time that other virtual machines and processes
//! take.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::bottleneck::LEAST_TICKS;
use super::clock::now;
use super::machine::Machine;
use super::procfs::ticks;
use super::queues::{NetworkDevice, network_devices};
use super::resources::Sampler;
use super::thread_time::thread_cpu;

/// Number of pairs of clock readings that are timed.
const CLOCK_PAIRS: u32 = 200_000;
/// Number of sleeps that are timed, and the time that each asks for.
const SLEEPS: (usize, Duration) = (200, Duration::from_millis(1));
/// Bounds of the loopback probe: requests, and time.
const LOOPBACK: (usize, Duration) = (20_000, Duration::from_secs(1));
/// Bytes sent each way.
const ECHO_BYTES: usize = 64;
/// Bounds of the storage probe: syncs, and time.
const SYNCS: (usize, Duration) = (50, Duration::from_secs(5));
/// Bytes written before each sync.
const SYNC_BYTES: usize = 4096;

/// Median and 99th percentile of what a probe timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Median: half were at most this.
    pub p50: Duration,
    /// 99th percentile: 99 of 100 were at most this.
    pub p99: Duration,
}

impl Spread {
    fn of(mut times: Vec<Duration>) -> Option<Spread> {
        times.sort_unstable();
        let at = |quantile: f64| times[(quantile * (times.len() - 1) as f64).round() as usize];
        (!times.is_empty()).then(|| Spread { p50: at(0.50), p99: at(0.99) })
    }
}

/// Cost of a small TCP request and its answer between two threads of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loopback {
    /// Time from sending to the answer.
    pub round_trip: Spread,
    /// Processor time of the asking thread, for each request.
    pub client_cpu: Duration,
}

/// Limit of the files and connections that this process may have open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFiles {
    /// Limit in force now.
    pub soft: u64,
    /// Limit to which [`raise_open_files`] raises it without privileges.
    pub hard: u64,
}

/// Findings of the probes; `None` where one could not be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probes {
    /// Cost of the two clock readings around an operation, ns.
    pub clock_pair_ns: f64,
    /// Time by which a sleep of 1 ms takes longer than asked.
    pub oversleep: Option<Spread>,
    /// Cost of request and answer over TCP.
    pub loopback: Option<Loopback>,
    /// Time to write 4 KiB and to wait until storage has them (fdatasync).
    pub sync: Option<Spread>,
    /// Limit of open files of this process.
    pub open_files: Option<OpenFiles>,
    /// Share of all processors' time that other virtual machines took during the probes; `None` too if those
    /// took too little time to tell.
    pub steal: Option<f64>,
    /// Share of all processors' time that other processes on this machine took; `None` in the same cases.
    pub other_load: Option<f64>,
}

/// Largest share of all processors' time that other virtual machines may take of an idle machine.
pub const IDLE_STEAL: f64 = 0.02;
/// Largest share of all processors' time that other processes may take of an idle machine: what the verdict
/// `other-load` allows.
pub const IDLE_OTHER_LOAD: f64 = 0.10;

/// Fact that makes this machine less fit to measure on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum FitWarning {
    /// Reading the clock is dear, so that fast operations look slower.
    SlowClock {
        /// Cost of a pair of readings, ns.
        pair_ns: f64,
    },
    /// Sleeping threads wake late.
    LateTimer {
        /// 99th percentile of the lateness.
        p99: Duration,
    },
    /// Loopback is slow.
    SlowLoopback {
        /// Median round trip.
        p50: Duration,
    },
    /// Storage acknowledges writes before it can have kept them.
    FreeSync {
        /// Median time of a sync.
        p50: Duration,
    },
    /// Other virtual machines took processor time.
    Steal {
        /// Share of all processors' time.
        share: f64,
    },
    /// Other processes took processor time.
    OtherLoad {
        /// Share of all processors' time.
        share: f64,
    },
    /// Many connections will not be possible.
    FewOpenFiles {
        /// Limit now.
        soft: u64,
        /// Limit to which it can be raised.
        hard: u64,
    },
    /// A server on this machine would share the only processor with kvdyno.
    OneProcessor,
    /// The control group allows less than the processors that are seen.
    ProcessorQuota {
        /// Processors' worth of time allowed.
        allowed: f64,
    },
    /// One processor handles every packet of a network device.
    OneQueue {
        /// Name of the device.
        device: String,
    },
    /// The processors' frequency follows the load.
    Governor {
        /// Name of the policy.
        governor: String,
    },
    /// kvdyno was built without optimisation.
    DebugBuild,
    /// A probe could not be carried out.
    ProbeFailed {
        /// Name of the probe.
        probe: String,
        /// Message of the system.
        message: String,
    },
}

impl FitWarning {
    /// Returns what was found, in one sentence.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            FitWarning::SlowClock { pair_ns } => {
                format!("reading the clock twice takes {pair_ns:.0} ns; 50 ns is usual")
            }
            FitWarning::LateTimer { p99 } => format!("a sleep ends up to {p99:.1?} late (p99)"),
            FitWarning::SlowLoopback { p50 } => {
                format!("a request over loopback takes {p50:.1?}; 30 µs is usual")
            }
            FitWarning::FreeSync { p50 } => {
                format!("a sync of 4 KiB takes {p50:.1?}: storage does not wait for the medium")
            }
            FitWarning::Steal { share } => {
                let percent = share * 100.0;
                format!("{percent:.1} % of the processors' time went to other virtual machines")
            }
            FitWarning::OtherLoad { share } => {
                let percent = share * 100.0;
                format!("{percent:.1} % of the processors' time went to other processes")
            }
            FitWarning::FewOpenFiles { soft, .. } => {
                format!("this process may open {soft} files and connections only")
            }
            FitWarning::OneProcessor => "there is one processor for kvdyno and server".to_owned(),
            FitWarning::ProcessorQuota { allowed } => {
                format!("the control group allows {allowed} processors' worth of time")
            }
            FitWarning::OneQueue { device } => {
                format!("{device} has one queue: one processor handles every packet that comes in")
            }
            FitWarning::Governor { governor } => {
                format!("the processors' frequency follows the policy {governor}")
            }
            FitWarning::DebugBuild => "kvdyno was built without optimisation".to_owned(),
            FitWarning::ProbeFailed { probe, message } => format!("{probe} probe: {message}"),
        }
    }

    /// Returns what to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            FitWarning::SlowClock { .. } => {
                "see /sys/devices/system/clocksource/clocksource0; tsc is the cheap one"
            }
            FitWarning::LateTimer { .. } => {
                "expect open arrivals to be late by as much; leave a processor free"
            }
            FitWarning::SlowLoopback { .. } => {
                "look for other load, or a container network; compare stores on this machine only"
            }
            FitWarning::FreeSync { .. } => {
                "do not conclude on power loss here; put the data on a disk to measure its cost"
            }
            FitWarning::Steal { .. } => "use a machine of your own, or repeat at a quieter time",
            FitWarning::OtherLoad { .. } => "end them, or wait until they are done",
            FitWarning::FewOpenFiles { .. } => "raise it with ulimit -n before many connections",
            FitWarning::OneProcessor => "run the server on another machine",
            FitWarning::ProcessorQuota { .. } => {
                "raise the container's limit, or use no more --threads than it allows"
            }
            FitWarning::OneQueue { .. } => {
                "expect that processor to be full first; more queues are set with ethtool -L, or \
                 spread packets with receive packet steering (rps_cpus)"
            }
            FitWarning::Governor { .. } => "set it to performance (cpupower frequency-set)",
            FitWarning::DebugBuild => "build with cargo build --release",
            FitWarning::ProbeFailed { .. } => "mend that and check again, or go without",
        }
    }
}

/// Fitness of this machine for measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitness {
    /// Facts of the machine.
    pub machine: Machine,
    /// Findings of the probes.
    pub probes: Probes,
    /// Network devices of the machine.
    pub network: Vec<NetworkDevice>,
    /// Facts that speak against it.
    pub warnings: Vec<FitWarning>,
}

/// Probes this machine, for at most about eight seconds (two where storage is fast). `folder` is
/// where the storage probe writes; nothing is left there.
#[must_use]
pub fn check_machine(folder: &Path) -> Fitness {
    let mut warnings = Vec::new();
    let (sampler, began) = (Sampler::start(&[]), Instant::now());
    let clock_pair_ns = clock_pair();
    let oversleep = Spread::of(oversleeps());
    let loopback = keep("loopback", loopback(), &mut warnings);
    let sync = keep("storage", sync_in(folder), &mut warnings);
    // Where storage is fast the rest takes too little time to tell how much was stolen.
    std::thread::sleep(ticks(LEAST_TICKS + 1).saturating_sub(began.elapsed()));
    let sampled = keep("resources", sampler, &mut warnings).map(|sampler| sampler.stop().summary);
    let sampled = sampled.filter(|used| used.ticks() >= LEAST_TICKS);
    let steal = sampled.as_ref().map(|used| used.steal);
    let other_load = sampled.as_ref().and_then(|used| used.others);
    let open_files = Some(open_files());
    let probes = Probes { clock_pair_ns, oversleep, loopback, sync, open_files, steal, other_load };
    let machine = Machine::describe();
    warnings.extend(judge_probes(&probes));
    warnings.extend(judge_machine(&machine));
    let network = network_devices();
    warnings.extend(judge_network(&network, &machine));
    Fitness { machine, probes, network, warnings }
}

fn keep<T, E: ToString>(
    probe: &str,
    answer: Result<T, E>,
    warnings: &mut Vec<FitWarning>,
) -> Option<T> {
    answer
        .map_err(|error| {
            let (probe, message) = (probe.to_owned(), error.to_string());
            warnings.push(FitWarning::ProbeFailed { probe, message });
        })
        .ok()
}

fn judge_probes(probes: &Probes) -> Vec<FitWarning> {
    let micros = Duration::from_micros;
    let mut warnings = Vec::new();
    let pair_ns = probes.clock_pair_ns;
    warnings.extend((pair_ns > 200.0).then_some(FitWarning::SlowClock { pair_ns }));
    let late = probes.oversleep.filter(|spread| spread.p99 > micros(1_000));
    warnings.extend(late.map(|spread| FitWarning::LateTimer { p99: spread.p99 }));
    let slow = probes.loopback.filter(|found| found.round_trip.p50 > micros(100));
    warnings.extend(slow.map(|found| FitWarning::SlowLoopback { p50: found.round_trip.p50 }));
    let free = probes.sync.filter(|spread| spread.p50 < micros(20));
    warnings.extend(free.map(|spread| FitWarning::FreeSync { p50: spread.p50 }));
    let stolen = probes.steal.filter(|&share| share > IDLE_STEAL);
    warnings.extend(stolen.map(|share| FitWarning::Steal { share }));
    let others = probes.other_load.filter(|&share| share > IDLE_OTHER_LOAD);
    warnings.extend(others.map(|share| FitWarning::OtherLoad { share }));
    let few = probes.open_files.filter(|limit| limit.soft < 4096);
    warnings.extend(few.map(|OpenFiles { soft, hard }| FitWarning::FewOpenFiles { soft, hard }));
    warnings
}

fn judge_machine(machine: &Machine) -> Vec<FitWarning> {
    let mut warnings = Vec::new();
    let one = machine.allowed_processors < 2;
    warnings.extend(one.then_some(FitWarning::OneProcessor));
    let allowed = f64::from(machine.allowed_processors);
    let quota = machine.cgroup_processors.filter(|&quota| quota < allowed);
    warnings.extend(quota.map(|allowed| FitWarning::ProcessorQuota { allowed }));
    let governor = machine.governor.clone().filter(|policy| policy != "performance");
    warnings.extend(governor.map(|governor| FitWarning::Governor { governor }));
    warnings.extend((machine.build == "debug").then_some(FitWarning::DebugBuild));
    warnings
}

/// Warns of network devices with one queue. Machines of fewer than four processors are left out: these
/// hardly leave one processor for interrupts alone.
fn judge_network(network: &[NetworkDevice], machine: &Machine) -> Vec<FitWarning> {
    let single = network.iter().filter(|device| device.receive == 1 && machine.processors >= 4);
    single.map(|device| FitWarning::OneQueue { device: device.name.clone() }).collect()
}

fn clock_pair() -> f64 {
    let started = Instant::now();
    for _ in 0..CLOCK_PAIRS {
        std::hint::black_box((now(), now()));
    }
    started.elapsed().as_nanos() as f64 / f64::from(CLOCK_PAIRS)
}

fn oversleeps() -> Vec<Duration> {
    let (count, asked) = SLEEPS;
    let once = |_| {
        let started = Instant::now();
        std::thread::sleep(asked);
        started.elapsed().saturating_sub(asked)
    };
    (0..count).map(once).collect()
}

fn loopback() -> io::Result<Loopback> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOPBACK.1))?;
    }
    let echo = std::thread::spawn(move || {
        let mut message = [0; ECHO_BYTES];
        while server.read_exact(&mut message).is_ok() && server.write_all(&message).is_ok() {}
    });
    let (started, cpu) = (Instant::now(), thread_cpu());
    let mut times = Vec::with_capacity(LOOPBACK.0);
    let mut message = [7; ECHO_BYTES];
    while times.len() < LOOPBACK.0 && started.elapsed() < LOOPBACK.1 {
        let sent = Instant::now();
        client.write_all(&message)?;
        client.read_exact(&mut message)?;
        times.push(sent.elapsed());
    }
    let client_cpu = (thread_cpu() - cpu) / times.len().max(1) as u32;
    drop(client);
    // The echo ends with the connection; it has nothing to return.
    let _ = echo.join();
    let round_trip = Spread::of(times).ok_or(io::ErrorKind::TimedOut)?;
    Ok(Loopback { round_trip, client_cpu })
}

/// File of the storage probe, removed on drop, however the probe ends.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing more can be done for a file that does not go.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn sync_in(folder: &Path) -> io::Result<Spread> {
    let path = folder.join(format!("kvdyno-sync-probe-{}", std::process::id()));
    let mut file = File::create_new(&path)?;
    let _scratch = Scratch(path);
    let started = Instant::now();
    let mut times = Vec::with_capacity(SYNCS.0);
    while times.len() < SYNCS.0 && started.elapsed() < SYNCS.1 {
        file.write_all(&[times.len() as u8; SYNC_BYTES])?;
        let before = Instant::now();
        file.sync_data()?;
        times.push(before.elapsed());
    }
    Spread::of(times).ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// Lets this process have as many files and connections open as it may without privileges, and returns the
/// new limit.
///
/// # Errors
/// The error of the system.
pub fn raise_open_files() -> io::Result<OpenFiles> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(open_files())
}

fn open_files() -> OpenFiles {
    let limit = getrlimit(Resource::Nofile);
    let endless = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    OpenFiles { soft: endless(limit.current), hard: endless(limit.maximum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit() -> (Probes, Machine) {
        let spread =
            |p50, p99| Spread { p50: Duration::from_micros(p50), p99: Duration::from_micros(p99) };
        let probes = Probes {
            clock_pair_ns: 200.0,
            oversleep: Some(spread(60, 1_000)),
            loopback: Some(Loopback {
                round_trip: spread(100, 200),
                client_cpu: Duration::from_micros(10),
            }),
            sync: Some(spread(20, 30)),
            open_files: Some(OpenFiles { soft: 4096, hard: 4096 }),
            steal: Some(0.02),
            other_load: Some(0.10),
        };
        let machine = Machine {
            processors: 2,
            allowed_processors: 2,
            cgroup_processors: Some(2.0),
            governor: Some("performance".to_owned()),
            build: "release".to_owned(),
            ..Machine::describe()
        };
        (probes, machine)
    }

    #[test]
    fn a_fit_machine_has_no_warning() {
        let (probes, machine) = fit();
        assert_eq!(judge_probes(&probes), []);
        assert_eq!(judge_machine(&machine), []);
    }

    #[test]
    fn each_probe_has_its_warning() {
        let (mut probes, _) = fit();
        let slower = |spread: &mut Spread| {
            spread.p50 += Duration::from_micros(1);
            spread.p99 += Duration::from_micros(1);
        };
        probes.clock_pair_ns = 201.0;
        slower(probes.oversleep.as_mut().unwrap());
        slower(&mut probes.loopback.as_mut().unwrap().round_trip);
        probes.sync.as_mut().unwrap().p50 -= Duration::from_micros(1);
        probes.steal = Some(0.021);
        probes.other_load = Some(0.101);
        probes.open_files = Some(OpenFiles { soft: 1024, hard: 4096 });
        let warnings = judge_probes(&probes);
        assert!(
            matches!(
                warnings[..],
                [
                    FitWarning::SlowClock { .. },
                    FitWarning::LateTimer { .. },
                    FitWarning::SlowLoopback { .. },
                    FitWarning::FreeSync { .. },
                    FitWarning::Steal { .. },
                    FitWarning::OtherLoad { .. },
                    FitWarning::FewOpenFiles { soft: 1024, hard: 4096 },
                ]
            ),
            "{warnings:?}"
        );
        for warning in &warnings {
            assert!(!warning.text().is_empty() && !warning.advice().is_empty());
        }
    }

    #[test]
    fn each_trait_of_a_machine_has_its_warning() {
        let (_, mut machine) = fit();
        machine.allowed_processors = 1;
        machine.cgroup_processors = Some(0.5);
        machine.governor = Some("powersave".to_owned());
        machine.build = "debug".to_owned();
        let warnings = judge_machine(&machine);
        assert_eq!(
            warnings,
            [
                FitWarning::OneProcessor,
                FitWarning::ProcessorQuota { allowed: 0.5 },
                FitWarning::Governor { governor: "powersave".to_owned() },
                FitWarning::DebugBuild,
            ]
        );
    }

    #[test]
    fn a_device_of_one_queue_matters_where_there_are_processors_to_share_it() {
        let (_, mut machine) = fit();
        let (name, processors) = ("eth0".to_owned(), vec![0]);
        let mut device = NetworkDevice { name, receive: 1, transmit: 1, processors };
        assert_eq!(judge_network(std::slice::from_ref(&device), &machine), []);
        machine.processors = 4;
        let warnings = judge_network(std::slice::from_ref(&device), &machine);
        assert_eq!(warnings, [FitWarning::OneQueue { device: "eth0".to_owned() }]);
        assert!(warnings[0].text().starts_with("eth0 has one queue"), "{warnings:?}");
        device.receive = 4;
        assert_eq!(judge_network(&[device], &machine), []);
    }

    #[test]
    fn probes_answer_with_plausible_figures_and_leave_nothing_behind() {
        let folder = std::env::temp_dir().join(format!("kvdyno-probes-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let started = Instant::now();
        let fitness = check_machine(&folder);
        assert!(started.elapsed() < Duration::from_secs(30));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::remove_dir(&folder).unwrap();
        let probes = fitness.probes;
        assert!(probes.clock_pair_ns > 1.0);
        assert!(probes.oversleep.unwrap().p99 >= probes.oversleep.unwrap().p50);
        let loopback = probes.loopback.unwrap();
        assert!(loopback.round_trip.p50 > Duration::from_micros(1));
        assert!(loopback.client_cpu > Duration::from_nanos(500));
        // Stolen time is told of a second and more, and the probes may be done before.
        assert!(
            probes.sync.is_some() && probes.steal.is_none_or(|share| (0.0..=1.0).contains(&share))
        );
        assert!(probes.open_files.unwrap().soft > 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let error = sync_in(Path::new("/nonexistent/kvdyno")).unwrap_err();
        let mut warnings = Vec::new();
        assert_eq!(keep::<(), _>("storage", Err(error), &mut warnings), None);
        assert!(warnings[0].text().starts_with("storage probe: "), "{warnings:?}");
    }

    #[test]
    fn spread_of_nothing_is_none() {
        assert_eq!(Spread::of(vec![]), None);
        let times = (1..=100).map(Duration::from_micros).collect();
        let spread = Spread::of(times).unwrap();
        assert_eq!(spread.p99, Duration::from_micros(99));
    }
}
