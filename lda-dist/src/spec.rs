//! What every node of a run agrees on, and all that results follow from.

use std::fmt;

use lda_core::container::checksum;
use lda_core::prior::{Alpha, PriorError, check_beta};
use lda_core::sampler::{Context, padded};
use lda_core::simd::Isa;
use thiserror::Error;

/// Most topics: their numbers, and the bits that tell them apart, stay small everywhere on the wire.
pub const MAX_TOPICS: u32 = 1 << 24;

/// Why a job makes no sense.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// None, or too many.
    #[error("{topics} topics: give 1 to {MAX_TOPICS}")]
    Topics {
        /// How many.
        topics: u32,
    },
    /// No words.
    #[error("a vocabulary without words")]
    Words,
    /// A prior that is none.
    #[error(transparent)]
    Prior(#[from] PriorError),
}

/// The model that is trained, and the seed of all chance.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    topics: u32,
    words: u32,
    alpha: Alpha,
    beta: f64,
    seed: u64,
    /// α_k, padded as samplers want it.
    padded: Vec<f32>,
    alpha_sum: f64,
    isa: Isa,
}

/// Rounds begin with this number where shards bring their counts to the servers.
pub const JOINING: u16 = u16::MAX;

/// When in a run: each round begins with the counts that the one before has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Round {
    /// Counted from 1.
    pub epoch: u32,
    /// In its epoch, counted from 0; [`JOINING`] after it, where a run begins or has gone back.
    pub number: u16,
    /// How often the run had gone back before: what is left of then is of no use now. Results do not depend on it.
    pub attempt: u32,
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, number, attempt } = self;
        match *number {
            JOINING => write!(f, "the joining after epoch {epoch}, attempt {attempt}"),
            number => write!(f, "epoch {epoch}, round {number}, attempt {attempt}"),
        }
    }
}

impl Round {
    /// When shards bring the topics of this epoch's end to the servers.
    pub fn joining(epoch: u32, attempt: u32) -> Self {
        Self { epoch, number: JOINING, attempt }
    }

    /// Whether it is an epoch's last of so many, or the one before the first.
    pub fn is_last(&self, rounds: u16) -> bool {
        self.number == JOINING || u32::from(self.number) + 1 >= u32::from(rounds)
    }

    /// The one after it, of so many an epoch.
    pub fn next(&self, rounds: u16) -> Self {
        let Self { epoch, number, attempt } = *self;
        if self.is_last(rounds) {
            Self { epoch: epoch.saturating_add(1), number: 0, attempt }
        } else {
            Self { epoch, number: number + 1, attempt }
        }
    }
}

impl ModelSpec {
    /// Of K topics, V words, and these priors.
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn new(
        topics: u32,
        words: u32,
        alpha: Alpha,
        beta: f64,
        seed: u64,
    ) -> Result<Self, SpecError> {
        if !(1..=MAX_TOPICS).contains(&topics) {
            return Err(SpecError::Topics { topics });
        }
        if words == 0 {
            return Err(SpecError::Words);
        }
        alpha.check(topics as usize)?;
        check_beta(beta, words as usize)?;
        let mut values: Vec<f32> =
            (0..topics as usize).map(|topic| alpha.get(topic) as f32).collect();
        values.resize(padded(topics as usize), 0.0);
        let alpha_sum = alpha.sum(topics as usize);
        Ok(Self { topics, words, alpha, beta, seed, padded: values, alpha_sum, isa: Isa::detect() })
    }

    /// K.
    pub fn topics(&self) -> u32 {
        self.topics
    }

    /// V.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// α.
    pub fn alpha(&self) -> &Alpha {
        &self.alpha
    }

    /// β.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A hash of what results follow from, the same on every machine: not of the instruction set.
    pub fn fingerprint(&self) -> u64 {
        let alpha = self.alpha.as_slice().iter().map(|alpha| alpha.to_bits());
        let numbers = [self.topics.into(), self.words.into(), self.beta.to_bits(), self.seed];
        let bytes: Vec<u8> = numbers.into_iter().chain(alpha).flat_map(u64::to_le_bytes).collect();
        checksum(&bytes)
    }

    /// What a sampler is told. `totals` are C_k, padded; `wave` tells apart what scratch was used for.
    pub(crate) fn context<'a>(&'a self, round: Round, totals: &'a [u32], wave: u64) -> Context<'a> {
        Context {
            topics: self.topics as usize,
            alpha: &self.padded,
            alpha_sum: self.alpha_sum,
            alpha_symmetric: matches!(self.alpha, Alpha::Symmetric(_)),
            beta: self.beta,
            beta_bar: self.beta * f64::from(self.words),
            totals,
            wave,
            seed: self.seed,
            epoch: round.epoch,
            round: round.number,
            again: 0,
            mh_steps: 0,
            isa: self.isa,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_each_other_in_order() {
        let mut round = Round::joining(2, 1);
        for number in [0, 1, 2, 0, 1] {
            let next = round.next(3);
            assert!(next > round && next.number == number && next.attempt == 1, "{round}: {next}");
            assert_eq!(next.is_last(3), number == 2);
            round = next;
        }
        assert_eq!(round.to_string(), "epoch 4, round 1, attempt 1");
        assert!(Round::joining(4, 1) > round && Round::joining(3, 1) < round);
        assert_eq!(Round::joining(4, 1).to_string(), "the joining after epoch 4, attempt 1");
    }

    #[test]
    fn a_fingerprint_is_of_the_job_and_not_of_the_machine() {
        let spec = |alpha: Alpha, beta, seed| ModelSpec::new(2, 9, alpha, beta, seed).unwrap();
        let one = spec(0.1.into(), 0.2, 3);
        let elsewhere = ModelSpec { isa: Isa::Scalar, ..one.clone() };
        assert_eq!(one.fingerprint(), elsewhere.fingerprint());
        for other in [spec(0.2.into(), 0.2, 3), spec(0.1.into(), 0.3, 3), spec(0.1.into(), 0.2, 4)]
        {
            assert_ne!(one.fingerprint(), other.fingerprint());
        }
        assert_ne!(one.fingerprint(), spec(vec![0.1, 0.3].into(), 0.2, 3).fingerprint());
    }
}
