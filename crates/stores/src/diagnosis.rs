//! Looks at a store's servers from outside, when it could not be opened: which of them take a connection at all, and whether
//! they speak another protocol. It asks on connections of its own, after the failure, for every driver alike.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::registry;
use crate::url::{StoreUrl, UrlHost};
use crate::wire::is_of_socket;

/// Longest wait for a connection and for each answer.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// First message of a connection of TLS 1.2 (RFC 5246, 7.4.1.2) with two usual suites.
const CLIENT_HELLO: &[u8] = &{
    let mut hello = [0_u8; 50];
    // A record of a handshake; its length; a hello; its length; the version.
    let head = [22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    let mut at = 0;
    while at < head.len() {
        hello[at] = head[at];
        at += 1;
    }
    // 32 random bytes, no session; then the suites and no compression.
    let tail = [0, 2, 0xc0, 0x2f, 1, 0];
    at = 44;
    while at < 50 {
        hello[at] = tail[at - 44];
        at += 1;
    }
    hello
};

/// Describes the servers that a URL names after it could not be opened: each that takes no connection, if others do, and
/// each that answers in another protocol. Empty if there is nothing to say.
#[must_use]
pub fn of_servers(url: &str) -> String {
    let Ok(mut url) = StoreUrl::parse(url) else { return String::new() };
    let mut urls = url.take_members();
    urls.push(url);
    let mut told: Vec<String> = urls.iter().flat_map(of_url).collect();
    told.dedup();
    told.iter().map(|told| format!("; {told}")).collect()
}

/// Returns true if every server that a URL names takes a connection, and it names one.
#[must_use]
pub fn take_connections(url: &str) -> bool {
    let named = addresses(url, |_| true);
    !named.is_empty() && named.iter().all(|address| reach(address).is_ok())
}

/// Returns true if the URL names a server, by address or socket, or one of those in it does.
#[must_use]
pub fn names_servers(url: &str) -> bool {
    let Ok(mut url) = StoreUrl::parse(url) else { return false };
    let mut urls = url.take_members();
    urls.push(url);
    urls.iter().any(|url| !url.hosts().is_empty() || is_of_socket(url))
}

/// Systems whose URL names all of their servers: the members of others, which tell of each other, may be more.
const NAMED_WHOLE: [&str; 8] =
    ["redis", "rediss", "valkey", "valkeys", "memcached", "memcacheds", "rest+http", "rest+https"];

/// Returns the address of every server that can serve the store of a URL, as `host:port`; nothing where the URL may not
/// name them all.
#[must_use]
pub fn all_servers(url: &str) -> Vec<String> {
    addresses(url, |scheme| NAMED_WHOLE.contains(&scheme))
}

/// Returns the addresses of all servers that a URL and those in it name, if `wanted` takes each of their schemes.
fn addresses(url: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(mut url) = StoreUrl::parse(url) else { return Vec::new() };
    let mut urls = url.take_members();
    urls.push(url);
    let mut found = Vec::new();
    for url in urls.iter().filter(|url| !url.hosts().is_empty()) {
        if !wanted(url.scheme()) {
            return Vec::new();
        }
        let usual = usual_port(url.scheme());
        let named = url.hosts().iter();
        let named = named.map(|host| UrlHost { port: host.port.or(usual), ..host.clone() });
        found.extend(named.map(|host| host.to_string()));
    }
    found
}

fn of_url(url: &StoreUrl) -> Vec<String> {
    let Some(port) = usual_port(url.scheme()) else { return Vec::new() };
    let tls = url.clone().take("tls").is_some_and(|told| told != "false");
    let spoken = if tls { &[TLS] } else { spoken_by(url.scheme()) };
    let several = url.hosts().len() > 1;
    let look = |host: &UrlHost| {
        let address = UrlHost { port: Some(host.port.unwrap_or(port)), ..host.clone() };
        let name = address.to_string();
        // Let go at once: some servers serve one connection after the other.
        match reach(&name).map(drop) {
            Err(error) if several => Some(format!("{name}: {error}")),
            Err(_) => None,
            Ok(()) => match what_answers(&name) {
                Some(found) if !spoken.contains(&found) => Some(format!("{name} answers {found}")),
                Some(HTTP) => as_another(url.scheme(), &name),
                _ => None,
            },
        }
    };
    std::thread::scope(|scope| {
        let looks: Vec<_> = url.hosts().iter().map(|host| scope.spawn(|| look(host))).collect();
        looks.into_iter().filter_map(|look| look.join().ok().flatten()).collect()
    })
}

/// Asks a server of etcd or Couchbase, which speak HTTP as others do, for a page of its own. Returns what to say if the page
/// has none of the system's words; `None` for other schemes.
fn as_another(scheme: &str, name: &str) -> Option<String> {
    let (system, path, words) = match scheme {
        "etcd" => ("etcd", "/version", &["etcdserver"][..]),
        "couchbase" => ("Couchbase", "/pools", &["Couchbase", "isAdminCreds"][..]),
        _ => return None,
    };
    let page = answer(name, format!("GET {path} HTTP/1.0\r\nHost: {name}\r\n\r\n").as_bytes());
    let page = String::from_utf8_lossy(&page);
    // Nothing is known of a server that closed the connection, or was slow.
    if page.is_empty() {
        return None;
    }
    let own = words.iter().any(|word| page.contains(word));
    (!own).then(|| format!("{name} answers HTTP, but not as {system} does"))
}

/// Returns the port of the store's example.
fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        "rest+http" => Some(80),
        "rest+https" => Some(443),
        _ => {
            // The example of a cluster of Redis is one on one machine.
            let named = scheme.strip_suffix("+cluster").unwrap_or(scheme);
            StoreUrl::parse(registry::entry(named).ok()?.example).ok()?.hosts().first()?.port
        }
    }
}

