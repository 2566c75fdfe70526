//! Whatever happens to a value's bytes, its stamp must tell.

use super::*;

fn identity(record: u64) -> Identity {
    Identity { dataset: 0xd5, session: 77, record, field: 3, version: 41 }
}

fn expected(record: u64) -> Expected<'static> {
    Expected { dataset: 0xd5, session: 77, record, field: 3, fabricated_key: None }
}

/// A payload in which no two neighbouring lengths or positions look alike.
fn sealed(length: usize, identity: &Identity) -> Vec<u8> {
    let mut state = length as u64 + 1;
    let mut bytes: Vec<u8> = (0..length)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        })
        .collect();
    seal(&mut bytes, identity);
    bytes
}

const RECORDS: [u64; 3] = [0, 123_456, 7 << 40 | 9];

#[test]
fn every_length_tells_its_version_and_session() {
    for length in SMALLEST..=5000 {
        for record in RECORDS {
            let bytes = sealed(length, &identity(record));
            let seen = check(&bytes, &expected(record)).unwrap();
            assert_eq!((seen.version(), seen.is_fabricated()), (41, false), "length {length}");
            let later = Expected { session: 78, ..expected(record) };
            let (now, then) = match Form::of(length).unwrap() {
                Form::Tiny => (WriterRun::Unseen, WriterRun::Unseen),
                _ => (WriterRun::Ours, WriterRun::Earlier),
            };
            assert_eq!(seen.session(), now, "length {length}");
            assert_eq!(check(&bytes, &later).unwrap().session(), then, "length {length}");
        }
    }
}

#[test]
fn a_run_that_began_later_is_told_from_an_earlier_one_around_the_end_of_the_number() {
    for (ours, other, told) in [
        (77, 76, WriterRun::Earlier),
        (77, 78, WriterRun::Newer),
        (77, 77 + (1 << 30), WriterRun::Newer),
        (u32::MAX, 2, WriterRun::Newer),
        (2, u32::MAX, WriterRun::Earlier),
    ] {
        for length in [16, 31, 32, 100] {
            let bytes = sealed(length, &Identity { session: other, ..identity(5) });
            let seen = check(&bytes, &Expected { session: ours, ..expected(5) }).unwrap();
            assert_eq!((seen.session(), seen.version()), (told, 41), "{other} read by {ours}");
            let near = (other.wrapping_sub(ours) as i32).unsigned_abs() < 1 << 28;
            assert_eq!(seen.writer(ours) == other, near, "{other} read by {ours}");
        }
    }
}

#[test]
fn a_stamp_takes_what_it_is_said_to() {
    for length in 0..200 {
        // Two payloads that differ in every byte: where the stamp lies, what it says is the same.
        let over = |payload: u8| {
            let mut bytes = vec![payload; length];
            seal(&mut bytes, &identity(5));
            bytes
        };
        let (one, two) = (over(0), over(0xff));
        let taken = taken(length);
        let alike = |at: usize| one[at] == two[at];
        // The first four bytes are the checksum, of the rest too.
        assert!((4..taken).all(alike), "length {length}");
        assert!((taken..length).all(|at| !alike(at)), "length {length}");
    }
}

