//! Who a node is, and its bounds.

use std::time::Duration;

/// Who a node is. Peers compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// A larger number each time the node starts, and never 0: the time of day will do. What comes late of an
    /// incarnation before is told by its smaller number.
    pub incarnation: u64,
    /// What it is to the others; theirs to read.
    pub role: u8,
    /// The same for all nodes of a run.
    pub run: u128,
    /// Fingerprint of what must be the same at all nodes.
    pub configuration: u64,
}

/// What a peer may have underway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Requests.
    pub requests: u32,
    /// Their bytes; one alone may have more.
    pub bytes: u64,
}

/// Who a node is, and its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Who it is.
    pub identity: Identity,
    /// What each peer may have underway to it.
    pub window: Window,
    /// Bytes of requests that it may have underway to all peers together; one alone may have more.
    pub in_flight: u64,
    /// Requests to a peer that may wait to be sent.
    pub queue: usize,
    /// How often to greet a peer that does not answer.
    pub hello_interval: Duration,
    /// How long to be silent at most.
    pub heartbeat_interval: Duration,
    /// How long a peer may be silent.
    pub silence_timeout: Duration,
    /// How long to wait for a reply before a request is sent again, longer each time; none where the
    /// transport loses nothing without saying so.
    pub retry: Option<Duration>,
    /// Bytes of a piece of a [`Collective`](super::Collective), the same at all nodes; no frame of the transport may be
    /// shorter. A multiple of 8.
    pub piece: usize,
    /// Bytes of a member's content in a [`Collective`](super::Collective), at most.
    pub max_content_len: u64,
}

impl Config {
    /// 256 requests and 64 MiB from each peer; 256 MiB underway; 256 waiting for each. A beat a second, silence
    /// of five, no retries. Pieces of 256 KiB of contents of up to 1 GiB.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            window: Window { requests: 256, bytes: 64 << 20 },
            in_flight: 256 << 20,
            queue: 256,
            hello_interval: Duration::from_secs(1),
            heartbeat_interval: Duration::from_secs(1),
            silence_timeout: Duration::from_secs(5),
            retry: None,
            piece: 256 << 10,
            max_content_len: 1 << 30,
        }
    }

    /// Panics where a node cannot keep to it.
    pub(super) fn check(&self) {
        let Self { identity, window, in_flight, queue, piece, .. } = self;
        let bounds = [u64::from(window.requests), window.bytes, *in_flight, *queue as u64];
        let times = [self.hello_interval, self.heartbeat_interval, self.silence_timeout];
        let times = times.iter().chain(&self.retry).all(|time| !time.is_zero());
        let bounds = bounds.iter().all(|&bound| bound > 0);
        assert!(identity.incarnation > 0 && bounds && times, "something is 0 in {self:?}");
        assert!(
            (8..=1 << 30).contains(piece) && piece.is_multiple_of(8),
            "pieces of {piece} bytes"
        );
    }
}
