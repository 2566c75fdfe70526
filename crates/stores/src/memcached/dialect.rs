//! The words of requests to a Memcached server: meta commands, or the text commands that every server of this protocol knows
//! (doc/protocol.txt, "Storage commands", "Retrieval command").

use super::codec;
use crate::wire::push_decimal;

/// Commands that go on the wire. The codec reads the replies of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `mg`, `ms`, `md`, since Memcached 1.6.
    #[default]
    Meta,
    /// `get`, `set`, `delete`.
    Text,
}

impl Dialect {
    /// Asks for the value of a record.
    #[inline]
    pub(super) fn push_get(self, out: &mut Vec<u8>, key: &[u8]) {
        match self {
            Dialect::Meta => codec::push_get(out, key),
            Dialect::Text => push_line(out, b"get ", key),
        }
    }

    /// Writes a record; `expiry` as [`codec::expiry`] gives it.
    #[inline]
    pub(super) fn push_set(self, out: &mut Vec<u8>, key: &[u8], value: &[u8], expiry: Option<u64>) {
        if self == Dialect::Meta {
            return codec::push_set(out, key, value, expiry);
        }
        out.extend_from_slice(b"set ");
        out.extend_from_slice(key);
        out.extend_from_slice(b" 0 ");
        // 0 means for ever.
        push_decimal(out, expiry.unwrap_or(0));
        out.push(b' ');
        push_decimal(out, value.len() as u64);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }

    /// Deletes a record.
    #[inline]
    pub(super) fn push_delete(self, out: &mut Vec<u8>, key: &[u8]) {
        match self {
            Dialect::Meta => codec::push_delete(out, key),
            Dialect::Text => push_line(out, b"delete ", key),
        }
    }
}

fn push_line(out: &mut Vec<u8>, command: &[u8], key: &[u8]) {
    out.extend_from_slice(command);
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_commands_are_as_documented() {
        let mut out = Vec::new();
        Dialect::Text.push_get(&mut out, b"key1");
        Dialect::Text.push_set(&mut out, b"key1", b"a\r\nb", None);
        Dialect::Text.push_set(&mut out, b"key1", b"", Some(30));
        Dialect::Text.push_delete(&mut out, b"key1");
        let expected =
            b"get key1\r\nset key1 0 0 4\r\na\r\nb\r\nset key1 0 30 0\r\n\r\ndelete key1\r\n";
        assert_eq!(out, expected);
    }
}
