//! Traits that give access to the non-zero counts of a state, row by row.
//!
//! A trainer, a finished model and one server of a distributed run store counts differently; each
//! implements these traits for what it has. There are two of them because the two kinds of rows may
//! be stored apart: a model keeps words and no documents. A call covers a *range* of rows, so that
//! dynamic dispatch costs one call per row and several threads can visit ranges at once.

use std::ops::Range;

/// Callback for one row: the id of its document or word, and its (topic, tokens) entries. Topics
/// are distinct and counts are above 0.
pub type VisitRow<'a> = dyn FnMut(usize, &[(u32, u32)]) + 'a;

/// Rows of C_d: the topics of each document's tokens.
pub trait DocumentCounts: Sync {
    /// Number of topics K; topic ids are below it.
    fn num_topics(&self) -> usize;

    /// Number of documents D, including empty ones.
    fn num_documents(&self) -> usize;

    /// Calls `visit(document, row)` for each document of the range, in ascending order.
    ///
    /// Every document that has tokens is visited once; an empty one may be skipped. The order
    /// within a row is free, but the last digits of a sum depend on it: a row whose order is a
    /// function of the state, and not of its history, gives the same bits after a restart.
    fn visit_documents(&self, documents: Range<usize>, visit: &mut VisitRow<'_>);
}

/// Rows of C_w, the topics of each word's tokens, and the totals C_k.
pub trait WordCounts: Sync {
    /// Number of topics K; topic ids are below it.
    fn num_topics(&self) -> usize;

    /// Vocabulary size V, including words that never occur.
    fn num_words(&self) -> usize;

    /// C_k, the tokens of a topic: the sum of its entries over all words.
    fn topic_total(&self, topic: usize) -> u64;

    /// Calls `visit(word, row)` for each word of the range, in ascending order.
    ///
    /// Every word that has tokens is visited once; one that never occurs may be skipped. The order
    /// within a row is free, as in [`visit_documents`](DocumentCounts::visit_documents).
    fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>);
}
