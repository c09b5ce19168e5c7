//! How long documents are.

/// How many documents there are, and how long, in tokens: what is known of them before anything is of their topics.
/// LDA* (section 4.2) has the mean length alone; squares are ours, as a long document is sent for each of its words.
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
    /// Documents D.
    pub documents: u64,
    /// Squares of documents' tokens, summed.
    pub squares: u64,
}

impl DocumentLengths {
    /// Of a corpus.
    pub fn of(corpus: &lda_core::Corpus) -> Self {
        let mut lengths = Self::default();
        for tokens in (0..corpus.num_documents()).map(|d| corpus.doc_length(d)) {
            lengths.add(Self { documents: 1, squares: tokens.saturating_mul(tokens) });
        }
        lengths
    }

    /// Of so many documents, all of the same length, with so many tokens together.
    pub fn even(documents: u64, tokens: u64) -> Self {
        let squares = u128::from(tokens) * u128::from(tokens) / u128::from(documents.max(1));
        Self { documents, squares: squares.try_into().unwrap_or(u64::MAX) }
    }

    /// These and others; as many as there are numbers, at most.
    pub fn add(&mut self, more: Self) {
        self.documents = self.documents.saturating_add(more.documents);
        self.squares = self.squares.saturating_add(more.squares);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_one_length() {
        let mut all = DocumentLengths::even(3, 12);
        assert_eq!(all, DocumentLengths { documents: 3, squares: 48 });
        assert_eq!(DocumentLengths::even(0, 0), DocumentLengths::default());
        assert_eq!(DocumentLengths::even(1, u64::MAX).squares, u64::MAX);
        all.add(DocumentLengths { documents: u64::MAX, squares: 2 });
        assert_eq!(all, DocumentLengths { documents: u64::MAX, squares: 50 });
    }
}
