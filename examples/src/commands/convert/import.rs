//! Reading of models of this and other programs, detected from their first bytes.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use lda_core::container::FileError;
use lda_core::corpus::ReadError;
use lda_core::corpus::read::read_vocabulary;
use lda_core::interop::{InteropError, mallet, npy, warplda};
use lda_core::model::TopicModel;
use lda_core::prior::{Alpha, PriorError};
use thiserror::Error;

use crate::commands::convert::args::{Args, Program};

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

/// Reads the model of the command line.
///
/// # Errors
/// [`ImportError`], with the file and the cause.
pub fn import(args: &Args) -> Result<TopicModel, ImportError> {
    let path = &args.model;
    let program = match args.from {
        Some(program) => program,
        None => tell(path).map_err(|source| ImportError::Open { path: path.clone(), source })?,
    };
    let foreign = |error| ImportError::Exchange(error, program);
    if args.alpha.is_some() && program != Program::Numpy {
        return Err(ImportError::Alpha);
    }
    let model = match program {
        // The file is untrusted input, so all of it is checked.
        Program::Lda => TopicModel::load(path)?,
        Program::Mallet => mallet::load_state(path).map_err(foreign)?,
        Program::Warplda => warplda::load_model(path).map_err(foreign)?,
        Program::Numpy => {
            let weights = npy::load_topics(path).map_err(foreign)?;
            let topics = weights.num_topics();
            let usual = Alpha::Symmetric(50.0 / topics as f64);
            let alpha = args.alpha.clone().unwrap_or(usual);
            alpha.check(topics).map_err(ImportError::Prior)?;
            TopicModel::from_weights(weights, alpha)
        }
    };
    let Some(names) = &args.names else { return Ok(model) };
    let open = |source| ImportError::Open { path: names.clone(), source };
    let vocabulary = read_vocabulary(File::open(names).map_err(open)?, names)?;
    if vocabulary.len() != model.num_words() {
        return Err(ImportError::NumNames {
            path: names.clone(),
            found: vocabulary.len(),
            expected: model.num_words(),
        });
    }
    Ok(model.with_vocabulary(Some(vocabulary)))
}

/// Detects the program from the first bytes. A compressed file is taken for a MALLET state, because
/// MALLET compresses its states; other compressed files need `--from`.
fn tell(path: &Path) -> std::io::Result<Program> {
    let mut start = Vec::new();
    File::open(path)?.take(8).read_to_end(&mut start)?;
    Ok(match &start[..] {
        [0x89, b'L', b'D', b'A', ..] => Program::Lda,
        [0x93, b'N', b'U', b'M', ..] => Program::Numpy,
        [0x1f, 0x8b, ..] | [b'#', b'd', b'o', b'c', ..] => Program::Mallet,
        // The first line is four numbers.
        [b'0'..=b'9', ..] => Program::Warplda,
        // Its reader reports an error if the file is not a WarpLDA model.
        _ => Program::Lda,
    })
}
