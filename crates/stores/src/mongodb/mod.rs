//! MongoDB, and what speaks its protocol (FerretDB), with the official driver. Which commands go on
//! the wire for each operation, and how the driver is set up: docs/stores/mongodb.md.

mod client;
mod documents;
mod errors;
mod pool;
mod profile;
mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Connection, Figure, Joined, NoTransport, Profile, Store, Threading, ThreadingOf,
};
use mongodb::options::{
    Acknowledgment, ClientOptions, Credential, ReadConcern, ReadConcernLevel, ReadPreference,
    SelectionCriteria, ServerAddress, Tls, TlsOptions, WriteConcern,
};

use crate::entry::{Entry, boxed, threading_of};
use crate::error::StoreError;
use crate::incarnations::Incarnations;
use crate::url::StoreUrl;
use crate::wire::{take_retry, take_timeout};

pub use client::MongoClient;
use pool::Pools;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["mongodb"],
    name: "mongodb",
    summary: "MongoDB: one server, a replica set or mongos; also FerretDB",
    options: &[
        ("timeout", "longest time for a request, choice of a server included, 2s"),
        ("w", "write concern: majority or a number of members; the deployment's default"),
        ("journal", "true: answered when the journal is on disk; the deployment's default"),
        ("wtimeoutMS", "longest wait for the write concern, in ms; none"),
        (
            "readPreference",
            "primary, primaryPreferred, secondary, secondaryPreferred or nearest; primary",
        ),
        (
            "readConcernLevel",
            "local, available, majority or linearizable; the deployment's default",
        ),
        (
            "retry",
            "none: each request goes out once; driver: retryReads and retryWrites are on; none",
        ),
        ("replicaSet", "name of the replica set; found out"),
        ("directConnection", "true: ask the one server named, whatever it is; false"),
        ("authSource", "database that knows the user; that of the path, else admin"),
        ("tls", "true: over TLS; insecure: with any certificate, and the result says so; false"),
        ("tlsInsecure", "true: as tls=insecure (also tlsAllowInvalidCertificates); false"),
        ("tlsCAFile", "PEM file of the authorities to trust; those that Mozilla trusts"),
        ("tlsCertificateKeyFile", "PEM file of a client certificate and its key; none"),
        ("collection", "collection of the records; records"),
    ],
    operations: "find, update with upsert, insert, delete; batches: find with $in, update or insert \
                 of many; several fields are fields of the document; docs/stores/mongodb.md",
    durability: "from write concern, journal and replica set, as read back; w=majority survives \
                 power loss, w=1 nothing for sure",
    consistency: "primary with readConcernLevel=linearizable: linearizable; primary: read after \
                  write; secondary or nearest: eventual; a server without replicas: linearizable",
    example: "mongodb://127.0.0.1:27017/kvdyno?w=majority",
    lacks: &[Need::Ttl, Need::Pipeline],
    threading: threading_of::<MongoStore>(),
    request: words::of,
    check: |url| MongoStore::open(url).map(drop),
    open: |url| Ok(boxed(MongoStore::open(url)?)),
};

const DEFAULT_DATABASE: &str = "kvdyno";
const DEFAULT_COLLECTION: &str = "records";

/// Address of a MongoDB deployment, and what to ask of it.
#[derive(Clone)]
pub struct MongoOptions {
    /// Options of the driver.
    pub driver: ClientOptions,
    /// Database of the records.
    pub database: String,
    /// Collection of the records.
    pub collection: String,
    /// Longest time that a request may take.
    pub timeout: Duration,
}

impl MongoOptions {
    /// Returns true if reads go to the primary only.
    fn reads_primary(&self) -> bool {
        matches!(
            self.driver.selection_criteria,
            None | Some(SelectionCriteria::ReadPreference(ReadPreference::Primary))
        )
    }

    /// Returns true if the driver sends a request again by itself.
    fn retries(&self) -> bool {
        self.driver.retry_writes == Some(true)
    }

