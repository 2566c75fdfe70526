//! The programs that tests run against: Debian's packages of them, installed if this process may, else named, so that
//! one command tells all that is missing.

use std::fs::File;
use std::process::Command;

use kvdyno_testbed::install::{self, Software, SoftwareSource};
use rustix::fs::{FlockOperation, flock};

use crate::steps::{self, StepFailure};

/// A program or library that the tests need.
struct Need {
    /// Debian packages that bring it.
    packages: &'static [&'static str],
    /// Shell condition that holds once it is there.
    present: &'static str,
}

/// Programs that the tests run beside the servers of testbeds, whose own recipes say how they are installed.
const PROGRAMS: [Need; 9] = [
    // The library of the example plug-in, which its tests build.
    Need {
        packages: &["gcc", "libc6-dev", "libsqlite3-dev"],
        present: "test -e /usr/include/sqlite3.h",
    },
    // The checker of histories with which ours is compared.
    Need { packages: &["golang-go"], present: "command -v go" },
    // Proxies that stores are reached through, and the tool that makes certificates.
    Need {
        packages: &["nutcracker", "haproxy", "openssl"],
        present: "PATH=$PATH:/usr/sbin; command -v nutcracker && command -v haproxy && command -v openssl",
    },
    // Engines that start agents.
    Need {
        packages: &["slurmctld", "slurmd", "slurm-client", "munge", "openmpi-bin"],
        present: "PATH=$PATH:/usr/sbin; command -v slurmctld && command -v slurmd && command -v srun && command -v munged && command -v mpirun",
    },
    Need {
        packages: &["openssh-server", "openssh-client"],
        present: "PATH=$PATH:/usr/sbin; command -v sshd && command -v ssh && command -v ssh-keygen",
    },
    Need { packages: &["fio"], present: "command -v fio" },
    Need { packages: &["chromium"], present: "command -v chromium" },
    // Prometheus, which scrapes metrics.
    Need { packages: &["prometheus"], present: "command -v prometheus" },
    Need {
        packages: &["python3-venv", "python3-pip"],
        present: "python3 -c 'import venv, ensurepip'",
    },
];

/// Libraries that drivers need: the one that `rocksdb:` loads; outside the default features the compiler of `etcd:`'s
/// messages and the messages that they include.
const LIBRARIES: [Need; 2] = [
    Need {
        packages: &["librocksdb-dev"],
        present: "PATH=$PATH:/sbin ldconfig -p | grep -q librocksdb[.]so",
    },
    Need {
        packages: &["protobuf-compiler", "libprotobuf-dev"],
        present: "command -v protoc && test -e /usr/include/google/protobuf/any.proto",
    },
];

/// Valgrind, which counts instructions.
const VALGRIND: [Need; 1] = [Need { packages: &["valgrind"], present: "command -v valgrind" }];

/// Programs that packages are packed and tried with.
const PACKERS: [Need; 3] = [
    Need { packages: &["rpm"], present: "command -v rpmbuild" },
    Need { packages: &["debootstrap"], present: "PATH=$PATH:/usr/sbin; command -v debootstrap" },
    Need {
        packages: &["python3-venv", "python3-pip"],
        present: "python3 -c 'import venv, ensurepip, tomllib'",
    },
];

/// Features of the lints and tests beside each crate's `server-tests`: every driver.
pub const DRIVER_FEATURES: [&str; 1] = ["kvdyno/full"];

/// Makes sure that every feature can be built.
///
/// # Errors
/// Those of [`ensure_all`].
pub fn ensure_libraries() -> Result<(), StepFailure> {
    ensure(&LIBRARIES, &[])
}

/// Makes sure that instructions can be counted.
///
/// # Errors
/// Those of [`ensure_all`].
pub fn ensure_valgrind() -> Result<(), StepFailure> {
    ensure(&VALGRIND, &[])
}

/// Makes sure that packages can be packed and tried.
///
/// # Errors
/// As [`ensure_all`].
pub fn ensure_packers() -> Result<(), StepFailure> {
    ensure(&PACKERS, &[])
}

/// Makes sure that every feature can be built and every test can be run.
///
/// # Errors
/// If something is missing and cannot be installed; the message is the command that installs it.
pub fn ensure_all() -> Result<(), StepFailure> {
    let software = testbed_software();
    let all: Vec<Need> = PROGRAMS.into_iter().chain(LIBRARIES).collect();
    ensure(&all, &install::missing_packages(&software))?;
    Ok(install::install(&software, &|line| println!("\n$ {line}"))?)
}

/// Returns all software that testbeds need and that can be installed without asking the user.
fn testbed_software() -> Vec<&'static Software> {
    let kinds = kvdyno_testbed::registry::kinds().iter();
    let all = kinds.flat_map(|kind| kind.software.iter().copied());
    let all = all.chain(kvdyno_testbed::NETWORK_SOFTWARE).chain(kvdyno_testbed::DISK_SOFTWARE);
    all.filter(|software| !matches!(software.source, SoftwareSource::Named { .. })).collect()
}

/// Installs what `needs` lack, and `more` packages in the same call. Only one chore installs at a time.
fn ensure(needs: &[Need], more: &[&'static str]) -> Result<(), StepFailure> {
    let _turn = turn_to_install()?;
    let mut missing = missing(needs);
    missing.extend(more);
    if missing.is_empty() {
        return Ok(());
    }
    let install = format!("apt-get install -y --no-install-recommends {}", missing.join(" "));
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !steps::succeeds(Command::new("apt-get").arg("--version")) {
        return Err(StepFailure::Found(format!("more programs are needed; as root: {install}")));
    }
    let apt = |words: &str| {
        let mut command = Command::new("apt-get");
        // Waits while a testbed installs.
        command.args(["-o", "DPkg::Lock::Timeout=900"]).args(words.split(' '));
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    steps::run(&mut apt("update"))?;
    steps::run(&mut apt(install.trim_start_matches("apt-get ")))?;
    let missing = self::missing(needs);
    if missing.is_empty() {
        Ok(())
    } else {
        let missing = missing.join(" ");
        Err(StepFailure::Found(format!("installed and still not usable: {missing}")))
    }
}

/// Waits until no other chore installs; no other one does before this is dropped.
fn turn_to_install() -> Result<File, StepFailure> {
    let folder = steps::root().join("target");
    let path = folder.join("installing");
    let file = std::fs::create_dir_all(&folder).and_then(|()| {
        let file = File::create(&path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    });
    file.map_err(StepFailure::file(&path))
}

fn missing(needs: &[Need]) -> Vec<&'static str> {
    let absent = |need: &&Need| !steps::succeeds(Command::new("sh").args(["-c", need.present]));
    needs.iter().filter(absent).flat_map(|need| need.packages).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_absent_is_missing() {
        let needs = [
            Need { packages: &["a", "b"], present: "false" },
            Need { packages: &["c"], present: "true" },
        ];
        assert_eq!(missing(&needs), ["a", "b"]);
    }
}
