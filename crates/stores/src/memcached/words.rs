//! A request in Memcached's own words, for `--dry-run`: the meta commands that `codec.rs` sends.

use kvdyno_core::workload::Kind;

use crate::request::ShownRequest;

/// The commands of a request.
pub(super) fn of(request: &ShownRequest<'_>) -> String {
    let ShownRequest { key, value, count, .. } = request;
    // Whole seconds, never sooner than asked.
    let ttl = request.ttl.map_or(String::new(), |ttl| {
        format!(" T{}", ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0))
    });
    match request.kind {
        Kind::Delete => format!("md {key}"),
        Kind::Scan => "not supported: Memcached keeps no order of keys".to_owned(),
        Kind::GetBatch => format!("{count} × mg, the first: mg {key} v"),
        Kind::PutBatch | Kind::InsertBatch => {
            format!("{count} × ms, the first: ms {key} ({value}){ttl}")
        }
        kind if kind.read_only() => format!("mg {key} v"),
        _ => format!("ms {key} ({value}){ttl}"),
    }
}
