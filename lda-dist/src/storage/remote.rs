//! Objects of S3, Google Cloud Storage, Azure and compatible stores, through the crate
//! [`object_store`].

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

#[cfg(feature = "hdfs")]
use hdfs_native_object_store::HdfsObjectStoreBuilder;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStoreExt, ObjectStoreScheme, PutPayload, RetryConfig};
use rustls::crypto::ring;
use tokio::runtime::{self, Runtime};
use url::Url;

use super::{Storage, StorageError, checked};

/// Bytes of a part of a multipart upload; smaller objects take one request. With the 10,000 parts
/// that S3 allows, an object can have 160 GB.
const PART: usize = 16 << 20;
/// Largest length of a store's error message, in characters: some stores send pages.
const LONGEST_REASON: usize = 1000;
const ADDRESSES: &str = "give s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, hdfs://host:port/path or file:///path";

type Result<T, E = StorageError> = std::result::Result<T, E>;

/// Timeout and settings of an object store.
#[derive(Clone)]
pub struct Access {
    /// Time for which a request is retried while the store does not answer or is overloaded.
    pub patience: Duration,
    /// Settings by their names in the crate [`object_store`], such as `aws_endpoint` and
    /// `aws_secret_access_key`. They override the environment. Memory and files have none.
    pub settings: Vec<(String, String)>,
}

impl Default for Access {
    /// 30 seconds, and the settings of the environment.
    fn default() -> Self {
        Self { patience: Duration::from_secs(30), settings: Vec::new() }
    }
}

impl fmt::Debug for Access {
    /// Prints names only, because values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.settings.iter().map(|(name, _)| &name[..]).collect();
        f.debug_struct("Access")
            .field("patience", &self.patience)
            .field("settings", &names)
            .finish()
    }
}

/// Objects under a prefix of an object store.
///
/// Each call waits for one request; a write of more than 16 MiB waits for one request per 16 MiB,
/// each copied before it is sent, one after the other. The object exists once the last request was
/// answered. If the writer ends earlier, S3 keeps the invisible parts until a rule of the bucket for
/// incomplete uploads removes them.
///
/// A thread of the store makes the requests. The caller is blocked meanwhile, also if it runs on a
/// thread of an asynchronous runtime.
pub struct ObjectStore {
    url: String,
    prefix: Path,
    store: Arc<dyn object_store::ObjectStore>,
    /// Longest time of a request, if the client of the store has no such limit.
    limit: Option<Duration>,
    runtime: Option<Runtime>,
}

impl fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectStore").field(&self.url).finish()
    }
}

impl ObjectStore {
    /// Opens the store at a URL: `s3://bucket/prefix`, `gs://bucket/prefix`,
    /// `az://container/prefix`, other forms that the crate [`object_store`] supports, `hdfs://host:port/path` or
    /// `hdfs://service/path` with the feature `hdfs`, or `file:///path`. Every `memory:///` is a new store.
    /// Its objects are lost when this value is dropped.
    ///
    /// Credentials and settings come from the environment, under the names that the stores' own
    /// programs use: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`
    /// (and `AWS_ALLOW_HTTP=true` without TLS), `GOOGLE_APPLICATION_CREDENTIALS`,
    /// `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`; or from the machine (roles of
    /// instances and pods). Those of HDFS are in the files of `HADOOP_CONF_DIR` and in `HADOOP_USER_NAME`. No
    /// request is made yet.
    ///
    /// If the process has no default [`CryptoProvider`](rustls::crypto::CryptoProvider) of rustls,
    /// this installs ring.
    ///
    /// # Errors
    /// [`StorageError::Url`], also where settings make no sense.
    ///
    /// ```
    /// use lda_dist::storage::{Access, ObjectStore, Storage};
    ///
    /// let store = ObjectStore::open("memory:///", &Access::default())?;
    /// store.write("latest", b"epoch 40")?;
    /// assert_eq!(store.read("latest")?, b"epoch 40");
    /// assert!(ObjectStore::open("ftp://host/path", &Access::default()).is_err());
    /// # Ok::<(), lda_dist::storage::StorageError>(())
    /// ```
    pub fn open(url: &str, access: &Access) -> Result<Self> {
        let parsed = parse(url)?;
        let refused = |why: &dyn fmt::Display| StorageError::Url {
            url: parsed.to_string(),
            why: format!("{why}: {ADDRESSES}"),
        };
        if parsed.scheme() == "hdfs" {
            return Self::hdfs(&parsed, access);
        }
        let (scheme, prefix) =
            ObjectStoreScheme::parse(&parsed).map_err(|error| refused(&error))?;
        // The client panics without a provider. One that the program has installed stays.
        let _ = ring::default_provider().install_default();
        let retry = RetryConfig { retry_timeout: access.patience, ..RetryConfig::default() };
        macro_rules! service {
            ($builder:expr) => {{
                let mut builder = $builder.with_url(&parsed[..]).with_retry(retry);
                for (name, value) in &access.settings {
                    let key =
                        name.to_ascii_lowercase().parse().map_err(|error| unset(url, &error))?;
                    builder = builder.with_config(key, value);
                }
                Arc::new(builder.build().map_err(|error| unset(url, &error))?)
            }};
        }
        let store: Arc<dyn object_store::ObjectStore> = match scheme {
            ObjectStoreScheme::Local => Arc::new(LocalFileSystem::new().with_fsync(true)),
            ObjectStoreScheme::Memory => Arc::new(InMemory::new()),
            ObjectStoreScheme::AmazonS3 => {
                // Objects are removed one by one, and not every store supports bulk requests.
                let alone = AmazonS3ConfigKey::DisableBulkDelete;
                service!(AmazonS3Builder::from_env().with_config(alone, "true"))
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                service!(GoogleCloudStorageBuilder::from_env())
            }
            ObjectStoreScheme::MicrosoftAzure => service!(MicrosoftAzureBuilder::from_env()),
            _ => return Err(refused(&"not the URL of an object store")),
        };
        Self::over(store, prefix, parsed.to_string())
    }

