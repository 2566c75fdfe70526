//! The operations of one client: which calls of the driver each makes and what comes back.

use std::sync::Arc;

use aerospike::operations::scalar;
use aerospike::{
    BatchOperation, BatchReadPolicy, Bin, Bins, Key, RecordExistsAction, ResultCode, Value,
    WritePolicy,
};
use kvdyno_core::store::{Answer, Client, Put, Reading, Rows};

use super::errors::{self, Effect};
use super::link::Link;
use super::record;
use crate::wire::outcome_of_all;

/// One request slot. The clients of a worker thread share the driver's client.
pub struct AerospikeClient {
    link: Arc<Link>,
    /// Changed for each put; else it would be copied for each.
    write: WritePolicy,
    bins: Vec<Bin>,
}

impl AerospikeClient {
    pub(super) fn new(link: Arc<Link>) -> Self {
        AerospikeClient { write: link.write.clone(), link, bins: Vec::new() }
    }

    fn key(&self, key: &[u8]) -> Answer<Key> {
        let options = &self.link.options;
        // Applications have texts for keys; a key that is none is a blob, another type of key.
        let value = match std::str::from_utf8(key) {
            Ok(text) => Value::String(text.to_owned()),
            Err(_) => Value::Blob(key.to_vec()),
        };
        Key::new(options.namespace.as_str(), options.set.as_str(), value)
            .map_err(|error| errors::request_error(&error, Effect::Read))
    }
}

/// A whole put replaces the record with all its bins; a put of some fields leaves the others.
fn action(put: &Put<'_>) -> RecordExistsAction {
    if put.partial { RecordExistsAction::Update } else { RecordExistsAction::Replace }
}

impl Client for AerospikeClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let key = self.key(key)?;
        match self.link.client.get(&self.link.read, &key, Bins::All).await {
            Ok(found) => record::read(&found, into).map(|()| true),
            Err(error) if error.server_result_code() == Some(ResultCode::KeyNotFoundError) => {
                Ok(false)
            }
            Err(error) => Err(errors::request_error(&error, Effect::Read)),
        }
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let key = self.key(put.key)?;
        self.link.check_ttl(&put)?;
        record::fill(&mut self.bins, &put);
        self.write.record_exists_action = action(&put);
        self.write.expiration = record::expiration(put.ttl, put.partial);
        let answer = self.link.client.put(&self.write, &key, &self.bins).await;
        answer.map_err(|error| errors::request_error(&error, Effect::Write))
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let key = self.key(key)?;
        let answer = self.link.client.delete(&self.link.write, &key).await;
        answer.map_err(|error| errors::request_error(&error, Effect::Write))
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let policy = BatchReadPolicy::default();
        let row = |key: &&[u8]| Ok(BatchOperation::read(&policy, self.key(key)?, Bins::All));
        let mut rows = keys.iter().map(row).collect::<Answer<Vec<_>>>()?;
        let whole = self.link.client.batch(&self.link.batch, &mut rows).await.err();
        let mut joined = Vec::new();
        for (key, row) in keys.iter().zip(&rows) {
            match (row.record(), row.error()) {
                (Some(found), None) => {
                    into.push(key, Some(record::read_whole(found, &mut joined)?))
                }
                (_, Some(error))
                    if error.server_result_code() == Some(ResultCode::KeyNotFoundError) =>
                {
                    into.push(key, None);
                }
                (_, Some(error)) => return Err(errors::request_error(error, Effect::Read)),
                (None, None) => return Err(errors::unanswered(whole.as_ref(), Effect::Read)),
            }
        }
        Ok(())
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        if puts.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::with_capacity(puts.len());
        let mut policy = self.link.options.batch_write_policy();
        for put in puts {
            self.link.check_ttl(put)?;
            record::fill(&mut self.bins, put);
            policy.record_exists_action = action(put);
            policy.expiration = record::expiration(put.ttl, put.partial);
            let writes: Vec<_> = self.bins.iter().map(scalar::put).collect();
            rows.push(BatchOperation::write(&policy, self.key(put.key)?, writes));
        }
        let whole = self.link.client.batch(&self.link.batch, &mut rows).await.err();
        let outcome = |row: &BatchOperation| match (row.record(), row.error()) {
            (Some(_), None) => Ok(()),
            (_, Some(error)) => Err(errors::request_error(error, Effect::Row)),
            (None, None) => Err(errors::unanswered(whole.as_ref(), Effect::Row)),
        };
        outcome_of_all(rows.iter().map(outcome))
    }
}
