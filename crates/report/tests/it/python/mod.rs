//! A Python with packages of its own, for tests that hand kvdyno's files to the public tools which read them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the interpreter that has these packages (`name==version`). Each set is installed once; two programs of tests
/// that run at the same time need sets that differ.
pub fn python_with(packages: &[&str]) -> PathBuf {
    let name: String = packages.join("-").replace("==", "-");
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-venv"));
    let python = venv.join("bin/python");
    if !venv.join("ready").exists() {
        check(
            Command::new("python3").args(["-m", "venv"]).arg(&venv),
            "apt-get install python3-venv",
        );
        let pip = ["-m", "pip", "install", "--quiet"];
        check(Command::new(&python).args(pip).args(packages), "pip needs to reach a package index");
        std::fs::write(venv.join("ready"), name).unwrap();
    }
    python
}

fn check(command: &mut Command, advice: &str) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {advice}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}; {advice}");
}
