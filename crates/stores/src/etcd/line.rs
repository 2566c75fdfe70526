//! The way to one member at a time, shared by the clients of a connection. When it is lost, the
//! next request makes one attempt, at the next member; clients that wait for it share its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use etcd_client::{Client, KvClient, LeaseClient, MaintenanceClient};
use kvdyno_core::store::Answer;

use super::channel;
use super::errors;
use super::leases::Leases;
use super::{EtcdOptions, EtcdRead};
use crate::attempts::{Attempted, Attempts};
use crate::wire::{Effect, LARGEST_ANSWER};

/// Clients that requests are sent by. Cheap to clone; each client of a connection has its own.
#[derive(Clone)]
pub(super) struct Link {
    pub kv: KvClient,
    pub lease: LeaseClient,
}

/// A connection's way to the cluster.
pub(super) struct Line {
    options: Arc<EtcdOptions>,
    attempts: Attempts<Link>,
    pub leases: Leases,
}

impl Line {
    /// Makes a line that is not connected yet; `first` is the number of the member to begin with.
    pub fn new(options: Arc<EtcdOptions>, first: usize) -> Line {
        Line { leases: Leases::new(options.lease), options, attempts: Attempts::new(first) }
    }

    /// Returns the options that the line connects with.
    pub fn options(&self) -> &EtcdOptions {
        &self.options
    }

    /// `link` still leads to a member.
    pub fn holds(&self, link: &Attempted<Link>) -> bool {
        self.attempts.holds(link)
    }

    /// The link of now; if there is none, after one attempt to connect.
    pub async fn link(&self) -> Answer<Attempted<Link>> {
        self.attempts.link(async || self.connect().await).await
    }

    /// `link` leads nowhere any more; the next attempt goes to another member.
    pub fn lose(&self, link: &Attempted<Link>) {
        if self.attempts.lose(link) {
            self.leases.forget();
        }
    }

    /// The member refuses the token that `link` was given: the next attempt asks for a new one.
    pub fn log_in_again(&self, link: &Attempted<Link>) {
        if self.holds(link) {
            self.options.logins.fetch_add(1, Ordering::Relaxed);
            self.lose(link);
        }
    }

    /// Returns a client for questions about the cluster itself.
    pub async fn whole_client(&self) -> Answer<Client> {
        let endpoint = self.attempts.turn(&self.options.endpoints);
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

    async fn connect(&self) -> Answer<Link> {
        let client = self.whole_client().await?;
        let kv = client.kv_client().max_decoding_message_size(LARGEST_ANSWER);
        Ok(Link { kv, lease: client.lease_client() })
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
