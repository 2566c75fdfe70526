//! A request in Tarantool's own words, for `--dry-run`: the requests that `client.rs` sends.

use kvdyno_core::workload::Kind;

use crate::request::ShownRequest;

/// The requests of a record's operation.
pub(super) fn of(request: &ShownRequest<'_>) -> String {
    let ShownRequest { key, value, count, .. } = request;
    match request.kind {
        Kind::Delete => format!("DELETE [{key}]"),
        Kind::Scan => format!("SELECT GE [{key}] limit {count}"),
        Kind::GetBatch => format!("EVAL of {count} × space:get, the first [{key}]"),
        Kind::PutBatch | Kind::InsertBatch => {
            format!("EVAL of box.atomic with {count} × space:replace, the first [{key}, ({value})]")
        }
        kind if kind.read_only() => format!("SELECT EQ [{key}] limit 1"),
        _ => format!("REPLACE [{key}, ({value})]"),
    }
}
