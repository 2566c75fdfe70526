//! Redis over several servers that know nothing of each other: kvdyno itself decides by each key which
//! of them has it. docs/stores/redis-sharded.md.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kvdyno_core::store::{Answer, ErrorClass, RequestError};

use super::wire::{Access, Wire};
use crate::error::StoreError;
use crate::placement::{Hash, Placement, PlacementOptions};
use crate::url::StoreUrl;
use crate::wire::{Endpoint, Link};

/// Returns the servers that a URL names.
pub(super) fn open(url: &mut StoreUrl) -> Result<(Access, Shards), StoreError> {
    let (access, reach) = Access::take(url)?;
    let options = Placement::take_options(url, Hash::Mix)?;
    url.finish()?;
    let servers = reach.endpoints(url, 6379)?;
    let layout = Layout { placement: options.on(url, &servers)?, servers };
    Ok((access.with_database(url)?, Shards::new(options, layout)))
}

/// Servers, in the order of the URL and then of their coming, and the placement of records on them.
pub(super) struct Layout {
    pub(super) servers: Vec<Endpoint>,
    pub(super) placement: Placement,
}

/// Servers of which one more may join while clients go on.
pub(super) struct Shards {
    options: PlacementOptions,
    layout: Mutex<Arc<Layout>>,
    /// Number that rises with each change of the layout; odd while records are being moved.
    version: AtomicU64,
    /// Number of clients that know that records are being moved, and wait.
    waiting: AtomicUsize,
    /// Count of clients: each holds a clone.
    presence: Arc<()>,
    /// True if a server has joined since this was last asked.
    grown: AtomicBool,
}

/// Guard of a move of records: no client sends a request until this is dropped.
pub(super) struct Moving<'a>(&'a Shards);

/// One client's view of the servers.
#[derive(Clone)]
pub(super) struct ShardView {
    shards: Arc<Shards>,
    access: Arc<Access>,
    layout: Arc<Layout>,
    version: u64,
    /// Version for which the client has said that it waits.
    waits: u64,
    _presence: Arc<()>,
}

impl Shards {
    fn new(options: PlacementOptions, layout: Layout) -> Shards {
        Shards {
            options,
            layout: Mutex::new(Arc::new(layout)),
            version: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            presence: Arc::default(),
            grown: AtomicBool::new(false),
        }
    }

    /// Returns the servers as they are now.
    pub(super) fn layout(&self) -> Arc<Layout> {
        self.layout.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the layout with one server more.
    ///
    /// # Errors
    /// A [`RequestError`] if `server` is no `host:port`, or belongs to them already.
    pub(super) fn layout_with(&self, server: &str) -> Answer<Layout> {
        let mut servers = self.layout().servers.clone();
        let place =
            server.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let Some((host, port)) = place else {
            return Err(RequestError::failed(
                ErrorClass::Rejected,
                format!("{server} is no host:port"),
            ));
        };
        let joining = servers[0].beside(host.trim_matches(['[', ']']), port);
        if servers.iter().any(|known| known.name() == joining.name()) {
            let message = format!("{} is one of the servers already", joining.name());
            return Err(RequestError::failed(ErrorClass::Rejected, message));
        }
        servers.push(joining);
        Ok(Layout { placement: self.options.over(&servers), servers })
    }

    /// Has clients wait, and returns when each does, or could have nothing in flight any more.
    pub(super) async fn hold(&self) -> Moving<'_> {
        self.waiting.store(0, Ordering::Release);
        self.version.fetch_add(1, Ordering::AcqRel);
        let moving = Moving(self);
        let (begin, longest) = (Instant::now(), self.layout().servers[0].timeout());
        let all_wait =
            || self.waiting.load(Ordering::Acquire) + 1 >= Arc::strong_count(&self.presence);
        while !all_wait() && begin.elapsed() < longest {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        moving
    }

    /// Returns true if a server has joined since this was last asked: requests so far could not be even.
    pub(super) fn has_grown(&self) -> bool {
        self.grown.swap(false, Ordering::AcqRel)
    }

    pub(super) fn view(self: &Arc<Self>, access: &Arc<Access>) -> ShardView {
        ShardView {
            shards: self.clone(),
            access: access.clone(),
            layout: self.layout(),
            // One that is changed meanwhile is noticed with the first request.
            version: u64::MAX,
            waits: u64::MAX,
            _presence: self.presence.clone(),
        }
    }
}

impl Moving<'_> {
    /// Ends the move: the records are where `layout` says.
    pub(super) fn end(self, layout: Layout) {
        *self.0.layout.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(layout);
        self.0.grown.store(true, Ordering::Release);
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.version.fetch_add(1, Ordering::AcqRel);
    }
}

impl ShardView {
    /// Returns the placement of records on servers now; an error while that is being changed.
    #[inline]
    pub(super) fn placement(&mut self, link: &mut Link<Wire>) -> Answer<&Placement> {
        if self.shards.version.load(Ordering::Acquire) != self.version {
            self.look_again(link)?;
        }
        Ok(&self.layout.placement)
    }

    #[cold]
    fn look_again(&mut self, link: &mut Link<Wire>) -> Answer<()> {
        let version = self.shards.version.load(Ordering::Acquire);
        if version % 2 == 1 {
            if self.waits != version {
                self.waits = version;
                self.shards.waiting.fetch_add(1, Ordering::AcqRel);
            }
            const MESSAGE: &str = "records are being moved to a server that has joined";
            // As with a lost connection the client waits before it asks again.
            return Err(RequestError::failed(ErrorClass::Unavailable, MESSAGE).losing_connection());
        }
        (self.layout, self.version) = (self.shards.layout(), version);
        for server in &self.layout.servers[link.member_count()..] {
            link.add_member(Wire::server(&self.access, server.clone()));
        }
        Ok(())
    }
}
