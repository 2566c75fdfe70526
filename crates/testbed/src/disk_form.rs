//! The kind of disk that each node of a testbed gets: one in memory, which can be filled, or a real file system,
//! whose power can be cut as well. It is a word of the testbed's settings, `disk=…`.

use kvdyno_core::ground::hints::hint;
use kvdyno_core::ground::units::{self, format_bytes};

/// Bytes of a file system whose size is not given. Its image is sparse: it takes what is written.
const USUAL: u64 = 1 << 30;

/// Forms of the word for a disk.
pub(crate) const SHOWN: &str = "SIZE|ext4[:SIZE]|xfs[:SIZE]";

/// A file system of the kernel's that can be shut down without its journal being written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

impl FileSystem {
    /// Every file system.
    pub const ALL: [FileSystem; 2] = [FileSystem::Ext4, FileSystem::Xfs];

    /// Returns its name, as mount(8) has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
        }
    }

    /// Returns the size of the smallest that its tool makes, bytes.
    fn least(self) -> u64 {
        match self {
            FileSystem::Ext4 => 16 << 20,
            FileSystem::Xfs => 300 << 20,
        }
    }
}

/// A disk of a node's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskForm {
    /// In memory, of so many bytes.
    Memory(u64),
    /// A real file system of so many bytes.
    Real(FileSystem, u64),
}

impl DiskForm {
    /// Reads `64MiB`, `ext4` or `xfs:2GiB`.
    ///
    /// # Errors
    /// Advice: what to write instead.
    pub fn parse(text: &str) -> Result<DiskForm, String> {
        let size = |text: &str| units::parse_bytes(text).map_err(|error| error.hint());
        let (word, bytes) = match text.split_once(':') {
            Some((word, bytes)) => (word, Some(size(bytes)?)),
            None => (text, None),
        };
        let Some(system) = FileSystem::ALL.into_iter().find(|system| system.name() == word) else {
            return match word.starts_with(|first: char| first.is_ascii_digit()) && bytes.is_none() {
                true => size(text).map(DiskForm::Memory),
                false => {
                    let names = FileSystem::ALL.map(FileSystem::name);
                    Err(format!("{}; a size alone is a disk in memory", hint(word, &names)))
                }
            };
        };
        let (bytes, least) = (bytes.unwrap_or(USUAL), system.least());
        match bytes >= least {
            true => Ok(DiskForm::Real(system, bytes)),
            false => Err(format!("{word} takes {} at least", format_bytes(least))),
        }
    }

    /// Returns its bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            DiskForm::Memory(bytes) | DiskForm::Real(_, bytes) => bytes,
        }
    }

    /// Returns the name of the file system on it.
    #[must_use]
    pub fn system(self) -> &'static str {
        match self {
            DiskForm::Memory(_) => "tmpfs",
            DiskForm::Real(system, _) => system.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_a_size_or_a_file_system() {
        let of = DiskForm::parse;
        assert_eq!(of("64MiB"), Ok(DiskForm::Memory(64 << 20)));
        assert_eq!(of("ext4"), Ok(DiskForm::Real(FileSystem::Ext4, 1 << 30)));
        assert_eq!(of("xfs:2GiB"), Ok(DiskForm::Real(FileSystem::Xfs, 2 << 30)));
        assert_eq!((of("ext4").unwrap().system(), of("1MB").unwrap().bytes()), ("ext4", 1_000_000));
        assert!(of("xfs:64MiB").unwrap_err().contains("300MiB at least"));
        assert!(of("ext3").unwrap_err().contains("did you mean `ext4`?"));
        for wrong in ["ext4:", "ext4:lots", "64MiB:2", "9lots", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
