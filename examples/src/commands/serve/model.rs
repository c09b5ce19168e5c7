//! A model that is ready to be asked, and where the one in use is kept.
//!
//! A request takes the model that is in use when it comes and keeps it until it is answered, so that a
//! new one never waits for requests, nor they for it. Until the last of them is answered both are held.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use lda_core::container::FileError;
use lda_core::infer::{Inference, InferenceError, Method};
use lda_core::model::TopicModel;
use thiserror::Error;

use crate::commands::serve::args::Args;
use crate::commands::serve::topics::LeadingWords;

/// Why a file does not become a model to ask.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The file is none of a model.
    #[error(transparent)]
    File(#[from] FileError),
    /// The model cannot be asked so.
    #[error("{path}: {source}", path = path.display())]
    Inference { path: PathBuf, source: InferenceError },
    /// The thread that opened it panicked.
    #[error("{path}: a fault of this program ended its loading", path = path.display())]
    Fault { path: PathBuf },
}

/// How a model is opened.
#[derive(Clone, Debug)]
pub struct Opening {
    pub path: PathBuf,
    map: bool,
    method: Method,
    seed: u64,
    max_terms: usize,
}

impl Opening {
    /// As the command line says.
    pub fn new(args: &Args) -> Self {
        Self {
            path: args.model.clone(),
            map: args.model_file.map,
            method: args.method.method(),
            seed: args.method.seed,
            max_terms: args.model_file.max_terms,
        }
    }

    /// Reads and checks all of the file, and prepares what requests need: seconds for a large one.
    pub fn open(&self) -> Result<Ready, OpenError> {
        // Mapped too, the file is somebody's, and may be anything.
        let model = match self.map {
            true => TopicModel::map(&self.path, true)?,
            false => TopicModel::load(&self.path)?,
        };
        let fingerprint = format!("{:016x}", model.fingerprint());
        let leading = LeadingWords::new(&model, self.max_terms);
        let inference = Inference::new(Box::new(model), self.method, self.seed)
            .map_err(|source| OpenError::Inference { path: self.path.clone(), source })?;
        Ok(Ready { inference, fingerprint, leading })
    }
}

/// A model with all that answers are made of.
#[derive(Debug)]
pub struct Ready {
    pub inference: Inference<Box<TopicModel>>,
    /// 16 hexadecimal digits of the model's fingerprint.
    pub fingerprint: String,
    pub leading: LeadingWords,
}

impl Ready {
    pub fn model(&self) -> &TopicModel {
        self.inference.model()
    }
}

/// The model in use.
#[derive(Debug, Default)]
pub struct Current(RwLock<Option<Arc<Ready>>>);

impl Current {
    /// None before the first one is loaded.
    pub fn get(&self) -> Option<Arc<Ready>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on requests get `ready`.
    pub fn set(&self, ready: Ready) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(ready));
    }
}

/// What tells a file from the one that was there before, without reading it.
#[derive(Debug, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    number: u64,
}

impl Stamp {
    /// None where there is no file.
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        let modified = metadata.modified().ok();
        Some(Self { modified, length: metadata.len(), number: number(&metadata) })
    }
}

#[cfg(unix)]
fn number(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> u64 {
    0
}
