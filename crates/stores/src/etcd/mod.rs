//! etcd by its gRPC interface (version 3), with the crate `etcd-client`. A connection speaks to one
//! member at a time and goes to the next one when that is lost. Which requests go on the wire for
//! each operation: docs/stores/etcd.md.

mod channel;
mod client;
mod errors;
mod incarnations;
mod leases;
mod line;
mod profile;
mod words;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use etcd_client::ConnectOptions;
use kvdyno_core::store::{
    Answer, BoxedStore, Client, Connection, Copies, Figure, FigureUnit, Joined, NoTransport,
    NodeCopy, Profile, Reading, Store, Threading, ThreadingOf,
};

use crate::attempts;
use crate::entry::{Entry, boxed, threading_of};
use crate::error::StoreError;
use crate::incarnations::Incarnations;
use crate::url::StoreUrl;
use crate::wire::{Endpoint, ReachOptions};

pub use channel::EtcdTls;
pub use client::EtcdClient;
use line::Line;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["etcd", "etcds"],
    name: "etcd",
    summary: "an etcd cluster; name all of its members; etcds is the same over TLS",
    options: &[
        ("timeout", "longest time for a request and for an attempt to connect, 2s"),
        ("read", "linearizable or serializable (from one member, perhaps old); linearizable"),
        ("lease", "each: a lease for each write with a time to live; shared: one a second; each"),
        (
            "ca",
            "etcds: PEM file of the authorities or certificates to trust; Mozilla's authorities",
        ),
        ("cert", "etcds: PEM file of a client certificate; none"),
        ("key", "etcds: PEM file of its private key; none"),
        ("tls", "etcds: insecure takes any certificate, and the result says so; verify"),
        ("pin", "etcds: SHA-256 fingerprint of the one certificate to take; none"),
    ],
    operations: "KV.Range, KV.Put, KV.DeleteRange, batches by KV.Txn; with a time to live \
                 Lease.LeaseGrant before the put; docs/stores/etcd.md",
    durability: "survives power loss: a majority has synced it to disk; declared, for a member \
                 does not tell whether it was started with --unsafe-no-fsync",
    consistency: "linearizable; with read=serializable eventual",
    example: "etcd://127.0.0.1:2379",
    lacks: &[],
    threading: threading_of::<EtcdStore>(),
    request: words::of,
    check: |url| EtcdStore::open(url).map(drop),
    open: |url| Ok(boxed(EtcdStore::open(url)?)),
};

const DEFAULT_PORT: u16 = 2379;

/// Source of the answers to reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EtcdRead {
    /// The member asked, which makes sure with the leader that it has all that was acknowledged.
    #[default]
    Linearizable,
    /// The member asked, with what it has.
    Serializable,
}

/// Leases that writes with a time to live are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    /// One for each request.
    #[default]
    Each,
    /// One for all writes of a connection that begin within a second and live equally long, as
    /// Kubernetes does with its events.
    Shared,
}

/// Address of an etcd cluster, and what to ask of it.
#[derive(Clone)]
pub struct EtcdOptions {
    /// Addresses of its members' client endpoints, as `http://host:port`.
    pub endpoints: Vec<String>,
    /// User and password, as the driver takes them.
    pub connect: ConnectOptions,
    /// True if there is a user: requests carry a token, which may end.
    pub logs_in: bool,
    /// Number of tokens that members refused, so that connections logged in again.
    pub logins: Arc<AtomicU64>,
    /// Settings of TLS; `None`: without TLS.
    pub tls: Option<EtcdTls>,
    /// Longest time that a request, or an attempt to connect, may take.
    pub timeout: Duration,
    /// Source of the answers to reads.
    pub read: EtcdRead,
    /// Leases that writes with a time to live are given.
    pub lease: Lease,
}

/// An etcd cluster.
pub struct EtcdStore {
    options: Arc<EtcdOptions>,
    /// The members, as they are asked over HTTP.
    members: Vec<Endpoint>,
    incarnations: Incarnations,
    /// Number of connections opened: they begin with different members.
    opened: AtomicUsize,
}

