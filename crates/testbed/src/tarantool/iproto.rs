//! One question in Lua to a Tarantool server, over the protocol that clients speak.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Length of the greeting of a server.
const GREETING: usize = 128;

/// Length of an answer's header, after that of the packet; its outcome stands at the third byte.
const HEADER: usize = 23;

/// Runs an expression that returns one text.
///
/// # Errors
/// In words, the server's own where it refuses.
pub(super) fn eval(server: SocketAddr, lua: &str) -> Result<String, String> {
    let answer = ask(server, lua).map_err(|error| format!("it does not answer: {error}"))?;
    let (refused, text) = read(&answer).ok_or("it gives no answer that makes sense")?;
    if refused { Err(text) } else { Ok(text) }
}

fn ask(server: SocketAddr, lua: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.read_exact(&mut [0; GREETING])?;
    stream.write_all(&request(lua))?;
    let mut length = [0; 5];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes([length[1], length[2], length[3], length[4]]) as usize;
    let mut answer = vec![0; length.min(1 << 20)];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// A packet of MessagePack: its length, a header with kind 8, a body of the expression and no arguments.
fn request(lua: &str) -> Vec<u8> {
    let mut packet = vec![0x82, 0x00, 8, 0x01, 0, 0x82, 0x27, 0xdb];
    packet.extend_from_slice(&(lua.len() as u32).to_be_bytes());
    packet.extend_from_slice(lua.as_bytes());
    packet.extend_from_slice(&[0x21, 0x90]);
    let mut out = vec![0xce];
    out.extend_from_slice(&(packet.len() as u32).to_be_bytes());
    out.extend(packet);
    out
}

/// Finds the one text of an answer, and whether it is an error.
fn read(answer: &[u8]) -> Option<(bool, String)> {
    let refused = *answer.get(5)? & 0x80 != 0;
    // A map with one key, before an error its text, else a list with one member.
    let text = answer.get(HEADER + if refused { 2 } else { 7 }..)?;
    let (begin, length): (usize, usize) = match *text.first()? {
        head @ 0xa0..=0xbf => (1, usize::from(head & 0x1f)),
        0xd9 => (2, usize::from(*text.get(1)?)),
        0xda => (3, usize::from(u16::from_be_bytes(text.get(1..3)?.try_into().ok()?))),
        0xdb => (5, u32::from_be_bytes(text.get(1..5)?.try_into().ok()?) as usize),
        _ => return None,
    };
    let text = text.get(begin..begin.checked_add(length)?)?;
    Some((refused, String::from_utf8_lossy(text).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_answer_or_of_an_error_is_found() {
        let header = |code: u16| {
            let mut header = vec![0x83, 0x00, 0xce, 0, 0];
            header.extend_from_slice(&code.to_be_bytes());
            header
                .extend_from_slice(&[0x01, 0xcf, 0, 0, 0, 0, 0, 0, 0, 0, 0x05, 0xce, 0, 0, 0, 80]);
            assert_eq!(header.len(), HEADER);
            header
        };
        let answer = [&header(0)[..], &[0x81, 0x30, 0xdd, 0, 0, 0, 1, 0xa2], b"ok"].concat();
        assert_eq!(read(&answer), Some((false, "ok".to_owned())));
        let long =
            [&header(0)[..], &[0x81, 0x30, 0xdd, 0, 0, 0, 1, 0xd9, 40], &[b'x'; 40]].concat();
        assert_eq!(read(&long), Some((false, "x".repeat(40))));
        let error =
            [&header(0x8020)[..], &[0x82, 0x31, 0xdb, 0, 0, 0, 2], b"no", &[0x52, 0x80]].concat();
        assert_eq!(read(&error), Some((true, "no".to_owned())));
        assert_eq!(read(&answer[..answer.len() - 1]), None);
        assert_eq!(read(&[]), None);
    }
}
