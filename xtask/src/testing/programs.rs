//! The programs of tests that cargo builds, and the tests that they hold.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::features;
use crate::servers;
use crate::steps::{self, StepFailure};

/// Tests of the command that are about the drivers that are built in. The others use stores that are always
/// there.
const ABOUT_DRIVERS: [&str; 3] = ["documented::", "inputs::", "options::lists_and_checks"];

/// Tests that take too long for the first stage, by program and begin of name: two thirds of all its time were
/// theirs.
const LONG: [(&str, &str); 26] = [
    ("test cli", "advice::"),
    ("test cli", "capacity::"),
    ("test cli", "comparing::"),
    ("test cli", "elsewhere::every_driver"),
    ("test cli", "events::trials_of_a_search"),
    ("test cli", "hostile::"),
    ("test cli", "inputs::a_server_of_another_protocol"),
    ("test cli", "lengths::"),
    ("test cli", "options::lists_and_checks"),
    ("test cli", "options::progress_is_shown"),
    ("test cli", "reasons::"),
    ("test cli", "stalls::"),
    ("test load", ""),
    ("test verdicts_correct", "ten_million"),
    ("lib kvdyno_core", "load::lane::owned::tests::owners_together"),
    ("lib kvdyno_core", "measure::collector::tests::batches_that_went"),
    ("lib kvdyno_core", "suite::tests::hostile::mutated"),
    ("lib kvdyno_report", "board::steps::"),
    ("lib kvdyno_report", "board::tests::a_thousand"),
    ("lib kvdyno_report", "compare::simulation::"),
    ("lib kvdyno_report", "timeline::growing::"),
    ("test ledger_reference", ""),
    ("test ledger_stress", ""),
    ("test allocations", ""),
    ("test memory", ""),
    // It asks for what only the last stage builds.
    ("lib xtask", "testing::features::tests::what_chores"),
];

/// What to build tests of.
#[derive(Debug, Default)]
pub struct ProgramBuild {
    /// Cargo's arguments besides those that are always the same.
    arguments: Vec<String>,
}

impl ProgramBuild {
    /// The fuzz targets' workspace.
    #[must_use]
    pub fn fuzz() -> ProgramBuild {
        let target = steps::root().join("target").display().to_string();
        let arguments = ["--manifest-path", "fuzz/Cargo.toml", "--target-dir", &target];
        ProgramBuild { arguments: arguments.map(str::to_owned).to_vec() }
    }

    /// All drivers and all tests.
    ///
    /// # Errors
    /// If a crate's manifest cannot be read.
    pub fn everything() -> Result<ProgramBuild, StepFailure> {
        Ok(ProgramBuild { arguments: vec!["--features".to_owned(), features::all()?] })
    }
}

/// Tests of figures that another program of tests would disturb, as [`LONG`] names them.
const MEASURING: [(&str, &str); 4] = [
    ("test cli", "lengths::"),
    ("test cli", "reasons::"),
    ("test cli", "stalls::"),
    ("test load", ""),
];

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
    servers::with_rocksdb(&mut cargo);
    println!("\n$ {}", steps::shown(&cargo));
    let mut programs = programs(&steps::output(&mut cargo)?);
    programs.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    if programs.is_empty() {
        return Err(StepFailure::Found("cargo named no program of tests".to_owned()));
    }
    Ok(programs)
}

/// Those that cargo's messages name.
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
    /// Package, kind and name.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.package, self.name)
    }

    /// It, to be run as cargo runs it.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// The names of its tests.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn tests(&self) -> Result<Vec<String>, StepFailure> {
        let list = steps::output(self.command().args(["--list", "--format", "terse"]))?;
        Ok(list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    /// Whether the first stage leaves `test` to the last.
    #[must_use]
    pub fn is_long(&self, test: &str) -> bool {
        self.is_among(&LONG, test)
    }

    /// Whether `test` is not to run beside another program.
    #[must_use]
    pub fn measures(&self, test: &str) -> bool {
        self.is_among(&MEASURING, test)
    }

    fn is_among(&self, list: &[(&str, &str)], test: &str) -> bool {
        list.iter().any(|(program, begin)| self.name == *program && test.starts_with(begin))
    }

    /// Whether `test` may come out otherwise when other drivers are built in.
    #[must_use]
    pub fn depends_on_drivers(&self, test: &str) -> bool {
        match self.package.as_str() {
            "kvdyno-stores" => true,
            "kvdyno" => {
                !self.name.starts_with("test ")
                    || ABOUT_DRIVERS.iter().any(|about| test.starts_with(about))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(package: &str, name: &str) -> Program {
        let (package, name) = (package.to_owned(), name.to_owned());
        Program { package, name, folder: "/w".into(), path: "/w/p".into() }
    }

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

    #[test]
    fn only_what_drivers_may_change_is_run_again() {
        assert!(named("kvdyno-stores", "test sim").depends_on_drivers("any"));
        assert!(named("kvdyno", "bin kvdyno").depends_on_drivers("any"));
        assert!(named("kvdyno", "test cli").depends_on_drivers("documented::each_option"));
        assert!(!named("kvdyno", "test cli").depends_on_drivers("reasons::a_hog"));
        assert!(!named("kvdyno-core", "lib kvdyno_core").depends_on_drivers("any"));
    }

    #[test]
    fn what_is_long_is_left_to_the_last_stage() {
        assert!(named("kvdyno", "test cli").is_long("comparing::a_gate"));
        assert!(named("kvdyno-core", "test ledger_reference").is_long("any"));
        assert!(!named("kvdyno", "test cli").is_long("signals::sigkill"));
        assert!(!named("kvdyno-core", "lib kvdyno_core").is_long("comparing::a_gate"));
        assert!(named("kvdyno", "test cli").measures("reasons::a_hog"));
        assert!(!named("kvdyno", "test cli").measures("signals::sigkill"));
    }

    /// A name that no test has any more would leave a test out, or in, without a word.
    #[test]
    fn tests_that_are_treated_apart_are_there() {
        let exists = |folder: &str, name: &str, test: &str| {
            let folder = steps::root().join(folder);
            let file = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap_or_default();
            let (module, test) = test.rsplit_once("::").unwrap_or(("", test));
            let module = module.replace("::", "/");
            // Tests inside the file that they are of have no file of their own.
            let inside = module.strip_suffix("/tests").unwrap_or(&module);
            let files = [&module, inside].map(|module| format!("{name}/{module}.rs"));
            let files = files.into_iter().chain([format!("{name}.rs")]);
            let text: String = files.map(|path| file(&path)).collect();
            assert!(text.contains(&format!("fn {test}")), "{folder:?} {name} {module} {test}");
        };
        for about in ABOUT_DRIVERS {
            exists("crates/kvdyno/tests", "cli", about);
        }
        for (program, test) in LONG.into_iter().chain(MEASURING) {
            match program {
                "lib kvdyno_report" => exists("crates/report/src", ".", test),
                "lib kvdyno_core" => exists("crates/core/src", ".", test),
                "lib xtask" => exists("xtask/src", ".", test),
                "test cli" | "test verdicts_correct" => {
                    exists("crates/kvdyno/tests", &program["test ".len()..], test);
                }
                "test memory" => exists("crates/stores/tests", "memory", test),
                "test load" => exists("crates/core/tests", "load", "main::"),
                _ => exists("crates/core/tests", &program["test ".len()..], test),
            }
        }
    }
}
