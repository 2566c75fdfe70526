//! Talking to a cluster outside of the load: its map over HTTP, and the greeting on each connection.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kvdyno_core::store::{Answer, ErrorClass, RequestError};
use serde_json::Value;

use super::codec::{self, Opcode, Reply};
use super::errors::{self, NOT_SUPPORTED, UNKNOWN_COMMAND};
use super::map::Map;
use super::{Cluster, Wire};
use crate::incarnations::{Incarnation, ServerIncarnations};
use crate::rest;
use crate::wire::{Dialogue, Effect, Endpoint};

/// Asks the servers that the URL names, one after the other, for the bucket's description.
pub(super) async fn describe(cluster: &Cluster) -> Answer<(Map, Value)> {
    let mut last = None;
    for seed in &cluster.seeds {
        match seed.bounded(ask(cluster, seed.clone())).await {
            Ok(found) => return Ok(found),
            Err(error) if error.class == ErrorClass::Rejected => return Err(error),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| RequestError::failed(ErrorClass::Refused, "no server")))
}

async fn ask(cluster: &Cluster, seed: Endpoint) -> Answer<(Map, Value)> {
    let (user, password) = (&cluster.user, &cluster.password);
    let word = STANDARD.encode(format!("{user}:{password}"));
    let request = format!(
        "GET /pools/default/buckets/{} HTTP/1.1\r\nHost: {}\r\nAuthorization: Basic {word}\r\n\r\n",
        cluster.bucket,
        seed.name()
    );
    let mut dialogue = Dialogue::open(&seed).await?;
    let (reply, answer) = dialogue.ask::<rest::Wire>(request.as_bytes()).await?;
    let refused = |problem: String| {
        let bucket = &cluster.bucket;
        let message = format!("bucket `{bucket}` at {}: {problem}", seed.name());
        Err(RequestError::failed(ErrorClass::Rejected, message).losing_connection())
    };
    match reply.status {
        200 => {}
        401 | 403 => return refused("no access; check user and password in the URL".to_owned()),
        404 => return refused("there is none; make it, or name another".to_owned()),
        status => {
            let message = format!("{} answers {status}", seed.name());
            return Err(RequestError::failed(ErrorClass::Unavailable, message).losing_connection());
        }
    }
    let told: Value =
        serde_json::from_slice(&rest::codec::body(&answer, &reply)).unwrap_or_default();
    match Map::read(&told, seed.host()) {
        Ok(map) => Ok((map, told)),
        Err(problem) => refused(problem),
    }
}

/// For how long each server is up, by the bucket's description. It names no process: only a time that is shorter
/// than it should be tells of another incarnation.
pub(super) fn incarnations_in(told: &Value) -> ServerIncarnations {
    let nodes = told["nodes"].as_array().into_iter().flatten();
    let incarnation = |node: &Value| {
        let up = Duration::from_secs(node["uptime"].as_str()?.parse().ok()?);
        Some((
            node["hostname"].as_str()?.to_owned(),
            Some(Incarnation { id: String::new(), up: Some(up) }),
        ))
    };
    nodes.filter_map(incarnation).collect()
}

/// Connects to a server, says who is asking, and chooses the bucket. Of old, the bucket's name was the
/// user's, and there was nothing to choose.
pub(super) async fn greet(wire: &Wire) -> Answer<Dialogue> {
    let cluster = &wire.cluster;
    let mut dialogue = Dialogue::open(&wire.endpoint).await?;
    let word = format!("\0{}\0{}", cluster.user, cluster.password);
    let request = question(Opcode::Authenticate, b"PLAIN", word.as_bytes());
    let (reply, answer) = dialogue.ask::<Wire>(&request).await?;
    // A server without authentication does not know the command.
    if !matches!(reply.status, 0 | UNKNOWN_COMMAND | NOT_SUPPORTED) {
        return Err(errors::request_error(Effect::Read, reply, &answer).losing_connection());
    }
    let request = question(Opcode::SelectBucket, cluster.bucket.as_bytes(), b"");
    let (reply, answer) = dialogue.ask::<Wire>(&request).await?;
    if !matches!(reply.status, 0 | UNKNOWN_COMMAND | NOT_SUPPORTED) {
        return Err(errors::request_error(Effect::Read, reply, &answer).losing_connection());
    }
    Ok(dialogue)
}

/// A request outside of the load.
pub(super) fn question(command: Opcode, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    codec::push(&mut out, command, 0, b"", key, value);
    out
}

/// The version that a server names.
pub(super) async fn version(wire: &Wire) -> Option<String> {
    let asked = wire.endpoint.bounded(async {
        let mut dialogue = greet(wire).await?;
        dialogue.ask::<Wire>(&question(Opcode::Version, b"", b"")).await
    });
    let (reply, answer): (Reply, Vec<u8>) = asked.await.ok()?;
    (reply.status == 0).then(|| String::from_utf8_lossy(reply.value(&answer)).into_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::incarnations::Incarnations;

    #[test]
    fn a_server_that_is_up_for_a_shorter_time_was_started_anew() {
        let page = |first: &str| {
            let text = format!(
                r#"{{"nodes":[{{"hostname":"a:8091","uptime":"{first}"}},{{"hostname":"b:8091"}},
                    {{"hostname":"c:8091","uptime":"500"}}]}}"#
            );
            incarnations_in(&serde_json::from_str(&text).unwrap())
        };
        assert_eq!(page("90").len(), 2, "the one that does not tell is left out");
        let incarnations = Incarnations::default();
        incarnations.meet(Instant::now(), page("90"));
        assert_eq!(incarnations.look(Instant::now(), page("91")), None);
        let figure = incarnations.look(Instant::now(), page("2")).expect("it was started anew");
        assert!(figure.is_restart() && figure.detail.starts_with("a:8091"), "{figure:?}");
        assert!(incarnations_in(&Value::Null).is_empty());
    }
}
