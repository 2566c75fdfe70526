//! Options of an `aerospike:` URL, and the driver's policies that follow from them.

use std::time::Duration;

use aerospike::{
    AuthMode, BasePolicy, BatchPolicy, BatchWritePolicy, ClientPolicy, CommitLevel,
    GenerationPolicy, Host, ReadModeAp, ReadModeSc, ReadPolicy, Replica, WritePolicy,
};

use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::{ReachOptions, take_retry};

/// Port of the service.
const PORT: u16 = 3000;

/// Options of the URL as (name, meaning), for the entry.
pub(super) const OPTIONS: &[(&str, &str)] = &[
    ("commit", "a write is answered when it is on the master or on all copies: master, all; all"),
    (
        "replica",
        "which copy a read asks: master, sequence (the master; while it is away the next), any (each \
         in turn); sequence",
    ),
    (
        "consistency",
        "of reads: one, all (all copies while data moves), or with strong consistency session, \
         linearize, allow-replica, allow-unavailable; one or session",
    ),
    ("send-key", "keep the key in the record, not its digest alone; false"),
    (
        "connections",
        "most connections of each worker thread to each node; one for each of its clients",
    ),
    (
        "retry",
        "none: each request goes out once; driver: it sends requests again as it sees fit; none",
    ),
    ("timeout", "longest time for a request and for an attempt to connect; 2s"),
];

/// Consistency that reads ask for, by the mode of the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// In a namespace of availability (AP).
    Available(ReadModeAp),
    /// In a namespace of strong consistency (SC).
    Strong(ReadModeSc),
}

/// Words of the option `consistency`.
pub(super) const READS: [(&str, Reads); 6] = [
    ("one", Reads::Available(ReadModeAp::One)),
    ("all", Reads::Available(ReadModeAp::All)),
    ("session", Reads::Strong(ReadModeSc::Session)),
    ("linearize", Reads::Strong(ReadModeSc::Linearize)),
    ("allow-replica", Reads::Strong(ReadModeSc::AllowReplica)),
    ("allow-unavailable", Reads::Strong(ReadModeSc::AllowUnavailable)),
];

const REPLICAS: [(&str, Replica); 3] =
    [("master", Replica::Master), ("sequence", Replica::Sequence), ("any", Replica::MasterProles)];

/// Number of clients that share one client of the driver, and its connections to each node. The driver's client has as many
/// connections, opened before the first request: a client that finds none would wait for the driver to open one beside all
/// other work, and kvdyno would count that as the server's time.
pub(super) const CLIENTS_OF_A_LINK: usize = 16;

/// Address of a cluster, and what to ask of it.
#[derive(Clone)]
pub(super) struct AerospikeOptions {
    pub hosts: Vec<Host>,
    pub credentials: Option<(String, String)>,
    pub namespace: String,
    pub set: String,
    pub commit: CommitLevel,
    pub replica: Replica,
    /// Consistency of reads; `None`: the weakest that the namespace's mode has, as the driver does.
    pub reads: Option<Reads>,
    pub send_key: bool,
    /// True if the driver sends requests again as it sees fit.
    pub retry: bool,
    /// Connections of each worker thread to each node; `None`: one for each client.
    pub connections: Option<usize>,
    pub timeout: Duration,
    /// The timeout in milliseconds, as the driver takes it.
    milliseconds: u32,
}

