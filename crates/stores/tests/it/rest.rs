//! The REST driver against a scripted server: answers in chunks, in pieces, with the end of the
//! connection, refusals. Needs no server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::harness::{Single, drive, run, whole};
use kvdyno_core::store::{Certainty, ErrorClass, Reading, RequestError, Store};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::rest::{RestClient, RestStore, RestTransport};

/// Actions of the server once a client is connected.
type Script = Box<dyn FnOnce(&mut TcpStream) + Send>;

const GET_K: &str = "GET /b/k HTTP/1.1\r\nHost: HOST\r\nAccept-Encoding: identity\r\n\r\n";
const PUT_K: &str = "PUT /b/k HTTP/1.1\r\nHost: HOST\r\nAccept-Encoding: identity\r\nContent-Type: application/octet-stream\r\n\
                     Content-Length: 1\r\n\r\nv";

/// A server that plays one script for each connection, in order.
fn serve(scripts: Vec<Script>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for script in scripts {
            let (mut stream, _) = listener.accept().unwrap();
            script(&mut stream);
        }
    });
    format!("rest+http://127.0.0.1:{port}/b/{{key}}?timeout=5s")
}

fn expect(stream: &mut TcpStream, request: &str) {
    let request = request.replace("HOST", &stream.local_addr().unwrap().to_string());
    let mut bytes = vec![0; request.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), request);
}

/// Waits until the client closes.
fn until_closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}

/// Answers each request with the answer beside it, then waits for the end.
fn answers(pairs: Vec<(&'static str, &'static [u8])>) -> Script {
    Box::new(move |stream| {
        for (request, answer) in pairs {
            expect(stream, request);
            stream.write_all(answer).unwrap();
        }
        until_closed(stream);
    })
}

async fn connect(url: &str) -> Single<RestClient, RestTransport> {
    let store = RestStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap();
    Single::new(store.connect(1).await.unwrap())
}

fn kind(error: &RequestError) -> (ErrorClass, Certainty, bool) {
    (error.class, error.certainty, error.connection_lost)
}

#[test]
fn a_value_in_an_encoding_that_nobody_asked_for_is_no_corrupt_value() {
    let url = serve(vec![answers(vec![
        (GET_K, b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b"),
        (GET_K, b"HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b"),
        (GET_K, b"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 1\r\n\r\nv"),
    ])]);
    run(async {
        let mut client = connect(&url).await;
        let error = client.get("k").await.unwrap_err();
        assert_eq!(kind(&error), (ErrorClass::Protocol, Certainty::Failed, false));
        assert!(error.message.contains("`gzip`"), "{error}");
        assert_eq!(client.get("k").await, Ok(None));
        assert_eq!(client.get("k").await, Ok(Some(b"v".to_vec())));
    });
}

#[test]
fn bodies_come_whole_in_chunks_and_byte_by_byte() {
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let url = serve(vec![Box::new(move |stream| {
        expect(stream, GET_K);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxyz").unwrap();
        for _ in 0..2 {
            expect(stream, GET_K);
            for byte in chunked {
                stream.write_all(&[*byte]).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        }
        expect(stream, GET_K);
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno").unwrap();
        until_closed(stream);
    })]);
    run(async {
        let mut store = connect(&url).await;
        assert_eq!(store.get("k").await.unwrap().unwrap(), b"xyz");
        assert_eq!(store.get("k").await.unwrap().unwrap(), b"abcde");
        // A buffer that is used again holds nothing of the last reading.
        let mut into = Reading::default();
        into.set_whole(b"old");
        let connection = &mut store.connection;
        let get = kvdyno_core::store::Client::get(&mut connection.clients[0], b"k", &mut into);
        assert_eq!(drive(&mut connection.transport, get).await, Ok(true));
        assert_eq!(into.bytes(), b"abcde");
        assert_eq!(store.get("k").await, Ok(None));
    });
}

#[test]
fn an_answer_that_closes_the_connection_is_read_and_the_next_request_makes_a_new_one() {
    let close = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc";
    let url = serve(vec![
        // The server does not close: that it will is enough.
        answers(vec![(GET_K, close)]),
        answers(vec![(PUT_K, b"HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\nreason")]),
        answers(vec![(PUT_K, b"HTTP/1.1 204 No Content\r\n\r\n")]),
    ]);
    run(async {
        let mut store = connect(&url).await;
        assert_eq!(store.get("k").await.unwrap().unwrap(), b"abc");
        let error = store.set("k", b"v").await.unwrap_err();
        assert_eq!(kind(&error), (ErrorClass::Unavailable, Certainty::Indeterminate, false));
        assert_eq!(&*error.message, "500 Oops");
        store.set("k", b"v").await.unwrap();
    });
}

#[test]
fn refusals_are_failed_and_what_is_not_known_is_indeterminate() {
    let length = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
    let url = serve(vec![answers(vec![
        (PUT_K, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"),
        (PUT_K, b"HTTP/1.1 409 Conflict\r\nContent-Length: 5\r\n\r\nthere"),
        (PUT_K, b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"),
        (PUT_K, b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"),
        (PUT_K, length),
        (GET_K, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
    ])]);
    run(async {
        let mut store = connect(&url).await;
        store.set("k", b"v").await.unwrap();
        let mut outcome = Vec::new();
        for _ in 0..4 {
            outcome.push(kind(&store.set("k", b"v").await.unwrap_err()));
        }
        outcome.push(kind(&store.get("k").await.unwrap_err()));
        use Certainty::{Failed, Indeterminate};
        use ErrorClass::{Rejected, Unavailable};
        let expected = [
            (Rejected, Failed, false),
            (Unavailable, Indeterminate, false),
            (Unavailable, Indeterminate, false),
            (Rejected, Failed, false),
            (Unavailable, Failed, false),
        ];
        assert_eq!(outcome, expected);
        // Refused before anything is sent.
        assert_eq!(store.set("..", b"v").await.unwrap_err().class, ErrorClass::Rejected);
        let ttl = whole(b"k", b"v", Some(Duration::from_secs(1)));
        assert_eq!(store.put(ttl).await.unwrap_err().class, ErrorClass::Unsupported);
    });
}

#[test]
fn what_is_not_http_ends_the_connection() {
    let url = serve(vec![
        answers(vec![(PUT_K, b"-ERR unknown command 'PUT'\r\n")]),
        answers(vec![(GET_K, b"HTTP/1.1 200 OK\r\n\r\nno length")]),
    ]);
    run(async {
        let mut store = connect(&url).await;
        let error = store.set("k", b"v").await.unwrap_err();
        assert_eq!(kind(&error), (ErrorClass::Protocol, Certainty::Indeterminate, true));
        let error = store.get("k").await.unwrap_err();
        assert_eq!(kind(&error), (ErrorClass::Protocol, Certainty::Failed, true));
    });
}

#[test]
fn a_store_that_lets_nobody_in_says_so_when_it_is_asked_what_it_is() {
    let url = serve(vec![Box::new(|stream| {
        expect(stream, "GET /b/kvdyno HTTP/1.1\r\nHost: HOST\r\nAccept-Encoding: identity\r\n\r\n");
        let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(answer).unwrap();
        until_closed(stream);
    })]);
    run(async {
        let store = RestStore::open(&mut StoreUrl::parse(&url).unwrap()).unwrap();
        let error = store.profile().await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Rejected);
        assert!(error.message.contains("user and password"), "{error}");
    });
}
