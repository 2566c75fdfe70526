//! The Riak driver: its exchanges with a scripted node, and with a real one where `KVDYNO_RIAK` names
//! the release's `bin/riak`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use crate::harness::{Single, run};
use kvdyno_core::store::{Certainty, Consistency, ErrorClass, Promise, Store};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::riak::{RiakClient, RiakStore, RiakTransport};

/// (What a client must send, what it is answered), each without the length in front.
type Exchange = (Vec<u8>, Vec<u8>);

fn store(url: &str) -> RiakStore {
    RiakStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

/// A node that has one connection and plays its script on it, after a ping. It ends with the script,
/// and with it the connection.
fn serve(script: Vec<Exchange>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let node = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        answer(&mut stream, &(vec![1], vec![2]));
        script.iter().for_each(|exchange| answer(&mut stream, exchange));
    });
    (address.to_string(), node)
}

fn answer(stream: &mut TcpStream, (request, reply): &Exchange) {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes.escape_ascii().to_string(), request.escape_ascii().to_string());
    if !reply.is_empty() {
        stream.write_all(&(reply.len() as u32).to_be_bytes()).unwrap();
        stream.write_all(reply).unwrap();
    }
}

/// A message: its code, then its fields as (number, bytes).
fn message(code: u8, fields: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = vec![code];
    for (number, bytes) in fields {
        out.extend_from_slice(&[number << 3 | 2, bytes.len() as u8]);
        out.extend_from_slice(bytes);
    }
    out
}

/// The content of a put, with its media type.
fn content(value: &[u8]) -> Vec<u8> {
    message(0, &[(1, value), (2, b"application/octet-stream")])[1..].to_vec()
}

fn error(text: &str) -> Vec<u8> {
    let mut out = message(0, &[(1, text.as_bytes())]);
    out.extend_from_slice(&[0x10, 0]);
    out
}

type Riak = Single<RiakClient, RiakTransport>;

async fn connect(address: &str, options: &str) -> Riak {
    let store = store(&format!("riak://{address}/b?{options}"));
    Single::new(store.connect(1).await.unwrap())
}

#[test]
fn each_operation_sends_what_is_documented() {
    let (address, node) = serve(vec![
        (message(9, &[(1, b"b"), (2, b"k")]), message(10, &[])),
        (message(11, &[(1, b"b"), (2, b"k"), (4, &content(b"v"))]), message(12, &[])),
        (message(9, &[(1, b"b"), (2, b"k")]), message(10, &[(1, &content(b"v")), (2, b"clock")])),
        (message(13, &[(1, b"b"), (2, b"k")]), message(14, &[])),
        (message(9, &[(1, b"b"), (2, b"l")]), error("timeout")),
        (message(11, &[(1, b"b"), (2, b"l"), (4, &content(b""))]), error("{n_val_violation,3}")),
        (message(11, &[(1, b"b"), (2, b"l"), (4, &content(b""))]), error("timeout")),
        (message(13, &[(1, b"b"), (2, b"l")]), Vec::new()),
    ]);
    run(async {
        let mut riak = connect(&address, "vclock=none").await;
        assert_eq!(riak.get("k").await, Ok(None));
        riak.set("k", b"v").await.unwrap();
        assert_eq!(riak.get("k").await, Ok(Some(b"v".to_vec())));
        assert_eq!(riak.delete("k").await, Ok(true));
        let error = riak.get("l").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Timeout, Certainty::Failed));
        let error = riak.set("l", b"").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
        let error = riak.set("l", b"").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Timeout, Certainty::Indeterminate));
        assert!(!error.connection_lost);
        // Refused before it is sent.
        let error = riak.set("", b"").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
        // The node ends with this request in flight.
        let error = riak.delete("l").await.unwrap_err();
        let expected = (ErrorClass::Disconnected, Certainty::Indeterminate, true);
        assert_eq!((error.class, error.certainty, error.connection_lost), expected);
        let error = riak.delete("l").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Refused, Certainty::Failed));
    });
    node.join().unwrap();
}

