//! A Redis server of one node.

use std::ffi::OsString;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

use crate::certificates::Certificates;
use crate::server::{Launch, Server, TestbedError};

/// When the append-only file is handed to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppendOnly {
    /// There is no such file.
    #[default]
    Off,
    /// When the system likes to.
    No,
    /// Every second.
    EverySecond,
    /// Before each answer.
    Always,
}

/// What a testbed's Redis is to be like.
#[derive(Clone, Debug, Default)]
pub struct RedisSettings {
    /// Password of the default user.
    pub password: Option<String>,
    /// Further users as lines of an access control list: `alice on >secret ~* +@all`.
    pub users: Vec<String>,
    /// TLS instead of plain TCP, with an authority made for it.
    pub tls: bool,
    /// Persistence. There are no snapshots.
    pub append_only: AppendOnly,
    /// Memory limit in bytes and what happens there, such as `noeviction`.
    pub max_memory: Option<(u64, String)>,
}

/// A running Redis.
pub struct RedisServer {
    server: Server,
    settings: RedisSettings,
    certificates: Option<Certificates>,
}

impl RedisServer {
    /// Starts a Redis on a free loopback port and waits until it answers.
    ///
    /// # Errors
    /// [`TestbedError`]
    pub fn start(settings: RedisSettings) -> Result<RedisServer, TestbedError> {
        let folder = Server::folder_for("redis-server")?;
        let certificates =
            if settings.tls { Some(Certificates::make(folder.path())?) } else { None };
        let (for_start, files, tls) = (settings.clone(), certificates.clone(), settings.tls);
        let launch = Launch {
            program: "redis-server",
            install: "apt-get install redis-server",
            arguments: Box::new(move |port, folder| {
                arguments(&for_start, files.as_ref(), port, folder)
            }),
            ready: Box::new(move |probe| {
                if tls {
                    return probe.log.contains("Ready to accept connections") && probe.listens();
                }
                // Not while it is loading; a server that asks for a password is up.
                let answer = probe.ask(b"PING\r\n").unwrap_or_default();
                answer.starts_with(b"+PONG") || answer.starts_with(b"-NOAUTH")
            }),
            patience: Duration::from_secs(20),
        };
        Ok(RedisServer { server: Server::start(launch, folder)?, settings, certificates })
    }

    /// URL that kvdyno reaches it by, as the default user.
    #[must_use]
    pub fn url(&self) -> String {
        let password = self.settings.password.as_deref();
        let user = password.map(|password| format!(":{password}@")).unwrap_or_default();
        let port = self.server.port();
        match &self.certificates {
            None => format!("redis://{user}127.0.0.1:{port}"),
            Some(files) => {
                format!("rediss://{user}127.0.0.1:{port}?ca={}", files.authority.display())
            }
        }
    }

    /// The files of a server with TLS.
    #[must_use]
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }
}

impl Deref for RedisServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for RedisServer {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}

fn arguments(
    settings: &RedisSettings,
    certificates: Option<&Certificates>,
    port: u16,
    folder: &Path,
) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    let mut set = |name: &str, values: &[&str]| {
        out.push(format!("--{name}").into());
        out.extend(values.iter().map(OsString::from));
    };
    let port = port.to_string();
    set("bind", &["127.0.0.1"]);
    set("dir", &[&folder.display().to_string()]);
    set("save", &[""]);
    match certificates {
        None => set("port", &[&port]),
        Some(files) => {
            set("port", &["0"]);
            set("tls-port", &[&port]);
            set("tls-cert-file", &[&files.certificate.display().to_string()]);
            set("tls-key-file", &[&files.key.display().to_string()]);
            set("tls-ca-cert-file", &[&files.authority.display().to_string()]);
            set("tls-auth-clients", &["no"]);
        }
    }
    match settings.append_only {
        AppendOnly::Off => set("appendonly", &["no"]),
        on => {
            set("appendonly", &["yes"]);
            set(
                "appendfsync",
                &[match on {
                    AppendOnly::Off | AppendOnly::No => "no",
                    AppendOnly::EverySecond => "everysec",
                    AppendOnly::Always => "always",
                }],
            );
        }
    }
    if let Some((bytes, policy)) = &settings.max_memory {
        set("maxmemory", &[&bytes.to_string()]);
        set("maxmemory-policy", &[policy]);
    }
    if let Some(password) = &settings.password {
        set("requirepass", &[password]);
    }
    for user in &settings.users {
        set("user", &user.split_ascii_whitespace().collect::<Vec<_>>());
    }
    out
}
