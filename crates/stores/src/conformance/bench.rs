//! A client under test: drives its requests as the load does, and remembers its keys.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kvdyno_core::store::{
    Answer, Capabilities, Client, Connection, OperationId, Put, Reading, Rows, Store, Transport,
    Value,
};
use tokio::task::LocalSet;

use super::{ConformanceFailure, capabilities};

/// Runs `check` as the load runs clients: on a single-threaded runtime, as a local task.
pub(super) fn block_on<T>(check: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime needs an epoll instance, which the system refused");
    LocalSet::new().block_on(&runtime, check)
}

/// Polls `request` and then its connection's transport, until the request is answered.
pub(super) async fn drive<F: Future>(transport: &mut impl Transport, request: F) -> F::Output {
    let mut request = pin!(request);
    poll_fn(|context| {
        loop {
            if let Poll::Ready(answer) = request.as_mut().poll(context) {
                return Poll::Ready(answer);
            }
            if !transport.poll(context) {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Names for records, all beginning with one word.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    word: String,
    next: u64,
}

impl Keys {
    /// `salt` tells apart what begins at the same instant.
    pub(super) fn new(salt: u64) -> Keys {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        // Six digits of 36 signs each, the first of which tells nothing, change every 50 ns.
        let mut rest = (now.as_nanos() as u64 / 50) ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut word = String::from("c");
        for _ in 0..5 {
            let digit = (rest % 36) as u32;
            word.push(char::from_digit(digit, 36).unwrap_or('0'));
            rest /= 36;
        }
        Keys { word, next: 0 }
    }

    /// Returns a name that was not given before, 16 bytes long; later names sort after earlier ones.
    pub(super) fn next(&mut self) -> Vec<u8> {
        self.next += 1;
        format!("{}{:010}", self.word, self.next).into_bytes()
    }

    /// Returns a new name with `length` bytes, 8 to 250; of 8 bytes there are only 100.
    pub(super) fn of_length(&mut self, length: usize) -> Vec<u8> {
        self.next += 1;
        let mut key = format!("{}{:02}", self.word, self.next % 100);
        while key.len() < length {
            key.push(char::from(b'a' + (key.len() % 26) as u8));
        }
        key.into_bytes()
    }
}

/// One connection with one client, and all that it wrote.
pub(super) struct Bench<'s, S: Store> {
    pub(super) store: &'s S,
    pub(super) can: Capabilities,
    pub(super) keys: Keys,
    connection: Connection<S::Client, S::Transport>,
    written: Vec<Vec<u8>>,
    operations: u64,
    reading: Reading,
}

impl<'s, S: Store> Bench<'s, S> {
    pub(super) async fn open(store: &'s S) -> Result<Self, ConformanceFailure> {
        Self::connect(store, 0)
            .await
            .map_err(|detail| ConformanceFailure { promise: "connect", detail })
    }

    pub(super) async fn connect(store: &'s S, salt: u64) -> Result<Self, String> {
        let can = capabilities(store).await?;
        let connection = store.connect(1).await.map_err(|error| error.to_string())?;
        Ok(Bench {
            store,
            can,
            keys: Keys::new(salt),
            connection,
            written: Vec::new(),
            operations: salt << 32,
            reading: Reading::default(),
        })
    }

    pub(super) fn fresh_keys(&self) -> Keys {
        Keys::new(self.operations)
    }

    /// Tells the client of a new operation; returns it and its transport.
    fn begin(&mut self) -> (&mut S::Client, &mut S::Transport) {
        self.operations += 1;
        let client = self.connection.clients.first_mut().expect("connect gave a client");
        client.begin(OperationId { phase: 0, group: 0, id: self.operations });
        (client, &mut self.connection.transport)
    }

    /// Gets a record; the error is one line that says what was asked.
    pub(super) async fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let found = self.read(key).await?;
        Ok(found.then(|| self.reading.bytes().to_vec()))
    }

    /// Gets the fields that came apart, as (number, bytes); none if the record came whole.
    pub(super) async fn get_fields(
        &mut self,
        key: &[u8],
    ) -> Result<(bool, Vec<(u16, Vec<u8>)>), String> {
        let found = self.read(key).await?;
        let bytes = self.reading.bytes();
        let cut = |start: u32, end: u32| bytes[start as usize..end as usize].to_vec();
        let spans = self.reading.spans().iter();
        Ok((found, spans.map(|s| (s.index, cut(s.start, s.end))).collect()))
    }

    async fn read(&mut self, key: &[u8]) -> Result<bool, String> {
        let mut reading = std::mem::take(&mut self.reading);
        reading.clear();
        let (client, transport) = self.begin();
        let answer = drive(transport, client.get(key, &mut reading)).await;
        self.reading = reading;
        answer.map_err(|error| format!("get of {} failed: {error}", show(key)))
    }

    /// Puts a whole record without fields.
    pub(super) async fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.put_as(whole(key, value)).await
    }

    pub(super) async fn put_as(&mut self, put: Put<'_>) -> Result<(), String> {
        self.written.push(put.key.to_vec());
        let (client, transport) = self.begin();
        drive(transport, client.put(put))
            .await
            .map_err(|error| format!("put of {} failed: {error}", show(put.key)))
    }

    pub(super) async fn delete(&mut self, key: &[u8]) -> Result<bool, String> {
        let (client, transport) = self.begin();
        drive(transport, client.delete(key))
            .await
            .map_err(|error| format!("delete of {} failed: {error}", show(key)))
    }

    pub(super) async fn scan(&mut self, from: &[u8], count: usize) -> Answer<Rows> {
        let mut rows = Rows::default();
        let (client, transport) = self.begin();
        drive(transport, client.scan(from, count, &mut rows)).await.map(|()| rows)
    }

    pub(super) async fn get_batch(&mut self, keys: &[&[u8]]) -> Answer<Rows> {
        let mut rows = Rows::default();
        let (client, transport) = self.begin();
        drive(transport, client.get_batch(keys, &mut rows)).await.map(|()| rows)
    }

    pub(super) async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        self.written.extend(puts.iter().map(|put| put.key.to_vec()));
        let (client, transport) = self.begin();
        drive(transport, client.put_batch(puts)).await
    }

    /// Fails unless the value is there, and is `expected`.
    pub(super) async fn expect(&mut self, key: &[u8], expected: &[u8]) -> Result<(), String> {
        match self.get(key).await? {
            None => Err(format!("{} is absent after its put was answered OK", show(key))),
            Some(found) if found == expected => Ok(()),
            Some(found) => Err(format!("{}: {}", show(key), difference(&found, expected))),
        }
    }

    /// Fails unless the record is absent.
    pub(super) async fn expect_absent(&mut self, key: &[u8]) -> Result<(), String> {
        match self.get(key).await? {
            None => Ok(()),
            Some(found) => Err(format!("{} is there, with {} bytes", show(key), found.len())),
        }
    }

    /// Deletes all that was written; whether that works was checked before.
    pub(super) async fn clean_up(&mut self) {
        for key in std::mem::take(&mut self.written) {
            let _ = self.delete(&key).await;
        }
    }
}

/// Returns the put of a record without fields.
pub(super) fn whole<'a>(key: &'a [u8], value: &'a [u8]) -> Put<'a> {
    Put {
        key,
        value: Value::new(value, &[]),
        insert: false,
        partial: false,
        record_fields: 1,
        ttl: None,
    }
}

/// Returns a key for messages.
pub(super) fn show(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    if text.len() > 40 {
        format!("`{}…` ({} bytes)", &text[..24], key.len())
    } else {
        format!("`{text}`")
    }
}

/// Describes where two values differ, for messages.
pub(super) fn difference(found: &[u8], expected: &[u8]) -> String {
    let at = found.iter().zip(expected).position(|(a, b)| a != b);
    match at {
        Some(at) => format!(
            "byte {at} of {} is {:#04x}, but {:#04x} was written",
            expected.len(),
            found[at],
            expected[at]
        ),
        None => format!("{} bytes came back of {} written", found.len(), expected.len()),
    }
}

/// Returns `length` bytes that look random and are the same for the same `seed`.
pub(super) fn value(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
