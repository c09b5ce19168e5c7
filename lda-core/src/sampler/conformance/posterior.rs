//! Exact posteriors of tiny corpora, by enumeration of all K^T states in f64.

use crate::corpus::{BuildError, Corpus};
use crate::prior::Alpha;
use crate::random::Xoshiro256PlusPlus;
use crate::special::ln_rising;
use crate::train::{Assignments, TrainOptions};

/// A corpus small enough to enumerate, with K and priors.
pub struct Problem {
    pub name: &'static str,
    /// Words of each document.
    documents: &'static [&'static [u32]],
    pub alpha: &'static [f64],
    beta: f64,
}

/// Repeated words, a word in both documents, V ≠ K, α of one value and of several.
pub const PROBLEMS: [Problem; 4] = [
    Problem {
        name: "two documents of two words, K = 2",
        documents: &[&[0, 0, 1], &[0, 1]],
        alpha: &[0.5, 1.5],
        beta: 0.3,
    },
    Problem {
        name: "two documents of three words, K = 2",
        documents: &[&[0, 1, 2], &[0, 1]],
        alpha: &[0.7, 0.7],
        beta: 0.5,
    },
    Problem {
        name: "three documents of two words, K = 3",
        documents: &[&[0, 1], &[0], &[1]],
        alpha: &[0.3, 0.6, 1.2],
        beta: 0.2,
    },
    Problem {
        name: "one document of two words, K = 3",
        documents: &[&[0, 0, 1, 1]],
        alpha: &[0.4, 0.4, 0.4],
        beta: 0.3,
    },
];

impl Problem {
    /// The corpus.
    pub fn corpus(&self) -> Result<Corpus, BuildError> {
        Corpus::from_tokens(self.documents.iter().map(|words| words.iter().copied()))
    }

    /// Options of a run in one block.
    pub fn options(&self, seed: u64) -> TrainOptions {
        let alpha = match self.alpha {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => {
                Alpha::Symmetric(*first)
            }
            alpha => Alpha::from(alpha.to_vec()),
        };
        TrainOptions::new(self.alpha.len() as u32)
            .alpha(alpha)
            .beta(self.beta)
            .seed(seed)
            .ranges(1)
            .warm_up(0)
    }

    fn num_tokens(&self) -> u32 {
        self.documents.iter().map(|words| words.len() as u32).sum()
    }

    /// Number of states K^T.
    pub fn num_states(&self) -> usize {
        self.alpha.len().pow(self.num_tokens())
    }

    /// The topics of a state: its digits to the base K, the last digit first.
    pub fn topics(&self, state: usize) -> Vec<u32> {
        let k = self.alpha.len();
        let digit = |token: u32| (state / k.pow(token) % k) as u32;
        (0..self.num_tokens()).map(digit).collect()
    }

    /// The state of these topics.
    pub fn state(&self, topics: &[u32]) -> usize {
        topics.iter().rev().fold(0, |state, &topic| state * self.alpha.len() + topic as usize)
    }

    /// ln p(W, Z) of a state, up to a constant.
    fn log_joint(&self, state: usize) -> f64 {
        let topics = self.topics(state);
        let tokens: Vec<(usize, u32, u32)> = self
            .documents
            .iter()
            .enumerate()
            .flat_map(|(d, words)| words.iter().map(move |&word| (d, word)))
            .zip(topics)
            .map(|((d, word), topic)| (d, word, topic))
            .collect();
        let num_words = tokens.iter().map(|token| token.1 + 1).max().unwrap_or(0);
        let count = |fits: &dyn Fn(&(usize, u32, u32)) -> bool| {
            tokens.iter().filter(|&token| fits(token)).count() as u64
        };
        let mut sum = 0.0;
        for (k, &alpha) in self.alpha.iter().enumerate() {
            let k = k as u32;
            for d in 0..self.documents.len() {
                sum += ln_rising(alpha, count(&|token| token.0 == d && token.2 == k));
            }
            for word in 0..num_words {
                sum += ln_rising(self.beta, count(&|token| token.1 == word && token.2 == k));
            }
            let beta_bar = self.beta * f64::from(num_words);
            sum -= ln_rising(beta_bar, count(&|token| token.2 == k));
        }
        sum
    }

    /// The probability of each state given the words.
    pub fn posterior(&self) -> Vec<f64> {
        let joint: Vec<f64> =
            (0..self.num_states()).map(|state| self.log_joint(state).exp()).collect();
        let total: f64 = joint.iter().sum();
        joint.into_iter().map(|p| p / total).collect()
    }

    /// Topics of a state, as the start of a run.
    pub fn assignments(&self, corpus: &Corpus, state: usize) -> Assignments {
        Assignments::new(corpus, self.topics(state)).expect("one topic per token")
    }
}

/// Draws a state.
pub fn draw(law: &[f64], rng: &mut Xoshiro256PlusPlus) -> usize {
    let mut left = rng.next_f64();
    for (state, p) in law.iter().enumerate() {
        left -= p;
        if left < 0.0 {
            return state;
        }
    }
    law.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_topics_are_inverse() {
        for problem in &PROBLEMS {
            for state in 0..problem.num_states() {
                assert_eq!(problem.state(&problem.topics(state)), state);
            }
        }
    }

    /// log p(W, Z) of the trainer, which is tested elsewhere, up to a constant.
    #[test]
    fn the_joint_is_that_of_the_trainer() {
        use crate::train::{Init, Trainer};

        for problem in &PROBLEMS {
            let corpus = problem.corpus().unwrap();
            let of = |state: usize| {
                let topics = problem.assignments(&corpus, state);
                let init = Init { topics: Some(&topics), ..Init::default() };
                let trainer = Trainer::with_init(&corpus, &problem.options(0), init).unwrap();
                trainer.log_joint().total() - problem.log_joint(state)
            };
            let constant = of(0);
            for state in 1..problem.num_states() {
                assert!((of(state) - constant).abs() < 1e-9, "{}, {state}", problem.name);
            }
            assert!((problem.posterior().iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}
