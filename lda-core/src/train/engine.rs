//! One run at one topic width: the state, the samplers' scratch, and the order of passes.

use std::sync::Arc;

use crate::corpus::Corpus;
use crate::counts::{RowsTooLarge, TopicIndex};
use crate::layout::WordRanges;
use crate::prior::Alpha;
use crate::prior::learn::CountHistograms;
use crate::sampler::{Requires, Warp, padded};
use crate::simd::Aligned;
use crate::train::assignments::Assignments;
use crate::train::options::{Learn, Resolved, SamplerKind};
use crate::train::pass::{PassParams, PassReport};
use crate::train::registry::{AnySampler, LONG, SHORT, SamplerSetup, Width, samplers, token_sets};
use crate::train::resume_state::ResumeState;
use crate::train::seed_counts::Pseudo;
use crate::train::spans::span;
use crate::train::start::{First, FirstTopics};
use crate::train::state::{Needs, Sizes, State};
use crate::train::view::CountsView;

/// State and scratch of a run whose topics are stored as `T`.
#[derive(Debug)]
pub(crate) struct Engine<T: TopicIndex> {
    pub state: State<T>,
    /// One per token set.
    samplers: Vec<Box<dyn AnySampler<T>>>,
    /// α of the last epoch, and of the next one unless it follows topic sizes.
    pub alpha: Alpha,
    /// β of the last epoch, and of the next one unless it is learnt.
    pub beta: f64,
    /// α as the samplers read it: f32, padded.
    weights: Arc<Aligned<f32>>,
    wave: u64,
    /// Number of times that the hybrid's next epoch runs WarpLDA's two passes.
    rounds: u16,
    /// True if the state has the tokens of one block at a time.
    in_blocks: bool,
}

/// Draws of the sampling of all tokens in the state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sampled {
    pub all: PassReport,
    /// Those of the hybrid's long documents, in all rounds.
    pub long: PassReport,
}

impl Sampled {
    /// Adds those of another block.
    pub fn add(&mut self, other: Self) {
        self.all.add(other.all);
        self.long.add(other.long);
    }
}

impl<T: Width> Engine<T> {
    /// A run that starts as its options say, or with given topics.
    pub fn new(
        corpus: &Corpus,
        setup: SamplerSetup<'_>,
        from: Option<&Assignments>,
        pseudo: &Pseudo,
    ) -> Result<Self, RowsTooLarge> {
        let options = setup.options;
        let starter =
            FirstTopics::new(options.topics, options.start, options.start_degree, options.seed)
                .pseudo_counts(pseudo.clone());
        let topics = options.topics as usize;
        let mut state = State::new(
            corpus,
            Sizes { topics, ranges: options.ranges, mh_steps: options.mh_steps as usize },
            &token_sets::<T>(corpus, setup),
            from.map_or(First::Drawn(&starter, 0), First::Taken),
            pseudo,
        )?;
        if options.exclude_converged_from.is_some() {
            state.track_convergence();
        }
        let (alpha, weights) = (options.alpha.clone(), weights(&options.alpha, topics));
        let (beta, samplers) = (options.beta, samplers(setup));
        let in_blocks = false;
        Ok(Self { state, samplers, alpha, beta, weights, wave: 0, rounds: 1, in_blocks })
    }

    /// A run over blocks, whose tokens are not counted yet.
    pub fn of_blocks(
        words: WordRanges,
        setup: SamplerSetup<'_>,
        pseudo: &Pseudo,
    ) -> Result<Self, RowsTooLarge> {
        let (options, samplers) = (setup.options, samplers::<T>(setup));
        let topics = options.topics as usize;
        let requires: Vec<Requires> = samplers.iter().map(|sampler| sampler.requires()).collect();
        // All samplers read the counts of other blocks from the rows.
        let needs = Needs { word_rows: true, still: false, ..Needs::of(requires.iter()) };
        let mut state = State::without_tokens(words, topics, needs, pseudo)?;
        state.count_pseudo();
        let (alpha, weights) = (options.alpha.clone(), weights(&options.alpha, topics));
        let (beta, in_blocks) = (options.beta, true);
        Ok(Self { state, samplers, alpha, beta, weights, wave: 0, rounds: 1, in_blocks })
    }
}

