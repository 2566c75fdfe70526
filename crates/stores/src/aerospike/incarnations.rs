//! For how long each node is up, as its info command `statistics` tells: whether one was started anew.

use std::time::Duration;

use aerospike::Client;

use super::namespace::policy;
use super::options::AerospikeOptions;
use crate::incarnations::{Incarnation, ServerIncarnations};

/// `name=value` pairs with semicolons between them.
const COMMAND: &str = "statistics";

/// Asks every node that the driver knows now.
pub(super) async fn read_incarnations(
    client: &Client,
    options: &AerospikeOptions,
) -> ServerIncarnations {
    let mut all = ServerIncarnations::new();
    for node in client.nodes() {
        let said = node.info(&policy(options), &[COMMAND]).await.ok();
        let incarnation = said.and_then(|said| incarnation_in(said.get(COMMAND)?));
        all.push((node.address().to_owned(), incarnation));
    }
    all
}

/// A node has no number for each of its incarnations.
fn incarnation_in(statistics: &str) -> Option<Incarnation> {
    let pairs = statistics.split(';').filter_map(|pair| pair.split_once('='));
    let seconds = pairs.into_iter().find(|(name, _)| *name == "uptime")?.1.trim().parse().ok()?;
    Some(Incarnation { id: String::new(), up: Some(Duration::from_secs(seconds)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_tells_for_how_long_it_is_up() {
        let up = |text: &str| incarnation_in(text).and_then(|incarnation| incarnation.up);
        let told = "failed_best_practices=false;cluster_size=3;uptime=1702;time_since_rebalance=9";
        assert_eq!(up(told), Some(Duration::from_secs(1702)));
        assert_eq!((up("ERROR:4:unrecognized command"), up("process_uptime=3")), (None, None));
    }
}
