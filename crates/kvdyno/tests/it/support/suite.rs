//! Suites of tests, told by what is particular to each: `Suite::of(2_000).load().phase("mix",
//! "get = 50, update = 50").set("duration", "3s")`. Each file of a suite that a test writes comes from here.

use std::fmt::{Debug, Display, Formatter, Result};
use std::path::Path;

/// Head of all suites of tests: nothing is measured before the test's own phases.
const HEAD: &str = "name = \"proof\"\nwarmup = false\n";

/// The text of a suite, without its head.
#[derive(Clone)]
pub struct Suite(String);

impl Suite {
    /// Begins a suite over so many records.
    pub fn of(records: u64) -> Suite {
        Suite(String::new()).set("records", records)
    }

    /// Makes a suite that inserts each record once, so that nothing hides a write that is gone.
    pub fn inserts(records: u64) -> Suite {
        Suite::of(records).phase("insert", "insert").set("requests", "records")
    }

    /// Sets a key of what was begun last: the suite, a phase, a fault or a claim. Text is quoted.
    pub fn set(self, key: &str, value: impl Debug) -> Suite {
        self.line(&format!("{key} = {value:?}"))
    }

    /// Adds a line as it is, for values that are tables.
    pub fn line(mut self, line: &str) -> Suite {
        self.0.push_str(line);
        self.0.push('\n');
        self
    }

    /// Begins a phase. `mix`: one kind of operation, or several with their shares.
    pub fn phase(self, name: &str, mix: &str) -> Suite {
        let phase = self.line("[[phase]]").set("name", name);
        if mix.contains('=') {
            phase.line(&format!("mix = {{ {mix} }}"))
        } else {
            phase.set("mix", mix)
        }
    }

    /// Begins a phase that puts all records there.
    pub fn load(self) -> Suite {
        self.line("[[phase]]").set("name", "load").set("load", true)
    }

    /// Begins a fault of the last phase.
    pub fn fault(self, act: &str) -> Suite {
        self.line("[[phase.fault]]").set("do", act)
    }

    /// Begins a claim on the whole run.
    pub fn claim(self, says: &str, holds: impl Debug) -> Suite {
        self.line("[[claim]]").set("says", says).set("holds", holds)
    }

    /// Begins a claim on the last phase.
    pub fn phase_claim(self, says: &str, holds: impl Debug) -> Suite {
        self.line("[[phase.claim]]").set("says", says).set("holds", holds)
    }
}

impl Display for Suite {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.0)
    }
}

/// Writes a suite, or the text of one, into a file.
pub fn write(path: &Path, suite: impl Display) {
    std::fs::write(path, format!("{HEAD}{suite}")).unwrap();
}