    fn read_concern(&self) -> Option<&ReadConcernLevel> {
        self.driver.read_concern.as_ref().map(|concern| &concern.level)
    }
}

/// A MongoDB deployment.
pub struct MongoStore {
    options: Arc<MongoOptions>,
    pools: Pools,
    incarnations: Incarnations,
}

impl MongoStore {
    /// Returns the deployment that a URL names: `mongodb://[user:password@]host[:port][,host…][/database]`,
    /// with options named as in MongoDB's own connection strings.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no server or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<MongoStore, StoreError> {
        let timeout = take_timeout(url)?;
        let write_concern = take_write_concern(url)?;
        let (selection, read_concern) = take_reads(url)?;
        let retry = take_retry(url)?;
        let replica_set = url.take("replicaSet");
        let direct = url.take_flag("directConnection")?;
        let source = url.take("authSource");
        let tls = take_tls(url)?;
        let collection = url.take("collection");
        url.finish()?;
        if url.hosts().is_empty() {
            return Err(url.wrong("no server", "write it like `mongodb://host1,host2/database`"));
        }
        if direct == Some(true) && url.hosts().len() > 1 {
            return Err(url.wrong("a direct connection to several servers", "name one server"));
        }
        let database = url.path().trim_matches('/');
        if database.contains(['/', '\\', '.', ' ', '"', '$']) {
            return Err(url.wrong("a path that is no database", "write it like `/kvdyno`"));
        }
        let source = source.or_else(|| Some(database).filter(|d| !d.is_empty()).map(str::to_owned));
        let credential = url.user().map(|user| {
            Credential::builder()
                .username(user.to_owned())
                .password(url.password().map(str::to_owned))
                .source(source)
                .build()
        });
        let hosts = url.hosts().iter();
        let hosts =
            hosts.map(|host| ServerAddress::Tcp { host: host.name.clone(), port: host.port });
        let mut driver = ClientOptions::builder()
            .hosts(hosts.collect::<Vec<_>>())
            .app_name("kvdyno".to_owned())
            .connect_timeout(timeout)
            .server_selection_timeout(timeout)
            // A client of kvdyno has one request in flight, so there are never more connections
            // to a server than clients, and none ever waits for another's.
            .max_pool_size(u32::MAX)
            .retry_reads(retry)
            .retry_writes(retry)
            .build();
        driver.write_concern = write_concern;
        driver.read_concern = read_concern;
        driver.selection_criteria = selection;
        driver.repl_set_name = replica_set;
        driver.direct_connection = direct;
        driver.credential = credential;
        driver.tls = tls;
        let or =
            |text: &str, default: &str| if text.is_empty() { default } else { text }.to_owned();
        Ok(MongoStore::new(MongoOptions {
            driver,
            database: or(database, DEFAULT_DATABASE),
            collection: or(collection.as_deref().unwrap_or_default(), DEFAULT_COLLECTION),
            timeout,
        }))
    }

    /// Makes the store and connects to nothing yet.
    #[must_use]
    pub fn new(options: MongoOptions) -> Self {
        MongoStore {
            options: Arc::new(options),
            pools: Pools::default(),
            incarnations: Incarnations::default(),
        }
    }
}

fn take_write_concern(url: &mut StoreUrl) -> Result<Option<WriteConcern>, StoreError> {
    let w = match url.take("w").as_deref() {
        None => None,
        Some(word) if word.eq_ignore_ascii_case("majority") => Some(Acknowledgment::Majority),
        Some(number) => match number.parse() {
            Ok(0) => {
                let advice = "the driver waits for an answer to each write: write `w=1` or more";
                return Err(url.wrong("a write concern of 0", advice));
            }
            Ok(nodes) => Some(Acknowledgment::Nodes(nodes)),
            Err(_) => Some(Acknowledgment::Custom(number.to_owned())),
        },
    };
    let journal = url.take_flag("journal")?;
    let w_timeout = url.take_number("wtimeoutMS")?.map(Duration::from_millis);
    if w.is_none() && journal.is_none() && w_timeout.is_none() {
        return Ok(None);
    }
    let mut concern = WriteConcern::builder().build();
    (concern.w, concern.journal, concern.w_timeout) = (w, journal, w_timeout);
    Ok(Some(concern))
}

