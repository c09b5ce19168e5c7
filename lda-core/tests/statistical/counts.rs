//! Counts equal a recount: every sampler, many sizes, random corpora.
//!
//! Through the crate's driver, which compares all rows and totals with a recount after each epoch,
//! and through the hand-made host, where a wrapper recounts after each block.

use crate::corpora::with_short_length;
use crate::driver::{PassParams, Whole};
use crate::paranoid::Paranoid;
use lda_core::Corpus;
use lda_core::corpus::CorpusBuilder;
use lda_core::counts::TopicIndex;
use lda_core::sampler::{
    AliasLda, Exact, FPlus, FPlusDoc, LightLda, Sampler, SparseLda, Warp, Zen, ZenDoc, ZenHybrid,
};
use lda_core::train::{SamplerKind, TrainOptions, Trainer};
use proptest::prelude::*;

const GRIDS: [usize; 3] = [1, 2, 4];

/// Documents of word ids; empty ones, repeated words and words that never occur are all likely.
fn documents() -> impl Strategy<Value = (u32, Vec<Vec<u32>>)> {
    (1u32..40).prop_flat_map(|words| {
        let document = prop_oneof![
            1 => Just(Vec::new()),
            3 => prop::collection::vec(0..words, 1..8),
            2 => prop::collection::vec(0..words.div_ceil(8), 20..120),
        ];
        (Just(words), prop::collection::vec(document, 1..14))
    })
}

fn build(words: u32, documents: &[Vec<u32>]) -> Option<Corpus> {
    let mut builder = CorpusBuilder::new().num_words(words);
    builder.extend_tokens(documents).expect("ids are in range");
    builder.build().ok()
}

/// Three epochs of the crate's driver.
fn driven(corpus: &Corpus, kind: SamplerKind, topics: u32, grid: usize, steps: Option<u32>) {
    let sampler = with_short_length(kind, 6);
    let sampler = steps.map_or(Ok(sampler), |steps| sampler.with_steps(steps)).unwrap_or(sampler);
    let mut options = TrainOptions::new(topics).sampler(sampler).ranges(grid);
    if topics % 2 == 1 {
        let alpha: Vec<f64> = (0..topics).map(|k| 0.1 + 0.01 * f64::from(k % 5)).collect();
        options = options.alpha(alpha);
    }
    let mut trainer = Trainer::new(corpus, &options).expect("the options are legal");
    let said = |moment: &str| format!("{kind}, K = {topics}, grid {grid}, {moment}");
    trainer.check().unwrap_or_else(|wrong| panic!("{}: {wrong}", said("at the start")));
    for epoch in 1..=3 {
        let report = trainer.epoch();
        trainer.check().unwrap_or_else(|wrong| panic!("{}: {wrong}", said("after an epoch")));
        assert_eq!((report.epoch, report.tokens), (epoch, corpus.num_tokens()));
        assert!((0.0..=1.0).contains(&report.changed), "{}", said("changed"));
        assert!(trainer.log_joint().total().is_finite());
    }
    let assignments = trainer.assignments();
    assert_eq!(assignments.as_slice().len() as u64, corpus.num_tokens());
    assert!(assignments.as_slice().iter().all(|&topic| topic < topics));
}

