//! The system's librocksdb: where it lies, loading it once for this process, and what to install where it is
//! missing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::functions::Functions;
use crate::shared_library;

/// Variable of the environment that names another librocksdb.
const VARIABLE: &str = "KVDYNO_ROCKSDB";
/// Name of the file, which versions follow.
const NAME: &str = "librocksdb.so";
/// Number of functions that an error names of a library that lacks more.
const NAMED: usize = 3;

/// Reason why there is no RocksDB to call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// No library is in the usual folders.
    #[error("this machine has no librocksdb")]
    Missing,
    /// A library cannot be loaded.
    #[error("librocksdb cannot be loaded: {problem}")]
    Unloadable {
        /// Message of the dynamic linker, which names the file.
        problem: String,
    },
    /// A library is no RocksDB, or one that is too old or too new.
    #[error("{library} lacks functions of RocksDB's C interface: {missing}")]
    Lacking {
        /// Name of its file.
        library: String,
        /// Names of functions.
        missing: String,
    },
}

impl LibraryError {
    /// Says what to do next on this machine.
    #[must_use]
    pub fn advice(&self) -> String {
        let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        let install = install_line(&system);
        let place = format!("{VARIABLE}=/path/{NAME}");
        match self {
            LibraryError::Missing => format!("{install}, or name one with `{place}`"),
            _ => format!("{install}, or name another one, 6.11 to 10, with `{place}`"),
        }
    }
}

/// The loaded library.
#[derive(Clone, Copy)]
pub struct Library {
    pub(super) functions: &'static Functions,
}

impl Library {
    /// Loads the library that `KVDYNO_ROCKSDB` names, else the system's. It stays loaded, for RocksDB keeps
    /// threads.
    ///
    /// # Errors
    /// If there is none, or one that cannot be used.
    pub fn load() -> Result<Library, LibraryError> {
        static LOADED: OnceLock<Functions> = OnceLock::new();
        if LOADED.get().is_none() {
            let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty());
            let functions = load_first(&candidates(named.as_deref(), system_libraries))?;
            // Where two threads were here at once, the second one's goes.
            let _ = LOADED.set(functions);
        }
        LOADED.get().map(|functions| Library { functions }).ok_or(LibraryError::Missing)
    }
}

/// Returns the files to try, in order.
fn candidates(named: Option<&OsStr>, system: impl Fn() -> Vec<PathBuf>) -> Vec<PathBuf> {
    match named {
        Some(named) => vec![PathBuf::from(named)],
        // The linker's own choice comes first.
        None => [PathBuf::from(NAME)].into_iter().chain(system()).collect(),
    }
}

/// Returns libraries with a version in their names, the newest first: a system without the files for building with RocksDB
/// has no other ones.
fn system_libraries() -> Vec<PathBuf> {
    let arch = std::env::consts::ARCH;
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&own).collect();
    folders.extend(["/usr/local/lib", "/usr/local/lib64"].map(PathBuf::from));
    folders.push(format!("/usr/lib/{arch}-linux-gnu").into());
    folders.extend(["/usr/lib64", "/usr/lib", "/lib64", "/lib"].map(PathBuf::from));
    let mut found: Vec<PathBuf> = folders.iter().flat_map(|folder| in_folder(folder)).collect();
    found.extend(in_cache(&std::fs::read("/etc/ld.so.cache").unwrap_or_default()));
    // The cache may name what has been removed since.
    found.retain(|path| path.exists());
    // Stable: of one version the earlier folder's comes first.
    found.sort_by_key(|path| std::cmp::Reverse(version(path)));
    found
}

fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| version(path).is_some()).collect()
}

/// Returns the paths in the cache of the linker, which are texts that end with a zero byte.
fn in_cache(cache: &[u8]) -> Vec<PathBuf> {
    let texts = cache.split(|byte| *byte == 0).filter(|text| text.starts_with(b"/"));
    let paths = texts.filter_map(|text| std::str::from_utf8(text).ok()).map(PathBuf::from);
    paths.filter(|path| version(path).is_some()).collect()
}

/// Reads `[7, 8]` off `librocksdb.so.7.8`; the name without a version is `[]`.
fn version(path: &Path) -> Option<Vec<u32>> {
    let rest = path.file_name()?.to_str()?.strip_prefix(NAME)?;
    let mut numbers = rest.split('.');
    numbers.next().filter(|before| before.is_empty())?;
    numbers.map(|number| number.parse().ok()).collect()
}

