//! Polls clients as the load does: all clients of a connection, then its transport, until all are
//! answered.
#![allow(dead_code)]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use kvdyno_core::store::{
    Answer, Certainty, Client, Connection, ErrorClass, FieldSpan, Put, Reading, RequestError, Rows,
    Store, Transport, Value,
};
use kvdyno_core::workload::fault::NodeFault;
use kvdyno_testbed::{Deployment, Testbed};

/// Longest time until a cluster serves again, on a machine that is fully loaded.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Starts a testbed, whose software must be installed.
pub fn testbed(words: &str) -> Deployment {
    Deployment::up(words).unwrap_or_else(|error| panic!("{words}: {error}"))
}

/// Runs on a current-thread runtime, as a worker does.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Drives requests of several clients of a connection until each is answered.
pub async fn drive_all<F: Future>(
    transport: &mut impl Transport,
    requests: Vec<F>,
) -> Vec<F::Output> {
    let mut requests: Vec<Pin<Box<F>>> = requests.into_iter().map(Box::pin).collect();
    let mut answers: Vec<Option<F::Output>> = requests.iter().map(|_| None).collect();
    poll_fn(|context| {
        loop {
            for (request, answer) in requests.iter_mut().zip(&mut answers) {
                if answer.is_none()
                    && let Poll::Ready(ready) = request.as_mut().poll(context)
                {
                    *answer = Some(ready);
                }
            }
            if answers.iter().all(Option::is_some) {
                return Poll::Ready(());
            }
            if !transport.poll(context) {
                return Poll::Pending;
            }
        }
    })
    .await;
    answers.into_iter().map(Option::unwrap).collect()
}

/// Drives one request.
pub async fn drive<F: Future>(transport: &mut impl Transport, request: F) -> F::Output {
    drive_all(transport, vec![request]).await.pop().unwrap()
}

/// One request on each connection, every second one a write; then does `harm` while all are in
/// flight. Gives the connections back, each with its answer.
pub async fn in_flight_on_each<C: Client, T: Transport, H>(
    connections: Vec<Connection<C, T>>,
    harm: impl FnOnce() -> H,
) -> Vec<(Connection<C, T>, Answer<()>)> {
    let mut requests: Vec<_> = connections.into_iter().enumerate().collect();
    let mut into: Vec<Reading> = requests.iter().map(|_| Reading::default()).collect();
    let mut pending: Vec<_> = requests
        .iter_mut()
        .zip(&mut into)
        .map(|((n, Connection { clients, transport }), into)| {
            let (client, write) = (&mut clients[0], *n % 2 == 1);
            Box::pin(drive(transport, async move {
                match write {
                    true => client.put(whole(b"k", b"v", None)).await,
                    false => client.get(b"k", into).await.map(drop),
                }
            }))
        })
        .collect();
    let mut answers: Vec<Option<Answer<()>>> = pending.iter().map(|_| None).collect();
    let all = poll_fn(|context| {
        for (request, answer) in pending.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let Poll::Ready(ready) = request.as_mut().poll(context)
            {
                *answer = Some(ready);
            }
        }
        if answers.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    });
    let harm = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        harm();
    };
    tokio::join!(all, harm);
    drop(pending);
    let connections = requests.into_iter().map(|(_, connection)| connection);
    connections.zip(answers.into_iter().flatten()).collect()
}

/// Returns bytes of every kind, others for each `seed`.
pub fn binary(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u32).wrapping_mul(31).wrapping_add(seed.into()) as u8).collect()
}

/// Checks that clients that share a connection get their own answers, big and small ones mixed.
pub async fn keeps_answers_apart(store: &impl Store, clients: usize) {
    let mut connection = store.connect(clients).await.unwrap();
    let keys = names("key", clients);
    for round in 0..20 {
        let length = |n| if n % 3 == 0 { 200_000 } else { n };
        let values: Vec<Vec<u8>> =
            (0..clients).map(|n| binary(length(n), n as u8 ^ round)).collect();
        let clients = connection.clients.iter_mut();
        let puts = clients.zip(keys.iter().zip(&values));
        let puts = puts.map(|(c, (k, v))| c.put(whole(k.as_bytes(), v, None))).collect();
        for answer in drive_all(&mut connection.transport, puts).await {
            answer.unwrap();
        }
        let mut readings: Vec<Reading> = keys.iter().map(|_| Reading::default()).collect();
        let clients = connection.clients.iter_mut();
        let gets = clients.zip(keys.iter().zip(&mut readings));
        let gets = gets.map(|(c, (k, into))| c.get(k.as_bytes(), into)).collect();
        assert!(drive_all(&mut connection.transport, gets).await.iter().all(|a| *a == Ok(true)));
        for (reading, value) in readings.iter().zip(&values) {
            assert!(reading.bytes() == value, "round {round}");
        }
    }
}

