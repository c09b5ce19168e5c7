//! Object stores: the protocol of S3 over a socket, faults, and a cluster with all its data in one.

mod cluster;
mod server;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lda_dist::storage::{Access, ObjectStore, Storage, StorageError};
use object_store::memory::InMemory;

use server::{BUCKET, Server};

/// A few bytes more than a part.
const MORE_THAN_A_PART: usize = (16 << 20) + 5;

/// Access to a server on the loopback, independent of the environment.
fn access(address: &impl ToString) -> Access {
    let endpoint = format!("http://{}", address.to_string());
    let settings = [
        ("aws_access_key_id", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("aws_region", "nowhere"),
        ("aws_endpoint", &endpoint),
        ("aws_allow_http", "true"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Access { patience: Duration::from_secs(2), settings }
}

fn opened(server: &Server) -> ObjectStore {
    ObjectStore::open(&format!("s3://{BUCKET}/some/prefix"), &access(&server.address)).unwrap()
}

#[test]
fn objects_are_written_and_read() {
    let server = Server::start();
    let store = opened(&server);
    assert_eq!(store.url(), "s3://bucket/some/prefix");
    assert!(!store.has("it").unwrap());
    store.remove("it").unwrap();
    store.write("it", b"old").unwrap();
    store.write("it", b"new").unwrap();
    assert_eq!(store.read("it").unwrap(), b"new");
    assert!(store.has("it").unwrap());
    assert_eq!(server.state().objects["some/prefix/it"], b"new");
    store.remove("it").unwrap();
    assert!(server.state().objects.is_empty());
    let error = store.read("it").unwrap_err();
    let StorageError::Store { place, error, .. } = &error else { panic!("{error}") };
    assert_eq!(place, "s3://bucket/some/prefix/it");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn other_stores_are_reached_at_their_urls() {
    let server = Server::start();
    let address = format!("http://{}", server.address);
    // The server accepts any credentials.
    let google = [
        ("google_base_url", &address[..]),
        ("google_bearer_token", "token"),
        ("allow_http", "true"),
    ];
    let azure = [
        ("azure_endpoint", &address[..]),
        ("azure_storage_account_name", "account"),
        ("azure_skip_signature", "true"),
        ("azure_allow_http", "true"),
    ];
    for (url, settings) in [("gs://bucket/a/b", &google[..]), ("az://bucket/a/b", &azure)] {
        let settings = settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let access = Access { patience: Duration::from_secs(2), settings: settings.collect() };
        let store = ObjectStore::open(url, &access).unwrap();
        assert!(!store.has("it").unwrap(), "{url}");
        store.write("it", b"it").unwrap();
        assert_eq!(store.read("it").unwrap(), b"it", "{url}");
        assert_eq!(server.state().objects["a/b/it"], b"it", "{url}");
        server.state().faults.push(("GET", 403));
        let error = store.read("it").unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{url}/it: ")) && error.contains("credentials"),
            "{error}"
        );
        server.state().objects.clear();
        let error = store.read("it").unwrap_err().to_string();
        assert!(error.contains("check that it was written there"), "{error}");
    }
}

#[test]
fn a_large_object_exists_after_its_last_part() {
    let server = Server::start();
    let store = opened(&server);
    let content: Vec<u8> = (0..MORE_THAN_A_PART).map(|at| (at / 7) as u8).collect();
    store.write("it", &content).unwrap();
    let asked = std::mem::take(&mut server.state().asked);
    let kinds: Vec<&str> = asked.iter().map(|it| it.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["POST", "PUT", "PUT", "POST"]);
    assert!(store.read("it").unwrap() == content);
    // A failed upload leaves the old object, and no parts.
    for fault in ["PUT /bucket/some/prefix/it?partNumber=2", "POST /bucket/some/prefix/it?uploadId"]
    {
        server.state().faults.push((fault, 400));
        let error = store.write("it", &vec![1; MORE_THAN_A_PART]).unwrap_err().to_string();
        assert!(error.starts_with("s3://bucket/some/prefix/it: "), "{error}");
        assert!(server.state().objects["some/prefix/it"] == content);
        assert!(server.state().uploads.is_empty(), "{fault}");
    }
}

#[test]
fn failed_requests_are_retried() {
    let server = Server::start();
    let store = opened(&server);
    server.state().faults.extend([("PUT", 503), ("PUT", 500), ("GET", 502)]);
    store.write("it", b"it").unwrap();
    assert_eq!(store.read("it").unwrap(), b"it");
    assert_eq!(server.state().asked.len(), 5);
}

#[test]
fn errors_have_place_and_remedy() {
    let server = Server::start();
    let store = opened(&server);
    for (status, remedy) in [
        (403, "set credentials with access in the environment (AWS_ACCESS_KEY_ID and"),
        (401, "set credentials"),
        (404, "check that it was written there, and that the bucket exists"),
        (400, "check that the store answers at its URL and permits the operation"),
    ] {
        server.state().faults.push(("GET", status));
        let error = store.read("it").unwrap_err().to_string();
        assert!(error.starts_with("s3://bucket/some/prefix/it: "), "{error}");
        assert!(error.contains(remedy) && !error.contains('\n'), "{status}: {error}");
    }
    server.state().faults.push(("HEAD", 403));
    assert!(store.has("it").is_err());
    server.state().faults.push(("DELETE", 403));
    assert!(store.remove("it").is_err());
    let other = ObjectStore::open("s3://other", &access(&server.address)).unwrap();
    let error = other.write("it", b"").unwrap_err().to_string();
    assert!(error.starts_with("s3://other/it: ") && error.contains("NoSuchBucket"), "{error}");
}

#[test]
fn an_unreachable_store_is_an_error() {
    // The listener is closed, so that connections to its address are refused.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let access = Access { patience: Duration::from_millis(300), ..access(&address) };
    let store = ObjectStore::open("s3://bucket/prefix", &access).unwrap();
    let begun = Instant::now();
    let error = store.read("it").unwrap_err().to_string();
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(error.starts_with("s3://bucket/prefix/it: "), "{error}");
    assert!(error.contains("refused"), "{error}");
    assert!(error.contains("check that the store answers at its URL"), "{error}");
}

/// The client itself would try for minutes.
#[cfg(feature = "hdfs")]
#[test]
fn an_unreachable_hdfs_is_an_error() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let access = Access { patience: Duration::from_millis(300), ..Access::default() };
    let store = ObjectStore::open(&format!("hdfs://{address}/some/prefix"), &access).unwrap();
    let begun = Instant::now();
    let place = format!("hdfs://{address}/some/prefix/it: ");
    let read = store.read("it").map(|_| ());
    for failed in [read, store.write("it", b"it"), store.has("it").map(|_| ()), store.remove("it")]
    {
        let error = failed.unwrap_err().to_string();
        assert!(error.starts_with(&place) && error.contains("no answer within 0.3 s"), "{error}");
        assert!(error.contains("check that the store answers at its URL"), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    for url in ["hdfs://", "hdfs:///path", "hdfs://user:secret@host/x"] {
        let error = ObjectStore::open(url, &access).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}

/// A run with a directory of HDFS, if one is given. The test removes what it writes.
#[cfg(feature = "hdfs")]
#[test]
#[ignore = "needs HDFS: LDA_HDFS_URL, such as hdfs://localhost:9000/tmp/lda-test"]
fn objects_are_written_to_hdfs_and_read() {
    let url = std::env::var("LDA_HDFS_URL").expect("the URL of a directory");
    let store = ObjectStore::open(&url, &Access::default()).unwrap();
    assert!(!store.has("it").unwrap());
    store.remove("it").unwrap();
    let content: Vec<u8> = (0..3 * MORE_THAN_A_PART).map(|at| (at / 7) as u8).collect();
    for content in [&b"old"[..], b"new", &content] {
        store.write("it", content).unwrap();
        assert!(store.has("it").unwrap() && store.read("it").unwrap() == content);
    }
    store.remove("it").unwrap();
    assert!(!store.has("it").unwrap());
    let error = store.read("it").unwrap_err();
    let StorageError::Store { error, .. } = &error else { panic!("{error}") };
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn invalid_urls_are_refused() {
    let refused = |url: &str| match ObjectStore::open(url, &Access::default()) {
        Err(StorageError::Url { url, why }) => format!("{url}: {why}"),
        other => panic!("{url}: {other:?}"),
    };
    for url in
        ["", "nips", "/nips", "s3:nips", "s3://", "ftp://host/x", "http://host/x", "file://host/x"]
    {
        let said = refused(url);
        assert!(said.contains("give s3://bucket/prefix, gs://"), "{url}: {said}");
    }
    assert!(refused("s3://bucket//x").contains("give s3://"));
    for url in ["s3://key:secret@bucket/x", "az://x/y?sig=secret", "s3://x/y#secret"] {
        let said = refused(url);
        assert!(!said.contains("secret"), "{url}: {said}");
    }
    let with = |name: &str| {
        let settings = vec![(name.to_owned(), "secret".to_owned())];
        let access = Access { settings, ..Access::default() };
        assert!(!format!("{access:?}").contains("secret"));
        let opened = ObjectStore::open("s3://bucket/x", &access);
        opened.unwrap_err().to_string()
    };
    assert!(with("aws_colour").contains("'aws_colour' is not valid"), "{}", with("aws_colour"));
    assert!(with("aws_allow_http").contains("check the settings"));
}

#[test]
fn a_store_can_be_used_and_dropped_in_a_runtime() {
    let store: Arc<dyn object_store::ObjectStore> = Arc::new(InMemory::new());
    let there = |prefix: &str| {
        ObjectStore::over(Arc::clone(&store), prefix.into(), format!("some:{prefix}")).unwrap()
    };
    for runtime in [
        tokio::runtime::Builder::new_current_thread().build().unwrap(),
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap(),
    ] {
        runtime.block_on(async {
            let store = there("a");
            store.write("it", b"it").unwrap();
            assert_eq!(store.read("it").unwrap(), b"it");
        });
    }
    // Objects outlive the client that wrote them, and belong to one prefix.
    assert!(there("a").has("it").unwrap());
    assert!(!there("b").has("it").unwrap());
    assert!(there("b").read("it").unwrap_err().to_string().starts_with("some:b/it: "));
}
