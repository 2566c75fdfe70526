//! A request in Riak's own words, for `--dry-run`: the messages that `client.rs` sends.

use kvdyno_core::workload::Kind;

use crate::request::ShownRequest;

/// The messages of a request.
pub(super) fn of(request: &ShownRequest<'_>) -> String {
    let ShownRequest { key, value, count, .. } = request;
    match request.kind {
        Kind::Delete => format!("RpbDelReq {key}"),
        Kind::Scan => "not supported: Riak keeps no order of keys".to_owned(),
        Kind::GetBatch => format!("{count} × RpbGetReq, the first {key}"),
        Kind::PutBatch | Kind::InsertBatch => {
            format!("{count} × RpbPutReq, the first {key} ({value})")
        }
        kind if kind.read_only() => format!("RpbGetReq {key}"),
        _ => {
            format!("RpbPutReq {key} ({value}); before it RpbGetReq {key} head where vclock=fetch")
        }
    }
}
