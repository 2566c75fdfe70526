//! Control groups that this process is in, as far as they hand out processor time (version 1 and 2): the
//! time that they allow, and how long they held threads up. A quota stops a whole client several times a
//! second, and no figure of a single thread says so.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::procfs::ProcFile;

/// Version of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Folders of this process's own group and of those above it, as far as they are mounted here.
#[derive(Debug, PartialEq, Eq)]
struct Folders(Vec<(Version, PathBuf)>);

impl Folders {
    fn of_this_process() -> Folders {
        let text = |path| read_to_string(path).unwrap_or_default();
        Folders::parse(&text("/proc/self/mountinfo"), &text("/proc/self/cgroup"))
    }

    /// Finds the folders. `mounts` is the text of /proc/self/mountinfo (proc(5)), `groups` that of
    /// /proc/self/cgroup (cgroups(7)).
    fn parse(mounts: &str, groups: &str) -> Folders {
        let mut found = Vec::new();
        for (version, root, mounted) in mounts.lines().filter_map(mount) {
            let Some(own) = groups.lines().find_map(|line| group(line, version)) else { continue };
            // Within a container the mount may begin at its own group, or the group be told from there.
            let within = Path::new(own).strip_prefix(root).unwrap_or(Path::new(""));
            let mounted = Path::new(mounted);
            // From its parts, so that nothing within leaves no slash at the end.
            let folder: PathBuf = mounted.components().chain(within.components()).collect();
            let inside = folder.ancestors().take_while(|path| path.starts_with(mounted));
            found.extend(inside.map(|path| (version, path.to_path_buf())));
        }
        Folders(found)
    }
}

/// Parses a line of mountinfo: version, root within the hierarchy and place of a mount that hands out
/// processor time.
fn mount(line: &str) -> Option<(Version, &str, &str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, mounted) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    match (kind.next()?, kind.nth(1)?) {
        ("cgroup2", _) => Some((Version::Two, root, mounted)),
        ("cgroup", options) if options.split(',').any(|option| option == "cpu") => {
            Some((Version::One, root, mounted))
        }
        _ => None,
    }
}

/// Returns the group that this line names, if it is of this version and hands out processor time.
fn group(line: &str, version: Version) -> Option<&str> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let wanted = match version {
        Version::One => controllers.split(',').any(|name| name == "cpu"),
        Version::Two => controllers.is_empty(),
    };
    wanted.then_some(path)
}

/// Returns the processors' worth of time that the tightest group allows; `None` if none sets a limit.
pub(super) fn processors() -> Option<f64> {
    let read = |folder: &Path, name: &str| read_to_string(folder.join(name)).ok();
    let number = |folder: &Path, name: &str| read(folder, name)?.trim().parse().ok();
    let allowed = |(version, folder): &(Version, PathBuf)| match version {
        Version::Two => quota_v2(&read(folder, "cpu.max")?),
        Version::One => {
            quota(number(folder, "cpu.cfs_quota_us")?, number(folder, "cpu.cfs_period_us")?)
        }
    };
    Folders::of_this_process().0.iter().filter_map(allowed).min_by(f64::total_cmp)
}

/// Parses `QUOTA PERIOD` or `max PERIOD`.
fn quota_v2(text: &str) -> Option<f64> {
    let (allowed, period) = text.trim().split_once(' ')?;
    quota(allowed.parse().ok()?, period.parse().ok()?)
}

/// Converts a quota to processors' worth of time: `allowed` µs in each `period` µs. `None` of a quota of
/// −1, which is no limit.
fn quota(allowed: f64, period: f64) -> Option<f64> {
    (allowed > 0.0 && period > 0.0).then(|| allowed / period)
}

/// Reader of the time for which quotas have held up this process's groups.
#[derive(Debug)]
pub(super) struct Throttling(Vec<ProcFile>);

impl Throttling {
    pub(super) fn open() -> Throttling {
        let folders = Folders::of_this_process().0.into_iter();
        let files = folders.filter_map(|(_, folder)| ProcFile::open(folder.join("cpu.stat")).ok());
        Throttling(files.collect())
    }

    /// Returns the time of the group that was held up longest; each processor of it counts by itself.
    /// Zero where no group tells.
    pub(super) fn now(&mut self) -> Duration {
        let files = self.0.iter_mut();
        files.filter_map(|file| throttled(file.read()?)).max().unwrap_or_default()
    }
}

/// Parses the time held up from `cpu.stat`: nanoseconds in version 1, microseconds in version 2.
fn throttled(stat: &str) -> Option<Duration> {
    let find = |name: &str| {
        let mut lines = stat.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    let v1 = find("throttled_time ").map(Duration::from_nanos);
    v1.or_else(|| find("throttled_usec ").map(Duration::from_micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
        34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n\
        41 31 0:38 /box /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";

    fn folders(mounts: &str, groups: &str) -> Vec<(Version, String)> {
        let Folders(found) = Folders::parse(mounts, groups);
        found.into_iter().map(|(version, path)| (version, path.display().to_string())).collect()
    }

    #[test]
    fn own_groups_and_those_above_are_found_in_both_versions() {
        let groups = "9:name=systemd:/x\n3:cpuset:/y\n1:cpu,cpuacct:/a/b\n0::/box/c\n";
        let expected = [
            (Version::One, "/sys/fs/cgroup/cpu,cpuacct/a/b"),
            (Version::One, "/sys/fs/cgroup/cpu,cpuacct/a"),
            (Version::One, "/sys/fs/cgroup/cpu,cpuacct"),
            (Version::Two, "/sys/fs/cgroup/unified/c"),
            (Version::Two, "/sys/fs/cgroup/unified"),
        ];
        assert_eq!(folders(MOUNTS, groups), expected.map(|(v, path)| (v, path.to_owned())));
    }

    /// With version 1 Docker mounts a container's group alone, and tells its path as seen from the
    /// outside.
    #[test]
    fn a_group_outside_its_mount_is_where_the_mount_begins() {
        let mounts = "1 2 0:3 /docker/f00 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
        let found = vec![(Version::One, "/sys/fs/cgroup/cpu".to_owned())];
        assert_eq!(folders(mounts, "4:cpu:/docker/f00\n"), found);
        assert_eq!(folders(mounts, "4:cpu:/\n"), found);
        assert_eq!(folders(mounts, "0::/\n"), []);
        assert_eq!(folders("broken\n1 2 - cgroup2", "0::/\n:\n"), []);
    }

    #[test]
    fn quotas_are_read() {
        assert_eq!(quota_v2("150000 100000\n"), Some(1.5));
        assert_eq!(quota_v2("max 100000\n"), None);
        assert_eq!(quota_v2(""), None);
        assert_eq!(quota(-1.0, 100_000.0), None);
    }

    #[test]
    fn times_held_up_are_read_in_the_unit_of_each_version() {
        let v1 = "nr_periods 10\nnr_throttled 3\nthrottled_time 1500000\nnr_bursts 0\n";
        let v2 = "usage_usec 7\nnr_throttled 3\nthrottled_usec 1500\n";
        assert_eq!(throttled(v1), Some(Duration::from_micros(1_500)));
        assert_eq!(throttled(v2), Some(Duration::from_micros(1_500)));
        assert_eq!(throttled("usage_usec 7\n"), None);
    }
}
