//! A request in Redis' own words, for `--dry-run`: the commands that `client.rs` sends.

use kvdyno_core::workload::Kind;

use crate::request::ShownRequest;

/// The commands of a request to servers that each have a part of the records.
pub(super) fn of_sharded(request: &ShownRequest<'_>) -> String {
    match request.kind {
        Kind::GetBatch | Kind::PutBatch | Kind::InsertBatch => {
            format!("to each server, of what it has: {}", of(request))
        }
        _ => of(request),
    }
}

/// The commands of a request to a cluster.
pub(super) fn of_cluster(request: &ShownRequest<'_>) -> String {
    let one = match request.kind {
        Kind::GetBatch => Kind::Get,
        Kind::PutBatch => Kind::Update,
        Kind::InsertBatch => Kind::Insert,
        _ => return of(request),
    };
    format!("{} × {}", request.count, of(&ShownRequest { kind: one, ..*request }))
}

/// The commands of a request.
pub(super) fn of(request: &ShownRequest<'_>) -> String {
    let ShownRequest { key, value, count, .. } = request;
    let expiring = request.ttl.map_or(String::new(), |ttl| format!(" PX {}", ttl.as_millis()));
    let several = request.fields > 1;
    match request.kind {
        Kind::Delete => format!("DEL {key}"),
        Kind::Scan => "not supported: Redis keeps no order of keys".to_owned(),
        Kind::GetBatch => format!("MGET {key} … ({count} keys)"),
        Kind::PutBatch | Kind::InsertBatch if request.ttl.is_some() => {
            format!("MULTI, {count} × SET ({value}){expiring}, the first {key}, EXEC")
        }
        Kind::PutBatch | Kind::InsertBatch => format!("MSET {key} ({value}) … ({count} records)"),
        kind if kind.read_only() && several => format!("HGETALL {key}"),
        kind if kind.read_only() => format!("GET {key}"),
        _ if several => {
            let hset = match request.field {
                Some(field) => format!("HSET {key} f{field} ({value})"),
                None => format!("HSET {key} f0 … f{} ({value})", request.fields - 1),
            };
            match request.ttl {
                Some(ttl) => format!("MULTI, {hset}, PEXPIRE {key} {}, EXEC", ttl.as_millis()),
                None => hset,
            }
        }
        _ => format!("SET {key} ({value}){expiring}"),
    }
}