    /// Opens a directory of HDFS.
    #[cfg(feature = "hdfs")]
    fn hdfs(url: &Url, access: &Access) -> Result<Self> {
        let refused = |why: String| StorageError::Url {
            url: url.to_string(),
            why: format!("{why}: {ADDRESSES}"),
        };
        if url.host_str().is_none_or(str::is_empty) {
            return Err(refused("it has no host".to_owned()));
        }
        let prefix = Path::from_url_path(url.path()).map_err(|error| refused(error.to_string()))?;
        let mut root = url.clone();
        root.set_path("");
        let settings = access.settings.iter().cloned();
        let builder = HdfsObjectStoreBuilder::new().with_url(root.as_str()).with_config(settings);
        let store = builder.build().map_err(|error| unset(url.as_str(), &error))?;
        let mut store = Self::over(Arc::new(store), prefix, url.to_string())?;
        store.limit = Some(access.patience);
        Ok(store)
    }

    #[cfg(not(feature = "hdfs"))]
    fn hdfs(url: &Url, _: &Access) -> Result<Self> {
        let why = "this build does not support HDFS: build it with --features hdfs".to_owned();
        Err(StorageError::Url { url: url.to_string(), why })
    }

    /// A prefix of an existing store, for example of another library or with its own limits. Errors show `url`.
    ///
    /// # Errors
    /// [`StorageError::Io`] if no thread can be started.
    pub fn over(
        store: Arc<dyn object_store::ObjectStore>,
        prefix: Path,
        url: String,
    ) -> Result<Self> {
        // A second thread would have nothing to do: requests wait for the network. Files are read
        // by threads that come and go.
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("lda-objects")
            .enable_all()
            .build();
        match runtime {
            Ok(runtime) => Ok(Self { url, prefix, store, limit: None, runtime: Some(runtime) }),
            Err(error) => Err(StorageError::Io { place: url, error }),
        }
    }

