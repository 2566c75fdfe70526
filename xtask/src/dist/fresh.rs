//! Fresh places that packages are tried in: a folder, a root of a Debian release; and the run that is tried there.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::empty;
use crate::steps::{self, StepFailure};

/// A run that takes some seconds, on three engines.
pub const QUICK: [&str; 9] =
    ["run", "quick", "--records", "10k", "--duration", "300ms", "--quiet", "--out", "run"];

/// Mounts what a chroot lacks, in namespaces of its own: nothing is left behind. The folder, then the words of the command.
const IN_ROOT: &str = r#"
root=$1; shift
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" "$@"
"#;

/// Runs a measurement; that this machine disturbs it says nothing of the package.
pub fn run_quick(command: &mut Command) -> Result<(), StepFailure> {
    println!("\n$ {}", steps::shown(command));
    steps::measure(command)
}

/// A command in that root, which sees nothing of this machine but its devices.
pub fn run_in(root: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "sh", "-ec", IN_ROOT, "sh"]).arg(root);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
    command
}

/// An empty folder for what is installed.
pub fn folder(name: &str) -> Result<PathBuf, StepFailure> {
    let folder = steps::target_folder().join("fresh").join(name);
    empty(&folder)?;
    Ok(folder)
}

/// A root of the Debian release that this machine has: what is built here runs there.
///
/// # Errors
/// If this is no Debian, or the root cannot be had.
pub fn root_of_this_release() -> Result<PathBuf, StepFailure> {
    release_root(&release()?)
}

/// Name of the Debian release that this machine has.
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
pub fn release_root(release: &str) -> Result<PathBuf, StepFailure> {
    let kept = steps::target_folder().join(format!("fresh/{release}.tar"));
    let root = folder(release)?;
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
