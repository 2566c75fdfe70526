//! The folder of one testbed: configuration, data and logs of all its nodes. It goes away with the
//! testbed; what a killed owner left behind, the next testbed on this machine sweeps up.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::lock::Lock;

/// Name of the file that the owner of a folder holds locked.
const OWNER: &str = "owner.lock";
/// Name of the file that is locked while folders are made and swept up.
const ROOT_LOCK: &str = "root.lock";

/// A testbed's folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    kept: bool,
    _owner: Lock,
}

impl Folder {
    /// Makes a new folder for a testbed of this name, after sweeping up what owners that are gone
    /// have left.
    ///
    /// # Errors
    /// What the system says.
    pub fn make(name: &str) -> io::Result<Folder> {
        let root = root()?;
        let _sole = Lock::wait(&root.join(ROOT_LOCK))?;
        sweep(&root);
        let made = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(&root)?;
        let owner = Lock::wait(&made.path().join(OWNER))?;
        Ok(Folder { path: made.keep(), kept: false, _owner: owner })
    }

    /// Uses a folder of the user's, with the data that are in it, and leaves it there.
    ///
    /// # Errors
    /// What the system says, or that another testbed uses the folder.
    pub fn kept(path: &Path) -> io::Result<Folder> {
        fs::create_dir_all(path)?;
        let path = path.canonicalize()?;
        let owner = Lock::attempt(&path.join(OWNER))?
            .ok_or_else(|| io::Error::other("another testbed uses it"))?;
        Ok(Folder { path, kept: true, _owner: owner })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            remove(&self.path);
        }
    }
}

/// Where the testbeds of this user have their folders.
///
/// # Errors
/// If it is not there and cannot be made.
pub(crate) fn root() -> io::Result<PathBuf> {
    // SAFETY: geteuid takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    let root = std::env::temp_dir().join(format!("kvdyno-testbeds-{user}"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
    Ok(root)
}

/// The folders of all testbeds that are up, by their owners' locks.
///
/// # Errors
/// If the folders cannot be listed.
pub fn living() -> io::Result<Vec<PathBuf>> {
    let root = root()?;
    let _sole = Lock::wait(&root.join(ROOT_LOCK))?;
    sweep(&root);
    let mut found: Vec<PathBuf> = owned(&root).collect();
    found.sort();
    Ok(found)
}

/// Removes every folder whose owner is gone. What cannot be removed now is left to the next sweep.
fn sweep(root: &Path) {
    for folder in owned(root) {
        if let Ok(Some(_ours)) = Lock::attempt(&folder.join(OWNER)) {
            remove(&folder);
        }
    }
}

fn owned(root: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join(OWNER).exists())
}

/// A server that is just ending may still write: the second attempt finds it gone.
fn remove(folder: &Path) {
    for _ in 0..50 {
        match fs::remove_dir_all(folder) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_without_an_owner_are_swept_up() {
        let mine = Folder::make("mine").unwrap();
        let left = Folder::make("left").unwrap();
        let path = left.path().to_owned();
        // As if the owner had been killed: the lock is gone, the folder is not.
        let Folder { _owner, .. } = &left;
        let copy = path.with_file_name(format!("left-behind-{}", std::process::id()));
        fs::create_dir(&copy).unwrap();
        fs::write(copy.join(OWNER), "").unwrap();
        fs::write(copy.join("data"), "x").unwrap();
        let next = Folder::make("next").unwrap();
        assert!(!copy.exists());
        assert!(mine.path().exists() && left.path().exists());
        drop(next);
        drop(left);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_of_the_users_stays_and_has_one_owner() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("data");
        let first = Folder::kept(&path).unwrap();
        let error = Folder::kept(&path).unwrap_err().to_string();
        assert_eq!(error, "another testbed uses it");
        drop(first);
        assert!(path.exists());
        Folder::kept(&path).unwrap();
    }
}
