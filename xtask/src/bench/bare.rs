//! The floor under a server over loopback: `crates/stores/benches/wire_bare.rs`, built once and run
//! as a program, so that nothing of cargo's own runs beside it.

use std::path::PathBuf;

use serde_json::Value;

use super::load::{CONNECTIONS, Load, Mix, RECORDS};
use super::target::Target;
use crate::steps::{self, StepFailure};

/// The built program.
pub(super) struct Bare(PathBuf);

impl Bare {
    /// Builds it.
    pub(super) fn build() -> Result<Bare, StepFailure> {
        let mut cargo = steps::cargo();
        cargo.args([
            "bench",
            "--profile",
            "dist",
            "--no-run",
            "--message-format=json",
            "--package",
            "kvdyno-stores",
        ]);
        let messages = steps::output(cargo.args(["--bench", "wire_bare"]))?;
        let path = messages.lines().find_map(executable);
        path.map(Bare)
            .ok_or_else(|| StepFailure::Found("cargo names no bench wire_bare".to_owned()))
    }

    /// Writes the records that it will read.
    pub(super) fn fill(&self, target: &Target, protocol: &str) -> Result<(), StepFailure> {
        self.run(target, protocol, (16, "fill", RECORDS)).map(drop)
    }

    /// Carries the load; processor time for each operation, µs.
    pub(super) fn cpu_us(
        &self,
        target: &Target,
        protocol: &str,
        load: &Load,
    ) -> Result<f64, StepFailure> {
        let mix = match load.mix {
            Mix::Get => "get",
            Mix::Half => "half",
        };
        self.run(target, protocol, (load.pipeline, mix, load.requests))
    }

    fn run(
        &self,
        target: &Target,
        protocol: &str,
        (pipeline, mix, requests): (u64, &str, u64),
    ) -> Result<f64, StepFailure> {
        let mut command = target.client(&self.0);
        command.args([protocol, &target.address().to_string()]);
        command.args([RECORDS, CONNECTIONS, pipeline].map(|number| number.to_string()));
        let said = steps::output(command.args([mix, &requests.to_string()]))?;
        let time = said.lines().find_map(|line| line.strip_prefix("CPU ns per operation: "));
        let ns: Option<f64> = time.and_then(|time| time.parse().ok());
        ns.map(|ns| ns / 1e3)
            .ok_or_else(|| StepFailure::Found("the bare loop did not tell its time".to_owned()))
    }
}

/// The program that a message of cargo's tells of, if it is the one wanted.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let ours = message["target"]["name"] == "wire_bare";
    message["executable"].as_str().filter(|_| ours).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_cargos_messages() {
        let of = |name: &str, executable: &str| {
            format!(r#"{{"target": {{"name": "{name}"}}, "executable": {executable}}}"#)
        };
        assert_eq!(executable(&of("wire_bare", r#""/x/y""#)), Some(PathBuf::from("/x/y")));
        assert_eq!(executable(&of("wire_bare", "null")), None);
        assert_eq!(executable(&of("engine_bare", r#""/x/y""#)), None);
        assert_eq!(executable("   Compiling"), None);
    }
}