impl AerospikeOptions {
    /// Takes the options from `aerospike://[user:password@]host[:port][,host…]/namespace[/set][?…]`.
    ///
    /// # Errors
    /// [`StoreError::Url`]
    pub fn take(url: &mut StoreUrl) -> Result<AerospikeOptions, StoreError> {
        let reach = ReachOptions::take_plain(url)?;
        let commit = url.take_choice(
            "commit",
            &[("all", CommitLevel::CommitAll), ("master", CommitLevel::CommitMaster)],
        )?;
        let replica = url.take_choice("replica", &REPLICAS)?.unwrap_or_default();
        let reads = url.take_choice("consistency", &READS)?;
        let send_key = url.take_flag("send-key")?.unwrap_or(false);
        let connections = url.take_number("connections")?;
        let retry = take_retry(url)?;
        url.finish()?;
        let endpoints = reach.endpoints(url, PORT)?;
        let timeout = endpoints[0].timeout();
        let milliseconds = u32::try_from(timeout.as_millis()).ok().filter(|ms| *ms > 0);
        let milliseconds = milliseconds.ok_or_else(|| {
            url.wrong("a timeout that Aerospike cannot keep", "write 1ms or more")
        })?;
        if connections == Some(0) {
            return Err(url.wrong("no connections", "write `connections=1` or more"));
        }
        let (namespace, set) = place(url)?;
        let credentials = match (url.user(), url.password()) {
            (Some(user), Some(password)) => Some((user.to_owned(), password.to_owned())),
            (None, None) => None,
            _ => {
                let advice = "write both: `aerospike://user:password@host/namespace`";
                return Err(url.wrong("a user without a password, or the other way round", advice));
            }
        };
        let host = |endpoint: &crate::wire::Endpoint| Host::new(endpoint.host(), endpoint.port());
        Ok(AerospikeOptions {
            hosts: endpoints.iter().map(host).collect(),
            credentials,
            namespace,
            set,
            commit: commit.unwrap_or_default(),
            replica,
            reads,
            send_key,
            retry,
            connections,
            timeout,
            milliseconds,
        })
    }

    /// Returns `host:port` of all nodes that the URL names.
    pub fn places(&self) -> String {
        self.hosts.iter().map(Host::address).collect::<Vec<_>>().join(", ")
    }

    /// Returns the policy of the driver's client.
    pub fn client_policy(&self) -> ClientPolicy {
        let auth_mode = match &self.credentials {
            Some((user, password)) => AuthMode::Internal(user.clone(), password.clone()),
            None => AuthMode::None,
        };
        let connections = self.connections.unwrap_or(CLIENTS_OF_A_LINK);
        ClientPolicy {
            auth_mode,
            timeout: self.milliseconds,
            login_timeout: self.milliseconds,
            min_conns_per_node: connections.min(CLIENTS_OF_A_LINK),
            max_conns_per_node: connections,
            ..ClientPolicy::default()
        }
    }

    /// Returns what all requests have in common. Each goes out once, unless the URL says otherwise.
    fn base(&self) -> BasePolicy {
        let driver = BasePolicy::default();
        let (ap, sc) = match self.reads {
            Some(Reads::Available(ap)) => (ap, ReadModeSc::default()),
            Some(Reads::Strong(sc)) => (ReadModeAp::default(), sc),
            None => Default::default(),
        };
        BasePolicy {
            socket_timeout: self.milliseconds,
            total_timeout: self.milliseconds,
            max_retries: if self.retry { driver.max_retries } else { 0 },
            read_mode_ap: ap,
            read_mode_sc: sc,
            replica: self.replica,
            ..driver
        }
    }

    /// Returns the policy of gets.
    pub fn read_policy(&self) -> ReadPolicy {
        ReadPolicy { base_policy: self.base() }
    }

    /// Returns the policy of puts and deletes. `durable_delete`: deletes leave a tombstone, as strong consistency wants.
    pub fn write_policy(&self, durable_delete: bool) -> WritePolicy {
        WritePolicy {
            base_policy: self.base(),
            generation_policy: GenerationPolicy::None,
            commit_level: self.commit,
            send_key: self.send_key,
            durable_delete,
            ..WritePolicy::default()
        }
    }

    /// Returns the policy of batches, of gets and of puts alike.
    pub fn batch_policy(&self) -> BatchPolicy {
        BatchPolicy { base_policy: self.base(), ..BatchPolicy::default() }
    }

    /// Returns the policy of each put of a batch.
    pub fn batch_write_policy(&self) -> BatchWritePolicy {
        BatchWritePolicy {
            generation_policy: GenerationPolicy::None,
            commit_level: self.commit,
            send_key: self.send_key,
            ..BatchWritePolicy::default()
        }
    }

