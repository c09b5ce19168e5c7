//! State of a shard between two epochs, from which a run can go on.

use lda_core::counts::TopicIndex;
use lda_core::train::TokenAge;

use super::{RestoreError, ShardTokens};
use crate::spec::ModelSpec;

/// State of a shard between two epochs. It does not depend on the partitions of words. All counts follow
/// from it.
///
/// Memory: a topic per token, and a byte if converged tokens are excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardState<T> {
    /// Topic of every token, by word and document; then the topic and the proposals of each token of
    /// [long documents](crate::config::Hybrid).
    pub topics: Vec<T>,
    /// Age of every token that is not of a long document, in the same order; empty if no converged tokens
    /// have been excluded so far.
    pub ages: Vec<TokenAge>,
}

impl<T: TopicIndex> ShardTokens<T> {
    /// State from which a run can go on.
    pub fn state(&self) -> ShardState<T> {
        let mut state =
            ShardState { topics: Vec::with_capacity(self.num_values()), ages: Vec::new() };
        let has_ages = self.parts.iter().any(|part| !part.exclusion.ages().is_empty());
        if has_ages {
            state.ages.reserve_exact(self.num_short_tokens());
        }
        for (_, part, at) in self.by_word() {
            let part = &self.parts[part];
            state.topics.extend_from_slice(&part.topics[part.range(at)]);
            if has_ages {
                state.ages.extend_from_slice(&part.exclusion.ages()[part.range(at)]);
            }
        }
        let word = |part, at| self.parts[usize::from(part)].words[at as usize];
        self.long.values(word, &mut state.topics);
        state
    }

    /// See [`Shard::restore`](super::Shard::restore).
    pub(super) fn restore(
        &mut self,
        spec: &ModelSpec,
        state: &ShardState<T>,
    ) -> Result<(), RestoreError> {
        let ShardState { topics, ages } = state;
        let (found, expected) = (topics.len(), self.num_values());
        if found != expected {
            return Err(RestoreError::Tokens { found, expected });
        }
        let (found, expected) = (ages.len(), self.num_short_tokens());
        if found != expected && found > 0 {
            return Err(RestoreError::Ages { found, expected });
        }
        if let Some(topic) = topics.iter().find(|topic| topic.get() >= spec.topics()) {
            return Err(RestoreError::Topic { topic: topic.get() });
        }
        let (mut topics, mut ages) = (&topics[..], &ages[..]);
        let mut by_part = vec![Vec::new(); self.parts.len()];
        for (_, part, at) in self.by_word() {
            let range = self.parts[part].range(at);
            let (of_word, rest) = topics.split_at(range.len());
            self.parts[part].topics[range.clone()].copy_from_slice(of_word);
            topics = rest;
            if !ages.is_empty() {
                let (of_word, rest) = ages.split_at(range.len());
                by_part[part].extend_from_slice(of_word);
                ages = rest;
            }
        }
        for (part, ages) in self.parts.iter_mut().zip(by_part) {
            part.exclusion.set_ages(ages);
        }
        let Self { long, parts, .. } = self;
        long.restore(|part, at| parts[usize::from(part)].words[at as usize], topics);
        self.count(spec);
        Ok(())
    }
}
