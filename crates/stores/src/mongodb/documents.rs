//! Records as documents: `{_id: key, v: value}`, or `{_id: key, f0: …, f1: …}` where a record has
//! several fields. Keys are strings, values binary data.

use kvdyno_core::store::{Answer, ErrorClass, Put, Reading, RequestError};
use mongodb::bson::raw::{CString, cstr};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, RawBinaryRef, RawBsonRef, RawDocument, RawDocumentBuf, doc};

/// Field of a record that has only one.
const VALUE: &str = "v";

/// Returns the key as MongoDB's users would write it.
pub(super) fn id(key: &[u8]) -> Answer<&str> {
    std::str::from_utf8(key).map_err(|_| {
        RequestError::failed(
            ErrorClass::Rejected,
            "a key that is not UTF-8 cannot be an `_id` string",
        )
    })
}

/// Returns the filter that matches the record at `key`.
pub(super) fn filter(key: &[u8]) -> Answer<Document> {
    Ok(doc! { "_id": id(key)? })
}

/// Returns the document of the whole record.
pub(super) fn record(put: &Put<'_>) -> Answer<RawDocumentBuf> {
    let mut record = RawDocumentBuf::new();
    record.append(cstr!("_id"), id(put.key)?);
    if put.record_fields <= 1 {
        record.append(cstr!("v"), binary(put.value.whole()));
        return Ok(record);
    }
    for (number, bytes) in put.value.fields() {
        record.append(field_name(number), binary(bytes));
    }
    Ok(record)
}

/// Returns the update that sets the fields of a partial put.
pub(super) fn changes(put: &Put<'_>) -> Document {
    let fields = put.value.fields();
    let set: Document =
        fields.map(|(number, bytes)| (format!("f{number}"), owned_binary(bytes).into())).collect();
    doc! { "$set": set }
}

/// Reads a document into the record as it was written.
pub(super) fn read(record: &RawDocument, into: &mut Reading) -> Answer<()> {
    into.clear();
    for element in record {
        let (name, value) = element.map_err(|error| malformed(&error.to_string()))?;
        let (name, RawBsonRef::Binary(value)) = (name.as_str(), value) else { continue };
        if name == VALUE {
            into.set_whole(value.bytes);
            return Ok(());
        }
        if let Some(number) = name.strip_prefix('f').and_then(|number| number.parse().ok()) {
            into.push_field(number, value.bytes);
        }
    }
    Ok(())
}

/// Returns key and value of a record of one field; the fields of several end to end.
pub(super) fn row<'r>(
    record: &'r RawDocument,
    reading: &'r mut Reading,
) -> Answer<(&'r str, &'r [u8])> {
    let key = record.get_str("_id").map_err(|error| malformed(&error.to_string()))?;
    read(record, reading)?;
    Ok((key, reading.bytes()))
}

fn malformed(what: &str) -> RequestError {
    RequestError::failed(ErrorClass::Protocol, format!("a document that cannot be read: {what}"))
}

fn field_name(number: u16) -> CString {
    CString::try_from(format!("f{number}")).expect("a letter and digits hold no zero byte")
}

fn binary(bytes: &[u8]) -> RawBinaryRef<'_> {
    RawBinaryRef { subtype: BinarySubtype::Generic, bytes }
}

fn owned_binary(bytes: &[u8]) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::{FieldSpan, Value};

    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let put = |bytes, spans, record_fields| Put {
            key: b"k",
            value: Value::new(bytes, spans),
            insert: false,
            partial: false,
            record_fields,
            ttl: None,
        };
        let mut reading = Reading::default();
        let one = record(&put(b"a\0\xff", &[], 1)).unwrap();
        assert_eq!(row(&one, &mut reading).unwrap(), ("k", &b"a\0\xff"[..]));
        let spans =
            [FieldSpan { index: 0, start: 0, end: 1 }, FieldSpan { index: 12, start: 1, end: 3 }];
        let two = record(&put(b"abc", &spans, 2)).unwrap();
        read(&two, &mut reading).unwrap();
        assert_eq!((reading.bytes(), reading.spans()), (&b"abc"[..], &spans[..]));
        let change = changes(&Put { partial: true, ..put(b"abc", &spans, 2) });
        let set = change.get_document("$set").unwrap();
        assert_eq!(set.keys().collect::<Vec<_>>(), ["f0", "f12"]);
        assert!(id(b"\xff").is_err());
    }
}
