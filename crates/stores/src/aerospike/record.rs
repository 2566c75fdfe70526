//! Records as bins and back: a record of one value is the bin `value`, a record of several fields the
//! bins `f0`, `f1`, … All are blobs.

use std::time::Duration;

use aerospike::{Bin, Expiration, Record, Value};
use kvdyno_core::store::{Answer, ErrorClass, Put, Reading, RequestError};

/// The bin of a record of one value.
const VALUE: &str = "value";

/// Fills in the bins of a put, in the memory of those before.
pub(super) fn fill(bins: &mut Vec<Bin>, put: &Put<'_>) {
    let mut count = 0;
    if put.record_fields > 1 {
        for (index, bytes) in put.value.fields() {
            fill_bin(bins, count, |name| field(name) == Some(index), || format!("f{index}"), bytes);
            count += 1;
        }
    } else {
        fill_bin(bins, 0, |name| name == VALUE, || VALUE.to_owned(), put.value.whole());
        count = 1;
    }
    bins.truncate(count);
}

/// Fills bin number `at`; its name is made anew only if it is another.
fn fill_bin(
    bins: &mut Vec<Bin>,
    at: usize,
    fits: impl Fn(&str) -> bool,
    name: impl Fn() -> String,
    bytes: &[u8],
) {
    match bins.get_mut(at) {
        None => bins.push(Bin::new(name(), Value::Blob(bytes.to_vec()))),
        Some(bin) => {
            if !fits(&bin.name) {
                bin.name = name();
            }
            match &mut bin.value {
                Value::Blob(place) => {
                    place.clear();
                    place.extend_from_slice(bytes);
                }
                other => *other = Value::Blob(bytes.to_vec()),
            }
        }
    }
}

