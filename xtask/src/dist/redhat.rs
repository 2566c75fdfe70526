//! The RPM, for distributions like Fedora, RHEL and openSUSE.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::contents::PackageContents;
use super::{Binary, VERSION, write};
use crate::steps::{self, StepFailure};

/// Packs the contents by `rpmbuild`, which finds out by itself which libraries the binary needs.
///
/// # Errors
/// If it fails.
pub fn package(
    contents: &PackageContents,
    binary: &Binary,
    folder: &Path,
) -> Result<PathBuf, StepFailure> {
    let tree = folder.join("redhat/tree");
    contents.install_into(&tree, "LICENSE")?;
    // Where these distributions look for them.
    let zsh = tree.join("usr/share/zsh/site-functions");
    std::fs::create_dir_all(&zsh).map_err(StepFailure::file(&zsh))?;
    let vendor = tree.join("usr/share/zsh/vendor-completions");
    std::fs::rename(vendor.join("_kvdyno"), zsh.join("_kvdyno"))
        .and_then(|()| std::fs::remove_dir(&vendor))
        .map_err(StepFailure::file(&vendor))?;
    let spec = folder.join("redhat/kvdyno.spec");
    write(&spec, &specification(&tree))?;
    let target = binary.architecture.name();
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", target]);
    rpmbuild.arg("--define").arg(format!("_topdir {}", folder.join("redhat").display()));
    rpmbuild.arg("--define").arg(format!("_rpmdir {}", folder.display()));
    // The file lies beside the others; it was stripped before, and tools of this machine may not know its processor.
    rpmbuild.args(["--define", "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"]);
    rpmbuild.args(["--define", "__os_install_post %{nil}", "--define", "debug_package %{nil}"]);
    rpmbuild.args([
        "--define",
        "_buildhost kvdyno",
        "--define",
        "use_source_date_epoch_as_buildtime 1",
    ]);
    steps::run(rpmbuild.arg(&spec).env("SOURCE_DATE_EPOCH", "0"))?;
    Ok(folder.join(format!("kvdyno-{VERSION}-1.{target}.rpm")))
}

fn specification(tree: &Path) -> String {
    format!(
        "Name: kvdyno
Version: {VERSION}
Release: 1
Summary: Benchmark of key-value stores that verifies every read
License: Apache-2.0

%description
kvdyno measures key-value stores as a dynamometer measures engines: how fast
and how predictable they are, what happens when a node dies, and what it
costs. Every read is checked.

%install
cp -a {}/. %{{buildroot}}/
find %{{buildroot}} -exec touch --no-dereference --date=@0 {{}} +

%files
/usr/bin/kvdyno
/usr/share/bash-completion/completions/kvdyno
/usr/share/zsh/site-functions/_kvdyno
/usr/share/fish/vendor_completions.d/kvdyno.fish
/usr/share/man/man1/kvdyno*.1.gz
%doc /usr/share/doc/kvdyno
",
        tree.display()
    )
}
