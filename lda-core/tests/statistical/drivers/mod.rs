//! The acceptance test of the sampler trait: three hosts that have nothing in common but what they
//! lend drive the same samplers, and get the same bits for the same block.
//!
//! * [`crate::driver::Whole`]: a whole corpus in one process. The crate's own driver is such a host
//!   too, and must agree with it.
//! * [`worker`]: owns documents and their rows; the rows of one word range come as snapshots, and
//!   what changed goes back as deltas.
//! * [`server`]: owns the rows of a word range; document rows and (document, word, topic) triples
//!   come in a push request, and new topics go back. It has no layout at all.
//!
//! WarpLDA keeps no rows; [`external`] lends its blocks as a worker and a server would hold them.
//!
//! A row's entries are drawn from in their order, so a host that sends rows puts them in ascending
//! order first, and the whole corpus it is held against does too.

mod external;
mod server;
mod worker;

use crate::corpora::{made, with_short_length};
use crate::driver::{PassParams, Sorted, Whole};
use crate::paranoid::Paranoid;
use external::External;
use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_core::prior::Alpha;
use lda_core::sampler::{
    AliasLda, Exact, FPlus, FPlusDoc, LightLda, Sampler, SparseLda, Warp, Zen, ZenDoc, ZenHybrid,
};
use lda_core::train::{SamplerKind, TrainOptions, Trainer};

const EPOCHS: u32 = 3;
const SEED: u64 = 11;
const MH_STEPS: usize = 2;
/// The hybrid gives longer documents to WarpLDA.
const SHORT: u32 = 40;

/// Short and long documents, rare and frequent words: rows of every form.
fn corpus() -> Corpus {
    made(150, 80, 6, 40.0)
}

fn job(corpus: &Corpus, topics: usize) -> PassParams {
    let alpha: Vec<f64> = (0..topics).map(|k| 0.05 + 0.1 * (k % 3) as f64).collect();
    let mut job = PassParams::new(&alpha, 0.02, corpus.num_words());
    (job.seed, job.mh_steps) = (SEED, MH_STEPS);
    job
}

/// The run by the hand-made host: assignments after each epoch.
fn whole<T: TopicIndex, S: Sampler<T>>(
    sampler: S,
    corpus: &Corpus,
    topics: usize,
    ranges: usize,
    sorted: Sorted,
) -> Vec<Vec<u32>> {
    let mut job = job(corpus, topics);
    let mut host = Whole::<T>::one_set(corpus, topics, ranges, sampler.requires(), job.mh_steps);
    host.sorted = sorted;
    host.initialise(corpus, SEED);
    let sampler = Paranoid(sampler);
    let mut scratch = sampler.scratch(topics);
    let epoch = |epoch| {
        job.epoch = epoch;
        host.epoch(&sampler, &mut scratch, &job, 0);
        host.assignments()
    };
    (1..=EPOCHS).map(epoch).collect()
}

/// The run by the crate's own driver.
fn trainer(kind: SamplerKind, corpus: &Corpus, topics: usize, ranges: usize) -> Vec<Vec<u32>> {
    // One round per epoch.
    let sampler = with_short_length(kind, SHORT);
    let sampler = sampler.with_step_cap(MH_STEPS as u32).unwrap_or(sampler);
    let sampler = sampler.with_steps(MH_STEPS as u32).unwrap_or(sampler);
    let options = TrainOptions::new(topics as u32)
        .alpha(Alpha::from((0..topics).map(|k| 0.05 + 0.1 * (k % 3) as f64).collect::<Vec<_>>()))
        .beta(0.02)
        .sampler(sampler)
        .seed(SEED)
        .ranges(ranges);
    let mut trainer = Trainer::new(corpus, &options).expect("the options are legal");
    let epoch = |_| {
        trainer.epoch();
        trainer.assignments().as_slice().to_vec()
    };
    (1..=EPOCHS).map(epoch).collect()
}

