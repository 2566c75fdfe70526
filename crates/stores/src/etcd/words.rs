//! A request in etcd's own words, for `--dry-run`: the gRPC calls that `client.rs` makes.

use kvdyno_core::workload::Kind;

use crate::request::ShownRequest;

/// The calls of a request.
pub(super) fn of(request: &ShownRequest<'_>) -> String {
    let ShownRequest { key, value, count, .. } = request;
    let (grant, lease) = match request.ttl {
        None => (String::new(), ""),
        // Leases count whole seconds.
        Some(ttl) => {
            (format!("LeaseGrant {} s, ", ttl.as_millis().div_ceil(1000)), " with this lease")
        }
    };
    match request.kind {
        Kind::Delete => format!("DeleteRange {key}"),
        Kind::Scan => format!("Range from {key}, limit {count}"),
        Kind::GetBatch => format!("Txn of {count} × Range, the first {key}"),
        Kind::PutBatch | Kind::InsertBatch => {
            format!("{grant}Txn of {count} × Put ({value}){lease}, the first {key}")
        }
        kind if kind.read_only() => format!("Range {key}"),
        _ => format!("{grant}Put {key} ({value}){lease}"),
    }
}
