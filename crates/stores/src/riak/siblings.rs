//! Chooses the sibling of a record that counts.
//!
//! Riak leaves that to the application. What kvdyno writes carries a stamp (kvdyno-core,
//! `verify::stamp`) with the version, which grows with every write of a record, and the run that
//! wrote it. So:
//!
//! 1. The sibling that was written last by the clocks of the nodes tells the run. If it is a
//!    tombstone, the record is deleted.
//! 2. Of the siblings of that run the highest version counts; of the same version the one written last.
//!
//! Without such a stamp the value written last counts. (A record of several short fields has a stamp in each field
//! only, and values of less than 8 bytes have none.)

use kvdyno_core::verify::stamp::claim;

use super::codec::{Contents, RiakContent};

/// Returns the value that counts; `None` if there is no such record, or it is deleted.
pub(super) fn newest<'a>(contents: &Contents<'a>) -> Option<RiakContent<'a>> {
    let mut all = contents.clone();
    let first = all.next()?;
    let last =
        all.fold(first, |best, next| if next.modified > best.modified { next } else { best });
    if last.deleted {
        return None;
    }
    let Some(claimed) = claim(last.value) else { return Some(last) };
    let mut best = (claimed.version, last);
    for sibling in contents.clone().filter(|sibling| !sibling.deleted) {
        let Some(other) = claim(sibling.value) else { continue };
        let later = (other.version, sibling.modified) > (best.0, best.1.modified);
        if other.session == claimed.session && later {
            best = (other.version, sibling);
        }
    }
    Some(best.1)
}

#[cfg(test)]
mod tests {
    use kvdyno_core::verify::stamp::{Identity, seal};

    use super::super::codec::Object;
    use super::*;

    fn value(length: usize, session: u32, version: u32) -> Vec<u8> {
        let mut bytes = vec![7; length];
        seal(&mut bytes, &Identity { dataset: 1, session, record: 5, field: 0, version });
        bytes
    }

    /// An `RpbGetResp` of values as (bytes, second of writing); empty bytes are a tombstone.
    fn got(siblings: &[(&[u8], u8)]) -> Vec<u8> {
        let mut message = Vec::new();
        for (value, second) in siblings {
            let mut content = vec![0x0a, value.len() as u8];
            content.extend_from_slice(value);
            content.extend_from_slice(&[0x38, *second]);
            if value.is_empty() {
                content.extend_from_slice(&[0x58, 1]);
            }
            message.extend_from_slice(&[0x0a, content.len() as u8]);
            message.extend_from_slice(&content);
        }
        message
    }

    fn chosen(siblings: &[(&[u8], u8)]) -> Option<Vec<u8>> {
        let message = got(siblings);
        newest(&Object::read(&message).unwrap().contents()).map(|content| content.value.to_vec())
    }

    #[test]
    fn the_highest_version_of_the_last_run_counts() {
        for length in [8, 16, 100] {
            let (third, fourth) = (value(length, 1, 3), value(length, 1, 4));
            // The node that wrote version 3 has a clock that is ahead.
            assert_eq!(chosen(&[(&fourth, 10), (&third, 20)]).unwrap(), fourth, "{length} bytes");
            assert_eq!(chosen(&[(&third, 20), (&fourth, 10)]).unwrap(), fourth, "{length} bytes");
        }
        let (old, new) = (value(100, 1, 9), value(100, 2, 1));
        assert_eq!(chosen(&[(&old, 10), (&new, 20)]).unwrap(), new, "of an earlier run");
    }

    #[test]
    fn without_stamps_the_one_written_last_counts() {
        assert_eq!(chosen(&[(b"b", 2), (b"c", 3), (b"a", 1)]).unwrap(), b"c");
        let (one, two) = (vec![1; 40], vec![2; 40]);
        assert_eq!(chosen(&[(&one, 2), (&two, 1)]).unwrap(), one);
    }

    #[test]
    fn a_tombstone_counts_if_it_is_the_last() {
        let alive = value(100, 1, 3);
        assert_eq!(chosen(&[(&alive, 1), (b"", 2)]), None);
        assert_eq!(chosen(&[(b"", 1), (&alive, 2)]).unwrap(), alive);
        assert_eq!(chosen(&[]), None);
    }
}
