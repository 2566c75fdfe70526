//! Bytes to and from a server, over plain TCP or TLS.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// An open connection to a server.
pub(crate) enum Stream {
    /// Plain TCP.
    Plain(TcpStream),
    /// TLS; boxed, for its state is large and this variant is the rarer one.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Reads what has come, at most `into.len()` bytes. 0 means that the server has closed.
    ///
    /// A read that fills less than `into` has drained a plain socket, and Tokio knows that: the
    /// next call then answers `Pending` without a system call.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        match self {
            Stream::Plain(tcp) => ready!(Pin::new(tcp).poll_read(context, &mut buffer))?,
            Stream::Tls(tls) => ready!(Pin::new(tls).poll_read(context, &mut buffer))?,
        }
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Writes the beginning of `bytes`, as much as the system takes.
    pub(crate) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Stream::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    /// Hands to the system what TLS still holds. Plain TCP holds nothing.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(_) => Poll::Ready(Ok(())),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    /// Writes all of `bytes`; for set-up, not for the load.
    pub(crate) async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = poll_fn(|context| self.poll_write(context, bytes)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
        }
        poll_fn(|context| self.poll_flush(context)).await
    }

    /// Reads what comes next; for set-up, not for the load.
    pub(crate) async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_read(context, into)).await
    }
}