const TLS: &str = "TLS";
const HTTP: &str = "HTTP";
const REDIS: &str = "Redis's protocol";
const MEMCACHED: &str = "Memcached's protocol";
const CASSANDRA: &str = "Cassandra's protocol";
const MONGODB: &str = "MongoDB's protocol";
const AEROSPIKE: &str = "Aerospike's protocol";
const RIAK: &str = "Riak's protocol";
const NATS: &str = "NATS's protocol";
const TARANTOOL: &str = "Tarantool's protocol";

/// Returns the protocols that the servers of a scheme speak, so that they are no surprise.
fn spoken_by(scheme: &str) -> &'static [&'static str] {
    match scheme.split('+').next().unwrap_or(scheme) {
        "rediss" | "valkeys" | "memcacheds" | "cassandras" | "etcds" => &[TLS],
        "redis" | "valkey" => &[REDIS],
        "memcached" => &[MEMCACHED],
        "cassandra" => &[CASSANDRA],
        "etcd" | "couchbase" => &[HTTP],
        "mongodb" => &[MONGODB],
        "aerospike" => &[AEROSPIKE],
        "riak" => &[RIAK],
        // Its servers greet before TLS begins.
        "nats" | "natss" => &[NATS],
        "tarantool" => &[TARANTOOL],
        "rest" if scheme == "rest+https" => &[TLS],
        "rest" => &[HTTP],
        _ => &[],
    }
}

fn reach(name: &str) -> Result<TcpStream, std::io::Error> {
    let mut last = std::io::ErrorKind::NotFound.into();
    for address in name.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Questions that tell protocols apart, each asked on a connection of its own and all at once: a request of HTTP, a hello of
/// TLS, Memcached's version (it closes at the others), Aerospike's build, Riak's ping.
const QUESTIONS: [&[u8]; 5] = [
    b"GET / HTTP/1.0\r\n\r\n",
    CLIENT_HELLO,
    b"version\r\n",
    b"\x02\x01\0\0\0\0\0\x06build\n",
    b"\0\0\0\x01\x01",
];

/// Returns the protocol that a server shows by its answers to [`QUESTIONS`]; of several the first that is known.
fn what_answers(name: &str) -> Option<&'static str> {
    let answers: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let asked = QUESTIONS.map(|question| scope.spawn(|| answer(name, question)));
        asked.into_iter().map(|one| one.join().unwrap_or_default()).collect()
    });
    answers.iter().find_map(|answer| protocol_of(answer))
}

/// Returns the answer of a server to a request, on a connection of its own; empty if there is none.
fn answer(name: &str, request: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4_096];
    let ask = |into: &mut [u8]| {
        let mut stream = reach(name)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request)?;
        stream.read(into)
    };
    let length = ask(&mut bytes).unwrap_or(0);
    bytes.truncate(length);
    bytes
}

