//! TLS configurations from PEM files, reloaded when the files have changed.
//!
//! Only TLS 1.3 is supported. Sessions are not resumed: connections are few and long, and a session
//! ticket would outlive an expired certificate.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

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

/// TLS configurations of both sides of new connections.
#[derive(Clone, Debug)]
pub(super) struct TlsConfigs {
    pub server: Arc<ServerConfig>,
    pub client: Arc<ClientConfig>,
}

/// The newest valid content of the files.
#[derive(Debug)]
pub(super) struct CertificateStore {
    tls: Tls,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    configs: TlsConfigs,
    /// Stamps of the files when they were last read.
    stamps: [Stamp; 3],
    /// Error of the last read.
    last_error: Option<TlsError>,
}

/// Modification time and length, which show whether a file has changed. `None` if there is no file.
type Stamp = Option<(SystemTime, u64)>;

impl CertificateStore {
    pub fn new(tls: Tls) -> Result<Self, TlsError> {
        let stamps = stamps(&tls);
        let state = State { configs: load(&tls)?, stamps, last_error: None };
        Ok(Self { tls, state: Mutex::new(state) })
    }

    /// Returns the configurations for a new connection. Reloads files that have changed; if that
    /// fails, the previous configurations stay.
    pub fn current(&self) -> TlsConfigs {
        let mut state = self.lock();
        let stamps = stamps(&self.tls);
        if stamps != state.stamps
            && let Err(error) = self.read(&mut state, stamps)
        {
            tracing::warn!(%error, "cannot reload the certificates; the previous ones stay in use");
        }
        state.configs.clone()
    }

    /// Reloads the files now.
    pub fn reload(&self) -> Result<(), TlsError> {
        let mut state = self.lock();
        let stamps = stamps(&self.tls);
        self.read(&mut state, stamps)
    }

    /// Error of the last read, if it failed.
    pub fn last_error(&self) -> Option<TlsError> {
        self.lock().last_error.clone()
    }

    fn read(&self, state: &mut State, stamps: [Stamp; 3]) -> Result<(), TlsError> {
        // INVARIANT: the stamps are older than the content, so that a change while the files are
        // read is noticed the next time.
        state.stamps = stamps;
        let loaded = load(&self.tls);
        state.last_error = loaded.as_ref().err().cloned();
        state.configs = loaded?;
        tracing::info!("certificates loaded");
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics between two changes under this lock, so a poisoned value is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamps(tls: &Tls) -> [Stamp; 3] {
    [&tls.authority, &tls.certificate, &tls.key].map(|path| {
        let data = fs::metadata(path).ok()?;
        Some((data.modified().ok()?, data.len()))
    })
}

fn load(tls: &Tls) -> Result<TlsConfigs, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let unusable = |path: &Path| {
        let path = path.to_owned();
        move |error: Arc<dyn Error + Send + Sync>| TlsError::Unusable { path, error }
    };
    let mut roots = RootCertStore::empty();
    for authority in certificates(&tls.authority)? {
        roots.add(authority).map_err(|error| unusable(&tls.authority)(Arc::new(error)))?;
    }
    let roots = Arc::new(roots);
    let chain = certificates(&tls.certificate)?;
    let key = key(&tls.key)?;
    let pair = |error| match error {
        rustls::Error::InconsistentKeys(_) => {
            TlsError::Mismatch { certificate: tls.certificate.clone(), key: tls.key.clone() }
        }
        error @ rustls::Error::InvalidCertificate(_) => unusable(&tls.certificate)(Arc::new(error)),
        error => unusable(&tls.key)(Arc::new(error)),
    };

    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| unusable(&tls.key)(Arc::new(error)))?;
    let server = if tls.mutual {
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier =
            verifier.build().map_err(|error| unusable(&tls.authority)(Arc::new(error)))?;
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
    Ok(TlsConfigs { server: Arc::new(server), client: Arc::new(client) })
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
    let unreadable = |error| TlsError::Unreadable { path: path.clone(), error: Arc::new(error) };
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
        expected: "certificate",
        error: Arc::new(error),
    })
}

fn key(path: &PathBuf) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| TlsError::NotPem {
        path: path.clone(),
        expected: "private key",
        error: Arc::new(error),
    })
}

/// Whether a certificate has a name. Its signatures and dates must have been verified already.
pub(super) fn has_name(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let name = ServerName::try_from(name);
    let certificate = ParsedCertificate::try_from(certificate);
    matches!((certificate, name), (Ok(certificate), Ok(name))
        if verify_server_name(&certificate, &name).is_ok())
}
