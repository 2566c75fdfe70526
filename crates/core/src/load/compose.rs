//! Builds the values that are written: filler, then the stamp over its front, field by field.
//! Outside the timed region, into buffers that are used again.

use std::time::Duration;

use crate::store::{FieldSpan, Put, Value};
use crate::verify::WriteSlots;
use crate::verify::stamp::{self, Identity};
use crate::workload::{Dataset, Filler, Kind, Operation, Ownership, Workload, mix64};

/// The values of one operation: one, or as many as a batch has records.
pub(super) struct Composer {
    id: u32,
    session: u32,
    /// Decides in which session a record is written.
    ownership: Ownership,
    /// Fields of a whole record.
    fields: u16,
    /// Salt of the filler's seeds, from dataset and session, so that no two runs over a dataset write the same bytes.
    content: u64,
    filler: Filler,
    /// Buffer of the values. It stays as long as the longest operation so far needed, so that nothing is filled with
    /// zeros first.
    bytes: Vec<u8>,
    /// Bytes of the buffer that are in use.
    used: usize,
    /// Values composed for this operation.
    values: u32,
    /// Fields of all these values.
    spans: u32,
    /// The first field. Most operations have no other, so it lies here and not in `several`.
    only: FieldSpan,
    several: Box<Several>,
}

/// Positions of values and fields, for an operation that has several; other operations leave it as it was.
#[derive(Default)]
struct Several {
    spans: Vec<FieldSpan>,
    /// For each value but the first: the offset of its first byte and the index of its first span.
    starts: Vec<(u32, u32)>,
}

impl Composer {
    pub fn new(dataset: Dataset, ownership: Ownership, workload: &Workload) -> Self {
        let largest_field = workload.value_sizes().largest() as usize;
        Composer {
            id: dataset.id,
            session: dataset.session,
            ownership,
            fields: dataset.fields,
            content: mix64(u64::from(dataset.id) << 32 | u64::from(dataset.session)),
            filler: workload.filler(),
            bytes: vec![0; largest_field * usize::from(dataset.fields)],
            used: 0,
            values: 0,
            spans: 0,
            only: FieldSpan { index: 0, start: 0, end: 0 },
            several: Box::default(),
        }
    }

    /// Returns the address of the buffer in which values are composed.
    #[inline]
    pub fn place(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// Returns the first field that was composed.
    pub fn first_field(&self) -> &[u8] {
        &self.bytes[..self.only.end as usize]
    }

    #[inline]
    pub fn clear(&mut self) {
        (self.used, self.values, self.spans) = (0, 0, 0);
    }

    /// Adds the value of `record` as `operation` writes it. Its versions stand in `writes` from number `first` on:
    /// one for all fields, or one for each field that is written.
    #[inline(always)]
    pub fn compose(
        &mut self,
        operation: &Operation,
        record: u64,
        writes: &WriteSlots,
        first: usize,
    ) {
        if self.values > 0 {
            self.begin_further();
        }
        self.values += 1;
        let base = self.used;
        let size = operation.size as usize;
        let fields = match operation.field {
            Some(field) => field..field + 1,
            None => 0..self.fields,
        };
        // Most often there is one, and what compilers take out of a loop would be done for nothing.
        if fields.len() == 1 {
            return self.compose_field(size, base, (record, fields.start, writes.version(first)));
        }
        for (i, field) in fields.enumerate() {
            let version = writes.version((first + i).min(writes.count() - 1));
            self.compose_field(size, base, (record, field, version));
        }
    }

    /// Begins another value.
    #[inline]
    fn begin_further(&mut self) {
        let starts = &mut self.several.starts;
        if self.values == 1 {
            starts.clear();
        }
        starts.push((self.used as u32, self.spans));
    }

    /// Adds a field to the value that begins at `base`.
    #[inline]
    fn compose_field(
        &mut self,
        size: usize,
        base: usize,
        (record, field, version): (u64, u16, u32),
    ) {
        let session = self.ownership.session(record, self.session);
        let identity = Identity { dataset: self.id, session, record, field, version };
        let (start, end) = (self.used, self.used + size);
        if end > self.bytes.len() {
            self.lengthen(end);
        }
        let seed = self.content_seed(&identity);
        let bytes = &mut self.bytes[start..end];
        match self.filler.words(seed) {
            Some(words) if stamp::Form::of(size) == Some(stamp::Form::Full) => {
                stamp::seal_made(bytes, &identity, words);
            }
            _ => fill_and_seal(&self.filler, seed, bytes, &identity),
        }
        self.used = end;
        let (start, end) = ((start - base) as u32, (end - base) as u32);
        if self.spans == 0 {
            // Each part stored where it stays: a copy of parts just stored waits until they have left the
            // processor, 30 ns.
            self.only.index = field;
            self.only.start = start;
            self.only.end = end;
        } else {
            self.add_span(field, start, end);
        }
        self.spans += 1;
    }

    #[cold]
    #[inline]
    fn lengthen(&mut self, to: usize) {
        self.bytes.resize(to, 0);
    }

    /// Adds a field that is not the first one of the operation.
    #[inline]
    fn add_span(&mut self, index: u16, start: u32, end: u32) {
        let spans = &mut self.several.spans;
        if self.spans == 1 {
            spans.clear();
            spans.push(self.only);
        }
        spans.push(FieldSpan { index, start, end });
    }

    /// Returns the seed of the filler; no two versions of any record have the same. The version is known last, so it
    /// is mixed in last.
    #[inline]
    fn content_seed(&self, identity: &Identity) -> u64 {
        let field_and_version = u64::from(identity.field) << 32 | u64::from(identity.version);
        let session = u64::from(identity.session ^ self.session) << 32;
        mix64(field_and_version ^ mix64(identity.record ^ session ^ self.content))
    }

    /// Returns the write of the `i`-th value to `key`, as `operation` makes it.
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
            record_fields: self.fields,
            ttl,
        }
    }

    #[inline]
    fn value(&self, i: usize) -> Value<'_> {
        let spans = match self.spans {
            0 => &[],
            1 => std::slice::from_ref(&self.only),
            _ => &self.several.spans[..],
        };
        if self.values <= 1 {
            return Value::new(&self.bytes[..self.used], spans);
        }
        let starts = &self.several.starts;
        let (bytes, first) = if i == 0 { (0, 0) } else { starts[i - 1] };
        let end = starts.get(i).map(|&(bytes, spans)| (bytes as usize, spans as usize));
        let (bytes_end, spans_end) = end.unwrap_or((self.used, spans.len()));
        Value::new(&self.bytes[bytes as usize..bytes_end], &spans[first as usize..spans_end])
    }
}

