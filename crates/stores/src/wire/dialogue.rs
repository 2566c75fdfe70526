//! One request at a time over a fresh connection: for handshakes and for asking a server what
//! it is. Not for the load.

use std::io;

use kvdyno_core::store::{Answer, ErrorClass, RequestError};

use super::stream::Stream;
use super::{Endpoint, LARGEST_ANSWER, Protocol};

/// Returns true if the connection was closed before there was an answer.
pub(crate) fn is_closed(error: &RequestError) -> bool {
    error.class == ErrorClass::Refused && error.connection_lost
}

/// Connects to one of `servers`: to the one that has the number `first` (counted round), else to the first after it that
/// `greet` succeeds with. Returns the connection and the server's number. Each has the time that a request may take.
///
/// # Errors
/// A refusal of credentials, which every server would repeat; else the error of the first that was tried.
#[cfg(any(feature = "riak", feature = "tarantool"))]
pub(crate) async fn reach_one(
    servers: &[Endpoint],
    first: usize,
    greet: impl AsyncFn(&Endpoint) -> Answer<Dialogue>,
) -> Answer<(Dialogue, usize)> {
    let mut error = None;
    for tried in 0..servers.len() {
        let number = first.wrapping_add(tried) % servers.len();
        let server = &servers[number];
        match server.bounded(greet(server)).await {
            Ok(dialogue) => return Ok((dialogue, number)),
            Err(refusal) if refusal.class == ErrorClass::Rejected => return Err(refusal),
            Err(refusal) => error = error.or(Some(refusal)),
        }
    }
    Err(error.unwrap_or_else(|| RequestError::failed(ErrorClass::Refused, "no server")))
}

/// A connection on which requests are answered one by one.
pub(crate) struct Dialogue {
    stream: Stream,
    peer: String,
    /// Bytes received and not yet part of an answer that was given out.
    input: Vec<u8>,
}

impl Dialogue {
    /// Connects. Bound the whole dialogue with [`Endpoint::bounded`].
    pub(crate) async fn open(endpoint: &Endpoint) -> Answer<Dialogue> {
        let stream = endpoint.connect().await?;
        Ok(Dialogue { stream, peer: endpoint.name(), input: Vec::new() })
    }

    /// Sends `request` and waits for one reply; gives what is known of it and its bytes.
    pub(crate) async fn ask<P: Protocol>(&mut self, request: &[u8]) -> Answer<(P::Reply, Vec<u8>)> {
        self.stream.write_all(request).await.map_err(|e| self.lost(&e))?;
        self.receive::<P>().await
    }

    /// Waits for one more reply to the request that was sent.
    pub(crate) async fn receive<P: Protocol>(&mut self) -> Answer<(P::Reply, Vec<u8>)> {
        let mut progress = P::Progress::default();
        loop {
            let found = P::scan(&mut progress, 1, &self.input).map_err(|malformed| {
                let message =
                    format!("kvdyno does not understand the answer of {}: {malformed}", self.peer);
                RequestError::failed(ErrorClass::Protocol, message).losing_connection()
            })?;
            if let Some((reply, length)) = found {
                let rest = self.input.split_off(length);
                return Ok((reply, std::mem::replace(&mut self.input, rest)));
            }
            if self.input.len() > LARGEST_ANSWER {
                let message = format!("an answer of {} is too large", self.peer);
                return Err(RequestError::failed(ErrorClass::Protocol, message).losing_connection());
            }
            let mut chunk = [0; 4096];
            let read = self.stream.read(&mut chunk).await.map_err(|e| self.lost(&e))?;
            if read == 0 {
                return Err(self.lost(&io::ErrorKind::UnexpectedEof.into()));
            }
            self.input.extend_from_slice(&chunk[..read]);
        }
    }

    /// Hands the connection over to the load.
    pub(crate) fn into_stream(self) -> Answer<Stream> {
        if self.input.is_empty() {
            return Ok(self.stream);
        }
        let message = format!("{} sent more than it was asked for", self.peer);
        Err(RequestError::failed(ErrorClass::Protocol, message).losing_connection())
    }

    fn lost(&self, error: &io::Error) -> RequestError {
        let message = match error.kind() {
            io::ErrorKind::UnexpectedEof => format!("{} closed the connection", self.peer),
            _ => format!("the connection to {} is lost: {error}", self.peer),
        };
        RequestError::failed(ErrorClass::Refused, message).losing_connection()
    }
}
