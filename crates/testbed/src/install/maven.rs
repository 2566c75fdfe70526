//! Jars from Maven Central, fetched with Maven, which knows this machine's settings and finds what else is
//! needed at run time. Maven checks what it fetches against checksums from the same place; those that
//! the recipe pins are checked here.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Prepare, Software, SoftwareSource};
use crate::error::TestbedError;
use crate::process;

/// The virtual machine that Maven and several servers run on.
pub static JAVA: Software = Software::of_debian("java", &["default-jre-headless"]);

/// Tool that fetches.
pub static MAVEN: Software = Software {
    name: "maven",
    version: "",
    source: SoftwareSource::Debian { packages: &["maven"], program: "mvn" },
};

/// The goal of Maven, pinned: what it does must not change with the day.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// Copies the artifacts and what they need at run time into `folder/lib`, then prepares them. Each file must
/// be among those of `sums`.
///
/// # Errors
/// The error of Maven or of the system; the first file that is not what it should be.
pub fn fetch(
    artifacts: &[&str],
    sums: &str,
    prepare: Option<Prepare>,
    folder: &Path,
) -> Result<(), TestbedError> {
    let failed =
        |error| TestbedError::System { what: artifacts.join(" "), action: "prepare", error };
    let pom = folder.join("pom.xml");
    fs::write(&pom, project(artifacts)).map_err(failed)?;
    let maven = process::look_up("mvn").ok_or_else(|| MAVEN.missing("maven"))?;
    let mut command = Command::new(maven);
    command.args(["-q", "-B", "--strict-checksums", "-f", "pom.xml", GOAL]);
    command.args(["-DoutputDirectory=lib", "-DincludeScope=runtime"]).current_dir(folder);
    process::run_command(&mut command)?;
    let mut files = fs::read_dir(folder.join("lib")).map_err(failed)?.flatten();
    files.try_for_each(|file| check(&file.path(), sums))?;
    prepare.map_or(Ok(()), |prepare| prepare(folder)).map_err(failed)
}

/// Checks that the file is one of those of `sums`, as `sha256sum` writes them.
fn check(file: &Path, sums: &str) -> Result<(), TestbedError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let bytes = fs::read(file).map_err(TestbedError::system("read", name.to_string()))?;
    let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
    let sum = digest.as_ref().iter().fold(String::new(), |mut sum, byte| {
        // Writing to a string cannot fail.
        let _ = write!(sum, "{byte:02x}");
        sum
    });
    if sums.lines().any(|line| line.split_once("  ") == Some((&sum, &name))) {
        return Ok(());
    }
    Err(TestbedError::Refused {
        node: "maven".to_owned(),
        problem: format!(
            "{name} is not a file that this version of kvdyno expects (its SHA-256 is {sum}): check \
             from which repository Maven downloads it"
        ),
    })
}

/// Returns a project that depends on the artifacts.
fn project(artifacts: &[&str]) -> String {
    let mut text = "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n\
                    <modelVersion>4.0.0</modelVersion>\n\
                    <groupId>kvdyno</groupId><artifactId>testbed</artifactId>\
                    <version>1</version><packaging>pom</packaging>\n<dependencies>\n"
        .to_owned();
    for artifact in artifacts {
        text.push_str("<dependency>");
        let names = ["groupId", "artifactId", "version", "type", "classifier"];
        for (name, value) in names.iter().zip(artifact.split(':')) {
            // Writing to a string cannot fail.
            let _ = write!(text, "<{name}>{value}</{name}>");
        }
        text.push_str("</dependency>\n");
    }
    text.push_str("</dependencies>\n</project>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_known_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.jar");
        std::fs::write(&file, "abc").unwrap();
        // The example of FIPS 180-2, appendix B.1.
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let known = format!("{}  b.jar\n{sum}  a.jar\n", "0".repeat(64));
        assert!(check(&file, &known).is_ok());
        for unknown in [String::new(), format!("{sum}  b.jar\n"), known.replace("ba7816", "ba7817")]
        {
            let told = check(&file, &unknown).unwrap_err().to_string();
            assert!(told.contains("a.jar is not a file") && told.contains(sum), "{told}");
        }
    }

    #[test]
    fn a_project_names_each_artifact() {
        let text = project(&["g:a:1", "g:b:2:jar:loader"]);
        assert!(
            text.contains("<groupId>g</groupId><artifactId>a</artifactId><version>1</version></")
        );
        assert!(
            text.contains("<version>2</version><type>jar</type><classifier>loader</classifier>")
        );
    }
}