/// Fills the bytes first and stamps them then: for values that have no room for a full stamp, or are to be compressible.
#[inline]
fn fill_and_seal(filler: &Filler, seed: u64, bytes: &mut [u8], identity: &Identity) {
    filler.fill(seed, bytes, stamp::taken(bytes.len()));
    stamp::seal(bytes, identity);
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
        let mut composer = Composer::new(dataset, Ownership::ALL, &workload);
        let operation = Operation { kind: Kind::Update, record: 7, field: None, size, count: 1 };
        composer.compose(&operation, 7, &WriteSlots::default(), 0);
        let bytes = composer.put(0, b"key", &operation, None).value.whole().to_vec();
        (composer, bytes)
    }

    /// Checks the shares that docs/SUITES.md states: values of consecutive records fill a block, as in stores that
    /// compress blocks.
    #[test]
    fn a_block_of_values_shrinks_by_their_stamps() {
        const BLOCK: usize = 4_096;
        for (size, least, most) in
            [(100, 0.15, 0.22), (200, 0.07, 0.12), (400, 0.03, 0.06), (1_000, 0.0, 0.03)]
        {
            let (mut composer, _) = composed(size);
            let mut all = Vec::new();
            for record in 0..2_000 {
                let operation =
                    Operation { kind: Kind::Update, record, field: None, size, count: 1 };
                composer.clear();
                composer.compose(&operation, record, &WriteSlots::default(), 0);
                all.extend_from_slice(composer.put(0, b"key", &operation, None).value.whole());
            }
            let blocks = all.chunks_exact(BLOCK);
            let whole = blocks.len() * BLOCK;
            let left: usize = blocks.map(|block| lz4_flex::block::compress(block).len()).sum();
            let saved = 1.0 - left as f64 / whole as f64;
            assert!((least..most).contains(&saved), "{size} B: {saved}");
        }
    }

    #[test]
    fn a_value_made_and_summed_in_one_go_is_the_one_that_is_filled_and_then_sealed() {
        for size in 8..300 {
            let (composer, bytes) = composed(size);
            let identity = Identity { dataset: 3, session: 9, record: 7, field: 0, version: 0 };
            let mut expected = vec![0; size as usize];
            let seed = composer.content_seed(&identity);
            composer.filler.fill(seed, &mut expected, stamp::taken(size as usize));
            stamp::seal(&mut expected, &identity);
            assert_eq!(bytes, expected, "{size} bytes");
        }
    }
}
