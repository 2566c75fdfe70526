//! The session of one worker thread: the driver's connections live on the runtime of the clients
//! that use them, so a request crosses no thread on its way, and all that the clients of a worker
//! ask in one turn leaves in one write. (Measured against one session for all workers on a runtime
//! of its own: docs/stores/cassandra.md.)

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kvdyno_core::store::{Answer, ErrorClass, RequestError};
use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::{Session, TlsContext};
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::retry::{DefaultRetryPolicy, FallthroughRetryPolicy, RetryPolicy};

use super::clock::{CLOCK, MARK_INTERVAL, MARK_KEY};
use super::errors::{self, Effect};
use super::greeting;
use super::one_copy::OneCopy;
use super::options::CassandraOptions;
use super::schema::{self, Schema};
use super::statements::Statements;

/// Longest time to make a session and to find or make the table.
const SET_UP: Duration = Duration::from_secs(120);
/// Longest time until all nodes agree on the schema. One that was not told of a change asks for it after a
/// minute only (`cassandra.migration_delay_ms`).
const AGREEMENT: Duration = Duration::from_secs(90);

/// State that the sessions of a store share.
#[derive(Default)]
pub(super) struct Shared {
    /// True if records have several fields: reads ask for those, not for the value.
    pub fields: AtomicBool,
    /// The last timestamp that was marked.
    marked: AtomicI64,
    /// One session at a time looks for the table and makes it: Cassandra does not bear the same
    /// table being made twice at once.
    making: tokio::sync::Mutex<()>,
}

/// A session with its statements.
pub(super) struct Link {
    pub session: Session,
    pub statements: Statements,
    pub schema: Schema,
    pub shared: Arc<Shared>,
}

impl Link {
    /// Connects, finds or makes the table, prepares the statements. What it starts runs on the
    /// calling runtime.
    pub async fn open(options: &CassandraOptions, shared: &Arc<Shared>) -> Answer<Arc<Link>> {
        let opened = tokio::time::timeout(SET_UP, Link::set_up(options, shared)).await;
        opened.unwrap_or_else(|_| {
            let message = format!("no session with {} in {SET_UP:?}", options.names().join(", "));
            Err(RequestError::failed(ErrorClass::Refused, message).losing_connection())
        })
    }

    async fn set_up(options: &CassandraOptions, shared: &Arc<Shared>) -> Answer<Arc<Link>> {
        greeting::greet(&options.nodes).await?;
        let session = connect(options).await?;
        check_datacenter(&session, options)?;
        let schema = {
            let _sole = shared.making.lock().await;
            schema::ensure(&session, options).await?
        };
        let statements = Statements::prepare(&session, options, schema.fields).await;
        let statements =
            statements.map_err(|error| errors::request_error(&error.into(), Effect::Read))?;
        let link = Arc::new(Link { session, statements, schema, shared: Arc::clone(shared) });
        link.resume_clock().await;
        tokio::spawn(keep_marking(Arc::downgrade(&link)));
        Ok(link)
    }

    /// Goes on from the mark of an earlier process. A mark that cannot be read (its replicas are
    /// down) is no reason not to work with the other records.
    async fn resume_clock(&self) {
        let asked = self.session.execute_unpaged(&self.statements.get_mark, (MARK_KEY,)).await;
        let Some(result) = asked.ok().and_then(|result| result.into_rows_result().ok()) else {
            return;
        };
        if let Ok(Some((Some(mark),))) = result.maybe_first_row::<(Option<i64>,)>() {
            CLOCK.resume(mark);
        }
    }

    /// Marks the clock if this was not done for a while and there is something new to mark.
    async fn mark(&self) {
        let (last, marked) = (CLOCK.last(), self.shared.marked.load(Ordering::Relaxed));
        let due = last - marked >= MARK_INTERVAL;
        let order = Ordering::Relaxed;
        if due && self.shared.marked.compare_exchange(marked, last, order, order).is_ok() {
            let row = (MARK_KEY, &b""[..], last, 0);
            // The next mark makes up for one that fails.
            let _ = self.session.execute_unpaged(&self.statements.put_value, row).await;
        }
    }
}

/// Marks the clock once a second, as long as there is a link.
async fn keep_marking(link: Weak<Link>) {
    let mut ticks = tokio::time::interval(Duration::from_micros(MARK_INTERVAL as u64));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match link.upgrade() {
            Some(link) => link.mark().await,
            None => return,
        }
    }
}

/// A session and nothing more. What it starts runs on the calling runtime.
pub(super) async fn connect(options: &CassandraOptions) -> Answer<Session> {
    // Each request goes out once, unless the URL says otherwise. Speculative execution is off.
    let retries: Arc<dyn RetryPolicy> = match options.retry {
        true => Arc::new(DefaultRetryPolicy::new()),
        false => Arc::new(FallthroughRetryPolicy::new()),
    };
    let mut profile =
        ExecutionProfile::builder().request_timeout(Some(options.timeout)).retry_policy(retries);
    if let Some(number) = options.copy {
        profile = profile.load_balancing_policy(Arc::new(OneCopy(number)));
    }
    let profile = profile.build();
    let connections = NonZeroUsize::new(options.connections).unwrap_or(NonZeroUsize::MIN);
    let mut builder = SessionBuilder::new()
        .known_nodes(options.names())
        .default_execution_profile_handle(profile.into_handle())
        .connection_timeout(options.timeout)
        .keyspaces_to_fetch([&options.keyspace])
        .schema_agreement_timeout(AGREEMENT)
        .pool_size(PoolSize::PerShard(connections))
        .compression(options.compression)
        .tls_context(options.tls.clone().map(TlsContext::Rustls023));
    if let Some((user, password)) = &options.credentials {
        builder = builder.user(user, password);
    }
    if let Some(datacenter) = &options.datacenter {
        builder = builder.prefer_datacenter(datacenter.clone());
    }
    builder.build().await.map_err(|error| errors::no_session(&error, &options.names()))
}

/// With a datacenter that does not exist the driver finds no node for any request.
fn check_datacenter(session: &Session, options: &CassandraOptions) -> Answer<()> {
    let Some(wanted) = &options.datacenter else { return Ok(()) };
    let cluster = session.get_cluster_state();
    let mut known: Vec<&str> =
        cluster.get_nodes_info().iter().filter_map(|node| node.datacenter.as_deref()).collect();
    if known.contains(&wanted.as_str()) {
        return Ok(());
    }
    known.sort_unstable();
    known.dedup();
    let message = format!("no datacenter {wanted}: choose one of {}", known.join(", "));
    Err(RequestError::failed(ErrorClass::Rejected, message))
}
