//! Bytes on their way to and from a store. All buffers are made once and used again, so that an
//! operation allocates nothing.

use std::ops::Range;
use std::time::Duration;

/// Place of a field in a value's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSpan {
    /// Number of the field in the record, from 0.
    pub index: u16,
    /// Index of the first byte.
    pub start: u32,
    /// Index of the last byte plus one.
    pub end: u32,
}

/// Value to write: its bytes, and its fields where there are several.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    bytes: &'a [u8],
    spans: &'a [FieldSpan],
}

impl<'a> Value<'a> {
    /// Creates a value; `spans` lie in `bytes` without gaps, in order.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8], spans: &'a [FieldSpan]) -> Self {
        Value { bytes, spans }
    }

    /// Returns the fields end to end, for stores that keep a record as one value.
    #[inline]
    #[must_use]
    pub fn whole(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of fields.
    #[must_use]
    pub fn field_count(&self) -> usize {
        self.spans.len()
    }

    /// Returns each field as (number, bytes).
    pub fn fields(&self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let bytes = self.bytes;
        self.spans.iter().map(move |s| (s.index, &bytes[s.start as usize..s.end as usize]))
    }
}

/// Write to carry out.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// Key of the record.
    pub key: &'a [u8],
    /// Value to write.
    pub value: Value<'a>,
    /// True if the key is new to the workload (an insert). Every put is an upsert all the same.
    pub insert: bool,
    /// True if only the fields in `value` change; only for stores with
    /// [`super::Capabilities::fields`].
    pub partial: bool,
    /// Number of fields in a whole record; 1 means that the value has no fields.
    pub record_fields: u16,
    /// Time after which the record vanishes; only for stores with [`super::Capabilities::ttl`].
    pub ttl: Option<Duration>,
}

/// Bytes and fields that a read brought back; a reusable buffer.
#[derive(Debug, Default)]
pub struct Reading {
    bytes: Vec<u8>,
    spans: Vec<FieldSpan>,
}

impl Reading {
    /// Removes the result of the last read; keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Sets the bytes of a record that the store keeps as one value.
    #[inline]
    pub fn set_whole(&mut self, bytes: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the bytes of a record that the store keeps as one value, for a driver that gets them
    /// piece by piece and appends them. [`Reading::set_whole`] sets them at once.
    #[inline]
    pub fn whole_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Adds a field of a record whose fields the store keeps apart.
    pub fn push_field(&mut self, index: u16, bytes: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        self.spans.push(FieldSpan { index, start, end: self.bytes.len() as u32 });
    }

    /// Returns all bytes, fields end to end in the order in which they came.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the places of fields that came apart; none if the record came whole.
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

/// Rows that a scan or a batch brought back, whole values only; a reusable buffer.
#[derive(Debug, Default)]
pub struct Rows {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

impl Rows {
    /// Removes the rows of the last one; keeps the memory.
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

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns each row as (key, value).
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
