//! Writing a corpus in the UCI format.

use std::io::{self, Write};

use super::Corpus;

/// Writes the UCI bag-of-words format: D, W and NNZ on a line each, then one line
/// `document word count` per pair, ids from 1. [`Corpus::read`] reads the same corpus, without
/// vocabulary, dates and order, which the format cannot represent.
///
/// # Errors
/// Those of `writer`.
///
/// ```
/// use lda_core::corpus::{Corpus, write_uci};
///
/// let corpus = Corpus::from_tokens([[0, 0, 2]])?;
/// let mut file = Vec::new();
/// write_uci(&corpus, &mut file)?;
/// assert_eq!(file, b"1\n3\n2\n1 1 2\n1 3 1\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_uci<W: Write>(corpus: &Corpus, writer: W) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, writer);
    let pairs = corpus.num_pairs();
    write!(out, "{}\n{}\n{pairs}\n", corpus.num_documents(), corpus.num_words())?;
    for (d, document) in corpus.documents().enumerate() {
        for (word, count) in document.iter() {
            writeln!(out, "{} {} {count}", d + 1, u64::from(word) + 1)?;
        }
    }
    out.flush()
}
