//! Output for gensim, which can continue training from it.
//!
//! ```python
//! words = open("news.words.txt").read().split("\n")[:-1]
//! sstats, alpha = numpy.load("news.sstats.npy"), numpy.load("news.alpha.npy")
//! lda = gensim.models.LdaModel(id2word=dict(enumerate(words)), num_topics=len(alpha),
//!                              alpha=alpha, eta=BETA)
//! lda.state.sstats = sstats
//! lda.sync_state()
//! ```
//!
//! The sufficient statistics of gensim are counts, topics × words, to which it adds `eta` itself; its
//! `alpha` is an array with one value per topic.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lda_core::interop::npy;
use lda_core::model::TopicModel;
use lda_examples::matrix::Matrix;
use lda_examples::output::{Output, OutputError};

/// The three files while they are written.
#[derive(Debug)]
pub struct Files {
    sstats: Output,
    alpha: Output,
    words: Output,
}

fn named(prefix: &Path, end: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

impl Files {
    /// Opens files whose names begin with `prefix`.
    ///
    /// # Errors
    /// [`OutputError`] of the first file that cannot be written.
    pub fn create(prefix: &Path) -> Result<Self, OutputError> {
        Ok(Self {
            sstats: Output::create(&named(prefix, ".sstats.npy"))?,
            alpha: Output::create(&named(prefix, ".alpha.npy"))?,
            words: Output::create(&named(prefix, ".words.txt"))?,
        })
    }

    /// Writes the files.
    ///
    /// # Errors
    /// The first [`OutputError`].
    pub fn fill(self, model: &TopicModel) -> Result<(), OutputError> {
        self.sstats.fill(|out| Matrix::of_topics(model).write_entries(out))?;
        self.alpha.fill(|out| write_alpha(model, out))?;
        self.words.fill(|out| match model.vocabulary() {
            Some(vocabulary) => vocabulary.iter().try_for_each(|word| writeln!(out, "{word}")),
            None => (0..model.num_words()).try_for_each(|word| writeln!(out, "{word}")),
        })
    }
}

fn write_alpha(model: &TopicModel, out: &mut impl Write) -> io::Result<()> {
    let topics = model.num_topics();
    npy::write_header(out, "<f8", &[topics])?;
    (0..topics).try_for_each(|topic| out.write_all(&model.alpha().get(topic).to_le_bytes()))
}
