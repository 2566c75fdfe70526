//! Shares between the engines in this process where their files lie, and what an acknowledged write survives there.

#[cfg(all(test, feature = "embedded"))]
pub(crate) mod trial;

#[cfg(feature = "embedded")]
use std::fmt;
#[cfg(feature = "embedded")]
use std::io;
use std::path::{Path, PathBuf};
#[cfg(feature = "embedded")]
use std::time::Duration;

use kvdyno_core::folder::{FolderRoot, OwnedFolder};
use kvdyno_core::store::Durability;
#[cfg(feature = "embedded")]
use kvdyno_core::store::{
    Capabilities, Certainty, Consistency, ErrorClass, Profile, Promise, RequestError,
};

use crate::error::StoreError;
#[cfg(feature = "embedded")]
use crate::in_process::PATIENCE;
use crate::url::StoreUrl;

/// Meaning of the option that all engines share.
pub(crate) const DURABILITY_OPTION: &str =
    "what an acknowledged write survives: power, process or none; default power";

/// Advice where there is no room for an engine's files.
const FULL: &str = "its disk is full: make room there, or name a folder on another one";

/// Returns the class of an error that the system gave an engine.
#[cfg(feature = "embedded")]
pub(crate) fn io_class(error: &io::Error) -> ErrorClass {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorClass::Full,
        _ => ErrorClass::Unavailable,
    }
}

/// Returns true if there is no room for as much as the engines write at once.
fn is_disk_full(path: &Path) -> bool {
    const LEAST: u64 = 1 << 20;
    // Some file systems count nothing.
    let full = |disk: rustix::fs::StatVfs| {
        disk.f_blocks > 0 && disk.f_bavail.saturating_mul(disk.f_frsize) < LEAST
    };
    rustix::fs::statvfs(path).is_ok_and(full)
}

/// Levels of engines whose log may stay in memory, be handed to the system, or be synced.
pub(crate) const EVERY_LEVEL: [Durability; 3] =
    [Durability::PowerLoss, Durability::ProcessKill, Durability::None];

/// Words for the option `durability`.
const WORDS: [(&str, Durability); 3] = [
    ("power", Durability::PowerLoss),
    ("process", Durability::ProcessKill),
    ("none", Durability::None),
];

fn word(level: Durability) -> &'static str {
    WORDS.iter().find(|(_, known)| *known == level).map_or("", |(word, _)| word)
}

/// Takes the option `durability`; `offered` are the levels that the engine can keep exactly.
pub(crate) fn take_durability(
    url: &mut StoreUrl,
    offered: &[Durability],
) -> Result<Durability, StoreError> {
    let asked = url.take_choice("durability", &WORDS)?.unwrap_or(Durability::PowerLoss);
    if offered.contains(&asked) {
        return Ok(asked);
    }
    let can: Vec<_> = offered.iter().map(|level| format!("`{}`", word(*level))).collect();
    Err(url.wrong(
        format!("`{}` cannot promise durability `{}`", url.scheme(), word(asked)),
        format!("choose one of {}", can.join(", ")),
    ))
}

/// Returns the profile that all engines have: ordered, with transactions over several records, linearizable because every
/// read sees the last commit.
#[cfg(feature = "embedded")]
pub(crate) fn profile(
    store: &str,
    version: Option<String>,
    durability: Durability,
    settings: &[(String, String)],
) -> Profile {
    Profile {
        store: store.to_owned(),
        version,
        capabilities: Capabilities {
            scan: true,
            batch_get: true,
            batch_put: true,
            ..Capabilities::default()
        },
        durability: Promise::set_up(durability),
        consistency: Promise::set_up(Consistency::Linearizable),
        ttl_precision: Duration::ZERO,
        timeout: PATIENCE,
        settings: settings.to_vec(),
    }
}

/// Folder in which an engine keeps its files; a temporary one goes when this is dropped, so keep it until the engine is
/// closed. That of a killed process goes when the next one is made.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _temporary: Option<OwnedFolder>,
}

impl Folder {
    /// Opens the folder that the URL's path names, made if it is not there; without a path a fresh one that is removed at
    /// the end. Refuses durability `power` where files live in memory; `offered` are the levels that the engine can keep.
    pub(crate) fn open(
        url: &StoreUrl,
        durability: Durability,
        offered: &[Durability],
    ) -> Result<Folder, StoreError> {
        Folder::at(url, url.path(), durability, offered)
    }