/// Loads the first of the files that has all functions. If none has, the first trouble with a file that is there
/// tells most.
fn load_first(candidates: &[PathBuf]) -> Result<Functions, LibraryError> {
    let mut first = None;
    for path in candidates {
        match load(path) {
            Ok(functions) => return Ok(functions),
            // Not there, as a rule: then the search goes on.
            Err(LibraryError::Unloadable { .. }) if path.as_os_str() == NAME => {}
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    Err(first.unwrap_or(LibraryError::Missing))
}

fn load(path: &Path) -> Result<Functions, LibraryError> {
    // SAFETY: the library is one of the system's that is called RocksDB, or the user names it to be run.
    let library = unsafe { shared_library::load(path) }
        .map_err(|error| LibraryError::Unloadable { problem: error.to_string() })?;
    // SAFETY: who gives a library functions of RocksDB's names means RocksDB's functions, whose types have been the
    // same in all releases that are supported.
    unsafe { Functions::find(library) }.map_err(|missing| {
        let more = missing.len().saturating_sub(NAMED);
        let mut names = missing[..missing.len() - more].join(", ");
        if more > 0 {
            names += &format!(" and {more} more");
        }
        LibraryError::Lacking { library: path.display().to_string(), missing: names }
    })
}

/// Says how to install the library, from the text of `os-release` (`man 5 os-release`).
fn install_line(system: &str) -> String {
    let field = |name: &str| {
        let line = system.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let (id, release, like) = (field("ID"), field("VERSION_ID"), field("ID_LIKE"));
    let is = |name: &str| id == name || like.split(' ').any(|like| like == name);
    let command = match (id.as_str(), release.as_str()) {
        ("debian", "11") => "apt-get install librocksdb6.11",
        ("debian", "12") => "apt-get install librocksdb7.8",
        ("debian", "13") => "apt-get install librocksdb9.10",
        // Its name is the same in each release, and brings the library.
        _ if is("debian") || is("ubuntu") => "apt-get install librocksdb-dev",
        _ if is("fedora") || is("rhel") => "dnf install rocksdb",
        _ if is("arch") => "pacman -S rocksdb",
        _ if is("alpine") => "apk add rocksdb",
        _ => return "install your system's package of librocksdb".to_owned(),
    };
    format!("install it with `{command}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(texts: &[&str]) -> Vec<PathBuf> {
        texts.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn a_named_library_is_the_only_one_that_is_tried() {
        let system = || paths(&["/usr/lib/librocksdb.so.7.8"]);
        assert_eq!(candidates(Some(OsStr::new("/x/mine.so")), system), paths(&["/x/mine.so"]));
        let all = candidates(None, system);
        assert_eq!(all, paths(&["librocksdb.so", "/usr/lib/librocksdb.so.7.8"]));
    }

    #[test]
    fn versions_are_read_off_names_and_other_files_are_none() {
        let read = |name: &str| version(&Path::new("/usr/lib").join(name));
        assert_eq!(read("librocksdb.so.10.2.1"), Some(vec![10, 2, 1]));
        assert_eq!(read("librocksdb.so"), Some(vec![]));
        assert!(read("librocksdb.so.10") > read("librocksdb.so.9.10"));
        for other in ["librocksdb.so.x", "librocksdb.sox.1", "librocksdbjni.so.7", "librocksdb.a"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn folders_and_the_linkers_cache_name_libraries() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["librocksdb.so.7.8", "librocksdb.a", "libz.so.1"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(in_folder(folder.path()), [folder.path().join("librocksdb.so.7.8")]);
        assert!(in_folder(Path::new("/nowhere")).is_empty());
        let cache = b"glibc-ld.so.cache1.1\0\x07librocksdb.so.7.8\0/opt/lib/librocksdb.so.7.8\0/lib/libz.so.1\0";
        assert_eq!(in_cache(cache), paths(&["/opt/lib/librocksdb.so.7.8"]));
    }

    #[test]
    fn a_machine_without_the_library_is_told_what_to_install() {
        assert_eq!(load_first(&[]).err(), Some(LibraryError::Missing));
        let advice = LibraryError::Missing.advice();
        assert!(advice.starts_with("install "), "{advice}");
        assert!(advice.contains("KVDYNO_ROCKSDB=/path/librocksdb.so"), "{advice}");
        for (system, command) in [
            ("ID=debian\nVERSION_ID=\"12\"\n", "`apt-get install librocksdb7.8`"),
            (
                "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\n",
                "`apt-get install librocksdb-dev`",
            ),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "`dnf install rocksdb`"),
            ("ID=fedora\n", "`dnf install rocksdb`"),
            ("ID=alpine\n", "`apk add rocksdb`"),
            ("", "your system's package"),
        ] {
            assert!(install_line(system).contains(command), "{system}");
        }
    }

    #[test]
    fn a_file_that_is_none_is_told_with_what_to_install() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let none = file.path().to_owned();
        let error = load_first(std::slice::from_ref(&none)).err().unwrap();
        assert!(matches!(&error, LibraryError::Unloadable { .. }), "{error}");
        assert!(error.to_string().contains(&*none.to_string_lossy()), "{error}");
        let advice = error.advice();
        assert!(advice.starts_with("install ") && advice.contains("6.11 to 10"), "{advice}");
    }

    #[cfg(feature = "server-tests")]
    #[test]
    fn of_several_files_the_first_that_can_be_loaded_is_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let none = file.path().to_owned();
        let next = [vec![none], candidates(None, system_libraries)].concat();
        assert!(load_first(&next).is_ok());
    }

    #[test]
    fn functions_that_a_library_lacks_are_named() {
        let error = load_first(&paths(&["libm.so.6"])).err().unwrap().to_string();
        assert!(
            error.starts_with("libm.so.6 lacks") && error.contains("rocksdb_open, "),
            "{error}"
        );
        assert!(error.ends_with(" more"), "{error}");
    }
}