/// Returns the number of the field that a bin holds.
fn field(name: &str) -> Option<u16> {
    let digits = name.strip_prefix('f')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Takes the record that a get brought back into `into`.
pub(super) fn read(record: &Record, into: &mut Reading) -> Answer<()> {
    if let Some(Value::Blob(bytes)) = record.bins.get(VALUE) {
        into.set_whole(bytes);
        return Ok(());
    }
    let mut found = false;
    for (name, value) in &record.bins {
        if let (Some(index), Value::Blob(bytes)) = (field(name), value) {
            into.push_field(index, bytes);
            found = true;
        }
    }
    if found { Ok(()) } else { Err(foreign()) }
}

/// Returns a record as one value, its fields end to end.
pub(super) fn read_whole<'r>(record: &'r Record, joined: &'r mut Vec<u8>) -> Answer<&'r [u8]> {
    if let Some(Value::Blob(bytes)) = record.bins.get(VALUE) {
        return Ok(bytes);
    }
    let mut fields: Vec<(u16, &[u8])> = Vec::with_capacity(record.bins.len());
    for (name, value) in &record.bins {
        if let (Some(index), Value::Blob(bytes)) = (field(name), value) {
            fields.push((index, bytes));
        }
    }
    if fields.is_empty() {
        return Err(foreign());
    }
    fields.sort_unstable_by_key(|(index, _)| *index);
    joined.clear();
    fields.iter().for_each(|(_, bytes)| joined.extend_from_slice(bytes));
    Ok(joined)
}

fn foreign() -> RequestError {
    let message = "a record without the bins of kvdyno, which it did not write: name another set \
                   (`aerospike://host/namespace/set`)";
    RequestError::failed(ErrorClass::Rejected, message)
}

/// Returns how long a record lives. The server counts whole seconds; a record never goes sooner than asked. A put without a
/// time to live takes away an old one, whatever the namespace's default is.
pub(super) fn expiration(ttl: Option<Duration>, partial: bool) -> Expiration {
    match ttl {
        None if partial => Expiration::DontUpdate,
        None => Expiration::Never,
        Some(ttl) => {
            let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
            // The greatest numbers stand for other things; the server's limit is ten years.
            Expiration::Seconds(seconds.clamp(1, u64::from(u32::MAX) / 2) as u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use aerospike::IndexMap;
    use kvdyno_core::store::{FieldSpan, Value as PutValue};

    use super::*;

    fn put<'a>(bytes: &'a [u8], spans: &'a [FieldSpan], record_fields: u16) -> Put<'a> {
        let value = PutValue::new(bytes, spans);
        Put { key: b"k", value, insert: false, partial: false, record_fields, ttl: None }
    }

    fn span(index: u16, start: u32, end: u32) -> FieldSpan {
        FieldSpan { index, start, end }
    }

    fn shown(bins: &[Bin]) -> Vec<(&str, &[u8])> {
        let blob = |bin: &'_ Bin| match &bin.value {
            Value::Blob(_) => (),
            other => panic!("{other:?}"),
        };
        bins.iter().for_each(blob);
        bins.iter()
            .map(|bin| match &bin.value {
                Value::Blob(bytes) => (bin.name.as_str(), bytes.as_slice()),
                _ => ("", &b""[..]),
            })
            .collect()
    }

    fn record(bins: &[(&str, Value)]) -> Record {
        let bins: IndexMap<String, Value> =
            bins.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Record::new(None, bins, None, 1, 0)
    }

    #[test]
    fn bins_hold_one_value_or_one_field_each() {
        let mut bins = Vec::new();
        fill(&mut bins, &put(b"whole", &[], 1));
        assert_eq!(shown(&bins), [("value", &b"whole"[..])]);
        fill(&mut bins, &put(b"abbccc", &[span(0, 0, 1), span(1, 1, 3), span(12, 3, 6)], 13));
        assert_eq!(shown(&bins), [("f0", &b"a"[..]), ("f1", b"bb"), ("f12", b"ccc")]);
        fill(&mut bins, &put(b"x", &[span(1, 0, 1)], 13));
        assert_eq!(shown(&bins), [("f1", &b"x"[..])]);
    }

    #[test]
    fn records_come_back_whole_or_field_by_field() {
        let blob = |bytes: &[u8]| Value::Blob(bytes.to_vec());
        let mut into = Reading::default();
        read(&record(&[("value", blob(b"v"))]), &mut into).unwrap();
        assert_eq!((into.bytes(), into.spans().len()), (&b"v"[..], 0));
        into.clear();
        let fields = record(&[("f10", blob(b"ccc")), ("f0", blob(b"a")), ("other", blob(b"x"))]);
        read(&fields, &mut into).unwrap();
        assert_eq!(into.spans(), [span(10, 0, 3), span(0, 3, 4)]);
        let mut joined = Vec::new();
        assert_eq!(read_whole(&fields, &mut joined).unwrap(), b"accc");
        assert_eq!(read_whole(&record(&[("value", blob(b"v"))]), &mut joined).unwrap(), b"v");
        for strange in [record(&[("value", Value::Int(1))]), record(&[("f+1", blob(b"x"))])] {
            assert_eq!(read(&strange, &mut into).unwrap_err().class, ErrorClass::Rejected);
            assert!(read_whole(&strange, &mut joined).is_err());
        }
    }

    #[test]
    fn a_time_to_live_is_in_whole_seconds_and_never_shorter() {
        let seconds = |ttl| expiration(Some(ttl), false);
        assert_eq!(seconds(Duration::from_millis(1)), Expiration::Seconds(1));
        assert_eq!(seconds(Duration::from_millis(1500)), Expiration::Seconds(2));
        assert_eq!(seconds(Duration::from_secs(60)), Expiration::Seconds(60));
        assert_eq!(seconds(Duration::from_secs(u64::MAX)), Expiration::Seconds(u32::MAX / 2));
        assert_eq!(expiration(None, false), Expiration::Never);
        assert_eq!(expiration(None, true), Expiration::DontUpdate);
    }
}
