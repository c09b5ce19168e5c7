//! Lengths of documents.

/// Number of documents and their lengths in tokens, which are known before any topic. LDA* (section
/// 4.2) uses only the mean length. The squares are an addition: a long document is sent for each of
/// its words.
///
/// ```
/// use lda_core::Corpus;
/// use lda_dist::placement::DocumentLengths;
///
/// let corpus = Corpus::from_tokens([vec![0, 1, 1], vec![1]])?;
/// assert_eq!(DocumentLengths::of(&corpus), DocumentLengths { documents: 2, squares: 9 + 1 });
/// # Ok::<(), lda_core::corpus::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentLengths {
    /// Number of documents D.
    pub documents: u64,
    /// Sum over the documents of the square of their length in tokens; saturates at 2^64 − 1.
    pub squares: u64,
}

impl DocumentLengths {
    /// Lengths of a corpus's documents.
    pub fn of(corpus: &lda_core::Corpus) -> Self {
        let mut lengths = Self::default();
        for tokens in (0..corpus.num_documents()).map(|d| corpus.doc_length(d)) {
            lengths.add(Self { documents: 1, squares: tokens.saturating_mul(tokens) });
        }
        lengths
    }

    /// Lengths of documents that are all equally long, given the total number of tokens.
    pub fn even(documents: u64, tokens: u64) -> Self {
        let squares = u128::from(tokens) * u128::from(tokens) / u128::from(documents.max(1));
        Self { documents, squares: squares.try_into().unwrap_or(u64::MAX) }
    }

    /// Adds the lengths of other documents, saturating.
    pub fn add(&mut self, more: Self) {
        self.documents = self.documents.saturating_add(more.documents);
        self.squares = self.squares.saturating_add(more.squares);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lengths_and_sums_saturate() {
        let mut all = DocumentLengths::even(3, 12);
        assert_eq!(all, DocumentLengths { documents: 3, squares: 48 });
        assert_eq!(DocumentLengths::even(0, 0), DocumentLengths::default());
        assert_eq!(DocumentLengths::even(1, u64::MAX).squares, u64::MAX);
        all.add(DocumentLengths { documents: u64::MAX, squares: 2 });
        assert_eq!(all, DocumentLengths { documents: u64::MAX, squares: 50 });
    }
}
