//! The acceptance test of the sampler trait: three hosts that have nothing in common but what they
//! lend drive the same samplers, and get the same bits for the same block.
//!
//! * [`common::host::Whole`]: a whole corpus in one process. The crate's own driver is such a host
//!   too, and must agree with it.
//! * [`worker`]: owns documents and their rows; the rows of one word range come as snapshots, and
//!   what changed goes back as deltas.
//! * [`server`]: owns the rows of a word range; document rows and (document, word, topic) triples
//!   come in a push request, and new topics go back. It has no layout at all.
//!
//! A row's entries are drawn from in their order, so a host that sends rows puts them in ascending
//! order first, and the whole corpus it is held against does too.

mod common;
#[path = "hosts/server.rs"]
mod server;
#[path = "hosts/worker.rs"]
mod worker;

use common::corpora::Made;
use common::host::{Job, Sorted, Whole};
use common::paranoid::Paranoid;
use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_core::prior::Alpha;
use lda_core::sampler::{Exact, FPlus, Sampler};
use lda_core::train::{Options, SamplerKind, Trainer};

const EPOCHS: u32 = 3;
const SEED: u64 = 11;

/// Short and long documents, rare and frequent words: rows of every form.
fn corpus() -> Corpus {
    let made = Made {
        documents: 150,
        words: 80,
        topics: 6,
        mean_length: 40,
        alpha: 0.2,
        beta: 0.1,
        seed: 3,
    };
    made.make().0
}

fn job(corpus: &Corpus, topics: usize) -> Job {
    let alpha: Vec<f64> = (0..topics).map(|k| 0.05 + 0.1 * (k % 3) as f64).collect();
    let mut job = Job::new(&alpha, 0.02, corpus.num_words());
    job.seed = SEED;
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
    let options = Options {
        topics: topics as u32,
        alpha: Some(Alpha::from(
            (0..topics).map(|k| 0.05 + 0.1 * (k % 3) as f64).collect::<Vec<_>>(),
        )),
        beta: 0.02,
        sampler: kind,
        seed: SEED,
        ranges: Some(ranges),
        ..Options::default()
    };
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
        assert!(topics < 100 || kind == SamplerKind::Exact || plain != pushes);
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
}
