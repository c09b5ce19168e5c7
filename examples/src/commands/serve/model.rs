//! Loading of a model, and the model in use.
//!
//! A request takes the model in use when it arrives and holds it until it is answered. A new model
//! therefore never waits for requests, and requests never wait for it; both models are in memory until
//! the last request of the old one is answered.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use lda_core::container::FileError;
use lda_core::corpus::ReadError;
use lda_core::corpus::read::Tokenizer;
use lda_core::infer::{Inference, InferenceError, Method};
use lda_core::model::TopicModel;
use lda_examples::method::MethodError;
use lda_examples::reading;
use lda_examples::text::WordArgs;
use thiserror::Error;
use tracing::warn;

use crate::commands::serve::args::Args;
use crate::commands::serve::leading_words::LeadingWords;
use crate::commands::serve::mapped_model;

/// Errors of opening a model.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The file is not a model.
    #[error(transparent)]
    File(#[from] FileError),
    /// The inference options do not fit the model.
    #[error("{path}: {source}", path = path.display())]
    Inference { path: PathBuf, source: InferenceError },
    /// The stop words cannot be read.
    #[error(transparent)]
    Words(#[from] ReadError),
    /// The thread that opened it panicked.
    #[error("{path}: loading panicked; this is a bug", path = path.display())]
    Fault { path: PathBuf },
}

/// Path and options for opening a model.
#[derive(Clone, Debug)]
pub struct Opening {
    pub path: PathBuf,
    words: WordArgs,
    map: bool,
    method: Method,
    seed: u64,
    max_terms: usize,
}

impl Opening {
    /// Takes them from the command line.
    ///
    /// # Errors
    /// [`MethodError`].
    pub fn new(args: &Args) -> Result<Self, MethodError> {
        Ok(Self {
            path: args.model.clone(),
            words: args.words.clone(),
            map: args.model_file.map,
            method: args.method.method()?,
            seed: args.method.seed,
            max_terms: args.model_file.max_terms,
        })
    }

    /// Reads and checks the whole file and prepares inference; takes seconds for a large model.
    pub fn open(&self) -> Result<Ready, OpenError> {
        // The file is untrusted input, so a mapped file is checked too.
        let model = match self.map {
            true => mapped_model::open(&self.path)?,
            false => TopicModel::load(&self.path)?,
        };
        let fingerprint = format!("{:016x}", model.fingerprint());
        let leading = LeadingWords::new(&model, self.max_terms);
        let rules = reading::rules(&model);
        if let Some(warning) = self.words.warning(rules) {
            warn!("{}", warning.trim_start_matches("warning: "));
        }
        let tokenizer = Tokenizer::new(&self.words.options(rules))?;
        let inference = Inference::new(Box::new(model), self.method, self.seed)
            .map_err(|source| OpenError::Inference { path: self.path.clone(), source })?;
        Ok(Ready { inference, fingerprint, leading, tokenizer })
    }
}

/// A model that is prepared for inference.
#[derive(Debug)]
pub struct Ready {
    pub inference: Inference<Box<TopicModel>>,
    /// 16 hexadecimal digits of the model's fingerprint.
    pub fingerprint: String,
    pub leading: LeadingWords,
    /// Cuts texts into words as those that the model was trained on.
    pub tokenizer: Tokenizer,
}

impl Ready {
    pub fn model(&self) -> &TopicModel {
        self.inference.model()
    }
}

/// The model in use, replaced on reload.
#[derive(Debug, Default)]
pub struct Current(RwLock<Option<Arc<Ready>>>);

impl Current {
    /// `None` until the first model is loaded.
    pub fn get(&self) -> Option<Arc<Ready>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes `ready` the model of requests that arrive from now on.
    pub fn set(&self, ready: Ready) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(ready));
    }
}

/// Metadata that detects a replaced file without reading it.
#[derive(Debug, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    number: u64,
}

impl Stamp {
    /// `None` if there is no file.
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
