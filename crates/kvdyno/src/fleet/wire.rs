//! The line between a conductor and an agent: messages as JSON, in frames of tokio-util, over TLS of rustls. Each end
//! sends a message twice a second at least; an end that is silent for five seconds is gone.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

/// Time of silence after which an end counts as gone.
pub const SILENCE: Duration = Duration::from_secs(5);
/// Longest time for requests of an agent to end once the conductor is gone. It is less than the five seconds that are
/// promised, for the conductor's silence may have taken a while to be noticed.
pub const LAST: Duration = Duration::from_secs(4);
/// Longest time between two messages of an end.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Longest time for the handshake of two ends.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Longest message, bytes.
const LONGEST: usize = 64 << 20;

/// Sender of messages on a line. Every clone can send; when all are dropped the line is closed once all is sent.
#[derive(Clone, Debug)]
pub struct Sending(UnboundedSender<Vec<u8>>);

impl Sending {
    /// Makes the sender of a new line, with the receiver of the messages to be sent.
    pub fn new() -> (Sending, UnboundedReceiver<Vec<u8>>) {
        let (sink, source) = unbounded_channel();
        (Sending(sink), source)
    }

    /// Sends a message. A line that is gone drops it without an error, for the receiving thread learns that the line
    /// is gone.
    pub fn send(&self, message: &impl Serialize) {
        // Serialization cannot fail: keys and numbers of these types can stand in JSON.
        if let Ok(bytes) = serde_json::to_vec(message) {
            let _ = self.0.send(bytes);
        }
    }
}

/// Cause of a line's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// The other end closed it, or its process ended.
    Closed,
    /// Nothing was heard for [`SILENCE`].
    Silent,
    /// Another error, as text.
    Broken(String),
}

impl fmt::Display for LineEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineEnd::Closed => f.write_str("its connection was closed"),
            LineEnd::Silent => write!(f, "nothing was heard of it for {} s", SILENCE.as_secs()),
            LineEnd::Broken(why) => write!(f, "its connection broke: {why}"),
        }
    }
}

impl From<io::Error> for LineEnd {
    fn from(error: io::Error) -> LineEnd {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof => LineEnd::Closed,
            _ => LineEnd::Broken(error.to_string()),
        }
    }
}

/// Accepts the other end, if it has the token.
///
/// # Errors
/// If it has not, or nothing comes.
pub async fn accept(
    stream: TcpStream,
    config: Arc<ServerConfig>,
) -> io::Result<impl AsyncRead + AsyncWrite + Unpin> {
    stream.set_nodelay(true)?;
    within(TlsAcceptor::from(config).accept(stream)).await
}

/// Connects to a conductor.
///
/// # Errors
/// If nobody listens, or the other end has another token.
pub async fn reach(
    address: &str,
    config: Arc<ClientConfig>,
) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + use<>> {
    let stream = within(TcpStream::connect(address)).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("kvdyno").map_err(io::Error::other)?;
    within(TlsConnector::from(config).connect(name, stream)).await
}

async fn within<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(HANDSHAKE, work).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer")),
    }
}

/// Carries messages both ways until the line ends: sends what `outgoing` has, and calls `on_message` with what comes. A
/// line whose senders are all gone ends when all is sent and the other end has closed it, too.
pub async fn carry<M: DeserializeOwned>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    outgoing: UnboundedReceiver<Vec<u8>>,
    on_message: impl FnMut(M),
) -> LineEnd {
    let (read, write) = tokio::io::split(stream);
    let mut frames = LengthDelimitedCodec::builder();
    frames.max_frame_length(LONGEST);
    tokio::select! {
        end = listen(frames.new_read(read), on_message) => end,
        end = speak(frames.new_write(write), outgoing) => end,
    }
}

async fn listen<M: DeserializeOwned>(
    mut from: FramedRead<impl AsyncRead + Unpin, LengthDelimitedCodec>,
    mut on_message: impl FnMut(M),
) -> LineEnd {
    loop {
        match timeout(SILENCE, from.next()).await {
            Err(_) => return LineEnd::Silent,
            Ok(None) => return LineEnd::Closed,
            Ok(Some(Err(error))) => return error.into(),
            Ok(Some(Ok(frame))) if frame.is_empty() => {}
            Ok(Some(Ok(frame))) => match serde_json::from_slice(&frame) {
                Ok(message) => on_message(message),
                Err(error) => return LineEnd::Broken(error.to_string()),
            },
        }
    }
}

async fn speak(
    mut to: FramedWrite<impl AsyncWrite + Unpin, LengthDelimitedCodec>,
    mut outgoing: UnboundedReceiver<Vec<u8>>,
) -> LineEnd {
    loop {
        let message = match timeout(HEARTBEAT, outgoing.recv()).await {
            Ok(Some(message)) => message,
            Err(_) => Vec::new(),
            Ok(None) => {
                // All is sent. What the other end still sends is heard until it closes.
                let _ = SinkExt::<Bytes>::close(&mut to).await;
                return std::future::pending().await;
            }
        };
        if let Err(error) = to.send(Bytes::from(message)).await {
            return error.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::net::TcpListener;

    use super::*;
    use crate::fleet::token::Token;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    /// Connects two ends with these tokens. Returns what the agent heard, and how each end's line ended.
    fn talk(
        conductor: &Token,
        agent: &Token,
    ) -> (Vec<u32>, Result<LineEnd, String>, Option<String>) {
        let (server, client) = (conductor.of_conductor().unwrap(), agent.of_agent().unwrap());
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let received = Mutex::new(Vec::new());
            let serving = async {
                let (stream, _) = listener.accept().await.unwrap();
                let stream = accept(stream, server).await.map_err(|error| error.to_string())?;
                let (sending, outgoing) = Sending::new();
                (0..1_000_u32).for_each(|number| sending.send(&number));
                drop(sending);
                Ok(carry(stream, outgoing, |_: u32| {}).await)
            };
            let joining = async {
                let stream = match reach(&address, client).await {
                    Ok(stream) => stream,
                    Err(error) => return Some(error.to_string()),
                };
                let (_sending, outgoing) = Sending::new();
                carry(stream, outgoing, |number: u32| received.lock().unwrap().push(number)).await;
                None
            };
            let (served, joined) = tokio::join!(serving, joining);
            (received.into_inner().unwrap(), served, joined)
        })
    }

    #[test]
    fn messages_arrive_whole_and_in_order_and_a_closed_line_is_heard_of() {
        let token = Token::made().unwrap();
        let (received, served, joined) = talk(&token, &token);
        assert_eq!((served, joined), (Ok(LineEnd::Closed), None));
        assert_eq!(received, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn who_has_another_token_hears_nothing() {
        let (one, other) = (Token::made().unwrap(), Token::made().unwrap());
        let (received, served, joined) = talk(&one, &other);
        assert!(received.is_empty());
        assert!(served.is_err() && joined.is_some(), "{served:?} {joined:?}");
    }
}
