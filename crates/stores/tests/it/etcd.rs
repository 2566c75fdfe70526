//! The etcd driver against real etcd servers.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use crate::harness::{Single, in_flight, names, run, until, whole};
use etcd_client::{Certificate, ConnectOptions, TlsOptions};
use kvdyno_core::store::{
    Answer, Certainty, Client, Consistency, Durability, ErrorClass, NoTransport, Promise, Put,
    RequestError, Rows, Store,
};
use kvdyno_core::workload::fault::{NodeFault, Repair};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::{ConformanceFinding, conformance};
use kvdyno_stores::etcd::{EtcdClient, EtcdStore};
use kvdyno_testbed::{Certificates, Deployment, Launch, Server, Testbed};

type Etcd = Single<EtcdClient, NoTransport>;

fn up(words: &str) -> Deployment {
    Deployment::up(words).unwrap_or_else(|error| panic!("{error}"))
}

fn store(url: &str) -> EtcdStore {
    EtcdStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

async fn connect(url: &str) -> Etcd {
    Single::new(store(url).connect(1).await.unwrap())
}

/// Returns the error of connecting.
async fn refusal(url: &str) -> RequestError {
    store(url).connect(1).await.err().expect(url)
}

fn outcome<T: std::fmt::Debug>(answer: Answer<T>) -> (ErrorClass, Certainty) {
    let error = answer.unwrap_err();
    (error.class, error.certainty)
}

#[test]
fn one_member() {
    let server = up("etcd?quota=48MiB");
    let url = server.url();
    let report = conformance(&store(url)).unwrap_or_else(|failure| panic!("{failure}"));
    let not_claimed =
        report.findings.iter().filter(|(_, found)| *found == ConformanceFinding::NotClaimed);
    assert_eq!(not_claimed.map(|(promise, _)| *promise).collect::<Vec<_>>(), ["one field"]);
    run(async {
        says_what_it_promises(url).await;
        batches_and_scans_are_one_request_each(url).await;
        what_is_too_large_is_refused(url).await;
        writes_share_a_lease_if_asked(url).await;
        a_full_database_takes_no_more(url).await;
    });
}

async fn says_what_it_promises(url: &str) {
    let profile = store(url).profile().await.unwrap();
    assert_eq!(profile.durability, Promise::declared(Durability::PowerLoss));
    assert_eq!(profile.consistency, Promise::checked(Consistency::Linearizable));
    assert!(profile.version.is_some_and(|version| version.starts_with("3.")));
    let told = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert!(profile.settings.contains(&told("members", "1")), "{:?}", profile.settings);
    // An election timeout of 1 s makes 2 s the shortest lease.
    assert!(profile.settings.contains(&told("shortest-lease", "2s")), "{:?}", profile.settings);
    assert_eq!(profile.ttl_precision, Duration::from_secs(4));
    let serializable = store(&format!("{url}?read=serializable")).profile().await.unwrap();
    assert_eq!(serializable.consistency, Promise::checked(Consistency::Eventual));
}

async fn batches_and_scans_are_one_request_each(url: &str) {
    let mut etcd = connect(url).await;
    let reader = &mut connect(&format!("{url}?read=serializable")).await.connection.clients[0];
    let before = revision(url).await;
    // A key that is there twice: the last one stays.
    let puts = [whole(b"b/1", b"old", None), whole(b"b/2", b"", None), whole(b"b/1", b"new", None)];
    etcd.connection.clients[0].put_batch(&puts).await.unwrap();
    assert_eq!(revision(url).await, before + 1, "one transaction");
    let mut rows = Rows::default();
    reader.get_batch(&[b"b/1", b"b/0", b"b/2"], &mut rows).await.unwrap();
    let found: Vec<_> =
        rows.iter().map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec))).collect();
    let expected = [
        (b"b/1".to_vec(), Some(b"new".to_vec())),
        (b"b/0".to_vec(), None),
        (b"b/2".to_vec(), Some(Vec::new())),
    ];
    assert_eq!(found, expected);
    rows.clear();
    reader.scan(b"b/", 2, &mut rows).await.unwrap();
    assert_eq!(rows.iter().map(|(key, _)| key).collect::<Vec<_>>(), [b"b/1", b"b/2"]);
    rows.clear();
    reader.scan(b"b/", 0, &mut rows).await.unwrap();
    assert!(rows.is_empty());
}

async fn revision(url: &str) -> i64 {
    let mut client = client(url).await;
    client.get("none", None).await.unwrap().header().unwrap().revision()
}

async fn client(url: &str) -> etcd_client::Client {
    let address = url.trim_start_matches("etcd://");
    etcd_client::Client::connect([address], None).await.unwrap()
}

