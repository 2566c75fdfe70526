//! The programs of tests that cargo builds, and the tests that they hold.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::features;
use crate::steps::{self, StepFailure};

/// Selection of what tests are built of.
#[derive(Debug, Default)]
pub struct ProgramBuild {
    /// Cargo's arguments besides those that are always the same.
    arguments: Vec<String>,
}

impl ProgramBuild {
    /// Selects all drivers and all tests.
    ///
    /// # Errors
    /// If a crate's manifest cannot be read.
    pub fn everything() -> Result<ProgramBuild, StepFailure> {
        Ok(ProgramBuild { arguments: vec!["--features".to_owned(), features::all()?] })
    }

    /// Returns cargo's arguments besides those that are always the same.
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }
}

/// A program of tests.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// The package that it tests.
    pub package: String,
    /// Kind and name of cargo's target: `lib kvdyno_core`, `test cli`.
    pub name: String,
    /// The package's folder, where its tests run.
    pub folder: PathBuf,
    /// The executable.
    pub path: PathBuf,
}

/// Builds all tests.
///
/// # Errors
/// If cargo cannot build them.
pub fn build(build: &ProgramBuild) -> Result<Vec<Program>, StepFailure> {
    let mut cargo = steps::cargo();
    cargo.args(["test", "--workspace", "--no-run"]).args(&build.arguments);
    cargo.arg("--message-format=json-render-diagnostics");
    println!("\n$ {}", steps::shown(&cargo));
    let mut programs = programs(&steps::output(&mut cargo)?);
    programs.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    if programs.is_empty() {
        return Err(StepFailure::Found("cargo named no program of tests".to_owned()));
    }
    Ok(programs)
}

/// Returns the programs that cargo's messages name.
fn programs(messages: &str) -> Vec<Program> {
    messages.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?)).collect()
}

fn program(message: &Value) -> Option<Program> {
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    // `path+file:///…/crates/core#kvdyno-core@0.1.0`, or without a name if the folder has it.
    let id = message["package_id"].as_str()?.rsplit(['#', '/']).next()?;
    let package = id.split_once('@').map_or_else(|| folder.file_name()?.to_str(), |id| Some(id.0));
    let target = &message["target"];
    Some(Program {
        package: package?.to_owned(),
        name: format!("{} {}", target["kind"][0].as_str()?, target["name"].as_str()?),
        folder: folder.to_owned(),
        path: message["executable"].as_str()?.into(),
    })
}

impl Program {
    /// Returns package, kind and name.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.package, self.name)
    }

    /// Makes the command that runs it as cargo does.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// Returns the names of its tests.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn tests(&self) -> Result<Vec<String>, StepFailure> {
        self.list(&[])
    }

    /// Returns the names of those tests that need more than a user has: they are marked `#[ignore = "needs …"]`.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn privileged_tests(&self) -> Result<Vec<String>, StepFailure> {
        self.list(&["--ignored"])
    }

    fn list(&self, arguments: &[&str]) -> Result<Vec<String>, StepFailure> {
        let mut command = self.command();
        command.args(["--list", "--format", "terse"]).args(arguments);
        let list = steps::output(&mut command)?;
        Ok(list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_those_that_cargo_names_as_tests() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"path+file:///w/crates/core#kvdyno-core@0.1.0","manifest_path":"/w/crates/core/Cargo.toml","target":{"kind":["test"],"name":"load"},"profile":{"test":true},"executable":"/w/target/load-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/kvdyno#0.1.0","manifest_path":"/w/crates/kvdyno/Cargo.toml","target":{"kind":["bin"],"name":"kvdyno"},"profile":{"test":false},"executable":"/w/target/kvdyno"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/kvdyno#0.1.0","manifest_path":"/w/crates/kvdyno/Cargo.toml","target":{"kind":["bin"],"name":"kvdyno"},"profile":{"test":true},"executable":"/w/target/kvdyno-1"}
{"reason":"build-finished","success":true}"#;
        let programs = programs(messages);
        let titles: Vec<String> = programs.iter().map(Program::title).collect();
        assert_eq!(titles, ["kvdyno-core test load", "kvdyno bin kvdyno"]);
        assert_eq!(programs[0].folder, Path::new("/w/crates/core"));
        assert_eq!(programs[0].path, Path::new("/w/target/load-1"));
    }
}