#[test]
fn a_put_takes_along_the_vector_clock_of_what_it_replaces() {
    // head and deletedvclock: fields 8 and 9, both true.
    let look = [message(9, &[(1, b"b"), (2, b"k")]), vec![0x40, 1, 0x48, 1]].concat();
    let put = |clock: &[u8]| message(11, &[(1, b"b"), (2, b"k"), (3, clock), (4, &content(b"v"))]);
    let without = message(11, &[(1, b"b"), (2, b"k"), (4, &content(b"v"))]);
    let (address, node) = serve(vec![
        (look.clone(), message(10, &[])),
        (without.clone(), message(12, &[])),
        (look.clone(), message(10, &[(1, &content(b"")), (2, b"clock")])),
        (put(b"clock"), message(12, &[])),
        // A tombstone has a vector clock and no content.
        (look.clone(), message(10, &[(2, b"other clock")])),
        (put(b"other clock"), message(12, &[])),
        (look.clone(), message(10, &[])),
        (without, message(12, &[])),
        (look, error("{pr_val_unsatisfied,3,1}")),
    ]);
    run(async {
        let mut riak = connect(&address, "vclock=fetch").await;
        for _ in 0..4 {
            riak.set("k", b"v").await.unwrap();
        }
        let error = riak.set("k", b"v").await.unwrap_err();
        let expected = (ErrorClass::Unavailable, Certainty::Failed);
        assert_eq!((error.class, error.certainty), expected, "nothing was written");
    });
    node.join().unwrap();
}

#[test]
fn an_answer_that_makes_no_sense_ends_the_connection() {
    for reply in [message(12, &[]), vec![10, 0x0a, 9]] {
        let (address, node) = serve(vec![(message(9, &[(1, b"b"), (2, b"k")]), reply)]);
        run(async {
            let mut riak = connect(&address, "vclock=none").await;
            let error = riak.get("k").await.unwrap_err();
            assert_eq!((error.class, error.connection_lost), (ErrorClass::Protocol, true));
        });
        node.join().unwrap();
    }
}

#[test]
fn a_bucket_gets_its_number_of_replicas_only_if_asked() {
    let bucket = message(19, &[(1, b"b")]);
    let (address, node) = serve(vec![
        (vec![7], message(8, &[(2, b"3.2.5")])),
        (bucket.clone(), message(20, &[(1, &[0x08, 3, 0x10, 0])])),
        (message(21, &[(1, b"b"), (2, &[0x08, 2])]), vec![22]),
        (bucket.clone(), message(20, &[(1, &[0x08, 2, 0x10, 0])])),
    ]);
    let profile = run(store(&format!("riak://{address}/b?n=2")).profile()).unwrap();
    node.join().unwrap();
    assert_eq!(profile.version.as_deref(), Some("3.2.5"));
    assert!(profile.settings.contains(&("n_val".to_owned(), "2".to_owned())));
    assert_eq!(profile.consistency, Promise::checked(Consistency::Eventual));
    let (address, node) =
        serve(vec![(vec![7], message(8, &[])), (bucket, message(20, &[(1, &[0x08, 3, 0x10, 0])]))]);
    let profile = run(store(&format!("riak://{address}/b")).profile()).unwrap();
    node.join().unwrap();
    assert!(profile.settings.contains(&("n_val".to_owned(), "3".to_owned())));
}

#[test]
fn a_node_that_cannot_be_reached_is_passed_over() {
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (address, node) = serve(Vec::new());
    run(async {
        let store = store(&format!("riak://{nowhere},{address}?vclock=none"));
        store.connect(1).await.unwrap();
    });
    node.join().unwrap();
    run(async {
        let error = store(&format!("riak://{nowhere}?vclock=none")).connect(1).await.err().unwrap();
        assert_eq!((error.class, error.certainty), (ErrorClass::Refused, Certainty::Failed));
    });
}

#[cfg(feature = "server-tests")]
#[test]
fn it_conforms() {
    use kvdyno_testbed::Testbed;
    if std::env::var_os("KVDYNO_RIAK").is_none() {
        println!("KVDYNO_RIAK does not name a release's bin/riak: not run against a real node");
        return;
    }
    let testbed = kvdyno_testbed::Deployment::up("riak");
    let mut testbed = testbed.unwrap_or_else(|error| panic!("{error}"));
    let url = testbed.describe().url;
    for options in ["", "?vclock=fetch"] {
        let conforms = kvdyno_stores::conformance::conformance(&store(&format!("{url}{options}")));
        conforms.unwrap_or_else(|failure| panic!("{options}: {failure}"));
    }
}
