//! The model of a run, which is the same on every node, and the numbering of its rounds.

use std::fmt;
use std::sync::Arc;

use lda_core::container::checksum;
use lda_core::prior::{Alpha, PriorError, check_beta};
use lda_core::sampler::{Context, padded};
use lda_core::simd::Isa;
use lda_core::train::{FirstTopics, Learn, LearnAlpha, PseudoCounts, Start, TrainOptions};
use thiserror::Error;

use crate::priors::{PriorUpdates, Priors};

/// Largest number of topics, which bounds the size of topic ids on the wire.
pub const MAX_TOPICS: u32 = 1 << 24;

/// Share of all topics that a word or a document starts with, if the start is sparse and none is set.
const DEFAULT_START_DEGREE: f64 = 0.1;

/// Error of an impossible model.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The number of topics is 0 or above [`MAX_TOPICS`].
    #[error("{topics} topics: give 1 to {MAX_TOPICS}")]
    Topics {
        /// Topics.
        topics: u32,
    },
    /// The vocabulary is empty.
    #[error("the vocabulary has no words: check that the documents are not empty")]
    Words,
    /// A prior is invalid.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// The share of topics of a sparse start is not above 0 and at most 1.
    #[error("a sparse start in {degree} of the topics: give a share above 0 and at most 1")]
    StartDegree {
        /// The share.
        degree: f64,
    },
    /// Pseudo-counts are of another model.
    #[error(
        "pseudo-counts of {found_words} words and {found_topics} topics for a run of {words} words and {topics} topics"
    )]
    PseudoCounts {
        /// Words of the pseudo-counts.
        found_words: usize,
        /// Topics of the pseudo-counts.
        found_topics: usize,
        /// V.
        words: u32,
        /// K.
        topics: u32,
    },
    /// An option by which priors change is invalid.
    #[error("{why}")]
    PriorUpdates {
        /// The option, its value and what to do.
        why: String,
    },
}

/// Topics, words, priors and random seed of a run, and how priors change during it.
///
/// ```
/// use lda_dist::spec::ModelSpec;
///
/// let spec = ModelSpec::builder(100, 5_000).alpha(0.1).seed(7).build()?;
/// assert_eq!((spec.beta(), spec.seed()), (0.01, 7));
/// # Ok::<(), lda_dist::spec::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    topics: u32,
    words: u32,
    alpha: Alpha,
    beta: f64,
    seed: u64,
    /// α_k, padded to the length that samplers need.
    padded: Vec<f32>,
    alpha_sum: f64,
    isa: Isa,
    updates: PriorUpdates,
    /// Σ α_k at the start of the run.
    first_alpha_sum: f64,
    start: Start,
    /// Share of topics of a sparse start.
    start_degree: f64,
    pseudo_counts: Option<Arc<PseudoCounts>>,
}

/// Largest number of rounds per epoch. Numbers from here on are those of joinings.
pub const MAX_ROUNDS: u16 = 1 << 15;

/// Number of the round in which shards join after an epoch: they send their counts to the servers.
pub const JOINING: u16 = u16::MAX;

/// Position in a run. A round is the step of the protocol between two versions of the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Round {
    /// Counted from 1.
    pub epoch: u32,
    /// Position in the epoch, counted from 0; [`JOINING`] for the round after this epoch in which a
    /// run starts or restarts, and r less if it restarts after r rounds of the next epoch.
    pub number: u16,
    /// Restart counter. Messages of earlier attempts are ignored. Results do not depend on it.
    pub attempt: u32,
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, number, attempt } = self;
        match self.joins_after() {
            Some(0) => write!(f, "the joining after epoch {epoch}, attempt {attempt}"),
            Some(rounds) => {
                let next = epoch.saturating_add(1);
                write!(f, "the joining after {rounds} rounds of epoch {next}, attempt {attempt}")
            }
            None => write!(f, "epoch {epoch}, round {number}, attempt {attempt}"),
        }
    }
}

impl Round {
    /// The round in which shards send the counts of this epoch's end to the servers.
    pub fn joining(epoch: u32, attempt: u32) -> Self {
        Self { epoch, number: JOINING, attempt }
    }

    /// The round in which shards send the counts after `rounds` rounds of the epoch after this one. Any number
    /// from [`MAX_ROUNDS`] on stands for the largest one below it.
    pub fn joining_within(epoch: u32, rounds: u16, attempt: u32) -> Self {
        Self { epoch, number: JOINING - rounds.min(MAX_ROUNDS - 1), attempt }
    }

