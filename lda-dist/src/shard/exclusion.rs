//! Converged-token exclusion: the tokens of a partition that an epoch samples.
//!
//! All of an epoch's choices are made at its start, from the age of each token and a random stream of the
//! shard and the partition. So routes, requests and samplers see the same tokens, and results do not depend
//! on where or when a partition is sampled.
//!
//! Memory: a byte and a bit per token, from the first epoch that excludes tokens.

use std::ops::Range;

use lda_core::random::StreamKey;
use lda_core::train::TokenAge;

/// Ages of a partition's tokens, and which of the tokens the current epoch samples.
#[derive(Debug, Default)]
pub(super) struct Exclusion {
    /// One per token; empty before the first epoch that excludes tokens, when all are 0.
    ages: Vec<TokenAge>,
    /// One bit per token, set if it is sampled; empty if all are.
    due: Vec<u64>,
}

impl Exclusion {
    /// Chooses the tokens of an epoch that excludes converged ones, and ages the others.
    pub fn choose(&mut self, tokens: usize, key: StreamKey) {
        self.ages.resize(tokens, TokenAge::default());
        self.due.clear();
        self.due.resize(tokens.div_ceil(64), 0);
        let mut rng = key.stream();
        for (token, age) in self.ages.iter_mut().enumerate() {
            if age.is_due(&mut rng) {
                self.due[token / 64] |= 1 << (token % 64);
            } else {
                *age = age.skipped();
            }
        }
    }

    /// Returns whether all tokens are sampled.
    pub fn is_none(&self) -> bool {
        self.due.is_empty()
    }

    /// Returns whether a token is sampled.
    pub fn is_due(&self, token: usize) -> bool {
        self.is_none() || self.due[token / 64] >> (token % 64) & 1 == 1
    }

    /// Those of these tokens that are sampled, in order.
    pub fn due(&self, tokens: Range<usize>) -> impl Iterator<Item = usize> {
        tokens.filter(|&token| self.is_due(token))
    }

    /// Number of this many tokens that are sampled.
    pub fn num_due(&self, tokens: usize) -> usize {
        let counted = || self.due.iter().map(|bits| bits.count_ones() as usize).sum();
        if self.is_none() { tokens } else { counted() }
    }

    /// Notes that a token was sampled, and `changed` its topic or kept it.
    pub fn note_sampled(&mut self, token: usize, changed: bool) {
        if !self.is_none() {
            let age = &mut self.ages[token];
            *age = age.sampled(changed);
        }
    }

    /// Ages of all tokens; empty if they are all 0.
    pub fn ages(&self) -> &[TokenAge] {
        &self.ages
    }

    /// Sets the ages of all tokens; none if they are all 0. Before the next [choice](Self::choose), all tokens
    /// are sampled.
    pub fn set_ages(&mut self, ages: Vec<TokenAge>) {
        (self.ages, self.due) = (ages, Vec::new());
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.ages.capacity() + 8 * self.due.capacity()
    }
}

#[cfg(test)]
mod tests {
    use lda_core::random::Purpose;

    use super::*;

    fn key(epoch: u32) -> StreamKey {
        StreamKey { seed: 3, epoch, pass: 0, block: 0, purpose: Purpose::Exclude }
    }

    #[test]
    fn tokens_that_keep_their_topic_are_left_out() {
        let mut exclusion = Exclusion::default();
        assert!(exclusion.is_none() && exclusion.is_due(99));
        let mut shares = Vec::new();
        for epoch in 1..6 {
            let before = exclusion.ages().to_vec();
            exclusion.choose(1000, key(epoch));
            let due: Vec<usize> = exclusion.due(0..1000).collect();
            for (token, age) in before.iter().enumerate() {
                let now = if exclusion.is_due(token) { *age } else { age.skipped() };
                assert_eq!(exclusion.ages()[token], now);
            }
            assert_eq!(due.len(), exclusion.num_due(1000));
            shares.push(due.len());
            // Tokens of odd numbers keep their topic.
            due.iter().for_each(|&token| exclusion.note_sampled(token, token % 2 == 0));
            let even = due.iter().filter(|&&token| token % 2 == 0).count();
            assert_eq!(even, 500, "tokens that move are sampled in every epoch");
        }
        // Half of the odd ones in the second epoch; then those at least that have waited.
        assert_eq!(shares[0], 1000);
        assert!((700..800).contains(&shares[1]), "{shares:?}");
        assert!(shares[2..].iter().all(|share| (550..900).contains(share)), "{shares:?}");
        exclusion.set_ages(Vec::new());
        assert_eq!((exclusion.num_due(7), exclusion.ages()), (7, &[][..]));
    }
}
