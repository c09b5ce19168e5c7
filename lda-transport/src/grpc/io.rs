//! Bytes of a connection, and what is known of who is at the other end.
//!
//! tonic and hyper see a stream of bytes and tell, when it fails, that it has failed. Here stands between them
//! what sees why: the alert of TLS, the end of the other's program, a server of another protocol. It also
//! ends what has not said in time who it is, which hyper does not.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tonic::transport::server::Connected;

use super::error::Trouble;
use super::node::Node;

/// What is known of the other end.
#[derive(Debug)]
pub(super) struct Party {
    pub address: SocketAddr,
    rank: AtomicU8,
    gone: AtomicBool,
    left: Notify,
    refused: AtomicBool,
    certificate: Mutex<Option<CertificateDer<'static>>>,
    end: Mutex<Option<End>>,
    dismissed: Notify,
    since: Instant,
    /// When something was last read, in ms since then.
    heard: AtomicU64,
}

/// What it has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Rank {
    /// It has connected.
    Stranger,
    /// It has asked for the health. It may stay, until there are too many.
    Guest,
    /// It has said its hello.
    Peer,
}

/// How a stream of bytes ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// By the other's system, in order or not: its program has closed the connection, or ended.
    Over,
    Failed(Trouble),
}

impl Party {
    pub fn new(address: SocketAddr, rank: Rank) -> Arc<Self> {
        Arc::new(Self {
            address,
            rank: AtomicU8::new(rank as u8),
            gone: AtomicBool::new(false),
            left: Notify::new(),
            refused: AtomicBool::new(false),
            certificate: Mutex::default(),
            end: Mutex::default(),
            dismissed: Notify::new(),
            since: Instant::now(),
            heard: AtomicU64::new(0),
        })
    }

    /// Takes it up to a rank, from a lower one.
    pub fn rise(&self, rank: Rank) {
        self.rank.fetch_max(rank as u8, SeqCst);
    }

    pub fn is_below(&self, rank: Rank) -> bool {
        self.rank.load(SeqCst) < rank as u8
    }

    /// Whether it is there, and has not said who it is.
    pub fn waits(&self) -> bool {
        self.is_below(Rank::Peer) && !self.gone.load(SeqCst)
    }

    pub fn leave(&self) {
        self.gone.store(true, SeqCst);
        self.left.notify_waiters();
    }

    /// Until the connection is no more.
    pub async fn left(&self) {
        // First asked to be told, then looked: one that leaves in between is not missed.
        let told = self.left.notified();
        if !self.gone.load(SeqCst) {
            told.await;
        }
    }

    /// Whether this is the first time that it is turned away.
    pub fn refuse(&self) -> bool {
        !self.refused.swap(true, SeqCst)
    }

    pub fn identify(&self, certificate: Option<CertificateDer<'static>>) {
        *lock(&self.certificate) = certificate;
    }

