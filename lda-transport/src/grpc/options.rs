//! Options of a node and their validation.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::Endpoint;

use super::error::StartError;
use super::token::Token;
use super::wire::MAX_PREFIX_LEN;
use crate::transport::NodeId;

/// Upper bound of the bytes that hyper buffers for a stream beyond its window.
const HYPER_BUFFER: usize = 1 << 20;
/// Upper bound of the bytes of short frames that tonic collects before it sends them.
const TONIC_BUFFER: usize = 32 << 10;

/// Options of a [`Grpc`](super::Grpc) node: addresses, peers, certificates and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct GrpcOptions {
    /// Address to listen on, as `host:port`; port 0 for any free one. `None` for a node that only
    /// connects.
    pub listen: Option<String>,
    /// Other nodes. Those with larger numbers connect to this node and need no entry, unless
    /// [`allowlist_only`](Self::allowlist_only) is set.
    pub peers: BTreeMap<NodeId, Peer>,
    /// Rejects nodes that are not in [`peers`](Self::peers).
    pub allowlist_only: bool,
    /// Certificates. `None` for unencrypted connections.
    pub tls: Option<Tls>,
    /// Allows connections without TLS to and from other machines. Anyone who can connect can then
    /// claim the number of any node that is not up, and anyone on the way can read and change the
    /// traffic: only for a trusted network, and with a [`token`](Self::token).
    pub insecure: bool,
    /// Secret of the run; peers with another one are rejected. The default has none.
    pub token: Token,
    /// Longest frame, in bytes. All nodes must have the same value.
    pub max_frame_len: usize,
    /// Maximum number of frames queued for one peer.
    pub queue_frames: usize,
    /// Maximum bytes queued for one peer; a single frame may be longer.
    pub queue_bytes: usize,
    /// Maximum bytes received from one peer that the program has not taken yet. Each frame counts
    /// as 64 bytes more than its length; a single frame may be longer.
    pub inbox_bytes: u32,
    /// HTTP/2 window per peer, in bytes. To use the full bandwidth of a connection it must be at
    /// least bandwidth times round-trip time.
    pub window: u32,
    /// Maximum number of peers at a time.
    pub max_peers: usize,
    /// Maximum number of connections at a time that have sent no hello. One more closes the oldest.
    pub max_unauthenticated: usize,
    /// Time limit from the first packet of a connection to its hello.
    pub handshake_timeout: Duration,
    /// Idle time after which a peer is sent an HTTP/2 ping.
    pub keepalive_interval: Duration,
    /// Time limit for the answer to a ping.
    pub keepalive_timeout: Duration,
    /// Wait before the second attempt to connect. It doubles with each attempt, and half of it is
    /// random.
    pub initial_backoff: Duration,
    /// Longest wait between attempts to connect.
    pub max_backoff: Duration,
    /// Maximum bytes of released frames that are kept for reuse.
    pub pool_bytes: usize,
    /// Number of threads of the node. One moves about 1 GB/s, or half of that with TLS.
    pub threads: usize,
}

impl Default for GrpcOptions {
    /// Any port on the loopback, no peers, no TLS, no token. Frames, queues, inboxes and windows of 16 MiB
    /// per peer; 4,096 peers; 64 unauthenticated connections for at most 5 s. A dead connection is
    /// detected within 2 s and retried after 50 ms to 2 s.
    fn default() -> Self {
        Self {
            listen: Some("127.0.0.1:0".to_owned()),
            peers: BTreeMap::new(),
            allowlist_only: false,
            tls: None,
            insecure: false,
            token: Token::default(),
            max_frame_len: 16 << 20,
            queue_frames: 256,
            queue_bytes: 16 << 20,
            inbox_bytes: 16 << 20,
            window: 16 << 20,
            max_peers: 1 << 12,
            max_unauthenticated: 64,
            handshake_timeout: Duration::from_secs(5),
            keepalive_interval: Duration::from_millis(500),
            keepalive_timeout: Duration::from_millis(1500),
            initial_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_secs(2),
            pool_bytes: 16 << 20,
            threads: 1,
        }
    }
}

/// Address and certificate name of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Peer {
    /// Address as `host:port`. The name is resolved at each attempt. Only used for peers with
    /// smaller numbers, as this node connects to those.
    pub address: Option<String>,
    /// DNS name or IP address that the peer's certificate must have. If it is `None`, a peer that
    /// this node connects to must have a certificate for the host of its address. A peer that
    /// connects to this node then needs only some certificate of the authority, so any node with
    /// such a certificate can claim any number.
    pub name: Option<String>,
}

impl Peer {
    /// A peer at `host:port`.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: Some(address.into()), name: None }
    }

    /// Sets the name that the peer's certificate must have.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

