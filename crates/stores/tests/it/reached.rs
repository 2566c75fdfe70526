//! The ways to a server that people have: sockets of the machine, certificates as they make them, proxies
//! that close the connection at what they do not know. Against real servers, proxies and openssl.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Single, names, run};
use crate::one_server::{MemcachedServer, MemcachedSettings, RedisServer, RedisSettings};
use kvdyno_core::store::{Profile, Store};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::conformance;
use kvdyno_stores::memcached::MemcachedStore;
use kvdyno_stores::redis::RedisStore;

/// A process that ends with the test.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Running {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        // Where Debian has daemons, which is not in every search path.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin"));
        Running(command.spawn().unwrap_or_else(|error| panic!("{program}: {error}")))
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(20), "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn listens(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn redis(url: &str) -> RedisStore {
    RedisStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

fn memcached(url: &str) -> MemcachedStore {
    MemcachedStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

fn setting<'a>(profile: &'a Profile, name: &str) -> Option<&'a str> {
    profile.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Returns why the store of a URL cannot be opened.
fn refusal(url: &str) -> String {
    run(async { redis(url).connect(1).await.err().expect(url).to_string() })
}

#[test]
fn redis_over_a_unix_socket_in_the_spellings_of_its_clients() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("r.sock");
    let path = socket.display();
    let _server = Running::start(
        "redis-server",
        &["--port", "0", "--unixsocket", &path.to_string(), "--requirepass", "pw0rd"],
    );
    until("socket", || socket.exists());
    conformance(&redis(&format!("redis+unix://:pw0rd@{path}"))).unwrap();
    run(async {
        let connect = async |url: String| Single::new(redis(&url).connect(1).await.expect(&url));
        connect(format!("unix://:pw0rd@{path}?db=1")).await.set("k", b"one").await.unwrap();
        for (url, found) in [
            // redis-py.
            (format!("unix://default:pw0rd@{path}?db=1"), true),
            (format!("unix://{path}?db=1&password=pw0rd"), true),
            // redis-rs.
            (format!("redis+unix:{path}?db=1&pass=pw0rd"), true),
            (format!("redis+unix://{path}?db=1&user=default&pass=pw0rd&protocol=resp3"), true),
            (format!("unix:{path}?db=1&pass=pw0rd"), true),
            (format!("valkey+unix://{path}?db=1&pass=pw0rd"), true),
            (format!("redis+unix://:pw0rd@{path}?db=2"), false),
        ] {
            let value = connect(url.clone()).await.get("k").await.unwrap();
            assert_eq!(value.is_some(), found, "{url}");
        }
    });
    let told = refusal(&format!("redis+unix://{}/no.sock", folder.path().display()));
    assert!(told.contains("no.sock") && told.contains("No such file"), "{told}");
}

#[test]
fn memcached_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("m.sock");
    let path = socket.display().to_string();
    let _server = Running::start("memcached", &["-u", "root", "-a", "0777", "-s", &path]);
    until("socket", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    conformance(&memcached(&format!("memcached+unix://{path}"))).unwrap();
}

