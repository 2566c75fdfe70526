//! Exchanges as Riak's documentation prints them ("Protocol Buffers Client API"), byte by byte.

use prost::Message;

use super::super::messages::{
    RpbBucketProps, RpbContent, RpbDelReq, RpbGetBucketReq, RpbGetBucketResp, RpbGetReq,
    RpbGetServerInfoResp, RpbPutReq, RpbSetBucketReq,
};
use super::*;

/// Bytes from their hexadecimal print.
fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn frame(code: u8, message: &impl Message) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, code, message);
    out
}

/// The message in a frame that must be whole and have this code.
fn message_of(frame: &[u8], code: u8) -> &[u8] {
    assert_eq!(scan(frame), Ok(Some((code, frame.len()))));
    message(frame)
}

const GOT: &str = "00 00 00 4A 0A 0A 26 0A 02 76 32 2A 16 33 53 44 \
                   6C 66 34 49 4E 4B 7A 38 68 4E 64 68 79 49 6D 4B \
                   49 72 75 38 BB D7 A2 DE 04 40 E0 B9 06 12 1F 6B \
                   CE 61 60 60 60 CC 60 CA 05 52 2C AC C2 5B 3F 65 \
                   30 25 32 E5 B1 32 EC 56 B7 3D CA 97 05 00";

#[test]
fn fetch_object() {
    let request = RpbGetReq { bucket: b"b".to_vec(), key: b"k".to_vec(), ..RpbGetReq::default() };
    assert_eq!(frame(code::GET, &request), hex("00 00 00 07 09 0A 01 62 12 01 6B"));
    let answer = hex(GOT);
    let object = Object::read(message_of(&answer, code::GOT)).unwrap();
    let contents: Vec<RiakContent<'_>> = object.contents().collect();
    let expected = RiakContent { value: b"v2", modified: (1_271_442_363, 105_696), deleted: false };
    assert_eq!(contents, [expected]);
    let vclock = object.vclock().unwrap();
    assert_eq!((vclock.len(), &vclock[..4]), (31, &[0x6b, 0xce, 0x61, 0x60][..]));
    // A missing key: neither content nor vclock.
    let absent = Object::read(message_of(&[0, 0, 0, 1, 10], code::GOT)).unwrap();
    assert_eq!((absent.contents().count(), absent.vclock()), (0, None));
}

#[test]
fn store_object() {
    let request = RpbPutReq {
        bucket: b"b".to_vec(),
        key: Some(b"k".to_vec()),
        content: RpbContent { value: br#"{"foo":"bar"}"#.to_vec(), content_type: None },
        w: Some(2),
        ..RpbPutReq::default()
    };
    // The documentation's example without its last field, return_body: 38 01.
    let expected = hex(
        "00 00 00 1A 0B 0A 01 62 12 01 6B 22 0F 0A 0D 7B 22 66 6F 6F 22 3A 22 62 61 72 22 7D 28 02",
    );
    assert_eq!(frame(code::PUT, &request), expected);
    assert_eq!(message_of(&hex("00 00 00 01 0C"), code::DONE_PUT), b"");
}

#[test]
fn delete_object() {
    let request =
        RpbDelReq { bucket: b"notabucket".to_vec(), key: b"k".to_vec(), ..RpbDelReq::default() };
    // The documentation's example without its last field, rw, which newer versions do without.
    let expected = hex("00 00 00 10 0D 0A 0A 6E 6F 74 61 62 75 63 6B 65 74 12 01 6B");
    assert_eq!(frame(code::DELETE, &request), expected);
    assert_eq!(message_of(&hex("00 00 00 01 0E"), code::DONE_DELETE), b"");
}

#[test]
fn server_information() {
    let mut request = Vec::new();
    push_empty(&mut request, code::GET_SERVER_INFO);
    assert_eq!(request, hex("00 00 00 01 07"));
    let answer =
        hex("00 00 00 17 08 0A 0E 72 69 61 6B 40 31 32 37 2E 30 2E 30 2E 31 12 04 30 2E 31 30");
    let info = RpbGetServerInfoResp::decode(message_of(&answer, code::SERVER_INFO)).unwrap();
    assert_eq!(info.node.as_deref(), Some(&b"riak@127.0.0.1"[..]));
    assert_eq!(info.server_version.as_deref(), Some(&b"0.10"[..]));
}

#[test]
fn bucket_properties() {
    let request = RpbGetBucketReq { bucket: b"mybucket".to_vec(), r#type: None };
    let expected = hex("00 00 00 0B 13 0A 08 6D 79 62 75 63 6B 65 74");
    assert_eq!(frame(code::GET_BUCKET, &request), expected);
    let answer = hex("00 00 00 07 14 0A 04 08 05 10 01");
    let told = RpbGetBucketResp::decode(message_of(&answer, code::BUCKET)).unwrap();
    assert_eq!((told.props.n_val, told.props.allow_mult), (Some(5), Some(true)));
    let request = RpbSetBucketReq {
        bucket: b"b".to_vec(),
        props: RpbBucketProps { n_val: Some(1), ..RpbBucketProps::default() },
        r#type: None,
    };
    let expected = hex("00 00 00 08 15 0A 01 62 12 02 08 01");
    assert_eq!(frame(code::SET_BUCKET, &request), expected);
}

#[test]
fn siblings_and_tombstones_come_one_by_one() {
    // Two contents: "a" of second 1, and a tombstone of second 2; then a vector clock of one byte.
    let message = hex("0A 05 0A 01 61 38 01 0A 06 0A 00 38 02 58 01 12 01 7F");
    let object = Object::read(&message).unwrap();
    let alive = RiakContent { value: b"a", modified: (1, 0), deleted: false };
    let tombstone = RiakContent { value: b"", modified: (2, 0), deleted: true };
    assert_eq!(object.contents().collect::<Vec<_>>(), [alive, tombstone]);
    assert_eq!(object.vclock(), Some(&[0x7f][..]));
    // Unknown fields of every wire type are skipped.
    let message = hex("19 01 02 03 04 05 06 07 08 25 01 02 03 04 28 96 01 0A 03 0A 01 62");
    let object = Object::read(&message).unwrap();
    assert_eq!(object.contents().map(|content| content.value.to_vec()).collect::<Vec<_>>(), [b"b"]);
}

#[test]
fn frames_are_found_however_they_come() {
    let mut whole = hex(GOT);
    let length = whole.len();
    for so_far in 0..length {
        assert_eq!(scan(&whole[..so_far]), Ok(None), "{so_far} bytes");
    }
    whole.extend_from_slice(&[0, 0, 0]);
    assert_eq!(scan(&whole), Ok(Some((code::GOT, length))));
    assert!(scan(&[0, 0, 0, 0]).is_err(), "no code");
    assert!(scan(&[0xff; 5]).is_err(), "4 GiB");
    assert_eq!(message(&[0, 0, 0]), b"");
}

#[test]
fn messages_that_make_no_sense_are_refused() {
    for text in [
        "0A",                                  // a field without a length
        "0A 05 61",                            // a field that is cut
        "0A FF FF FF FF FF FF FF FF FF 01 61", // a length beyond all memory
        "0A 02 0A 09",                         // a content that is cut
        "08 01",                               // content as a number
        "12 80",                               // a number that never ends
        "0A 02 08 01",                         // a value as a number
        "0A 03 3A 01 61",                      // a time as bytes
        "07 01",                               // no such wire type
        "04",                                  // the end of a group that never began
    ] {
        assert!(Object::read(&hex(text)).is_err(), "{text}");
    }
}