/// All hosts, for a sampler that walks a grid.
fn grid<T: TopicIndex, S: Sampler<T> + Copy>(sampler: S, kind: SamplerKind, topics: usize) {
    let corpus = corpus();
    for ranges in [1, 3] {
        let plain = whole::<T, S>(sampler, &corpus, topics, ranges, Sorted::Neither);
        if T::MAX_TOPICS == u64::from(u16::MAX) + 1 {
            let driven = trainer(kind, &corpus, topics, ranges);
            assert!(plain == driven, "K = {topics}, {ranges} ranges: the driver");
        }
        let job = job(&corpus, topics);
        let snapshots = whole::<T, S>(sampler, &corpus, topics, ranges, Sorted::Words);
        let worked = worker::run::<T, S>(sampler, &corpus, &job, ranges, EPOCHS);
        assert!(snapshots == worked, "K = {topics}, {ranges} ranges: workers");
        let pushes = whole::<T, S>(sampler, &corpus, topics, ranges, Sorted::Documents);
        let served = server::run::<T, S>(sampler, &corpus, &job, ranges, EPOCHS);
        assert!(pushes == served, "K = {topics}, {ranges} ranges: servers");
        // The three orders of rows are three chains: had they agreed, nothing would be shown.
        let scans = !matches!(kind, SamplerKind::Exact | SamplerKind::Light);
        assert!(topics < 100 || !scans || plain != pushes || plain != snapshots);
    }
}

macro_rules! grid_samplers {
    ($($name:ident: $sampler:expr, $kind:expr;)*) => {$(
        #[test]
        fn $name() {
            for topics in [5, 60, 300] {
                grid::<u16, _>($sampler, $kind, topics);
                grid::<u32, _>($sampler, $kind, topics);
            }
        }
    )*};
}

grid_samplers! {
    exact: Exact, SamplerKind::Exact;
    f_plus: FPlus, SamplerKind::FPlus;
    f_plus_doc: FPlusDoc, SamplerKind::FPlusDoc;
    sparse: SparseLda, SamplerKind::Sparse;
    alias: AliasLda, SamplerKind::Alias;
    light: LightLda::default(), SamplerKind::Light;
    zen: Zen, SamplerKind::Zen;
    zen_doc: ZenDoc, SamplerKind::ZenDoc;
    zen_hybrid: ZenHybrid, SamplerKind::ZenHybrid;
}

/// WarpLDA alone and in the hybrid: the hand-made host agrees with the driver, and a worker's and a
/// server's copy of every block give what the block in place gives.
fn delayed<T: TopicIndex>(topics: usize) {
    const WARP: Warp = Warp { count_own: false };
    let corpus = corpus();
    for ranges in [1, 3] {
        let plain = whole::<T, Warp>(WARP, &corpus, topics, ranges, Sorted::Neither);
        let copied = whole::<T, _>(External(WARP), &corpus, topics, ranges, Sorted::Neither);
        assert!(plain == copied, "K = {topics}, {ranges} ranges: copies");
        let paired = hybrid::<T, _>(Paranoid(WARP), &corpus, topics, ranges);
        // Here tokens of the short documents come as counts, in ascending order: another chain.
        hybrid::<T, _>(Paranoid(External(WARP)), &corpus, topics, ranges);
        if T::MAX_TOPICS == u64::from(u16::MAX) + 1 {
            let driven = trainer(SamplerKind::Warp, &corpus, topics, ranges);
            assert!(plain == driven, "K = {topics}, {ranges} ranges: WarpLDA by the driver");
            let driven = trainer(SamplerKind::Hybrid, &corpus, topics, ranges);
            assert!(paired == driven, "K = {topics}, {ranges} ranges: the hybrid by the driver");
        }
    }
}

fn hybrid<T: TopicIndex, W: Sampler<T>>(
    long: W,
    corpus: &Corpus,
    topics: usize,
    ranges: usize,
) -> Vec<Vec<u32>> {
    let of = |is_long: bool| -> Vec<u32> {
        let documents = 0..corpus.num_documents() as u32;
        documents.filter(|&d| (corpus.doc_length(d as usize) > SHORT.into()) == is_long).collect()
    };
    let short = Paranoid(FPlus);
    let sets = [(of(false), Sampler::<T>::requires(&short)), (of(true), long.requires())];
    let mut job = job(corpus, topics);
    let mut host = Whole::<T>::new(corpus, topics, ranges, &sets, MH_STEPS);
    host.initialise(corpus, SEED);
    let mut short_scratch = Sampler::<T>::scratch(&short, topics);
    let mut long_scratch = long.scratch(topics);
    let epoch = |epoch| {
        job.epoch = epoch;
        host.hybrid_epoch((&short, &mut short_scratch), (&long, &mut long_scratch), &job);
        host.assignments()
    };
    (1..=EPOCHS).map(epoch).collect()
}

#[test]
fn warp_and_hybrid() {
    for topics in [5, 60, 300] {
        delayed::<u16>(topics);
        delayed::<u32>(topics);
    }
}
