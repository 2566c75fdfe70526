//! Counts allocations: once its buffers have grown, an operation of a driver with a codec of its
//! own makes none, be there one server or several. A binary of its own, for the counter sees the whole process.
#![cfg(all(feature = "server-tests", feature = "redis", feature = "memcached"))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use kvdyno_core::store::{Client, Connection, Put, Reading, Store, Transport, Value};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::memcached::MemcachedStore;
use kvdyno_stores::redis::RedisStore;
use kvdyno_testbed::{
    Deployment, MemcachedServer, MemcachedSettings, RedisServer, RedisSettings, conversation,
};

/// The system's allocator, counting.
struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Both requests at once, as two clients of a connection, without a list of boxed futures.
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

/// Allocations of `rounds` rounds of one put and one get, pipelined.
async fn allocations<S: Store>(
    connection: &mut Connection<S::Client, S::Transport>,
    into: &mut Reading,
    ttl: Option<Duration>,
    rounds: u64,
) -> u64 {
    let value = [7; 1000];
    let before = COUNT.load(Ordering::Relaxed);
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
    COUNT.load(Ordering::Relaxed) - before
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
    measure(&MemcachedStore::open(&mut StoreUrl::parse(&server.url()).unwrap()).unwrap());
    let several = Deployment::up("memcached:2").unwrap();
    measure(&MemcachedStore::open(&mut StoreUrl::parse(several.url()).unwrap()).unwrap());
}
