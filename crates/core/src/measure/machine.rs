//! Facts of this machine, as each result tells them, and the processors that a thread may run on.

use std::fs::read_to_string;
use std::io;

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use super::cgroup;

/// Cargo profile by which kvdyno was built: `debug`, `release` (quick to build, for those who try it) or
/// `dist` (fully optimised, for packages and benchmarks).
pub const BUILD_PROFILE: &str = env!("KVDYNO_PROFILE");

/// The machine that kvdyno runs on. What the system does not tell is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system, such as `Debian GNU/Linux 12 (bookworm)`.
    pub os: String,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Instruction set, such as `x86_64`.
    pub architecture: String,
    /// Name that the processor gives itself.
    pub cpu_model: Option<String>,
    /// Number of processors on line.
    pub processors: u32,
    /// Number of processors that this process may run on.
    pub allowed_processors: u32,
    /// Processors' worth of time that the control group allows; `None` if it sets no limit.
    pub cgroup_processors: Option<f64>,
    /// Main memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Policy that decides the processors' frequency, such as `performance`.
    pub governor: Option<String>,
    /// Source from which the kernel reads the time, such as `tsc`.
    pub clock_source: Option<String>,
    /// Cargo profile by which kvdyno was built: [`BUILD_PROFILE`].
    pub build: String,
}

impl Machine {
    /// Asks the system for the facts of this machine.
    #[must_use]
    pub fn describe() -> Machine {
        let line = |path: &str| read_to_string(path).ok().map(|text| text.trim().to_owned());
        let os = read_to_string("/etc/os-release").ok();
        let allowed = allowed_cpus().len() as u32;
        Machine {
            os: os.as_deref().and_then(os_name).unwrap_or_else(|| std::env::consts::OS.to_owned()),
            kernel: line("/proc/sys/kernel/osrelease"),
            architecture: std::env::consts::ARCH.to_owned(),
            cpu_model: read_to_string("/proc/cpuinfo").ok().as_deref().and_then(cpu_model),
            processors: processors().unwrap_or(allowed),
            allowed_processors: allowed,
            cgroup_processors: cgroup::processors(),
            memory_bytes: memory(),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            build: BUILD_PROFILE.to_owned(),
        }
    }
}

/// Returns the number of processors on line; `None` if the system does not say.
fn processors() -> Option<u32> {
    // SAFETY: sysconf only looks up a figure of the system.
    u32::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).ok()
}

/// Returns the bytes of main memory; `None` if the system does not say.
#[cfg(target_os = "linux")]
// The width of these fields differs between targets.
#[allow(clippy::unnecessary_cast)]
fn memory() -> Option<u64> {
    let told = rustix::system::sysinfo();
    Some(told.totalram as u64 * u64::from(told.mem_unit))
}

#[cfg(not(target_os = "linux"))]
fn memory() -> Option<u64> {
    None
}

fn os_name(os_release: &str) -> Option<String> {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let (_, name) = cpuinfo.lines().find(|line| line.starts_with("model name"))?.split_once(':')?;
    Some(name.trim().to_owned())
}

/// Returns the numbers of the processors that this thread may run on, in order; never empty.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    let cpus = affinity();
    if cpus.is_empty() {
        (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
    } else {
        cpus
    }
}

#[cfg(target_os = "linux")]
fn affinity() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> Vec<usize> {
    Vec::new()
}

/// Keeps the calling thread on one processor, so that its caches stay warm and a worker has a
/// processor of its own.
///
/// # Errors
/// If this thread may not run there, or the system cannot do it.
#[cfg(target_os = "linux")]
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// Keeps the calling thread on one processor, so that its caches stay warm and a worker has a
/// processor of its own.
///
/// # Errors
/// Always: this system has no such call.
#[cfg(not(target_os = "linux"))]
pub fn pin_current_thread(_cpu: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        let machine = Machine::describe();
        assert!(machine.processors >= 1);
        assert_eq!(machine.allowed_processors as usize, allowed_cpus().len());
        assert!(machine.memory_bytes.unwrap() > 64 << 20);
        assert!(!machine.kernel.unwrap().is_empty());
    }

    #[test]
    fn names_are_found() {
        let release = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(os_name(release).unwrap(), "Debian GNU/Linux 12 (bookworm)");
        let cpuinfo = "processor\t: 0\nmodel name\t: A CPU @ 2.0 GHz\nprocessor\t: 1\n";
        assert_eq!(cpu_model(cpuinfo).unwrap(), "A CPU @ 2.0 GHz");
        assert_eq!(cpu_model("processor: 0\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pinned_thread_stays() {
        std::thread::spawn(|| {
            let cpu = *allowed_cpus().last().unwrap();
            pin_current_thread(cpu).unwrap();
            assert_eq!(allowed_cpus(), [cpu]);
            assert_eq!(rustix::thread::sched_getcpu(), cpu);
            assert!(pin_current_thread(1 << 20).is_err());
        })
        .join()
        .unwrap();
    }
}
