//! The shared connection against a scripted server: answers in pieces, answers that make no sense,
//! connections that end. Needs no server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Single, drive, drive_all, run, whole};
use kvdyno_core::store::{
    Answer, Certainty, Client, Connection, ErrorClass, Reading, RequestError, Store, Transport,
};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::redis::{RedisClient, RedisStore, RedisTransport};

const GET_K: &[u8] = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
const SETNAME: &[u8] = b"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$6\r\nkvdyno\r\n";

/// Actions of the server once a client is connected.
type Script = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// A server that plays one script for each connection, in order. The handshake over RESP2 is
/// answered; the URL asks for that.
fn serve(scripts: Vec<Script>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for script in scripts {
            let (mut stream, _) = listener.accept().unwrap();
            expect(&mut stream, SETNAME);
            stream.write_all(b"+OK\r\n").unwrap();
            script(&mut stream);
        }
    });
    format!("redis://127.0.0.1:{port}?resp=2&timeout=400ms")
}

fn expect(stream: &mut TcpStream, request: &[u8]) {
    let mut bytes = vec![0; request.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(request));
}

/// Waits until the client closes.
fn until_closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}

fn store(url: &str) -> RedisStore {
    RedisStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

async fn connect(url: &str, slots: usize) -> Connection<RedisClient, RedisTransport> {
    store(url).connect(slots).await.unwrap()
}

/// A get on the first client and a put on the second, in flight together.
async fn get_and_put(
    connection: &mut Connection<RedisClient, RedisTransport>,
) -> (Answer<bool>, Answer<()>) {
    let mut into = Reading::default();
    let [first, second] = &mut connection.clients[..] else { panic!("two clients") };
    let (mut got, mut put) = (None, None);
    let get = async { got = Some(first.get(b"k", &mut into).await) };
    let set = async { put = Some(second.put(whole(b"k", b"v", None)).await) };
    let requests: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + '_>>> =
        vec![Box::pin(get), Box::pin(set)];
    drive_all(&mut connection.transport, requests).await;
    (got.unwrap(), put.unwrap())
}

fn kind(error: &RequestError) -> (ErrorClass, Certainty, bool) {
    (error.class, error.certainty, error.connection_lost)
}

#[test]
fn answers_may_come_byte_by_byte() {
    let url = serve(vec![Box::new(|stream| {
        expect(stream, GET_K);
        for byte in b"$7\r\na\r\n$1\rb\r\n+OK\r\n" {
            stream.write_all(&[*byte]).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        until_closed(stream);
    })]);
    run(async {
        let mut connection = connect(&url, 2).await;
        assert_eq!(get_and_put(&mut connection).await, (Ok(true), Ok(())));
    });
}

#[test]
fn what_makes_no_sense_ends_the_connection_and_the_next_request_makes_a_new_one() {
    // No RESP; an integer for a value, and OK for it; more than was asked for.
    for nonsense in [&b"hello\r\n"[..], b":1\r\n", b"$1\r\nx\r\n+OK\r\n+OK\r\n"] {
        let url = serve(vec![
            Box::new(move |stream| {
                expect(stream, GET_K);
                stream.write_all(nonsense).unwrap();
                until_closed(stream);
            }),
            Box::new(|stream| {
                expect(stream, GET_K);
                stream.write_all(b"$1\r\ny\r\n").unwrap();
                until_closed(stream);
            }),
        ]);
        run(async {
            let mut connection = connect(&url, 2).await;
            let (got, put) = get_and_put(&mut connection).await;
            if nonsense.len() < 10 {
                let protocol = ErrorClass::Protocol;
                assert_eq!(kind(&got.unwrap_err()), (protocol, Certainty::Failed, true));
                assert_eq!(kind(&put.unwrap_err()), (protocol, Certainty::Indeterminate, true));
            } else {
                // What was asked for had come before; the surplus ends the connection.
                drive(&mut connection.transport, tokio::time::sleep(Duration::from_millis(50)))
                    .await;
            }
            let mut single = Single::new(connection);
            assert_eq!(single.get("k").await, Ok(Some(b"y".to_vec())));
        });
    }
}

#[test]
fn an_idle_connection_that_was_closed_costs_no_operation() {
    let url = serve(vec![
        Box::new(|stream| stream.shutdown(Shutdown::Both).unwrap()),
        Box::new(|stream| {
            expect(stream, GET_K);
            stream.write_all(b"$-1\r\n").unwrap();
            until_closed(stream);
        }),
    ]);
    run(async {
        let mut connection = connect(&url, 1).await;
        drive(&mut connection.transport, tokio::time::sleep(Duration::from_millis(100))).await;
        assert_eq!(Single::new(connection).get("k").await, Ok(None));
    });
}

#[test]
fn the_answer_of_an_abandoned_request_is_dropped() {
    let url = serve(vec![Box::new(|stream| {
        expect(stream, GET_K);
        thread::sleep(Duration::from_millis(100));
        stream.write_all(b"$3\r\nold\r\n").unwrap();
        expect(stream, GET_K);
        stream.write_all(b"$3\r\nnew\r\n").unwrap();
        until_closed(stream);
    })]);
    run(async {
        let mut connection = connect(&url, 1).await;
        let mut into = Reading::default();
        let get = drive(&mut connection.transport, connection.clients[0].get(b"k", &mut into));
        assert!(tokio::time::timeout(Duration::from_millis(20), get).await.is_err());
        assert_eq!(Single::new(connection).get("k").await, Ok(Some(b"new".to_vec())));
    });
}

#[test]
fn each_request_has_its_own_time_limit_though_there_is_one_timer() {
    let url = serve(vec![Box::new(|stream| {
        // Answers for 300 ms, then never: the timer was set for the first of these requests.
        for _ in 0..3 {
            expect(stream, GET_K);
            thread::sleep(Duration::from_millis(100));
            stream.write_all(b"$-1\r\n").unwrap();
        }
        until_closed(stream);
    })]);
    run(async {
        let mut single = Single::new(connect(&url, 1).await);
        for _ in 0..3 {
            assert_eq!(single.get("k").await, Ok(None));
        }
        let begin = Instant::now();
        let error = single.set("k", b"v").await.unwrap_err();
        let waited = begin.elapsed();
        assert_eq!(kind(&error), (ErrorClass::Timeout, Certainty::Indeterminate, true));
        assert!(error.message.contains("to a request of 27 bytes; `?timeout=`"), "{error}");
        assert!(waited >= Duration::from_millis(400), "{waited:?}");
        assert!(waited < Duration::from_secs(1), "{waited:?}");
    });
}

#[test]
fn requests_for_which_no_connection_was_had_count_for_no_server() {
    let alive = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [&alive, &dead].map(|listener| listener.local_addr().unwrap().port());
    drop(dead);
    thread::spawn(move || {
        for stream in alive.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut bytes = [0; 4_096];
                // Every command is answered alike; requests come one at a time.
                while stream.read(&mut bytes).is_ok_and(|length| length > 0) {
                    if stream.write_all(b"$-1\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    let [up, down] = ports;
    let url = format!("redis+sharded://127.0.0.1:{up},127.0.0.1:{down}?resp=2&timeout=400ms");
    run(async {
        let store = store(&url);
        let mut single = Single::new(store.connect(1).await.unwrap());
        let (mut answered, mut refused) = (0, 0);
        for key in crate::harness::names("k", 200) {
            match single.get(&key).await {
                Ok(_) => answered += 1,
                Err(error) => {
                    assert_eq!(error.class, ErrorClass::Refused, "{error}");
                    refused += 1;
                }
            }
        }
        assert!(answered > 50 && refused > 50, "{answered}, {refused}");
        drop(single);
        let figures = store.figures().await;
        let detail = &figures.iter().find(|f| f.name.starts_with("requests on")).unwrap().detail;
        assert!(detail.contains(&format!("127.0.0.1:{up} {answered}")), "{detail}");
        assert!(detail.contains(&format!("127.0.0.1:{down} 0")), "{detail}");
        assert!(figures.iter().all(|figure| figure.warning.is_none()), "{figures:?}");
    });
}

#[test]
fn a_server_without_resp3_is_spoken_to_in_resp2() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let hello = b"*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$1\r\np\r\n";
        expect(&mut stream, hello);
        stream.write_all(b"-ERR unknown command `HELLO`, with args\r\n").unwrap();
        expect(&mut stream, b"*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n");
        stream.write_all(b"+OK\r\n").unwrap();
        expect(&mut stream, b"*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n");
        stream.write_all(b"+OK\r\n").unwrap();
        expect(&mut stream, SETNAME);
        stream.write_all(b"+OK\r\n").unwrap();
        expect(&mut stream, GET_K);
        stream.write_all(b"$-1\r\n").unwrap();
        until_closed(&mut stream);
    });
    run(async {
        let url = format!("redis://:p@127.0.0.1:{port}/2");
        let mut single = Single::new(connect(&url, 1).await);
        assert_eq!(single.get("k").await, Ok(None));
    });
    server.join().unwrap();
}

#[test]
fn a_server_that_says_nothing_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    run(async {
        let begin = Instant::now();
        let url = format!("redis://127.0.0.1:{port}?timeout=200ms");
        let error = store(&url).connect(1).await.err().unwrap();
        assert_eq!(kind(&error), (ErrorClass::Refused, Certainty::Failed, true));
        assert!(begin.elapsed() < Duration::from_secs(1));
    });
}

#[test]
fn nothing_is_left_to_do_once_all_is_answered() {
    let url = serve(vec![Box::new(until_closed)]);
    run(async {
        let mut connection = connect(&url, 1).await;
        let idle = std::future::poll_fn(|context| {
            std::task::Poll::Ready(connection.transport.poll(context))
        });
        assert!(!idle.await, "an idle connection must not keep the load busy");
    });
}
