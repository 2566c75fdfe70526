//! The driver's clients: one for each worker thread, shared by the clients of kvdyno on it, as the
//! threads of an application share theirs. It lives on the worker's own runtime, so a request and
//! its answer never change threads, and ends with the last client that uses it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::ThreadId;

use kvdyno_core::store::Answer;
use mongodb::bson::{RawDocumentBuf, doc};
use mongodb::options::{ReadPreference, SelectionCriteria};
use mongodb::{Client, Collection, Database};

use super::{MongoOptions, errors};

/// The driver's client on one thread.
pub(super) struct Pool {
    pub client: Client,
    pub database: Database,
    pub records: Collection<RawDocumentBuf>,
}

/// Those of all threads.
#[derive(Default)]
pub(super) struct Pools {
    by_thread: Mutex<HashMap<ThreadId, Weak<Pool>>>,
}

impl Pools {
    /// The one of this thread, made if there is none. Makes no connection yet.
    pub fn here(&self, options: &MongoOptions) -> Answer<Arc<Pool>> {
        let mut pools = self.by_thread.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = std::thread::current().id();
        if let Some(pool) = pools.get(&thread).and_then(Weak::upgrade) {
            return Ok(pool);
        }
        let client = Client::with_options(options.driver.clone())
            .map_err(|error| errors::while_opening(&error))?;
        let database = client.database(&options.database);
        let records = database.collection(&options.collection);
        let pool = Arc::new(Pool { client, database, records });
        pools.retain(|_, pool| pool.strong_count() > 0);
        pools.insert(thread, Arc::downgrade(&pool));
        Ok(pool)
    }
}

impl Pool {
    /// Makes sure that there are servers to write to and to read from.
    pub async fn reach(&self, options: &MongoOptions) -> Answer<()> {
        let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
        let reads = options.driver.selection_criteria.clone();
        let mut criteria = vec![primary];
        criteria.extend(reads.filter(|_| !options.reads_primary()));
        for criteria in criteria {
            let ping = self.database.run_command(doc! { "ping": 1 }).selection_criteria(criteria);
            match tokio::time::timeout(options.timeout, ping).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(errors::while_opening(&error)),
                Err(_) => {
                    let error = errors::unanswered(&options.driver.hosts, options.timeout);
                    return Err(errors::of_opening(error));
                }
            }
        }
        Ok(())
    }
}
