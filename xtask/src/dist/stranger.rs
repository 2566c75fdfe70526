//! A machine that is not like the developer's: one processor, a limit on memory, no IPv6, nothing of `/proc/sys`, a root and a home
//! that cannot be written, no rights at all. The binary must measure there all the same.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::fresh::{QUICK, release_root, run_in, run_quick};
use super::{copy, found};
use crate::steps::StepFailure;

/// Debian release with an old glibc that mirrors still have: 2.31, of 2020.
const OLD_RELEASE: &str = "bullseye";

/// Control groups of version 2, or of version 1, that the process is put into: name, file, and what is written to it.
const LIMITS: [(&str, &str, &str); 4] = [
    ("/sys/fs/cgroup/kvdyno-dist", "memory.max", "1073741824"),
    ("/sys/fs/cgroup/kvdyno-dist", "cpu.max", "100000 100000"),
    ("/sys/fs/cgroup/memory/kvdyno-dist", "memory.limit_in_bytes", "1073741824"),
    ("/sys/fs/cgroup/cpu/kvdyno-dist", "cpu.cfs_quota_us", "100000"),
];

/// Takes away what a stranger's machine may lack, in namespaces of its own, and runs the command by nobody. First a folder that
/// may be written, then the words of the command.
const WITHOUT: &str = r#"
folder=$1; shift
ip link set lo up
[ ! -e /proc/sys/net/ipv6/conf/all/disable_ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
for group in $GROUPS_OF_LIMITS; do echo $$ > "$group/cgroup.procs"; done
mount --bind "$folder" "$folder"
mount -o remount,ro,bind /
mount -t tmpfs -o ro none /proc/sys
cd "$folder"
export HOME=/ TMPDIR="$folder"
exec setpriv --reuid 65534 --regid 65534 --clear-groups taskset --cpu-list 0 "$@"
"#;

/// Runs the binary on such a machine.
///
/// # Errors
/// If it does not measure there.
pub fn poor_machine(binary: &Path) -> Result<(), StepFailure> {
    let folder = std::env::temp_dir().join(format!("kvdyno-stranger-{}", std::process::id()));
    let program = folder.join("kvdyno");
    copy(binary, &program)?;
    std::os::unix::fs::chown(&folder, Some(65_534), Some(65_534))
        .map_err(StepFailure::file(&folder))?;
    let limits = ControlGroups::make();
    println!("\nlimits of memory and processors: {}", limits.shown());
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-ec", WITHOUT]);
    command.arg("sh").arg(&folder).arg(&program).args(QUICK);
    let ran = run_quick(command.env("GROUPS_OF_LIMITS", limits.paths()));
    let result = std::fs::read_to_string(folder.join("run/result.json"));
    std::fs::remove_dir_all(&folder).map_err(StepFailure::file(&folder))?;
    ran?;
    let result = result.map_err(StepFailure::file("run/result.json"))?;
    match serde_json::from_str::<serde_json::Value>(&result) {
        Ok(result) if result["status"]["state"] == "complete" => Ok(()),
        _ => Err(found("the run on a poor machine did not come to its end")),
    }
}

/// Runs the binary with an old glibc.
///
/// # Errors
/// If the root cannot be had, or the run fails there.
pub fn old_glibc(binary: &Path) -> Result<(), StepFailure> {
    let root = release_root(OLD_RELEASE)?;
    copy(binary, &root.join("usr/local/bin/kvdyno"))?;
    run_quick(run_in(&root).args(["env", "--chdir=/tmp", "kvdyno"]).args(QUICK))?;
    std::fs::remove_dir_all(&root).map_err(StepFailure::file(&root))
}

/// Control groups with limits; they are removed on drop, when nothing is in them any more.
struct ControlGroups {
    made: Vec<PathBuf>,
}

impl ControlGroups {
    /// Makes those that this machine has.
    fn make() -> ControlGroups {
        let mut made: Vec<PathBuf> = Vec::new();
        for (folder, file, limit) in LIMITS {
            let folder = Path::new(folder);
            let new = !folder.exists();
            let written = (!new || std::fs::create_dir(folder).is_ok())
                && folder.join(file).exists()
                && std::fs::write(folder.join(file), limit).is_ok();
            if written && !made.iter().any(|known| known == folder) {
                made.push(folder.to_owned());
            } else if new && !written {
                let _ = std::fs::remove_dir(folder);
            }
        }
        ControlGroups { made }
    }

    fn paths(&self) -> String {
        self.made.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
    }

    fn shown(&self) -> String {
        if self.made.is_empty() {
            "none, for no control group can be made here".into()
        } else {
            self.paths()
        }
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        for group in &self.made {
            let _ = std::fs::remove_dir(group);
        }
    }
}
