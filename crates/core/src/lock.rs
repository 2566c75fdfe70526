//! File locks: one living process holds a lock, and no other can take it. The kernel releases a lock when its process
//! ends, however it ends, so nothing can be left locked.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// A held lock on a file; released on drop. The file stays: removing it would let two processes lock two files of the
/// same name.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until this process has the lock. Makes the file if it is not there.
    ///
    /// # Errors
    /// The system's error about the file.
    pub fn wait(path: &Path) -> io::Result<Lock> {
        let file = open(path)?;
        lock(&file, FlockOperation::LockExclusive)?;
        Ok(Lock { _file: file })
    }

    /// Takes the lock if nobody holds it; `None` if somebody does.
    ///
    /// # Errors
    /// The system's error about the file; a lock that somebody holds is not an error.
    pub fn attempt(path: &Path) -> io::Result<Option<Lock>> {
        let file = open(path)?;
        match lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

fn lock(file: &File, how: FlockOperation) -> io::Result<()> {
    Ok(rustix::io::retry_on_intr(|| flock(file, how))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_and_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = Lock::attempt(&path).unwrap().unwrap();
        assert!(Lock::attempt(&path).unwrap().is_none());
        drop(held);
        assert!(Lock::attempt(&path).unwrap().is_some());
        drop(Lock::wait(&path).unwrap());
    }
}
