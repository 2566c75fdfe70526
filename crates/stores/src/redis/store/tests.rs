//! URLs of Redis stores of all shapes.

use std::time::Duration;

use super::*;
use crate::redis::wire::Resp;

fn open(text: &str) -> Result<RedisStore, StoreError> {
    RedisStore::open(&mut StoreUrl::parse(text)?)
}

fn names(store: &RedisStore) -> Vec<String> {
    match &store.topology {
        Topology::Single(server) => vec![server.name()],
        Topology::Sharded(shards) => shards.layout().servers.iter().map(Endpoint::name).collect(),
        Topology::Watched { sentinels, .. } => vec![sentinels.first().name()],
        Topology::Cluster(cluster) => cluster.map().nodes.iter().map(Endpoint::name).collect(),
    }
}

#[test]
fn a_url_says_where_the_server_is_and_who_asks() {
    let plain = open("redis://h").unwrap();
    assert_eq!(names(&plain), ["h:6379"]);
    assert_eq!(*plain.access, Access::default());
    let full = open("redis://u:p%40ss@[::1]:7000/3?timeout=150ms&resp=2").unwrap();
    assert_eq!(names(&full), ["[::1]:7000"]);
    let access = &full.access;
    assert_eq!((access.user.as_deref(), access.password.as_deref()), (Some("u"), Some("p@ss")));
    assert_eq!((access.database, access.resp), (3, Resp::Two));
    let Topology::Single(server) = &full.topology else { panic!("one server") };
    assert_eq!(server.timeout(), Duration::from_millis(150));
    assert_eq!(names(&open("valkey://h").unwrap()), ["h:6379"]);
}

#[test]
fn a_url_of_several_servers_says_how_they_belong_together() {
    let sharded = open("redis+sharded://h1,h2:7000/2?hash=ketama&weights=2,1").unwrap();
    assert_eq!(names(&sharded), ["h1:6379", "h2:7000"]);
    assert_eq!(sharded.access.database, 2);
    let cluster = open("rediss+cluster://:p@h1,h2:7000?read=replica").unwrap();
    assert_eq!(names(&cluster), ["h1:6379", "h2:7000"]);
    assert!(cluster.access.readonly && cluster.reads_replicas());
    assert_eq!(cluster.access.password.as_deref(), Some("p"));
    let watched = open("valkey+sentinel://h1,h2/mymaster/4?sentinel-password=s").unwrap();
    assert_eq!(names(&watched), ["h1:26379"]);
    assert_eq!(watched.access.database, 4);
    assert!(!watched.reads_replicas());
}

#[test]
fn a_wrong_url_is_refused_in_one_line() {
    for (text, hint) in [
        ("redis://h1,h2", "exactly one server"),
        ("redis:", "exactly one server"),
        ("redis://h/zero", "database number"),
        ("redis://h?resp=4", "`2`"),
        ("redis://h?timeout=0", "timeout of 0"),
        ("redis://h?timout=1s", "did you mean `timeout`?"),
        ("redis://h?ca=/x", "write `rediss://…`"),
        ("valkey+cluster://h?ca=/x", "write `valkeys+cluster://…`"),
        ("rediss://h?ca=/no/such/file", "/no/such/file"),
        ("rediss://h?cert=/no/such/file", "key=FILE"),
        ("redis+sharded:", "no server"),
        ("redis+sharded://h,h:6379", "h:6379 twice"),
        ("redis+sharded://h1,h2?hash=ketma", "`ketama`"),
        ("redis+sharded://h1,h2?weights=1,2", "hash=ketama"),
        ("redis+sharded://h1,h2?hash=ketama&weights=1", "1 weights for 2 servers"),
        ("redis+sharded://h1,h2?hash=ketama&weights=1,0", "from 1 up"),
        ("redis+sharded://h1,h2?hash=jedis&weights=4000000000,1", "10000 at most"),
        ("redis+sharded://h1,h2?hash=rendezvous&weights=2,1", "`twemproxy` or `jedis`"),
        ("redis+cluster://h/1", "one database"),
        ("redis+cluster://h?read=primry", "`primary`"),
        ("redis+sentinel://h", "no name of a primary"),
        ("redis+sentinel://h/m/x", "no number"),
        ("redis+sentinel://h/m?sentinel-passwor=secret", "did you mean `sentinel-password`?"),
    ] {
        let message = open(text).err().expect(text).to_string();
        assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
    }
}

#[test]
fn no_password_is_shown() {
    let url = StoreUrl::parse("redis+sentinel://:secret1@h/m?sentinel-password=secret2").unwrap();
    assert!(!url.redacted().contains("secret1") && !url.redacted().contains("secret2"), "{url}");
}
