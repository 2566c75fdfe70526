//! Each invariant of a connection, broken by hand: docs/ARCHITECTURE.md has the sentence to each name.

use std::task::Waker;

use super::*;

/// A protocol of lines; its server is never reached.
struct Lines;

impl Protocol for Lines {
    type Reply = ();
    type Progress = ();

    fn scan((): &mut (), _: u32, input: &[u8]) -> Result<Option<((), usize)>, MalformedAnswer> {
        Ok(input.iter().position(|byte| *byte == b'\n').map(|at| ((), at + 1)))
    }

    fn peer(&self) -> String {
        "nobody".to_owned()
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn open(&self) -> impl Future<Output = Answer<Stream>> + 'static {
        std::future::pending()
    }
}

fn connection() -> Connection<Lines> {
    Connection::closed(Lines, 2)
}

fn ask(connection: &mut Connection<Lines>, slot: usize) {
    connection.submit(slot, Effect::Read, 1, |output| output.extend_from_slice(b"get\n"));
}

fn poll(connection: &mut Connection<Lines>) -> bool {
    connection.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn requests_of_clients_that_wait_and_of_one_that_does_not() {
    let mut connection = connection();
    (0..2).for_each(|slot| ask(&mut connection, slot));
    connection.abandon(0);
    ask(&mut connection, 0);
    connection.abandon(1);
    assert!(!poll(&mut connection));
    connection.close(ErrorClass::Disconnected, "it is over");
    assert!(poll(&mut connection));
    assert!(matches!(connection.claim(0), Some(Err(_))));
    assert!(connection.claim(1).is_none());
    ask(&mut connection, 0);
}

#[tokio::test]
#[should_panic(expected = "one-request-a-client")]
async fn a_client_that_asks_twice() {
    let mut connection = connection();
    (0..2).for_each(|_| ask(&mut connection, 0));
}

#[tokio::test]
#[should_panic(expected = "closed-is-empty")]
async fn bytes_of_a_connection_that_has_ended() {
    let mut connection = connection();
    connection.output.push(b'g');
    ask(&mut connection, 0);
}

#[tokio::test]
#[should_panic(expected = "waits-in-flight")]
async fn a_client_that_waits_for_nothing() {
    let mut connection = connection();
    connection.slots[1].state = State::Waiting;
    poll(&mut connection);
}
