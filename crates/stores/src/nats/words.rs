//! A request in the words of NATS, for `--dry-run`: the subjects that `client.rs` asks.

use kvdyno_core::workload::Kind;

use crate::request::ShownRequest;

/// Puts a request into words.
pub(super) fn of(request: &ShownRequest<'_>) -> String {
    let ShownRequest { key, value, .. } = request;
    let ttl = match request.ttl {
        None => String::new(),
        Some(ttl) => format!(", Nats-TTL: {}", ttl.as_millis().div_ceil(1_000)),
    };
    match request.kind {
        Kind::Delete => format!("PUB $KV.BUCKET.{key}, KV-Operation: DEL, acknowledged"),
        kind if kind.read_only() => {
            format!("$JS.API.STREAM.MSG.GET.KV_BUCKET, last of $KV.BUCKET.{key}")
        }
        _ => format!("PUB $KV.BUCKET.{key} ({value}){ttl}, acknowledged"),
    }
}
