//! `cargo xtask readme`: runs the commands of README.md, so that it stays true. Each ```sh block with a `$ kvdyno …`
//! or `$ cargo …` line is run whole as one script; other lines are output. Throwaway servers stand for those that it
//! names at their usual ports.

use std::process::Command;

use kvdyno_testbed::Deployment;

use crate::servers;
use crate::steps::{self, StepFailure, root};

/// Addresses of Redis and Memcached in README.md.
const REDIS: &str = "127.0.0.1:6379";
const MEMCACHED: &str = "127.0.0.1:11211";

/// Path of results in README.md: those of an earlier run would be in the way.
const RESULTS: &str = "target/both";

/// Begin of each script. A measurement that is invalid (exit code 2) tells of this machine, not of the command.
const BEFORE: &str = r#"set -euo pipefail
kvdyno() { command kvdyno "$@" || [ $? = 2 ]; }
cargo() { command cargo "$@" || [ $? = 2 ]; }
"#;

/// Builds the release binary and runs every block.
///
/// # Errors
/// If a command fails.
pub fn run() -> Result<(), StepFailure> {
    let path = root().join("README.md");
    let text = std::fs::read_to_string(&path).map_err(StepFailure::file(&path))?;
    let scripts = scripts(&text);
    if scripts.is_empty() {
        return Err(StepFailure::Found("README.md shows no command to run".to_owned()));
    }
    servers::ensure_all()?;
    let results = root().join(RESULTS);
    if results.exists() {
        std::fs::remove_dir_all(&results).map_err(StepFailure::file(&results))?;
    }
    steps::run(steps::cargo().args(["build", "--release", "--package", "kvdyno"]))?;
    let redis = Deployment::up("redis")?;
    let memcached = Deployment::up("memcached")?;
    let search = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = vec![root().join("target/release")];
    folders.extend(std::env::split_paths(&search));
    let search = std::env::join_paths(folders).map_err(|e| StepFailure::Found(e.to_string()))?;
    let address = |testbed: &Deployment| testbed.site().nodes()[0].server.address().to_string();
    for script in scripts {
        let script =
            script.replace(REDIS, &address(&redis)).replace(MEMCACHED, &address(&memcached));
        let script = format!("{BEFORE}{script}");
        let mut bash = Command::new("bash");
        steps::by_developer(&mut bash);
        steps::run(bash.args(["-c", &script]).env("PATH", &search).current_dir(root()))?;
    }
    Ok(())
}

/// Returns the commands of each block that is to be run.
fn scripts(page: &str) -> Vec<String> {
    let mut scripts = Vec::new();
    let mut block: Option<Vec<&str>> = None;
    for line in page.lines() {
        match (&mut block, line) {
            (None, "```sh") => block = Some(Vec::new()),
            (Some(lines), "```") => {
                scripts.extend(script(lines));
                block = None;
            }
            (Some(lines), line) => lines.push(line),
            (None, _) => {}
        }
    }
    scripts
}

fn script(block: &[&str]) -> Option<String> {
    let mut commands = Vec::new();
    let mut goes_on = false;
    for line in block {
        let command = line.strip_prefix("$ ").or(goes_on.then_some(line));
        goes_on = command.is_some_and(|command| command.ends_with('\\'));
        commands.extend(command);
    }
    let ours = |command: &&str| command.starts_with("kvdyno ") || command.starts_with("cargo ");
    // The chores run this chore; it would not end.
    let chore = |command: &&str| command.starts_with("cargo xtask");
    let runs = commands.iter().any(ours) && !commands.iter().any(chore);
    runs.then(|| commands.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_with_our_commands_are_run_whole() {
        let page = "# A\n```sh\n$ cd x\n$ kvdyno run \\\n    --quiet\noutput\n```\n\
                    ```toml\n$ kvdyno no\n```\n```sh\n$ ls\n```\n```sh\n$ cargo xtask test\n```\n\
                    ```sh\n$ cargo run\n```\n";
        assert_eq!(scripts(page), ["cd x\nkvdyno run \\\n    --quiet", "cargo run"]);
    }
}