impl EtcdStore {
    /// Returns the cluster that a URL names: `etcd://[user:password@]host[:port][,host…]`, or `etcds://` over TLS.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no server or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<EtcdStore, StoreError> {
        let reach = ReachOptions::take(url, "etcds")?;
        let reads =
            [("linearizable", EtcdRead::Linearizable), ("serializable", EtcdRead::Serializable)];
        let read = url.take_choice("read", &reads)?.unwrap_or_default();
        let leases = [("each", Lease::Each), ("shared", Lease::Shared)];
        let lease = url.take_choice("lease", &leases)?.unwrap_or_default();
        url.finish()?;
        if !url.path().trim_matches('/').is_empty() {
            return Err(url.wrong("a path", "etcd has one space of keys: leave the path out"));
        }
        let timeout = reach.timeout();
        // A member that knows no leader refuses at once, so that the client can go to another.
        // Serializable reads do not need one.
        let mut connect = ConnectOptions::new().with_require_leader(read == EtcdRead::Linearizable);
        if let Some(user) = url.user() {
            let Some(password) = url.password() else {
                return Err(url.wrong("a user without a password", "write `user:password@`"));
            };
            connect = connect.with_user(user, password);
        }
        let logs_in = url.user().is_some();
        let tls = reach.tls().map(EtcdTls::of).transpose();
        let tls = tls
            .map_err(|problem| url.wrong(problem, "name PEM files with `ca`, `cert` and `key`"))?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let members = reach.endpoints(url, DEFAULT_PORT)?;
        let endpoints = members.iter().map(|member| format!("{scheme}://{}", member.name()));
        let endpoints = endpoints.collect();
        let options = EtcdOptions {
            endpoints,
            connect,
            logs_in,
            logins: Arc::default(),
            tls,
            timeout,
            read,
            lease,
        };
        Ok(EtcdStore { members, ..EtcdStore::new(options) })
    }

    /// Makes the store and connects to nothing yet. Its members are not asked for how long they are up.
    fn new(options: EtcdOptions) -> Self {
        let (members, incarnations, opened) =
            (Vec::new(), Incarnations::default(), AtomicUsize::new(0));
        EtcdStore { options: Arc::new(options), members, incarnations, opened }
    }

    /// Returns a line to the first member that answers, from the one whose turn it is.
    async fn line(&self) -> Answer<Line> {
        let first = self.opened.fetch_add(1, Ordering::Relaxed);
        let line = Line::new(self.options.clone(), first);
        attempts::any(self.options.endpoints.len(), async || line.link().await).await?;
        Ok(line)
    }
}

/// Tells how many tokens members refused, if they did.
fn renewed(logins: u64) -> Option<Figure> {
    (logins > 0).then(|| Figure {
        name: "logins anew".to_owned(),
        value: logins as f64,
        unit: FigureUnit::Count,
        detail:
            "members refused tokens, which end when they are not used; no request failed by that"
                .to_owned(),
        warning: None,
    })
}

impl EtcdStore {
    /// Returns a store of the records that one member has itself.
    fn of_member(&self, endpoint: String) -> EtcdStore {
        EtcdStore::new(EtcdOptions {
            endpoints: vec![endpoint],
            // Without a leader it still answers.
            connect: self.options.connect.clone().with_require_leader(false),
            read: EtcdRead::Serializable,
            ..self.options.as_ref().clone()
        })
    }
}

impl Store for EtcdStore {
    type Client = EtcdClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let found = profile::ask_all(&self.line().await?, &self.options).await?;
        self.incarnations
            .meet(Instant::now(), incarnations::read_incarnations(&self.members).await);
        Ok(found)
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<EtcdClient, NoTransport>> {
        let line = Rc::new(self.line().await?);
        let clients = (0..slots).map(|_| EtcdClient::new(Rc::clone(&line))).collect();
        Ok(Connection { clients, transport: NoTransport })
    }

