//! A request in CQL, for `--dry-run`: the statements that `statements.rs` prepares.

use kvdyno_core::workload::Kind;

use crate::request::ShownRequest;

/// The statement of a request.
pub(super) fn of(request: &ShownRequest<'_>) -> String {
    let ShownRequest { key, value, count, fields, .. } = request;
    let columns = match (request.field, fields) {
        (Some(field), _) => format!("f{field}"),
        (None, 0 | 1) => "value".to_owned(),
        (None, _) => format!("f0 … f{}", fields - 1),
    };
    let seconds = request.ttl.map_or(0, |ttl| ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0));
    let ttl = if request.ttl.is_some() { format!(" AND TTL {seconds}") } else { String::new() };
    let insert = format!("INSERT {key} {columns} ({value}) USING TIMESTAMP …{ttl}");
    match request.kind {
        Kind::Delete => format!("DELETE USING TIMESTAMP … WHERE key = {key}"),
        Kind::Scan => "not supported: Cassandra keeps rows in the order of their hashes".to_owned(),
        Kind::GetBatch => format!("SELECT key, {columns} WHERE key IN ({key}, …) ({count} keys)"),
        Kind::PutBatch | Kind::InsertBatch => format!("unlogged BATCH of {count} × {insert}"),
        kind if kind.read_only() => format!("SELECT {columns} WHERE key = {key}"),
        _ => insert,
    }
}
