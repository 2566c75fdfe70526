//! Software from Debian's packages: installed as root, else named with the command to run.

use std::process::Command;

use super::{Software, SoftwareSource};
use crate::error::TestbedError;
use crate::process;

/// Packages of what is missing, each once.
pub fn missing(wanted: &[&'static Software]) -> Vec<&'static str> {
    let mut packages: Vec<&'static str> = Vec::new();
    for software in wanted.iter().filter(|software| software.find().is_none()) {
        if let SoftwareSource::Debian { packages: more, .. } = &software.source {
            for package in *more {
                if !packages.contains(package) {
                    packages.push(package);
                }
            }
        }
    }
    packages
}

/// Installs the packages of all that is missing, in one go.
///
/// # Errors
/// [`TestbedError::Install`] with the command to run as root, or with what apt-get says.
pub fn install(wanted: &[&'static Software], report: &dyn Fn(&str)) -> Result<(), TestbedError> {
    let packages = missing(wanted);
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.join(" ");
    let failed = |problem: String| TestbedError::Install { what: names.clone(), problem };
    let is_root = rustix::process::geteuid().is_root();
    let command = format!("apt-get install -y --no-install-recommends {names}");
    let apt = process::look_up("apt-get").filter(|_| is_root);
    let apt = apt.ok_or_else(|| failed(format!("as root: {command}")))?;
    report(&format!("apt-get install {names}"));
    let run = |words: &[&str]| {
        let mut command = Command::new(&apt);
        // It says nothing but what is wrong. Another apt-get may be at work: wait for it.
        command.args(["-qq", "-o", "DPkg::Lock::Timeout=900"]).args(words);
        process::run_command(command.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    run(&["update"]).map_err(|error| failed(error.to_string()))?;
    let words = ["install", "-y", "--no-install-recommends"];
    let words: Vec<&str> = words.into_iter().chain(packages).collect();
    run(&words).map_err(|error| failed(error.to_string()))?;
    match missing(wanted).as_slice() {
        [] => Ok(()),
        still => Err(failed(format!("{} did not bring their programs", still.join(" ")))),
    }
}