    /// Reports restarts of members that the URL names, and refused tokens.
    async fn figures(&self) -> Vec<Figure> {
        let incarnations = incarnations::read_incarnations(&self.members).await;
        let restarted = self.incarnations.look(Instant::now(), incarnations);
        let renewed = renewed(self.options.logins.swap(0, Ordering::Relaxed));
        restarted.into_iter().chain(renewed).collect()
    }

    fn stronger(&self) -> Vec<(BoxedStore, String)> {
        match self.options.read {
            EtcdRead::Linearizable => Vec::new(),
            EtcdRead::Serializable => {
                let options =
                    EtcdOptions { read: EtcdRead::Linearizable, ..self.options.as_ref().clone() };
                vec![(BoxedStore::new(EtcdStore::new(options)), "linearizable".to_owned())]
            }
        }
    }

    /// A member that is asked for a serializable read answers with what it has itself. The members are
    /// those that the cluster names now: some may have joined, some left.
    async fn copies(&self) -> Answer<Copies<BoxedStore>> {
        let members = profile::members(&self.line().await?, &self.options).await?;
        if members.len() < 2 {
            return Ok(Copies::One);
        }
        let distinct: BTreeSet<&str> = members.iter().map(|(_, url)| url.as_str()).collect();
        if distinct.len() < members.len() {
            let why = "several members name the same address (--advertise-client-urls)";
            return Ok(Copies::NotShown(why.to_owned()));
        }
        let copy = |(name, endpoint): (String, String)| {
            NodeCopy::of_node(name, BoxedStore::new(self.of_member(endpoint)))
        };
        Ok(Copies::Each(members.into_iter().map(copy).collect()))
    }

    async fn join(&self, _server: &str) -> Answer<Joined> {
        Ok(Joined::ByServers)
    }

    async fn held_by(&self, server: &str, keys: &[Vec<u8>]) -> Answer<u64> {
        let first = self.options.endpoints.first().map_or("", String::as_str);
        let scheme = first.split("://").next().unwrap_or("http");
        let member = self.of_member(format!("{scheme}://{server}"));
        let mut client = EtcdClient::new(Rc::new(member.line().await?));
        let (mut held, mut reading) = (0, Reading::default());
        for key in keys {
            reading.clear();
            held += u64::from(client.get(key, &mut reading).await?);
        }
        Ok(held)
    }

    crate::on_servers::kept_on_servers!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Result<EtcdOptions, StoreError> {
        let store = EtcdStore::open(&mut StoreUrl::parse(text)?)?;
        Ok(EtcdOptions::clone(&store.options))
    }

    #[test]
    fn a_url_names_all_members() {
        let plain = open("etcd://a,b:4,[::1]").unwrap();
        assert_eq!(plain.endpoints, ["http://a:2379", "http://b:4", "http://[::1]:2379"]);
        assert_eq!((plain.read, plain.lease), (EtcdRead::Linearizable, Lease::Each));
        assert_eq!(plain.timeout, Duration::from_secs(2));
        let full = open("etcd://u:p@h/?read=serializable&timeout=1s&lease=shared").unwrap();
        assert_eq!((full.read, full.lease), (EtcdRead::Serializable, Lease::Shared));
        assert_eq!(full.timeout, Duration::from_secs(1));
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("etcd:", "etcd://host1"),
            ("etcd://h/registry", "leave the path out"),
            ("etcd://u@h", "user:password@"),
            ("etcd://h?read=stale", "`serializable`"),
            ("etcd://h?lease=none", "`shared`"),
            ("etcd://h?timeout=0", "timeout of 0"),
            ("etcd://h?reads=serializable", "did you mean `read`?"),
            ("etcd://h?ca=/x", "etcds://"),
            ("etcds://h?pin=1", "64 hexadecimal digits"),
            ("etcds://h?cert=/x", "without its key"),
            ("etcd://h?tls=insecure", "etcds://"),
            ("etcds://h?ca=/no/such/file", "/no/such/file"),
        ] {
            let message = open(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}