impl<T: TopicIndex> Engine<T> {
    /// Restores the state of an interrupted run with the same options.
    ///
    /// # Errors
    /// As [`State::take_up`].
    pub fn take_up(
        &mut self,
        corpus: &Corpus,
        carried: &ResumeState<T>,
        rounds: u16,
    ) -> Result<(), &'static str> {
        self.state.take_up(corpus, carried)?;
        self.rounds = rounds;
        Ok(())
    }

    /// Number of times that the hybrid's next epoch runs WarpLDA's two passes.
    pub fn rounds(&self) -> u16 {
        self.rounds
    }

    /// An empty run, which replaces one that is dropped.
    pub fn empty() -> Self {
        let alpha = Alpha::Symmetric(1.0);
        let (state, weights) = (State::empty(), weights(&alpha, 0));
        let (samplers, in_blocks) = (Vec::new(), false);
        Self { state, samplers, alpha, beta: 1.0, weights, wave: 0, rounds: 1, in_blocks }
    }

    /// Sets the α of an epoch from the topic sizes (ZenLDA eq. 3).
    pub fn follow_sizes(&mut self, options: &Resolved) {
        let Some(smoothing) = options.alpha_by_size else { return };
        let topics = options.topics as usize;
        let totals = &self.state.totals[..topics];
        let tokens: f64 = totals.iter().copied().map(f64::from).sum();
        let scale = options.alpha.sum(topics) / (tokens + smoothing);
        let of_size = |&size: &u32| scale * (f64::from(size) + smoothing / topics as f64);
        self.set_alpha(Alpha::PerTopic(totals.iter().map(of_size).collect()));
    }

    /// Learns priors, if an update is due.
    fn learn(&mut self, corpus: &Corpus, options: &Resolved, epoch: u32) {
        let Some(learn) = options.learn.filter(|learn| learn.is_due(epoch)) else { return };
        let documents = learn.document_histograms(options.topics as usize).map(|mut documents| {
            documents.add_documents(&CountsView::new(&self.state, corpus));
            documents
        });
        self.learn_from(learn, documents);
    }

    /// Learns priors from the counts of all documents, and from C_w.
    pub fn learn_from(&mut self, learn: Learn, documents: Option<CountHistograms>) {
        let topics = self.state.topics;
        let alpha =
            documents.map(|mut documents| learn.next_alpha(&self.alpha, topics, &mut documents));
        let beta = learn.beta.then(|| {
            let mut words = CountHistograms::of_all_topics();
            words.add_words(&CountsView::of_words(&self.state));
            words.beta(self.state.words.num_words(), self.beta, Learn::STEPS)
        });
        self.beta = beta.unwrap_or(self.beta);
        if let Some(alpha) = alpha {
            self.set_alpha(alpha);
        }
    }

    /// Sets the priors of the next epoch.
    pub fn set_priors(&mut self, alpha: &Alpha, beta: f64) {
        self.beta = beta;
        self.set_alpha(alpha.clone());
    }

    fn set_alpha(&mut self, alpha: Alpha) {
        self.weights = weights(&alpha, self.state.topics);
        self.alpha = alpha;
    }

    /// Samples every token. In the hybrid, WarpLDA may sample a token more than once.
    ///
    /// INVARIANT: in the hybrid's order of passes, both samplers read current counts. The document
    /// pass of the long documents needs only their own tokens; the word pass after it recounts all
    /// tokens of each word, those of short documents included, and writes C_w for F+LDA. The two
    /// passes are repeated until a token has had as many steps as one acceptance takes on average
    /// (LDA* heuristic 2): an epoch then does about as much for a long document as for a short one.
    pub fn epoch(&mut self, corpus: &Corpus, options: &Resolved, epoch: u32) -> PassReport {
        span!(INFO, "epoch", epoch, sampler = options.sampler.name());
        self.follow_sizes(options);
        self.learn(corpus, options, epoch);
        let sampled = self.sample(options, epoch);
        self.adapt(options, sampled);
        sampled.all
    }

    /// Samples every token in the state: an epoch without what comes before and after it.
    pub fn sample(&mut self, options: &Resolved, epoch: u32) -> Sampled {
        let mut sampled = Sampled::default();
        if options.sampler != SamplerKind::Hybrid {
            for set in 0..self.samplers.len() {
                sampled.all.add(self.sample_set(options, epoch, set));
            }
            return sampled;
        }
        if self.state.sets[LONG].slots.num_tokens() > 0 {
            let mut long = PassReport::default();
            for round in 0..self.rounds {
                long.add(self.warp_passes(options, epoch, LONG, round));
            }
            sampled.long = long;
            long.tokens /= u64::from(self.rounds);
            long.changed /= u64::from(self.rounds);
            sampled.all = long;
        }
        if self.state.sets[SHORT].slots.num_tokens() > 0 {
            sampled.all.add(self.pass(options, epoch, SHORT, 0, 0));
        }
        sampled
    }

    /// All passes over a set.
    fn sample_set(&mut self, options: &Resolved, epoch: u32, set: usize) -> PassReport {
        if self.in_blocks && options.sampler == SamplerKind::Warp {
            return self.warp_passes(options, epoch, set, 0);
        }
        let mut report = PassReport::default();
        for pass in 0..self.samplers[set].passes().len() {
            report.add(self.pass(options, epoch, set, pass, 0));
        }
        report
    }

    /// WarpLDA's passes over a set, so that they end with C_w of the new topics.
    ///
    /// INVARIANT: between the passes, C_w does not have the set's tokens, if the state has one block at a time.
    fn warp_passes(
        &mut self,
        options: &Resolved,
        epoch: u32,
        set: usize,
        round: u16,
    ) -> PassReport {
        if self.in_blocks {
            self.state.uncount_words(set);
        }
        let mut report = self.pass(options, epoch, set, Warp::DOCUMENTS, round);
        report.add(self.pass(options, epoch, set, Warp::WORDS, round));
        report
    }

    /// Metropolis-Hastings steps per token and kind of pass in the next epoch; `None` if the sampler
    /// makes none.
    pub fn mh_steps(&self, options: &Resolved) -> Option<u32> {
        (options.mh_steps > 0).then(|| options.mh_steps * u32::from(self.rounds))
    }

    /// Sets the number of rounds of the next epoch with LDA*'s heuristic 2.
    pub fn adapt(&mut self, options: &Resolved, sampled: Sampled) {
        let Some(cap) = options.mh_steps_cap.filter(|_| sampled.long.tokens > 0) else { return };
        self.rounds = rounds_per_acceptance(sampled.long, options.mh_steps, cap);
    }

    /// Sets the number of times that the hybrid's next epoch runs WarpLDA's two passes.
    pub fn set_rounds(&mut self, rounds: u16) {
        self.rounds = rounds;
    }

    fn pass(
        &mut self,
        options: &Resolved,
        epoch: u32,
        set: usize,
        pass: usize,
        round: u16,
    ) -> PassReport {
        let weights = Arc::clone(&self.weights);
        let params = PassParams {
            alpha: &weights,
            alpha_sum: self.alpha.sum(options.topics as usize),
            alpha_symmetric: matches!(self.alpha, Alpha::Symmetric(_)),
            beta: self.beta,
            seed: options.seed,
            epoch,
            round,
            last_round: options.sampler != SamplerKind::Hybrid || round + 1 == self.rounds,
            exclude: options.exclude_converged_from.is_some_and(|from| epoch >= from),
            counted: self.in_blocks,
            mh_steps: options.mh_steps as usize,
            isa: options.isa,
            set,
            pass,
        };
        self.samplers[set].run(&params, &mut self.state, &mut self.wave)
    }
}

