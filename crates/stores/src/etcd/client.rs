//! The operations of one etcd client: which requests each sends and what their answers mean.

use std::rc::Rc;
use std::time::Duration;

use etcd_client::{Error, GetOptions, PutOptions, Txn, TxnOp, TxnOpResponse, TxnResponse};
use kvdyno_core::store::{Answer, Client, Put, Reading, Rows};

use super::EtcdRead;
use super::errors;
use super::line::{Line, Link};
use crate::attempts::Attempted;
use crate::wire::Effect;

/// A client of an etcd cluster. Clients of one connection share an HTTP/2 connection.
pub struct EtcdClient {
    line: Rc<Line>,
    link: Option<Attempted<Link>>,
}

impl EtcdClient {
    pub(super) fn new(line: Rc<Line>) -> Self {
        EtcdClient { line, link: None }
    }

    /// Sends one request and waits for its answer, no longer than the time allowed. Members check who asks before they
    /// do anything: where they refuse the token that the link was given, as it ended while nothing was asked, the link logs
    /// in again and the request is sent once more.
    async fn call<T>(
        &mut self,
        effect: Effect,
        mut request: impl AsyncFnMut(&mut Link) -> Result<T, Error>,
    ) -> Answer<T> {
        let (timeout, mut may_log_in) = (self.line.options().timeout, self.line.options().logs_in);
        loop {
            if !self.link.as_ref().is_some_and(|link| self.line.holds(link)) {
                self.link = None;
            }
            let link = match &mut self.link {
                Some(link) => link,
                none => none.insert(self.line.link().await?),
            };
            let error = match tokio::time::timeout(timeout, request(&mut link.link)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) if may_log_in && errors::is_of_token(&error) => {
                    may_log_in = false;
                    self.line.log_in_again(link);
                    continue;
                }
                Ok(Err(error)) => errors::request_error(&error, effect),
                Err(_) => effect.timed_out(timeout),
            };
            if error.connection_lost {
                self.line.lose(link);
                self.link = None;
            }
            return Err(error);
        }
    }

    /// Sends a transaction, of which a copy is kept only where it may have to be sent again.
    async fn transact(&mut self, effect: Effect, txn: Txn) -> Answer<TxnResponse> {
        let (keep, mut txn) = (self.line.options().logs_in, Some(txn));
        let send = async |link: &mut Link| {
            let txn = if keep { txn.clone() } else { txn.take() };
            link.kv.txn(txn.unwrap_or_default()).await
        };
        self.call(effect, send).await
    }

    /// The lease for a record's time to live. Without it nothing of the record is written, so
    /// whatever goes wrong here, the write is surely not applied.
    async fn lease(&mut self, ttl: Option<Duration>) -> Answer<i64> {
        let Some(ttl) = ttl else { return Ok(0) };
        let line = Rc::clone(&self.line);
        self.call(Effect::Read, async |link| line.leases.lease_for(ttl, &mut link.lease).await)
            .await
    }

    fn range(&self) -> GetOptions {
        match self.line.options().read {
            EtcdRead::Linearizable => GetOptions::new(),
            EtcdRead::Serializable => GetOptions::new().with_serializable(),
        }
    }
}

impl Client for EtcdClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let options = self.range();
        let get = async |link: &mut Link| link.kv.get(key, Some(options.clone())).await;
        let found = self.call(Effect::Read, get).await?;
        let Some(record) = found.kvs().first() else { return Ok(false) };
        into.set_whole(record.value());
        Ok(true)
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let lease = self.lease(put.ttl).await?;
        let options = (lease != 0).then(|| PutOptions::new().with_lease(lease));
        let (key, value) = (put.key, put.value.whole());
        let put = async |link: &mut Link| link.kv.put(key, value, options.clone()).await;
        self.call(Effect::Write, put).await?;
        Ok(())
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let delete = async |link: &mut Link| link.kv.delete(key, None).await;
        let answer = self.call(Effect::Write, delete).await?;
        Ok(answer.deleted() > 0)
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        // A limit of 0 would be none.
        if count == 0 {
            return Ok(());
        }
        let options = self.range().with_from_key().with_limit(count as i64);
        let get = async |link: &mut Link| link.kv.get(from, Some(options.clone())).await;
        let found = self.call(Effect::Read, get).await?;
        for record in found.kvs() {
            into.push(record.key(), Some(record.value()));
        }
        Ok(())
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        let options = self.range();
        let ranges = keys.iter().map(|key| TxnOp::get(*key, Some(options.clone())));
        let txn = Txn::new().and_then(ranges.collect::<Vec<_>>());
        let answer = self.transact(Effect::Read, txn).await?;
        let answers = answer.op_responses();
        if answers.len() != keys.len() {
            return Err(Effect::Read.wrong_answer());
        }
        for (key, answer) in keys.iter().zip(answers) {
            let TxnOpResponse::Get(found) = answer else {
                return Err(Effect::Read.wrong_answer());
            };
            into.push(key, found.kvs().first().map(|record| record.value()));
        }
        Ok(())
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        let mut leases: Vec<(Duration, i64)> = Vec::new();
        let mut writes = Vec::with_capacity(puts.len());
        for (at, put) in puts.iter().enumerate() {
            // etcd refuses a transaction that writes a key twice; the last one is what would stay.
            if puts[at + 1..].iter().any(|later| later.key == put.key) {
                continue;
            }
            let lease = match put.ttl {
                None => 0,
                Some(ttl) => match leases.iter().find(|(known, _)| *known == ttl) {
                    Some((_, lease)) => *lease,
                    None => {
                        let lease = self.lease(put.ttl).await?;
                        leases.push((ttl, lease));
                        lease
                    }
                },
            };
            let options = (lease != 0).then(|| PutOptions::new().with_lease(lease));
            writes.push(TxnOp::put(put.key, put.value.whole(), options));
        }
        let txn = Txn::new().and_then(writes);
        self.transact(Effect::Write, txn).await?;
        Ok(())
    }
}
