//! Models of other programs.
//!
//! # Coming from MALLET
//! `mallet train-topics --output-state STATE.gz` writes the topic of every token.
//! [`mallet::load_state`] counts them: a model that infers, shows its topics, and can be trained on with
//! more documents ([`train::pseudo`](crate::train::pseudo)). MALLET's α (one a topic) and β come along.
//!
//! # Coming from WarpLDA
//! `warplda --dumpmodel` leaves `PREFIX.model`, and its `format` the words in `PREFIX.vocab`, one a line.
//! [`warplda::load_model`] reads the first; give it the names as a vocabulary.
//!
//! # Coming from gensim, scikit-learn, or anything that has NumPy
//! Save the topics as an array, topics × words; rows need not add up to 1, so that counts, λ or φ will do:
//!
//! ```python
//! numpy.save("topics.npy", lda.get_topics())               # gensim
//! numpy.save("topics.npy", lda.components_)                # scikit-learn
//! numpy.save("topics.npy", [m.get_topic_word_dist(k) for k in range(m.k)])      # tomotopy
//! ```
//!
//! [`npy::load_topics`] makes [`Weights`](crate::model::Weights) of it, which serve inference; names of
//! words and α are given by the caller. To go on training from them, say how many tokens a topic they stand
//! for ([`Weight::TokensPerTopic`](crate::train::Weight::TokensPerTopic)).
//!
//! # Going there
//! [`npy::write_header`] begins an array of any shape. The program `convert` of this repository's examples
//! writes a model as arrays for NumPy and SciPy, as counts for gensim, as Matrix Market and CSV, and, with
//! documents, as what pyLDAvis takes.
//!
//! Files packed by gzip or zstd are unpacked. Whatever is in a file, reading it takes memory in
//! proportion to its unpacked length and to the number of topics, which has a [limit](MAX_TOPICS).

mod lines;
pub mod mallet;
pub mod npy;
pub mod warplda;

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Most topics of a model that is read: far above what has ever been trained, and little memory.
pub const MAX_TOPICS: u32 = 1 << 24;

/// A model of another program cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InteropError {
    /// The system's word.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A line that is not as it should be.
    #[error("line {line}: {reason}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// What all of it comes to cannot be a model.
    #[error("{0}")]
    Content(String),
    /// One of the above, in this file.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: Box<InteropError>,
    },
}

impl InteropError {
    fn at(self, path: &Path) -> Self {
        Self::File { path: path.to_owned(), error: Box::new(self) }
    }
}