/// PEM files of a node's certificate. They are reloaded for new connections when they have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tls {
    /// Certificates of the authorities that this node trusts.
    pub authority: PathBuf,
    /// Certificate of this node, followed by any intermediate certificates.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
    /// Whether the connecting side needs a certificate too. All nodes must have the same value.
    pub mutual: bool,
}

impl Tls {
    /// Uses these files, with certificates required on both sides.
    pub fn new(
        authority: impl Into<PathBuf>,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        let (authority, certificate, key) = (authority.into(), certificate.into(), key.into());
        Self { authority, certificate, key, mutual: true }
    }
}

impl GrpcOptions {
    /// Upper bound of the bytes in flight to one peer: the send queue, the buffers of hyper, tonic
    /// and the sockets, and the inbox of the peer.
    ///
    /// The window bounds the socket buffers too, because the receiver extends it only after it has
    /// read the bytes.
    pub(super) fn max_in_flight(&self) -> usize {
        let on_the_way = self.window as usize + HYPER_BUFFER + 2 * TONIC_BUFFER;
        // Two chunks at the sender, each of which may be a single frame; one frame that is being
        // read; and one that waits for space in the inbox.
        let frames = 4 * (self.max_frame_len + MAX_PREFIX_LEN);
        self.queue_bytes
            .saturating_add(self.inbox_bytes as usize)
            .saturating_add(on_the_way)
            .saturating_add(frames)
    }

    /// Checks the options of node `id`.
    ///
    /// # Errors
    /// [`StartError::Option`] for the first invalid option.
    pub(super) fn check(&self, id: NodeId) -> Result<(), StartError> {
        self.check_limits()?;
        let wrong = |name, reason: &str| Err(invalid(name, reason));
        if self.listen.is_none() && self.peers.range(..id).all(|(_, peer)| peer.address.is_none()) {
            let reason = "this node neither listens nor connects: give it an address, or that of a \
                          peer with a smaller number";
            return wrong("listen", reason);
        }
        if self.allowlist_only && self.peers.keys().all(|&peer| peer == id) {
            return wrong(
                "allowlist_only",
                "the allowlist is empty: add entries to `peers`, or unset it",
            );
        }
        self.peers.iter().try_for_each(|(&id, peer)| self.check_peer(id, peer))?;
        let mut connects_to =
            self.peers.range(..id).filter_map(|(_, peer)| peer.address.as_deref());
        match connects_to.find(|address| !is_loopback(address)) {
            Some(address) => self.check_exposed(&format!("connects to {address}")),
            None => Ok(()),
        }
    }

    /// Checks that connections with other machines are encrypted, or that the options allow others.
    ///
    /// # Errors
    /// [`StartError::Option`] with `done`, which exposes the node.
    pub(super) fn check_exposed(&self, done: &str) -> Result<(), StartError> {
        if self.tls.is_some() || self.insecure {
            return Ok(());
        }
        let reason = format!(
            "this node {done} without TLS, so that others could read, change or end the run: give \
             certificates (`tls`), or set `insecure` within a trusted network, with a `token`"
        );
        Err(StartError::Option { name: "insecure", reason })
    }

    fn check_limits(&self) -> Result<(), StartError> {
        let wrong = |name, reason: &str| Err(invalid(name, reason));
        let numbers = [
            ("max_frame_len", self.max_frame_len),
            ("queue_frames", self.queue_frames),
            ("queue_bytes", self.queue_bytes),
            ("inbox_bytes", self.inbox_bytes as usize),
            ("max_peers", self.max_peers),
            ("max_unauthenticated", self.max_unauthenticated),
            ("threads", self.threads),
        ];
        for (name, number) in numbers {
            if number == 0 {
                return wrong(name, "must be at least 1");
            }
        }
        let times = [
            ("handshake_timeout", self.handshake_timeout),
            ("keepalive_interval", self.keepalive_interval),
            ("keepalive_timeout", self.keepalive_timeout),
            ("initial_backoff", self.initial_backoff),
            ("max_backoff", self.max_backoff),
        ];
        for (name, time) in times {
            if time.is_zero() {
                return wrong(name, "must not be 0: set it to a millisecond or more");
            }
        }
        if self.max_frame_len > u32::MAX as usize - MAX_PREFIX_LEN {
            return wrong(
                "max_frame_len",
                "gRPC messages are shorter than 4 GiB: use shorter frames",
            );
        }
        // The initial window and the largest window of HTTP/2 (RFC 9113, 6.9).
        if !((1 << 16) - 1..1 << 31).contains(&self.window) {
            return wrong("window", "HTTP/2 windows have 65,535 to 2,147,483,647 bytes");
        }
        Ok(())
    }

