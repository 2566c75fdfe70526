//! Places that lack rights or devices: a container without `CAP_SYS_ADMIN`, a plain chroot, a machine without devices of
//! file systems. What needs them is refused there with one clear line, and nothing is left behind.

use std::process::Command;

use crate::support::{Ended, KVDYNO, Scratch};

/// Runs its words as root without the right to mount.
const NO_ADMIN: &[&str] = &["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"];

/// Runs its words where neither a loop device nor FUSE's device is there.
const NO_DEVICES: &str = r#"
mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work
mount -t overlay none -o lowerdir=/dev,upperdir=/mnt/upper,workdir=/mnt/work /dev
rm "/dev/$1"; shift
exec "$@"
"#;

/// Runs a copy of the command in a chroot whose `/` is no mount point.
const CHROOT: &str = r#"
root=$1; shift
mkdir "$root/usr" "$root/proc" "$root/dev" "$root/tmp"
for folder in usr proc dev; do mount --rbind "/$folder" "$root/$folder"; done
for folder in bin lib lib64 sbin; do ln -s "usr/$folder" "$root/$folder"; done
cp "$1" "$root/kvdyno"; shift
exec chroot "$root" /kvdyno "$@"
"#;

/// The command of `words`, in a mount namespace, by a script.
fn in_mounts(script: &str, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-ec", script, "bash"]).args(words);
    command
}

/// Refused with one line, which holds `why`, and exit code 64 to 70.
fn refused(ended: &Ended, why: &str) {
    let lines: Vec<&str> = ended.err.lines().filter(|line| line.starts_with("kvdyno: ")).collect();
    assert!(matches!(lines[..], [line] if line.contains(why)), "{why}: {}", ended.err);
    let code = ended.status.code().expect("an exit code");
    assert!((64..=70).contains(&code), "{code}: {}", ended.err);
}

#[test]
#[ignore = "needs mounts"]
fn without_the_right_to_mount_disks_and_networks_are_refused() {
    let scratch = Scratch::new();
    for (testbed, why) in [
        ("redis?disk=64MiB", "needs a mount namespace, which cannot be made: root lacks CAP_SYS"),
        ("redis?disk=ext4", "root lacks CAP_SYS_ADMIN"),
        ("redis?network=own", "needs a network namespace, which cannot be made: root lacks CAP_"),
        ("couchbase", "whose server listens on all interfaces, needs a network namespace"),
    ] {
        let mut command = Command::new(NO_ADMIN[0]);
        command.args(&NO_ADMIN[1..]).args([KVDYNO, "testbed", "up", testbed]);
        refused(&scratch.spawn(command).wait(), why);
    }
    scratch.write("cut.toml", CUT);
    let mut command = Command::new(NO_ADMIN[0]);
    command.args(&NO_ADMIN[1..]).args([KVDYNO, "run", "cut.toml", "--testbed", "redis?disk=ext4"]);
    refused(&scratch.spawn(command).wait(), "root lacks CAP_SYS_ADMIN");
}

/// A suite that cuts the power.
const CUT: &str = r#"
name = "cut"
records = 100
[[phase]]
name = "mix"
mix = { get = 50, update = 50 }
duration = "2s"
[[phase.fault]]
do = "power"
"#;

#[test]
#[ignore = "needs mounts"]
fn in_a_plain_chroot_disks_are_refused() {
    let scratch = Scratch::new();
    let root = scratch.path("root");
    std::fs::create_dir(&root).expect("a folder");
    let words = [root.to_str().expect("a path"), KVDYNO, "testbed", "up", "redis?disk=ext4"];
    refused(&scratch.spawn(in_mounts(CHROOT, &words)).wait(), "/ is no mount point here");
}

#[test]
#[ignore = "needs mounts"]
fn without_devices_of_file_systems_disks_are_refused() {
    let scratch = Scratch::new();
    for (device, testbed, why) in [
        ("loop-control", "redis?disk=ext4", "/dev/loop-control"),
        ("fuse", "redis?disk=ext4&device=fuse", "/dev/fuse"),
    ] {
        let words = [device, KVDYNO, "testbed", "up", testbed];
        refused(&scratch.spawn(in_mounts(NO_DEVICES, &words)).wait(), why);
    }
}
