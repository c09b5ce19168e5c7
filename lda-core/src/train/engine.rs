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
    /// Proposals that the tokens carry now, and how many to draw next.
    mh_pending: usize,
    mh_steps: usize,
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
        let steps = options.mh_steps as usize;
        // Every token's pending proposals equal its topic: any number may be judged.
        Ok(Self {
            state,
            kernels,
            alpha: Arc::new(alpha),
            wave: 0,
            mh_pending: steps,
            mh_steps: steps,
        })
    }

    /// Samples every token once.
    ///
    /// The hybrid's order lets every kernel see current counts: the document pass of the long
    /// documents needs only their own tokens; the word pass after it recounts all tokens of each
    /// word, short documents' too, and leaves C_w behind for F+LDA.
    pub fn epoch(&mut self, options: &Resolved, epoch: u32) -> PassReport {
        match options.sampler {
            SamplerKind::Exact => self.exact(options, epoch),
            SamplerKind::FPlus => self.fplus(options, epoch, 0),
            SamplerKind::Warp => {
                let mut report = self.warp(options, epoch, 0, Warp::WORDS);
                report.add(self.warp(options, epoch, 0, Warp::DOCUMENTS));
                report
            }
            SamplerKind::Hybrid => {
                let mut report = PassReport::default();
                if self.state.sets[LONG].slots.num_tokens() > 0 {
                    report.add(self.warp(options, epoch, LONG, Warp::DOCUMENTS));
                    report.add(self.warp(options, epoch, LONG, Warp::WORDS));
                    if options.mh_adaptive {
                        self.adapt(report, options.mh_steps as usize);
                    }
                }
                if self.state.sets[SHORT].slots.num_tokens() > 0 {
                    report.add(self.fplus(options, epoch, SHORT));
                }
                report
            }
        }
    }

    /// Steps of the next pass, where a sampler makes proposals.
    pub fn mh_steps(&self) -> Option<u32> {
        (self.mh_steps > 0).then_some(self.mh_steps as u32)
    }

    /// LDA* heuristic 2: as many steps as one acceptance takes on average.
    fn adapt(&mut self, report: PassReport, cap: usize) {
        let needed = match report.accepted {
            0 => cap as u64,
            accepted => report.proposed.div_ceil(accepted),
        };
        self.mh_steps = (needed.max(1) as usize).min(cap);
    }

    fn job<'a>(&self, alpha: &'a [f32], options: &Resolved, epoch: u32) -> Job<'a> {
        Job {
            alpha,
            alpha_sum: options.alpha.sum(options.topics as usize),
            alpha_symmetric: matches!(options.alpha, Alpha::Symmetric(_)),
            beta: options.beta,
            seed: options.seed,
            epoch,
            mh_stored: options.mh_steps as usize,
            mh_pending: self.mh_pending,
            mh_steps: self.mh_steps,
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

    fn warp(&mut self, options: &Resolved, epoch: u32, set: usize, pass: usize) -> PassReport {
        let alpha = Arc::clone(&self.alpha);
        let job = self.job(&alpha, options, epoch);
        let (state, wave) = (&mut self.state, &mut self.wave);
        let report = run_pass(&WARP, &self.kernels.warp, &job, state, set, pass, wave);
        self.mh_pending = self.mh_steps;
        report
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
            let (short, long) = documents
                .clone()
                .partition(|&d| corpus.doc_length(d as usize) <= u64::from(options.short_length));
            vec![(short, fplus), (long, warp)]
        }
    }
}
