//! Builds the values that are written: filler, then the stamp over its front, field by field.
//! Outside the timed region, into buffers that are used again.

use std::time::Duration;

use crate::store::{FieldSpan, Put, Value};
use crate::verify::WriteSlot;
use crate::verify::stamp::{self, Identity};
use crate::workload::{Dataset, Filler, Kind, Operation, Workload, mix64};

/// The values of one operation: one, or as many as a batch has records.
pub(super) struct Composer {
    dataset: Dataset,
    filler: Filler,
    bytes: Vec<u8>,
    spans: Vec<FieldSpan>,
    /// For each value: where its bytes and its spans begin.
    starts: Vec<(u32, u32)>,
}

impl Composer {
    pub fn new(dataset: Dataset, workload: &Workload) -> Self {
        let largest_field = workload.value_sizes().largest() as usize;
        Composer {
            dataset,
            filler: workload.filler(),
            bytes: Vec::with_capacity(largest_field * usize::from(dataset.fields)),
            spans: Vec::with_capacity(usize::from(dataset.fields)),
            starts: Vec::with_capacity(1),
        }
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.starts.clear();
    }

    /// Adds the value of `record` as `operation` writes it, in the versions that `slots` tell: one
    /// for all fields, or one for each field that is written.
    pub fn compose(&mut self, operation: &Operation, record: u64, slots: &[WriteSlot]) {
        self.starts.push((self.bytes.len() as u32, self.spans.len() as u32));
        let fields = match operation.field {
            Some(field) => field..field + 1,
            None => 0..self.dataset.fields,
        };
        let base = self.bytes.len();
        for (i, field) in fields.enumerate() {
            let version = slots[i.min(slots.len() - 1)].version();
            let identity = Identity {
                dataset: self.dataset.id,
                session: self.dataset.session,
                record,
                field,
                version,
            };
            let start = self.bytes.len();
            self.bytes.resize(start + operation.size as usize, 0);
            let bytes = &mut self.bytes[start..];
            self.filler.fill(content_seed(&identity), bytes);
            stamp::seal(bytes, &identity);
            let (start, end) = ((start - base) as u32, (self.bytes.len() - base) as u32);
            self.spans.push(FieldSpan { index: field, start, end });
        }
    }

    /// The write of the `i`-th value to `key`, as `operation` makes it.
    pub fn put<'a>(
        &'a self,
        i: usize,
        key: &'a [u8],
        operation: &Operation,
        ttl: Option<Duration>,
    ) -> Put<'a> {
        Put {
            key,
            value: self.value(i),
            insert: matches!(operation.kind, Kind::Insert | Kind::InsertBatch),
            partial: operation.field.is_some(),
            record_fields: self.dataset.fields,
            ttl,
        }
    }

    fn value(&self, i: usize) -> Value<'_> {
        let (bytes, spans) = self.starts[i];
        let (bytes_end, spans_end) = self
            .starts
            .get(i + 1)
            .map_or((self.bytes.len(), self.spans.len()), |&(b, s)| (b as usize, s as usize));
        Value::new(&self.bytes[bytes as usize..bytes_end], &self.spans[spans as usize..spans_end])
    }
}

/// No two versions of any record have the same filler.
fn content_seed(identity: &Identity) -> u64 {
    let field_and_version = u64::from(identity.field) << 32 | u64::from(identity.version);
    let dataset_and_session = u64::from(identity.dataset) << 32 | u64::from(identity.session);
    mix64(identity.record ^ mix64(field_and_version ^ mix64(dataset_and_session)))
}
