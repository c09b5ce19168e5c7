//! TLS: who is let in, who is not, and what both are told.

use std::fs;
use std::path::{Path, PathBuf};

use lda_transport::grpc::{Grpc, Options, Peer, StartError, Tls, TlsError, Trouble};
use lda_transport::{Loss, NodeId, Transport};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::common::*;

/// An authority, and a folder for what it has signed.
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// With a folder of this name, which no other test has.
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

    /// Files of this name, of a certificate of these names.
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

/// What two nodes make of each other's refusal: the first is connected to, the second connects.
fn refused(first: Options, second: Options) -> (Trouble, Trouble) {
    let first = start(0, first);
    let second = start(1, with_peer(second, 0, address(&first)));
    let theirs = until("trouble", || second.trouble(NodeId(0)));
    let ours = until("somebody to be turned away", || first.strangers().last).1;
    (ours, theirs)
}

#[track_caller]
fn about_certificates(troubles: (Trouble, Trouble), word: &str) {
    match &troubles {
        (Trouble::Certificate { why: ours }, Trouble::Certificate { why: theirs })
            if format!("{ours} {theirs}").to_lowercase().contains(word) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn nodes_of_one_authority_talk() {
    let authority = Authority::new("talk");
    let node = || secured(authority.tls("node", &["127.0.0.1"]));
    let (mut first, mut second) = pair(node(), node());
    assert!(first.capabilities().encrypted);
    talk(&mut first, &mut second);
    second.close(PATIENCE);
    assert_eq!(hears_down(&mut first, 1), Loss::Closed);
}

#[test]
fn who_connects_needs_no_certificate_where_that_is_said() {
    let authority = Authority::new("one-sided");
    let one_sided = |name: &str, names: &[&str]| {
        let mut tls = authority.tls(name, names);
        tls.mutual = false;
        secured(tls)
    };
    let (mut first, mut second) =
        pair(one_sided("first", &["127.0.0.1"]), one_sided("second", &["nobody"]));
    talk(&mut first, &mut second);
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let good = || secured(ours.tls("good", &["127.0.0.1"]));
    // Both know both authorities, but for one of them.
    let stranger = theirs.tls("stranger", &["127.0.0.1"]);
    let knows_ours = Tls::new(ours.file("authority.pem"), &stranger.certificate, &stranger.key);
    about_certificates(refused(good(), secured(knows_ours.clone())), "");
    about_certificates(refused(secured(knows_ours), good()), "");
}

#[test]
fn a_certificate_that_is_out_of_date_is_refused() {
    let authority = Authority::new("expired");
    let good = || secured(authority.tls("good", &["127.0.0.1"]));
    let expired = || secured(authority.expired("expired"));
    about_certificates(refused(good(), expired()), "expired");
    about_certificates(refused(expired(), good()), "expired");
}

#[test]
fn a_node_without_a_certificate_is_refused() {
    let authority = Authority::new("none");
    let mut without = authority.tls("without", &["127.0.0.1"]);
    without.mutual = false;
    let good = authority.tls("good", &["127.0.0.1"]);
    about_certificates(refused(secured(good), secured(without)), "");
}

#[test]
fn a_node_whose_certificate_has_another_name_is_refused() {
    let authority = Authority::new("names");
    let node = |name| secured(authority.tls(name, &[name, "127.0.0.1"]));
    // Who is connected to.
    let first = start(0, node("first"));
    let mut options = node("second");
    let at = address(&first).to_string();
    options.peers.insert(NodeId(0), Peer::at(&at).named("other"));
    let second = start(1, options);
    let trouble = until("trouble", || second.trouble(NodeId(0)));
    assert!(matches!(trouble, Trouble::Certificate { .. }), "{trouble:?}");
    drop((first, second));

    // Who connects.
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
    hears_up(&mut good, 0);
    let trouble = until("trouble", || bad.trouble(NodeId(0)));
    assert!(matches!(&trouble, Trouble::Refused { words } if words.contains("third")), "{trouble}");
    let ours = until("somebody to be turned away", || first.strangers().last).1;
    assert!(matches!(ours, Trouble::Certificate { .. }), "{ours:?}");
    hears_up(&mut first, 1);
    talk(&mut first, &mut good);
}

#[test]
fn tls_to_none_and_the_reverse_are_told() {
    let authority = Authority::new("mixed");
    let tls = || secured(authority.tls("node", &["127.0.0.1"]));
    assert_eq!(refused(tls(), options()), (Trouble::SpeaksPlain, Trouble::SpeaksTls));
    let (ours, theirs) = refused(options(), tls());
    assert_eq!(ours, Trouble::SpeaksTls);
    assert_eq!(theirs, Trouble::SpeaksPlain);
}

#[test]
fn files_that_are_of_no_use_are_told() {
    let authority = Authority::new("files");
    let good = authority.tls("good", &["127.0.0.1"]);
    let other = authority.tls("other", &["127.0.0.1"]);
    let told = |change: &dyn Fn(&mut Tls)| {
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
        let error = told(&|tls| change(tls, missing.clone()));
        assert!(matches!(&error, TlsError::Unreadable { path, .. } if *path == missing), "{error}");
        // A file of another kind.
        let wrong = authority.file("words.pem");
        fs::write(&wrong, "words").unwrap();
        let error = told(&|tls| change(tls, wrong.clone()));
        assert!(matches!(&error, TlsError::NotPem { path, .. } if *path == wrong), "{error}");
    }
    let error = told(&|tls| tls.key = tls.certificate.clone());
    assert!(matches!(error, TlsError::NotPem { what: "private key", .. }), "{error}");
    let error = told(&|tls| tls.key = other.key.clone());
    assert!(matches!(error, TlsError::Mismatch { .. }), "{error}");
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let bad = authority.file("nonsense.pem");
    fs::write(&bad, nonsense).unwrap();
    for change in [(|tls, path| tls.authority = path) as fn(&mut Tls, PathBuf), |tls, path| {
        tls.certificate = path
    }] {
        let error = told(&|tls| change(tls, bad.clone()));
        assert!(matches!(&error, TlsError::Unusable { path, .. } if *path == bad), "{error}");
    }
}

#[test]
fn new_certificates_are_used_for_new_connections() {
    let authority = Authority::new("reload");
    let first = authority.tls("first", &["127.0.0.1"]);
    let second = authority.tls("second", &["127.0.0.1"]);
    let (mut first, mut second) = pair(secured(first), secured(second));
    let at = address(&first);

    // A connection stays, whatever becomes of its certificate.
    authority.expired("second");
    talk(&mut first, &mut second);
    second.reload().unwrap();
    // The next has the new one. It is out of date.
    first.close(PATIENCE);
    assert_eq!(hears_down(&mut second, 0), Loss::Closed);
    let mut options = secured(authority.tls("first", &["127.0.0.1"]));
    options.listen = Some(at.to_string());
    let mut first = start(0, options);
    let expired =
        || matches!(second.trouble(NodeId(0))?, Trouble::Certificate { .. }).then_some(());
    until("an expired certificate", expired);

    // A file that is of no use changes nothing.
    fs::write(authority.file("second.pem"), "words").unwrap();
    let error = until("a broken file", || second.certificates().err());
    assert!(matches!(error, TlsError::NotPem { .. }), "{error}");
    assert_eq!(second.reload(), Err(error));

    // One that is good is taken up by itself.
    authority.tls("second", &["127.0.0.1"]);
    hears_up(&mut second, 0);
    hears_up(&mut first, 1);
    assert_eq!(second.certificates(), Ok(()));
    talk(&mut first, &mut second);
}
