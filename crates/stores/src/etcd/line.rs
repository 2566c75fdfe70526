//! The way to one member at a time, shared by the clients of a connection. When it is lost, the
//! next request makes one attempt, at the next member; clients that wait for it share its end.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use etcd_client::{Client, KvClient, LeaseClient, MaintenanceClient};
use kvdyno_core::store::{Answer, RequestError};
use tokio::sync::Mutex;

use super::channel;
use super::errors;
use super::leases::Leases;
use super::{EtcdOptions, EtcdRead};
use crate::wire::{Effect, LARGEST_ANSWER};

/// The driver's clients that send requests. Cheap to clone; each client has its own.
#[derive(Clone)]
pub(super) struct Link {
    pub kv: KvClient,
    pub lease: LeaseClient,
    /// Number of the link in its line, which tells it from later ones.
    generation: u64,
}

/// A connection's way to the cluster.
pub(super) struct Line {
    options: Arc<EtcdOptions>,
    /// Number of the member for the next attempt, modulo their count.
    next: Cell<usize>,
    state: RefCell<State>,
    /// Held during an attempt.
    attempt: Mutex<()>,
    pub leases: Leases,
}

/// Outcome of the last attempt to connect.
#[derive(Default)]
struct State {
    /// Number of attempts so far.
    generation: u64,
    link: Option<Link>,
    refusal: Option<RequestError>,
}

impl Line {
    /// Makes a line that is not connected yet; `first` is the number of the member to begin with.
    pub fn new(options: Arc<EtcdOptions>, first: usize) -> Line {
        Line {
            leases: Leases::new(options.lease),
            options,
            next: Cell::new(first),
            state: RefCell::default(),
            attempt: Mutex::new(()),
        }
    }

    /// Returns the options that the line connects with.
    pub fn options(&self) -> &EtcdOptions {
        &self.options
    }

    /// Returns true if `link` still leads to a member.
    pub fn holds(&self, link: &Link) -> bool {
        let state = self.state.borrow();
        state.link.as_ref().is_some_and(|current| current.generation == link.generation)
    }

    /// Returns the current link; if there is none, after one attempt to connect.
    pub async fn link(&self) -> Answer<Link> {
        let seen = self.state.borrow().generation;
        let _attempt = self.attempt.lock().await;
        let generation = {
            let state = self.state.borrow();
            if let Some(link) = &state.link {
                return Ok(link.clone());
            }
            // Somebody made an attempt while this one waited.
            if let Some(refusal) = state.refusal.as_ref().filter(|_| state.generation != seen) {
                return Err(refusal.clone());
            }
            state.generation.wrapping_add(1)
        };
        let end = self.connect(generation).await;
        let mut state = self.state.borrow_mut();
        state.generation = generation;
        state.link = end.as_ref().ok().cloned();
        state.refusal = end.as_ref().err().cloned();
        end
    }

    /// Gives up `link`, which leads nowhere any more; the next attempt goes to another member.
    pub fn lose(&self, link: &Link) {
        if self.holds(link) {
            self.state.borrow_mut().link = None;
            self.leases.forget();
        }
    }

    /// Gives up `link`, whose token the member refuses: the next attempt asks for a new one.
    pub fn log_in_again(&self, link: &Link) {
        if self.holds(link) {
            self.options.logins.fetch_add(1, Ordering::Relaxed);
            self.lose(link);
        }
    }

    /// Returns a client for questions about the cluster itself.
    pub async fn whole_client(&self) -> Answer<Client> {
        let turn = self.next.get();
        self.next.set(turn.wrapping_add(1));
        let endpoint = &self.options.endpoints[turn % self.options.endpoints.len()];
        let attempt = async {
            let EtcdOptions { connect, tls, timeout, .. } = self.options.as_ref();
            let channel = channel::to_member(endpoint, tls.as_ref(), *timeout)?;
            let client = Client::from_channel(channel, Some(connect.clone()))
                .await
                .map_err(|e| errors::of_opening(&e, endpoint))?;
            self.check(client.maintenance_client(), endpoint).await?;
            Ok(client)
        };
        tokio::time::timeout(self.options.timeout, attempt).await.unwrap_or_else(|_| {
            let waited = self.options.timeout;
            Err(errors::refused(format!("no answer from {endpoint} within {waited:?}")))
        })
    }

    async fn connect(&self, generation: u64) -> Answer<Link> {
        let client = self.whole_client().await?;
        let kv = client.kv_client().max_decoding_message_size(LARGEST_ANSWER);
        Ok(Link { kv, lease: client.lease_client(), generation })
    }

    /// Checks a member by a status request: a client connects with its first request, and this one tells as well whether the
    /// member is cut off from the others.
    async fn check(&self, mut client: MaintenanceClient, endpoint: &str) -> Answer<()> {
        match client.status().await {
            Ok(status) if status.leader() == 0 && self.options.read == EtcdRead::Linearizable => {
                Err(errors::no_leader(endpoint))
            }
            Ok(_) => Ok(()),
            Err(error) => match errors::request_error(&error, Effect::Read) {
                // Newer servers show their state to some users only: this one is up.
                _ if errors::is_denied(&error) => Ok(()),
                error => Err(errors::while_opening(error, endpoint)),
            },
        }
    }
}
