//! Bytes to and from a server, over plain TCP, a Unix socket or TLS.

use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

/// An open connection to a server.
pub(crate) enum Stream {
    /// Plain TCP.
    Plain(TcpStream),
    /// A socket on this machine.
    Unix(UnixStream),
    /// TLS; boxed, for its state is large and this variant is the rarer one.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Reads what has come, at most `into.len()` bytes. 0 means that the server has closed.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain(tcp) => read(tcp, context, into),
            Stream::Unix(socket) => read(socket, context, into),
            Stream::Tls(tls) => {
                let mut buffer = ReadBuf::new(into);
                ready!(Pin::new(tls).poll_read(context, &mut buffer))?;
                Poll::Ready(Ok(buffer.filled().len()))
            }
        }
    }

    /// Writes the beginning of `bytes`, as much as the system takes.
    pub(crate) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain(tcp) => write(tcp, context, bytes),
            Stream::Unix(socket) => write(socket, context, bytes),
            Stream::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    /// Hands to the system what TLS still holds. The others hold nothing.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(_) | Stream::Unix(_) => Poll::Ready(Ok(())),
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

/// A socket of Tokio's whose bytes are moved without it.
trait Socket: AsFd {
    fn try_io<T>(&self, interest: Interest, call: impl FnOnce() -> io::Result<T>) -> io::Result<T>;
    fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}

macro_rules! socket {
    ($type:ty) => {
        impl Socket for $type {
            #[inline(always)]
            fn try_io<T>(
                &self,
                interest: Interest,
                call: impl FnOnce() -> io::Result<T>,
            ) -> io::Result<T> {
                <$type>::try_io(self, interest, call)
            }

            #[inline(always)]
            fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                <$type>::poll_read_ready(self, context)
            }

            #[inline(always)]
            fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                <$type>::poll_write_ready(self, context)
            }
        }
    };
}
socket!(TcpStream);
socket!(UnixStream);

#[inline(always)]
fn read(
    socket: &impl Socket,
    context: &mut Context<'_>,
    into: &mut [u8],
) -> Poll<io::Result<usize>> {
    let room = into.len();
    let mut read = || Ok(recv(socket, &mut *into, RecvFlags::empty())?.1);
    loop {
        if let Some(done) = attempt(socket, Interest::READABLE, room, &mut read) {
            return Poll::Ready(done);
        }
        ready!(socket.poll_read_ready(context))?;
    }
}

#[inline(always)]
fn write(socket: &impl Socket, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
    let mut write = || Ok(send(socket, bytes, SendFlags::NOSIGNAL)?);
    loop {
        if let Some(done) = attempt(socket, Interest::WRITABLE, bytes.len(), &mut write) {
            return Poll::Ready(done);
        }
        ready!(socket.poll_write_ready(context))?;
    }
}

/// One attempt to move up to `most` bytes; `None` if the socket is known not to be ready, or was found so.
///
/// The system is called without the C library, which in a process of several threads prepares each
/// call for cancellation: with that, and what Tokio's own `poll_read` and `poll_write` do besides, an operation
/// without a pipeline took 3 % more processor time.
///
/// A call that moves less than it could has left the socket with nothing to read or no room: Tokio is told, as its
/// own `poll_read` would tell itself, and the next attempt makes no system call.
#[inline(always)]
fn attempt(
    socket: &impl Socket,
    interest: Interest,
    most: usize,
    call: &mut impl FnMut() -> io::Result<usize>,
) -> Option<io::Result<usize>> {
    let mut moved = None;
    let tried = socket.try_io(interest, || {
        loop {
            match call() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(length) if 0 < length && length < most => {
                    moved = Some(length);
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                other => return other,
            }
        }
    });
    match (moved, tried) {
        (Some(length), _) => Some(Ok(length)),
        (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => None,
        (None, done) => Some(done),
    }
}
