//! One Memcached for tests, with passwords and TLS.

use std::fs;
use std::ops::{Deref, DerefMut};

use kvdyno_core::folder::OwnedFolder;

use super::{MEMCACHED, launch};
use crate::addresses::Addresses;
use crate::certificates::Certificates;
use crate::error::TestbedError;
use crate::folder;
use crate::server::Server;

/// What a test's Memcached is to be like.
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
    // The server ends before its folder and address are given up: fields drop in this order.
    server: Server,
    settings: MemcachedSettings,
    certificates: Option<Certificates>,
    _folder: OwnedFolder,
    _addresses: Addresses,
}

impl MemcachedServer {
    /// Starts a Memcached on a loopback address of its own and waits until it answers.
    ///
    /// # Errors
    /// [`TestbedError`]
    pub fn start(settings: MemcachedSettings) -> Result<MemcachedServer, TestbedError> {
        let program = MEMCACHED.find().ok_or_else(|| MEMCACHED.missing("memcached"))?;
        let system = |action| TestbedError::system(action, "memcached");
        let folder = folder::make("memcached").map_err(system("make a folder for"))?;
        let mut addresses = Addresses::take().map_err(system("find an address for"))?;
        let address = addresses.socket(1, 11211).map_err(system("find a port for"))?;
        let mut options = vec![
            ("-m".to_owned(), settings.memory.to_string()),
            ("-t".to_owned(), settings.threads.to_string()),
        ];
        if !settings.evict {
            options.push(("-M".to_owned(), String::new()));
        }
        if let Some((user, password)) = &settings.credentials {
            let users = folder.path().join("users");
            let written = fs::write(&users, format!("{user}:{password}\n"));
            written.map_err(system("write users for"))?;
            options.push(("-Y".to_owned(), users.display().to_string()));
        }
        let certificates = match settings.tls {
            true => Some(Certificates::make(folder.path(), address.ip())?),
            false => None,
        };
        if let Some(files) = &certificates {
            let (certificate, key) = (files.certificate.display(), files.key.display());
            options.push(("-o".to_owned(), format!("ssl_chain_cert={certificate},ssl_key={key}")));
            options.push(("-Z".to_owned(), String::new()));
        }
        let mut launch = launch(&program, address, &options);
        if settings.tls {
            launch = launch.ready(|probe| probe.listens());
        }
        let mut server = Server::spawn("memcached", launch, folder.path())?;
        server.wait_until_ready()?;
        Ok(MemcachedServer {
            server,
            settings,
            certificates,
            _folder: folder,
            _addresses: addresses,
        })
    }

    /// URL that kvdyno reaches it by.
    #[must_use]
    pub fn url(&self) -> String {
        let credentials = self.settings.credentials.as_ref();
        let user = credentials.map(|(user, word)| format!("{user}:{word}@")).unwrap_or_default();
        let address = self.server.address();
        match &self.certificates {
            None => format!("memcached://{user}{address}"),
            Some(files) => format!("memcacheds://{user}{address}?ca={}", files.authority.display()),
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
