//! Loading of a model, and the model in use.
//!
//! A request takes the model in use when it arrives and holds it until it is answered. A new model
//! therefore never waits for requests, and requests never wait for it; both models are in memory until
//! the last request of the old one is answered.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
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
use tracing::{error, warn};

use crate::commands::serve::args::Args;
use crate::commands::serve::leading_words::LeadingWords;
use crate::commands::serve::mapped_model;
use crate::commands::serve::problem::Problem;

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
    /// The file cannot be opened.
    #[error("{path}: cannot read: {source}", path = path.display())]
    Open { path: PathBuf, source: io::Error },
    /// The model is a directory, a pipe or a device.
    #[error("{path}: it is not a file: give a model of `lda train --save`", path = path.display())]
    NoFile { path: PathBuf },
    /// The file changed while it was mapped.
    #[error("{path}: it changed while it was opened: replace it, and do not write into it", path = path.display())]
    Changed { path: PathBuf },
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

    /// Opens the model again, unless it is not a file: to open a pipe would wait for a writer, for ever.
    pub fn reopen(&self) -> Result<Ready, OpenError> {
        match self.path.metadata() {
            Ok(metadata) if !metadata.is_file() => {
                Err(OpenError::NoFile { path: self.path.clone() })
            }
            _ => self.open(),
        }
    }

    /// Reads and checks the whole file and prepares inference; takes seconds for a large model.
    pub fn open(&self) -> Result<Ready, OpenError> {
        // The file is untrusted input, so a mapped file is checked too.
        let (model, mapped) = match self.map {
            true => {
                let mapped = MappedFile::open(&self.path)?;
                (mapped_model::open(&self.path)?, Some(mapped))
            }
            false => (TopicModel::load(&self.path)?, None),
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
        if mapped.as_ref().is_some_and(|mapped| !mapped.is_at(&self.path)) {
            return Err(OpenError::Changed { path: self.path.clone() });
        }
        let seed = self.seed;
        Ok(Ready { inference, fingerprint, leading, tokenizer, seed, mapped })
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
    /// Seed of its answers.
    pub seed: u64,
    /// The file, if the model lies in it.
    pub mapped: Option<MappedFile>,
}

impl Ready {
    pub fn model(&self) -> &TopicModel {
        self.inference.model()
    }

    /// Checks that the file of a mapped model is as it was.
    ///
    /// # Errors
    /// [`Problem::Overwritten`].
    pub fn check_file(&self) -> Result<(), Problem> {
        match &self.mapped {
            Some(mapped) if mapped.has_changed() => Err(Problem::Overwritten),
            _ => Ok(()),
        }
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
        Some(Self::new(&path.metadata().ok()?))
    }

    fn new(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok();
        Self { modified, length: metadata.len(), number: number(metadata) }
    }
}

/// The file of a mapped model. A file that replaces it by a rename does not change it.
#[derive(Debug)]
pub struct MappedFile {
    file: File,
    stamp: Stamp,
    is_logged: AtomicBool,
}

impl MappedFile {
    fn open(path: &Path) -> Result<Self, OpenError> {
        let open = || {
            let file = File::open(path)?;
            let stamp = Stamp::new(&file.metadata()?);
            Ok(Self { file, stamp, is_logged: AtomicBool::new(false) })
        };
        open().map_err(|source| OpenError::Open { path: path.to_owned(), source })
    }

    /// Whether the file was not written into since it was opened, and is still the one of this path.
    fn is_at(&self, path: &Path) -> bool {
        !self.has_changed() && Stamp::of(path).as_ref() == Some(&self.stamp)
    }

    /// Whether the length or the time of modification of the file has changed; the first time, it is
    /// logged. Costs one system call.
    fn has_changed(&self) -> bool {
        let same = |metadata: &Metadata| Stamp::new(metadata) == self.stamp;
        let has_changed = !self.file.metadata().as_ref().is_ok_and(same);
        if has_changed && !self.is_logged.swap(true, Ordering::Relaxed) {
            error!("the model file was changed in place: replace it, and reload");
        }
        has_changed
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