    fn check_peer(&self, id: NodeId, peer: &Peer) -> Result<(), StartError> {
        let wrong = |reason: String| Err(StartError::Option { name: "peers", reason });
        if let Some(address) = &peer.address
            && (host(address).is_none() || endpoint(address).is_none())
        {
            return wrong(format!("address {address:?} of {id} is not of the form host:port"));
        }
        match &peer.name {
            Some(_) if self.tls.is_none() => {
                wrong(format!("{id} has a certificate name, which needs TLS: set the option `tls`"))
            }
            Some(name) if ServerName::try_from(name.as_str()).is_err() => {
                wrong(format!("name {name:?} of {id} is neither a DNS name nor an IP address"))
            }
            _ => Ok(()),
        }
    }
}

fn invalid(name: &'static str, reason: &str) -> StartError {
    StartError::Option { name, reason: reason.to_owned() }
}

/// Returns the host of `host:port`, without the brackets of an IPv6 address.
pub(super) fn host(address: &str) -> Option<&str> {
    let (host, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bare.unwrap_or(host);
    (!host.is_empty()).then_some(host)
}

/// Whether an address is one of this machine. A name other than `localhost` may be another's.
fn is_loopback(address: &str) -> bool {
    host(address).is_some_and(|host| {
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

/// Returns the tonic endpoint of `host:port`.
pub(super) fn endpoint(address: &str) -> Option<Endpoint> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).ok()?;
    // Rejects the other parts of a URI, such as a path or a user name.
    let authority = endpoint.uri().authority().map(|authority| authority.as_str());
    (authority == Some(address)).then_some(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_strips_port_and_brackets() {
        assert_eq!(host("node-1.local:7000"), Some("node-1.local"));
        assert_eq!(host("[::1]:7000"), Some("::1"));
        for bad in ["", ":7000", "host", "host:", "host:70000", "host:x"] {
            assert_eq!(host(bad), None, "{bad}");
        }
    }

    #[test]
    fn other_machines_need_tls_or_consent() {
        let to = |address: &str| {
            let mut options = GrpcOptions::default();
            options.peers.insert(NodeId(0), Peer::at(address));
            options
        };
        for near in ["localhost:1", "127.0.0.1:1", "127.8.0.1:1", "[::1]:1"] {
            assert!(to(near).check(NodeId(1)).is_ok(), "{near}");
        }
        for far in ["10.0.0.1:1", "node-0.local:1", "[fe80::1]:1", "localhost.example:1"] {
            let refused = to(far).check(NodeId(1)).unwrap_err().to_string();
            assert!(refused.starts_with("option insecure: this node connects to "), "{refused}");
            assert!(to(far).check(NodeId(0)).is_ok(), "node 0 does not connect");
            assert!(GrpcOptions { insecure: true, ..to(far) }.check(NodeId(1)).is_ok(), "{far}");
            let tls = Some(Tls::new("a", "b", "c"));
            assert!(GrpcOptions { tls, ..to(far) }.check(NodeId(1)).is_ok(), "{far}");
        }
    }

    #[test]
    fn invalid_options_are_reported() {
        let refused = |change: fn(&mut GrpcOptions)| {
            let mut options = GrpcOptions::default();
            change(&mut options);
            match options.check(NodeId(1)) {
                Err(StartError::Option { name, reason }) if !reason.is_empty() => name,
                other => panic!("{other:?}"),
            }
        };
        assert!(GrpcOptions::default().check(NodeId(1)).is_ok());
        assert_eq!(refused(|options| options.queue_frames = 0), "queue_frames");
        assert_eq!(
            refused(|options| options.keepalive_interval = Duration::ZERO),
            "keepalive_interval"
        );
        assert_eq!(refused(|options| options.max_frame_len = 1 << 32), "max_frame_len");
        assert_eq!(refused(|options| options.window = 1000), "window");
        assert_eq!(refused(|options| options.listen = None), "listen");
        assert_eq!(refused(|options| options.allowlist_only = true), "allowlist_only");
        let peer = |options: &mut GrpcOptions, peer| drop(options.peers.insert(NodeId(0), peer));
        for bad in ["here", "a b:1", "a/b:1"] {
            let mut options = GrpcOptions::default();
            peer(&mut options, Peer::at(bad));
            assert!(options.check(NodeId(1)).is_err(), "{bad}");
        }
        let mut options = GrpcOptions { insecure: true, ..GrpcOptions::default() };
        peer(&mut options, Peer::at("host:1").named("host"));
        assert!(options.check(NodeId(1)).is_err(), "a name without TLS");
        options.tls = Some(Tls::new("a", "b", "c"));
        assert!(options.check(NodeId(1)).is_ok());
        peer(&mut options, Peer::at("host:1").named("no name"));
        assert!(options.check(NodeId(1)).is_err());
    }
}
