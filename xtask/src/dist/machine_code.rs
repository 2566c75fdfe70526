//! Needs of a binary: its shared libraries, and how new their symbols are.

use std::path::Path;
use std::process::Command;

use crate::steps::{self, StepFailure};

/// Libraries that every Linux with glibc has: those that a Python wheel may need by `manylinux`.
const EVERYWHERE: [&str; 8] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// Needs of a binary.
#[derive(Debug, PartialEq, Eq)]
pub struct MachineCode {
    /// Shared libraries.
    pub libraries: Vec<String>,
    /// Newest version of glibc that one of its symbols has.
    pub newest_glibc: Option<(u32, u32)>,
}

impl MachineCode {
    /// Reads it off a binary, for whatever processor that is.
    ///
    /// # Errors
    /// If `readelf` cannot.
    pub fn read(binary: &Path) -> Result<MachineCode, StepFailure> {
        let mut readelf = Command::new("readelf");
        readelf.args(["--dynamic", "--version-info", "--wide"]).arg(binary).env("LC_ALL", "C");
        Ok(MachineCode::parse(&steps::output(&mut readelf)?))
    }

    fn parse(listed: &str) -> MachineCode {
        let mut libraries = Vec::new();
        let mut newest_glibc = None;
        for line in listed.lines() {
            if let Some((_, library)) = line.split_once("(NEEDED)") {
                let name = library.split(['[', ']']).nth(1).unwrap_or_default();
                libraries.push(name.to_owned());
            } else if let Some((_, version)) = line.split_once("Name: GLIBC_") {
                newest_glibc = newest_glibc.max(number(version));
            }
        }
        MachineCode { libraries, newest_glibc }
    }

    /// Returns why it does not run wherever glibc is as old as `oldest`, if so.
    pub fn not_portable(&self, oldest: (u32, u32)) -> Option<String> {
        let foreign = self.libraries.iter().find(|library| !EVERYWHERE.contains(&library.as_str()));
        if let Some(library) = foreign {
            return Some(format!("it needs {library}, which not every machine has"));
        }
        let (major, minor) = self.newest_glibc.filter(|newest| *newest > oldest)?;
        Some(format!("it needs glibc {major}.{minor}, newer than {}.{}", oldest.0, oldest.1))
    }
}

/// The version that a text begins with: its first two numbers.
fn number(text: &str) -> Option<(u32, u32)> {
    let word = text.split_whitespace().next()?;
    let mut parts = word.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]
  0x0070:   Name: GLIBC_2.9  Flags: none  Version: 7
  0x0080:   Name: GLIBC_2.17  Flags: none  Version: 14
  0x0090:   Name: GLIBC_2.2.5  Flags: none  Version: 6
  0x0050:   Name: GCC_3.3  Flags: none  Version: 23
";

    #[test]
    fn the_newest_symbol_and_every_library_count() {
        let code = MachineCode::parse(LISTED);
        assert_eq!(code.newest_glibc, Some((2, 17)));
        assert_eq!(code.libraries, ["libc.so.6", "libm.so.6"]);
        assert_eq!(code.not_portable((2, 17)), None);
        let newer = MachineCode::parse(&LISTED.replace("2.17", "2.28"));
        let reason = newer.not_portable((2, 17)).unwrap();
        assert_eq!(reason, "it needs glibc 2.28, newer than 2.17");
        let foreign = MachineCode::parse(&LISTED.replace("libm.so.6", "librocksdb.so.7"));
        assert!(foreign.not_portable((2, 17)).unwrap().contains("librocksdb.so.7"));
    }
}
