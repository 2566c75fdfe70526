//! Builds the values that are written: filler, then the stamp over its front, field by field.
//! Outside the timed region, into buffers that are used again.

use std::time::Duration;

use smallvec::SmallVec;

use crate::store::{FieldSpan, Put, Value};
use crate::verify::WriteSlots;
use crate::verify::stamp::{self, Identity};
use crate::workload::{Dataset, Filler, Kind, Operation, Workload, mix64};

/// The values of one operation: one, or as many as a batch has records.
pub(super) struct Composer {
    dataset: Dataset,
    /// What the filler's seeds are mixed with: no two runs over a dataset write the same bytes.
    content: u64,
    filler: Filler,
    /// As long as any operation has needed, so that nothing is filled with zeros first.
    bytes: Vec<u8>,
    /// Bytes that are in use.
    used: usize,
    spans: SmallVec<[FieldSpan; 1]>,
    /// For each value but the first: where its bytes and its spans begin.
    starts: Vec<(u32, u32)>,
}

impl Composer {
    pub fn new(dataset: Dataset, workload: &Workload) -> Self {
        let largest_field = workload.value_sizes().largest() as usize;
        Composer {
            dataset,
            content: mix64(u64::from(dataset.id) << 32 | u64::from(dataset.session)),
            filler: workload.filler(),
            bytes: vec![0; largest_field * usize::from(dataset.fields)],
            used: 0,
            spans: SmallVec::new(),
            starts: Vec::new(),
        }
    }

    pub fn clear(&mut self) {
        self.used = 0;
        self.spans.clear();
        self.starts.clear();
    }

    /// Adds the value of `record` as `operation` writes it, in the versions that `writes` tells from the
    /// one of number `first` on: one for all fields, or one for each field that is written.
    #[inline]
    pub fn compose(
        &mut self,
        operation: &Operation,
        record: u64,
        writes: &WriteSlots,
        first: usize,
    ) {
        if !self.spans.is_empty() {
            self.starts.push((self.used as u32, self.spans.len() as u32));
        }
        let base = self.used;
        let fields = match operation.field {
            Some(field) => field..field + 1,
            None => 0..self.dataset.fields,
        };
        let size = operation.size as usize;
        // Most often there is one, and what compilers take out of a loop would be done for nothing.
        if fields.len() == 1 {
            return self.compose_field(size, base, (record, fields.start, writes.version(first)));
        }
        for (i, field) in fields.enumerate() {
            let version = writes.version((first + i).min(writes.count() - 1));
            self.compose_field(size, base, (record, field, version));
        }
    }

    /// Adds a field to the value that begins at `base`. One piece of code for both of its callers.
    #[inline(never)]
    fn compose_field(
        &mut self,
        size: usize,
        base: usize,
        (record, field, version): (u64, u16, u32),
    ) {
        let Dataset { id: dataset, session, .. } = self.dataset;
        let identity = Identity { dataset, session, record, field, version };
        let (start, end) = (self.used, self.used + size);
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        let seed = self.content_seed(&identity);
        let bytes = &mut self.bytes[start..end];
        match self.filler.words(seed) {
            Some(words) if stamp::Form::of(size) == Some(stamp::Form::Full) => {
                stamp::seal_made(bytes, &identity, words);
            }
            _ => {
                self.filler.fill(seed, bytes, stamp::taken(size));
                stamp::seal(bytes, &identity);
            }
        }
        self.used = end;
        let (start, end) = ((start - base) as u32, (end - base) as u32);
        self.spans.push(FieldSpan { index: field, start, end });
    }

    /// No two versions of any record have the same filler. The version is known last, so it comes in last.
    #[inline]
    fn content_seed(&self, identity: &Identity) -> u64 {
        let field_and_version = u64::from(identity.field) << 32 | u64::from(identity.version);
        mix64(field_and_version ^ mix64(identity.record ^ self.content))
    }

    /// The write of the `i`-th value to `key`, as `operation` makes it.
    #[inline]
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

    #[inline]
    fn value(&self, i: usize) -> Value<'_> {
        let (bytes, spans) = if i == 0 { (0, 0) } else { self.starts[i - 1] };
        let end = self.starts.get(i).map(|&(bytes, spans)| (bytes as usize, spans as usize));
        let (bytes_end, spans_end) = end.unwrap_or((self.used, self.spans.len()));
        Value::new(&self.bytes[bytes as usize..bytes_end], &self.spans[spans as usize..spans_end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{GroupPlan, KeyForm, KeyModel, Part, SizeModel};

    fn composed(size: u32) -> (Composer, Vec<u8>) {
        let key = KeyModel { form: KeyForm::Hash, length: 16 };
        let dataset = Dataset { id: 3, session: 9, key, fields: 1, capacity: 10 };
        let mut plan = GroupPlan::plain("put", &[(Kind::Update, 1000)], 10);
        plan.values.size = SizeModel::Fixed { size };
        let workload = Workload::new(&plan, &dataset, Part::WHOLE).unwrap();
        let mut composer = Composer::new(dataset, &workload);
        let operation = Operation { kind: Kind::Update, record: 7, field: None, size, count: 1 };
        composer.compose(&operation, 7, &WriteSlots::default(), 0);
        let bytes = composer.put(0, b"key", &operation, None).value.whole().to_vec();
        (composer, bytes)
    }

    #[test]
    fn a_value_made_and_summed_in_one_go_is_the_one_that_is_filled_and_then_sealed() {
        for size in 8..300 {
            let (composer, bytes) = composed(size);
            let Dataset { id: dataset, session, .. } = composer.dataset;
            let identity = Identity { dataset, session, record: 7, field: 0, version: 0 };
            let mut expected = vec![0; size as usize];
            let seed = composer.content_seed(&identity);
            composer.filler.fill(seed, &mut expected, stamp::taken(size as usize));
            stamp::seal(&mut expected, &identity);
            assert_eq!(bytes, expected, "{size} bytes");
        }
    }
}