#[test]
fn every_flipped_bit_is_seen() {
    let lengths = (SMALLEST..=140).chain([255, 256, 511, 1000, 1024, 4096, 5000]);
    for length in lengths {
        let mut bytes = sealed(length, &identity(5));
        for bit in 0..length * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let flaw = check(&bytes, &expected(5));
            assert!(flaw.is_err(), "bit {bit} of {length} bytes passed: {flaw:?}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        check(&bytes, &expected(5)).unwrap();
    }
}

#[test]
fn a_value_cut_short_or_extended_is_seen_at_every_length() {
    for length in SMALLEST..=5000 {
        let bytes = sealed(length, &identity(5));
        for cut in [1, 2, 7, 8, 16, length / 2, length - 1] {
            let kept = &bytes[..length.saturating_sub(cut)];
            assert!(check(kept, &expected(5)).is_err(), "{length} bytes cut by {cut} passed");
        }
        for (more, filler) in [(1, 0), (8, 0), (1, 0xff), (length, 0)] {
            let mut longer = bytes.clone();
            longer.resize(length + more, filler);
            assert!(check(&longer, &expected(5)).is_err(), "{length} bytes and {more} more passed");
        }
    }
}

#[test]
fn a_full_stamp_names_what_is_wrong() {
    let bytes = sealed(100, &identity(5));
    let wrong = |change: fn(&mut Expected<'static>)| {
        let mut asked = expected(5);
        change(&mut asked);
        check(&bytes, &asked).unwrap_err()
    };
    assert_eq!(wrong(|e| e.record = 6), StampFlaw::OtherRecord { record: 5 });
    assert_eq!(wrong(|e| e.field = 2), StampFlaw::OtherField { field: 3 });
    assert_eq!(wrong(|e| e.dataset = 1), StampFlaw::OtherDataset { dataset: 0xd5 });
    for kept in [99, 32, 31, 16, 15, 12] {
        let flaw = check(&bytes[..kept], &expected(5)).unwrap_err();
        assert_eq!(flaw, StampFlaw::Length { stamped: 100, found: kept });
    }
    assert_eq!(check(&[0; 50], &expected(5)), Err(StampFlaw::Missing { length: 50 }));
    assert_eq!(check(&[], &expected(5)), Err(StampFlaw::Missing { length: 0 }));
    let mut torn = bytes.clone();
    torn[60] ^= 1;
    assert!(matches!(check(&torn, &expected(5)), Err(StampFlaw::Checksum { length: 100, .. })));
}

#[test]
fn short_forms_refuse_other_records_fields_and_datasets() {
    for length in SMALLEST..FULL {
        let bytes = sealed(length, &identity(5));
        let asked = expected(5);
        for other in [
            Expected { record: 6, ..asked },
            Expected { record: 5 | 1 << 32, ..asked },
            Expected { field: 4, ..asked },
            Expected { dataset: 0xd6, ..asked },
        ] {
            assert!(check(&bytes, &other).is_err(), "{length} bytes passed as {other:?}");
        }
    }
    let flaw = check(&sealed(20, &identity(5)), &expected(6)).unwrap_err();
    assert_eq!(flaw, StampFlaw::OtherRecord { record: 5 });
}

#[test]
fn forms_go_by_length_and_say_what_they_miss() {
    assert_eq!(Form::of(7), None);
    assert_eq!(Form::of(8), Some(Form::Tiny));
    assert_eq!(Form::of(16), Some(Form::Short));
    assert_eq!(Form::of(32), Some(Form::Full));
    assert!(Form::Full.cannot_see().is_empty());
    assert!(Form::Tiny.cannot_see().len() > Form::Short.cannot_see().len());
    for note in [Form::Tiny, Form::Short].map(Form::cannot_see).concat() {
        assert!(
            note.contains(", because their short stamp does not "),
            "it lacks the cause: {note}"
        );
    }
    let mut bytes = [9; 7];
    seal(&mut bytes, &identity(1));
    assert_eq!(bytes, [9; 7]);
}

#[test]
fn fabricated_values_pass_only_for_their_key_and_only_when_asked_for() {
    for length in (SMALLEST..=200).chain([4096, 70_000]) {
        let mut template = vec![0x5a; length];
        fabricate_template(&mut template);
        for key in [&b"user1"[..], b"user2"] {
            let mut bytes = template.clone();
            fabricate_for(&mut bytes, key);
            let asked = Expected { fabricated_key: Some(key), ..expected(5) };
            assert!(check(&bytes, &asked).unwrap().is_fabricated(), "length {length}");
            assert!(check(&bytes, &expected(5)).is_err(), "{length} bytes passed as stored");
            let other = Expected { fabricated_key: Some(b"user3"), ..expected(5) };
            assert_eq!(check(&bytes, &other), Err(StampFlaw::OtherKey));
            assert!(check(&sealed(length, &identity(5)), &asked).is_err());
            assert!(check(&bytes[..length - 1], &asked).is_err());
            for bit in [0, 17, 35, 63, length * 8 - 1] {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(check(&bytes, &asked).is_err(), "bit {bit} of {length} passed");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}

#[test]
fn a_whole_record_divides_into_its_fields() {
    for lengths in [vec![32, 33, 100, 64], vec![8; 5], vec![20; 3], vec![31], vec![500]] {
        let fields = lengths.len() as u16;
        let mut whole = Vec::new();
        for (field, length) in lengths.iter().enumerate() {
            whole.extend(sealed(*length, &Identity { field: field as u16, ..identity(5) }));
        }
        let parts: Vec<&[u8]> = split(&whole, fields).map(Result::unwrap).collect();
        assert_eq!(parts.iter().map(|p| p.len()).collect::<Vec<_>>(), lengths);
        for (field, part) in parts.iter().enumerate() {
            check(part, &Expected { field: field as u16, ..expected(5) }).unwrap();
        }
        // What was cut or extended either does not divide, or a part of it is refused.
        for damaged in [&whole[..whole.len() - 1], &[&whole[..], &[0]].concat()] {
            let sound = split(damaged, fields).enumerate().all(|(field, part)| {
                let asked = Expected { field: field as u16, ..expected(5) };
                part.and_then(|part| check(part, &asked)).is_ok()
            });
            assert!(!sound, "{lengths:?} passed with {} bytes", damaged.len());
        }
    }
    assert!(split(&[0; 100], 2).any(|part| part.is_err()));
    assert!(split(&[], 0).next().is_none());
    assert!(split(&[1], 0).any(|part| part.is_err()));
}

#[test]
fn a_value_claims_its_version_and_session() {
    for length in SMALLEST..=200 {
        let claimed = claim(&sealed(length, &identity(9))).unwrap();
        let session = (Form::of(length) != Some(Form::Tiny)).then_some(77);
        assert_eq!(claimed, StampClaim { session, version: 41 }, "length {length}");
    }
    assert_eq!(claim(&[0; SMALLEST - 1]), None);
    assert_eq!(claim(&[0; 100]), None, "no stamp of ours");
}
