//! Advice for options that kvdyno does not have at this place: those of other load generators, typed from habit, and
//! those of another fault. The message of the error names the option of kvdyno instead, or the fault that has it.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use kvdyno_core::suite::builtin;
use kvdyno_core::workload::fault::FaultKind;

/// An option of another tool.
struct Foreign {
    /// The option as that tool spells it.
    spelling: &'static str,
    /// Tools that have it.
    of: &'static str,
    /// The option of kvdyno instead, with an example value.
    here: &'static str,
}

/// Sources: `memtier_benchmark --help` 2.1, `redis-benchmark --help` 7.0, wrk2's and oha's readme.
const FOREIGN: [Foreign; 13] = [
    Foreign { spelling: "--ratio", of: "memtier_benchmark", here: "--mix update=10,get=90" },
    Foreign { spelling: "--test-time", of: "memtier_benchmark", here: "--duration 60s" },
    Foreign { spelling: "--data-size", of: "memtier_benchmark", here: "--value 100B" },
    Foreign { spelling: "--data-size-range", of: "memtier_benchmark", here: "--value 100B..1KiB" },
    Foreign { spelling: "--key-pattern", of: "memtier_benchmark", here: "--keys zipfian" },
    Foreign { spelling: "--key-maximum", of: "memtier_benchmark", here: "--records 1M" },
    Foreign { spelling: "--rate-limiting", of: "memtier_benchmark", here: "--rate 5k/s" },
    Foreign { spelling: "--run-count", of: "memtier_benchmark", here: "--trials 3" },
    Foreign { spelling: "--server", of: "memtier_benchmark", here: "--store redis://HOST:PORT" },
    Foreign { spelling: "-P", of: "redis-benchmark", here: "--pipeline 16" },
    Foreign { spelling: "-R", of: "wrk2", here: "--rate 5k/s" },
    Foreign { spelling: "-z", of: "oha", here: "--duration 60s" },
    Foreign { spelling: "--connections", of: "wrk", here: "--clients 50" },
];

/// Returns the end of the error's line for what `error` is about: of an unknown option the option to use here instead, of a
/// suite's name in the place of a command the commands that take it; `None` if no tool and no fault has that option.
pub fn hint(error: &clap::Error) -> Option<String> {
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) {
        let name = builtin(typed)?.name;
        return Some(format!(
            "; `kvdyno run {name}` runs this suite, `kvdyno suites show {name}` prints it"
        ));
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let spelling = typed.split('=').next().unwrap_or_default();
    let of_fault =
        FaultKind::fields().find(|(field, _)| spelling.strip_prefix("--") == Some(field.key));
    if let Some((_, kind)) = of_fault {
        return Some(format!("; it is for `{}`", kind.word));
    }
    let known = FOREIGN.iter().find(|foreign| foreign.spelling == spelling)?;
    Some(format!("; {} of {} is {} here", known.spelling, known.of, known.here))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn a_suite_in_the_place_of_a_command_is_answered_with_the_commands_that_take_it() {
        for line in ["kvdyno suites aws-2014", "kvdyno aws-2014"] {
            let error = Arguments::try_parse_from(line.split(' ')).expect_err(line);
            let hint = hint(&error).expect(line);
            assert!(hint.contains("`kvdyno suites show aws-2014` prints it"), "{hint}");
        }
    }

    fn parsed(line: &str) -> Result<Arguments, clap::Error> {
        let line = format!("kvdyno run --store map: --records 10 {line}");
        Arguments::try_parse_from(line.split(' '))
    }

    #[test]
    fn each_is_no_option_here_and_what_is_named_in_its_place_is_one() {
        for Foreign { spelling, of, here } in &FOREIGN {
            for line in [format!("{spelling} 5"), format!("{spelling}=5")] {
                let hint = parsed(&line).err().and_then(|error| hint(&error));
                assert_eq!(hint, Some(format!("; {spelling} of {of} is {here} here")), "{line}");
            }
            // The store is named already.
            let here = here.replace("--records 1M", "").replace("--store redis://HOST:PORT", "");
            assert!(parsed(here.trim()).is_ok() || here.is_empty(), "{here}");
        }
        let own = parsed("--no-such-option").expect_err("it is unknown");
        assert_eq!(hint(&own), None);
    }
}
