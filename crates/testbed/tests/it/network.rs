//! Faults of the network act on real servers as they say, are undone, and leave nothing behind. The test's
//! thread stands at the bridge, as a keeper does, and reaches every node; a thread of its own is the
//! client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use kvdyno_core::workload::fault::{CutFrom, NodeFault, Repair, Slowness, Trouble, Way};
use kvdyno_testbed::{AmongClients, Deployment, OwnNetwork, Testbed};

/// Longest wait for something that is to come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Length of a silence that shows that nothing comes. It is only too short for a fault that does not act.
const SILENCE: Duration = Duration::from_secs(2);

fn up(words: &str) -> Deployment {
    Deployment::up(words).unwrap_or_else(|error| panic!("{words}: {error}"))
}

fn address(testbed: &mut Deployment, node: &str) -> SocketAddr {
    let nodes = testbed.nodes();
    let node = nodes.iter().find(|known| known.name == node).expect("the node");
    node.address.parse().expect("its address")
}

/// Returns what a server answers within `patience`.
fn ask(server: SocketAddr, words: &str, patience: Duration) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&server, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    // As an array of words: a line of its own may not be long.
    let words: Vec<&str> = words.split(' ').collect();
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = [0; 256];
    let length = stream.read(&mut answer).ok().filter(|length| *length > 0)?;
    Some(String::from_utf8_lossy(&answer[..length]).into_owned())
}

/// Does something where the clients are.
fn among_clients<T: Send>(network: &OwnNetwork, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let _there = AmongClients::enter(network).expect("the clients' side");
            work()
        });
        client.join().expect("the client")
    })
}

fn network(testbed: &mut Deployment) -> OwnNetwork {
    testbed.describe().network.expect("a network of its own")
}

fn pings(network: &OwnNetwork, server: SocketAddr, patience: Duration) -> bool {
    among_clients(network, || ask(server, "PING", patience)).as_deref() == Some("+PONG\r\n")
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn cut(from: &[&str], way: Way) -> NodeFault {
    let names = from.iter().map(|&name| name.to_owned()).collect();
    NodeFault::Partition { from: CutFrom::Named(names), way }
}

/// Returns the devices of the namespace that the calling thread is in.
fn devices() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("the devices");
    let names = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    names.collect()
}

#[test]
fn a_partition_cuts_off_whom_it_says_and_no_others() {
    let before = devices();
    let mut testbed = up("redis-sentinel:2?network=own");
    let clients = network(&mut testbed);
    let (primary, replica) = (address(&mut testbed, "redis-1"), address(&mut testbed, "redis-2"));
    let reached = |server| pings(&clients, server, SILENCE);
    assert!(reached(primary) && reached(replica));

    // From the replica alone: clients and sentinels still reach it, its writes do not get through.
    testbed.act("redis-1", cut(&["redis-2"], Way::Both)).unwrap();
    assert_eq!(
        among_clients(&clients, || ask(primary, "SET k 1", PATIENCE)).as_deref(),
        Some("+OK\r\n")
    );
    std::thread::sleep(SILENCE);
    assert_eq!(ask(replica, "GET k", PATIENCE).as_deref(), Some("$-1\r\n"));
    assert!(reached(primary) && reached(replica));
    let error = testbed.act("redis-1", cut(&["clients"], Way::Both)).unwrap_err().to_string();
    assert_eq!(error, "the fault `partition` is already active on redis-1; repair it first");
    testbed.act("redis-1", Repair::Heal(Trouble::Partition)).unwrap();
    eventually("the replica gets it", || {
        ask(replica, "GET k", PATIENCE).as_deref() == Some("$1\r\n1\r\n")
    });
    let error = testbed.act("redis-1", Repair::Heal(Trouble::Partition)).unwrap_err().to_string();
    assert_eq!(error, "there is no `partition` to undo at redis-1");

    // From the clients, one way or the other: either way there is no conversation.
    for way in [Way::Both, Way::In, Way::Out] {
        testbed.act("redis-2", cut(&["clients"], way)).unwrap();
        assert!(!reached(replica) && reached(primary), "{way:?}");
        assert!(ask(replica, "PING", PATIENCE).is_some(), "the keeper still reaches it");
        testbed.act("redis-2", Repair::Heal(Trouble::Partition)).unwrap();
        assert!(pings(&clients, replica, PATIENCE), "{way:?}");
    }
    let error = testbed.act("redis-2", cut(&["redis-7"], Way::Both)).unwrap_err().to_string();
    assert!(error.contains("there is no node redis-7"), "{error}");
    assert!(reached(replica), "what could not be done whole was not begun");
    drop(testbed);
    assert_eq!(devices(), before, "the thread is back where it was, and nothing was left there");
}

/// Returns the number of segments that were sent again, of the namespace that the calling thread is in.
fn sent_again() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").expect("its counters");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter_map(|line| Some(line.strip_prefix("Tcp:")?.split_whitespace().collect()))
        .collect();
    let place = rows[0].iter().position(|name| *name == "RetransSegs").expect("the counter");
    rows[1][place].parse().expect("a number")
}

/// Asks a server this often over one connection; returns the shortest time to an answer.
fn converse(server: SocketAddr, times: usize) -> Duration {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE).expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
    let mut shortest = Duration::MAX;
    for _ in 0..times {
        let begin = Instant::now();
        stream.write_all(b"PING\r\n").expect("it is sent");
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).expect("an answer");
        shortest = shortest.min(begin.elapsed());
    }
    shortest
}

