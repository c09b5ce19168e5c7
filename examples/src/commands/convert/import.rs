//! Reading of models of this and other programs, detected from their first bytes.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use lda_core::container::{FileError, FileProblem};
use lda_core::corpus::ReadError;
use lda_core::corpus::read::read_vocabulary;
use lda_core::interop::{InteropError, mallet, warplda};
use lda_core::model::TopicModel;
use lda_core::prior::{Alpha, PriorError};
use lda_core::train::{Checkpoints, ResumeError, Snapshot, Trainer};
use lda_examples::reading::{self, ReadingError};
use thiserror::Error;

use crate::commands::convert::args::{Args, Prior, Program};
use crate::commands::convert::arrays::{self, ArrayError};

/// Errors of reading a model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{path}: cannot read: {source}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A file of this library is invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of another program is invalid.
    #[error("{0}{hint}", hint = hint(*.1))]
    Exchange(InteropError, Program),
    /// An array is invalid.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The file of `--names` cannot be read.
    #[error(transparent)]
    Names(#[from] ReadError),
    /// The number of names differs from the number of words.
    #[error("--names {path}: {found} words, but the model has {expected}", path = path.display())]
    NumNames {
        /// The file.
        path: PathBuf,
        /// Number of names in the file.
        found: usize,
        /// Number of words of the model.
        expected: usize,
    },
    /// A snapshot is given without documents.
    #[error(
        "{path}: it is a snapshot of a run, which has topics of tokens and no words: name the documents of the run after it",
        path = .0.display()
    )]
    NoDocuments(PathBuf),
    /// The snapshots are those of `lda cluster`.
    #[error("{path}: these are checkpoints of `lda cluster`, which have no priors and no words: write their model by `lda cluster model --config FILE --out MODEL`", path = .0.display())]
    Cluster(PathBuf),
    /// The documents of a snapshot cannot be read.
    #[error(transparent)]
    Documents(#[from] ReadingError),
    /// The documents are not those of the snapshot.
    #[error("{path}: {source}; give the options of its `lda train` that change the documents, or resume the run by `lda train --resume`", path = path.display())]
    Resume {
        /// The snapshot.
        path: PathBuf,
        /// Cause.
        source: ResumeError,
    },
    /// `--alpha` is given for a model that has a prior.
    #[error("--alpha: the model has its own prior; omit --alpha")]
    Alpha,
    /// `--alpha` does not fit the model.
    #[error("--alpha: {0}")]
    Prior(#[source] PriorError),
}

/// Hint for an error in a file whose format was guessed.
fn hint(program: Program) -> &'static str {
    match program {
        Program::Warplda => " (read as a WarpLDA model: give --from if it is not one)",
        _ => "",
    }
}

/// A model that was read.
#[derive(Debug)]
pub struct Imported {
    /// The model.
    pub model: TopicModel,
    /// Whether it was made from a snapshot and its documents.
    pub is_snapshot: bool,
}

/// Reads the model of the command line.
///
/// # Errors
/// [`ImportError`], with the file and the cause.
pub fn import(args: &Args) -> Result<Imported, ImportError> {
    let path = &args.model;
    let program = match args.from {
        Some(program) => program,
        // A record of `lda cluster`; `lda train` writes none.
        None if path.join("latest").is_file() => return Err(ImportError::Cluster(path.clone())),
        None if path.is_dir() => {
            let latest = Checkpoints::latest(path)?;
            for error in &latest.unreadable {
                args.inference.program.note(&format!("warning: {error}"));
            }
            let model = of_snapshot(args, &latest.path, &latest.snapshot)?;
            return Ok(Imported { model, is_snapshot: true });
        }
        None => tell(path).map_err(|source| ImportError::Open { path: path.clone(), source })?,
    };
    let foreign = |error| ImportError::Exchange(error, program);
    if args.alpha.is_some() && program != Program::Numpy {
        return Err(ImportError::Alpha);
    }
    let mut from_snapshot = false;
    let model = match program {
        // The file is untrusted input, so all of it is checked.
        Program::Lda => match TopicModel::load(path) {
            Err(error) if is_snapshot(&error) => {
                from_snapshot = true;
                of_snapshot(args, path, &Snapshot::load(path)?)?
            }
            model => model?,
        },
        Program::Mallet => mallet::load_state(path).map_err(foreign)?,
        Program::Warplda => warplda::load_model(path).map_err(foreign)?,
        Program::Numpy => {
            let weights = arrays::load_topics(path)?;
            let topics = weights.num_topics();
            let usual = Alpha::Symmetric(5.0 / topics as f64);
            let alpha = match &args.alpha {
                None => usual,
                Some(Prior::Numbers(alpha)) => alpha.clone(),
                Some(Prior::File(path)) => arrays::load_alpha(path)?,
            };
            alpha.check(topics).map_err(ImportError::Prior)?;
            TopicModel::from_weights(weights, alpha)
        }
    };
    let named = |model| Imported { model, is_snapshot: from_snapshot };
    let Some(names) = &args.names else { return Ok(named(model)) };
    let open = |source| ImportError::Open { path: names.clone(), source };
    let vocabulary = read_vocabulary(File::open(names).map_err(open)?, names)?;
    if vocabulary.len() != model.num_words() {
        return Err(ImportError::NumNames {
            path: names.clone(),
            found: vocabulary.len(),
            expected: model.num_words(),
        });
    }
    Ok(named(model.with_vocabulary(Some(vocabulary))))
}

/// Whether the file is a snapshot, and not a model.
fn is_snapshot(error: &FileError) -> bool {
    matches!(error.problem(), FileProblem::Kind { found, .. } if found == "snapshot")
}

/// The model of a snapshot: its topics, and the words of the documents of the command line.
fn of_snapshot(args: &Args, path: &Path, snapshot: &Snapshot) -> Result<TopicModel, ImportError> {
    let documents = args.path.as_ref().ok_or_else(|| ImportError::NoDocuments(path.to_owned()))?;
    let note = &mut |text: &str| args.inference.program.note(text);
    let corpus = reading::read(documents, &args.inference.reading, None, note)?.corpus;
    let resumed = Trainer::resume(&corpus, snapshot, &snapshot.options());
    let resumed =
        resumed.map_err(|source| ImportError::Resume { path: path.to_owned(), source })?;
    args.inference.program.note(&format!("the model of epoch {}", snapshot.epochs()));
    Ok(resumed.model())
}

/// Detects the program from the first bytes. A compressed file that is not `.npy.gz` is taken for a MALLET
/// state, because MALLET compresses its states; other compressed files need `--from`.
fn tell(path: &Path) -> std::io::Result<Program> {
    let mut start = Vec::new();
    File::open(path)?.take(8).read_to_end(&mut start)?;
    Ok(match &start[..] {
        [0x89, b'L', b'D', b'A', ..] => Program::Lda,
        [0x93, b'N', b'U', b'M', ..] | [b'P', b'K', 3 | 5, _, ..] => Program::Numpy,
        _ if arrays::is_packed_array(path) => Program::Numpy,
        [0x1f, 0x8b, ..] | [b'#', b'd', b'o', b'c', ..] => Program::Mallet,
        // The first line is four numbers.
        [b'0'..=b'9', ..] => Program::Warplda,
        // Its reader reports an error if the file is not a WarpLDA model.
        _ => Program::Lda,
    })
}
