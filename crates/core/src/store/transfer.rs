//! Bytes on their way to and from a store. All buffers are made once and used again, so that an
//! operation allocates nothing.

use std::ops::Range;
use std::time::Duration;

/// Where a field lies in a value's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSpan {
    /// Number of the field in the record, from 0.
    pub index: u16,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A value to write: its bytes, and its fields where there are several.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    bytes: &'a [u8],
    spans: &'a [FieldSpan],
}

impl<'a> Value<'a> {
    /// `spans` lie in `bytes` without gaps, in order.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8], spans: &'a [FieldSpan]) -> Self {
        Value { bytes, spans }
    }

    /// The fields end to end, for stores that keep a record as one value.
    #[inline]
    #[must_use]
    pub fn whole(&self) -> &'a [u8] {
        self.bytes
    }

    /// Number of fields.
    #[must_use]
    pub fn field_count(&self) -> usize {
        self.spans.len()
    }

    /// Each field as (number, bytes).
    pub fn fields(&self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let bytes = self.bytes;
        self.spans.iter().map(move |s| (s.index, &bytes[s.start as usize..s.end as usize]))
    }
}

/// A write to carry out.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// Key of the record.
    pub key: &'a [u8],
    /// What to write.
    pub value: Value<'a>,
    /// The key is new to the workload (an insert). Every put is an upsert all the same.
    pub insert: bool,
    /// Only the fields in `value` change. Only where [`super::Capabilities::fields`].
    pub partial: bool,
    /// Number of fields in a whole record; 1 means that the value has no fields.
    pub record_fields: u16,
    /// The record vanishes after this long. Only where [`super::Capabilities::ttl`].
    pub ttl: Option<Duration>,
}

/// What a read brought back.
#[derive(Debug, Default)]
pub struct Reading {
    bytes: Vec<u8>,
    spans: Vec<FieldSpan>,
}

impl Reading {
    /// Forgets what the last read brought; keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// The store keeps the record as one value: these are its bytes.
    #[inline]
    pub fn set_whole(&mut self, bytes: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(bytes);
    }

    /// As [`Reading::set_whole`], for a store that has the bytes piece by piece: they go to the end.
    #[inline]
    pub fn whole_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The store keeps fields apart: adds one.
    pub fn push_field(&mut self, index: u16, bytes: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        self.spans.push(FieldSpan { index, start, end: self.bytes.len() as u32 });
    }

    /// All bytes, fields end to end in the order in which they came.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The fields that came apart; none if the record came whole.
    #[inline]
    #[must_use]
    pub fn spans(&self) -> &[FieldSpan] {
        &self.spans
    }
}

/// One record of a scan or a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    key: Range<u32>,
    value: Option<Range<u32>>,
}

/// What a scan or a batch brought back, whole values only.
#[derive(Debug, Default)]
pub struct Rows {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

impl Rows {
    /// Forgets what the last one brought; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Adds a record; `None` if a batch asked for a key that is not there.
    pub fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        let key = self.append(key);
        let value = value.map(|v| self.append(v));
        self.rows.push(Row { key, value });
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// No rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Each row as (key, value).
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.rows
            .iter()
            .map(|row| (self.slice(&row.key), row.value.as_ref().map(|v| self.slice(v))))
    }

    fn append(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len() as u32
    }

    fn slice(&self, range: &Range<u32>) -> &[u8] {
        &self.bytes[range.start as usize..range.end as usize]
    }
}
