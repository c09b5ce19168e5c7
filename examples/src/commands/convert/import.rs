//! Models of this and of other programs, told apart by how they begin.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use lda_core::container::FileError;
use lda_core::corpus::ReadError;
use lda_core::corpus::read::read_vocabulary;
use lda_core::interop::{InteropError, mallet, npy, warplda};
use lda_core::model::TopicModel;
use lda_core::prior::Alpha;
use thiserror::Error;

use crate::commands::convert::args::{Args, Program};

/// Why a model cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The system's word.
    #[error("{path}: cannot read: {source}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// One of this library is not as it should be.
    #[error(transparent)]
    File(#[from] FileError),
    /// One of another program is not as it should be.
    #[error("{0}{hint}", hint = hint(*.1))]
    Exchange(InteropError, Program),
    /// The names cannot be read.
    #[error(transparent)]
    Names(#[from] ReadError),
    /// There are more or fewer names than words.
    #[error("--names {path}: it has {found} words and the model {expected}", path = path.display())]
    NumNames {
        /// The file.
        path: PathBuf,
        /// Names in it.
        found: usize,
        /// Words of the model.
        expected: usize,
    },
    /// α beside a model that knows its own.
    #[error("--alpha {0}: the model has a prior of its own; leave the option out")]
    Alpha(f64),
}

/// Which program that was is a guess, where nothing but its last choice is left.
fn hint(program: Program) -> &'static str {
    match program {
        Program::Warplda => " (taken for a model of WarpLDA: say --from where it is none)",
        _ => "",
    }
}

/// The model of the command line.
///
/// # Errors
/// [`ImportError`] names the file and what is wrong.
pub fn import(args: &Args) -> Result<TopicModel, ImportError> {
    let path = &args.model;
    let program = match args.from {
        Some(program) => program,
        None => tell(path).map_err(|source| ImportError::Open { path: path.clone(), source })?,
    };
    let foreign = |error| ImportError::Exchange(error, program);
    if let Some(alpha) = args.alpha.filter(|_| program != Program::Numpy) {
        return Err(ImportError::Alpha(alpha));
    }
    let model = match program {
        // The file is somebody's, and may be anything.
        Program::Lda => TopicModel::load(path)?,
        Program::Mallet => mallet::load_state(path).map_err(foreign)?,
        Program::Warplda => warplda::load_model(path).map_err(foreign)?,
        Program::Numpy => {
            let weights = npy::load_topics(path).map_err(foreign)?;
            let alpha = args.alpha.unwrap_or(50.0 / weights.num_topics() as f64);
            TopicModel::from_weights(weights, Alpha::Symmetric(alpha))
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

/// By the first bytes. A packed file is a state of MALLET, which packs them itself; an array or a model
/// that somebody packed has to be named by `--from`.
fn tell(path: &Path) -> std::io::Result<Program> {
    let mut start = Vec::new();
    File::open(path)?.take(8).read_to_end(&mut start)?;
    Ok(match &start[..] {
        [0x89, b'L', b'D', b'A', ..] => Program::Lda,
        [0x93, b'N', b'U', b'M', ..] => Program::Numpy,
        [0x1f, 0x8b, ..] | [b'#', b'd', b'o', b'c', ..] => Program::Mallet,
        // The first line is four numbers.
        [b'0'..=b'9', ..] => Program::Warplda,
        // Whose error says that it is none.
        _ => Program::Lda,
    })
}
