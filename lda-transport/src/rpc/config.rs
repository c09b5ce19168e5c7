//! Identity of a node, and the limits of its endpoint.

use std::time::Duration;

/// Identity of a node. Peers compare it with theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Number that grows with each start of the node and is never 0, for example the time of day.
    /// Messages of an earlier incarnation are recognised by it.
    pub incarnation: u64,
    /// Role of the node, for the programs of its peers.
    pub role: u8,
    /// The same for all nodes of a run.
    pub run: u128,
    /// Fingerprint of everything that must be equal at all nodes.
    pub configuration: u64,
}

/// Limit of the requests of one peer in flight to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Maximum number of requests.
    pub requests: u32,
    /// Maximum number of their bytes; a single request may be longer.
    pub bytes: u64,
}

/// Identity, limits and timers of an [`Endpoint`](super::Endpoint). Use `..Config::new(identity)`
/// for the remaining fields, since fields may be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Identity of this node.
    pub identity: Identity,
    /// Requests that each peer may have in flight to this node.
    pub window: Window,
    /// Maximum bytes of requests from this node to all peers in flight; a single request may be
    /// longer.
    pub in_flight: u64,
    /// Maximum number of requests that wait for each peer.
    pub queue: usize,
    /// Time after which a peer that has not answered is greeted again.
    pub hello_interval: Duration,
    /// Time without a message to a peer after which a heartbeat is sent.
    pub heartbeat_interval: Duration,
    /// Time without a message after which a peer counts as lost.
    pub silence_timeout: Duration,
    /// Time without a reply after which a request is sent again; doubles each time, up to 16 times.
    /// `None` for a transport that does not lose frames silently.
    pub retry: Option<Duration>,
    /// Length of a part of a [`Collective`](super::Collective), in bytes: a multiple of 8, the same
    /// at all nodes, and shorter than the longest frame of the transport.
    #[cfg(feature = "collectives")]
    pub part_len: usize,
    /// Longest content of a member in a [`Collective`](super::Collective), in bytes.
    #[cfg(feature = "collectives")]
    pub max_content_len: u64,
}

impl Config {
    /// Defaults: 256 requests and 64 MiB in flight from each peer, 256 MiB in flight to all, 256
    /// requests waiting for each; a heartbeat each second, a peer counts as lost after 5 s of
    /// silence, no retries; parts of 256 KiB, contents of up to 1 GiB.
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
            #[cfg(feature = "collectives")]
            part_len: 256 << 10,
            #[cfg(feature = "collectives")]
            max_content_len: 1 << 30,
        }
    }

    /// Panics if a limit or a time is 0, or the length of a part is invalid.
    pub(super) fn check(&self) {
        let Self { identity, window, in_flight, queue, .. } = self;
        let bounds = [u64::from(window.requests), window.bytes, *in_flight, *queue as u64];
        let times = [self.hello_interval, self.heartbeat_interval, self.silence_timeout];
        let times = times.iter().chain(&self.retry).all(|time| !time.is_zero());
        let bounds = bounds.iter().all(|&bound| bound > 0);
        assert!(identity.incarnation > 0 && bounds && times, "a limit or a time is 0: {self:?}");
        #[cfg(feature = "collectives")]
        assert!(
            (8..=1 << 30).contains(&self.part_len) && self.part_len.is_multiple_of(8),
            "parts of {} bytes: the length must be a multiple of 8, up to 1 GiB",
            self.part_len
        );
    }
}
