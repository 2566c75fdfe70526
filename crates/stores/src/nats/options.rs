//! Options in the URL of a NATS bucket: servers, credentials, the bucket, and how it is read.

use std::sync::Arc;
use std::time::Duration;

use async_nats::ConnectOptions;
use tokio_rustls::rustls::ClientConfig;

use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::{Endpoint, ReachOptions, TlsFiles, Trust};

/// Options of the URL, with their meaning.
pub(super) const OPTIONS: &[(&str, &str)] = &[
    ("timeout", "longest time for a request and for an attempt to connect, 2s"),
    ("read", "leader (of the bucket's stream) or direct (any replica, perhaps old); leader"),
    ("replicas", "copies of each record in a bucket that kvdyno makes; 3 in a cluster, else 1"),
    ("storage", "file or memory, of a bucket that kvdyno makes; file"),
    ("monitor", "port of the servers' monitoring, which tells when they sync; not asked"),
    ("ca", "natss: PEM file of the authorities or certificates to trust; Mozilla's authorities"),
    ("cert", "natss: PEM file of a client certificate; none"),
    ("key", "natss: PEM file of its private key; none"),
    ("tls", "natss: insecure takes any certificate, and the result says so; verify"),
    ("pin", "natss: SHA-256 fingerprint of the one certificate to take; none"),
];

const DEFAULT_PORT: u16 = 4222;
const DEFAULT_BUCKET: &str = "kvdyno";

/// Replica that answers reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NatsRead {
    /// The leader of the bucket's stream, which has applied every acknowledged write.
    #[default]
    Leader,
    /// Any replica, by a direct get: what official clients do where the bucket allows it, as it does by default.
    Direct,
}

/// Way to reach a bucket.
#[derive(Clone)]
pub struct NatsOptions {
    /// Servers, over TCP without TLS: a server greets its clients before TLS begins.
    pub servers: Vec<Endpoint>,
    /// Name of the bucket.
    pub bucket: String,
    /// Replica that answers reads.
    pub read: NatsRead,
    /// Copies of each record in a bucket that is made.
    pub replicas: Option<u64>,
    /// `true` for memory, `false` for files, in a bucket that is made.
    pub memory: Option<bool>,
    /// Port of the monitoring page of all servers.
    pub monitor: Option<u16>,
    /// Longest time that a request, or an attempt to connect, may take.
    pub timeout: Duration,
    /// Connections are over TLS.
    pub(super) encrypted: bool,
    /// Configuration of TLS. For a plain connection one that takes no certificate: the official client begins TLS by itself
    /// where a server asks for it, and would choose one of its own.
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) trust: Trust,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
}

impl NatsOptions {
    pub(super) fn take(url: &mut StoreUrl) -> Result<NatsOptions, StoreError> {
        let reach = ReachOptions::take(url, "natss")?;
        let reads = [("leader", NatsRead::Leader), ("direct", NatsRead::Direct)];
        let read = url.take_choice("read", &reads)?.unwrap_or_default();
        let replicas = url.take_number::<u64>("replicas")?;
        let memory = url.take_choice("storage", &[("file", false), ("memory", true)])?;
        let monitor = url.take_number::<u16>("monitor")?;
        url.finish()?;
        if replicas.is_some_and(|replicas| ![1, 3, 5].contains(&replicas)) {
            return Err(url.wrong("a number of `replicas` that has no use", "write 1, 3 or 5"));
        }
        let bucket = match url.path().trim_matches('/') {
            "" => DEFAULT_BUCKET.to_owned(),
            name if is_bucket(name) => name.to_owned(),
            _ => {
                let advice = "write letters, digits, `-` and `_` as the path: `…/BUCKET`";
                return Err(url.wrong("no name of a bucket", advice));
            }
        };
        let endpoints = reach.endpoints(url, DEFAULT_PORT)?;
        let none = TlsFiles { trust: Trust::Pinned([0; 32]), ..TlsFiles::default() };
        let refusing = Endpoint::new("", DEFAULT_PORT, reach.timeout(), Some(&none));
        let refusing = refusing.map_err(|problem| url.wrong(problem, "write `natss://…`"))?;
        let servers = ReachOptions::plain(reach.timeout()).endpoints(url, DEFAULT_PORT)?;
        Ok(NatsOptions {
            encrypted: reach.tls().is_some(),
            tls: endpoints.first().and_then(Endpoint::tls).or(refusing.tls()),
            trust: reach.tls().map_or(Trust::default(), |files| files.trust),
            servers,
            bucket,
            read,
            replicas,
            memory,
            monitor,
            timeout: reach.timeout(),
            user: url.user().map(str::to_owned),
            password: url.password().map(str::to_owned),
        })
    }

    /// Builds what the official client is given. It is not to find servers by itself, and not to come back to one: the
    /// line goes to the next. (No number of attempts stands for none, so that it makes one at once.)
    pub(super) fn connect(&self) -> ConnectOptions {
        let options = ConnectOptions::new()
            .name("kvdyno")
            .connection_timeout(self.timeout)
            .request_timeout(None)
            .ignore_discovered_servers()
            .max_reconnects(1)
            .require_tls(self.encrypted);
        let options = match &self.tls {
            Some(config) => options.tls_client_config(config.as_ref().clone()),
            None => options,
        };
        match (&self.user, &self.password) {
            (Some(user), Some(password)) => {
                options.user_and_password(user.clone(), password.clone())
            }
            (Some(token), None) | (None, Some(token)) => options.token(token.clone()),
            (None, None) => options,
        }
    }

    /// Tells what the result says of the check of certificates, where it is not the usual one.
    pub(super) fn disclosed(&self) -> Option<&'static str> {
        self.trust.disclosed().filter(|_| self.encrypted)
    }

    /// Gives the name of the stream that holds the bucket.
    pub(super) fn stream(&self) -> String {
        format!("KV_{}", self.bucket)
    }
}

fn is_bucket(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<NatsOptions, StoreError> {
        NatsOptions::take(&mut StoreUrl::parse(text)?)
    }

    #[test]
    fn a_url_names_servers_and_a_bucket() {
        let plain = options("nats://a,b:4").unwrap();
        let names: Vec<String> = plain.servers.iter().map(Endpoint::name).collect();
        assert_eq!(names, ["a:4222", "b:4"]);
        assert_eq!((plain.bucket.as_str(), plain.read), ("kvdyno", NatsRead::Leader));
        assert_eq!((plain.replicas, plain.memory, plain.monitor), (None, None, None));
        let full = options(
            "natss://u:p@h/my-bucket?read=direct&replicas=3&storage=memory&monitor=8222&timeout=1s",
        )
        .unwrap();
        assert_eq!((full.stream().as_str(), full.read), ("KV_my-bucket", NatsRead::Direct));
        assert_eq!((full.replicas, full.memory, full.monitor), (Some(3), Some(true), Some(8222)));
        assert_eq!((full.timeout, full.encrypted), (Duration::from_secs(1), true));
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("nats:", "nats://host1"),
            ("nats://h/a.b", "`…/BUCKET`"),
            ("nats://h?read=stale", "`direct`"),
            ("nats://h?replicas=2", "1, 3 or 5"),
            ("nats://h?storage=disk", "`memory`"),
            ("nats://h?timeout=0", "timeout of 0"),
            ("nats://h?monitr=1", "did you mean `monitor`?"),
            ("nats://h?ca=/x", "natss://"),
            ("natss://h?pin=1", "64 hexadecimal digits"),
            ("natss://h?ca=/no/such/file", "/no/such/file"),
        ] {
            let message = options(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}
