//! TLS: accepted and rejected certificates, and the errors at both sides.

use std::fs;
use std::path::{Path, PathBuf};

use lda_transport::grpc::{ConnectError, Grpc, GrpcOptions, Peer, StartError, Tls, TlsError};
use lda_transport::{DisconnectReason, NodeId, Transport};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::common::*;

/// Certificate authority with a directory for the certificates it has signed.
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Creates an authority. The name of its directory must be unique among the tests.
    pub fn new(name: &str) -> Self {
        let run = format!("grpc-{}-{name}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(run);
        fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.join("authority.pem"), certificate.pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    /// Writes a certificate with these subject names to files called `name`.
    pub fn tls(&self, name: &str, names: &[&str]) -> Tls {
        self.write(name, names, |_| {})
    }

    fn write(
        &self,
        name: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Tls {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let (to, of) = (self.file(&format!("{name}.pem")), self.file(&format!("{name}.key")));
        fs::write(&to, certificate.pem()).unwrap();
        fs::write(&of, key.serialize_pem()).unwrap();
        Tls::new(self.file("authority.pem"), to, of)
    }

    fn expired(&self, name: &str) -> Tls {
        self.write(name, &["127.0.0.1"], |params| {
            params.not_before = rcgen::date_time_ymd(2000, 1, 1);
            params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the errors of a rejected connection: of the first node, which accepts, and of the
/// second, which connects.
fn refused(first: GrpcOptions, second: GrpcOptions) -> (ConnectError, ConnectError) {
    let first = start(0, first);
    let second = start(1, with_peer(second, 0, address(&first)));
    let theirs = wait_for("a connection error", || second.connect_error(NodeId(0)));
    let ours = wait_for("a rejected connection", || first.rejected().last).1;
    (ours, theirs)
}

#[track_caller]
fn assert_certificate_errors(errors: (ConnectError, ConnectError), word: &str) {
    match &errors {
        (
            ConnectError::Certificate { reason: ours },
            ConnectError::Certificate { reason: theirs },
        ) if format!("{ours} {theirs}").to_lowercase().contains(word) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn nodes_of_one_authority_connect() {
    let authority = Authority::new("talk");
    let node = || secured(authority.tls("node", &["127.0.0.1"]));
    let (mut first, mut second) = pair(node(), node());
    assert!(first.capabilities().encrypted);
    check_traffic(&mut first, &mut second);
    second.close(PATIENCE);
    assert_eq!(expect_down(&mut first, 1), DisconnectReason::Closed);
}

#[test]
fn without_mutual_only_the_server_needs_a_certificate() {
    let authority = Authority::new("one-sided");
    let one_sided = |name: &str, names: &[&str]| {
        let mut tls = authority.tls(name, names);
        tls.mutual = false;
        secured(tls)
    };
    let (mut first, mut second) =
        pair(one_sided("first", &["127.0.0.1"]), one_sided("second", &["unknown"]));
    check_traffic(&mut first, &mut second);
}

#[test]
fn a_certificate_of_another_authority_is_rejected() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let good = || secured(ours.tls("good", &["127.0.0.1"]));
    // The stranger trusts our authority, which has not signed its certificate.
    let stranger = theirs.tls("stranger", &["127.0.0.1"]);
    let knows_ours = Tls::new(ours.file("authority.pem"), &stranger.certificate, &stranger.key);
    assert_certificate_errors(refused(good(), secured(knows_ours.clone())), "");
    assert_certificate_errors(refused(secured(knows_ours), good()), "");
}

#[test]
fn an_expired_certificate_is_rejected() {
    let authority = Authority::new("expired");
    let good = || secured(authority.tls("good", &["127.0.0.1"]));
    let expired = || secured(authority.expired("expired"));
    assert_certificate_errors(refused(good(), expired()), "expired");
    assert_certificate_errors(refused(expired(), good()), "expired");
}

#[test]
fn a_missing_certificate_is_rejected() {
    let authority = Authority::new("none");
    let mut without = authority.tls("without", &["127.0.0.1"]);
    without.mutual = false;
    let good = authority.tls("good", &["127.0.0.1"]);
    assert_certificate_errors(refused(secured(good), secured(without)), "");
}

#[test]
fn a_certificate_with_another_name_is_rejected() {
    let authority = Authority::new("names");
    let node = |name| secured(authority.tls(name, &[name, "127.0.0.1"]));
    // The accepting node has another name.
    let first = start(0, node("first"));
    let mut options = node("second");
    let at = address(&first).to_string();
    options.peers.insert(NodeId(0), Peer::at(&at).named("other"));
    let second = start(1, options);
    let error = wait_for("a connection error", || second.connect_error(NodeId(0)));
    assert!(matches!(error, ConnectError::Certificate { .. }), "{error:?}");
    drop((first, second));

    // The connecting node has another name.
    let mut options = node("first");
    options.peers.insert(NodeId(1), Peer::default().named("second"));
    options.peers.insert(NodeId(2), Peer::default().named("third"));
    let mut first = start(0, options);
    let second = |id| {
        let mut options = node("second");
        let at = address(&first).to_string();
        options.peers.insert(NodeId(0), Peer::at(&at).named("first"));
        start(id, options)
    };
    let (mut good, bad) = (second(1), second(2));
    expect_up(&mut good, 0);
    let error = wait_for("a connection error", || bad.connect_error(NodeId(0)));
    assert!(
        matches!(&error, ConnectError::Refused { reason } if reason.contains("third")),
        "{error}"
    );
    let ours = wait_for("a rejected connection", || first.rejected().last).1;
    assert!(matches!(ours, ConnectError::Certificate { .. }), "{ours:?}");
    expect_up(&mut first, 1);
    check_traffic(&mut first, &mut good);
}

#[test]
fn tls_and_plaintext_are_told_apart() {
    let authority = Authority::new("mixed");
    let tls = || secured(authority.tls("node", &["127.0.0.1"]));
    assert_eq!(
        refused(tls(), options()),
        (ConnectError::PeerUsesPlaintext, ConnectError::PeerUsesTls)
    );
    let (ours, theirs) = refused(options(), tls());
    assert_eq!(ours, ConnectError::PeerUsesTls);
    assert_eq!(theirs, ConnectError::PeerUsesPlaintext);
}

#[test]
fn invalid_files_are_reported() {
    let authority = Authority::new("files");
    let good = authority.tls("good", &["127.0.0.1"]);
    let other = authority.tls("other", &["127.0.0.1"]);
    let error_of = |change: &dyn Fn(&mut Tls)| {
        let mut tls = good.clone();
        change(&mut tls);
        match Grpc::start(NodeId(0), secured(tls)) {
            Err(StartError::Tls(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let missing = authority.file("missing.pem");
    for change in [
        (|tls, path| tls.authority = path) as fn(&mut Tls, PathBuf),
        |tls, path| tls.certificate = path,
        |tls, path| tls.key = path,
    ] {
        let error = error_of(&|tls| change(tls, missing.clone()));
        assert!(matches!(&error, TlsError::Unreadable { path, .. } if *path == missing), "{error}");
        // A file that is not PEM.
        let wrong = authority.file("words.pem");
        fs::write(&wrong, "words").unwrap();
        let error = error_of(&|tls| change(tls, wrong.clone()));
        assert!(matches!(&error, TlsError::NotPem { path, .. } if *path == wrong), "{error}");
    }
    let error = error_of(&|tls| tls.key = tls.certificate.clone());
    assert!(matches!(error, TlsError::NotPem { expected: "private key", .. }), "{error}");
    let error = error_of(&|tls| tls.key = other.key.clone());
    assert!(matches!(error, TlsError::Mismatch { .. }), "{error}");
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let bad = authority.file("nonsense.pem");
    fs::write(&bad, nonsense).unwrap();
    for change in [(|tls, path| tls.authority = path) as fn(&mut Tls, PathBuf), |tls, path| {
        tls.certificate = path
    }] {
        let error = error_of(&|tls| change(tls, bad.clone()));
        assert!(matches!(&error, TlsError::Unusable { path, .. } if *path == bad), "{error}");
    }
}

#[test]
fn new_connections_use_reloaded_certificates() {
    let authority = Authority::new("reload");
    let first = authority.tls("first", &["127.0.0.1"]);
    let second = authority.tls("second", &["127.0.0.1"]);
    let (mut first, mut second) = pair(secured(first), secured(second));
    let at = address(&first);

    // A connection stays up when its certificate expires.
    authority.expired("second");
    check_traffic(&mut first, &mut second);
    second.reload_certificates().unwrap();
    // The next connection uses the new certificate, which is expired.
    first.close(PATIENCE);
    assert_eq!(expect_down(&mut second, 0), DisconnectReason::Closed);
    let mut options = secured(authority.tls("first", &["127.0.0.1"]));
    options.listen = Some(at.to_string());
    let mut first = start(0, options);
    let expired = || {
        matches!(second.connect_error(NodeId(0))?, ConnectError::Certificate { .. }).then_some(())
    };
    wait_for("an expired certificate", expired);

    // An invalid file leaves the previous certificate in use.
    fs::write(authority.file("second.pem"), "words").unwrap();
    let error = wait_for("a broken file", || second.certificate_status().err());
    assert!(matches!(error, TlsError::NotPem { .. }), "{error}");
    assert_eq!(second.reload_certificates().unwrap_err().to_string(), error.to_string());

    // A valid file is loaded without a call of `reload_certificates`.
    authority.tls("second", &["127.0.0.1"]);
    expect_up(&mut second, 0);
    expect_up(&mut first, 1);
    assert!(second.certificate_status().is_ok());
    check_traffic(&mut first, &mut second);
}
