//! Options of a `cassandra:` URL, and what kvdyno takes where it says nothing.

use std::sync::Arc;
use std::time::Duration;

use scylla::client::Compression;
use scylla::statement::Consistency;
use tokio_rustls::rustls::ClientConfig;

use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::{Endpoint, ReachOptions, take_retry};

/// Port of the native protocol.
const PORT: u16 = 9042;

/// Columns for fields of the table that kvdyno makes: as many as YCSB's records have fields.
const DEFAULT_FIELDS: u16 = 10;

/// Most columns for fields: a read of several fields asks for all of them.
const MOST_FIELDS: u16 = 256;

/// Levels that both reads and writes can have.
const LEVELS: [(&str, Consistency); 7] = [
    ("one", Consistency::One),
    ("two", Consistency::Two),
    ("three", Consistency::Three),
    ("quorum", Consistency::Quorum),
    ("local_one", Consistency::LocalOne),
    ("local_quorum", Consistency::LocalQuorum),
    ("all", Consistency::All),
];

/// Options of the URL as (name, meaning), for the entry.
pub(super) const OPTIONS: &[(&str, &str)] = &[
    (
        "consistency",
        "level of reads and writes: one, two, three, quorum, local_one, local_quorum, all; \
         local_quorum",
    ),
    ("read", "level of reads, if another than of writes"),
    ("write", "level of writes, if another than of reads; each_quorum too"),
    ("replication", "copies of each record in the keyspace that kvdyno makes; 3 or all nodes"),
    ("table", "name of the table; records"),
    ("fields", "columns for records of several fields in the table that kvdyno makes; 10"),
    ("connections", "connections of each worker thread to each node (ScyllaDB: to each shard); 1"),
    ("datacenter", "ask only the nodes of this datacenter; all"),
    (
        "retry",
        "none: each request goes out once; driver: it sends requests again as it sees fit; none",
    ),
    ("compression", "of requests and answers on the wire: none, lz4, snappy; none"),
    ("timeout", "longest time for a request and for an attempt to connect; 2s"),
    ("ca", "cassandras: PEM file of the authorities to trust; those that Mozilla trusts"),
    ("tls", "cassandras: insecure takes any certificate, and the result says so; verify"),
    ("pin", "cassandras: SHA-256 fingerprint of the one certificate to take; none"),
    ("cert", "cassandras: PEM file of a client certificate; none"),
    ("key", "cassandras: PEM file of its private key; none"),
];

/// Address of a cluster, and what to ask of it.
#[derive(Clone)]
pub struct CassandraOptions {
    /// Nodes to find the others by.
    pub nodes: Vec<Endpoint>,
    /// User and password.
    pub credentials: Option<(String, String)>,
    /// TLS, with these settings.
    pub tls: Option<Arc<ClientConfig>>,
    /// Entry of the result about the check of certificates, as (name, value).
    pub tls_disclosed: Option<(String, String)>,
    /// Keyspace, as it is quoted in CQL.
    pub keyspace: String,
    /// Table, as it is quoted in CQL.
    pub table: String,
    /// Level of reads.
    pub read: Consistency,
    /// Level of writes.
    pub write: Consistency,
    /// Copies of each record; `None` where the URL does not say how many.
    pub replication: Option<u32>,
    /// Columns for fields; `None` where the URL does not say how many.
    pub fields: Option<u16>,
    /// Connections to each node, or shard of one, from each worker thread.
    pub connections: usize,
    /// The only datacenter to ask.
    pub datacenter: Option<String>,
    /// True if the driver sends requests again as it sees fit.
    pub retry: bool,
    /// Compression of what goes over the wire; `None`: none.
    pub compression: Option<Compression>,
    /// Longest time for a request, and for an attempt to connect.
    pub timeout: Duration,
    /// Copy of a record, from 0, to whose node each request goes, and to no other. No URL says so: replicas are compared
    /// this way.
    pub copy: Option<usize>,
}

impl CassandraOptions {
    /// Takes the options from `cassandra://[user:password@]host[:port][,host…][/keyspace][?…]`.
    ///
    /// # Errors
    /// [`StoreError::Url`]
    pub(super) fn take(url: &mut StoreUrl) -> Result<CassandraOptions, StoreError> {
        let reach = ReachOptions::take(url, "cassandras")?;
        let both = url.take_choice("consistency", &LEVELS)?;
        let read = url.take_choice("read", &LEVELS)?;
        let mut write_levels = LEVELS.to_vec();
        write_levels.push(("each_quorum", Consistency::EachQuorum));
        let write = url.take_choice("write", &write_levels)?;
        let replication = url.take_number("replication")?;
        let fields = url.take_number("fields")?;
        let connections = url.take_number("connections")?.unwrap_or(1);
        let table = url.take("table").unwrap_or_else(|| "records".to_owned());
        let datacenter = url.take("datacenter");
        let retry = take_retry(url)?;
        let compression = url.take_choice(
            "compression",
            &[
                ("none", None),
                ("lz4", Some(Compression::Lz4)),
                ("snappy", Some(Compression::Snappy)),
            ],
        )?;
        url.finish()?;
        let nodes = reach.endpoints(url, PORT)?;
        if replication == Some(0) || connections == 0 {
            return Err(url.wrong("a number that is 0", "write 1 or more"));
        }
        if fields.is_some_and(|fields| fields > MOST_FIELDS) {
            return Err(url.wrong("too many fields", format!("write {MOST_FIELDS} or fewer")));
        }
        let keyspace = match url.path().trim_matches('/') {
            "" => "kvdyno".to_owned(),
            name => name.to_owned(),
        };
        for name in [&keyspace, &table] {
            refuse_bad_name(url, name)?;
        }
        Ok(CassandraOptions {
            credentials: url
                .user()
                .map(|user| (user.to_owned(), url.password().unwrap_or_default().to_owned())),
            tls: nodes[0].tls(),
            tls_disclosed: nodes[0].disclosed(),
            keyspace,
            table,
            read: read.or(both).unwrap_or_default(),
            write: write.or(both).unwrap_or_default(),
            replication,
            fields,
            connections,
            datacenter,
            retry,
            compression: compression.flatten(),
            timeout: nodes[0].timeout(),
            copy: None,
            nodes,
        })
    }