    /// The certificate that it has shown, which is good.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        lock(&self.certificate).clone()
    }

    pub fn end(&self) -> Option<End> {
        lock(&self.end).clone()
    }

    /// The first end is the one that says why.
    pub fn note(&self, end: End) {
        lock(&self.end).get_or_insert(end);
    }

    /// Notes that something was read.
    fn hear(&self) {
        self.heard.store(self.since.elapsed().as_millis() as u64, SeqCst);
    }

    /// For how long nothing was read.
    pub fn silence(&self) -> Duration {
        self.since.elapsed().saturating_sub(Duration::from_millis(self.heard.load(SeqCst)))
    }

    /// Makes it a peer, unless it was turned away or its bytes have failed: its hello may be heard after that, as it
    /// was read before, and a connection that is gone already must not come up. One that was closed in order may: what
    /// it said before is still to be heard.
    ///
    /// # Errors
    /// Why it has gone.
    pub fn admit(&self) -> Result<(), Trouble> {
        // Held, so that of this and `turn_away` one comes first.
        let end = lock(&self.end);
        if let Some(End::Failed(trouble)) = &*end {
            return Err(trouble.clone());
        }
        self.rise(Rank::Peer);
        Ok(())
    }

    /// Notes that it has to go; false where it is a peer.
    fn turn_away(&self, trouble: Trouble) -> bool {
        let mut end = lock(&self.end);
        let goes = self.is_below(Rank::Peer);
        if goes {
            end.get_or_insert(End::Failed(trouble));
        }
        goes
    }

    /// Ends the connection, unless it is a peer's.
    pub fn dismiss(&self) {
        self.dismissed.notify_one();
    }

    /// Comes to an end when it has to go: not in time, or dismissed.
    pub async fn verdict(self: Arc<Self>, patience: Duration) -> Trouble {
        tokio::select! {
            () = tokio::time::sleep(patience) => {}
            () = self.dismissed.notified() => return Trouble::Crowded,
        }
        if !self.is_below(Rank::Guest) {
            self.dismissed.notified().await;
            return Trouble::Crowded;
        }
        Trouble::NoHello
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing is left half done under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of TCP, or of TLS over it.
pub(super) trait Bytestream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Bytestream for S {}

/// When a stranger has to go.
pub(super) type Verdict = Pin<Box<dyn Future<Output = Trouble> + Send>>;

/// A stream of bytes, watched.
pub(super) struct Watched<S> {
    stream: S,
    party: Arc<Party>,
    /// Who hears when it was turned away; none for one that was looked for.
    host: Option<Arc<Node>>,
    /// None for one that was looked for, and for one that has said its hello.
    verdict: Option<Verdict>,
    /// Whether the first byte, of a stream without TLS, is still to be looked at.
    looks: bool,
    /// Why nothing can be written any more, until it is read why.
    unwritten: Option<io::Error>,
}

/// What the first byte is of what is no HTTP/2: a record of TLS, of a hello or an alert. A frame of HTTP/2
/// that began so would have more than a million bytes.
const TLS_RECORDS: std::ops::RangeInclusive<u8> = 0x14..=0x17;

impl<S> Watched<S> {
    /// One that was looked for.
    pub fn dialed(stream: S, party: Arc<Party>, encrypted: bool) -> Self {
        Self { stream, party, host: None, verdict: None, looks: !encrypted, unwritten: None }
    }

    /// One that has come to `host`.
    pub fn accepted(stream: S, party: Arc<Party>, host: Arc<Node>, verdict: Verdict) -> Self {
        let looks = host.tls.is_none();
        Self { stream, party, host: Some(host), verdict: Some(verdict), looks, unwritten: None }
    }

    /// Takes note of what was read.
    fn read(&mut self, read: &io::Result<()>, bytes: &[u8]) {
        match (read, bytes.first()) {
            (Err(error), _) => self.party.note(match error.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe => End::Over,
                _ => End::Failed(Trouble::of(error)),
            }),
            (Ok(()), None) => self.party.note(End::Over),
            (Ok(()), Some(first)) => {
                self.party.hear();
                if std::mem::take(&mut self.looks) && TLS_RECORDS.contains(first) {
                    self.party.note(End::Failed(Trouble::SpeaksTls));
                }
            }
        }
    }

    /// Whether it may go on.
    fn poll_verdict(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(verdict) = &mut self.verdict else { return Ok(()) };
        if !self.party.is_below(Rank::Peer) {
            self.verdict = None;
        } else if let Poll::Ready(trouble) = verdict.as_mut().poll(cx) {
            self.verdict = None;
            let error = io::Error::new(io::ErrorKind::TimedOut, trouble.to_string());
            if self.party.turn_away(trouble) {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> Watched<S> {
    /// Reads on when nothing can be written any more: why, as an alert of TLS, may come still. Where the
    /// other's system has ended the connection there is an end to read too.
    fn poll_why(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; 1 << 10];
        loop {
            let mut buf = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf));
            self.read(&read, buf.filled());
            if read.is_err() || buf.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }

    /// What came of writing, where it failed as soon as it is known why.
    fn poll_written<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.unwritten.is_none() {
            match ready!(write(Pin::new(&mut self.stream), cx)) {
                Ok(written) => return Poll::Ready(Ok(written)),
                Err(error) => self.unwritten = Some(error),
            }
        }
        ready!(self.poll_why(cx));
        Poll::Ready(Err(self.unwritten.take().expect("it was put there")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.poll_verdict(cx)?;
        let (filled, room) = (buf.filled().len(), buf.remaining());
        let read = ready!(Pin::new(&mut this.stream).poll_read(cx, buf));
        if room > 0 {
            this.read(&read, &buf.filled()[filled..]);
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_written(cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_written(cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S> Connected for Watched<S> {
    type ConnectInfo = Arc<Party>;

    fn connect_info(&self) -> Arc<Party> {
        Arc::clone(&self.party)
    }
}

impl<S> Drop for Watched<S> {
    fn drop(&mut self) {
        self.party.leave();
        if let Some(host) = &self.host
            && let Some(End::Failed(trouble)) = self.party.end()
            && self.party.is_below(Rank::Guest)
        {
            host.refused(&self.party, trouble);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger() -> Arc<Party> {
        Party::new(SocketAddr::from(([127, 0, 0, 1], 1)), Rank::Stranger)
    }

    #[test]
    fn who_was_turned_away_is_no_peer_and_a_peer_is_not_turned_away() {
        let gone = stranger();
        assert!(gone.turn_away(Trouble::Crowded));
        assert_eq!(gone.admit(), Err(Trouble::Crowded));
        assert!(gone.is_below(Rank::Peer));

        let peer = stranger();
        assert_eq!(peer.admit(), Ok(()));
        assert!(!peer.turn_away(Trouble::Crowded));
        assert!(peer.end().is_none());
    }

    #[test]
    fn who_has_said_all_and_closed_is_heard() {
        let brief = stranger();
        brief.note(End::Over);
        assert_eq!(brief.admit(), Ok(()));
    }
}