fn protocol_of(answer: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(answer);
    Some(match answer {
        // It has a page for browsers at its own port.
        _ if text.contains("trying to access MongoDB") => MONGODB,
        // Web servers and Go's say so in HTTP at a port of TLS.
        _ if text.starts_with("HTTP/") && text.contains("HTTPS") => TLS,
        _ if text.starts_with("HTTP/") => HTTP,
        // An alert, or the answer to a hello.
        [21 | 22, 3, ..] => TLS,
        // Settings of HTTP/2, with which its servers begin.
        [0, 0, _, 4, 0, 0, 0, 0, 0, ..] => "HTTP/2",
        _ if text.starts_with("-ERR") || text.starts_with("-NOAUTH") => REDIS,
        _ if ["ERROR\r\n", "CLIENT_ERROR", "VERSION "].iter().any(|s| text.starts_with(s)) => {
            MEMCACHED
        }
        // A frame with the error of a protocol.
        [0x81..=0x85, _, _, _, 0, ..] => CASSANDRA,
        _ if text.starts_with("INFO {") => NATS,
        _ if text.starts_with("Tarantool ") => TARANTOOL,
        _ if text.starts_with("SSH-") => "SSH",
        _ if text.starts_with("220 ") => "SMTP or FTP",
        _ if text.starts_with("AMQP") => "AMQP",
        [2, 1, 0, 0, ..] => AEROSPIKE,
        // A pong.
        [0, 0, 0, 1, 2] => RIAK,
        // The greeting of MySQL: its length, number 0, version 10.
        [_, _, 0, 0, 10, ..] => "MySQL's protocol",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Starts a server that answers every connection with the same bytes.
    fn says(bytes: &'static [u8]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let _ = stream.read(&mut [0; 1_024]);
                let _ = stream.write_all(bytes);
            }
        });
        port
    }

    #[test]
    fn servers_are_known_where_the_url_names_them_all() {
        assert_eq!(all_servers("redis://u:p@a,[::1]:7/0"), ["a:6379", "[::1]:7"]);
        assert_eq!(all_servers("cache(memcached://m:1, redis://r:2)"), ["m:1", "r:2"]);
        for url in ["redis+cluster://a", "cache(memcached://m, etcd://e)", "lmdb:/x", "nonsense"] {
            assert!(all_servers(url).is_empty(), "{url}");
        }
    }

    #[test]
    fn a_port_that_speaks_something_else_is_told_as_such() {
        let http = says(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        let tls = says(&[21, 3, 3, 0, 2, 2, 40]);
        let redis = says(b"-ERR unknown command 'GET'\r\n");
        let memcached = says(b"ERROR\r\n");
        for (scheme, port, told) in [
            ("redis", http, "answers HTTP"),
            ("redis+cluster", tls, "answers TLS"),
            ("memcached", redis, "answers Redis's protocol"),
            ("redis", memcached, "answers Memcached's protocol"),
            ("rest+http", tls, "answers TLS"),
            ("redis", redis, ""),
            ("redis", says(b"INFO {\"server_id\":\"N\"}\r\n"), "answers NATS's protocol"),
            ("redis", says(b"Tarantool 2.6.0 (Binary)"), "answers Tarantool's protocol"),
            ("memcached", memcached, ""),
            ("rediss", tls, ""),
        ] {
            let found = of_servers(&format!("{scheme}://127.0.0.1:{port}/{{key}}"));
            let expected = match told {
                "" => String::new(),
                told => format!("; 127.0.0.1:{port} {told}"),
            };
            assert_eq!(found, expected, "{scheme}");
        }
    }

    #[test]
    fn every_store_of_servers_has_a_usual_port() {
        let mut known = 0;
        for entry in registry::stores() {
            let first = StoreUrl::parse(entry.example).unwrap();
            if !first.hosts().is_empty() {
                assert!(usual_port(entry.schemes[0]).is_some(), "{}", entry.example);
                known += 1;
            }
        }
        assert!(known >= 1);
    }

    #[test]
    fn of_several_nodes_the_one_is_named_that_is_not_there() {
        let http = says(b"HTTP/1.0 200 OK\r\n\r\n");
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let found = of_servers(&format!("redis+sharded://127.0.0.1:{http},127.0.0.1:{closed}"));
        assert!(found.contains(&format!("127.0.0.1:{http} answers HTTP")), "{found}");
        assert!(found.contains(&format!("127.0.0.1:{closed}: Connection refused")), "{found}");
        assert_eq!(of_servers("map:"), "");
        assert_eq!(of_servers(&format!("redis://127.0.0.1:{closed}")), "", "the driver says so");
    }
}