/// Two epochs of the hand-made host.
fn by_hand<T: TopicIndex>(corpus: &Corpus, topics: usize, grid: usize, steps: usize) {
    fn run<T: TopicIndex, S: Sampler<T>>(
        sampler: S,
        corpus: &Corpus,
        topics: usize,
        grid: usize,
        steps: usize,
    ) {
        let mut job = PassParams::new(&vec![0.2; topics], 0.05, corpus.num_words());
        job.mh_steps = steps;
        let sampler = Paranoid(sampler);
        let mut whole = Whole::<T>::one_set(corpus, topics, grid, sampler.requires(), steps);
        whole.initialise(corpus, 7);
        let mut scratch = sampler.scratch(topics);
        for epoch in 1..=2 {
            job.epoch = epoch;
            whole.epoch(&sampler, &mut scratch, &job, 0);
        }
    }
    run::<T, _>(Exact, corpus, topics, grid, steps);
    run::<T, _>(FPlus, corpus, topics, grid, steps);
    run::<T, _>(FPlusDoc, corpus, topics, grid, steps);
    run::<T, _>(SparseLda, corpus, topics, grid, steps);
    run::<T, _>(AliasLda, corpus, topics, grid, steps);
    run::<T, _>(LightLda::default(), corpus, topics, grid, steps);
    run::<T, _>(Zen, corpus, topics, grid, steps);
    run::<T, _>(ZenDoc, corpus, topics, grid, steps);
    run::<T, _>(ZenHybrid, corpus, topics, grid, steps);
    run::<T, _>(Warp { count_own: true }, corpus, topics, grid, steps);

    let requires = (Sampler::<T>::requires(&FPlus), Sampler::<T>::requires(&Warp::default()));
    let of = |long: bool| -> Vec<u32> {
        let documents = 0..corpus.num_documents() as u32;
        documents.filter(|&d| (corpus.doc_length(d as usize) > 6) == long).collect()
    };
    let sets = [(of(false), requires.0), (of(true), requires.1)];
    let mut whole = Whole::<T>::new(corpus, topics, grid, &sets, steps);
    whole.initialise(corpus, 7);
    let (short, long) = (Paranoid(FPlus), Paranoid(Warp::default()));
    let mut short_scratch = Sampler::<T>::scratch(&short, topics);
    let mut long_scratch = Sampler::<T>::scratch(&long, topics);
    let mut job = PassParams::new(&vec![0.2; topics], 0.05, corpus.num_words());
    job.mh_steps = steps;
    for epoch in 1..=2 {
        job.epoch = epoch;
        whole.hybrid_epoch((&short, &mut short_scratch), (&long, &mut long_scratch), &job);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn of_random_corpora(
        (words, documents) in documents(),
        topics in prop::sample::select(&[1u32, 2, 17, 40, 300]),
        steps in prop::option::of(1u32..4),
    ) {
        let Some(corpus) = build(words, &documents) else { return Ok(()) };
        for grid in GRIDS {
            for kind in SamplerKind::ALL {
                driven(&corpus, kind, topics, grid, steps);
            }
            by_hand::<u16>(&corpus, topics as usize, grid, steps.unwrap_or(1) as usize);
        }
        by_hand::<u32>(&corpus, topics as usize, 2, steps.unwrap_or(2) as usize);
    }
}

/// The corners, each by name.
#[test]
fn of_the_smallest_corpora() {
    let one_token = vec![vec![0]];
    let one_document = vec![vec![0, 1, 2, 1, 0, 0, 3, 3, 3, 3]];
    let one_word = vec![vec![0; 5], vec![0; 30], vec![], vec![0]];
    let gaps = vec![vec![], vec![7, 7, 2], vec![], vec![2], vec![]];
    for (words, documents) in [(1, one_token), (4, one_document), (1, one_word), (9, gaps)] {
        let corpus = build(words, &documents).expect("there are tokens");
        for topics in [1, 2, 17, 300] {
            for grid in GRIDS {
                for kind in SamplerKind::ALL {
                    driven(&corpus, kind, topics, grid, None);
                }
                by_hand::<u16>(&corpus, topics as usize, grid, 1);
            }
        }
    }
}

/// More topics than 16 bits can name.
#[test]
fn of_wide_topics() {
    let documents = vec![vec![0, 1, 2, 2, 2], vec![1; 40], vec![], vec![4, 0, 0]];
    let corpus = build(6, &documents).expect("there are tokens");
    for grid in GRIDS {
        for kind in SamplerKind::ALL {
            driven(&corpus, kind, 70_000, grid, None);
        }
    }
    by_hand::<u32>(&corpus, 70_000, 2, 1);
}