    /// Opens a folder that is named elsewhere in the same way; a fresh one if `named` is empty.
    pub(crate) fn at(
        url: &StoreUrl,
        named: &str,
        durability: Durability,
        offered: &[Durability],
    ) -> Result<Folder, StoreError> {
        let (path, temporary) = if named.is_empty() {
            let advice = "free some disk space, or set TMPDIR";
            let folder = FolderRoot::below(&temporary_place(), "engines")
                .and_then(|root| root.make(url.scheme()))
                .map_err(|e| url.cannot_open(e, advice))?;
            // Beside the owner's lock, which is no file of the engine's.
            let data = folder.path().join("data");
            std::fs::create_dir(&data).map_err(|e| url.cannot_open(e, advice))?;
            (data, Some(folder))
        } else {
            std::fs::create_dir_all(named)
                .map_err(|e| url.cannot_open(e, "name a folder that you may write to"))?;
            (PathBuf::from(named), None)
        };
        // LMDB would be killed by the system while it opens its files (SIGBUS); none has room to write.
        if is_disk_full(&path) {
            let problem = format!("less than 1 MiB is left on the disk of {}", path.display());
            return Err(url.cannot_open(problem, FULL));
        }
        if durability == Durability::PowerLoss && in_memory(&path) {
            let weaker: Vec<String> = (offered.iter())
                .filter(|level| **level != Durability::PowerLoss)
                .map(|level| format!(" or ask for `durability={}`", word(*level)))
                .collect();
            return Err(url.wrong(
                format!(
                    "`{}` is on a file system in memory, so no write survives power loss",
                    path.display()
                ),
                format!("name a folder on a disk,{}", weaker.join(",")),
            ));
        }
        Ok(Folder { path, _temporary: temporary })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the error of an engine that did not open its files here; `advice` is for a disk that has room.
    #[cfg(feature = "embedded")]
    pub(crate) fn cannot_open(
        &self,
        url: &StoreUrl,
        problem: impl fmt::Display,
        advice: &str,
    ) -> StoreError {
        url.cannot_open(problem, if is_disk_full(&self.path) { FULL } else { advice })
    }

    /// Returns the error of a request that failed in the engine. Some engines keep to themselves that the disk had no room,
    /// or give up after that and say no more than so: then the disk is asked.
    #[cfg(feature = "embedded")]
    pub(crate) fn request_error(
        &self,
        certainty: Certainty,
        class: ErrorClass,
        message: impl fmt::Display,
    ) -> RequestError {
        if class == ErrorClass::Unavailable && is_disk_full(&self.path) {
            let place = self.path.display();
            let message = format!("no space left on the disk of {place} ({message})");
            return RequestError::new(certainty, ErrorClass::Full, message);
        }
        RequestError::new(certainty, class, message.to_string())
    }

    /// Returns the setting to disclose in a result: the folder's path.
    pub(crate) fn setting(&self) -> (String, String) {
        let kept = if self._temporary.is_some() { " (temporary)" } else { "" };
        ("path".to_owned(), format!("{}{kept}", self.path.display()))
    }
}

/// Returns the folder for temporary ones: `/var/tmp` before `/tmp`. The latter often lies in memory, where a disk is to be
/// measured.
fn temporary_place() -> PathBuf {
    let disk = Path::new("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && disk.is_dir() {
        disk.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// Returns true if the file system there is tmpfs or ramfs (numbers from Linux' `magic.h`).
fn in_memory(path: &Path) -> bool {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    rustix::fs::statfs(path).is_ok_and(|fs| [TMPFS, RAMFS].contains(&(fs.f_type as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> StoreUrl {
        StoreUrl::parse(text).unwrap()
    }

    #[test]
    fn a_temporary_folder_is_removed_and_a_named_one_stays() {
        let folder = Folder::open(&url("x:"), Durability::None, &[]).unwrap();
        let path = folder.path().to_owned();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
        let outer = tempfile::tempdir().unwrap();
        let named = outer.path().join("a/b");
        drop(Folder::open(&url(&format!("x:{}", named.display())), Durability::None, &[]).unwrap());
        assert!(named.is_dir());
    }

    #[test]
    fn a_path_that_cannot_be_a_folder_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!("x:{}", file.path().display());
        let error = Folder::open(&url(&text), Durability::None, &[]).unwrap_err();
        assert!(!error.is_usage() && error.to_string().contains("you may write to"), "{error}");
    }

    #[test]
    fn memory_does_not_survive_power_loss() {
        let shm = Path::new("/dev/shm");
        if !in_memory(shm) {
            return;
        }
        let place = tempfile::tempdir_in(shm).unwrap();
        let text = format!("x:{}", place.path().display());
        let offered = [Durability::PowerLoss, Durability::None];
        let error =
            Folder::open(&url(&text), Durability::PowerLoss, &offered).unwrap_err().to_string();
        assert!(
            error.ends_with("name a folder on a disk, or ask for `durability=none`"),
            "{error}"
        );
        assert!(Folder::open(&url(&text), Durability::ProcessKill, &offered).is_ok());
    }

    #[test]
    fn durability_not_offered_names_those_that_are() {
        let offered = [Durability::PowerLoss, Durability::None];
        assert_eq!(take_durability(&mut url("x:"), &offered).unwrap(), Durability::PowerLoss);
        assert_eq!(
            take_durability(&mut url("x:?durability=none"), &offered).unwrap(),
            Durability::None
        );
        let error = take_durability(&mut url("x:?durability=process"), &offered).unwrap_err();
        assert!(error.to_string().contains("`power`, `none`"), "{error}");
        assert!(take_durability(&mut url("x:?durability=full"), &offered).is_err());
    }
}
