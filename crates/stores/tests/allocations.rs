//! Counts allocations: once its buffers have grown, an operation of a driver with a codec of its
//! own makes none, be there one server or several. A binary of its own, for the counter sees the whole process.
#![cfg(all(feature = "server-tests", feature = "redis", feature = "memcached", feature = "rest"))]

#[path = "../../core/tests/counting/mod.rs"]
mod counting;
#[path = "../../testbed/tests/it/one_server/mod.rs"]
mod one_server;

use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use kvdyno_core::store::{Client, Connection, Put, Reading, Store, Transport, Value};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::memcached::MemcachedStore;
use kvdyno_stores::redis::RedisStore;
use kvdyno_stores::rest::RestStore;
use kvdyno_testbed::{Deployment, conversation};
use one_server::{MemcachedServer, MemcachedSettings, RedisServer, RedisSettings};

/// Awaits both requests at once, as two clients of a connection, without a list of boxed futures.
async fn together<T: Transport>(
    transport: &mut T,
    first: impl Future<Output = bool>,
    second: impl Future<Output = bool>,
) -> (bool, bool) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut a, mut b) = (None, None);
    poll_fn(move |context| {
        loop {
            if a.is_none()
                && let Poll::Ready(answer) = first.as_mut().poll(context)
            {
                a = Some(answer);
            }
            if b.is_none()
                && let Poll::Ready(answer) = second.as_mut().poll(context)
            {
                b = Some(answer);
            }
            if let (Some(a), Some(b)) = (a, b) {
                return Poll::Ready((a, b));
            }
            if !transport.poll(context) {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Returns the allocations of `rounds` rounds of one put and one get, pipelined.
async fn allocations<S: Store>(
    connection: &mut Connection<S::Client, S::Transport>,
    into: &mut Reading,
    ttl: Option<Duration>,
    rounds: u64,
) -> u64 {
    let value = [7; 1000];
    let before = counting::count();
    let (left, right) = connection.clients.split_at_mut(1);
    for _ in 0..rounds {
        let put = Put {
            key: b"key",
            value: Value::new(&value, &[]),
            insert: false,
            partial: false,
            record_fields: 1,
            ttl,
        };
        into.clear();
        let put = async { left[0].put(put).await.is_ok() };
        let get = async { right[0].get(b"key", into).await == Ok(true) };
        assert_eq!(together(&mut connection.transport, put, get).await, (true, true));
    }
    counting::count() - before
}

fn measure<S: Store>(store: &S) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = store.connect(2).await.unwrap();
        let mut into = Reading::default();
        for ttl in [None, Some(Duration::from_secs(100))] {
            allocations::<S>(&mut connection, &mut into, ttl, 100).await;
            let counted = allocations::<S>(&mut connection, &mut into, ttl, 5_000).await;
            assert_eq!(counted, 0, "allocations in 10,000 operations, ttl {ttl:?}");
        }
    });
}

/// A node of Riak that allocates nothing either: it answers a ping, a get (a value of one byte of second
/// 1, and a vector clock) and a put with the same bytes each time.
#[cfg(feature = "riak")]
fn answer_as_riak(mut stream: TcpStream) {
    const ANSWERS: [(u8, &[u8]); 3] = [
        (1, &[0, 0, 0, 1, 2]),
        (9, &[0, 0, 0, 12, 10, 0x0a, 5, 0x0a, 1, b'v', 0x38, 1, 0x12, 2, b'c', b'l']),
        (11, &[0, 0, 0, 1, 12]),
    ];
    let (mut head, mut message) = ([0; 5], [0; 2000]);
    // Its answers are small: else each would wait for the client's delayed acknowledgement, 40 ms.
    stream.set_nodelay(true).unwrap();
    while stream.read_exact(&mut head).is_ok() {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize - 1;
        stream.read_exact(&mut message[..length]).unwrap();
        let known = ANSWERS.iter().find(|(code, _)| *code == head[4]);
        stream.write_all(known.expect("a message that it knows").1).unwrap();
    }
}

#[cfg(feature = "riak")]
fn measure_riak() {
    use kvdyno_stores::riak::RiakStore;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(answer_as_riak));
    for vclock in ["none", "fetch"] {
        let url = format!("riak://{address}?vclock={vclock}");
        measure(&RiakStore::open(&mut StoreUrl::parse(&url).unwrap()).unwrap());
    }
}

