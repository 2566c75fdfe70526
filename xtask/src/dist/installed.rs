//! Installs packages as a stranger does: each into a fresh place; and runs a suite from there.

use std::path::Path;
use std::process::Command;

use super::copy;
use super::fresh::{self, QUICK, run_in, run_quick};
use crate::steps::{self, StepFailure};

/// Installs the wheel into a fresh virtual environment, runs the command, and reads its result with pandas, as the tests of
/// `python/` do.
///
/// # Errors
/// If it cannot be installed, the run fails, or a test does.
pub fn wheel(wheel: &Path) -> Result<(), StepFailure> {
    let place = fresh::folder("environment")?;
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
    steps::run(tests.env("KVDYNO_RESULT", place.join("run")).env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Installs the Debian package into a fresh root, and runs the command there. The root is gone afterwards.
///
/// # Errors
/// If the package cannot be installed, or the run fails.
pub fn debian_package(package: &Path, root: &Path) -> Result<(), StepFailure> {
    let name = package.file_name().unwrap_or_default();
    copy(package, &root.join(name))?;
    let inside = Path::new("/").join(name);
    steps::run(run_in(root).args(["dpkg", "--install"]).arg(inside))?;
    run_quick(run_in(root).args(["env", "--chdir=/tmp", "kvdyno"]).args(QUICK))?;
    for file in
        ["usr/share/man/man1/kvdyno-run.1.gz", "usr/share/bash-completion/completions/kvdyno"]
    {
        std::fs::metadata(root.join(file)).map_err(StepFailure::file(file))?;
    }
    std::fs::remove_dir_all(root).map_err(StepFailure::file(root))
}
