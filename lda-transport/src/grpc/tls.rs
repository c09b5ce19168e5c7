//! Certificates, read from files, and again when the files have changed.
//!
//! Only TLS 1.3 is spoken. Sessions are not taken up again: connections are few and long, and a certificate
//! that is out of date should not live on in a ticket.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use std::{fs, io};

use tokio_rustls::rustls::client::{Resumption, verify_server_name};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::{
    NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier,
};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};

use super::error::TlsError;
use super::options::Tls;

/// What both sides of new connections use.
#[derive(Clone, Debug)]
pub(super) struct Configs {
    pub server: Arc<ServerConfig>,
    pub client: Arc<ClientConfig>,
}

/// The newest that could be read.
#[derive(Debug)]
pub(super) struct Store {
    tls: Tls,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    configs: Configs,
    /// Of the files, when they were last read.
    stamps: [Stamp; 3],
    /// Why that reading came to nothing.
    failed: Option<TlsError>,
}

/// What tells whether a file has changed; none where there is no file.
type Stamp = Option<(SystemTime, u64)>;

impl Store {
    pub fn new(tls: Tls) -> Result<Self, TlsError> {
        let stamps = stamps(&tls);
        let state = State { configs: load(&tls)?, stamps, failed: None };
        Ok(Self { tls, state: Mutex::new(state) })
    }

    /// For a new connection. Files that have changed are read again; where that fails, what was read before
    /// is used on.
    pub fn current(&self) -> Configs {
        let mut state = self.lock();
        let stamps = stamps(&self.tls);
        if stamps != state.stamps
            && let Err(error) = self.read(&mut state, stamps)
        {
            tracing::warn!(%error, "certificates have changed and cannot be read; the old ones are used on");
        }
        state.configs.clone()
    }

    /// Reads the files now.
    pub fn reload(&self) -> Result<(), TlsError> {
        let mut state = self.lock();
        let stamps = stamps(&self.tls);
        self.read(&mut state, stamps)
    }

    /// Why the last reading came to nothing.
    pub fn failed(&self) -> Option<TlsError> {
        self.lock().failed.clone()
    }

    fn read(&self, state: &mut State, stamps: [Stamp; 3]) -> Result<(), TlsError> {
        // What changes from here on is seen the next time.
        state.stamps = stamps;
        let loaded = load(&self.tls);
        state.failed = loaded.as_ref().err().cloned();
        state.configs = loaded?;
        tracing::info!("certificates read");
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamps(tls: &Tls) -> [Stamp; 3] {
    [&tls.authority, &tls.certificate, &tls.key].map(|path| {
        let data = fs::metadata(path).ok()?;
        Some((data.modified().ok()?, data.len()))
    })
}

fn load(tls: &Tls) -> Result<Configs, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let unusable = |path: &Path| {
        let path = path.to_owned();
        move |error: &dyn std::fmt::Display| TlsError::Unusable { path, why: error.to_string() }
    };
    let mut roots = RootCertStore::empty();
    for authority in certificates(&tls.authority)? {
        roots.add(authority).map_err(|error| unusable(&tls.authority)(&error))?;
    }
    let roots = Arc::new(roots);
    let chain = certificates(&tls.certificate)?;
    let key = key(&tls.key)?;
    let pair = |error| match error {
        rustls::Error::InconsistentKeys(_) => {
            TlsError::Mismatch { certificate: tls.certificate.clone(), key: tls.key.clone() }
        }
        error @ rustls::Error::InvalidCertificate(_) => unusable(&tls.certificate)(&error),
        error => unusable(&tls.key)(&error),
    };

    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| unusable(&tls.key)(&error))?;
    let server = if tls.mutual {
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = verifier.build().map_err(|error| unusable(&tls.authority)(&error))?;
        server.with_client_cert_verifier(verifier)
    } else {
        server.with_no_client_auth()
    };
    let mut server = server.with_single_cert(chain.clone(), key.clone_key()).map_err(pair)?;
    server.alpn_protocols = vec![b"h2".to_vec()];
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;

    let mut client = client(provider, roots, tls.mutual.then_some((chain, key)), &pair)?;
    client.alpn_protocols = vec![b"h2".to_vec()];
    client.resumption = Resumption::disabled();
    Ok(Configs { server: Arc::new(server), client: Arc::new(client) })
}

fn client(
    provider: Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    own: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    failed: &dyn Fn(rustls::Error) -> TlsError,
) -> Result<ClientConfig, TlsError> {
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(failed)?
        .with_root_certificates(roots);
    match own {
        Some((chain, key)) => client.with_client_auth_cert(chain, key).map_err(failed),
        None => Ok(client.with_no_client_auth()),
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>, TlsError> {
    let unreadable =
        |error: io::Error| TlsError::Unreadable { path: path.clone(), why: error.to_string() };
    fs::read(path).map_err(unreadable)
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let found = found.and_then(|found| match found.is_empty() {
        true => Err(pem::Error::NoItemsFound),
        false => Ok(found),
    });
    found.map_err(|error| TlsError::NotPem {
        path: path.clone(),
        what: "certificate",
        why: error.to_string(),
    })
}

fn key(path: &PathBuf) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| TlsError::NotPem {
        path: path.clone(),
        what: "private key",
        why: error.to_string(),
    })
}

/// Whether a certificate, which has been verified otherwise, has a name.
pub(super) fn has_name(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let name = ServerName::try_from(name);
    let certificate = ParsedCertificate::try_from(certificate);
    matches!((certificate, name), (Ok(certificate), Ok(name))
        if verify_server_name(&certificate, &name).is_ok())
}
