//! Description of the machine on which the figures were taken.

use std::fs::read_to_string;
use std::process::Command;

use crate::steps;

/// Returns a line each for machine, system and versions.
pub(super) fn describe() -> String {
    let first = |path: &str, key: &str| {
        let text = read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_start_matches([' ', '\t', ':', '=']).trim_matches('"').to_owned())
    };
    let says = |program: &str, arguments: &[&str]| {
        let said = steps::output(Command::new(program).args(arguments)).unwrap_or_default();
        said.lines().next().unwrap_or_default().to_owned()
    };
    let unknown = || "unknown".to_owned();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = first("/proc/cpuinfo", "model name").unwrap_or_else(unknown);
    let kib =
        first("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
    let memory =
        kib.map_or_else(unknown, |kib: f64| format!("{:.1} GiB", kib / f64::from(1 << 20)));
    let os = first("/etc/os-release", "PRETTY_NAME").unwrap_or_else(unknown);
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let date = says("date", &["-u", "+%Y-%m-%d"]);
    // The page itself changes from one benchmark to the next.
    let others = ["status", "--porcelain", "--untracked-files=no", "--", ":!docs/PERFORMANCE.md"];
    let dirty = if says("git", &others).is_empty() { "" } else { "-dirty" };
    let commit = format!("{}{dirty}", says("git", &["describe", "--always"]));
    let rust = says("rustc", &["--version"]);
    format!(
        "Taken {date} at commit {commit}, built by {rust}, on {processors} processors ({cpu}), \
         {memory} of memory, {os}, Linux {}.",
        kernel.trim()
    )
}
