//! A Memcached server.

use std::ffi::OsString;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::certificates::Certificates;
use crate::server::{Launch, Server, TestbedError};

/// What a testbed's Memcached is to be like.
#[derive(Clone, Debug)]
pub struct MemcachedSettings {
    /// Memory for records, in MiB.
    pub memory: u32,
    /// Drop old records when memory is full; if not, refuse new ones (`-M`).
    pub evict: bool,
    /// User and password of the text protocol (`-Y`).
    pub credentials: Option<(String, String)>,
    /// TLS instead of plain TCP, with an authority made for it.
    pub tls: bool,
    /// Worker threads.
    pub threads: u32,
}

impl Default for MemcachedSettings {
    /// As Memcached's own: 64 MiB, eviction, no password, 4 threads.
    fn default() -> Self {
        MemcachedSettings { memory: 64, evict: true, credentials: None, tls: false, threads: 4 }
    }
}

/// A running Memcached.
pub struct MemcachedServer {
    server: Server,
    settings: MemcachedSettings,
    certificates: Option<Certificates>,
}

impl MemcachedServer {
    /// Starts a Memcached on a free loopback port and waits until it answers.
    ///
    /// # Errors
    /// [`TestbedError`]
    pub fn start(settings: MemcachedSettings) -> Result<MemcachedServer, TestbedError> {
        let folder = Server::folder_for("memcached")?;
        let certificates =
            if settings.tls { Some(Certificates::make(folder.path())?) } else { None };
        let users = folder.path().join("users");
        if let Some((user, password)) = &settings.credentials {
            fs::write(&users, format!("{user}:{password}\n")).map_err(|error| {
                TestbedError::System { program: "memcached", action: "write users for", error }
            })?;
        }
        let (for_start, files, tls) = (settings.clone(), certificates.clone(), settings.tls);
        let launch = Launch {
            program: "memcached",
            install: "apt-get install memcached",
            arguments: Box::new(move |port, folder| {
                arguments(&for_start, files.as_ref(), port, folder)
            }),
            ready: Box::new(move |probe| {
                // A server that asks for a password answers with an error and is up.
                if tls { probe.listens() } else { probe.ask(b"version\r\n").is_some() }
            }),
            patience: Duration::from_secs(20),
        };
        Ok(MemcachedServer { server: Server::start(launch, folder)?, settings, certificates })
    }

    /// URL that kvdyno reaches it by.
    #[must_use]
    pub fn url(&self) -> String {
        let credentials = self.settings.credentials.as_ref();
        let user = credentials.map(|(user, word)| format!("{user}:{word}@")).unwrap_or_default();
        let port = self.server.port();
        match &self.certificates {
            None => format!("memcached://{user}127.0.0.1:{port}"),
            Some(files) => {
                format!("memcacheds://{user}127.0.0.1:{port}?ca={}", files.authority.display())
            }
        }
    }

    /// The files of a server with TLS.
    #[must_use]
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }
}

impl Deref for MemcachedServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for MemcachedServer {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}

fn arguments(
    settings: &MemcachedSettings,
    certificates: Option<&Certificates>,
    port: u16,
    folder: &std::path::Path,
) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    let mut set = |name: &str, value: String| {
        out.push(name.into());
        out.push(value.into());
    };
    // Memcached refuses to run as root unless it is told to. The effective user is what counts.
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        set("-u", "root".to_owned());
    }
    set("-l", "127.0.0.1".to_owned());
    set("-p", port.to_string());
    set("-U", "0".to_owned());
    set("-m", settings.memory.to_string());
    set("-t", settings.threads.to_string());
    if settings.credentials.is_some() {
        set("-Y", folder.join("users").display().to_string());
    }
    if let Some(files) = certificates {
        let (certificate, key) = (files.certificate.display(), files.key.display());
        set("-o", format!("ssl_chain_cert={certificate},ssl_key={key}"));
        out.push("-Z".into());
    }
    if !settings.evict {
        out.push("-M".into());
    }
    out
}
