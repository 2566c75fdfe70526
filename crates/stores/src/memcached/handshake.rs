//! Makes a connection ready: authentication, and proof that the server knows our commands.

use kvdyno_core::store::{Answer, ErrorClass, Fault};

use super::codec::{Token, Tokens};
use super::{Wire, errors};
use crate::wire::{Dialogue, Effect};

/// Connects, sends `set auth 0 0 length` with `user password` as the value if there is a password
/// (doc/protocol.txt, "Authentication"), then `mn`, which old servers do not know, or
/// `version`.
pub(super) async fn open(wire: &Wire) -> Answer<Dialogue> {
    let mut dialogue = Dialogue::open(&wire.endpoint).await?;
    if let Some((user, password)) = wire.credentials.as_ref() {
        let token = format!("{user} {password}");
        let request = format!("set auth 0 0 {}\r\n{token}\r\n", token.len());
        match dialogue.ask::<Wire>(request.as_bytes()).await? {
            (Token::Done, _) => {}
            (_, bytes) => return Err(refused(&bytes, "; check user and password in the URL")),
        }
    }
    match dialogue.ask::<Wire>(wire.dialect.probe()).await? {
        (Token::Noop | Token::Line(_), _) => Ok(dialogue),
        (_, bytes) => Err(refused(&bytes, "")),
    }
}

/// The server is there and does not let us in.
fn refused(answer: &[u8], advice: &str) -> Fault {
    let (token, line) = Tokens::new(answer).next().unwrap_or((Token::Miss, b""));
    let mut fault = match token {
        Token::Error(_) => errors::fault(Effect::Read, line),
        _ => Fault::failed(ErrorClass::Rejected, String::from_utf8_lossy(answer).into_owned()),
    };
    if !fault.message.contains("in the URL") {
        fault.message.to_mut().push_str(advice);
    }
    fault.losing_connection()
}
