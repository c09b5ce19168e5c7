//! Import of models from other programs, and export to NumPy.
//!
//! # From MALLET
//! `mallet train-topics --output-state STATE.gz` writes the topic of every token.
//! [`mallet::load_state`] counts them: a model that infers, shows its topics, and can be trained on
//! with more documents ([`train::seed_counts`](crate::train::seed_counts)). MALLET's α (one per topic) and β
//! are imported.
//!
//! # From WarpLDA
//! `warplda --dumpmodel` writes `PREFIX.model`, and its `format` program writes the words to
//! `PREFIX.vocab`, one per line. [`warplda::load_model`] reads the model; attach the words with
//! [`TopicModel::with_vocabulary`](crate::model::TopicModel::with_vocabulary).
//!
//! # From gensim, scikit-learn, or any program with NumPy
//! Save the topics as an array, topics × words. Rows need not add up to 1, so counts, λ or φ will
//! do:
//!
//! ```python
//! numpy.save("topics.npy", lda.get_topics())               # gensim
//! numpy.save("topics.npy", lda.components_)                # scikit-learn
//! numpy.save("topics.npy", [m.get_topic_word_dist(k) for k in range(m.k)])      # tomotopy
//! ```
//!
//! [`npy::load_topics`] reads it as [`Weights`](crate::model::Weights), which serve inference; the
//! caller supplies the vocabulary and α. To continue training from them, state the number of tokens
//! per topic that they represent
//! ([`Weight::TokensPerTopic`](crate::train::Weight::TokensPerTopic)).
//!
//! # Export
//! [`npy::write_header`] writes the header of an array of any shape. The program `convert` in this
//! repository's examples writes a model as arrays for NumPy and SciPy, as counts for gensim, as
//! Matrix Market and CSV, and, together with documents, as input of pyLDAvis.
//!
//! Files compressed with gzip or zstd are decompressed. For any content, memory is bounded by the
//! decompressed length and the number of topics, which has a [limit](MAX_TOPICS).

mod lines;
pub mod mallet;
pub mod npy;
pub mod warplda;

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Maximum number of topics of an imported model. It bounds memory, and is far above any model that
/// has been trained.
pub const MAX_TOPICS: u32 = 1 << 24;

/// Error of importing a model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InteropError {
    /// I/O error.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// An invalid line.
    #[error("line {line}: {reason}")]
    Line {
        /// Line number, counted from 1.
        line: u64,
        /// The problem and the expected content.
        reason: String,
    },
    /// The content is not a valid model.
    #[error("{0}")]
    Content(String),
    /// An error with the path of the file.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error.
        #[source]
        error: Box<InteropError>,
    },
}

impl InteropError {
    fn at(self, path: &Path) -> Self {
        Self::File { path: path.to_owned(), error: Box::new(self) }
    }
}