    /// Returns the settings worth disclosing.
    pub fn settings(&self) -> Vec<(String, String)> {
        let commit = match self.commit {
            CommitLevel::CommitAll => "all",
            CommitLevel::CommitMaster => "master",
        };
        let replica = REPLICAS.iter().find(|(_, replica)| *replica == self.replica);
        let reads = READS.iter().find(|(_, reads)| Some(*reads) == self.reads);
        let each = || "one for each client".to_owned();
        let connections = self.connections.map_or_else(each, |most| most.to_string());
        let mut out = vec![
            ("namespace", self.namespace.clone()),
            ("set", self.set.clone()),
            ("commit level", commit.to_owned()),
            ("reads ask", replica.map_or("sequence", |(word, _)| word).to_owned()),
            ("send-key", self.send_key.to_string()),
            ("connections to each node from each worker", connections),
        ];
        out.extend(reads.map(|(word, _)| ("read consistency", (*word).to_owned())));
        out.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Returns namespace and set. A set's name has up to 63 bytes, a namespace's 31.
fn place(url: &StoreUrl) -> Result<(String, String), StoreError> {
    const ADVICE: &str = "write it like `aerospike://host/namespace/set`";
    let parts: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    let (namespace, set) = match parts[..] {
        [] => return Err(url.wrong("no namespace", ADVICE)),
        [namespace] => (namespace, "kvdyno"),
        [namespace, set] => (namespace, set),
        _ => return Err(url.wrong("a path of more than namespace and set", ADVICE)),
    };
    let plain = |name: &str| !name.contains([':', ';']) && !name.chars().any(char::is_control);
    if namespace.len() > 31 || set.len() > 63 || !plain(namespace) || !plain(set) {
        return Err(url.wrong("a name of a namespace or set that Aerospike does not take", ADVICE));
    }
    Ok((namespace.to_owned(), set.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<AerospikeOptions, StoreError> {
        AerospikeOptions::take(&mut StoreUrl::parse(text)?)
    }

    #[test]
    fn a_url_becomes_the_drivers_policies() {
        let plain = options("aerospike://h1,h2:1/test").unwrap();
        assert_eq!(plain.places(), "h1:3000, h2:1");
        assert_eq!((plain.namespace.as_str(), plain.set.as_str()), ("test", "kvdyno"));
        let write = plain.write_policy(false);
        assert_eq!(write.commit_level, CommitLevel::CommitAll);
        assert_eq!(write.generation_policy, GenerationPolicy::None);
        assert!(!write.send_key && !write.durable_delete);
        assert_eq!(plain.client_policy().auth_mode, AuthMode::None);
        assert_eq!(plain.client_policy().max_conns_per_node, CLIENTS_OF_A_LINK);
        let full = options(
            "aerospike://u:p@h/ns/s?commit=master&replica=any&consistency=linearize&send-key\
             &connections=7&timeout=150ms",
        )
        .unwrap();
        assert_eq!((full.namespace.as_str(), full.set.as_str()), ("ns", "s"));
        let client = full.client_policy();
        assert_eq!(client.auth_mode, AuthMode::Internal("u".to_owned(), "p".to_owned()));
        assert_eq!((client.timeout, client.max_conns_per_node), (150, 7));
        let (read, write, batch) =
            (full.read_policy(), full.write_policy(true), full.batch_policy());
        for base in [&read.base_policy, &write.base_policy, &batch.base_policy] {
            assert_eq!((base.total_timeout, base.socket_timeout, base.max_retries), (150, 150, 0));
            assert_eq!(
                (base.replica, base.read_mode_sc),
                (Replica::MasterProles, ReadModeSc::Linearize)
            );
        }
        assert_eq!(write.commit_level, CommitLevel::CommitMaster);
        assert!(write.send_key && write.durable_delete);
        let row = full.batch_write_policy();
        assert_eq!((row.commit_level, row.send_key), (CommitLevel::CommitMaster, true));
        let all = options("aerospike://h/ns?consistency=all").unwrap().read_policy();
        assert_eq!(all.base_policy.read_mode_ap, ReadModeAp::All);
        let again = options("aerospike://h/ns?retry=driver").unwrap();
        assert!(again.write_policy(true).base_policy.max_retries > 0);
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("aerospike:", "no server"),
            ("aerospike://h", "no namespace"),
            ("aerospike://h/ns/s/x", "namespace/set"),
            ("aerospike://h/a:b", "does not take"),
            ("aerospike://u@h/ns", "write both"),
            ("aerospike://h/ns?commit=most", "`master`"),
            ("aerospike://h/ns?replica=rack", "`sequence`"),
            ("aerospike://h/ns?consistency=eventual", "`linearize`"),
            ("aerospike://h/ns?connections=0", "connections=1"),
            ("aerospike://h/ns?timeout=1us", "1ms"),
            ("aerospike://h/ns?comit=all", "did you mean `commit`?"),
        ] {
            let message = options(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}
