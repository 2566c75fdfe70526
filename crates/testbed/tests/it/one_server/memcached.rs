//! One Memcached for tests, with passwords and TLS.

use std::ops::{Deref, DerefMut};

use kvdyno_testbed::{Certificates, Launch, Server, Site, TestbedError};

/// Settings of a test's Memcached.
#[derive(Clone, Debug)]
pub struct MemcachedSettings {
    /// Memory for records, in MiB.
    pub memory: u32,
    /// True to drop old records when memory is full; false to refuse new ones (`-M`).
    pub evict: bool,
    /// User and password of the text protocol (`-Y`).
    pub credentials: Option<(String, String)>,
    /// True for TLS instead of plain TCP, with an authority made for it.
    pub tls: bool,
    /// Worker threads.
    pub threads: u32,
}

impl Default for MemcachedSettings {
    /// Returns Memcached's own settings: 64 MiB, eviction, no password, 4 threads.
    fn default() -> Self {
        MemcachedSettings { memory: 64, evict: true, credentials: None, tls: false, threads: 4 }
    }
}

/// A running Memcached.
pub struct MemcachedServer {
    site: Site,
    settings: MemcachedSettings,
    certificates: Option<Certificates>,
}

impl MemcachedServer {
    /// Starts a Memcached on a loopback address of its own and waits until it answers.
    pub fn start(settings: MemcachedSettings) -> Result<MemcachedServer, TestbedError> {
        let mut site = super::site("memcached")?;
        let folder = site.folder("memcached")?;
        let address = site.address(1, 11211)?;
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let mut launch = Launch::new(super::program("memcached"), address)
            // As root it refuses to run unless it is told to; of another user this changes nothing.
            .arguments(["-u", "root", "-l", &ip, "-p", &port, "-U", "0"])
            .arguments(["-m", &settings.memory.to_string(), "-t", &settings.threads.to_string()]);
        if !settings.evict {
            launch = launch.arguments(["-M"]);
        }
        if let Some((user, password)) = &settings.credentials {
            let users = site.write("memcached", "users", &format!("{user}:{password}\n"))?;
            launch = launch.arguments(["-Y".into(), users]);
        }
        let certificates = match settings.tls {
            true => Some(Certificates::make(&folder, address.ip())?),
            false => None,
        };
        if let Some(files) = &certificates {
            let (certificate, key) = (files.certificate.display(), files.key.display());
            let files = format!("ssl_chain_cert={certificate},ssl_key={key}");
            launch = launch.arguments(["-o", &files, "-Z"]);
        }
        let tls = settings.tls;
        // One that asks for a password answers with an error and is up.
        launch = launch.ready(move |probe| match tls {
            true => probe.listens(),
            false => probe.ask(b"version\r\n").is_some(),
        });
        site.start("memcached", None, launch)?;
        site.serve("memcached")?;
        Ok(MemcachedServer { site, settings, certificates })
    }

    /// Returns the URL that kvdyno reaches it by.
    pub fn url(&self) -> String {
        let credentials = self.settings.credentials.as_ref();
        let user = credentials.map(|(user, word)| format!("{user}:{word}@")).unwrap_or_default();
        let address = self.address();
        match &self.certificates {
            None => format!("memcached://{user}{address}"),
            Some(files) => format!("memcacheds://{user}{address}?ca={}", files.authority.display()),
        }
    }

    /// Returns the files of a server with TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }
}

impl Deref for MemcachedServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.site.nodes()[0].server
    }
}

impl DerefMut for MemcachedServer {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.site.nodes_mut()[0].server
    }
}