    /// Returns whether shards join in this round.
    pub fn is_joining(&self) -> bool {
        self.number >= MAX_ROUNDS
    }

    /// Number of rounds of the next epoch after which shards join in this round; `None` if they do not join.
    pub fn joins_after(&self) -> Option<u16> {
        self.is_joining().then(|| JOINING - self.number)
    }

    /// Whether this is the last of an epoch's `rounds`, or the joining before the first.
    pub fn is_last(&self, rounds: u16) -> bool {
        match self.joins_after() {
            Some(after) => after == 0,
            None => u32::from(self.number) + 1 >= u32::from(rounds),
        }
    }

    /// The next round, with `rounds` per epoch.
    pub fn next(&self, rounds: u16) -> Self {
        let Self { epoch, number, attempt } = *self;
        if let Some(number) = self.joins_after() {
            Self { epoch: epoch.saturating_add(1), number, attempt }
        } else if self.is_last(rounds) {
            Self { epoch: epoch.saturating_add(1), number: 0, attempt }
        } else {
            Self { epoch, number: number + 1, attempt }
        }
    }
}

impl ModelSpec {
    /// A model with K topics and V words; the other values have defaults.
    pub fn builder(topics: u32, words: u32) -> ModelSpecBuilder {
        ModelSpecBuilder {
            topics,
            words,
            alpha: None,
            beta: 0.01,
            seed: 0,
            updates: PriorUpdates::default(),
            start: Start::Random,
            start_degree: DEFAULT_START_DEGREE,
            pseudo_counts: None,
        }
    }