    /// URL of the prefix, without secrets.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes a request for an object and waits for its result. The request is not awaited on this
    /// thread, because a thread of an asynchronous runtime may not block on a future.
    fn ask<T, F>(
        &self,
        name: &str,
        request: impl FnOnce(Arc<dyn object_store::ObjectStore>, Path) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let request = request(Arc::clone(&self.store), self.prefix.clone().join(checked(name)?));
        let (sender, receiver) = mpsc::sync_channel(1);
        let runtime = self.runtime.as_ref().expect("the runtime exists until the store is dropped");
        let limit = self.limit;
        runtime.spawn(async move {
            // The receiver waits below.
            let _ = sender.send(within(limit, request).await);
        });
        let failed = |error, remedy| {
            let slash = if self.url.ends_with('/') { "" } else { "/" };
            StorageError::Store { place: format!("{}{slash}{name}", self.url), error, remedy }
        };
        match receiver.recv() {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => {
                let (kind, remedy) = judge(&error);
                Err(failed(io::Error::new(kind, reason(&error)), remedy))
            }
            Err(_) => Err(failed(io::Error::other("the client panicked"), "see its message above")),
        }
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        // No request is in flight, and a thread of an asynchronous runtime may not block here.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Storage for ObjectStore {
    fn read(&self, name: &str) -> Result<Vec<u8>> {
        #[cfg(feature = "hdfs")]
        if self.limit.is_some() {
            // The limit is for a part of the object.
            return self.read_parts(name);
        }
        let content =
            self.ask(name, |store, path| async move { store.get(&path).await?.bytes().await })?;
        Ok(content.into())
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        if content.len() <= PART {
            let content = PutPayload::from(content.to_vec());
            return self.ask(name, |store, path| async move {
                store.put(&path, content).await.map(|_| ())
            });
        }
        let begin = |store: Arc<dyn object_store::ObjectStore>, path: Path| async move {
            store.put_multipart(&path).await
        };
        let mut upload = self.ask(name, begin)?;
        for part in content.chunks(PART) {
            let sent = upload.put_part(PutPayload::from(part.to_vec()));
            if let Err(error) = self.ask(name, |_, _| sent) {
                // The first error is the one to show.
                let _ = self.ask(name, |_, _| async move { upload.abort().await });
                return Err(error);
            }
        }
        self.ask(name, |_, _| async move {
            let ended = upload.complete().await;
            if ended.is_err() {
                let _ = upload.abort().await;
            }
            ended.map(|_| ())
        })
    }

    fn has(&self, name: &str) -> Result<bool> {
        there(self.ask(name, |store, path| async move { store.head(&path).await }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        there(self.ask(name, |store, path| async move { store.delete(&path).await }))?;
        Ok(())
    }
}

#[cfg(feature = "hdfs")]
impl ObjectStore {
    /// Reads an object part by part.
    fn read_parts(&self, name: &str) -> Result<Vec<u8>> {
        use tokio_stream::StreamExt;

        let mut content = Vec::new();
        let mut parts =
            self.ask(name, |store, path| async move { Ok(store.get(&path).await?.into_stream()) })?;
        loop {
            let (rest, part) = self.ask(name, |_, _| async move {
                let part = parts.next().await.transpose()?;
                Ok((parts, part))
            })?;
            parts = rest;
            match part {
                Some(part) => content.extend_from_slice(&part),
                None => return Ok(content),
            }
        }
    }
}

/// The result of a request, or an error after this time.
async fn within<T>(
    limit: Option<Duration>,
    request: impl Future<Output = object_store::Result<T>>,
) -> object_store::Result<T> {
    let Some(limit) = limit else { return request.await };
    let late = |_| {
        let why = format!("no answer within {} s", limit.as_secs_f32());
        Err(object_store::Error::Generic { store: "HDFS", source: why.into() })
    };
    tokio::time::timeout(limit, request).await.unwrap_or_else(late)
}

/// Whether the object exists.
fn there<T>(found: Result<T>) -> Result<bool> {
    match found {
        Ok(_) => Ok(true),
        Err(StorageError::Store { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Parses a URL and refuses one with secrets.
fn parse(url: &str) -> Result<Url> {
    let visible = || url.split(['?', '#']).next().unwrap_or_default().to_owned();
    let refused = |url, why: &str| StorageError::Url { url, why: format!("{why}: {ADDRESSES}") };
    let mut parsed = match Url::parse(url) {
        Ok(parsed) if url.contains("://") => parsed,
        _ => return Err(refused(visible(), "not the URL of a storage")),
    };
    if parsed.password().is_some() {
        // Cannot fail: the URL has a password.
        let _ = parsed.set_password(None);
        let why =
            "it contains a password, which others would see: set it in the environment instead";
        return Err(StorageError::Url { url: parsed.to_string(), why: why.to_owned() });
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(refused(visible(), "remove the part after the prefix"));
    }
    Ok(parsed)
}

/// Error of invalid settings.
fn unset(url: &str, error: &object_store::Error) -> StorageError {
    let why = format!("{}: check the settings, which come from the environment", reason(error));
    StorageError::Url { url: url.to_owned(), why }
}

/// Kind of an error, and its remedy.
fn judge(error: &object_store::Error) -> (io::ErrorKind, &'static str) {
    match error {
        object_store::Error::NotFound { .. } => {
            (io::ErrorKind::NotFound, "check that it was written there, and that the bucket exists")
        }
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => (
            io::ErrorKind::PermissionDenied,
            "set credentials with access in the environment (AWS_ACCESS_KEY_ID and so on)",
        ),
        _ => (
            io::ErrorKind::Other,
            "check that the store answers at its URL and permits the operation",
        ),
    }
}

/// An error and its causes on one line.
fn reason(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(LONGEST_REASON).collect()
}
