//! The driver's client of one worker thread: its connections and the task that follows the cluster live
//! on the runtime of the clients that use them, so a request crosses no thread on its way.

use std::sync::Arc;
use std::time::Duration;

use aerospike::{BatchPolicy, Client, ReadPolicy, WritePolicy};
use kvdyno_core::store::{Answer, ErrorClass, Put, RequestError};

use super::errors;
use super::namespace::{Namespace, ask};
use super::options::{AerospikeOptions, CLIENTS_OF_A_LINK, Reads};

/// Longest time to connect, which is not done before the whole cluster is known.
const SET_UP: Duration = Duration::from_secs(30);

/// The driver's client with its policies.
pub(super) struct Link {
    pub client: Client,
    pub options: Arc<AerospikeOptions>,
    pub read: ReadPolicy,
    pub write: WritePolicy,
    pub batch: BatchPolicy,
    /// The namespace as each node describes it.
    pub nodes: Vec<Namespace>,
}

impl Link {
    /// Connects. What it starts runs on the calling runtime.
    pub async fn open(options: &Arc<AerospikeOptions>) -> Answer<Arc<Link>> {
        let opened = tokio::time::timeout(SET_UP, Link::set_up(options)).await;
        opened.unwrap_or_else(|_| {
            let message = format!("no cluster at {} in {SET_UP:?}", options.places());
            Err(RequestError::failed(ErrorClass::Refused, message).losing_connection())
        })
    }

    async fn set_up(options: &Arc<AerospikeOptions>) -> Answer<Arc<Link>> {
        let client = Client::new(&options.client_policy(), &options.hosts).await;
        let client = client.map_err(|error| errors::no_cluster(&error, &options.places()))?;
        let Some(strong) = client.is_strong_consistency(&options.namespace) else {
            let name = &options.namespace;
            let message = format!("the cluster has no namespace `{name}`: name one that it has");
            return Err(RequestError::failed(ErrorClass::Rejected, message).losing_connection());
        };
        check_mode(options, strong)?;
        let nodes = ask(&client, options).await?;
        Ok(Arc::new(Link {
            client,
            read: options.read_policy(),
            // Without tombstones strong consistency allows no deletes.
            write: options.write_policy(strong),
            batch: options.batch_policy(),
            options: Arc::clone(options),
            nodes,
        }))
    }

    /// Returns true if one more client may use the link.
    pub fn has_room(self: &Arc<Self>) -> bool {
        // The caller has one.
        let users = Arc::strong_count(self) - 1;
        self.options.connections.is_some() || users < CLIENTS_OF_A_LINK
    }

    /// Returns true if every node keeps times to live.
    pub fn keeps_ttl(&self) -> bool {
        self.nodes.iter().all(Namespace::keeps_ttl)
    }

    /// Refuses a time to live that the server would refuse.
    pub fn check_ttl(&self, put: &Put<'_>) -> Answer<()> {
        match put.ttl.is_none() || self.keeps_ttl() {
            true => Ok(()),
            false => Err(errors::ttl_refused(&self.options.namespace)),
        }
    }
}

/// Refuses a mode of reads that the namespace does not have: the driver would take it for the weakest.
fn check_mode(options: &AerospikeOptions, strong: bool) -> Answer<()> {
    let advice = match (options.reads, strong) {
        (Some(Reads::Available(_)), true) => {
            "has strong consistency: write `consistency=session`, `linearize`, `allow-replica` or \
             `allow-unavailable`"
        }
        (Some(Reads::Strong(_)), false) => {
            "has no strong consistency: write `consistency=one` or `all`"
        }
        _ => return Ok(()),
    };
    let message = format!("namespace `{}` {advice}", options.namespace);
    Err(RequestError::failed(ErrorClass::Rejected, message))
}

impl Drop for Link {
    fn drop(&mut self) {
        // The task that follows the cluster holds the driver's client; where the runtime is gone, it is
        // gone too.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let client = self.client.clone();
            runtime.spawn(async move { client.close().await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::StoreUrl;

    #[test]
    fn a_read_mode_must_be_one_of_the_namespaces() {
        let check = |consistency: &str, strong| {
            let text = format!("aerospike://h/ns{consistency}");
            let options = AerospikeOptions::take(&mut StoreUrl::parse(&text).unwrap()).unwrap();
            check_mode(&options, strong).map_err(|error| error.message.to_string())
        };
        assert_eq!(check("", true), Ok(()));
        assert_eq!(check("?consistency=all", false), Ok(()));
        assert_eq!(check("?consistency=linearize", true), Ok(()));
        assert!(check("?consistency=linearize", false).unwrap_err().contains("`consistency=one`"));
        assert!(check("?consistency=one", true).unwrap_err().contains("`linearize`"));
    }
}