async fn what_is_too_large_is_refused(url: &str) {
    let mut etcd = connect(url).await;
    for (size, advice) in [(1_600_000, "--max-request-bytes"), (3_000_000, "--max-request-bytes")] {
        let error = etcd.set("big", &vec![7; size]).await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
        assert!(error.message.contains(advice), "{error}");
        assert!(!error.connection_lost, "{error}");
    }
    let keys: Vec<String> = (0..200).map(|n| format!("b/{n}")).collect();
    let puts: Vec<Put<'_>> = keys.iter().map(|key| whole(key.as_bytes(), b"v", None)).collect();
    let error = etcd.connection.clients[0].put_batch(&puts).await.unwrap_err();
    assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
    assert!(error.message.contains("--max-txn-ops"), "{error}");
    assert_eq!(etcd.get("big").await, Ok(None));
    assert_eq!(etcd.get("b/7").await, Ok(None));
}

async fn writes_share_a_lease_if_asked(url: &str) {
    let mut client = client(url).await;
    let ttl = Some(Duration::from_secs(1000));
    for (option, most) in [("each", 8), ("shared", 2)] {
        let before = client.leases().await.unwrap().leases().len();
        let mut etcd = connect(&format!("{url}?lease={option}")).await;
        let begin = Instant::now();
        for n in 0..8 {
            let key = format!("{option}{n}");
            etcd.put(whole(key.as_bytes(), b"v", ttl)).await.unwrap();
        }
        let leases = client.leases().await.unwrap().leases().len() - before;
        // On a machine so slow that the writes take long, there may be one more for each second.
        let most = most + begin.elapsed().as_secs() as usize;
        assert!(leases <= most && (option == "shared" || leases == 8), "{option}: {leases} leases");
    }
    // Shared or not, a record is there for its time and gone some time after.
    let mut etcd = connect(&format!("{url}?lease=shared")).await;
    let ttl = Some(Duration::from_secs(1));
    etcd.put(whole(b"early", b"v", ttl)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    let written = Instant::now();
    etcd.put(whole(b"late", b"v", ttl)).await.unwrap();
    let there = etcd.get("late").await.unwrap().is_some();
    assert!(there || written.elapsed() > Duration::from_secs(1));
    until("records expire", async || etcd.get("late").await, |found| *found == Ok(None))
        .await
        .unwrap();
    assert!(written.elapsed() >= Duration::from_secs(1), "gone after {:?}", written.elapsed());
    assert_eq!(etcd.get("shared0").await.unwrap().as_deref(), Some(&b"v"[..]));
}

async fn a_full_database_takes_no_more(url: &str) {
    let mut etcd = connect(url).await;
    let value = vec![7; 1_000_000];
    let mut full = None;
    for n in 0..200 {
        if let Err(error) = etcd.set(&format!("fill{n}"), &value).await {
            full = Some(error);
            break;
        }
    }
    let error = full.expect("the quota is reached");
    assert_eq!((error.class, error.certainty), (ErrorClass::Full, Certainty::Indeterminate));
    assert!(error.message.contains("--quota-backend-bytes"), "{error}");
    assert_eq!(etcd.get("fill0").await, Ok(Some(value)));
    assert_eq!(etcd.delete("fill0").await, Ok(true));
}

#[test]
fn three_members() {
    let mut cluster = up("etcd:3");
    let members: Vec<String> = cluster
        .site()
        .nodes()
        .iter()
        .map(|node| format!("etcd://{}", node.server.address()))
        .collect();
    run(async {
        let (seen, begin) = (store(cluster.url()), Instant::now());
        seen.profile().await.unwrap();
        a_killed_member(&mut cluster, &members[0]).await;
        another_member_takes_over(&mut cluster).await;
        without_a_majority(&mut cluster, &members[2]).await;
        outlive_the_slack(begin).await;
        cluster.act("etcd-2", NodeFault::Restart).unwrap();
        let told = started_anew(&seen).await.expect("the restarts are seen");
        for (number, member) in members.iter().enumerate() {
            let address = member.trim_start_matches("etcd://");
            assert_eq!(told.contains(address), number < 2, "{address}: {told}");
        }
        assert_eq!(started_anew(&seen).await, None, "told once");
    });
}

/// Waits until the server is up for longer than the slack: the times of two shorter incarnations cannot be told apart.
async fn outlive_the_slack(begin: Instant) {
    tokio::time::sleep(Duration::from_secs(6).saturating_sub(begin.elapsed())).await;
}

/// Returns the servers that were started anew since the store was last asked.
async fn started_anew(store: &EtcdStore) -> Option<String> {
    let figures = store.figures().await;
    figures.into_iter().find(|figure| figure.is_restart()).map(|figure| figure.detail)
}

/// Requests of sixteen clients of one connection, every second one a write, when their member is
/// killed.
async fn a_killed_member(cluster: &mut Deployment, member: &str) {
    let mut connection = store(&format!("{member}?timeout=30s")).connect(16).await.unwrap();
    cluster.act("etcd-1", NodeFault::Pause).unwrap();
    let kill = || cluster.act("etcd-1", NodeFault::Kill).unwrap();
    let answers = in_flight(&mut connection, &names("k", 16), kill).await;
    for (n, answer) in answers.into_iter().enumerate() {
        let error = answer.unwrap_err();
        let certainty = if n % 2 == 0 { Certainty::Failed } else { Certainty::Indeterminate };
        assert_eq!(
            (error.class, error.certainty),
            (ErrorClass::Disconnected, certainty),
            "{error}"
        );
        assert!(error.connection_lost, "{error}");
    }
    // Nobody listens: nothing is sent.
    let mut etcd = Single::new(connection);
    let error = etcd.set("k", b"v").await.unwrap_err();
    assert_eq!((error.class, error.certainty), (ErrorClass::Refused, Certainty::Failed), "{error}");
    assert!(error.connection_lost && error.message.contains("http://127."), "{error}");
    cluster.act("etcd-1", NodeFault::Restart).unwrap();
    etcd.set("k", b"again").await.unwrap();
    assert_eq!(etcd.get("k").await, Ok(Some(b"again".to_vec())));
}

async fn another_member_takes_over(cluster: &mut Deployment) {
    // The first connection of a store begins with the first member.
    let url = cluster.url().to_owned();
    let mut etcd = connect(&url).await;
    etcd.set("k", b"one").await.unwrap();
    cluster.act("etcd-1", NodeFault::Kill).unwrap();
    assert!(etcd.get("k").await.is_err(), "the connection to the first member was lost");
    until("a write by another member", async || etcd.set("k", b"two").await, Result::is_ok)
        .await
        .unwrap();
    // A new connection passes over the member that is down.
    let mut other = connect(&url).await;
    assert_eq!(other.get("k").await, Ok(Some(b"two".to_vec())));
    cluster.act("etcd-1", NodeFault::Restart).unwrap();
    // It is connected to the second one now, which goes silent.
    let mut etcd = connect(&url.replace("etcd://", "etcd://127.0.0.1:1,")).await;
    cluster.act("etcd-1", NodeFault::Pause).unwrap();
    assert_eq!(
        outcome(etcd.set("k2", b"v").await),
        (ErrorClass::Timeout, Certainty::Indeterminate)
    );
    until("a write by another member", async || etcd.set("k2", b"w").await, Result::is_ok)
        .await
        .unwrap();
    cluster.act("etcd-1", Repair::Resume).unwrap();
}

async fn without_a_majority(cluster: &mut Deployment, last: &str) {
    let mut etcd = connect(last).await;
    etcd.set("k", b"three").await.unwrap();
    let mut local = connect(&format!("{last}?read=serializable")).await;
    cluster.act("etcd-1", NodeFault::Kill).unwrap();
    cluster.act("etcd-2", NodeFault::Kill).unwrap();
    // Until its election timeout is over the last one waits for the others: a write then ends
    // without an answer. After that it refuses.
    let refused = |answer: &Answer<()>| {
        let error = answer.as_ref().unwrap_err();
        (error.class, error.certainty) == (ErrorClass::Unavailable, Certainty::Failed)
    };
    let answer = until("it knows no leader", async || etcd.set("k", b"v").await, refused).await;
    assert!(answer.unwrap_err().message.contains("leader"));
    assert_eq!(local.get("k").await, Ok(Some(b"three".to_vec())));
    let mut new = connect(&format!("{last}?read=serializable")).await;
    assert_eq!(new.get("k").await, Ok(Some(b"three".to_vec())));
    assert_eq!(refusal(last).await.class, ErrorClass::Unavailable);
    cluster.act("etcd-1", NodeFault::Restart).unwrap();
    until("a majority", async || etcd.set("k", b"four").await, Result::is_ok).await.unwrap();
}

/// A member that speaks TLS only.
fn start_with_tls(files: &Certificates, folder: &std::path::Path) -> Server {
    let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let (address, peer): (SocketAddr, SocketAddr) = (free(), free());
    let (client, peer) = (format!("https://{address}"), format!("http://{peer}"));
    let launch = Launch::new("etcd", address)
        .arguments([
            "--name",
            "m",
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ])
        .arguments(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .arguments(["--initial-cluster", &format!("m={peer}")])
        .arguments(["--data-dir".as_ref(), folder.join("data").as_os_str()])
        .arguments(["--cert-file".as_ref(), files.certificate.as_os_str()])
        .arguments(["--key-file".as_ref(), files.key.as_os_str()])
        .arguments(["--auth-token-ttl", "1"])
        .ready(|probe| probe.log.contains("ready to serve client requests"));
    let mut server = Server::spawn("etcd", launch, folder).unwrap();
    server.wait_until_ready().unwrap_or_else(|error| panic!("{error}"));
    server
}

/// Turns passwords on, for `root` and for a user who may do nothing.
async fn ask_for_passwords(address: SocketAddr, files: &Certificates) {
    let authority = std::fs::read(&files.authority).unwrap();
    let tls = TlsOptions::new().ca_certificate(Certificate::from_pem(authority));
    let options = ConnectOptions::new().with_tls(tls);
    let mut client =
        etcd_client::Client::connect([format!("https://{address}")], Some(options)).await.unwrap();
    client.user_add("root", "s3cret", None).await.unwrap();
    client.user_grant_role("root", "root").await.unwrap();
    client.user_add("nobody", "wonder", None).await.unwrap();
    client.auth_enable().await.unwrap();
}

/// Writes what a refusal says to write, which is taken; the result says how the certificate was checked.
async fn certificates_as_told(address: &str, files: &Certificates) {
    let told = refusal(&format!("etcds://{address}")).await.message.to_string();
    let words: Vec<&str> = told.split('`').skip(1).step_by(2).collect();
    let pin = words.iter().find(|word| word.starts_with("pin=")).expect(&told);
    assert!(words.contains(&"ca=FILE") && words.contains(&"tls=insecure"), "{told}");
    let own = format!("ca={}", files.certificate.display());
    for (option, disclosed) in [
        (*pin, Some("fingerprint")),
        ("tls=insecure", Some("insecure")),
        // The certificate itself, of whatever authority.
        (own.as_str(), None),
    ] {
        let url = format!("etcds://{address}?{option}");
        assert_eq!(connect(&url).await.get("k").await, Ok(Some(b"v".to_vec())), "{option}");
        let profile = store(&url).profile().await.unwrap();
        let tls = profile.settings.iter().find(|(name, _)| name == "tls").map(|(_, told)| told);
        assert_eq!(tls.is_some(), disclosed.is_some(), "{option}");
        assert!(tls.is_none_or(|told| told.contains(disclosed.unwrap_or_default())), "{tls:?}");
    }
    let other = format!("etcds://{address}?pin={}", "00".repeat(32));
    let told = refusal(&other).await.message.to_string();
    assert!(told.contains("not the one of the `pin`"), "{told}");
}

/// Checks that a client logs in again when its token has ended, after a second without a request here: the server refuses
/// the token, and no request fails by that.
async fn log_in_again_when_a_token_has_ended(url: &str) {
    let idle = store(url);
    let mut client = Single::new(idle.connect(1).await.unwrap());
    client.set("k", b"v").await.unwrap();
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        assert_eq!(client.get("k").await, Ok(Some(b"v".to_vec())));
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        client.set("k", b"v").await.unwrap();
    }
    let figures = idle.figures().await;
    assert!(figures.iter().any(|figure| figure.name == "logins anew"), "{figures:?}");
}

#[test]
fn tls_and_passwords() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let files = Certificates::make(folder.path(), Ipv4Addr::LOCALHOST.into()).unwrap();
    let foreign = Certificates::make(other.path(), Ipv4Addr::LOCALHOST.into()).unwrap();
    let mut server = start_with_tls(&files, folder.path());
    let (address, begin) = (server.address(), Instant::now());
    let ca = files.authority.display();
    run(async {
        for url in [
            format!("etcds://{address}?ca={}", foreign.authority.display()),
            format!("etcd://{address}?timeout=1s"),
        ] {
            assert_eq!(refusal(&url).await.class, ErrorClass::Refused, "{url}");
        }
        connect(&format!("etcds://{address}?ca={ca}")).await.set("k", b"v").await.unwrap();
        certificates_as_told(&address.to_string(), &files).await;
        ask_for_passwords(address, &files).await;
        let url = |user: &str| format!("etcds://{user}{address}?ca={ca}");
        let mut root = connect(&url("root:s3cret@")).await;
        assert_eq!(root.get("k").await, Ok(Some(b"v".to_vec())));
        assert_eq!(refusal(&url("root:mistaken-password@")).await.class, ErrorClass::Rejected);
        for user in ["", "nobody:wonder@"] {
            let answer = connect(&url(user)).await.set("k", b"w").await;
            assert_eq!(outcome(answer), (ErrorClass::Rejected, Certainty::Failed), "{user}");
        }
        assert_eq!(root.get("k").await, Ok(Some(b"v".to_vec())));
        log_in_again_when_a_token_has_ended(&url("root:s3cret@")).await;
        let seen = store(&url("root:s3cret@"));
        assert!(seen.profile().await.is_ok());
        outlive_the_slack(begin).await;
        assert_eq!(started_anew(&seen).await, None);
        server.kill9().unwrap();
        server.restart().unwrap();
        let told = started_anew(&seen).await.expect("the restart is seen");
        assert!(told.starts_with(&address.to_string()), "{told}");
    });
}
