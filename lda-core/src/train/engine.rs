//! One run at one topic width: the state, the samplers' scratch, and the order of passes.

use std::sync::Arc;

use crate::corpus::Corpus;
use crate::counts::{RowsTooLarge, TopicIndex};
use crate::prior::Alpha;
use crate::sampler::{Warp, padded};
use crate::simd::Aligned;
use crate::train::driver::{Job, PassReport};
use crate::train::kernels::{Kernel, LONG, SHORT, kernels, token_sets};
use crate::train::options::{Resolved, SamplerKind};
use crate::train::state::State;

/// State and scratch of a run whose topics are stored as `T`.
#[derive(Debug)]
pub(crate) struct Engine<T: TopicIndex> {
    pub state: State<T>,
    /// One a token set.
    kernels: Vec<Box<dyn Kernel<T>>>,
    /// α_k as the samplers read it.
    alpha: Arc<Aligned<f32>>,
    wave: u64,
    /// How often the hybrid's next epoch runs WarpLDA's two passes.
    rounds: u16,
}

impl<T: TopicIndex> Engine<T> {
    pub fn new(corpus: &Corpus, options: &Resolved) -> Result<Self, RowsTooLarge> {
        let topics = options.topics as usize;
        let state = State::new(
            corpus,
            topics,
            options.ranges,
            &token_sets::<T>(corpus, options),
            options.mh_steps as usize,
            options.seed,
        )?;
        let mut alpha = Aligned::new(padded(topics));
        for (k, alpha) in alpha[..topics].iter_mut().enumerate() {
            *alpha = options.alpha.get(k) as f32;
        }
        let kernels = kernels(options);
        Ok(Self { state, kernels, alpha: Arc::new(alpha), wave: 0, rounds: 1 })
    }

    /// Samples every token, by the hybrid's WarpLDA more than once.
    ///
    /// The hybrid's order lets every kernel see current counts: the document pass of the long
    /// documents needs only their own tokens; the word pass after it recounts all tokens of each
    /// word, short documents' too, and leaves C_w behind for F+LDA. The two passes are repeated
    /// until a token has had as many steps as one acceptance takes on average (LDA* heuristic 2):
    /// an epoch then does about as much for a long document as for a short one.
    pub fn epoch(&mut self, options: &Resolved, epoch: u32) -> PassReport {
        let mut report = PassReport::default();
        if options.sampler != SamplerKind::Hybrid {
            for set in 0..self.kernels.len() {
                for pass in 0..self.kernels[set].passes().len() {
                    report.add(self.pass(options, epoch, set, pass, 0));
                }
            }
            return report;
        }
        if self.state.sets[LONG].slots.num_tokens() > 0 {
            let rounds = self.rounds;
            for round in 0..rounds {
                report.add(self.pass(options, epoch, LONG, Warp::DOCUMENTS, round));
                report.add(self.pass(options, epoch, LONG, Warp::WORDS, round));
            }
            self.adapt(options, report);
            report.tokens /= u64::from(rounds);
            report.changed /= u64::from(rounds);
        }
        if self.state.sets[SHORT].slots.num_tokens() > 0 {
            report.add(self.pass(options, epoch, SHORT, 0, 0));
        }
        report
    }

    /// Metropolis-Hastings steps a token and kind of pass in the next epoch, where there are any.
    pub fn mh_steps(&self, options: &Resolved) -> Option<u32> {
        (options.mh_steps > 0).then(|| options.mh_steps * u32::from(self.rounds))
    }

    /// LDA* heuristic 2: as many steps as one acceptance takes on average.
    fn adapt(&mut self, options: &Resolved, report: PassReport) {
        let Some(cap) = options.mh_steps_cap else { return };
        let needed = match report.accepted {
            0 => u64::from(cap),
            accepted => report.proposed.div_ceil(accepted).clamp(1, u64::from(cap)),
        };
        self.rounds = needed.div_ceil(u64::from(options.mh_steps)) as u16;
    }

    fn pass(
        &mut self,
        options: &Resolved,
        epoch: u32,
        set: usize,
        pass: usize,
        round: u16,
    ) -> PassReport {
        let alpha = Arc::clone(&self.alpha);
        let job = Job {
            alpha: &alpha,
            alpha_sum: options.alpha.sum(options.topics as usize),
            alpha_symmetric: matches!(options.alpha, Alpha::Symmetric(_)),
            beta: options.beta,
            seed: options.seed,
            epoch,
            round,
            last_round: options.sampler != SamplerKind::Hybrid || round + 1 == self.rounds,
            mh_steps: options.mh_steps as usize,
            isa: options.isa,
        };
        self.kernels[set].run(&job, &mut self.state, set, pass, &mut self.wave)
    }
}