type Reads = (Option<SelectionCriteria>, Option<ReadConcern>);

fn take_reads(url: &mut StoreUrl) -> Result<Reads, StoreError> {
    let preferences = ["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"];
    let choices = preferences.map(|word| (word, word));
    let preference = url.take_choice("readPreference", &choices)?;
    let levels = ["local", "available", "majority", "linearizable"].map(|word| (word, word));
    let level = url.take_choice("readConcernLevel", &levels)?;
    if level == Some("linearizable") && preference.is_some_and(|word| word != "primary") {
        let advice = "leave `readPreference` out: only a primary can answer so";
        return Err(url.wrong("linearizable reads from other servers than the primary", advice));
    }
    let preference = preference.map(|word| match word {
        "primary" => ReadPreference::Primary,
        "primaryPreferred" => ReadPreference::PrimaryPreferred { options: None },
        "secondary" => ReadPreference::Secondary { options: None },
        "secondaryPreferred" => ReadPreference::SecondaryPreferred { options: None },
        _ => ReadPreference::Nearest { options: None },
    });
    let level = level.map(|word| match word {
        "local" => ReadConcern::local(),
        "available" => ReadConcern::available(),
        "majority" => ReadConcern::majority(),
        _ => ReadConcern::linearizable(),
    });
    Ok((preference.map(SelectionCriteria::ReadPreference), level))
}

fn take_tls(url: &mut StoreUrl) -> Result<Option<Tls>, StoreError> {
    let words = [("false", (false, false)), ("true", (true, false)), ("insecure", (true, true))];
    let (wanted, mut insecure) = url.take_choice("tls", &words)?.unwrap_or_default();
    for name in ["tlsInsecure", "tlsAllowInvalidCertificates"] {
        insecure |= url.take_flag(name)?.unwrap_or(false);
    }
    if insecure && !wanted {
        return Err(
            url.wrong("TLS without a check for a connection without TLS", "write `tls=true`")
        );
    }
    let mut file = |name| url.take(name).map(PathBuf::from);
    let (authority, certificate) = (file("tlsCAFile"), file("tlsCertificateKeyFile"));
    for path in [&authority, &certificate].into_iter().flatten() {
        if !wanted {
            return Err(url.wrong("a TLS file for a connection without TLS", "write `tls=true`"));
        }
        if let Err(error) = std::fs::File::open(path) {
            let problem = format!("`{}`: {error}", path.display());
            return Err(url.wrong(problem, "name a PEM file that you may read"));
        }
    }
    let mut options = TlsOptions::builder().build();
    (options.ca_file_path, options.cert_key_file_path) = (authority, certificate);
    options.allow_invalid_certificates = insecure.then_some(true);
    Ok(wanted.then_some(Tls::Enabled(options)))
}

impl Store for MongoStore {
    type Client = MongoClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let pool = self.pools.here(&self.options)?;
        let mut found = profile::ask_all(&pool, &self.options).await?;
        if let Some(Tls::Enabled(tls)) = &self.options.driver.tls
            && tls.allow_invalid_certificates == Some(true)
        {
            let told = "insecure: the server's certificate was not checked".to_owned();
            found.settings.push(("tls".to_owned(), told));
        }
        self.incarnations.meet(Instant::now(), profile::incarnations(&pool, &self.options).await);
        Ok(found)
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<MongoClient, NoTransport>> {
        let pool = self.pools.here(&self.options)?;
        pool.reach(&self.options).await?;
        let timeout = self.options.timeout;
        let clients = (0..slots).map(|_| MongoClient::new(Arc::clone(&pool), timeout)).collect();
        Ok(Connection { clients, transport: NoTransport })
    }

