//! One Redis for tests, with passwords, users and TLS.

use std::ops::{Deref, DerefMut};

use kvdyno_testbed::{Certificates, Launch, Server, Site, TestbedError};

/// Moment at which the append-only file is handed to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppendOnly {
    /// Never: there is no such file.
    #[default]
    Off,
    /// When the system likes to.
    No,
    /// Every second.
    EverySecond,
    /// Before each answer.
    Always,
}

/// Settings of a test's Redis.
#[derive(Clone, Debug, Default)]
pub struct RedisSettings {
    /// Password of the default user.
    pub password: Option<String>,
    /// Further users as lines of an access control list: `alice on >secret ~* +@all`.
    pub users: Vec<String>,
    /// True for TLS instead of plain TCP, with an authority made for it.
    pub tls: bool,
    /// Persistence. There are no snapshots.
    pub append_only: AppendOnly,
    /// Memory limit in bytes and what happens there, such as `noeviction`.
    pub max_memory: Option<(u64, String)>,
    /// Further options, as in `redis.conf`.
    pub options: Vec<(String, String)>,
}

/// A running Redis.
pub struct RedisServer {
    site: Site,
    settings: RedisSettings,
    certificates: Option<Certificates>,
}

impl RedisServer {
    /// Starts a Redis on a loopback address of its own and waits until it answers.
    pub fn start(settings: RedisSettings) -> Result<RedisServer, TestbedError> {
        let mut site = super::site("redis")?;
        let folder = site.folder("redis-server")?;
        let address = site.address(1, 6379)?;
        let certificates = match settings.tls {
            true => Some(Certificates::make(&folder, address.ip())?),
            false => None,
        };
        let mut launch = Launch::new(super::program("redis-server"), address)
            .arguments(["--bind", &address.ip().to_string()])
            .arguments(["--port", &address.port().to_string()])
            .arguments(["--dir".into(), folder]);
        for (name, value) in options(&settings) {
            launch = launch.arguments([format!("--{name}"), value]);
        }
        if let Some(files) = &certificates {
            // The last word counts: this closes the plain port.
            launch = launch.arguments(["--port", "0", "--tls-port", &address.port().to_string()]);
            launch = launch.arguments(["--tls-cert-file".into(), files.certificate.clone()]);
            launch = launch.arguments(["--tls-key-file".into(), files.key.clone()]);
            launch = launch.arguments(["--tls-ca-cert-file".into(), files.authority.clone()]);
            launch = launch.arguments(["--tls-auth-clients", "no"]);
        }
        for user in &settings.users {
            launch = launch.arguments(["--user"]).arguments(user.split_ascii_whitespace());
        }
        let tls = settings.tls;
        launch = launch.ready(move |probe| {
            if tls {
                return probe.log.contains("Ready to accept connections") && probe.listens();
            }
            // Not while it is loading; a server that asks for a password is up.
            let answer = probe.ask(b"PING\r\n").unwrap_or_default();
            answer.starts_with(b"+PONG") || answer.starts_with(b"-NOAUTH")
        });
        site.start("redis-server", None, launch)?;
        site.serve("redis-server")?;
        Ok(RedisServer { site, settings, certificates })
    }

    /// Returns the URL that kvdyno reaches it by, as the default user.
    pub fn url(&self) -> String {
        let password = self.settings.password.as_deref();
        let user = password.map(|password| format!(":{password}@")).unwrap_or_default();
        let address = self.address();
        match &self.certificates {
            None => format!("redis://{user}{address}"),
            Some(files) => format!("rediss://{user}{address}?ca={}", files.authority.display()),
        }
    }

    /// Returns the files of a server with TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }
}

impl Deref for RedisServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.site.nodes()[0].server
    }
}

impl DerefMut for RedisServer {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.site.nodes_mut()[0].server
    }
}

fn options(settings: &RedisSettings) -> Vec<(String, String)> {
    let mut out = vec![("save".to_owned(), String::new())];
    let mut set = |name: &str, value: &str| out.push((name.to_owned(), value.to_owned()));
    let sync = match settings.append_only {
        AppendOnly::Off => None,
        AppendOnly::No => Some("no"),
        AppendOnly::EverySecond => Some("everysec"),
        AppendOnly::Always => Some("always"),
    };
    if let Some(sync) = sync {
        set("appendonly", "yes");
        set("appendfsync", sync);
    }
    if let Some((bytes, policy)) = &settings.max_memory {
        set("maxmemory", &bytes.to_string());
        set("maxmemory-policy", policy);
    }
    if let Some(password) = &settings.password {
        set("requirepass", password);
    }
    out.extend(settings.options.iter().cloned());
    out
}
