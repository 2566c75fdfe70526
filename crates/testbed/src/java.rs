//! The one way to start a server that runs on a Java virtual machine.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::TestbedError;
use crate::install::JAVA;
use crate::process;
use crate::server::Launch;
use crate::settings::{Setting, Values};

/// A setting for every testbed that runs on Java.
pub const JIT: Setting = Setting {
    name: "jit",
    meaning: "`quick`: the JVM starts sooner and runs slower for good (first compiler only, serial \
              collector), for trying things out; never compare its figures",
    values: Values::Choice(&["full", "quick"]),
    default: "full",
};

/// Java program that is to be started.
pub struct Java {
    options: Vec<OsString>,
    program: Vec<OsString>,
}

impl Java {
    /// Runs the class `main`, with all jars in `library` on the class path.
    #[must_use]
    pub fn class(library: &Path, main: &str) -> Java {
        let mut path = library.as_os_str().to_owned();
        path.push("/*");
        Java::with(vec!["-cp".into(), path, main.into()])
    }

    /// Runs a jar that can be run.
    #[must_use]
    pub fn jar(jar: PathBuf) -> Java {
        Java::with(vec!["-jar".into(), jar.into()])
    }

    fn with(program: Vec<OsString>) -> Java {
        Java {
            options: vec!["-Djava.net.preferIPv4Stack=true".into(), "-XX:-UsePerfData".into()],
            program,
        }
    }

    /// Sets the heap at the start and at most, as the JVM writes sizes: `64M`.
    #[must_use]
    pub fn heap(self, initial: &str, most: &str) -> Java {
        self.option(format!("-Xms{initial}")).option(format!("-Xmx{most}"))
    }

    /// Sets the compiler by a value of [`JIT`].
    #[must_use]
    pub fn jit(self, value: &str) -> Java {
        match value {
            "quick" => self.option("-XX:+UseSerialGC").option("-XX:TieredStopAtLevel=1"),
            _ => self,
        }
    }

    /// Adds an option of the JVM.
    #[must_use]
    pub fn option(mut self, option: impl Into<OsString>) -> Java {
        self.options.push(option.into());
        self
    }

    /// Sets a system property.
    #[must_use]
    pub fn property(self, name: &str, value: &str) -> Java {
        self.option(format!("-D{name}={value}"))
    }

    /// Names packages (`java.base/java.lang`) that reflection may enter.
    #[must_use]
    pub fn opens(self, packages: &[&str]) -> Java {
        packages.iter().fold(self, |java, package| {
            java.option("--add-opens").option(format!("{package}=ALL-UNNAMED"))
        })
    }

    /// Names packages (`java.rmi/sun.rmi.registry`) that may be compiled against.
    #[must_use]
    pub fn exports(self, packages: &[&str]) -> Java {
        packages.iter().fold(self, |java, package| {
            java.option("--add-exports").option(format!("{package}=ALL-UNNAMED"))
        })
    }

    /// Makes it ready to be started; the program's own arguments are added with [`Launch::arguments`]. Native libraries and
    /// all else that it unpacks go to `folder`, and away with the testbed, even if it is killed.
    ///
    /// # Errors
    /// [`TestbedError::NotInstalled`] if there is no Java.
    pub fn launch(mut self, address: SocketAddr, folder: &Path) -> Result<Launch, TestbedError> {
        let mut unpacked = OsString::from("-Djava.io.tmpdir=");
        unpacked.push(folder);
        self.options.push(unpacked);
        Ok(Launch::new(machine()?, address).arguments(self.options).arguments(self.program))
    }

    /// Returns the command of a tool to be run to its end; the program's own arguments are to be added.
    ///
    /// # Errors
    /// [`TestbedError::NotInstalled`] if there is no Java.
    pub fn command(self) -> Result<Command, TestbedError> {
        let mut command = Command::new(machine()?);
        command.args(self.options).args(self.program);
        Ok(command)
    }
}

fn machine() -> Result<PathBuf, TestbedError> {
    let home = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    let java = home.filter(|java| java.exists()).or_else(|| process::look_up("java"));
    java.ok_or_else(|| JAVA.missing("java"))
}
