//! What a stranger does with the packages: installs each into a fresh place, and runs a suite from there.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{copy, empty};
use crate::steps::{self, StepFailure};

/// A run that takes some seconds, on three engines.
const QUICK: [&str; 9] =
    ["run", "quick", "--records", "10k", "--duration", "300ms", "--quiet", "--out", "run"];

/// Mounts what a chroot lacks, in namespaces of its own: nothing is left behind. The folder, then the words of the command.
const IN_ROOT: &str = r#"
root=$1; shift
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" "$@"
"#;

/// Installs the wheel into a fresh virtual environment, runs the command, and reads its result with pandas, as the tests of
/// `python/` do.
///
/// # Errors
/// If it cannot be installed, the run fails, or a test does.
pub fn wheel(wheel: &Path) -> Result<(), StepFailure> {
    let place = fresh("environment")?;
    steps::run(Command::new("python3").args(["-m", "venv"]).arg(place.join("venv")))?;
    let python = place.join("venv/bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let with_extras = format!("{}[pandas,notebook]", wheel.display());
    steps::run(Command::new(&python).args(pip).arg(with_extras))?;
    let command = place.join("venv/bin/kvdyno");
    run_quick(Command::new(command).args(QUICK).current_dir(&place))?;
    let mut tests = Command::new(&python);
    tests.args(["-m", "unittest", "discover", "--start-directory"]);
    tests.arg(steps::root().join("python/tests")).current_dir(&place);
    steps::run(tests.env("KVDYNO_RESULT", place.join("run")))
}

/// Installs the Debian package into a fresh root of this machine's release, and runs the command there.
///
/// # Errors
/// If the root cannot be had, the package cannot be installed, or the run fails.
pub fn debian_package(package: &Path) -> Result<(), StepFailure> {
    let root = debian_root(&release()?)?;
    let name = package.file_name().unwrap_or_default();
    copy(package, &root.join(name))?;
    let inside = Path::new("/").join(name);
    steps::run(in_root(&root).args(["dpkg", "--install"]).arg(inside))?;
    run_quick(in_root(&root).args(["env", "--chdir=/tmp", "kvdyno"]).args(QUICK))?;
    for file in
        ["usr/share/man/man1/kvdyno-run.1.gz", "usr/share/bash-completion/completions/kvdyno"]
    {
        std::fs::metadata(root.join(file)).map_err(StepFailure::file(file))?;
    }
    std::fs::remove_dir_all(&root).map_err(StepFailure::file(&root))
}

/// Runs a measurement; that this machine disturbs it says nothing of the package.
fn run_quick(command: &mut Command) -> Result<(), StepFailure> {
    println!("\n$ {}", steps::shown(command));
    steps::measure(command)
}

/// A command in that root, which sees nothing of this machine but its devices.
fn in_root(root: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "sh", "-ec", IN_ROOT, "sh"]).arg(root);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
    command
}

/// An empty folder for what is installed.
fn fresh(name: &str) -> Result<PathBuf, StepFailure> {
    let folder = steps::target_folder().join("fresh").join(name);
    empty(&folder)?;
    Ok(folder)
}

/// Name of the Debian release that this machine has: what is built here runs there.
fn release() -> Result<String, StepFailure> {
    let path = "/etc/os-release";
    let text = std::fs::read_to_string(path).map_err(StepFailure::file(path))?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = name.filter(|_| text.lines().any(|line| line == "ID=debian"));
    name.map(str::to_owned).ok_or_else(|| {
        StepFailure::Found("packages are tried on Debian: debootstrap makes its roots".to_owned())
    })
}

/// A root with the least of a Debian release. It is downloaded once, and unpacked each time.
fn debian_root(release: &str) -> Result<PathBuf, StepFailure> {
    let kept = steps::target_folder().join(format!("fresh/{release}.tar"));
    let root = fresh(release)?;
    if kept.exists() {
        let mut tar = Command::new("tar");
        tar.arg("--extract").arg("--file").arg(&kept).arg("--directory").arg(&root);
        steps::run(&mut tar)?;
        return Ok(root);
    }
    let mut debootstrap = Command::new("debootstrap");
    let search = std::env::var("PATH").unwrap_or_default();
    debootstrap.args(["--variant=minbase", release]).arg(&root);
    steps::run(debootstrap.env("PATH", format!("{search}:/usr/sbin:/sbin")))?;
    let mut tar = Command::new("tar");
    // Devices are this machine's; written beside and renamed, so that a chore that was ended leaves no half.
    let part = kept.with_extension("part");
    tar.args(["--create", "--exclude=./dev/*", "--file"]).arg(&part).arg("--directory").arg(&root);
    steps::run(tar.arg("."))?;
    std::fs::rename(&part, &kept).map_err(StepFailure::file(&kept))?;
    Ok(root)
}
