//! Questions to each server beside the load: in its greeting the name of its incarnation, and on its monitoring
//! page when it syncs.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use super::NatsOptions;
use crate::incarnations::{Incarnation, ServerIncarnations};
use crate::rest;
use crate::wire::Endpoint;

/// Moment at which a server syncs what it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    /// Before it answers.
    Always,
    /// So often.
    Every(Duration),
}

/// Asks every server for its incarnation; `None` of one that does not greet.
pub(super) async fn told(options: &NatsOptions) -> ServerIncarnations {
    join_all(options.servers.iter().map(async |server| (server.name(), greeting(server).await)))
        .await
}

/// A server greets each connection, before TLS and before it asks who that is. Its id is new with each start.
async fn greeting(server: &Endpoint) -> Option<Incarnation> {
    let greeted = server.bounded(async {
        let stream = server.connect().await?;
        Ok(first_line(stream).await)
    });
    incarnation_in(&greeted.await.ok()??)
}

async fn first_line(mut stream: crate::wire::Stream) -> Option<Vec<u8>> {
    let (mut line, mut chunk) = (Vec::new(), [0; 2_048]);
    while !line.contains(&b'\n') && line.len() < LONGEST_GREETING {
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        line.extend_from_slice(&chunk[..read]);
    }
    Some(line)
}

const LONGEST_GREETING: usize = 64 * 1024;

fn incarnation_in(line: &[u8]) -> Option<Incarnation> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let told: Value = serde_json::from_slice(line.strip_prefix(b"INFO ")?).ok()?;
    Some(Incarnation { id: told["server_id"].as_str()?.to_owned(), up: None })
}

/// Asks every server when it syncs; nothing if the URL names no monitoring port, `None` of one that does not tell.
pub(super) async fn syncs(options: &NatsOptions) -> Vec<Option<Sync>> {
    let Some(port) = options.monitor else { return Vec::new() };
    let pages = options.servers.iter().map(|server| server.beside(server.host(), port));
    let asked = pages.map(async |server| {
        let page = rest::page(&server, "/varz").await?;
        sync_in(&serde_json::from_slice(&page).ok()?)
    });
    join_all(asked).await
}

fn sync_in(varz: &Value) -> Option<Sync> {
    let config = &varz["jetstream"]["config"];
    match (config["sync_always"].as_bool(), config["sync_interval"].as_u64()) {
        (Some(true), _) => Some(Sync::Always),
        (_, Some(nanoseconds)) => Some(Sync::Every(Duration::from_nanos(nanoseconds))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_greeting_names_the_incarnation() {
        let line = b"INFO {\"server_id\":\"NCHW\",\"port\":4222} \r\nPING\r\n";
        assert_eq!(incarnation_in(line).map(|told| told.id).as_deref(), Some("NCHW"));
        assert_eq!(incarnation_in(b"HTTP/1.1 400 Bad Request\r\n"), None);
        assert_eq!(incarnation_in(b"INFO {}\r\n"), None);
    }

    #[test]
    fn the_monitoring_page_tells_when_a_server_syncs() {
        let of = |config: Value| sync_in(&json!({ "jetstream": { "config": config } }));
        let two_minutes = 120_000_000_000_u64;
        let always = json!({ "sync_always": true, "sync_interval": two_minutes });
        assert_eq!(of(always), Some(Sync::Always));
        let usual = json!({ "sync_interval": two_minutes });
        assert_eq!(of(usual), Some(Sync::Every(Duration::from_secs(120))));
        assert_eq!(sync_in(&json!({})), None, "no JetStream");
    }
}
