//! What evaluation sees of a state: rows of non-zero counts.
//!
//! A trainer, a finished model and one server of a distributed run store counts differently; each
//! lends its rows through these two traits. They are apart because their rows may live apart: a
//! model keeps words and no documents. A call hands over a *range* of rows, so that dynamic
//! dispatch is paid once a row and ranges can be visited by several threads at once.

use std::ops::Range;

/// Takes one row: the id of its document or word, and (topic, tokens) with distinct topics and no
/// zero.
pub type Visit<'a> = dyn FnMut(usize, &[(u32, u32)]) + 'a;

/// Rows of C_d: the topics of each document's tokens.
pub trait DocumentCounts: Sync {
    /// Number of topics K; topic ids are below it.
    fn num_topics(&self) -> usize;

    /// Number of documents D, empty ones included.
    fn num_documents(&self) -> usize;

    /// Calls `visit(document, row)` for each document of the range, in ascending order.
    ///
    /// Every document with tokens is visited once; an empty one may be left out. The order within
    /// a row is free, but the last digits of a sum follow it: a row whose order is a function of
    /// the state, and not of its history, gives the same bits after a restart.
    fn visit_documents(&self, documents: Range<usize>, visit: &mut Visit<'_>);
}

/// Rows of C_w, the topics of each word's tokens, and the totals C_k.
pub trait WordCounts: Sync {
    /// Number of topics K; topic ids are below it.
    fn num_topics(&self) -> usize;

    /// Vocabulary size V; words that never occur count too.
    fn num_words(&self) -> usize;

    /// C_k, the tokens of a topic: the sum of its entries over all words.
    fn topic_total(&self, topic: usize) -> u64;

    /// Calls `visit(word, row)` for each word of the range, in ascending order.
    ///
    /// Every word with tokens is visited once; one that never occurs may be left out. The order
    /// within a row is free, as in [`visit_documents`](DocumentCounts::visit_documents).
    fn visit_words(&self, words: Range<usize>, visit: &mut Visit<'_>);
}
