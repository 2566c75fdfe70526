//! The way to one server at a time, shared by the clients of a connection.
//!
//! The official client hides a lost connection: it connects again by itself and leaves requests that were in flight
//! without an answer. It tells of the loss as an event, and here that ends them.

use std::sync::Arc;

use async_nats::{Client, Event};
use kvdyno_core::store::Answer;
use tokio::sync::watch;

use super::NatsOptions;
use super::errors;
use crate::attempts::{Attempted, Attempts};

/// A connection to a server. Cheap to clone; each client has its own.
#[derive(Clone)]
pub(super) struct NatsLink {
    pub client: Client,
    /// Becomes true once the connection is lost.
    lost: watch::Receiver<bool>,
}

impl NatsLink {
    /// Waits until the connection is lost.
    pub async fn is_lost(&mut self) {
        // A sender that is gone can tell of nothing any more.
        let _ = self.lost.wait_for(|lost| *lost).await;
    }
}

/// Way of a connection to the servers.
pub(super) struct Line {
    options: Arc<NatsOptions>,
    attempts: Attempts<NatsLink>,
}

impl Line {
    /// Makes one that is not connected yet; `first` is the number of the server to begin with.
    pub fn new(options: Arc<NatsOptions>, first: usize) -> Line {
        Line { options, attempts: Attempts::new(first) }
    }

    /// Gives the options by which servers are reached.
    pub fn options(&self) -> &NatsOptions {
        &self.options
    }

    /// Returns true if `link` still leads to a server.
    pub fn holds(&self, link: &Attempted<NatsLink>) -> bool {
        if *link.link.lost.borrow() {
            self.lose(link);
        }
        self.attempts.holds(link)
    }

    /// Gives `link` up; the next attempt goes to another server.
    pub fn lose(&self, link: &Attempted<NatsLink>) {
        self.attempts.lose(link);
    }

    /// Gives the link of now; if there is none, after one attempt to connect.
    pub async fn link(&self) -> Answer<Attempted<NatsLink>> {
        let link = self.attempts.link(async || self.connect().await).await?;
        match self.holds(&link) {
            true => Ok(link),
            // It was lost while nobody asked anything, so that nobody has given it up.
            false => self.attempts.link(async || self.connect().await).await,
        }
    }

    async fn connect(&self) -> Answer<NatsLink> {
        let name = self.attempts.turn(&self.options.servers).name();
        let (tell, lost) = watch::channel(false);
        let tell = Arc::new(tell);
        let options = self.options.connect().event_callback(move |event| {
            let tell = Arc::clone(&tell);
            async move {
                if matches!(event, Event::Disconnected | Event::Closed) {
                    tell.send_replace(true);
                }
            }
        });
        let timeout = self.options.timeout;
        let ended = tokio::time::timeout(timeout, options.connect(name.clone())).await;
        let client = ended
            .map_err(|_| errors::unreached(&name, timeout))?
            .map_err(|error| errors::of_connecting(&error, &name, self.options.encrypted))?;
        Ok(NatsLink { client, lost })
    }
}
