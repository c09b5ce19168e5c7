//! Word statistics of a shard, counted from its tokens. A master that was restarted asks for them, and
//! documents need not be read again.

use lda_core::counts::TopicIndex;

use super::ShardTokens;
use crate::placement::DocumentLengths;

impl<T: TopicIndex> ShardTokens<T> {
    /// Number and lengths of the documents.
    pub(crate) fn document_lengths(&self) -> DocumentLengths {
        let mut all = DocumentLengths::default();
        let mut add = |length: u64| {
            all.add(DocumentLengths { documents: 1, squares: length.saturating_mul(length) });
        };
        self.lengths.iter().for_each(|&length| add(length.into()));
        for number in 0..self.num_documents() - self.lengths.len() {
            let mut length = 0;
            self.long.document(number, |_| length += 1);
            add(length);
        }
        all
    }

    /// (word, tokens, documents) of the words that the shard has, words ascending.
    pub(crate) fn word_stats(&self) -> Vec<(u32, u64, u32)> {
        // (partition, place of the word, document) of the tokens of long documents.
        let mut of_long = Vec::new();
        self.long.for_each(|document, partition, place, _| {
            of_long.push((usize::from(partition), place as usize, document));
        });
        of_long.sort_unstable();
        let mut all = Vec::new();
        for (word, partition, place) in self.by_word() {
            let part = &self.parts[partition];
            let of_short = &part.documents[part.range(place)];
            let first = of_long.partition_point(|&(p, at, _)| (p, at) < (partition, place));
            let more =
                of_long[first..].partition_point(|&(p, at, _)| (p, at) == (partition, place));
            let of_long = &of_long[first..first + more];
            let documents = of_short.chunk_by(|a, b| a == b).count()
                + of_long.chunk_by(|a, b| a.2 == b.2).count();
            all.push((word, (of_short.len() + of_long.len()) as u64, documents as u32));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;

    use super::*;
    use crate::config::Hybrid;
    use crate::placement::{Partitioner, Placement};
    use crate::shard::{Shard, ShardDocuments};
    use crate::spec::ModelSpec;

    #[test]
    fn statistics_are_those_of_the_documents() {
        let documents = (0..30u32).map(|d| (0..d * 2).map(move |t| (d * 7 + t * t) % 20));
        let corpus = Corpus::from_tokens(documents).unwrap();
        let spec = ModelSpec::new(5, 20, 0.1.into(), 0.01, 4).unwrap();
        let placement = Placement::new(Partitioner::Hash, &[1; 20], 3, 1).unwrap();
        let both = corpus.word_frequencies().into_iter().zip(corpus.document_frequencies());
        let expected: Vec<(u32, u64, u32)> = (0..)
            .zip(both)
            .filter(|(_, (tokens, _))| *tokens > 0)
            .map(|(word, (tokens, documents))| (word, tokens, documents))
            .collect();
        for short_length in [u32::MAX, 20, 0] {
            let hybrid = Hybrid { short_length, mh_steps: 2 };
            let documents = ShardDocuments { corpus: &corpus, range: 0..30, first: 0 };
            let shard = Shard::<u16>::new(&spec, hybrid, &placement, 0, documents).unwrap();
            assert_eq!(shard.tokens().document_lengths(), DocumentLengths::of(&corpus));
            assert_eq!(shard.tokens().word_stats(), expected, "{short_length}");
        }
    }
}
