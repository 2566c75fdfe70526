//! The heartbeat record: one record beside those of the load, by which runs at one store learn of each other while they go
//! on. It is read and written by a client of its own, outside of every figure.

use std::cell::RefCell;
use std::pin::Pin;

use super::connection_tasks::ConnectionTasks;
use super::job::StoreContext;
use crate::store::{
    Answer, BoxedClient, BoxedTransport, Client, Connection, ErasedStore, FieldSpan, Put, Reading,
    RequestError, Value,
};

/// Prefix of the record's key. Keys of records are digits, so the heartbeat record comes after all of them in every scan.
const KEY: &str = "kvdyno-heartbeat-";

/// Next step of a run with the heartbeat record of its dataset. Each step begins with a read of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Writes this text over the record.
    Write(String),
    /// Leaves the record as it is.
    Look,
    /// Deletes the record if the last text that this run wrote stands in it, and ends.
    End,
}

/// The heartbeat record, with the connection by which it is reached.
struct HeartbeatRecord<'a, S: ?Sized> {
    store: &'a S,
    key: String,
    fields: u16,
    connection: Option<Connection<BoxedClient, BoxedTransport>>,
    /// Text that this run wrote last.
    written: Option<String>,
}

/// Asks `next` for a step, passing what the last look found, and carries it out, until the step is [`Beat::End`].
/// `next` takes the time between two beats. After a failure the next beat connects anew.
pub(super) async fn keep_heartbeat(
    store: &(impl ErasedStore + ?Sized),
    context: &StoreContext,
    next: &mut dyn FnMut(Option<&str>) -> Beat,
) {
    let key = format!("{KEY}{:08x}", context.dataset.id);
    let fields = context.dataset.fields;
    let mut record = HeartbeatRecord { store, key, fields, connection: None, written: None };
    let mut found: Option<String> = None;
    loop {
        let beat = next(found.take().as_deref());
        match tokio::time::timeout(context.profile.timeout, record.exchange(&beat)).await {
            Ok(Ok(text)) => found = text,
            Ok(Err(_)) | Err(_) => record.connection = None,
        }
        if beat == Beat::End {
            return;
        }
    }
}

impl<S: ErasedStore + ?Sized> HeartbeatRecord<'_, S> {
    /// Reads the record, does what the beat says, and returns the text that was read.
    async fn exchange(&mut self, beat: &Beat) -> Answer<Option<String>> {
        if self.connection.is_none() {
            self.connection = Some(self.store.connect(1).await?);
        }
        let Some(Connection { clients, transport }) = &mut self.connection else {
            return Ok(None);
        };
        if let Beat::Write(text) = beat {
            // Perhaps it will stand there even where the answer is an error.
            self.written = Some(text.clone());
        }
        let client = clients.first_mut().ok_or_else(|| RequestError::unsupported("heartbeat"))?;
        let answer = RefCell::new(Ok(None));
        let (key, written, fields) = (self.key.as_bytes(), self.written.as_deref(), self.fields);
        let task: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(async {
            *answer.borrow_mut() = carry_out(client, key, beat, written, fields).await;
        });
        ConnectionTasks::new(vec![task], transport).await;
        answer.into_inner()
    }
}

async fn carry_out(
    client: &mut impl Client,
    key: &[u8],
    beat: &Beat,
    written: Option<&str>,
    fields: u16,
) -> Answer<Option<String>> {
    let mut reading = Reading::default();
    let is_there = client.get(key, &mut reading).await?;
    let found = is_there.then(|| String::from_utf8_lossy(reading.bytes()).into_owned());
    match beat {
        Beat::Write(text) => {
            let spans = spans(text.len() as u32, fields);
            let value = Value::new(text.as_bytes(), &spans);
            let (insert, partial, ttl) = (!is_there, false, None);
            client.put(Put { key, value, insert, partial, record_fields: fields, ttl }).await?;
        }
        Beat::End if found.is_some() && found.as_deref() == written => {
            client.delete(key).await?;
        }
        Beat::Look | Beat::End => {}
    }
    Ok(found)
}

/// Returns the fields of a value whose first field has all bytes and the others none: a store that keeps fields apart
/// requires each of them.
fn spans(length: u32, fields: u16) -> Vec<FieldSpan> {
    let fields = if fields > 1 { fields } else { 0 };
    let start = |index| if index == 0 { 0 } else { length };
    (0..fields).map(|index| FieldSpan { index, start: start(index), end: length }).collect()
}
