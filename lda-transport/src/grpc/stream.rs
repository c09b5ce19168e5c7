//! Byte streams that record why they ended.
//!
//! tonic and hyper report only that a connection has failed. [`MonitoredStream`] stands below them
//! and sees the cause: a TLS alert, the exit of the other program, a server of another protocol. It
//! also closes connections that send no hello in time, which hyper does not.

use std::io;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

use super::conn_state::{AuthState, ConnState, StreamEnd};
use super::error::ConnectError;
use super::node::Node;

/// A TCP stream, or TLS over one.
pub(super) trait Bytestream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Bytestream for S {}

/// Completes when a connection without a hello has to be closed.
pub(super) type HandshakeTimeout = Pin<Box<dyn Future<Output = ConnectError> + Send>>;

/// A byte stream that records reads and errors in a [`ConnState`].
pub(super) struct MonitoredStream<S> {
    stream: S,
    state: Arc<ConnState>,
    /// Node that counts rejections. `None` for an outgoing connection.
    node: Option<Arc<Node>>,
    /// `None` for an outgoing connection, and after the hello.
    timeout: Option<HandshakeTimeout>,
    /// Whether the first byte of a stream without TLS is still to be checked.
    checks_first_byte: bool,
    /// Error of a write that has failed, held back until reads have shown its cause.
    write_error: Option<io::Error>,
}

/// First bytes of a TLS record: change cipher spec, alert, handshake, application data.
///
/// An HTTP/2 stream cannot begin with one of them: the first frame would be longer than 1 MiB.
const TLS_RECORD_TYPES: RangeInclusive<u8> = 0x14..=0x17;

impl<S> MonitoredStream<S> {
    /// Wraps an outgoing connection.
    pub fn dialed(stream: S, state: Arc<ConnState>, encrypted: bool) -> Self {
        let checks_first_byte = !encrypted;
        Self { stream, state, node: None, timeout: None, checks_first_byte, write_error: None }
    }

    /// Wraps a connection that `node` has accepted.
    pub fn accepted(
        stream: S,
        state: Arc<ConnState>,
        node: Arc<Node>,
        timeout: HandshakeTimeout,
    ) -> Self {
        let checks_first_byte = node.tls.is_none();
        let (node, timeout) = (Some(node), Some(timeout));
        Self { stream, state, node, timeout, checks_first_byte, write_error: None }
    }

    /// Records the result of a read.
    fn record(&mut self, result: &io::Result<()>, bytes: &[u8]) {
        match (result, bytes.first()) {
            (Err(error), _) => self.state.set_end(match error.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe => StreamEnd::Eof,
                _ => StreamEnd::Failed(ConnectError::from_io(error)),
            }),
            (Ok(()), None) => self.state.set_end(StreamEnd::Eof),
            (Ok(()), Some(first)) => {
                self.state.record_read();
                if std::mem::take(&mut self.checks_first_byte) && TLS_RECORD_TYPES.contains(first) {
                    self.state.set_end(StreamEnd::Failed(ConnectError::PeerUsesTls));
                }
            }
        }
    }

    /// Fails when the handshake has timed out.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(timeout) = &mut self.timeout else { return Ok(()) };
        if !self.state.is_below(AuthState::Peer) {
            self.timeout = None;
        } else if let Poll::Ready(rejection) = timeout.as_mut().poll(cx) {
            self.timeout = None;
            let error = io::Error::new(io::ErrorKind::TimedOut, rejection.to_string());
            if self.state.reject(rejection) {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> MonitoredStream<S> {
    /// Reads to the end after a failed write, as the cause, such as a TLS alert, may still arrive.
    /// The reads end too when the other system has closed the connection.
    fn poll_read_cause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; 1 << 10];
        loop {
            let mut buf = ReadBuf::new(&mut bytes);
            let result = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf));
            self.record(&result, buf.filled());
            if result.is_err() || buf.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }

    /// Writes with `write`. Reports a failure only after its cause has been read.
    fn poll_write_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.write_error.is_none() {
            match ready!(write(Pin::new(&mut self.stream), cx)) {
                Ok(written) => return Poll::Ready(Ok(written)),
                Err(error) => self.write_error = Some(error),
            }
        }
        ready!(self.poll_read_cause(cx));
        Poll::Ready(Err(self.write_error.take().expect("a write error is stored")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MonitoredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.poll_timeout(cx)?;
        let (filled, capacity) = (buf.filled().len(), buf.remaining());
        let read = ready!(Pin::new(&mut this.stream).poll_read(cx, buf));
        if capacity > 0 {
            this.record(&read, &buf.filled()[filled..]);
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for MonitoredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_with(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S> Connected for MonitoredStream<S> {
    type ConnectInfo = Arc<ConnState>;

    fn connect_info(&self) -> Arc<ConnState> {
        Arc::clone(&self.state)
    }
}

impl<S> Drop for MonitoredStream<S> {
    fn drop(&mut self) {
        self.state.mark_closed();
        if let Some(node) = &self.node
            && let Some(StreamEnd::Failed(error)) = self.state.end()
            && self.state.is_below(AuthState::HealthClient)
        {
            node.record_rejection(&self.state, error);
        }
    }
}
