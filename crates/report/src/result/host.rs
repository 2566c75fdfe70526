//! Machine that the load came from, as far as it bears on the figures.

use std::fs;

use serde::{Deserialize, Serialize};

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Host {
    /// Operating system with its version.
    pub os: String,
    /// Version of the kernel.
    pub kernel: Option<String>,
    /// Instruction set, such as `x86_64`.
    pub architecture: String,
    /// Model of the CPU.
    pub cpu: Option<String>,
    /// CPUs that this process may use.
    pub cores: Option<u32>,
    /// Physical memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Frequency governor of the first CPU, where the kernel tells it.
    pub cpu_governor: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Setting of transparent huge pages.
    pub huge_pages: Option<String>,
}

impl Host {
    /// Reads the properties of this machine. Unknown ones stay empty.
    #[must_use]
    pub fn of_this_machine() -> Host {
        let line = |path: &str| {
            fs::read_to_string(path).ok().map(|s| s.trim().to_owned()).filter(|s| !s.is_empty())
        };
        let os = fs::read_to_string("/etc/os-release").ok();
        Host {
            os: os
                .and_then(|text| value_of(&text, "PRETTY_NAME", '='))
                .unwrap_or_else(|| std::env::consts::OS.to_owned()),
            kernel: line("/proc/sys/kernel/osrelease"),
            architecture: std::env::consts::ARCH.to_owned(),
            cpu: fs::read_to_string("/proc/cpuinfo")
                .ok()
                .and_then(|text| value_of(&text, "model name", ':')),
            cores: std::thread::available_parallelism().ok().map(|n| n.get() as u32),
            memory_bytes: fs::read_to_string("/proc/meminfo").ok().and_then(|t| memory(&t)),
            cpu_governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|all| Some(all.split_once('[')?.1.split_once(']')?.0.to_owned())),
        }
    }
}

/// Returns the value of the first line that begins with `name`.
fn value_of(text: &str, name: &str, separator: char) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let value = line.split_once(separator)?.1.trim().trim_matches('"');
    (!value.is_empty()).then(|| value.to_owned())
}

fn memory(meminfo: &str) -> Option<u64> {
    let kib = value_of(meminfo, "MemTotal", ':')?;
    Some(kib.strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernel_s_files() {
        assert_eq!(memory("MemTotal:       24576 kB\nMemFree: 1 kB\n"), Some(24_576 * 1024));
        assert_eq!(memory("MemTotal: lots\n"), None);
        let release = "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n";
        assert_eq!(value_of(release, "PRETTY_NAME", '='), Some("Debian GNU/Linux 12".into()));
    }

    #[test]
    fn this_machine_tells_something() {
        let host = Host::of_this_machine();
        assert!(host.cores >= Some(1));
        assert!(!host.os.is_empty());
    }
}
