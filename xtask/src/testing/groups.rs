//! Groups of tests: which run together, and which are left out of the quick run.

/// A group of tests that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Tests that mostly wait, for servers and clients: several run at a time.
    Waiting,
    /// Tests of figures that another test would disturb: each runs alone.
    Measuring,
    /// Parsers fed with mutated inputs: they only compute.
    MutatedInputs,
}

/// Tests that measure, by program and begin of name.
pub(super) const MEASURING: [(&str, &str); 4] = [
    ("kvdyno test it", "cli::lengths::"),
    ("kvdyno test it", "cli::reasons::"),
    ("kvdyno test it", "cli::stalls::"),
    ("kvdyno-core test it", "load::"),
];

/// Tests that take too long for the quick run, by program and begin of name.
pub(super) const LONG: [(&str, &str); 24] = [
    ("kvdyno test it", "cli::advice::"),
    ("kvdyno test it", "cli::capacity::"),
    ("kvdyno test it", "cli::comparing::"),
    ("kvdyno test it", "cli::elsewhere::every_driver"),
    ("kvdyno test it", "cli::events::trials_of_a_search"),
    ("kvdyno test it", "cli::hostile::"),
    ("kvdyno test it", "cli::inputs::a_server_of_another_protocol"),
    ("kvdyno test it", "cli::lengths::"),
    ("kvdyno test it", "cli::options::lists_and_checks"),
    ("kvdyno test it", "cli::options::progress_is_shown"),
    ("kvdyno test it", "cli::reasons::"),
    ("kvdyno test it", "cli::stalls::"),
    ("kvdyno test it", "verdicts_correct::ten_million"),
    ("kvdyno-core lib kvdyno_core", "load::lane::owned::tests::owners_together"),
    ("kvdyno-core lib kvdyno_core", "measure::collector::tests::batches_that_went"),
    ("kvdyno-core lib kvdyno_core", "suite::tests::hostile::mutated"),
    ("kvdyno-core test it", "ledger_reference::"),
    ("kvdyno-core test it", "ledger_stress::"),
    ("kvdyno-core test it", "load::"),
    ("kvdyno-report lib kvdyno_report", "board::steps::"),
    ("kvdyno-report lib kvdyno_report", "board::tests::a_thousand"),
    ("kvdyno-report lib kvdyno_report", "compare::simulation::"),
    ("kvdyno-report lib kvdyno_report", "timeline::growing::"),
    ("xtask lib xtask", "dist::"),
];

/// Programs that are long as a whole.
const LONG_PROGRAMS: [&str; 3] =
    ["kvdyno-core test allocations", "kvdyno-stores test allocations", "kvdyno-stores test memory"];

/// Returns the group of a test.
#[must_use]
pub fn of(program: &str, test: &str) -> Group {
    match program {
        "kvdyno-fuzz test mutated_inputs" => Group::MutatedInputs,
        _ if is_among(&MEASURING, program, test) => Group::Measuring,
        _ => Group::Waiting,
    }
}

/// Returns true if the quick run leaves the test out.
#[must_use]
pub fn is_long(program: &str, test: &str) -> bool {
    LONG_PROGRAMS.contains(&program) || is_among(&LONG, program, test)
}

fn is_among(list: &[(&str, &str)], program: &str, test: &str) -> bool {
    list.iter().any(|(of, begin)| program == *of && test.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::steps;

    #[test]
    fn long_and_measuring_tests_are_known_by_program_and_name() {
        assert!(is_long("kvdyno test it", "cli::comparing::a_gate"));
        assert!(is_long("kvdyno-stores test memory", "any"));
        assert!(!is_long("kvdyno test it", "cli::signals::sigkill"));
        assert!(!is_long("kvdyno-core lib kvdyno_core", "cli::comparing::a_gate"));
        assert_eq!(of("kvdyno test it", "cli::reasons::a_hog"), Group::Measuring);
        assert_eq!(of("kvdyno test it", "cli::signals::sigkill"), Group::Waiting);
        assert_eq!(of("kvdyno-fuzz test mutated_inputs", "redis_reply"), Group::MutatedInputs);
    }

    /// A name that no test has any more would silently leave a test out, or in.
    #[test]
    fn tests_that_are_treated_apart_are_there() {
        for (program, test) in LONG.into_iter().chain(MEASURING) {
            let mut words = program.split(' ');
            let package = words.next().unwrap().trim_start_matches("kvdyno-");
            let kind = words.next().unwrap();
            let folder = if kind == "lib" { "src" } else { "tests/it" };
            let home = if package == "xtask" { "" } else { "crates" };
            let folder = steps::root().join(home).join(package).join(folder);
            assert!(is_there(&folder, test), "{program} {test}");
        }
    }

    /// Returns true if a file of the module of `test` has a function whose name begins as it does. Tests inside the file
    /// that they are of have no file of their own.
    fn is_there(folder: &Path, test: &str) -> bool {
        let (module, test) = test.rsplit_once("::").unwrap_or(("", test));
        let module = module.replace("::", "/");
        let inside = module.strip_suffix("/tests").unwrap_or(&module);
        let files = [&module[..], inside]
            .map(|module| [format!("{module}.rs"), format!("{module}/mod.rs")]);
        let text = |path: &String| std::fs::read_to_string(folder.join(path)).unwrap_or_default();
        files.as_flattened().iter().any(|path| text(path).contains(&format!("fn {test}")))
    }
}
