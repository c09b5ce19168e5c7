//! Sampling with rows that stay at the worker.

use lda_core::counts::{Rows, TopicIndex};
use lda_core::sampler::BlockKey;

use super::{Shard, ShardTokens};
use crate::partition_sampler::{PartitionSampler, RoundContext, SampleContext};

impl<T: TopicIndex> Shard<T> {
    /// Words of a partition that this shard has, ascending.
    pub(crate) fn words(&self, partition: u16) -> &[u32] {
        &self.tokens.parts[partition as usize].words
    }

    /// Words of a partition that this shard has, ascending, each with the topics of its tokens.
    pub(crate) fn word_topics(&self, partition: u16) -> impl Iterator<Item = (u32, &[T])> {
        let part = &self.tokens.parts[partition as usize];
        part.words.iter().enumerate().map(|(at, &word)| (word, &part.topics[part.range(at)]))
    }

    /// Samples the tokens of a partition, whose words are all pulled, and changes the rows with them. Draws
    /// what [`sample`](Self::sample) draws from encoded rows with the same counts. `words` are the words of
    /// the rows, ascending, and include the shard's; the rows must count its tokens.
    pub(crate) fn sample_held(
        &mut self,
        sampler: &mut PartitionSampler<T>,
        round: &RoundContext<'_>,
        partition: u16,
        words: &[u32],
        held: &mut Rows<T>,
    ) {
        let RoundContext { spec, round, totals, passes } = *round;
        let ShardTokens { rows: documents, ends, parts, .. } = &mut self.tokens;
        let part = &mut parts[partition as usize];
        if part.words.is_empty() {
            return;
        }
        sampler.clear();
        let mut row = 0;
        for (at, &word) in part.words.iter().enumerate() {
            while words[row] < word {
                row += 1;
            }
            let range = part.range(at);
            let (documents, topics) = (&part.documents[range.clone()], &part.topics[range]);
            sampler.add_held_word(row as u32, documents, topics);
        }
        let key = BlockKey { shard: self.number, documents: 0, words: partition };
        let own = &mut self.own.changes;
        let mut context = SampleContext { spec, round, key, totals, own, documents };
        sampler.sample_held(held, ends, passes, &mut context);
        part.topics.copy_from_slice(sampler.topics());
    }

    /// Changes of C_k by this shard in the current round, by topic. Only if no document is
    /// [long](crate::config::Hybrid).
    pub(crate) fn round_changes(&self) -> Vec<i32> {
        self.own.of_round()
    }
}
