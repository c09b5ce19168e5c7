//! The driver under work stealing: delays put blocks on threads in an order that differs every
//! time, and the assignments must not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Corpus;
use crate::counts::TopicIndex;
use crate::random::{Xoshiro256PlusPlus, mix};
use crate::sampler::{
    AliasLda, Block, Context, Exact, FPlus, FPlusDoc, LightLda, Outcome, Pass, Requires, Sampler,
    SparseLda, Warp, padded,
};
use crate::simd::Isa;
use crate::train::pass::{PassParams, Scratches, run_pass};
use crate::train::start::{First, FirstTopics, Start};
use crate::train::state::{Sizes, State};

/// Waits a random time before and after each block.
#[derive(Debug)]
struct Delayed<S> {
    sampler: S,
    blocks: AtomicU64,
    seed: u64,
}

impl<S> Delayed<S> {
    fn wait(&self) {
        let n = self.blocks.fetch_add(1, Ordering::Relaxed);
        let until = Instant::now() + Duration::from_micros(mix(self.seed ^ n) % 300);
        // A sleeping thread frees its core and a spinning one does not; the test has both.
        if mix(n) & 1 == 0 {
            std::thread::sleep(until - Instant::now());
        }
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

impl<T: TopicIndex, S: Sampler<T>> Sampler<T> for Delayed<S> {
    type Scratch = S::Scratch;

    fn requires(&self) -> Requires {
        self.sampler.requires()
    }

    fn passes(&self) -> &'static [Pass] {
        self.sampler.passes()
    }

    fn scratch(&self, topics: usize) -> S::Scratch {
        self.sampler.scratch(topics)
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut S::Scratch,
        block: Block<'_, T>,
    ) -> Outcome {
        self.wait();
        let outcome = self.sampler.sample(pass, cx, scratch, block);
        self.wait();
        outcome
    }
}

/// Documents of random length, in which words with low ids are more frequent.
fn corpus() -> Corpus {
    let mut rng = Xoshiro256PlusPlus::from_seed(8);
    let mut document = || {
        let length = 1 + rng.below(60);
        (0..length).map(|_| rng.below(1 + rng.clone().below(70))).collect::<Vec<u32>>()
    };
    let documents: Vec<_> = (0..90).map(|_| document()).collect();
    Corpus::from_tokens(&documents).expect("there are tokens")
}

/// All tokens and totals after three epochs on a grid of eight.
fn run<T: TopicIndex, S: Sampler<T>>(
    sampler: S,
    corpus: &Corpus,
    threads: usize,
    seed: u64,
) -> (Vec<T>, Vec<u32>) {
    let topics = 50;
    let sampler = Delayed { sampler, blocks: AtomicU64::new(0), seed };
    let all = (0..corpus.num_documents() as u32).collect();
    let sets = [(all, sampler.requires())];
    let starter = FirstTopics::new(50, Start::Random, 1.0, 1);
    let sizes = Sizes { topics, ranges: 8, mh_steps: 2 };
    let mut state =
        State::<T>::new(corpus, sizes, &sets, First::Drawn(&starter, 0), &None).expect("small");
    let mut alpha = vec![0.0; padded(topics)];
    alpha[..topics].fill(0.1);
    let scratches = Scratches::default();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let mut wave = 0;
    for (epoch, pass) in
        (1..=3).flat_map(|epoch| (0..sampler.passes().len()).map(move |pass| (epoch, pass)))
    {
        let params = PassParams {
            alpha: &alpha,
            alpha_sum: 5.0,
            alpha_symmetric: true,
            beta: 0.05,
            seed: 3,
            epoch,
            round: 0,
            last_round: true,
            exclude: false,
            counted: false,
            mh_steps: 2,
            isa: Isa::detect(),
            set: 0,
            pass,
        };
        let (state, wave) = (&mut state, &mut wave);
        pool.install(|| run_pass(&sampler, &scratches, &params, state, wave));
    }
    state.check(corpus).expect("counts equal a recount");
    (std::mem::take(&mut state.sets[0].tokens), state.totals)
}

fn same_under_delays<T: TopicIndex, S: Sampler<T> + Copy>(sampler: S) {
    let corpus = corpus();
    let alone = run::<T, S>(sampler, &corpus, 1, 0);
    for threads in [1, 2, 3, 4, 7] {
        for seed in 1..4 {
            let other = run::<T, S>(sampler, &corpus, threads, seed);
            assert!(other == alone, "{sampler:?}: {threads} threads, delays {seed}");
        }
    }
}

#[test]
fn exact_is_the_same_under_delays() {
    same_under_delays::<u16, _>(Exact);
}

#[test]
fn f_plus_is_the_same_under_delays() {
    same_under_delays::<u16, _>(FPlus);
    same_under_delays::<u32, _>(FPlus);
}

#[test]
fn documents_and_tables_are_the_same_under_delays() {
    same_under_delays::<u16, _>(FPlusDoc);
    same_under_delays::<u32, _>(SparseLda);
    same_under_delays::<u16, _>(AliasLda);
    same_under_delays::<u16, _>(LightLda::default());
    same_under_delays::<u32, _>(LightLda::default());
}

#[test]
fn warp_is_the_same_under_delays() {
    same_under_delays::<u16, _>(Warp::default());
    same_under_delays::<u32, _>(Warp { count_own: true });
}
