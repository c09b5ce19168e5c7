//! What can be chosen, and what it may be.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::Endpoint;

use super::error::StartError;
use super::wire::HEAD;
use crate::transport::NodeId;

/// What hyper holds of a stream beyond the window, at most.
const HYPER: usize = 1 << 20;
/// Most bytes that tonic gathers of short frames before they go.
const GATHERED: usize = 32 << 10;

/// Where nodes are, how they know each other, and bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Where to listen, as `host:port`; port 0 for any that is free. None for a node that only connects.
    pub listen: Option<String>,
    /// Who the others are. Those with larger numbers come by themselves and need not stand here, unless
    /// [`known_only`](Self::known_only).
    pub peers: BTreeMap<NodeId, Peer>,
    /// Whether who is not among the peers is turned away.
    pub known_only: bool,
    /// Certificates; none for connections that everybody on the way can read.
    pub tls: Option<Tls>,
    /// Longest frame, in bytes, the same at all nodes.
    pub longest_frame: usize,
    /// Frames that wait to go to a peer, at most.
    pub queue_frames: usize,
    /// Their bytes, at most; one frame may be longer.
    pub queue_bytes: usize,
    /// Bytes of a peer that have come and that the program has not taken, at most, where each frame counts
    /// 64 more than it has; one frame may be longer.
    pub inbox_bytes: u32,
    /// Window of HTTP/2, in bytes: what a peer may have on its way. At least speed times round trip, where
    /// the line is to be full.
    pub window: u32,
    /// Peers at a time, at most.
    pub most_peers: usize,
    /// Connections at a time that have said no hello, at most; of more the oldest is ended.
    pub strangers: usize,
    /// How long a connection may take, from the first packet to the hello.
    pub hello: Duration,
    /// After so long without anything of a peer it is asked whether it is there.
    pub ping: Duration,
    /// How long it may take to answer that.
    pub pong: Duration,
    /// How long to wait before a second attempt to connect; of each further one twice as long, half of it at
    /// random.
    pub backoff: Duration,
    /// The longest wait between attempts.
    pub longest_backoff: Duration,
    /// Bytes of released frames that are kept for use again, at most.
    pub spare_bytes: usize,
    /// Threads of the node's own. One moves about a GB a second, or half of it with TLS.
    pub threads: usize,
}

impl Default for Options {
    /// Any port on the loopback, no peers, no TLS; 16 MiB a frame, queues, inboxes and windows of 16 MiB a
    /// peer; 4,096 peers, 64 strangers for 5 seconds; a dead line is seen within 2 seconds, and tried again
    /// after 50 ms to 2 s.
    fn default() -> Self {
        Self {
            listen: Some("127.0.0.1:0".to_owned()),
            peers: BTreeMap::new(),
            known_only: false,
            tls: None,
            longest_frame: 16 << 20,
            queue_frames: 256,
            queue_bytes: 16 << 20,
            inbox_bytes: 16 << 20,
            window: 16 << 20,
            most_peers: 1 << 12,
            strangers: 64,
            hello: Duration::from_secs(5),
            ping: Duration::from_millis(500),
            pong: Duration::from_millis(1500),
            backoff: Duration::from_millis(50),
            longest_backoff: Duration::from_secs(2),
            spare_bytes: 16 << 20,
            threads: 1,
        }
    }
}

/// Where a peer is, and how it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// As `host:port`; the name is resolved anew at each attempt. Used if its number is the smaller one.
    pub address: Option<String>,
    /// A DNS name or IP address that its certificate has to have. If none, that of a node that is connected
    /// to has to have the host of its address, and that of one that connects need only be of the authority:
    /// then any node that has a certificate can take any number.
    pub name: Option<String>,
}

impl Peer {
    /// At `host:port`.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: Some(address.into()), name: None }
    }

    /// The same, whose certificate has to have this name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

/// Files of PEM. They are read again, for new connections, when they have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tls {
    /// Certificates of the authorities that the others' certificates are of.
    pub authority: PathBuf,
    /// This node's certificate, and those between it and the authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Whether who connects has to have a certificate too. All nodes have to agree.
    pub mutual: bool,
}

impl Tls {
    /// Of these files, where both sides have to have a certificate.
    pub fn new(
        authority: impl Into<PathBuf>,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        let (authority, certificate, key) = (authority.into(), certificate.into(), key.into());
        Self { authority, certificate, key, mutual: true }
    }
}

impl Options {
    /// What may be underway to one peer: what waits here, what hyper, the sockets and tonic hold, and what
    /// waits there. A window bounds the sockets too, as it is given back when what was in it is read.
    pub(super) fn underway(&self) -> usize {
        let on_the_way = self.window as usize + HYPER + 2 * GATHERED;
        // Two chunks at the sender, of which each may be one frame; one that is read; one that waits to be
        // put into the inbox.
        let frames = 4 * (self.longest_frame + HEAD);
        self.queue_bytes
            .saturating_add(self.inbox_bytes as usize)
            .saturating_add(on_the_way)
            .saturating_add(frames)
    }