/// Ten requests are in flight on connections of their own when a paused node is killed: its reads
/// have failed and its writes are indeterminate, of one of `classes`. The next request is refused,
/// and once the node is back the same connection serves again.
pub async fn a_killed_node_leaves_writes_indeterminate(
    store: &impl Store,
    testbed: &mut Deployment,
    node: &str,
    classes: &[ErrorClass],
) {
    let mut connections = Vec::new();
    for _ in 0..10 {
        connections.push(store.connect(1).await.unwrap());
    }
    testbed.act(node, NodeFault::Pause).unwrap();
    let answers =
        in_flight_on_each(connections, || testbed.act(node, NodeFault::Kill).unwrap()).await;
    for (n, (_, answer)) in answers.iter().enumerate() {
        let error = answer.as_ref().unwrap_err();
        let certainty = if n % 2 == 0 { Certainty::Failed } else { Certainty::Indeterminate };
        assert!(classes.contains(&error.class), "{error}");
        assert_eq!((error.certainty, error.connection_lost), (certainty, true), "{error}");
    }
    let (connection, _) = answers.into_iter().next().unwrap();
    let mut client = Single::new(connection);
    let error = client.set("k", b"v").await.unwrap_err();
    assert_eq!((error.class, error.certainty), (ErrorClass::Refused, Certainty::Failed));
    testbed.act(node, NodeFault::Restart).unwrap();
    client.set("k", b"again").await.unwrap();
    assert_eq!(client.get("k").await, Ok(Some(b"again".to_vec())));
}