/// α_k of `topics` topics, padded with zeros.
fn weights(alpha: &Alpha, topics: usize) -> Arc<Aligned<f32>> {
    let mut weights = Aligned::new(padded(topics));
    for (k, weight) in weights[..topics].iter_mut().enumerate() {
        *weight = alpha.get(k) as f32;
    }
    Arc::new(weights)
}

/// LDA* heuristic 2: number of rounds, of `mh_steps` steps each, that make the ⌈1/π⌉ steps that one
/// acceptance takes on average, or at most `cap` steps.
///
/// π is the acceptance rate of proposals of another topic than the current one. The paper's
/// algorithm 1 also counts proposals of the current topic, as accepted; its π is larger and its
/// heuristic takes fewer steps
/// ([`EpochReport::acceptance_with_repeats`](crate::train::EpochReport)).
fn rounds_per_acceptance(report: PassReport, mh_steps: u32, cap: u32) -> u16 {
    let steps = match report.accepted {
        0 => u64::from(cap),
        accepted => report.proposed.div_ceil(accepted).clamp(1, u64::from(cap)),
    };
    steps.div_ceil(u64::from(mh_steps)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_give_one_acceptance_on_average() {
        let rounds = |accepted, proposed, mh_steps, cap| {
            // Proposals of the current topic do not count.
            let report = PassReport { accepted, proposed, repeated: 1000, ..PassReport::default() };
            rounds_per_acceptance(report, mh_steps, cap)
        };
        assert_eq!(rounds(25, 100, 1, 16), 4);
        assert_eq!(rounds(24, 100, 1, 16), 5, "a fraction of a step is rounded up");
        assert_eq!(rounds(100, 100, 1, 16), 1);
        assert_eq!(rounds(24, 100, 2, 16), 3, "five steps take three rounds of two");
        assert_eq!(rounds(1, 100, 1, 16), 16, "the cap holds");
        assert_eq!(rounds(0, 100, 1, 16), 16, "without an acceptance the cap is taken");
        assert_eq!(rounds(0, 0, 4, 16), 4);
    }
}
