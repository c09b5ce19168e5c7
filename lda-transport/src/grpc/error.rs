//! Errors of starting a node and of connecting to peers.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use tokio_rustls::rustls;

use super::wire::WireError;
use crate::transport::NodeId;

/// Reason why a node did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// An option has an invalid value.
    #[error("option {name}: {reason}")]
    Option {
        /// Field of [`GrpcOptions`](super::GrpcOptions).
        name: &'static str,
        /// The problem and its remedy.
        reason: String,
    },
    /// The host name of the address to listen on does not resolve.
    #[error("cannot resolve {address:?} ({error}): correct the address to listen on")]
    Resolve {
        /// Address to listen on, as given.
        address: String,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
    /// Another process listens on the address.
    #[error(
        "{address} is in use: stop the program that uses it, or choose another port, or 0 for any"
    )]
    InUse {
        /// Address to listen on.
        address: SocketAddr,
    },
    /// The operating system refuses the address.
    #[error("cannot listen on {address} ({error}): choose an address of this machine")]
    Listen {
        /// Address to listen on.
        address: SocketAddr,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The operating system cannot start a thread.
    #[error("cannot start threads ({0}): raise the limit of threads")]
    Threads(#[source] io::Error),
}

/// Shared cause, so that errors that contain it can be cloned.
type Source = Arc<dyn Error + Send + Sync>;

/// Error in a file of [`Tls`](super::Tls).
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file cannot be read.
    #[error("cannot read {} ({error}): check that it exists and that this program may read it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        error: Arc<io::Error>,
    },
    /// The file contains no PEM section of the expected kind.
    #[error("{} contains no {expected} in PEM form ({error}): check the path", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// Expected content, such as "certificate".
        expected: &'static str,
        /// Error of the PEM parser.
        #[source]
        error: Source,
    },
    /// The private key does not belong to the certificate.
    #[error(
        "the key in {} does not belong to the certificate in {}: give a matching pair",
        key.display(), certificate.display()
    )]
    Mismatch {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
    },
    /// The content of the file is well-formed, but TLS cannot use it.
    #[error("cannot use the content of {} ({error}): make the file again", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Error of the TLS library.
        #[source]
        error: Source,
    },
}

/// Reason why there is no connection to a peer, or why an incoming connection was rejected.
///
/// A node retries connections to its peers after any of these.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The host name of the peer's address does not resolve.
    #[error("cannot resolve {address:?} ({reason}): correct the address, or check the name server")]
    Resolve {
        /// Address of the peer, as given.
        address: String,
        /// Error of the resolver.
        reason: String,
    },
    /// The address accepts no TCP connection.
    #[error(
        "cannot connect to {address} ({reason}): check that the node runs and that no firewall blocks it"
    )]
    Connect {
        /// Address that was tried last.
        address: String,
        /// Error of the operating system.
        reason: String,
    },
    /// The handshake did not finish within the option `handshake_timeout`.
    #[error("no hello arrived in time: check that the other end is a node and not overloaded")]
    HelloTimeout,
    /// The oldest of too many unauthenticated connections was closed.
    #[error(
        "too many connections have sent no hello: check their addresses, or raise `max_unauthenticated`"
    )]
    Evicted,
    /// The node already has the maximum number of peers.
    #[error("there are {limit} peers already: raise the option `max_peers`")]
    TooManyPeers {
        /// The option `max_peers`.
        limit: usize,
    },
    /// The peer uses TLS and this node does not.
    #[error("the peer uses TLS and this node does not: give certificates to both, or to neither")]
    PeerUsesTls,
    /// This node uses TLS and the peer does not.
    #[error("this node uses TLS and the peer does not: give certificates to both, or to neither")]
    PeerUsesPlaintext,
    /// One of the two sides rejected the certificate of the other.
    #[error(
        "a certificate was rejected ({reason}): check that it has not expired, that its authority is \
         one that both sides trust, and that it has the name of its node"
    )]
    Certificate {
        /// Error of the TLS library.
        reason: String,
    },
    /// TLS failed for a reason other than a certificate.
    #[error(
        "TLS failed ({reason}): check that both sides have current releases and valid certificates"
    )]
    Tls {
        /// Error of the TLS library.
        reason: String,
    },
    /// The peer does not use this protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The peer has another token, or only one of the two nodes has one.
    #[error("the peer has another token than this node: give all nodes of a run the same `token`")]
    Token,
    /// Another connection has the number of the peer, and is open.
    #[error(
        "{peer} is connected from {address} already: end that program, or correct the node numbers; \
         a connection that is dead is given up within seconds"
    )]
    NumberTaken {
        /// The number.
        peer: NodeId,
        /// Address of the node that has it.
        address: SocketAddr,
    },
    /// The address belongs to another node than expected, on either side.
    #[error("expected {expected} and found {found}: correct the addresses or the node numbers")]
    WrongNode {
        /// Node that should be at the address.
        expected: NodeId,
        /// Node that is at the address.
        found: NodeId,
    },
    /// The peer is not on the allowlist, or it is this node that has to connect to the peer.
    #[error("{peer} is not allowed to connect to {here}: {reason}")]
    NotAllowed {
        /// This node.
        here: NodeId,
        /// The peer.
        peer: NodeId,
        /// The rule that forbids it.
        reason: &'static str,
    },
    /// The two nodes have different values of `max_frame_len`.
    #[error(
        "`max_frame_len` is {theirs} bytes at the peer and {ours} at this node: give both the same value"
    )]
    FrameLimitMismatch {
        /// Value of this node, in bytes.
        ours: u64,
        /// Value of the peer, in bytes.
        theirs: u64,
    },
    /// The peer rejected this node.
    #[error("the peer rejected this node: {reason}")]
    Refused {
        /// Reason that the peer gave.
        reason: String,
    },
    /// The connection failed during the handshake.
    #[error("the connection failed ({reason}): check the network, and the log of the peer")]
    Broken {
        /// Error of the network or of gRPC.
        reason: String,
    },
}

/// Incoming connections that a node has rejected since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedPeers {
    /// Number of rejected connections.
    pub count: u64,
    /// Address of the last one and the reason.
    pub last: Option<(SocketAddr, ConnectError)>,
}

impl ConnectError {
    /// Classifies an error of the byte stream under HTTP/2.
    pub(super) fn from_io(error: &io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let reason = inner.map_or_else(|| error.to_string(), ToString::to_string);
        match inner {
            None => Self::Broken { reason },
            Some(rustls::Error::InvalidMessage(_)) => Self::PeerUsesPlaintext,
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
                Self::Certificate { reason }
            }
            Some(rustls::Error::AlertReceived(alert)) if concerns_certificate(*alert) => {
                Self::Certificate { reason }
            }
            Some(_) => Self::Tls { reason },
        }
    }
}

fn concerns_certificate(alert: rustls::AlertDescription) -> bool {
    use rustls::AlertDescription as Alert;
    matches!(
        alert,
        Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::DecryptError
            | Alert::CertificateRequired
    )
}
