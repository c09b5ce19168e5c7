//! One run at one topic width: the state, the samplers' scratch, and the order of passes.

use crate::corpus::Corpus;
use crate::counts::{RowsTooLarge, TopicIndex};
use crate::sampler::{Exact, FPlus, Requires, Sampler, padded};
use crate::train::driver::{Job, PassReport, Scratches, run_pass};
use crate::train::options::{Resolved, SamplerKind};
use crate::train::state::State;

/// State and scratch of a run whose topics are stored as `T`.
#[derive(Debug)]
pub(crate) struct Engine<T: TopicIndex> {
    pub state: State<T>,
    kernels: Kernels<T>,
    /// α_k as the samplers read it.
    alpha: Vec<f32>,
    wave: u64,
}

/// The samplers of a run, each with its scratch.
#[derive(Debug)]
enum Kernels<T: TopicIndex> {
    Exact(Scratches<<Exact as Sampler<T>>::Scratch>),
    FPlus(Scratches<<FPlus as Sampler<T>>::Scratch>),
}

impl<T: TopicIndex> Engine<T> {
    pub fn new(corpus: &Corpus, options: &Resolved) -> Result<Self, RowsTooLarge> {
        let topics = options.topics as usize;
        let all: Vec<u32> = (0..corpus.num_documents() as u32).collect();
        let (kernels, requires): (_, Requires) = match options.sampler {
            SamplerKind::Exact => {
                (Kernels::Exact(Scratches::default()), Sampler::<T>::requires(&Exact))
            }
            _ => (Kernels::FPlus(Scratches::default()), Sampler::<T>::requires(&FPlus)),
        };
        let sets = [(all.as_slice(), requires)];
        let state = State::new(
            corpus,
            topics,
            options.ranges,
            &sets,
            options.mh_steps as usize,
            options.seed,
        )?;
        let mut alpha = vec![0.0; padded(topics)];
        for (k, alpha) in alpha[..topics].iter_mut().enumerate() {
            *alpha = options.alpha.get(k) as f32;
        }
        Ok(Self { state, kernels, alpha, wave: 0 })
    }

    /// Samples every token once.
    pub fn epoch(&mut self, options: &Resolved, epoch: u32) -> PassReport {
        let job = Job {
            alpha: &self.alpha,
            alpha_sum: options.alpha.sum(options.topics as usize),
            alpha_symmetric: matches!(options.alpha, crate::prior::Alpha::Symmetric(_)),
            beta: options.beta,
            seed: options.seed,
            epoch,
            mh_steps: options.mh_steps as usize,
            isa: options.isa,
        };
        let (state, wave) = (&mut self.state, &mut self.wave);
        match &self.kernels {
            Kernels::Exact(scratches) => run_pass(&Exact, scratches, &job, state, 0, 0, wave),
            Kernels::FPlus(scratches) => run_pass(&FPlus, scratches, &job, state, 0, 0, wave),
        }
    }
}