    /// A model with K topics, V words, the priors α and β, and a seed.
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
        Ok(Self {
            topics,
            words,
            alpha,
            beta,
            seed,
            padded: values,
            alpha_sum,
            isa: Isa::detect(),
            updates: PriorUpdates::default(),
            first_alpha_sum: alpha_sum,
            start: Start::Random,
            start_degree: DEFAULT_START_DEGREE,
            pseudo_counts: None,
        })
    }

    /// The same model with other priors.
    pub(crate) fn with_priors(&self, priors: &Priors) -> Result<Self, SpecError> {
        let Self { topics, words, seed, updates, first_alpha_sum, start, start_degree, .. } = *self;
        let spec = Self::new(topics, words, priors.alpha.clone(), priors.beta, seed)?;
        let pseudo_counts = self.pseudo_counts.clone();
        Ok(Self { updates, first_alpha_sum, start, start_degree, pseudo_counts, ..spec })
    }

    /// The same model with the α of an epoch that starts with these C_k, if α follows topic sizes: α_k is the
    /// topic's share of the tokens, smoothed, of the first Σ α (ZenLDA eq. 3).
    pub(crate) fn by_size(&self, totals: &[u32]) -> Option<Self> {
        let smoothing = self.updates.alpha_by_size?;
        let tokens: f64 = totals.iter().copied().map(f64::from).sum();
        let scale = self.first_alpha_sum / (tokens + smoothing);
        let each = smoothing / totals.len() as f64;
        let alpha = totals.iter().map(|&size| scale * (f64::from(size) + each)).collect();
        let priors = Priors { alpha: Alpha::PerTopic(alpha), beta: self.beta };
        Some(self.with_priors(&priors).expect("shares of a valid sum are valid"))
    }

    /// Returns true if a round starts only when all before have ended everywhere, because priors are learnt
    /// from their counts. Rounds after a joining do so too, but have no rounds of their own before them.
    pub fn waits_before(&self, round: Round) -> bool {
        let before = round.epoch.checked_sub(1).filter(|_| round.number == 0);
        before.is_some_and(|epoch| self.updates.due_after(epoch).is_some())
    }

    /// The first topics of tokens, those of a run in one process.
    pub(crate) fn first_topics(&self) -> FirstTopics {
        FirstTopics::new(self.topics, self.start, self.start_degree, self.seed)
            .pseudo_counts(self.pseudo_counts.clone())
    }

    /// How priors change.
    pub(crate) fn updates(&self) -> PriorUpdates {
        self.updates
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

    /// α and β.
    pub fn priors(&self) -> Priors {
        Priors { alpha: self.alpha.clone(), beta: self.beta }
    }

    /// Counts in addition to those of the tokens: seeds, or an earlier model.
    pub fn pseudo_counts(&self) -> Option<&PseudoCounts> {
        self.pseudo_counts.as_deref()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A hash of all values that determine results. It is the same on every machine, because the
    /// instruction set does not enter.
    pub fn fingerprint(&self) -> u64 {
        let alpha = self.alpha.as_slice().iter().map(|alpha| alpha.to_bits());
        let numbers = [self.topics.into(), self.words.into(), self.beta.to_bits(), self.seed];
        let PriorUpdates { alpha_by_size, learn } = self.updates;
        let by_size = alpha_by_size.into_iter().flat_map(|smoothing| [1, smoothing.to_bits()]);
        let learn = learn.into_iter().flat_map(|learn| {
            let Learn { alpha, beta, burn_in, every } = learn;
            let how = LearnAlpha::ALL.iter().position(|how| *how == alpha).unwrap_or(0);
            [2, how as u64, beta.into(), burn_in.into(), every.into()]
        });
        let start = Start::ALL.iter().position(|start| *start == self.start).unwrap_or(0);
        let start = (start > 0).then(|| [3, start as u64, self.start_degree.to_bits()]);
        let start = start.into_iter().flatten();
        let pseudo = self.pseudo_counts.iter().flat_map(|counts| [4, counts.fingerprint()]);
        let numbers = numbers.into_iter().chain(alpha).chain(by_size).chain(learn);
        let numbers = numbers.chain(start).chain(pseudo);
        let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        checksum(&bytes)
    }

    /// Context of a sampler. `totals` are C_k, padded; `wave` numbers the uses of a scratch.
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

/// Builds a [`ModelSpec`].
#[derive(Clone, Debug)]
#[must_use = "a model does not exist before `build` is called"]
pub struct ModelSpecBuilder {
    topics: u32,
    words: u32,
    alpha: Option<Alpha>,
    beta: f64,
    seed: u64,
    updates: PriorUpdates,
    start: Start,
    start_degree: f64,
    pseudo_counts: Option<Arc<PseudoCounts>>,
}

impl ModelSpecBuilder {
    /// Document-topic prior α, one value for every topic or one value per topic; default 50/K for
    /// every topic. [`TrainOptions::default_alpha`] is smaller for short documents.
    pub fn alpha(mut self, alpha: impl Into<Alpha>) -> Self {
        self.alpha = Some(alpha.into());
        self
    }

    /// Topic-word prior β; default 0.01.
    pub fn beta(mut self, beta: f64) -> Self {
        self.beta = beta;
        self
    }

    /// Random seed; default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Lets α follow topic sizes (ZenLDA eq. 3), smoothed by so many tokens over all topics; default `None`:
    /// it does not. α must be one value then, and Σ α stays the same.
    pub fn alpha_by_size(mut self, tokens: impl Into<Option<f64>>) -> Self {
        self.updates.alpha_by_size = tokens.into();
        self
    }

    /// Priors that are learnt during the run; default `None`.
    pub fn learn(mut self, learn: impl Into<Option<Learn>>) -> Self {
        self.updates.learn = learn.into();
        self
    }

    /// Rule for the first topics of tokens, and the share of all topics that a word or a document starts
    /// with if it is sparse; default random.
    pub fn start(mut self, start: Start, degree: f64) -> Self {
        (self.start, self.start_degree) = (start, degree);
        self
    }

    /// Counts in addition to those of the tokens: seed words of topics, or an earlier model, from which the
    /// run goes on. All nodes need the same. Default `None`.
    pub fn pseudo_counts(mut self, counts: impl Into<Option<Arc<PseudoCounts>>>) -> Self {
        self.pseudo_counts = counts.into();
        self
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn build(self) -> Result<ModelSpec, SpecError> {
        let Self { topics, words, alpha, beta, seed, updates, start, start_degree, .. } = self;
        if start_degree.is_nan() || start_degree <= 0.0 || start_degree > 1.0 {
            return Err(SpecError::StartDegree { degree: start_degree });
        }
        let alpha =
            alpha.unwrap_or_else(|| TrainOptions::default_alpha(topics.max(1), f64::INFINITY));
        let spec = ModelSpec::new(topics, words, alpha, beta, seed)?;
        let check = updates.check(spec.alpha());
        check.map_err(|error| SpecError::PriorUpdates { why: error.to_string() })?;
        let pseudo_counts = self.pseudo_counts;
        if let Some(counts) = &pseudo_counts {
            check_pseudo_counts(counts, &spec, updates)?;
        }
        Ok(ModelSpec { updates, start, start_degree, pseudo_counts, ..spec })
    }
}

fn check_pseudo_counts(
    counts: &PseudoCounts,
    spec: &ModelSpec,
    updates: PriorUpdates,
) -> Result<(), SpecError> {
    let (found_words, found_topics) = (counts.num_words(), counts.num_topics());
    let ModelSpec { topics, words, .. } = *spec;
    if (found_words, found_topics) != (words as usize, topics as usize) {
        return Err(SpecError::PseudoCounts { found_words, found_topics, words, topics });
    }
    if updates.learn.is_some_and(|learn| learn.beta) {
        let why = "β cannot be learnt beside pseudo-counts, to which it belongs: learn α only";
        return Err(SpecError::PriorUpdates { why: why.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_ascend() {
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

    /// Otherwise rounds of an epoch would be sampled twice, or left out.
    #[test]
    fn an_epoch_goes_on_after_the_joining_within_it() {
        for (rounds, all) in [(1, 3), (2, 3), (MAX_ROUNDS - 1, MAX_ROUNDS)] {
            let joining = Round::joining_within(4, rounds, 2);
            assert_eq!((joining.is_joining(), joining.joins_after()), (true, Some(rounds)));
            assert!(!joining.is_last(all), "the epoch has not ended");
            let next = joining.next(all);
            assert_eq!(next, Round { epoch: 5, number: rounds, attempt: 2 });
            assert!(joining < next && joining > Round { epoch: 4, number: all - 1, attempt: 2 });
        }
        assert_eq!(Round::joining_within(4, 0, 2), Round::joining(4, 2));
        let within = Round::joining_within(4, 2, 1).to_string();
        assert_eq!(within, "the joining after 2 rounds of epoch 5, attempt 1");
        let last = Round { epoch: 4, number: MAX_ROUNDS - 1, attempt: 2 };
        assert_eq!((last.is_joining(), last.joins_after()), (false, None));
    }

    #[test]
    fn a_fingerprint_depends_on_the_model_and_not_on_the_machine() {
        let spec = |alpha: Alpha, beta, seed| ModelSpec::new(2, 9, alpha, beta, seed).unwrap();
        let one = spec(0.1.into(), 0.2, 3);
        let elsewhere = ModelSpec { isa: Isa::Scalar, ..one.clone() };
        assert_eq!(one.fingerprint(), elsewhere.fingerprint());
        for other in [spec(0.2.into(), 0.2, 3), spec(0.1.into(), 0.3, 3), spec(0.1.into(), 0.2, 4)]
        {
            assert_ne!(one.fingerprint(), other.fingerprint());
        }
        assert_ne!(one.fingerprint(), spec(vec![0.1, 0.3].into(), 0.2, 3).fingerprint());
        let build = |change: fn(ModelSpecBuilder) -> ModelSpecBuilder| {
            change(ModelSpec::builder(2, 9).alpha(0.1).beta(0.2).seed(3)).build().unwrap()
        };
        assert_eq!(one, build(|of| of));
        let mut found = vec![one.fingerprint()];
        let changes: [fn(ModelSpecBuilder) -> ModelSpecBuilder; 11] = [
            |of| of.alpha_by_size(9.0),
            |of| of.learn(Learn::default()),
            |of| of.learn(Learn { alpha: LearnAlpha::Symmetric, ..Learn::default() }),
            |of| of.learn(Learn { every: 3, ..Learn::default() }),
            |of| of.learn(Learn { burn_in: 3, ..Learn::default() }),
            |of| of.learn(Learn { beta: false, ..Learn::default() }),
            |of| of.start(Start::SparseWord, 0.5),
            |of| of.start(Start::SparseDocument, 0.5),
            |of| of.start(Start::SparseWord, 0.25),
            |of| of.pseudo_counts(Arc::new(PseudoCounts::new(9, 2, [(3, 1, 7)]).unwrap())),
            |of| of.pseudo_counts(Arc::new(PseudoCounts::new(9, 2, [(3, 0, 7)]).unwrap())),
        ];
        for change in changes {
            let other = build(change).fingerprint();
            assert!(!found.contains(&other));
            found.push(other);
        }
    }
}