#[test]
fn packets_are_lost_and_come_late_until_it_is_undone() {
    let mut testbed = up("redis-sharded:2?network=own");
    let clients = network(&mut testbed);
    let (first, second) = (address(&mut testbed, "redis-1"), address(&mut testbed, "redis-2"));
    assert_ne!(first.ip(), second.ip());
    let lost = |server, times| {
        among_clients(&clients, || {
            let before = sent_again();
            converse(server, times);
            sent_again() - before
        })
    };
    let used = testbed.act("redis-1", NodeFault::Lossy { share: 0.1 }).unwrap();
    assert_eq!(used, "nftables numgen, 10% of packets each way");
    assert!(lost(first, 60) > 0, "of 60 exchanges, about eleven lose a packet");
    assert_eq!(lost(second, 60), 0, "the other node loses none");
    testbed.act("redis-1", Repair::Heal(Trouble::Lossy)).unwrap();
    assert_eq!(lost(first, 60), 0);

    let delay = Duration::from_millis(40);
    let slow = NodeFault::Slow(Slowness::new(None, Some(delay)).unwrap());
    let used = testbed.act("redis-1", slow.clone()).unwrap();
    assert!(used.contains("netem") && used.contains("40ms"), "{used}");
    let shortest = |server| among_clients(&clients, || converse(server, 20));
    assert!(shortest(first) >= delay);
    assert!(shortest(second) < delay);
    let error = testbed.act("redis-1", slow).unwrap_err().to_string();
    assert_eq!(error, "the fault `slow` is already active on redis-1; repair it first");
    testbed.act("redis-1", Repair::Heal(Trouble::Slow)).unwrap();
    assert!(shortest(first) < delay);
}

/// Fetches the value of `k` once; returns how long that took.
fn fetch(server: SocketAddr, length: usize) -> Duration {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
    let begin = Instant::now();
    stream.write_all(b"GET k\r\n").expect("it is sent");
    let mut value = vec![0; length];
    stream.read_exact(&mut value).expect("the value");
    begin.elapsed()
}

#[test]
fn bandwidth_is_what_it_was_said_to_be() {
    const VALUE: usize = 300_000;
    let mut testbed = up("redis?network=own");
    let clients = network(&mut testbed);
    let server = address(&mut testbed, "redis-1");
    let value = format!("SET k {}", "x".repeat(VALUE));
    assert_eq!(ask(server, &value, PATIENCE).as_deref(), Some("+OK\r\n"));
    let fetched = || among_clients(&clients, || fetch(server, VALUE));
    // 300 kB at 200 kB/s take 1.5 s, less what the bucket lets pass at once.
    let slow =
        NodeFault::Slow(Slowness::new(Some(200_000), Some(Duration::from_millis(5))).unwrap());
    let used = testbed.act("redis-1", slow).unwrap();
    assert!(used.starts_with("tc tbf, 200kB/s each way, "), "{used}");
    let took = fetched();
    assert!(took > Duration::from_millis(1_300), "{took:?}");
    testbed.act("redis-1", Repair::Heal(Trouble::Slow)).unwrap();
    eventually("it is as fast as before", || fetched() < Duration::from_millis(700));
    // What is done to a node outlives its process.
    testbed.act("redis-1", cut(&["clients"], Way::Both)).unwrap();
    testbed.act("redis-1", NodeFault::Restart).unwrap();
    assert!(!pings(&clients, server, SILENCE));
    testbed.act("redis-1", Repair::Heal(Trouble::Partition)).unwrap();
    assert!(pings(&clients, server, PATIENCE));
}

#[test]
fn without_a_network_of_its_own_nothing_is_done_to_it() {
    let mut testbed = up("redis");
    assert_eq!(testbed.describe().network, None);
    let error = testbed.act("redis-1", NodeFault::Lossy { share: 0.5 }).unwrap_err().to_string();
    assert!(error.ends_with("start it with `redis?network=own`"), "{error}");
    let error = testbed.act("redis-1", NodeFault::DiskFull).unwrap_err().to_string();
    assert!(error.ends_with("start it with `redis?disk=64MiB`"), "{error}");
}

#[test]
fn a_full_disk_refuses_writes_until_it_is_freed() {
    let mut testbed = up("redis?disk=32MiB&persistence=aof-everysec");
    let (server, folder) = (address(&mut testbed, "redis-1"), testbed.site().root().to_owned());
    let set = || ask(server, "SET k v", PATIENCE).unwrap_or_default();
    assert_eq!(set(), "+OK\r\n");
    let used = testbed.act("redis-1", NodeFault::DiskFull).unwrap();
    assert!(used.ends_with("on its tmpfs of 32MiB"), "{used}");
    eventually("it says that it cannot write", || set().starts_with("-MISCONF"));
    let again = testbed.act("redis-1", NodeFault::DiskFull).unwrap_err().to_string();
    assert!(again.contains("cannot fill the disk"), "{again}");
    // What failed a second time was not undone the first.
    assert!(set().starts_with("-MISCONF"));
    testbed.act("redis-1", Repair::FreeDisk).unwrap();
    eventually("it writes again", || set() == "+OK\r\n");
    assert!(testbed.act("redis-1", Repair::FreeDisk).is_err());
    let mounted = || std::fs::read_to_string("/proc/thread-self/mountinfo").expect("the mounts");
    let shown = folder.display().to_string();
    assert!(mounted().contains(&shown));
    let outside = std::fs::read_to_string(format!("/proc/{}/mountinfo", std::process::id()));
    assert!(!outside.expect("the mounts").contains(&shown), "nobody else sees it");
    drop(testbed);
    assert!(!mounted().contains(&shown) && !folder.exists());
}
