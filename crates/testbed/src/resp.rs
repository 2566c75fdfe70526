//! The server's side of Redis' protocol (redis.io, "Redis serialization protocol specification",
//! version 2): reads requests, writes answers. It is what `sim` and served engines speak; the log on disk of
//! `sim` is written in requests, too.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// Longest request word, bytes; more is not believed.
const LONGEST: usize = 512 << 20;

/// A request: its words.
pub type Request = Vec<Vec<u8>>;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespAnswer {
    /// A short text: `OK`, `PONG`.
    Status(&'static str),
    /// A code and a text.
    Error(String),
    /// A whole number.
    Number(u64),
    /// A text of any length.
    Text(String),
    /// A value; `None`: there is none.
    Value(Option<Arc<[u8]>>),
    /// Several answers, in order.
    List(Vec<RespAnswer>),
    /// A list that is not there.
    NoList,
    /// No answer: the connection is closed, so that nobody knows what became of the request.
    HangUp,
    /// No answer, ever: the connection stays open.
    Silence,
}

impl RespAnswer {
    /// Writes the answer.
    ///
    /// # Errors
    /// The connection's error.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            RespAnswer::Status(text) => write!(to, "+{text}\r\n"),
            RespAnswer::Error(text) => write!(to, "-{text}\r\n"),
            RespAnswer::Number(number) => write!(to, ":{number}\r\n"),
            RespAnswer::Text(text) => write_bulk(to, text.as_bytes()),
            RespAnswer::Value(Some(value)) => write_bulk(to, value),
            RespAnswer::Value(None) => to.write_all(b"$-1\r\n"),
            RespAnswer::NoList => to.write_all(b"*-1\r\n"),
            RespAnswer::List(answers) => {
                write!(to, "*{}\r\n", answers.len())?;
                answers.iter().try_for_each(|answer| answer.write(to))
            }
            RespAnswer::HangUp | RespAnswer::Silence => Ok(()),
        }
    }
}

fn write_bulk(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    write!(to, "${}\r\n", bytes.len())?;
    to.write_all(bytes)?;
    to.write_all(b"\r\n")
}

/// Returns a request as bytes.
#[must_use]
pub fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        write_bulk(&mut bytes, word).expect("memory takes all bytes");
    }
    bytes
}

/// Reads the next request; `None` at the end. A line that is no array is taken for words, as people type them.
///
/// # Errors
/// The connection's error, or that a request was cut short.
pub fn read_request(from: &mut impl BufRead) -> io::Result<Option<Request>> {
    let Some(line) = read_line(from)? else { return Ok(None) };
    let Some(count) = line.strip_prefix('*') else {
        return Ok(Some(line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()));
    };
    let count = number(count)?;
    let mut words = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        let line = read_line(from)?.ok_or_else(cut_short)?;
        let length = number(line.strip_prefix('$').ok_or_else(cut_short)?)?;
        let mut word = Vec::new();
        from.by_ref().take(length as u64 + 2).read_to_end(&mut word)?;
        if word.len() != length + 2 {
            return Err(cut_short());
        }
        word.truncate(length);
        words.push(word);
    }
    Ok(Some(words))
}

/// Reads a line without its end; `None` at the end of all.
///
/// # Errors
/// See [`read_request`].
pub fn read_line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    match from.by_ref().take(1 << 16).read_line(&mut line)? {
        0 => Ok(None),
        _ if !line.ends_with('\n') => Err(cut_short()),
        _ => Ok(Some(line.trim_end().to_owned())),
    }
}

/// Handler of the requests of a connection.
pub trait Answerer {
    /// Carries out a request.
    fn answer(&mut self, request: &Request) -> RespAnswer;

    /// Notes that every answer so far was handed to the system, which sends it whatever becomes of this process.
    fn sent(&mut self) {}
}

impl<F: FnMut(&Request) -> RespAnswer> Answerer for F {
    fn answer(&mut self, request: &Request) -> RespAnswer {
        self(request)
    }
}

/// Answers the requests of a connection, one after the other, until it is closed.
///
/// # Errors
/// The connection's error.
pub fn converse(stream: TcpStream, answerer: &mut impl Answerer) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = BufWriter::new(stream);
    while let Some(request) = read_request(&mut reader)? {
        match answerer.answer(&request) {
            RespAnswer::HangUp => break,
            RespAnswer::Silence => {
                writer.flush()?;
                return io::copy(&mut reader.by_ref(), &mut io::sink()).map(drop);
            }
            answer => answer.write(&mut writer)?,
        }
        // Pipelined requests are answered together.
        if reader.buffer().is_empty() {
            writer.flush()?;
            answerer.sent();
        }
    }
    Ok(())
}

fn number(text: &str) -> io::Result<usize> {
    text.parse().ok().filter(|number| *number <= LONGEST).ok_or_else(cut_short)
}

fn cut_short() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_again_and_a_cut_is_noticed() {
        let bytes = encode(&[b"SET", b"key", b"\r\n*1\0"]);
        let words = vec![b"SET".to_vec(), b"key".to_vec(), b"\r\n*1\0".to_vec()];
        assert_eq!(read_request(&mut &bytes[..]).unwrap(), Some(words));
        for length in 1..bytes.len() {
            assert!(read_request(&mut &bytes[..length]).is_err(), "{length}");
        }
        assert_eq!(read_request(&mut &b""[..]).unwrap(), None);
        let typed = read_request(&mut &b"PING x\r\n"[..]).unwrap();
        assert_eq!(typed, Some(vec![b"PING".to_vec(), b"x".to_vec()]));
        assert!(read_request(&mut &b"*1\r\n$99999999999\r\n"[..]).is_err());
    }

    #[test]
    fn answers_are_written_as_the_protocol_has_them() {
        let value = RespAnswer::Value(Some(Arc::from(&b"v"[..])));
        let list = RespAnswer::List(vec![RespAnswer::Number(7), value, RespAnswer::Value(None)]);
        let mut bytes = Vec::new();
        list.write(&mut bytes).unwrap();
        RespAnswer::Error("READONLY no".to_owned()).write(&mut bytes).unwrap();
        RespAnswer::NoList.write(&mut bytes).unwrap();
        RespAnswer::Silence.write(&mut bytes).unwrap();
        assert_eq!(bytes, b"*3\r\n:7\r\n$1\r\nv\r\n$-1\r\n-READONLY no\r\n*-1\r\n");
    }
}
