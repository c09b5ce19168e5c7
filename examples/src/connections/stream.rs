//! A stream whose writes fail if the peer does not read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// A stream with bounds on the time that what is written may take.
///
/// The peer must take some bytes within `stall`, and all that wait within `whole`. hyper flushes once it
/// has written everything it has, so a flush ends the time of an answer.
#[derive(Debug)]
pub(super) struct BoundedStream<S> {
    inner: S,
    stall: Duration,
    whole: Duration,
    blocked: Option<Blocked>,
}

#[derive(Debug)]
struct Blocked {
    /// Time by which everything must be written.
    end: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<S> BoundedStream<S> {
    pub(super) fn new(inner: S, stall: Duration, whole: Duration) -> Self {
        Self { inner, stall, whole, blocked: None }
    }

    /// Applies the bounds to the result of a write.
    fn bounded(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let now = Instant::now();
        let Self { stall, whole, blocked, .. } = self;
        if written.is_ready() {
            if let Some(Blocked { end, timer }) = blocked {
                timer.as_mut().reset((now + *stall).min(*end));
            }
            return written;
        }
        let blocked = blocked.get_or_insert_with(|| {
            let end = now + *whole;
            Blocked { end, timer: Box::pin(sleep_until((now + *stall).min(end))) }
        });
        ready!(blocked.timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.bounded(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.bounded(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.blocked = None;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Writes 8 bytes to a peer that has room for one and reads one every `pause`; the result, and the
    /// time it took.
    async fn write(pause: Duration) -> (io::Result<()>, Duration) {
        let (stream, mut peer) = duplex(1);
        let reads = tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                if peer.read(&mut [0]).await.unwrap_or(0) == 0 {
                    return;
                }
            }
        });
        let start = Instant::now();
        let mut stream =
            BoundedStream::new(stream, Duration::from_secs(10), Duration::from_secs(40));
        let mut written = stream.write_all(b"12345678").await;
        if written.is_ok() {
            written = stream.flush().await;
        }
        let took = start.elapsed();
        drop(stream);
        reads.abort();
        (written, took)
    }

    #[test]
    fn a_peer_must_read_in_time() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let seconds = Duration::from_secs;
        let (written, _) = runtime.block_on(write(seconds(5)));
        assert!(written.is_ok());
        // It reads nothing for the time of `stall`.
        let (written, took) = runtime.block_on(write(seconds(11)));
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(took < seconds(11), "{took:?}");
        // It always reads in time, but too slowly.
        let (written, took) = runtime.block_on(write(seconds(9)));
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(took >= seconds(40) && took < seconds(41), "{took:?}");
    }

    #[test]
    fn a_flush_ends_the_time_of_an_answer() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (stream, mut peer) = duplex(1);
            let seconds = Duration::from_secs;
            let mut stream = BoundedStream::new(stream, seconds(10), seconds(15));
            let reads = tokio::spawn(async move {
                loop {
                    tokio::time::sleep(seconds(6)).await;
                    peer.read_exact(&mut [0]).await.unwrap();
                }
            });
            for _ in 0..4 {
                stream.write_all(b"12").await.unwrap();
                stream.flush().await.unwrap();
            }
            reads.abort();
        });
    }
}