    /// Returns `host:port` of each node that the URL names.
    pub(super) fn names(&self) -> Vec<String> {
        self.nodes.iter().map(Endpoint::name).collect()
    }

    /// Returns the number of columns for fields of a table that is still to be made.
    pub(super) fn new_fields(&self) -> u16 {
        self.fields.unwrap_or(DEFAULT_FIELDS)
    }

    /// Returns the table's name in CQL. Names are quoted, so that they are taken as they are written.
    pub(super) fn full_table(&self) -> String {
        format!("\"{}\".\"{}\"", self.keyspace, self.table)
    }
}

/// Applies Cassandra's own rule for names, which also keeps quotes out of the statements.
fn refuse_bad_name(url: &StoreUrl, name: &str) -> Result<(), StoreError> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain && (1..=48).contains(&name.len()) {
        return Ok(());
    }
    let advice = "write up to 48 letters, digits and `_`, like `cassandra://host/keyspace`";
    Err(url.wrong("a name of a keyspace or table that Cassandra does not take", advice))
}

/// Returns the word of a level in URLs.
pub(super) fn word(level: Consistency) -> &'static str {
    let known = LEVELS.iter().find(|(_, known)| *known == level);
    known.map_or("each_quorum", |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<CassandraOptions, StoreError> {
        CassandraOptions::take(&mut StoreUrl::parse(text)?)
    }

    #[test]
    fn a_url_says_where_the_nodes_are_and_what_is_asked_of_them() {
        let plain = options("cassandra://h").unwrap();
        assert_eq!(plain.names(), ["h:9042"]);
        assert_eq!((plain.keyspace.as_str(), plain.table.as_str()), ("kvdyno", "records"));
        assert_eq!(plain.full_table(), "\"kvdyno\".\"records\"");
        let both = (Consistency::LocalQuorum, Consistency::LocalQuorum);
        assert_eq!((plain.read, plain.write), both);
        assert!(plain.credentials.is_none() && plain.tls.is_none() && plain.compression.is_none());
        assert_eq!((plain.new_fields(), plain.connections), (10, 1));
        assert!(!plain.retry && options("cassandra://h?retry=driver").unwrap().retry);
        let full = options(
            "cassandra://u:p%40ss@a:1,[::1]/ks?table=t&consistency=all&read=one&replication=2\
             &fields=3&connections=4&datacenter=dc&compression=lz4&timeout=150ms",
        )
        .unwrap();
        assert_eq!(full.names(), ["a:1", "[::1]:9042"]);
        assert_eq!(full.credentials, Some(("u".to_owned(), "p@ss".to_owned())));
        assert_eq!(full.full_table(), "\"ks\".\"t\"");
        assert_eq!((full.read, full.write), (Consistency::One, Consistency::All));
        assert_eq!((full.replication, full.fields, full.connections), (Some(2), Some(3), 4));
        assert_eq!(full.datacenter.as_deref(), Some("dc"));
        assert_eq!(full.timeout, Duration::from_millis(150));
        let each = options("cassandra://h?write=each_quorum").unwrap();
        assert_eq!((word(each.read), word(each.write)), ("local_quorum", "each_quorum"));
        assert!(options("cassandras://h").unwrap().tls.is_some());
        let loud = options("cassandra://h?read=QUORUM&write=LOCAL_QUORUM").unwrap();
        assert_eq!((loud.read, loud.write), (Consistency::Quorum, Consistency::LocalQuorum));
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("cassandra:", "no server"),
            ("cassandra://h/a-b", "does not take"),
            ("cassandra://h/ks/t", "does not take"),
            ("cassandra://h?table=a%22b", "does not take"),
            ("cassandra://h?read=each_quorum", "`local_quorum`"),
            ("cassandra://h?consistency=any", "`quorum`"),
            ("cassandra://h?replication=0", "1 or more"),
            ("cassandra://h?connections=0", "1 or more"),
            ("cassandra://h?fields=1000", "256"),
            ("cassandra://h?timeout=0", "timeout of 0"),
            ("cassandra://h?consistancy=one", "did you mean `consistency`?"),
            ("cassandra://h?ca=/x", "write `cassandras://…`"),
            ("cassandras://h?ca=/no/such/file", "/no/such/file"),
        ] {
            let message = options(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}
