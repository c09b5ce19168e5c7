//! Sampling with rows that stay at the worker.

use lda_core::counts::{Rows, TopicIndex};
use lda_core::sampler::BlockKey;

use super::{Shard, ShardTokens};
use crate::partition_sampler::{PartitionSampler, RoundContext, SampleContext};
use crate::route::Route;

impl<T: TopicIndex> Shard<T> {
    /// Words of a partition of which this shard samples tokens in the current epoch, ascending, each with the
    /// topics of all of its tokens.
    pub(crate) fn sampled_words(&self, partition: u16) -> impl Iterator<Item = (u32, &[T])> {
        let part = &self.tokens.parts[partition as usize];
        let words = part.words.iter().enumerate().filter(|(at, _)| part.is_due(*at));
        words.map(|(at, &word)| (word, &part.topics[part.range(at)]))
    }

    /// Returns whether the current epoch samples tokens of a partition.
    pub(crate) fn samples(&self, partition: u16) -> bool {
        let ShardTokens { parts, long, .. } = &self.tokens;
        let part = &parts[partition as usize];
        (0..part.words.len()).any(|at| part.is_due(at)) || long.places(partition).next().is_some()
    }

    /// Sets the routes of the words of which the current epoch samples no tokens, so that neither rows nor
    /// tokens move.
    pub(crate) fn skip_unsampled(&self, partition: u16, routes: &mut [Route]) {
        let ShardTokens { parts, long, .. } = &self.tokens;
        let part = &parts[partition as usize];
        if part.exclusion.is_none() {
            return;
        }
        let long = long.tokens_by_place(partition, part.words.len());
        let of_long = long.iter().map(|&tokens| tokens > 0);
        for ((at, route), of_long) in routes.iter_mut().enumerate().zip(of_long) {
            if !of_long && !part.is_due(at) {
                *route = Route::Push;
            }
        }
    }

    /// Samples the tokens of a partition, whose words are all pulled, and changes the rows with them. Draws
    /// what [`sample`](Self::sample) draws from encoded rows with the same counts. `words` are the words of
    /// the rows, ascending, and include those of which tokens are sampled; the rows must count all tokens.
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
            if !part.is_due(at) {
                continue;
            }
            while words[row] < word {
                row += 1;
            }
            if part.exclusion.is_none() {
                // PERF: no token by token.
                let range = part.range(at);
                let (documents, topics) = (&part.documents[range.clone()], &part.topics[range]);
                sampler.add_held_word(row as u32, documents, topics);
            } else {
                let tokens = part.due(at).map(|token| (part.documents[token], part.topics[token]));
                sampler.add_held_tokens(row as u32, tokens);
            }
        }
        let key = BlockKey { shard: self.number, documents: 0, words: partition };
        let own = &mut self.own.changes;
        let mut context = SampleContext { spec, round, key, totals, own, documents };
        sampler.sample_held(held, ends, passes, &mut context);
        let mut topics = sampler.topics();
        if part.exclusion.is_none() {
            part.topics.copy_from_slice(topics);
        } else {
            (0..part.words.len()).for_each(|at| part.set_sampled(at, &mut topics));
        }
    }

    /// Changes of C_k by this shard in the current round, by topic. Only if no document is
    /// [long](crate::config::Hybrid).
    pub(crate) fn round_changes(&self) -> Vec<i32> {
        self.own.of_round()
    }
}
