//! State of a TCP connection that several tasks share: authentication, end and idle time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::error::ConnectError;

/// State of one TCP connection.
#[derive(Debug)]
pub(super) struct ConnState {
    /// Address of the other end.
    pub address: SocketAddr,
    /// An [`AuthState`]; it only grows.
    auth: AtomicU8,
    closed: AtomicBool,
    closed_notify: Notify,
    /// Whether the rejection of this connection has been counted.
    rejection_counted: AtomicBool,
    certificate: Mutex<Option<CertificateDer<'static>>>,
    end: Mutex<Option<StreamEnd>>,
    evicted: Notify,
    start: Instant,
    /// Time of the last read, in ms since `start`.
    last_read: AtomicU64,
}

/// How far the other end has identified itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum AuthState {
    /// It has connected.
    Unauthenticated,
    /// It has called the health service. It may stay until there are too many such connections.
    HealthClient,
    /// It has sent a valid hello.
    Peer,
}

/// How a byte stream ended.
#[derive(Clone, Debug)]
pub(super) enum StreamEnd {
    /// The other system closed or reset the connection: the program closed it, or exited.
    Eof,
    Failed(ConnectError),
}

impl ConnState {
    pub fn new(address: SocketAddr, auth: AuthState) -> Arc<Self> {
        Arc::new(Self {
            address,
            auth: AtomicU8::new(auth as u8),
            closed: AtomicBool::new(false),
            closed_notify: Notify::new(),
            rejection_counted: AtomicBool::new(false),
            certificate: Mutex::default(),
            end: Mutex::default(),
            evicted: Notify::new(),
            start: Instant::now(),
            last_read: AtomicU64::new(0),
        })
    }

    /// Raises the state to `auth`; a higher state stays.
    pub fn promote(&self, auth: AuthState) {
        self.auth.fetch_max(auth as u8, SeqCst);
    }

    pub fn is_below(&self, auth: AuthState) -> bool {
        self.auth.load(SeqCst) < auth as u8
    }

    pub fn is_open(&self) -> bool {
        !self.closed.load(SeqCst)
    }

    /// Whether the connection is open and has sent no hello.
    pub fn is_pending(&self) -> bool {
        self.is_below(AuthState::Peer) && self.is_open()
    }

    pub fn mark_closed(&self) {
        self.closed.store(true, SeqCst);
        self.closed_notify.notify_waiters();
    }

    /// Completes when the connection is closed.
    pub async fn closed(&self) {
        // INVARIANT: register before the check. `notify_waiters` wakes only registered waiters, so
        // the other order would miss a close in between.
        let notified = self.closed_notify.notified();
        if !self.closed.load(SeqCst) {
            notified.await;
        }
    }

    /// Returns true the first time, so that each connection is counted as rejected once.
    pub fn count_rejection(&self) -> bool {
        !self.rejection_counted.swap(true, SeqCst)
    }

    pub fn set_certificate(&self, certificate: Option<CertificateDer<'static>>) {
        *lock(&self.certificate) = certificate;
    }

    /// Verified certificate of the other end.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        lock(&self.certificate).clone()
    }

    pub fn end(&self) -> Option<StreamEnd> {
        lock(&self.end).clone()
    }

    /// Records why the stream ended. The first reason stays, as later errors follow from it.
    pub fn set_end(&self, end: StreamEnd) {
        lock(&self.end).get_or_insert(end);
    }

    /// Records that bytes were read.
    pub fn record_read(&self) {
        self.last_read.store(self.start.elapsed().as_millis() as u64, SeqCst);
    }

    /// Time since the last read.
    pub fn idle_time(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.last_read.load(SeqCst)))
    }

    /// Promotes the connection to a peer, unless it was rejected or its stream has failed.
    ///
    /// A hello may be decoded after the failure, because it was read before; such a connection must
    /// not come up. A stream that ended with [`StreamEnd::Eof`] is admitted: the frames that it
    /// sent before the end are still delivered.
    ///
    /// # Errors
    /// The error that ended the connection.
    pub fn admit(&self) -> Result<(), ConnectError> {
        // INVARIANT: `admit` and `reject` both hold this lock, so exactly one of them succeeds.
        let end = lock(&self.end);
        if let Some(StreamEnd::Failed(error)) = &*end {
            return Err(error.clone());
        }
        self.promote(AuthState::Peer);
        Ok(())
    }

    /// Records that the connection is rejected. Returns false if it is a peer already.
    pub fn reject(&self, error: ConnectError) -> bool {
        let mut end = lock(&self.end);
        let is_rejected = self.is_below(AuthState::Peer);
        if is_rejected {
            end.get_or_insert(StreamEnd::Failed(error));
        }
        is_rejected
    }

    /// Closes the connection to make space for another one, unless it is that of a peer.
    pub fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Completes when the connection has to be closed because it has sent no hello: after `limit`,
    /// or when it is evicted. A client of the health service is only evicted.
    pub async fn handshake_timeout(self: Arc<Self>, limit: Duration) -> ConnectError {
        tokio::select! {
            () = tokio::time::sleep(limit) => {}
            () = self.evicted.notified() => return ConnectError::Evicted,
        }
        if !self.is_below(AuthState::HealthClient) {
            self.evicted.notified().await;
            return ConnectError::Evicted;
        }
        ConnectError::HelloTimeout
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics between two changes under these locks, so a poisoned value is consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unauthenticated() -> Arc<ConnState> {
        ConnState::new(SocketAddr::from(([127, 0, 0, 1], 1)), AuthState::Unauthenticated)
    }

    #[test]
    fn a_connection_is_either_admitted_or_rejected() {
        let rejected = unauthenticated();
        assert!(rejected.reject(ConnectError::Evicted));
        assert_eq!(rejected.admit(), Err(ConnectError::Evicted));
        assert!(rejected.is_below(AuthState::Peer));

        let peer = unauthenticated();
        assert_eq!(peer.admit(), Ok(()));
        assert!(!peer.reject(ConnectError::Evicted));
        assert!(peer.end().is_none());
    }

    #[test]
    fn a_connection_closed_after_its_hello_is_admitted() {
        let brief = unauthenticated();
        brief.set_end(StreamEnd::Eof);
        assert_eq!(brief.admit(), Ok(()));
    }
}
