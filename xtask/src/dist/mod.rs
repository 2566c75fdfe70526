//! `cargo xtask dist`: what a stranger installs. One portable binary with every store, packed as a tarball, a Python wheel, a
//! Debian package and an RPM, with notices of all that is in it. CI packs the release build instead (`--binary`).

mod archive;
mod contents;
mod debian;
mod fresh;
mod installed;
mod machine_code;
mod notices;
mod portable;
mod python;
mod redhat;
mod sbom;
mod shipped;
mod stranger;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::servers;
use crate::steps::{self, StepFailure};
use contents::PackageContents;
use machine_code::MachineCode;
use shipped::Shipped;

/// The oldest glibc that the portable binary runs with.
const OLDEST_GLIBC: (u32, u32) = (2, 17);
/// The size that the portable binary stays under, bytes.
const LARGEST: u64 = 40_000_000;
/// Version of all crates, and so of the packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Choice of what is packed, and of what is done with the packages.
#[derive(Debug, Args)]
pub struct Options {
    /// Pack this binary, which was built with default features for this machine, rather than build a portable one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    /// Processors that the portable binary is for
    #[arg(long, value_enum, default_value_t = Architecture::X86_64, conflicts_with = "binary")]
    architecture: Architecture,

    /// Install wheel and Debian package into fresh places, and run a suite from each, and on a machine with as little as
    /// possible; as root
    #[arg(long, conflicts_with = "architecture")]
    install: bool,
}

/// Processors that packages are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Architecture {
    #[value(name = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    Aarch64,
}

impl Architecture {
    /// Name that Rust, Python and RPM have for it.
    fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
        }
    }

    fn debian(self) -> &'static str {
        match self {
            Architecture::X86_64 => "amd64",
            Architecture::Aarch64 => "arm64",
        }
    }

    /// Rust's target.
    fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// The one that this process runs on.
    fn of_this_machine() -> Option<Architecture> {
        [Architecture::X86_64, Architecture::Aarch64]
            .into_iter()
            .find(|known| known.name() == std::env::consts::ARCH)
    }
}

/// A binary that is packed, and what is known of it.
struct Binary {
    path: PathBuf,
    architecture: Architecture,
    code: MachineCode,
}

/// Builds or takes a binary, checks it, packs it, and installs the packages if that is asked.
///
/// # Errors
/// If a step fails, or the binary is not portable or too large.
pub fn dist(options: &Options) -> Result<(), StepFailure> {
    servers::ensure_packers()?;
    // A download that waits, while packing computes. It is waited for, however packing ends.
    let root = options.install.then(|| std::thread::spawn(fresh::root_of_this_release));
    let packed = pack(options);
    let root = root.map(std::thread::JoinHandle::join);
    let (binary, made) = packed?;
    let Some(root) = root else { return Ok(()) };
    let root = root.map_err(|_| found("the fresh root was not made"))??;
    installed::wheel(&made[1])?;
    installed::debian_package(&made[2], &root)?;
    stranger::poor_machine(&binary.path)?;
    if options.binary.is_none() { stranger::old_glibc(&binary.path) } else { Ok(()) }
}

/// Makes all packages: the binary that is in them, and their files, the wheel second and the Debian package third.
fn pack(options: &Options) -> Result<(Binary, [PathBuf; 5]), StepFailure> {
    let (path, architecture, features) = match &options.binary {
        Some(path) => {
            let known = Architecture::of_this_machine();
            let known = known.ok_or_else(|| found("no package is made for this processor"))?;
            (path.clone(), known, "")
        }
        None => {
            servers::ensure_libraries()?;
            (portable::build(options.architecture)?, options.architecture, portable::FEATURES)
        }
    };
    let folder = steps::target_folder().join("packages").join(architecture.name());
    empty(&folder)?;
    let shipped = Shipped::read(features, &architecture.target())?;
    let contents =
        PackageContents::lay_out(&folder.join("contents"), &path, architecture, &shipped)?;
    let code = MachineCode::read(&contents.binary())?;
    let binary = Binary { path: contents.binary(), architecture, code };
    tell(&binary, &shipped)?;
    if options.binary.is_none() {
        check_portable(&binary)?;
    }
    let made = [
        archive::tarball(&contents, &binary, &folder)?,
        python::wheel(&contents, &binary, &folder)?,
        debian::package(&contents, &binary, &folder)?,
        redhat::package(&contents, &binary, &folder)?,
        contents.sbom_beside(&folder, &binary)?,
    ];
    archive::sums(&folder, &made)?;
    for file in &made {
        println!("{:>12}  {}", size(file)?, file.display());
    }
    Ok((binary, made))
}

/// Prints what the binary needs of a machine, and which C is in it.
fn tell(binary: &Binary, shipped: &Shipped) -> Result<(), StepFailure> {
    let code = &binary.code;
    println!("\n{}: {} bytes", binary.path.display(), size(&binary.path)?);
    println!("needs {}", code.libraries.join(", "));
    if let Some((major, minor)) = code.newest_glibc {
        println!("needs glibc {major}.{minor} or newer");
    }
    println!("{} crates of others are in it; C or assembler is in", shipped.others().count());
    for part in shipped.parts_in_c() {
        println!("  {} {}", part.name, part.version);
    }
    Ok(())
}

/// Holds the binary to what packages promise.
fn check_portable(binary: &Binary) -> Result<(), StepFailure> {
    if let Some(reason) = binary.code.not_portable(OLDEST_GLIBC) {
        return Err(found(&format!("the binary is not portable: {reason}")));
    }
    let bytes = size(&binary.path)?;
    if bytes >= LARGEST {
        return Err(found(&format!("the binary has {bytes} bytes; it must stay under {LARGEST}")));
    }
    Ok(())
}

fn found(what: &str) -> StepFailure {
    StepFailure::Found(what.to_owned())
}

fn size(file: &Path) -> Result<u64, StepFailure> {
    Ok(std::fs::metadata(file).map_err(StepFailure::file(file))?.len())
}

/// Makes the folder, without what an earlier run left there.
fn empty(folder: &Path) -> Result<(), StepFailure> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(StepFailure::file(folder))?;
    }
    std::fs::create_dir_all(folder).map_err(StepFailure::file(folder))
}

/// Copies a file; its folder is made if it is not there.
fn copy(from: &Path, to: &Path) -> Result<(), StepFailure> {
    let folder = to.parent().unwrap_or(to);
    std::fs::create_dir_all(folder).map_err(StepFailure::file(folder))?;
    std::fs::copy(from, to).map(drop).map_err(StepFailure::file(from))
}

fn write(path: &Path, text: &str) -> Result<(), StepFailure> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(StepFailure::file(folder))?;
    std::fs::write(path, text).map_err(StepFailure::file(path))
}
