//! The files that every package holds: the binary, completions and manual pages from the definitions of `--help`, licences,
//! the bill of materials.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::shipped::Shipped;
use super::{Architecture, Binary, VERSION, copy, empty, notices, portable, sbom, write};
use crate::steps::{self, StepFailure};

/// Shells, and what their completions are called.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "kvdyno.bash"), ("zsh", "_kvdyno"), ("fish", "kvdyno.fish")];

/// Places of completions on an installed system.
const COMPLETIONS_INSTALLED: [&str; 3] = [
    "usr/share/bash-completion/completions/kvdyno",
    "usr/share/zsh/vendor-completions/_kvdyno",
    "usr/share/fish/vendor_completions.d/kvdyno.fish",
];

/// A folder with the files.
pub struct PackageContents {
    folder: PathBuf,
}

impl PackageContents {
    /// Lays them out in `folder`.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn lay_out(
        folder: &Path,
        binary: &Path,
        architecture: Architecture,
        shipped: &Shipped,
    ) -> Result<PackageContents, StepFailure> {
        empty(folder)?;
        let contents = PackageContents { folder: folder.to_owned() };
        copy(binary, &contents.binary())?;
        let here = Architecture::of_this_machine() == Some(architecture);
        if here {
            steps::run(Command::new("strip").arg(contents.binary()))?;
        }
        let runs = if here { contents.binary() } else { portable::built_for_this_machine()? };
        for (shell, name) in COMPLETIONS {
            let script = steps::output(Command::new(&runs).args(["completions", shell]))?;
            write(&folder.join("completions").join(name), &script)?;
        }
        steps::run(Command::new(&runs).arg("man").arg(contents.manual()))?;
        for (from, to) in [("LICENSE", "LICENSE"), ("docs/INSTALL.md", "INSTALL.md")] {
            copy(&steps::root().join(from), &folder.join(to))?;
        }
        write(&folder.join("THIRD-PARTY.txt"), &notices::notices(shipped)?)?;
        write(&contents.sbom(), &sbom::sbom(shipped))?;
        Ok(contents)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn binary(&self) -> PathBuf {
        self.folder.join("kvdyno")
    }

    /// Licences, ours and those of others.
    pub fn licenses(&self) -> [PathBuf; 2] {
        ["LICENSE", "THIRD-PARTY.txt"].map(|name| self.folder.join(name))
    }

    pub fn sbom(&self) -> PathBuf {
        self.folder.join("kvdyno.cdx.json")
    }

    fn manual(&self) -> PathBuf {
        self.folder.join("man")
    }

    /// Copies the bill of materials to the packages: a scanner reads it without unpacking any.
    ///
    /// # Errors
    /// If it cannot be copied.
    pub fn sbom_beside(&self, folder: &Path, binary: &Binary) -> Result<PathBuf, StepFailure> {
        let name = format!("kvdyno-{VERSION}-{}.cdx.json", binary.architecture.name());
        copy(&self.sbom(), &folder.join(&name))?;
        Ok(folder.join(name))
    }

    /// Lays out the tree that a package of a system installs; `copyright` is where the system has licences.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn install_into(&self, root: &Path, copyright: &str) -> Result<(), StepFailure> {
        empty(root)?;
        copy(&self.binary(), &root.join("usr/bin/kvdyno"))?;
        for ((_, name), installed) in COMPLETIONS.iter().zip(COMPLETIONS_INSTALLED) {
            copy(&self.folder.join("completions").join(name), &root.join(installed))?;
        }
        let documents = root.join("usr/share/doc/kvdyno");
        let [own, others] = self.licenses();
        copy(&own, &documents.join(copyright))?;
        copy(&others, &documents.join("THIRD-PARTY.txt"))?;
        copy(&self.sbom(), &documents.join("kvdyno.cdx.json"))?;
        let manual = root.join("usr/share/man/man1");
        let pages = self.manual();
        for page in std::fs::read_dir(&pages).map_err(StepFailure::file(&pages))? {
            let page = page.map_err(StepFailure::file(&pages))?;
            copy(&page.path(), &manual.join(page.file_name()))?;
        }
        let mut gzip = Command::new("gzip");
        gzip.args(["--recursive", "--best", "--no-name"]).arg(&manual);
        steps::run(&mut gzip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The image is made of these files, and the job in Kubernetes is run by its user.
    #[test]
    fn the_image_copies_what_is_laid_out() {
        let read = |path: &str| std::fs::read_to_string(steps::root().join(path)).unwrap();
        let (image, job) = (read("fleet/Containerfile"), read("fleet/kubernetes/job.yaml"));
        let contents = PackageContents { folder: PathBuf::from("contents") };
        let laid: Vec<PathBuf> =
            contents.licenses().into_iter().chain([contents.binary(), contents.sbom()]).collect();
        let lines = image.lines().filter_map(|line| line.strip_prefix("COPY "));
        let copied: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        let ours: Vec<&&str> = copied.iter().filter(|path| !path.starts_with('/')).collect();
        assert_eq!(ours.len(), laid.len(), "{copied:?}");
        assert!(ours.iter().all(|path| laid.contains(&PathBuf::from(**path))), "{copied:?}");
        let user = image.lines().find_map(|line| line.strip_prefix("USER ")).unwrap();
        assert!(
            job.contains(&format!("runAsUser: {user}"))
                && image.contains("ENTRYPOINT [\"kvdyno\"]")
        );
    }
}