/// Asks again until `wanted` is pleased, after pauses as long as a client that lost its connection would wait.
pub async fn until<T>(
    what: &str,
    mut ask: impl AsyncFnMut() -> T,
    wanted: impl Fn(&T) -> bool,
) -> T {
    let begin = Instant::now();
    loop {
        let answer = ask().await;
        if wanted(&answer) {
            return answer;
        }
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns a put of one value.
pub fn whole<'a>(key: &'a [u8], value: &'a [u8], ttl: Option<Duration>) -> Put<'a> {
    let value = Value::new(value, &[]);
    Put { key, value, insert: false, partial: false, record_fields: 1, ttl }
}

/// Returns the places of fields of the given (number, length), end to end.
pub fn spans(fields: &[(u16, u32)]) -> Vec<FieldSpan> {
    let mut start = 0;
    let place = |&(index, length): &(u16, u32)| {
        let span = FieldSpan { index, start, end: start + length };
        start += length;
        span
    };
    fields.iter().map(place).collect()
}

/// Operations on the first client of a connection, one at a time.
pub struct Single<C, T> {
    pub connection: Connection<C, T>,
}

impl<C: Client, T: Transport> Single<C, T> {
    pub fn new(connection: Connection<C, T>) -> Self {
        Single { connection }
    }

    pub async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let Connection { clients, transport } = &mut self.connection;
        drive(transport, clients[0].put(put)).await
    }

    pub async fn set(&mut self, key: &str, value: &[u8]) -> Answer<()> {
        self.put(whole(key.as_bytes(), value, None)).await
    }

    pub async fn read(&mut self, key: &str) -> Answer<Option<Reading>> {
        let mut into = Reading::default();
        let Connection { clients, transport } = &mut self.connection;
        let found = drive(transport, clients[0].get(key.as_bytes(), &mut into)).await?;
        Ok(found.then_some(into))
    }

    pub async fn get(&mut self, key: &str) -> Answer<Option<Vec<u8>>> {
        Ok(self.read(key).await?.map(|reading| reading.bytes().to_vec()))
    }

    pub async fn delete(&mut self, key: &str) -> Answer<bool> {
        let Connection { clients, transport } = &mut self.connection;
        drive(transport, clients[0].delete(key.as_bytes())).await
    }
}

impl<C: Client, T: Transport> Single<C, T> {
    pub async fn set_all(
        &mut self,
        keys: &[String],
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Answer<()> {
        let puts: Vec<Put<'_>> = keys.iter().map(|key| whole(key.as_bytes(), value, ttl)).collect();
        let Connection { clients, transport } = &mut self.connection;
        drive(transport, clients[0].put_batch(&puts)).await
    }

    pub async fn get_all(&mut self, keys: &[String]) -> Answer<Vec<Option<Vec<u8>>>> {
        let wanted: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
        let mut rows = Rows::default();
        let Connection { clients, transport } = &mut self.connection;
        drive(transport, clients[0].get_batch(&wanted, &mut rows)).await?;
        assert!(rows.iter().map(|(key, _)| key).eq(wanted), "rows in another order than asked");
        Ok(rows.iter().map(|(_, value)| value.map(<[u8]>::to_vec)).collect())
    }

    /// Sets a key again and again until that succeeds: each failure must be one that the outage
    /// explains.
    pub async fn set_until_it_succeeds(&mut self, key: &str, value: &[u8]) {
        let begin = Instant::now();
        while let Err(error) = self.set(key, value).await {
            before_another_try(&error, begin).await;
        }
    }

    /// A node that hears late of a fail-over says for a moment that it serves nobody.
    pub async fn get_all_once_it_serves(&mut self, keys: &[String]) -> Vec<Option<Vec<u8>>> {
        let begin = Instant::now();
        loop {
            match self.get_all(keys).await {
                Ok(found) => return found,
                Err(error) => before_another_try(&error, begin).await,
            }
        }
    }
}

/// An error that passes, in an attempt that goes on since `begin`.
async fn before_another_try(error: &RequestError, begin: Instant) {
    let transient = [
        ErrorClass::Refused,
        ErrorClass::Disconnected,
        ErrorClass::Timeout,
        ErrorClass::Unavailable,
    ];
    assert!(transient.contains(&error.class), "{error}");
    assert!(begin.elapsed() < PATIENCE, "it does not come back: {error}");
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// Returns `count` names.
pub fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}")).collect()
}

/// One request for each of `keys`, each on a slot of its own: reads and writes by turns. Sends them,
/// does `harm` when they have left, and gives what became of them.
pub async fn in_flight<C: Client, T: Transport, H>(
    connection: &mut Connection<C, T>,
    keys: &[String],
    harm: impl FnOnce() -> H,
) -> Vec<Answer<()>> {
    let mut readings: Vec<Reading> = keys.iter().map(|_| Reading::default()).collect();
    let slots = connection.clients.iter_mut().zip(keys.iter().zip(&mut readings)).enumerate();
    let requests: Vec<_> = slots
        .map(|(n, (client, (key, into)))| async move {
            match n % 2 {
                0 => client.get(key.as_bytes(), into).await.map(drop),
                _ => client.put(whole(key.as_bytes(), b"in flight", None)).await,
            }
        })
        .collect();
    assert_eq!(requests.len(), keys.len(), "as many clients as keys");
    let all = drive_all(&mut connection.transport, requests);
    let harm = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        harm();
    };
    tokio::join!(all, harm).0
}

/// Requests to servers that live are answered; of those to the dead one reads are failed and writes
/// indeterminate. Both kinds must occur.
pub fn assert_only_the_dead_fail(answers: &[Answer<()>], is_dead: impl Fn(usize) -> bool) {
    let (mut dead, mut alive) = (0, 0);
    for (n, answer) in answers.iter().enumerate() {
        if !is_dead(n) {
            assert_eq!(*answer, Ok(()), "request {n}");
            alive += 1;
            continue;
        }
        let error = answer.as_ref().unwrap_err();
        let expected = if n % 2 == 0 { Certainty::Failed } else { Certainty::Indeterminate };
        assert_eq!(
            (error.class, error.certainty),
            (ErrorClass::Disconnected, expected),
            "request {n}"
        );
        assert!(error.connection_lost);
        dead += 1;
    }
    assert!(dead > 1 && alive > 1, "{dead} requests to the dead, {alive} to others");
}
