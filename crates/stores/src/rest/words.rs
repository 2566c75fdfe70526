//! A request in the words of HTTP, for `--dry-run`.

use kvdyno_core::workload::Kind;

use crate::request::ShownRequest;

/// The request line and what is worth knowing of the rest; `…` stands for the store's own path.
pub(super) fn of(request: &ShownRequest<'_>) -> String {
    let ShownRequest { key, value, .. } = request;
    match request.kind {
        Kind::Delete => format!("DELETE …/{key}"),
        Kind::Scan => "not supported: a REST store has no order of keys".to_owned(),
        Kind::GetBatch | Kind::PutBatch | Kind::InsertBatch => {
            "not supported: a REST request is about one record".to_owned()
        }
        kind if kind.read_only() => format!("GET …/{key}"),
        _ => {
            // Whole seconds, never sooner than asked.
            let ttl = request.ttl.map_or(String::new(), |ttl| {
                let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
                format!(", header of the time to live: {seconds}")
            });
            format!("PUT …/{key} ({value}){ttl}")
        }
    }
}