/// Runs `openssl` in `folder`.
fn openssl(folder: &Path, line: &str) -> String {
    let arguments: Vec<&str> = line.split_ascii_whitespace().collect();
    let ran = Command::new("openssl").args(arguments).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

fn tls_server(folder: &Path, name: &str, port: u16) -> Running {
    let file = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
    let server = Running::start(
        "redis-server",
        &[
            "--port",
            "0",
            "--tls-port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--tls-cert-file",
            &file("crt"),
            "--tls-key-file",
            &file("key"),
            "--tls-ca-cert-file",
            &folder.join("ca.crt").display().to_string(),
            "--tls-auth-clients",
            "no",
            "--save",
            "",
        ],
    );
    until("server of TLS", || listens(port));
    server
}

#[test]
fn certificates_as_people_make_them() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    // As Redis' own gen-test-certs.sh did it: no extensions, so version 1 of X.509 and no name.
    openssl(place, "genrsa -out ca.key 2048");
    openssl(
        place,
        "req -x509 -new -nodes -sha256 -key ca.key -days 3 -subj /O=Test/CN=CA -out ca.crt",
    );
    openssl(place, "genrsa -out redis.key 2048");
    openssl(place, "req -new -sha256 -subj /O=Test/CN=Generic-cert -key redis.key -out redis.csr");
    openssl(
        place,
        "x509 -req -sha256 -in redis.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3 -out redis.crt",
    );
    let text = openssl(place, "x509 -in redis.crt -noout -text");
    assert!(text.contains("Version: 1 "), "{text}");
    // As anybody does it: one that is its own authority.
    openssl(
        place,
        "req -x509 -newkey rsa:2048 -nodes -days 3 -subj /CN=localhost -keyout own.key -out own.crt",
    );
    for name in ["redis", "own"] {
        let port = free_port();
        let _server = tls_server(place, name, port);
        let url = format!("rediss://127.0.0.1:{port}");
        let told = refusal(&url);
        assert!(told.contains("`ca=FILE`") && told.contains("tls=insecure"), "{told}");
        // The advice, as it is printed.
        let pin = told.split("`pin=").nth(1).and_then(|rest| rest.split('`').next()).expect(&told);
        let printed = openssl(place, &format!("x509 -in {name}.crt -noout -fingerprint -sha256"));
        assert_eq!(printed.trim().replace(':', "").to_lowercase().split('=').nth(1), Some(pin));
        let printed = printed.trim().rsplit('=').next().unwrap();
        let file = place.join(format!("{name}.crt"));
        for (option, disclosed) in [
            (format!("pin={pin}"), Some("fingerprint")),
            (format!("pin={printed}"), Some("fingerprint")),
            ("tls=insecure".to_owned(), Some("insecure")),
            (format!("ca={}", file.display()), None),
        ] {
            let store = redis(&format!("{url}?{option}"));
            let profile = run(store.profile()).unwrap_or_else(|e| panic!("{name}, {option}: {e}"));
            let told = setting(&profile, "tls");
            assert_eq!(told.is_some(), disclosed.is_some(), "{option}");
            assert!(told.unwrap_or("").contains(disclosed.unwrap_or("")), "{told:?}");
        }
        // Another certificate is none of these.
        let other = if name == "own" { "redis.crt" } else { "own.crt" };
        let wrong = openssl(place, &format!("x509 -in {other} -noout -fingerprint -sha256"));
        let wrong = wrong.trim().rsplit('=').next().unwrap();
        assert!(refusal(&format!("{url}?pin={wrong}")).contains("not the one of the `pin`"));
        let file = place.join(other).display().to_string();
        assert!(refusal(&format!("{url}?ca={file}")).contains("`ca=FILE`"));
    }
    let plain = refusal_of_url("redis://h?tls=insecure");
    assert!(plain.contains("write `rediss://…` for TLS"), "{plain}");
}

fn refusal_of_url(url: &str) -> String {
    RedisStore::open(&mut StoreUrl::parse(url).unwrap()).err().expect(url).to_string()
}

/// Starts twemproxy before servers, each `HOST:PORT:WEIGHT`.
pub fn twemproxy(folder: &Path, port: u16, servers: &[String], redis: bool) -> Running {
    let servers: String = servers.iter().map(|server| format!("   - {server}\n")).collect();
    let configuration = format!(
        "alpha:\n  listen: 127.0.0.1:{port}\n  hash: fnv1a_64\n  distribution: ketama\n  \
         auto_eject_hosts: false\n  redis: {redis}\n  timeout: 2000\n  servers:\n{servers}"
    );
    let file = folder.join("twemproxy.yml");
    std::fs::write(&file, configuration).unwrap();
    let statistics = free_port().to_string();
    let proxy =
        Running::start("nutcracker", &["-c", &file.display().to_string(), "-s", &statistics]);
    until("twemproxy", || listens(port));
    proxy
}