/// Answers requests over HTTP and allocates nothing for it, for the counter sees this thread too: a
/// put, whose value is 1,000 bytes, with 204, a get with 10 bytes.
fn answer_over_http(mut stream: TcpStream) {
    let (mut buffer, mut filled) = ([0; 4096], 0);
    loop {
        let Ok(length @ 1..) = stream.read(&mut buffer[filled..]) else { return };
        filled += length;
        let head = buffer[..filled].windows(4).position(|end| end == b"\r\n\r\n");
        let put = buffer[0] == b'P';
        let Some(length) = head.map(|head| head + 4 + if put { 1000 } else { 0 }) else { continue };
        if filled == length {
            filled = 0;
            let answer: &[u8] = match put {
                true => b"HTTP/1.1 204 No Content\r\n\r\n",
                false => b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789",
            };
            stream.write_all(answer).unwrap();
        }
    }
}

/// Measures like [`measure`], for a store without pipelining.
fn measure_rest() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("rest+http://{}/b/{{key}}?ttl=Ttl", listener.local_addr().unwrap());
    std::thread::spawn(move || answer_over_http(listener.accept().unwrap().0));
    let store = RestStore::open(&mut StoreUrl::parse(&url).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = store.connect(1).await.unwrap();
        let (client, transport) = (&mut connection.clients[0], &mut connection.transport);
        let (mut into, mut before) = (Reading::default(), 0);
        for round in 0..5_100 {
            if round == 100 {
                before = counting::count();
            }
            let value = Value::new(&[7; 1000], &[]);
            let ttl = Some(Duration::from_secs(100));
            let (insert, partial, record_fields) = (false, false, 1);
            let put = Put { key: b"k/1", value, insert, partial, record_fields, ttl };
            let put = async { client.put(put).await.is_ok() };
            assert!(together(transport, put, async { true }).await.0);
            into.clear();
            let get = async { client.get(b"k/1", &mut into).await == Ok(true) };
            assert!(together(transport, get, async { true }).await.0);
        }
        let counted = counting::count() - before;
        assert_eq!(counted, 0, "allocations in 10,000 operations over HTTP");
    });
}

/// URL of a cluster whose one node has all slots, and the node.
fn cluster_of_one() -> (String, RedisServer) {
    let options = vec![("cluster-enabled".to_owned(), "yes".to_owned())];
    let server = RedisServer::start(RedisSettings { options, ..RedisSettings::default() }).unwrap();
    let all = b"CLUSTER ADDSLOTSRANGE 0 16383\r\n";
    assert_eq!(conversation(server.address(), all, b"\r\n").unwrap(), "+OK\r\n");
    let set = b"SET k v\r\n";
    while !conversation(server.address(), set, b"\r\n").unwrap().starts_with("+OK") {}
    (server.url().replace("redis://", "redis+cluster://"), server)
}

#[test]
fn operations_allocate_nothing() {
    // One after the other in one test, for the counter is shared.
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    for options in ["?resp=2", "?resp=3"] {
        let mut url = StoreUrl::parse(&format!("{}{options}", server.url())).unwrap();
        measure(&RedisStore::open(&mut url).unwrap());
    }
    let redis = |url: &str| RedisStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap();
    let sharded = Deployment::up("redis-sharded:2").unwrap();
    for hash in ["mix", "ketama"] {
        measure(&redis(&format!("{}?hash={hash}", sharded.url())));
    }
    let (url, _node) = cluster_of_one();
    measure(&redis(&url));
    let server = MemcachedServer::start(MemcachedSettings::default()).unwrap();
    for options in ["", "?protocol=text"] {
        let mut url = StoreUrl::parse(&format!("{}{options}", server.url())).unwrap();
        measure(&MemcachedStore::open(&mut url).unwrap());
    }
    let several = Deployment::up("memcached:2").unwrap();
    measure(&MemcachedStore::open(&mut StoreUrl::parse(several.url()).unwrap()).unwrap());
    measure_rest();
    #[cfg(feature = "riak")]
    measure_riak();
}
