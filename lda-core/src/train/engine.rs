//! One run at one topic width: the state, the samplers' scratch, and the order of passes.

use std::sync::Arc;

use crate::corpus::Corpus;
use crate::counts::{RowsTooLarge, TopicIndex};
use crate::prior::Alpha;
use crate::sampler::{Exact, FPlus, Requires, Sampler, Warp, padded};
use crate::simd::Aligned;
use crate::train::driver::{Job, PassReport, Scratches, run_pass};
use crate::train::options::{Resolved, SamplerKind};
use crate::train::state::State;

/// State and scratch of a run whose topics are stored as `T`.
#[derive(Debug)]
pub(crate) struct Engine<T: TopicIndex> {
    pub state: State<T>,
    kernels: Kernels<T>,
    /// α_k as the samplers read it.
    alpha: Arc<Aligned<f32>>,
    wave: u64,
    /// How often the hybrid's next epoch runs WarpLDA's two passes.
    rounds: u16,
}

/// The samplers of a run, each with its scratch.
#[derive(Debug)]
struct Kernels<T: TopicIndex> {
    exact: Scratches<<Exact as Sampler<T>>::Scratch>,
    fplus: Scratches<<FPlus as Sampler<T>>::Scratch>,
    warp: Scratches<<Warp as Sampler<T>>::Scratch>,
}

const WARP: Warp = Warp { count_own: false };

/// Token sets of the hybrid.
const SHORT: usize = 0;
const LONG: usize = 1;

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
        let kernels = Kernels {
            exact: Scratches::default(),
            fplus: Scratches::default(),
            warp: Scratches::default(),
        };
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
        match options.sampler {
            SamplerKind::Exact => self.exact(options, epoch),
            SamplerKind::FPlus => self.fplus(options, epoch, 0),
            SamplerKind::Warp => {
                let mut report = self.warp(options, epoch, 0, Warp::WORDS, 0);
                report.add(self.warp(options, epoch, 0, Warp::DOCUMENTS, 0));
                report
            }
            SamplerKind::Hybrid => {
                let mut report = PassReport::default();
                if self.state.sets[LONG].slots.num_tokens() > 0 {
                    let rounds = self.rounds;
                    for round in 0..rounds {
                        report.add(self.warp(options, epoch, LONG, Warp::DOCUMENTS, round));
                        report.add(self.warp(options, epoch, LONG, Warp::WORDS, round));
                    }
                    self.adapt(options, report);
                    report.tokens /= u64::from(rounds);
                    report.changed /= u64::from(rounds);
                }
                if self.state.sets[SHORT].slots.num_tokens() > 0 {
                    report.add(self.fplus(options, epoch, SHORT));
                }
                report
            }
        }
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

    fn job<'a>(&self, alpha: &'a [f32], options: &Resolved, epoch: u32) -> Job<'a> {
        Job {
            alpha,
            alpha_sum: options.alpha.sum(options.topics as usize),
            alpha_symmetric: matches!(options.alpha, Alpha::Symmetric(_)),
            beta: options.beta,
            seed: options.seed,
            epoch,
            round: 0,
            last_round: true,
            mh_steps: options.mh_steps as usize,
            isa: options.isa,
        }
    }

    fn exact(&mut self, options: &Resolved, epoch: u32) -> PassReport {
        let alpha = Arc::clone(&self.alpha);
        let job = self.job(&alpha, options, epoch);
        let (state, wave) = (&mut self.state, &mut self.wave);
        run_pass(&Exact, &self.kernels.exact, &job, state, 0, 0, wave)
    }

    fn fplus(&mut self, options: &Resolved, epoch: u32, set: usize) -> PassReport {
        let alpha = Arc::clone(&self.alpha);
        let job = self.job(&alpha, options, epoch);
        let (state, wave) = (&mut self.state, &mut self.wave);
        run_pass(&FPlus, &self.kernels.fplus, &job, state, set, 0, wave)
    }

    fn warp(
        &mut self,
        options: &Resolved,
        epoch: u32,
        set: usize,
        pass: usize,
        round: u16,
    ) -> PassReport {
        let alpha = Arc::clone(&self.alpha);
        let last_round = options.sampler != SamplerKind::Hybrid || round + 1 == self.rounds;
        let job = Job { round, last_round, ..self.job(&alpha, options, epoch) };
        let (state, wave) = (&mut self.state, &mut self.wave);
        run_pass(&WARP, &self.kernels.warp, &job, state, set, pass, wave)
    }
}

/// Documents of each token set, and what its sampler requires.
pub(crate) fn token_sets<T: TopicIndex>(
    corpus: &Corpus,
    options: &Resolved,
) -> Vec<(Vec<u32>, Requires)> {
    let documents = 0..corpus.num_documents() as u32;
    let all = || documents.clone().collect();
    let (exact, fplus, warp) = (
        Sampler::<T>::requires(&Exact),
        Sampler::<T>::requires(&FPlus),
        Sampler::<T>::requires(&WARP),
    );
    match options.sampler {
        SamplerKind::Exact => vec![(all(), exact)],
        SamplerKind::FPlus => vec![(all(), fplus)],
        SamplerKind::Warp => vec![(all(), warp)],
        SamplerKind::Hybrid => {
            let (short, long): (Vec<u32>, Vec<u32>) = documents
                .clone()
                .partition(|&d| corpus.doc_length(d as usize) <= u64::from(options.short_length));
            // Nobody reads C_w where no token is F+LDA's.
            let word_rows = fplus.word_rows && !short.is_empty();
            vec![(short, Requires { word_rows, ..fplus }), (long, warp)]
        }
    }
}