    /// Reports a restart of the server that commands go to; the others are not asked.
    async fn figures(&self) -> Vec<Figure> {
        let Ok(pool) = self.pools.here(&self.options) else { return Vec::new() };
        let told = profile::incarnations(&pool, &self.options).await;
        self.incarnations.look(Instant::now(), told).into_iter().collect()
    }

    async fn join(&self, _server: &str) -> Answer<Joined> {
        Ok(Joined::ByServers)
    }

    crate::on_servers::kept_on_servers!();
    crate::on_servers::copies_not_shown!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Result<MongoOptions, StoreError> {
        let store = MongoStore::open(&mut StoreUrl::parse(text)?)?;
        Ok(MongoOptions::clone(&store.options))
    }

    #[test]
    fn a_url_is_read_as_the_driver_would() {
        let plain = open("mongodb://a,b:4").unwrap();
        let hosts: Vec<String> = plain.driver.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["a:27017", "b:4"]);
        assert_eq!((plain.database.as_str(), plain.collection.as_str()), ("kvdyno", "records"));
        assert_eq!(plain.timeout, Duration::from_secs(2));
        assert!(plain.reads_primary() && plain.driver.write_concern.is_none());
        assert_eq!(
            (plain.driver.retry_writes, plain.driver.retry_reads),
            (Some(false), Some(false))
        );
        let retrying = open("mongodb://a?retry=driver").unwrap();
        assert!(retrying.retries() && retrying.driver.retry_reads == Some(true));
        assert!(!plain.retries());
        let full = open(
            "mongodb://u:p%40@h/shop?w=majority&journal=true&wtimeoutMS=50&readPreference=secondary\
             &readConcernLevel=majority&replicaSet=rs0&collection=c&timeout=1s",
        )
        .unwrap();
        let concern = full.driver.write_concern.clone().unwrap();
        assert_eq!((concern.w, concern.journal), (Some(Acknowledgment::Majority), Some(true)));
        assert_eq!(concern.w_timeout, Some(Duration::from_millis(50)));
        assert!(!full.reads_primary());
        let loud =
            open("mongodb://h?w=MAJORITY&readPreference=SECONDARY&readConcernLevel=LOCAL").unwrap();
        assert_eq!(loud.driver.write_concern.unwrap().w, Some(Acknowledgment::Majority));
        assert!(loud.driver.selection_criteria.is_some() && loud.driver.read_concern.is_some());
        assert_eq!(full.read_concern(), Some(&ReadConcernLevel::Majority));
        assert_eq!((full.database.as_str(), full.collection.as_str()), ("shop", "c"));
        assert_eq!(full.driver.repl_set_name.as_deref(), Some("rs0"));
        let credential = full.driver.credential.unwrap();
        assert_eq!(
            (credential.username.as_deref(), credential.password.as_deref()),
            (Some("u"), Some("p@"))
        );
        assert_eq!(credential.source.as_deref(), Some("shop"));
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("mongodb:", "host1,host2"),
            ("mongodb://h/a/b", "`/kvdyno`"),
            ("mongodb://h?w=0", "w=1"),
            ("mongodb://h?journal=maybe", "`true`"),
            ("mongodb://h?readPreference=slaveOk", "`secondaryPreferred`"),
            ("mongodb://h?readConcernLevel=linearizable&readPreference=nearest", "only a primary"),
            ("mongodb://h1,h2?directConnection=true", "one server"),
            ("mongodb://h?tlsCAFile=/x", "tls=true"),
            ("mongodb://h?tls=true&tlsCAFile=/no/such/file", "/no/such/file"),
            ("mongodb://h?timeout=0", "timeout of 0"),
            ("mongodb://h?tls=true&pin=00", "compares none"),
            ("mongodb://h?retryWrites=true", "`retry=driver`"),
            ("mongodb://h?tls=true&tlsAllowInvalidHostnames=true", "`tls=insecure`"),
            ("mongodb://h?readPreferense=primary", "did you mean `readPreference`?"),
        ] {
            let message = open(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}