    pub(super) fn check(&self, id: NodeId) -> Result<(), StartError> {
        let wrong = |name, why: &str| Err(StartError::Option { name, why: why.to_owned() });
        let numbers = [
            ("longest_frame", self.longest_frame),
            ("queue_frames", self.queue_frames),
            ("queue_bytes", self.queue_bytes),
            ("inbox_bytes", self.inbox_bytes as usize),
            ("most_peers", self.most_peers),
            ("strangers", self.strangers),
            ("threads", self.threads),
        ];
        for (name, number) in numbers {
            if number == 0 {
                return wrong(name, "it is 0: give it 1 or more");
            }
        }
        let times = [
            ("hello", self.hello),
            ("ping", self.ping),
            ("pong", self.pong),
            ("backoff", self.backoff),
            ("longest_backoff", self.longest_backoff),
        ];
        for (name, time) in times {
            if time.is_zero() {
                return wrong(name, "it is no time: give it a millisecond or more");
            }
        }
        if self.longest_frame > u32::MAX as usize - HEAD {
            return wrong("longest_frame", "gRPC has no messages beyond 4 GiB: cut frames up");
        }
        // What HTTP/2 begins with, and the most that it can have.
        if !((1 << 16) - 1..1 << 31).contains(&self.window) {
            return wrong("window", "HTTP/2 has windows of 65,535 to 2,147,483,647 bytes");
        }
        if self.listen.is_none() && self.peers.range(..id).all(|(_, peer)| peer.address.is_none()) {
            let why = "this node listens nowhere and connects to nobody: give it an address, or that of \
                       a peer with a smaller number";
            return wrong("listen", why);
        }
        if self.known_only && self.peers.keys().all(|&peer| peer == id) {
            return wrong("known_only", "no others are known: give `peers`, or let all come");
        }
        for (peer, Peer { address, name }) in &self.peers {
            if let Some(address) = address
                && (host(address).is_none() || endpoint(address).is_none())
            {
                let why = format!("{address:?} of {peer} is not of the form host:port");
                return Err(StartError::Option { name: "peers", why });
            }
            match name {
                Some(_) if self.tls.is_none() => {
                    let why =
                        format!("{peer} has a name, which only a certificate shows: give `tls`");
                    return Err(StartError::Option { name: "peers", why });
                }
                Some(name) if ServerName::try_from(name.as_str()).is_err() => {
                    let why = format!("{name:?} of {peer} is neither a DNS name nor an IP address");
                    return Err(StartError::Option { name: "peers", why });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The host of `host:port`, without the brackets of an IPv6 address.
pub(super) fn host(address: &str) -> Option<&str> {
    let (host, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bare.unwrap_or(host);
    (!host.is_empty()).then_some(host)
}

/// Where tonic says that it goes.
pub(super) fn endpoint(address: &str) -> Option<Endpoint> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).ok()?;
    // And not what else a URI may have.
    let authority = endpoint.uri().authority().map(|authority| authority.as_str());
    (authority == Some(address)).then_some(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_stands_before_the_port() {
        assert_eq!(host("node-1.local:7000"), Some("node-1.local"));
        assert_eq!(host("[::1]:7000"), Some("::1"));
        for bad in ["", ":7000", "host", "host:", "host:70000", "host:x"] {
            assert_eq!(host(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        let refused = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            match options.check(NodeId(1)) {
                Err(StartError::Option { name, why }) if !why.is_empty() => name,
                other => panic!("{other:?}"),
            }
        };
        assert!(Options::default().check(NodeId(1)).is_ok());
        assert_eq!(refused(|options| options.queue_frames = 0), "queue_frames");
        assert_eq!(refused(|options| options.ping = Duration::ZERO), "ping");
        assert_eq!(refused(|options| options.longest_frame = 1 << 32), "longest_frame");
        assert_eq!(refused(|options| options.window = 1000), "window");
        assert_eq!(refused(|options| options.listen = None), "listen");
        assert_eq!(refused(|options| options.known_only = true), "known_only");
        let peer = |options: &mut Options, peer| drop(options.peers.insert(NodeId(0), peer));
        for bad in ["here", "a b:1", "a/b:1"] {
            let mut options = Options::default();
            peer(&mut options, Peer::at(bad));
            assert!(options.check(NodeId(1)).is_err(), "{bad}");
        }
        let mut options = Options::default();
        peer(&mut options, Peer::at("host:1").named("host"));
        assert!(options.check(NodeId(1)).is_err(), "a name without TLS");
        options.tls = Some(Tls::new("a", "b", "c"));
        assert!(options.check(NodeId(1)).is_ok());
        peer(&mut options, Peer::at("host:1").named("no name"));
        assert!(options.check(NodeId(1)).is_err());
    }
}
