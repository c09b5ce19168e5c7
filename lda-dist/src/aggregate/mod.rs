//! Aggregates that servers compute from their rows, so that only results are sent (LDA*, section
//! 5.4).
//!
//! An **aggregate** is shown every row of a server once, at the end of a round, and is encoded; the
//! master merges those of all servers. The end of a round requests those in [`AggregateRequest`]:
//!
//! | aggregate | result of a server | bytes |
//! |---|---|---|
//! | [`LogJoint`] | part of log p(W, Z) of each slice | 10 per slice |
//! | [`NonZeros`] | number of counts above 0 | 8 |
//! | [`TopWords`] | the n words of each topic with the most tokens | 1 per topic and 2 to 2.5 per word |
//!
//! All of them together take one pass over the rows, O(non-zeros of the server), and 24 bytes of
//! memory per topic and 8 per word in a list. Collecting the rows instead would send all their
//! bytes. On nips with K = 1,000, four servers together take 14 ms for 0.24 M non-zeros, and send
//! 10 words per topic in 104 KB; their rows take 357 KB, and more with more documents.
//!
//! A type of your own that implements [`Aggregate`] can be computed with
//! [`Server::aggregate`](crate::server::Server::aggregate).
//!
//! ```
//! use lda_core::Corpus;
//! use lda_dist::aggregate::{Aggregate, Aggregates, AggregateRequest};
//! use lda_dist::spec::ModelSpec;
//! use lda_dist::config::Options;
//! use lda_dist::in_process::InProcess;
//!
//! let corpus = Corpus::from_tokens([vec![0, 0, 0, 1], vec![1, 2, 2]])?;
//! let spec = ModelSpec::new(1, 3, 0.1.into(), 0.01, 42)?;
//! let run = InProcess::<u16>::new(&spec, &corpus, &Options { servers: 2, partitions: 2, ..Options::default() })?;
//! let wanted = AggregateRequest { evaluation: true, top_words: 2 };
//! let mut all = Aggregates::new(wanted, &spec);
//! for server in run.servers() {
//!     let mut of_server = Aggregates::new(wanted, &spec);
//!     server.aggregate(&mut of_server);
//!     let mut message = Vec::new();
//!     of_server.encode(&mut message);
//!     all.merge(&mut &message[..]).expect("a server's own words");
//! }
//! assert_eq!(all.non_zeros.unwrap().count(), 3);
//! let top = all.top_words.unwrap().lists(run.totals().iter().map(|&total| total.into()), spec.beta());
//! assert_eq!(top[0].iter().map(|top| (top.word, top.count)).collect::<Vec<_>>(), [(0, 3), (1, 2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod log_joint;
mod non_zeros;
mod top_words;

use crate::spec::ModelSpec;

pub use log_joint::LogJoint;
pub use non_zeros::NonZeros;
pub use top_words::TopWords;

/// Statistic of all rows, computed in parts by the servers and merged.
pub trait Aggregate {
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
}

/// The requested aggregates; the others are `None`.
#[derive(Debug, Default)]
pub struct Aggregates {
    /// Words' part of the log joint.
    pub log_joint: Option<LogJoint>,
    /// Number of non-zeros of C_w.
    pub non_zeros: Option<NonZeros>,
    /// Top words of each topic.
    pub top_words: Option<TopWords>,
}

impl Aggregates {
    /// Empty aggregates for a request.
    pub fn new(wanted: AggregateRequest, spec: &ModelSpec) -> Self {
        let AggregateRequest { evaluation, top_words } = wanted;
        Self {
            log_joint: evaluation.then(|| LogJoint::new(spec.beta())),
            non_zeros: evaluation.then(NonZeros::default),
            top_words: (top_words > 0)
                .then(|| TopWords::new(spec.topics(), spec.words(), top_words)),
        }
    }

    /// The requested aggregates, in the order in which they are encoded.
    fn each(&self) -> impl Iterator<Item = &dyn Aggregate> {
        fn some(one: &Option<impl Aggregate>) -> Option<&dyn Aggregate> {
            one.as_ref().map(|one| one as &dyn Aggregate)
        }
        let Self { log_joint, non_zeros, top_words } = self;
        [some(log_joint), some(non_zeros), some(top_words)].into_iter().flatten()
    }

    fn each_mut(&mut self) -> impl Iterator<Item = &mut dyn Aggregate> {
        fn some(one: &mut Option<impl Aggregate>) -> Option<&mut dyn Aggregate> {
            one.as_mut().map(|one| one as &mut dyn Aggregate)
        }
        let Self { log_joint, non_zeros, top_words } = self;
        [some(log_joint), some(non_zeros), some(top_words)].into_iter().flatten()
    }

    /// Whether nothing is requested, so that the rows need not be visited.
    pub fn is_empty(&self) -> bool {
        self.each().next().is_none()
    }
}

impl Aggregate for Aggregates {
    fn add_row(&mut self, slice: u16, word: u32, row: &[(u32, u32)]) {
        self.each_mut().for_each(|one| one.add_row(slice, word, row));
    }

    fn encode(&self, to: &mut Vec<u8>) {
        self.each().for_each(|one| one.encode(to));
    }

    fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        self.each_mut().try_for_each(|one| one.merge(from))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_nobody_asks_for_takes_no_bytes() {
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
        ) {
            let spec = ModelSpec::new(4, 9, 0.1.into(), 0.1, 1).unwrap();
            let mut found = Aggregates::new(AggregateRequest { evaluation, top_words }, &spec);
            if found.merge(&mut &bytes[..]).is_some() {
                // A decoded result can be encoded and decoded again.
                let mut again = Vec::new();
                found.encode(&mut again);
                let mut more = Aggregates::new(AggregateRequest { evaluation, top_words }, &spec);
                prop_assert_eq!(more.merge(&mut &again[..]), Some(()));
            }
        }
    }
}
