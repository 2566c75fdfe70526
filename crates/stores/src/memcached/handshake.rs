//! Makes a connection ready: authentication, and proof that the server knows our commands.

use std::sync::atomic::Ordering;

use kvdyno_core::store::{Answer, ErrorClass, RequestError};

use super::codec::{Token, Tokens};
use super::{Dialect, Wire, errors};
use crate::wire::{Dialogue, Effect, is_closed};

/// Connects, sends `set auth 0 0 length` with `user password` as the value if there is a password
/// (doc/protocol.txt, "Authentication"), then `mn`, which old servers do not know, or
/// `version`. A server that closes the connection at one of these is asked for less on the next one, down
/// to a `get`, unless the URL says in which words it is to be spoken to.
pub(super) async fn open(wire: &Wire) -> Answer<Dialogue> {
    let spoken = &wire.spoken;
    if spoken.dialect() == Dialect::Meta {
        match probe(wire, b"mn\r\n").await {
            Err(error) if spoken.asked.is_none() && is_closed(&error) => {}
            proven => return proven,
        }
    }
    if !spoken.closes_at_version() {
        match probe(wire, b"version\r\n").await {
            Err(error) if is_closed(&error) => {}
            proven => {
                let dialogue = proven?;
                spoken.closes_at_meta.store(true, Ordering::Relaxed);
                return Ok(dialogue);
            }
        }
    }
    // Every server and proxy of this protocol knows it.
    let dialogue = probe(wire, b"get kvdyno-probe\r\n").await?;
    spoken.closes_at_meta.store(true, Ordering::Relaxed);
    spoken.closes_at_version.store(true, Ordering::Relaxed);
    Ok(dialogue)
}

/// A connection on which the server has answered `command`.
async fn probe(wire: &Wire, command: &[u8]) -> Answer<Dialogue> {
    let mut dialogue = Dialogue::open(&wire.endpoint).await?;
    if let Some((user, password)) = wire.credentials.as_ref() {
        let token = format!("{user} {password}");
        let request = format!("set auth 0 0 {}\r\n{token}\r\n", token.len());
        match dialogue.ask::<Wire>(request.as_bytes()).await? {
            (Token::Done, _) => {}
            (_, bytes) => return Err(refused(&bytes, "; check user and password in the URL")),
        }
    }
    match dialogue.ask::<Wire>(command).await? {
        (Token::Noop | Token::Line(_) | Token::Miss | Token::Value(_), _) => Ok(dialogue),
        (_, bytes) => Err(refused(&bytes, "")),
    }
}

/// Returns the error of a server that is there and does not let us in.
fn refused(answer: &[u8], advice: &str) -> RequestError {
    let (token, line) = Tokens::new(answer).next().unwrap_or((Token::Miss, b""));
    let mut error = match token {
        Token::Error(_) => errors::request_error(Effect::Read, line),
        _ => {
            RequestError::failed(ErrorClass::Rejected, String::from_utf8_lossy(answer).into_owned())
        }
    };
    if !error.message.contains("in the URL") {
        error.message.to_mut().push_str(advice);
    }
    error.losing_connection()
}