fn haproxy(folder: &Path, port: u16, server: &str) -> Running {
    let configuration = format!(
        "defaults\n  mode tcp\n  timeout connect 2s\n  timeout client 1m\n  timeout server 1m\n\
         listen all\n  bind 127.0.0.1:{port}\n  server one {server}\n"
    );
    let file = folder.join("haproxy.cfg");
    std::fs::write(&file, configuration).unwrap();
    let proxy = Running::start("haproxy", &["-db", "-f", &file.display().to_string()]);
    until("HAProxy", || listens(port));
    proxy
}

/// Checks what a load needs, batches included.
async fn serves<S: Store>(store: &S) {
    let mut one = Single::new(store.connect(1).await.unwrap());
    one.set("k", b"v").await.unwrap();
    assert_eq!(one.get("k").await, Ok(Some(b"v".to_vec())));
    assert_eq!(one.delete("k").await, Ok(true));
    let keys = names("k", 3);
    one.set_all(&keys[..2], b"v", None).await.unwrap();
    let found = one.get_all(&keys).await.unwrap();
    assert_eq!(found, [Some(b"v".to_vec()), Some(b"v".to_vec()), None]);
}

#[test]
fn redis_behind_proxies() {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let (shy, open) = (free_port(), free_port());
    let _twemproxy = twemproxy(folder.path(), shy, &[format!("{}:1", server.address())], true);
    let store = redis(&format!("redis://127.0.0.1:{shy}"));
    run(async {
        let profile = store.profile().await.unwrap();
        let closed = setting(&profile, "connection closed at").expect("what it closes at");
        for command in ["HELLO", "CLIENT", "INFO", "CONFIG"] {
            assert!(closed.contains(command), "{closed}");
        }
        assert!(!profile.durability.checked && !profile.consistency.checked, "{profile:?}");
        serves(&store).await;
    });
    let _haproxy = haproxy(folder.path(), open, &server.address().to_string());
    let store = redis(&format!("redis://127.0.0.1:{open}"));
    let profile = run(store.profile()).unwrap();
    assert!(profile.version.is_some() && setting(&profile, "connection closed at").is_none());
    conformance(&store).unwrap();
}

#[test]
fn memcached_behind_proxies() {
    let folder = tempfile::tempdir().unwrap();
    let server = MemcachedServer::start(MemcachedSettings::default()).unwrap();
    let (shy, open) = (free_port(), free_port());
    let _twemproxy = twemproxy(folder.path(), shy, &[format!("{}:1", server.address())], false);
    let store = memcached(&format!("memcached://127.0.0.1:{shy}"));
    run(async {
        let profile = store.profile().await.unwrap();
        assert!(setting(&profile, "protocol").unwrap().starts_with("text"), "{profile:?}");
        serves(&store).await;
    });
    let _haproxy = haproxy(folder.path(), open, &server.address().to_string());
    let store = memcached(&format!("memcached://127.0.0.1:{open}"));
    let profile = run(store.profile()).unwrap();
    assert!(profile.version.is_some() && setting(&profile, "protocol").is_none());
    conformance(&store).unwrap();
}

#[test]
fn values_of_a_megabyte_are_loaded() {
    // `--value 1MB`: a batch is one record then (`suite/build.rs`), and Memcached needs `-I`.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("m.sock");
    let path = socket.display().to_string();
    let large = ["-u", "root", "-a", "0777", "-I", "2m", "-m", "256", "-s", &path];
    let _server = Running::start("memcached", &large);
    until("socket", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    run(async {
        let store = memcached(&format!("memcached+unix://{path}"));
        let mut one = Single::new(store.connect(1).await.unwrap());
        let value = vec![7; 1_000_000];
        one.set("k", &value).await.unwrap();
        assert_eq!(one.get("k").await, Ok(Some(value)));
    });
}
