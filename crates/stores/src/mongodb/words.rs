//! A request in MongoDB's own words, for `--dry-run`: the commands that `client.rs` has the driver
//! send.

use kvdyno_core::workload::Kind;

use crate::request::ShownRequest;

/// The command of a request.
pub(super) fn of(request: &ShownRequest<'_>) -> String {
    let ShownRequest { key, value, count, .. } = request;
    let record = if request.fields > 1 {
        format!("f0 … f{} ({value})", request.fields - 1)
    } else {
        format!("v ({value})")
    };
    match request.kind {
        Kind::Delete => format!("delete {{_id: {key}}}"),
        Kind::Scan => format!("find {{_id: {{$gte: {key}}}}}, sorted, limit {count}"),
        Kind::GetBatch => format!("find {{_id: {{$in: [{key}, …]}}}} ({count} keys)"),
        Kind::InsertBatch => format!("insert {count} × {{_id, {record}}}, the first {key}"),
        Kind::PutBatch => {
            format!("update with upsert {count} × {{_id, {record}}}, the first {key}")
        }
        kind if kind.read_only() => format!("find {{_id: {key}}}, limit 1"),
        Kind::Insert => format!("insert {{_id: {key}, {record}}}"),
        _ => match request.field {
            Some(field) => format!("update {{_id: {key}}} with $set f{field} ({value}), upsert"),
            None => format!("update {{_id: {key}}} to {{{record}}}, upsert"),
        },
    }
}
