//! Shows requests in the store's own words, for `kvdyno run --dry-run`.

use std::time::Duration;

use kvdyno_core::workload::Kind;

/// A request to be put into words.
#[derive(Clone, Copy, Debug)]
pub struct ShownRequest<'a> {
    /// Kind of the request; never one that core composes of two.
    pub kind: Kind,
    /// Key of its (first) record.
    pub key: &'a str,
    /// Size of the value of one record, such as `100B`.
    pub value: &'a str,
    /// Fields in a record.
    pub fields: u16,
    /// The one field that is written; `None`: all.
    pub field: Option<u16>,
    /// Time to live of what is written.
    pub ttl: Option<Duration>,
    /// Records of a scan or a batch.
    pub count: u32,
}

impl ShownRequest<'_> {
    /// Shows it as a call of a library: `get`, `put`, `delete` and `scan` are the names of its calls.
    #[must_use]
    pub fn calls(&self, get: &str, put: &str, delete: &str, scan: &str) -> String {
        let ShownRequest { key, value, count, .. } = self;
        let ttl = self.ttl.map_or(String::new(), |ttl| format!(", gone after {ttl:?}"));
        match self.kind {
            Kind::Delete => format!("{delete} {key}"),
            Kind::Scan => format!("{scan} from {key}, {count} records"),
            Kind::GetBatch => format!("{count} × {get}, the first {key}"),
            Kind::PutBatch | Kind::InsertBatch => {
                format!("{count} × {put}, the first {key} ({value}){ttl}")
            }
            kind if kind.read_only() => format!("{get} {key}"),
            _ => format!("{put} {key} ({value}){ttl}"),
        }
    }

    /// Shows it in plain words, for stores that have no others.
    #[must_use]
    pub fn plain(&self) -> String {
        self.calls("get", "put", "delete", "scan")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_call_key_and_size() {
        let put = ShownRequest {
            kind: Kind::Insert,
            key: "0001",
            value: "100B",
            fields: 1,
            field: None,
            ttl: None,
            count: 1,
        };
        assert_eq!(put.calls("g", "mdb_put", "d", "s"), "mdb_put 0001 (100B)");
        let batch = ShownRequest { kind: Kind::GetBatch, count: 10, ..put };
        assert_eq!(batch.plain(), "10 × get, the first 0001");
        let scan = ShownRequest { kind: Kind::Scan, count: 7, ..put };
        assert_eq!(scan.plain(), "scan from 0001, 7 records");
    }
}
