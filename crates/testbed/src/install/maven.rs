//! Jars from Maven Central, fetched with Maven, which knows this machine's settings, checks the
//! checksums and finds what else is needed at run time.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Prepare, Software, Source};
use crate::error::TestbedError;
use crate::process;

/// What fetches.
pub static MAVEN: Software = Software {
    name: "maven",
    version: "",
    source: Source::Debian { packages: &["maven"], program: "mvn" },
};

/// The goal, pinned: what it does must not change with the day.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// Copies the artifacts and what they need at run time into `folder/lib`, then prepares them.
///
/// # Errors
/// What Maven or the system says.
pub fn fetch(
    artifacts: &[&str],
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
    prepare.map_or(Ok(()), |prepare| prepare(folder)).map_err(failed)
}

/// A project that depends on the artifacts.
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
