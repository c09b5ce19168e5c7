//! Objects of an object store: S3, Google Cloud Storage, Azure and what speaks their protocols, by
//! the crate [`object_store`].

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

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

/// Bytes of a part of an object that is sent in several: less is one request. Of the 10,000 parts
/// that S3 takes this makes 160 GB.
const PART: usize = 16 << 20;
/// Of what a store says, at most: some send pages.
const LONGEST_REASON: usize = 1000;
const ADDRESSES: &str =
    "give s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///path";

type Result<T, E = StorageError> = std::result::Result<T, E>;

/// How an object store is reached, beside its address.
#[derive(Clone)]
pub struct Access {
    /// How long a request is made again and again that the store has not answered, or has put off.
    pub patience: Duration,
    /// Settings by their names in the crate [`object_store`], as `aws_endpoint` and
    /// `aws_secret_access_key`, which go before those of the environment; memory and files have
    /// none.
    pub settings: Vec<(String, String)>,
}

impl Default for Access {
    /// Half a minute, and whatever the environment says.
    fn default() -> Self {
        Self { patience: Duration::from_secs(30), settings: Vec::new() }
    }
}

impl fmt::Debug for Access {
    /// Values may be secrets.
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
/// Each call waits for one request, and a write of more than 16 MiB for one each 16 MiB, which are
/// copied before they are sent, one after the other. An object is there when the last has been
/// answered; of a writer that ends before, S3 keeps parts that nobody sees, until a rule of the
/// bucket for unfinished uploads takes them away.
///
/// Requests are made by a thread of its own. Who calls is blocked meanwhile, wherever that is: on a
/// thread of an asynchronous runtime too, where others have to wait for it then.
pub struct ObjectStore {
    url: String,
    prefix: Path,
    store: Arc<dyn object_store::ObjectStore>,
    runtime: Option<Runtime>,
}

impl fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectStore").field(&self.url).finish()
    }
}

impl ObjectStore {
    /// That at an address: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`,
    /// their other forms that the crate [`object_store`] knows, or `file:///path`. `memory:///` is
    /// another one each time it is opened, and gone with it.
    ///
    /// Credentials and the like are those of the environment, by the names of the stores' own
    /// programs: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`
    /// (and `AWS_ALLOW_HTTP=true` where that has no TLS), `GOOGLE_APPLICATION_CREDENTIALS`,
    /// `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`; or what the machine has been
    /// given (roles of instances and pods). Nothing is asked of the store yet.
    ///
    /// Where the process has no default [`CryptoProvider`](rustls::crypto::CryptoProvider) of
    /// rustls, ring becomes it.
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
        let (scheme, prefix) =
            ObjectStoreScheme::parse(&parsed).map_err(|error| refused(&error))?;
        // The client panics where there is none. Who has set one keeps it.
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
                // Objects are removed one by one, and not every store has the other request.
                let alone = AmazonS3ConfigKey::DisableBulkDelete;
                service!(AmazonS3Builder::from_env().with_config(alone, "true"))
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                service!(GoogleCloudStorageBuilder::from_env())
            }
            ObjectStoreScheme::MicrosoftAzure => service!(MicrosoftAzureBuilder::from_env()),
            _ => return Err(refused(&"it is of no store that takes objects")),
        };
        Self::over(store, prefix, parsed.to_string())
    }

    /// A prefix of a store that is there already, as that of another library (HDFS by
    /// `hdfs-native-object-store`), or with bounds of its own; errors name it so.
    ///
    /// # Errors
    /// [`StorageError::Io`] where the system gives no thread.
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
            Ok(runtime) => Ok(Self { url, prefix, store, runtime: Some(runtime) }),
            Err(error) => Err(StorageError::Io { place: url, error }),
        }
    }

    /// Its address, without what may be secret in it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What becomes of a request for an object. It is not awaited on this thread, as one that
    /// belongs to a runtime may not do so.
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
        let runtime = self.runtime.as_ref().expect("it goes when the store does");
        runtime.spawn(async move {
            // It is waited for.
            let _ = sender.send(request.await);
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
            Err(_) => {
                Err(failed(io::Error::other("its library has panicked"), "look at what it said"))
            }
        }
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        // Nothing is underway. To wait is not allowed where this thread belongs to a runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Storage for ObjectStore {
    fn read(&self, name: &str) -> Result<Vec<u8>> {
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

/// Whether there was something.
fn there<T>(found: Result<T>) -> Result<bool> {
    match found {
        Ok(_) => Ok(true),
        Err(StorageError::Store { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// An address without secrets.
fn parse(url: &str) -> Result<Url> {
    let visible = || url.split(['?', '#']).next().unwrap_or_default().to_owned();
    let refused = |url, why: &str| StorageError::Url { url, why: format!("{why}: {ADDRESSES}") };
    let mut parsed = match Url::parse(url) {
        Ok(parsed) if url.contains("://") => parsed,
        _ => return Err(refused(visible(), "it is no address of a storage")),
    };
    if parsed.password().is_some() {
        // It is there, so it can be taken away.
        let _ = parsed.set_password(None);
        let why = "there is a password in it, which others would see: give it by the environment";
        return Err(StorageError::Url { url: parsed.to_string(), why: why.to_owned() });
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(refused(visible(), "nothing may follow the prefix"));
    }
    Ok(parsed)
}

/// Settings that are no such.
fn unset(url: &str, error: &object_store::Error) -> StorageError {
    let why =
        format!("{}: look at the settings, which are those of the environment", reason(error));
    StorageError::Url { url: url.to_owned(), why }
}

/// What kind of error it is, and what to look at.
fn judge(error: &object_store::Error) -> (io::ErrorKind, &'static str) {
    match error {
        object_store::Error::NotFound { .. } => {
            (io::ErrorKind::NotFound, "look whether it was written there, and the bucket is there")
        }
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => (
            io::ErrorKind::PermissionDenied,
            "give credentials that may use it, by the environment (AWS_ACCESS_KEY_ID and the like)",
        ),
        _ => (
            io::ErrorKind::Other,
            "look whether the store answers at its address, and lets this be done",
        ),
    }
}

/// An error with its causes, on one line.
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
