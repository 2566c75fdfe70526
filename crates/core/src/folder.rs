//! Folders that go away with their owner: one for the files of a testbed's nodes, another for an engine without a
//! folder of its own. Folders that a killed owner left behind are swept up by the next one on this machine.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::lock::Lock;

/// Name of the file that the owner of a folder holds locked.
const OWNER: &str = "owner.lock";
/// Name of the file that is locked while folders are made and swept up.
const ROOT_LOCK: &str = "root.lock";

/// Parent of one user's folders of one kind.
#[derive(Clone, Debug)]
pub struct FolderRoot(PathBuf);

impl FolderRoot {
    /// Opens the parent of this user's folders called `kind` below `parent`, such as `/var/tmp`; makes it if need be.
    ///
    /// # Errors
    /// If it is not there and cannot be made, or belongs to somebody else.
    pub fn below(parent: &Path, kind: &str) -> io::Result<FolderRoot> {
        let user = rustix::process::geteuid().as_raw();
        let root = parent.join(format!("kvdyno-{kind}-{user}"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
        // Anybody may make a folder of this name where all may write.
        let found = fs::symlink_metadata(&root)?;
        if !found.is_dir() || found.uid() != user {
            let text = format!("{} belongs to somebody else", root.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(FolderRoot(root))
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes a new folder whose name begins with `name`, after sweeping up the folders of owners that are gone.
    ///
    /// # Errors
    /// The system's error.
    pub fn make(&self, name: &str) -> io::Result<OwnedFolder> {
        let _sole = Lock::wait(&self.0.join(ROOT_LOCK))?;
        self.sweep();
        let made = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(&self.0)?;
        let owner = Lock::wait(&made.path().join(OWNER))?;
        Ok(OwnedFolder { path: made.keep(), kept: false, _owner: owner })
    }

    /// Returns the folders whose owners live, sorted.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn living(&self) -> io::Result<Vec<PathBuf>> {
        let _sole = Lock::wait(&self.0.join(ROOT_LOCK))?;
        self.sweep();
        let mut found: Vec<PathBuf> = self.owned().collect();
        found.sort();
        Ok(found)
    }

    /// Removes every folder whose owner is gone. A folder that cannot be removed now is left to the next sweep.
    fn sweep(&self) {
        for folder in self.owned() {
            if let Ok(Some(_ours)) = Lock::attempt(&folder.join(OWNER)) {
                remove(&folder);
            }
        }
    }

    fn owned(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.join(OWNER).exists())
    }
}

/// A folder with one living owner.
#[derive(Debug)]
pub struct OwnedFolder {
    path: PathBuf,
    kept: bool,
    _owner: Lock,
}

impl OwnedFolder {
    /// Uses a folder of the user's, with the data that are in it, and leaves it there.
    ///
    /// # Errors
    /// The system's error, or one that tells that another testbed uses the folder.
    pub fn kept(path: &Path) -> io::Result<OwnedFolder> {
        fs::create_dir_all(path)?;
        let path = path.canonicalize()?;
        let owner = Lock::attempt(&path.join(OWNER))?
            .ok_or_else(|| io::Error::other("another testbed uses it"))?;
        Ok(OwnedFolder { path, kept: true, _owner: owner })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnedFolder {
    fn drop(&mut self) {
        if !self.kept {
            remove(&self.path);
        }
    }
}

/// Removes a folder. It tries again, up to 50 times 20 ms, since a server that is just ending may still write into it.
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
        let place = tempfile::tempdir().unwrap();
        let root = FolderRoot::below(place.path(), "tests").unwrap();
        let mine = root.make("mine").unwrap();
        let left = root.make("left").unwrap();
        let path = left.path().to_owned();
        // As if the owner had been killed: the lock is gone, the folder is not.
        let gone = root.path().join("left-behind");
        let strange = root.path().join("strange");
        for folder in [&gone, &strange] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("data"), "x").unwrap();
        }
        fs::write(gone.join(OWNER), "").unwrap();
        let next = root.make("next").unwrap();
        assert!(!gone.exists());
        assert!(strange.exists(), "it is not surely kvdyno's");
        assert!(mine.path().exists() && left.path().exists());
        assert_eq!(root.living().unwrap().len(), 3);
        drop((mine, next, left));
        assert!(!path.exists());
    }

    #[test]
    fn a_root_of_somebody_else_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let name = place.path().join(format!("kvdyno-tests-{user}"));
        std::os::unix::fs::symlink("/var/tmp", name).unwrap();
        let error = FolderRoot::below(place.path(), "tests").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_folder_of_the_users_stays_and_has_one_owner() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("data");
        let first = OwnedFolder::kept(&path).unwrap();
        let error = OwnedFolder::kept(&path).unwrap_err().to_string();
        assert_eq!(error, "another testbed uses it");
        drop(first);
        assert!(path.exists());
        OwnedFolder::kept(&path).unwrap();
    }
}
