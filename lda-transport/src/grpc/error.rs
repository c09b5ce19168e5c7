//! What goes wrong at the start, and later.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;
use tokio_rustls::rustls;

use super::wire::WireError;
use crate::transport::NodeId;

/// Why a node did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// An option that cannot be.
    #[error("option {name}: {why}")]
    Option {
        /// Which.
        name: &'static str,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The name in the address to listen at.
    #[error("the name in {address:?} does not resolve ({error}): correct the address to listen at")]
    Resolve {
        /// The address.
        address: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// Somebody listens there.
    #[error("{address} is in use: end who listens there, or choose another port, or 0 for any")]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// It cannot be listened at.
    #[error("cannot listen at {address} ({error}): choose an address of this machine")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// The certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system gives no threads.
    #[error("cannot start threads ({0})")]
    Threads(#[source] io::Error),
}

/// What is wrong with certificates in files.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file that cannot be read.
    #[error("cannot read {} ({why}): see that it exists and that this program may read it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// A file that has nothing of what it should have.
    #[error("{} holds no {what} in PEM form ({why}): see which file that is", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What was found.
        why: String,
    },
    /// A certificate and a key of different pairs.
    #[error("the key in {} is not that of the certificate in {}: give the two that belong together", key.display(), certificate.display())]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// A file that has what it should have, and that is of no use.
    #[error("what {} holds cannot be used ({why})", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

/// Why there is no connection to a peer, or why a stranger was turned away. Where it is a peer's, it is tried
/// again, and again.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The name in its address.
    #[error(
        "the name in {address:?} does not resolve ({why}): correct the address, or ask the name server"
    )]
    Resolve {
        /// The address.
        address: String,
        /// What the system says.
        why: String,
    },
    /// Nobody is there.
    #[error("no connection to {address} ({why}): start the node there, and open the way to it")]
    Connect {
        /// The address.
        address: String,
        /// What the system says.
        why: String,
    },
    /// It did not come to a hello in time.
    #[error("no hello came in time: see that it is a node, and that it is not overloaded")]
    NoHello,
    /// It waited with too many others, of which it was the first.
    #[error(
        "too many connections have said no hello: see who they are, or raise the option `strangers`"
    )]
    Crowded,
    /// There are as many peers as may be.
    #[error("there are {most} peers already, which is the most: raise the option `most_peers`")]
    TooMany {
        /// The option.
        most: usize,
    },
    /// It speaks TLS, and this node does not.
    #[error("it speaks TLS, and this node does not: give certificates to both, or to neither")]
    SpeaksTls,
    /// This node speaks TLS, and it does not.
    #[error("it does not speak TLS, and this node does: give certificates to both, or to neither")]
    SpeaksPlain,
    /// A certificate was not accepted, by either side.
    #[error(
        "a certificate was not accepted ({why}): see that it is in time, is of the authority that both \
         sides know, and has the name of its node"
    )]
    Certificate {
        /// What is wrong with it.
        why: String,
    },
    /// Another failure of TLS.
    #[error("TLS failed ({why})")]
    Tls {
        /// How.
        why: String,
    },
    /// What it says is not what a node says.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It is another node than was looked for, on whichever side.
    #[error(
        "{found} was found where {expected} was looked for: correct the addresses or the numbers"
    )]
    WrongNode {
        /// Who was looked for.
        expected: NodeId,
        /// Who is there.
        found: NodeId,
    },
    /// It is not known here, or should not be the one that connects.
    #[error("{peer} has no business to connect to {here}: {why}")]
    Uninvited {
        /// This node.
        here: NodeId,
        /// The other.
        peer: NodeId,
        /// What is wrong.
        why: &'static str,
    },
    /// It takes frames of another length.
    #[error(
        "its longest frame has {theirs} bytes, and this node's {ours}: give both the same option"
    )]
    LongestFrame {
        /// Ours.
        ours: u64,
        /// Theirs.
        theirs: u64,
    },
    /// It has refused this node.
    #[error("it refuses this node: {words}")]
    Refused {
        /// Its words.
        words: String,
    },
    /// The connection broke.
    #[error("the connection broke ({why})")]
    Broken {
        /// How.
        why: String,
    },
}

/// Who was turned away, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Strangers {
    /// How many.
    pub refused: u64,
    /// The last of them, and why.
    pub last: Option<(SocketAddr, Trouble)>,
}

impl Trouble {
    /// Of an error of a stream of bytes.
    pub(super) fn of(error: &io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let why = inner.map_or_else(|| error.to_string(), ToString::to_string);
        match inner {
            None => Self::Broken { why },
            Some(rustls::Error::InvalidMessage(_)) => Self::SpeaksPlain,
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
                Self::Certificate { why }
            }
            Some(rustls::Error::AlertReceived(alert)) if about_certificates(*alert) => {
                Self::Certificate { why }
            }
            Some(_) => Self::Tls { why },
        }
    }
}

fn about_certificates(alert: rustls::AlertDescription) -> bool {
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
