//! Java's `.properties`, read as `java.util.Properties.load` reads them: a workload file of YCSB means here what it
//! means there, whatever its backslashes, blanks and line ends. `tests/java_properties.rs` compares it with Java
//! itself.

/// One entry of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Text before the separator, without escapes.
    pub key: String,
    /// Text behind the separator, without escapes; blanks at its end belong to it.
    pub value: String,
    /// Line on which the entry begins, from 1.
    pub line: usize,
}

/// Error of an escape for which Java refuses the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Line on which the entry begins, from 1.
    pub line: usize,
}

/// Decodes a file: Java takes each byte for a character (ISO-8859-1).
#[must_use]
pub fn decode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Parses the entries in the order of the file; of several with one key Java keeps the last.
///
/// # Errors
/// [`Malformed`] for a `\u` without four hexadecimal digits.
pub fn parse(text: &str) -> Result<Vec<Property>, Malformed> {
    let mut lines = Lines { rest: text, line: 1 };
    let mut list = Vec::new();
    while let Some((line, logical)) = lines.next_logical() {
        let (key, value) = split(&logical);
        let unescaped = |part| unescape(part).ok_or(Malformed { line });
        list.push(Property { key: unescaped(key)?, value: unescaped(value)?, line });
    }
    Ok(list)
}

/// Returns true for Java's white space within a line.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

/// Natural lines of a text; an odd number of backslashes at the end of a line continues it on the next.
struct Lines<'a> {
    rest: &'a str,
    /// Number of the line that `rest` begins with.
    line: usize,
}

impl<'a> Lines<'a> {
    /// Returns the next line, and its end: `\n`, `\r`, both, or none.
    fn next_natural(&mut self) -> Option<(&'a str, &'a str)> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.find(['\n', '\r']).unwrap_or(self.rest.len());
        let (natural, rest) = self.rest.split_at(end);
        let (end, rest) =
            rest.split_at(if rest.starts_with("\r\n") { 2 } else { rest.len().min(1) });
        self.rest = rest;
        self.line += 1;
        Some((natural, end))
    }

    /// Returns the next entry with its first line's number: comments and blank lines are left out, continued lines
    /// put together without their indentation.
    fn next_logical(&mut self) -> Option<(usize, String)> {
        let (mut first, mut logical, mut continued) = (self.line, String::new(), false);
        loop {
            let number = self.line;
            let Some((natural, end)) = self.next_natural() else {
                return (!logical.is_empty()).then_some((first, logical));
            };
            let text = natural.trim_start_matches(is_blank);
            if logical.is_empty() {
                first = number;
                // Also after a line of nothing but a backslash.
                if text.starts_with(['#', '!']) {
                    continued = false;
                    continue;
                }
            }
            // A blank line that is continued to ends the entry, if there is any of it.
            if text.is_empty() && (!continued || logical.is_empty()) {
                continued = false;
                continue;
            }
            logical.push_str(text);
            let backslashes = text.len() - text.trim_end_matches('\\').len();
            continued = backslashes % 2 == 1;
            if continued {
                logical.pop();
            }
            // At the end of the file Java sees no more to continue with, unless a `\n` is left of it.
            if !continued || (self.rest.is_empty() && end != "\r\n") {
                return Some((first, logical));
            }
        }
    }
}

/// Splits a line into key and value: at `=` or `:` with blanks around it, or at blanks alone.
fn split(logical: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = logical.find(|c: char| {
        let separates = !escaped && (c == '=' || c == ':' || is_blank(c));
        escaped = c == '\\' && !escaped;
        separates
    });
    let (key, rest) = logical.split_at(end.unwrap_or(logical.len()));
    let rest = rest.trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, value.trim_start_matches(is_blank))
}

/// Returns the text that escapes stand for; `None` if a `\u` lacks its four digits.
fn unescape(part: &str) -> Option<String> {
    if !part.contains('\\') {
        return Some(part.to_owned());
    }
    // Java's characters are halves of 32 bits: two escapes may make one character.
    let mut units: Vec<u16> = Vec::with_capacity(part.len());
    let mut characters = part.chars();
    while let Some(c) = characters.next() {
        let escaped = if c == '\\' { characters.next()? } else { ' ' };
        if escaped == 'u' {
            let digit = |sum: u32, _: u32| Some(sum * 16 + characters.next()?.to_digit(16)?);
            units.push((0..4).try_fold(0, digit)? as u16);
            continue;
        }
        let plain = match escaped {
            _ if c != '\\' => c,
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'f' => '\x0c',
            other => other,
        };
        units.extend(plain.encode_utf16(&mut [0; 2]).iter());
    }
    Some(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String, usize)> {
        let list = parse(text).expect("well formed");
        list.into_iter().map(|p| (p.key, p.value, p.line)).collect()
    }

    /// Compares each file with what Java 17 read.
    #[test]
    fn entries_are_javas() {
        for (text, expected) in [
            ("a=C:\\\\data\\\\\nb=1", vec![("a", "C:\\data\\", 1), ("b", "1", 2)]),
            ("a=1\\\\\\\n  b=2", vec![("a", "1\\b=2", 1)]),
            ("a=1\\\n\n#b=2\nc=3", vec![("a", "1", 1), ("c", "3", 4)]),
            ("a=1\\\n#b=2\nc=3", vec![("a", "1#b=2", 1), ("c", "3", 3)]),
            ("\\\n#b=2\nc=3", vec![("c", "3", 3)]),
            ("a = 1  \r\n b:2\rc 3\t\n", vec![("a", "1  ", 1), ("b", "2", 2), ("c", "3\t", 3)]),
            ("a\\ b\\=c = \\ d", vec![("a b=c", " d", 1)]),
            ("a==1\nb = :2\nc := 3", vec![("a", "=1", 1), ("b", ":2", 2), ("c", "= 3", 3)]),
            ("\\u0061=\\u00e9\\t\\q\u{e9}", vec![("a", "\u{e9}\tq\u{e9}", 1)]),
            ("a=\\ud83d\\ude00", vec![("a", "\u{1f600}", 1)]),
            ("a\n=b\nc\\", vec![("a", "", 1), ("", "b", 2), ("c", "", 3)]),
            ("# a=1\\\nb=2\n!c=3", vec![("b", "2", 2)]),
            ("a=1\u{85}b=2\u{a0}", vec![("a", "1\u{85}b=2\u{a0}", 1)]),
            ("  \n\n\x0c a=1", vec![("a", "1", 3)]),
            ("\\", vec![("", "", 1)]),
            ("\\\n  ", vec![]),
            ("\\\r\n", vec![]),
            ("a=1\\\r\n", vec![("a", "1", 1)]),
            ("\\\n\n\\\n", vec![("", "", 3)]),
            ("a=\\\r\rb=2", vec![("a", "", 1), ("b", "2", 3)]),
        ] {
            let found = pairs(text);
            let found: Vec<(&str, &str, usize)> =
                found.iter().map(|(key, value, line)| (&**key, &**value, *line)).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn broken_escapes_are_refused_with_their_line() {
        for text in ["x=1\na=\\u12", "x=1\na=\\u12g4", "x=1\n\\u=3", "x=1\na=\\\\\\u00e"] {
            assert_eq!(parse(text), Err(Malformed { line: 2 }), "{text:?}");
        }
    }
}
