//! A request in the driver's words, for `--dry-run`: the calls that `client.rs` makes.

use kvdyno_core::workload::Kind;

use crate::request::ShownRequest;

/// The calls of a request.
pub(super) fn of(request: &ShownRequest<'_>) -> String {
    let ShownRequest { key, value, count, .. } = request;
    let ttl = request.ttl.map_or(String::new(), |ttl| {
        format!(", expiration {}s", ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0))
    });
    let bins = match (request.field, request.fields) {
        (Some(field), _) => format!("f{field}"),
        (None, 0 | 1) => "value".to_owned(),
        (None, fields) => format!("f0 … f{}", fields - 1),
    };
    match request.kind {
        Kind::Delete => format!("delete {key}"),
        Kind::Scan => "not supported: Aerospike keeps no order of keys".to_owned(),
        Kind::GetBatch => format!("batch of {count} × read, the first {key}, all bins"),
        Kind::PutBatch | Kind::InsertBatch => {
            format!("batch of {count} × write, the first {key}, {bins} ({value}){ttl}")
        }
        kind if kind.read_only() => format!("get {key}, all bins"),
        _ => format!("put {key}, {bins} ({value}){ttl}"),
    }
}
