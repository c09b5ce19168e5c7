//! Aggregates that servers compute from their rows, so that only results are sent (LDA*, section
//! 5.4).
//!
//! An **aggregate** is computed from every row of a server, at the end of a round, and sent to the
//! master, which merges those of all servers. The request for the end of a round contains an
//! [`AggregateRequest`]:
//!
//! | aggregate | result of a server | bytes |
//! |---|---|---|
//! | [`LogJoint`] | part of log p(W, Z) of each slice | 10 per slice |
//! | [`NonZeros`] | number of counts above 0 | 8 |
//! | [`TopWords`] | the n words of each topic with the most tokens | 1 per topic and 2 to 2.5 per word |
//! | [`WordHistogram`] | number of times that each count occurs, where β is learnt | 3 or more per different count |
//! | [`TopicTotals`] | tokens of each topic, to check the master's | 1 to 5 per topic |
//!
//! All of them together take one pass over the rows, O(non-zeros of the server), and 24 bytes of
//! memory per topic and 8 per word in a list. Collecting the rows instead would send all their
//! bytes. On nips with K = 1,000, four servers together take 14 ms for 0.24 M non-zeros, and send
//! 10 words per topic in 104 KB; their rows take 357 KB, and more with more documents.
//!
//! Register a type of your own that implements [`Aggregate`] in a [`Registry`], on every node, and
//! set it as [`Setup::aggregates`](crate::cluster::Setup::aggregates): the value of every evaluated
//! epoch is in its [`Report`](crate::cluster::Report::aggregates). The example `own_aggregate` is a
//! complete program. [`Server::aggregate`](crate::server::Server::aggregate) computes aggregates
//! without a cluster:
//!
//! ```
//! use lda_core::Corpus;
//! use lda_dist::aggregate::{Aggregate, AggregateRequest, Aggregates, NonZeros, TopWords};
//! use lda_dist::spec::ModelSpec;
//! use lda_dist::config::Options;
//! use lda_dist::in_process::InProcess;
//!
//! let corpus = Corpus::from_tokens([vec![0, 0, 0, 1], vec![1, 2, 2]])?;
//! let spec = ModelSpec::new(1, 3, 0.1.into(), 0.01, 42)?;
//! let run = InProcess::<u16>::new(&spec, &corpus, &Options { servers: 2, partitions: 2, ..Options::default() })?;
//! let wanted = AggregateRequest { evaluation: true, top_words: 2, ..AggregateRequest::default() };
//! let mut all = Aggregates::new(wanted, &spec);
//! for server in run.servers() {
//!     let mut of_server = Aggregates::new(wanted, &spec);
//!     server.aggregate(&mut of_server);
//!     let mut message = Vec::new();
//!     of_server.encode(&mut message);
//!     all.merge(&mut &message[..]).expect("a server's own words");
//! }
//! assert_eq!(all.get::<NonZeros>(NonZeros::NAME).unwrap().count(), 3);
//! let top = all.get::<TopWords>(TopWords::NAME).unwrap();
//! let top = top.lists(run.totals().iter().map(|&total| total.into()), spec.beta());
//! assert_eq!(top[0].iter().map(|top| (top.word, top.count)).collect::<Vec<_>>(), [(0, 3), (1, 2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod log_joint;
mod non_zeros;
mod registry;
mod top_words;
mod topic_totals;
mod word_histogram;

use std::any::Any;
use std::fmt::Debug;

pub use log_joint::LogJoint;
pub use non_zeros::NonZeros;
pub use registry::{Aggregates, DuplicateName, Registry};
pub use top_words::TopWords;
pub use topic_totals::TopicTotals;
pub use word_histogram::WordHistogram;

/// Statistic of all rows, computed in parts by the servers and merged.
pub trait Aggregate: Any + Debug + Send + Sync {
    /// Adds a word's row, or the part of it that is in a slice: (topic, count), topics ascending,
    /// counts above 0.
    fn add_row(&mut self, slice: u16, word: u32, row: &[(u32, u32)]);

    /// Appends the encoded result to `to`.
    fn encode(&self, to: &mut Vec<u8>);

    /// Decodes the result of other rows off the front of `from`, and merges it. Returns `None` if
    /// the bytes are malformed or repeat rows that were merged already; the value of `self` is then
    /// unspecified. Must not allocate more than O(length of `from` + V).
    #[must_use]
    fn merge(&mut self, from: &mut &[u8]) -> Option<()>;
}

/// Aggregates that the end of a round requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregateRequest {
    /// Whether to compute [`LogJoint`] and [`NonZeros`], which evaluate the model.
    pub evaluation: bool,
    /// Number of [`TopWords`] per topic; 0 for none.
    pub top_words: u32,
    /// True to compute the [`WordHistogram`], from which β is learnt.
    pub word_histogram: bool,
    /// True to compute the [`TopicTotals`], with which the master checks its own.
    pub totals: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spec::ModelSpec;

    #[test]
    fn no_request_takes_no_bytes() {
        let spec = ModelSpec::new(3, 5, 0.1.into(), 0.1, 1).unwrap();
        let mut none = Aggregates::new(AggregateRequest::default(), &spec);
        none.add_row(0, 0, &[(1, 2)]);
        let mut bytes = Vec::new();
        none.encode(&mut bytes);
        assert!(none.is_empty() && bytes.is_empty());
        assert_eq!(none.merge(&mut &[][..]), Some(()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_results_or_none(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            evaluation in any::<bool>(),
            top_words in 0..4u32,
            word_histogram in any::<bool>(),
            totals in any::<bool>(),
        ) {
            let spec = ModelSpec::new(4, 9, 0.1.into(), 0.1, 1).unwrap();
            let wanted = AggregateRequest { evaluation, top_words, word_histogram, totals };
            let mut found = Aggregates::new(wanted, &spec);
            if found.merge(&mut &bytes[..]).is_some() {
                // A decoded result can be encoded and decoded again.
                let mut again = Vec::new();
                found.encode(&mut again);
                let mut more = Aggregates::new(wanted, &spec);
                prop_assert_eq!(more.merge(&mut &again[..]), Some(()));
            }
        }
    }
}
