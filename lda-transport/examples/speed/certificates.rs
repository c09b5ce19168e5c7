//! Certificates for the loopback, created for each table and left in the directory for temporary
//! files.

use std::env;
use std::fs;
use std::path::PathBuf;

use lda_transport::grpc::Tls;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::Result;

/// Files of an authority and of one certificate that both sides use. Existing files are used.
pub fn files() -> Result<Tls> {
    let at: PathBuf = env::temp_dir().join("lda-transport-speed");
    let [authority, certificate, key] =
        ["authority.pem", "certificate.pem", "key.pem"].map(|name| at.join(name));
    if !key.exists() {
        fs::create_dir_all(&at)?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = KeyPair::generate()?;
        fs::write(&authority, params.self_signed(&own)?.pem())?;
        let issuer = Issuer::new(params, own);
        let pair = KeyPair::generate()?;
        let signed =
            CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&pair, &issuer)?;
        fs::write(&certificate, signed.pem())?;
        fs::write(&key, pair.serialize_pem())?;
    }
    Ok(Tls::new(authority, certificate, key))
}
