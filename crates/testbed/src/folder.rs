//! The folders of this user's testbeds: configuration, data and logs of all their nodes.

use std::io;
use std::path::PathBuf;

use kvdyno_core::folder::{FolderRoot, OwnedFolder};

/// Returns the root of them all.
///
/// # Errors
/// If it is not there and cannot be made.
pub(crate) fn root() -> io::Result<FolderRoot> {
    FolderRoot::below(&std::env::temp_dir(), "testbeds")
}

/// Makes a new folder for a testbed of this name.
///
/// # Errors
/// The system's error.
pub(crate) fn make(name: &str) -> io::Result<OwnedFolder> {
    root()?.make(name)
}

/// Returns the folders of all testbeds that are up, by their owners' locks.
///
/// # Errors
/// If the folders cannot be listed.
pub(crate) fn living() -> io::Result<Vec<PathBuf>> {
    root()?.living()
}
