//! The exit codes that kvdyno promises (docs/RESULTS.md), and errors that carry one.

use std::fmt;

/// How kvdyno ends. The numbers of 64 and above are those of sysexits(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Everything was done and every gate passed.
    Done = 0,
    /// A claim was refuted, data was lost, a read was wrong, or a gate failed.
    Failed = 1,
    /// The measurement is invalid, or a question could not be decided.
    Undecided = 2,
    /// The command line, a suite file or a result file is wrong.
    Usage = 64,
    /// The store cannot be reached or cannot do what is asked.
    Unavailable = 69,
    /// A fault of kvdyno's own, or of the machine that it runs on.
    Internal = 70,
    /// Stopped by the user.
    Interrupted = 130,
}

/// Why kvdyno ends without having done its work: one line for the user.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    line: String,
}

impl Failure {
    /// The command line or a file that the user wrote is wrong.
    pub fn usage(line: impl fmt::Display) -> Self {
        Failure { exit: Exit::Usage, line: line.to_string() }
    }

    /// The store cannot be reached or cannot do what is asked.
    pub fn unavailable(line: impl fmt::Display) -> Self {
        Failure { exit: Exit::Unavailable, line: line.to_string() }
    }

    /// The user stopped it before there was anything to keep.
    pub fn interrupted() -> Self {
        Failure { exit: Exit::Interrupted, line: "interrupted".to_owned() }
    }

    /// A fault of kvdyno's own or of the machine.
    pub fn internal(line: impl fmt::Display) -> Self {
        Failure { exit: Exit::Internal, line: line.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}
