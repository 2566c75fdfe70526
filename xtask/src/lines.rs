//! `cargo xtask lines`: counts the lines of production code by folder, so that a change which was to make the code smaller can
//! be held to it. Blank lines, comments and tests do not count.

use std::collections::BTreeMap;
use std::process::Command;

use crate::steps::{self, StepFailure, root};

/// Begin of the tests that stand at the end of a source.
const TESTS: &str = "#[cfg(test)]\nmod tests {";

/// Prints the lines of each folder of the workspace, and their sum.
///
/// # Errors
/// If git cannot list the files, or one cannot be read.
pub fn lines() -> Result<(), StepFailure> {
    let mut by_folder: BTreeMap<String, usize> = BTreeMap::new();
    let list = steps::output(Command::new("git").args(["ls-files", "*.rs"]).current_dir(root()))?;
    for file in list.lines().filter(|file| is_production(file)) {
        let path = root().join(file);
        let text = std::fs::read_to_string(&path).map_err(StepFailure::file(&path))?;
        *by_folder.entry(folder_of(file)).or_default() += count(&text);
    }
    for (folder, count) in &by_folder {
        println!("{count:>7}  {folder}");
    }
    println!("{:>7}  in all", by_folder.values().sum::<usize>());
    Ok(())
}

/// Returns true for a source whose code is not of tests alone.
fn is_production(file: &str) -> bool {
    let is_of_tests = |part: &str| part == "tests" || part == "tests.rs";
    file.split('/').any(|part| part == "src") && !file.split('/').any(is_of_tests)
}

/// Returns the folder that a file is counted under: that of its crate, and one level of `src`.
fn folder_of(file: &str) -> String {
    let parts: Vec<&str> = file.split('/').collect();
    let src = parts.iter().position(|part| *part == "src").unwrap_or(0);
    let depth = (src + 2).min(parts.len() - 1);
    parts[..depth].join("/")
}

/// Counts the lines of a source that are neither blank, nor comments, nor tests.
fn count(text: &str) -> usize {
    let production = text.split(TESTS).next().unwrap_or_default();
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    production.lines().map(str::trim).filter(is_code).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_production_counts() {
        let text = "//! Why.\n\n/// What.\nfn a() {\n    // Why.\n    b();\n}\n\n";
        assert_eq!(count(text), 3);
        assert_eq!(count(&format!("{text}{TESTS}\n    fn t() {{}}\n}}\n")), 3);
    }

    #[test]
    fn files_of_tests_are_left_out_and_folders_are_those_of_a_crate() {
        assert!(is_production("crates/core/src/load/lane.rs"));
        for file in ["crates/core/tests/it/main.rs", "crates/core/src/load/tests.rs", "build.rs"] {
            assert!(!is_production(file), "{file}");
        }
        assert_eq!(folder_of("crates/core/src/load/lane/dealt.rs"), "crates/core/src/load");
        assert_eq!(folder_of("crates/core/src/cost.rs"), "crates/core/src");
    }
}
