//! Samplers of documents that WarpLDA does not sample: each with the law and the curve that it has in
//! one process.

use std::collections::{BTreeMap, BTreeSet};

use lda_core::Corpus;
use lda_core::eval::log_joint;
use lda_core::train::{SamplerKind, SamplerOptions, TrainOptions, Trainer};
use lda_dist::config::{ConfigError, Hybrid, Options, Routing, SAMPLERS};
use lda_dist::in_process::InProcess;
use lda_dist::spec::ModelSpec;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::{check_counts, corpus, observed, p_value, posterior, spec, topics};

const ROUTINGS: [Routing; 3] = [Routing::Cheapest, Routing::Pull, Routing::Push];

#[test]
fn counts_are_those_of_the_topics() {
    let corpus = corpus(60, 50, 20);
    let cut = Options { shards: 4, partitions: 9, rounds: 4, servers: 3, ..Options::default() };
    for sampler in SAMPLERS {
        for (routing, passes) in ROUTINGS.into_iter().zip([1, 1, 2]) {
            for (topics, short_length) in [(3, u32::MAX), (40, 25), (300, u32::MAX)] {
                let hybrid = Hybrid { short_length, mh_steps: 2 };
                let sampler = sampler.into();
                let options = Options { routing, passes, sampler, hybrid, ..cut };
                let spec = spec(&corpus, topics);
                let mut narrow = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
                let mut wide = InProcess::<u32>::new(&spec, &corpus, &options).unwrap();
                let start = self::topics(&narrow);
                for _ in 0..3 {
                    narrow.epoch().unwrap();
                    wide.epoch().unwrap();
                    check_counts(&narrow, &corpus);
                    check_counts(&wide, &corpus);
                }
                let moved =
                    start.iter().zip(&self::topics(&narrow)).filter(|(a, b)| a != b).count();
                assert!(moved * 4 > start.len(), "{sampler:?}: {moved} of {}", start.len());
            }
        }
    }
}

#[test]
fn the_order_of_shards_does_not_matter() {
    let corpus = corpus(80, 40, 15);
    let spec = spec(&corpus, 100);
    let cut = Options { shards: 5, partitions: 7, servers: 2, rounds: 3, ..Options::default() };
    let run = |order: [usize; 5], sampler| {
        let options = Options { sampler, ..cut };
        let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
        let bytes = [0; 3].map(|_| run.epoch_in_order(&order).unwrap());
        (topics(&run), bytes)
    };
    let runs = SAMPLERS.map(|sampler| {
        let sampler = sampler.into();
        let first = run([0, 1, 2, 3, 4], sampler);
        assert!(first == run([4, 3, 2, 1, 0], sampler), "{sampler:?}");
        first.0
    });
    for (at, one) in runs.iter().enumerate() {
        assert!(!runs[..at].contains(one), "{} samples as another", SAMPLERS[at]);
    }
}

/// Documents in the order in which a shard has them: short ones first.
const TOKENS: [(usize, usize); 5] = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)];

fn tiny() -> Corpus {
    Corpus::from_tokens([vec![0, 1], vec![0, 1, 2]]).unwrap()
}

#[test]
fn exact_samplers_have_the_law_of_the_posterior() {
    let law = posterior(&TOKENS, 3);
    let exact =
        [SamplerKind::Exact, SamplerKind::FPlus, SamplerKind::FPlusDoc, SamplerKind::Sparse];
    for kind in exact {
        for (routing, passes) in [(Routing::Pull, 1), (Routing::Push, 2)] {
            let options = Options { routing, passes, sampler: kind.into(), ..Options::default() };
            let seen = observed(&tiny(), &options, 60_000);
            let p = p_value(&seen, &law);
            assert!(p > 1e-6, "{kind}, {routing:?}: p = {p}: {seen:?}");
        }
    }
}

/// Numbers of topics at which rows are lists: with few topics they are dense, and Zen is exact.
const TOPICS: u32 = 200;
const ALPHA: f64 = 0.005;

/// The first token with the topic of each token: the same pattern for all names of the topics.
fn pattern(topics: &[u32]) -> Vec<usize> {
    let first = |topic| topics.iter().position(|other| other == topic).unwrap();
    topics.iter().map(first).collect()
}

/// Number of occurrences of every pattern.
type Patterns = BTreeMap<Vec<usize>, u64>;

/// Counts the patterns in a long run; every sixth epoch, which makes them nearly independent.
fn patterns(epochs: u32, mut epoch: impl FnMut() -> Vec<u32>) -> Patterns {
    let mut seen = Patterns::new();
    for number in 0..epochs {
        let topics = epoch();
        if number % 6 == 5 {
            *seen.entry(pattern(&topics)).or_default() += 1;
        }
    }
    seen
}

fn patterns_in_one_process(sampler: SamplerOptions, epochs: u32) -> Patterns {
    let corpus = tiny();
    let options = TrainOptions::new(TOPICS).alpha(ALPHA).beta(0.3).seed(6);
    let mut trainer = Trainer::new(&corpus, &options.sampler(sampler).ranges(1)).unwrap();
    patterns(epochs, || {
        trainer.epoch();
        let assignments = trainer.assignments();
        (0..corpus.num_documents()).flat_map(|d| assignments.document(d).to_vec()).collect()
    })
}

fn patterns_with_servers(options: &Options, epochs: u32) -> Patterns {
    let corpus = tiny();
    let spec = ModelSpec::new(TOPICS, 3, ALPHA.into(), 0.3, 5).unwrap();
    let mut run = InProcess::<u16>::new(&spec, &corpus, options).unwrap();
    patterns(epochs, || {
        run.epoch().unwrap();
        topics(&run).iter().map(|token| token.2).collect()
    })
}

/// Probability of two samples that differ at least as much as these, if they have the same law.
fn p_of_same_law(a: &Patterns, b: &Patterns) -> f64 {
    let count = |of: &Patterns, pattern| of.get(pattern).copied().unwrap_or(0) as f64;
    let all: BTreeSet<&Vec<usize>> = a.keys().chain(b.keys()).collect();
    let (mut pairs, mut rare) = (Vec::new(), (0.0, 0.0));
    for pattern in all {
        let (a, b) = (count(a, pattern), count(b, pattern));
        if a + b > 40.0 {
            pairs.push((a, b));
        } else {
            rare = (rare.0 + a, rare.1 + b);
        }
    }
    pairs.push(rare);
    let (all_a, all_b) = (a.values().sum::<u64>() as f64, b.values().sum::<u64>() as f64);
    let parts = pairs.iter().filter(|(a, b)| a + b > 0.0).map(|(a, b)| {
        let share = (a + b) / (all_a + all_b);
        let square = |seen: f64, all: f64| (seen - share * all).powi(2) / (share * all);
        square(*a, all_a) + square(*b, all_b)
    });
    1.0 - ChiSquared::new((pairs.len() - 1) as f64).unwrap().cdf(parts.sum())
}

/// A biased sampler has the same bias as in one process, on workers and on servers.
#[test]
fn every_sampler_has_the_law_that_it_has_in_one_process() {
    let epochs = 40_000;
    let samplers = [
        SamplerKind::Exact.into(),
        SamplerKind::Alias.into(),
        SamplerKind::Light.into(),
        SamplerOptions::from(SamplerKind::Light).with_steps(3).unwrap(),
        SamplerKind::Zen.into(),
        SamplerKind::ZenDoc.into(),
        SamplerKind::ZenHybrid.into(),
    ];
    let laws = samplers.map(|sampler| {
        let expected = patterns_in_one_process(sampler, epochs);
        for routing in [Routing::Pull, Routing::Push] {
            let options = Options { routing, sampler, ..Options::default() };
            let seen = patterns_with_servers(&options, epochs);
            let p = p_of_same_law(&seen, &expected);
            assert!(p > 1e-6, "{sampler:?}, {routing:?}: p = {p}: {seen:?} {expected:?}");
        }
        expected
    });
    // The test detects another bias.
    let [exact, .., zen, zen_doc, _] = &laws;
    for other in [exact, zen] {
        assert!(p_of_same_law(zen_doc, other) < 1e-6);
    }
}

/// More steps have the same law at the end, but other draws.
#[test]
fn steps_and_proposals_are_those_of_the_options() {
    let corpus = corpus(100, 80, 20);
    let spec = ModelSpec::new(10, 80, 0.2.into(), 0.02, 3).unwrap();
    let topics = |sampler: SamplerOptions| {
        let options = Options { sampler, ..Options::default() };
        let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
        run.epoch().unwrap();
        let mut topics = Vec::new();
        run.for_each(|document, word, topic| topics.push((document, word, topic)));
        topics
    };
    for kind in [SamplerKind::Light, SamplerKind::Alias] {
        let of = |steps| topics(SamplerOptions::from(kind).with_steps(steps).unwrap());
        assert_eq!(of(1), topics(kind.into()), "{kind}");
        assert_ne!(of(1), of(3), "{kind}");
    }
}

#[test]
fn every_sampler_reaches_the_likelihood_of_one_process() {
    let corpus = corpus(400, 300, 30);
    let (topics, epochs, seeds) = (20, 40, 2);
    let mean = |run: &dyn Fn(u64) -> f64| (0..seeds).map(run).sum::<f64>() / seeds as f64;
    let of_seed = |seed| ModelSpec::new(topics, 300, 0.2.into(), 0.02, seed).unwrap();
    for kind in SAMPLERS {
        let expected = mean(&|seed| {
            let spec = of_seed(seed);
            let options =
                TrainOptions::new(topics).alpha(spec.alpha().clone()).beta(spec.beta()).seed(seed);
            let mut trainer = Trainer::new(&corpus, &options.sampler(kind)).unwrap();
            (0..epochs).for_each(|_| {
                trainer.epoch();
            });
            trainer.log_joint().total()
        });
        for routing in [Routing::Pull, Routing::Push] {
            let cut = Options { shards: 4, partitions: 16, rounds: 4, ..Options::default() };
            let options = Options { servers: 2, routing, sampler: kind.into(), ..cut };
            let found = mean(&|seed| {
                let spec = of_seed(seed);
                let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
                (0..epochs).for_each(|_| {
                    run.epoch().unwrap();
                });
                log_joint(&run, spec.alpha(), spec.beta()).unwrap().total()
            });
            let away = found / expected - 1.0;
            assert!(away.abs() < 0.01, "{kind}, {routing:?}: {away}");
        }
    }
}

#[test]
fn samplers_that_servers_cannot_run_are_refused() {
    let corpus = corpus(5, 5, 5);
    let refused = |sampler: SamplerOptions| {
        let options = Options { sampler, ..Options::default() };
        InProcess::<u16>::new(&spec(&corpus, 3), &corpus, &options).unwrap_err()
    };
    for kind in [SamplerKind::Warp, SamplerKind::Hybrid, SamplerKind::Custom] {
        assert_eq!(refused(kind.into()), ConfigError::Sampler { found: Some(kind) }.into());
    }
    assert_eq!(
        refused(SamplerOptions::default()).to_string(),
        "sampler: auto does not sample rows that servers hold: choose one of exact, f-plus, \
         f-plus-doc, sparse, alias, light, zen, zen-doc, zen-hybrid; for WarpLDA, set the length \
         above which it samples documents, 0 for all"
    );
    let excluding = SamplerOptions::Zen { exclude_from: Some(0) };
    assert_eq!(refused(excluding), ConfigError::Exclusion.into());
    for steps in [0, 65] {
        let light = SamplerOptions::from(SamplerKind::Light).with_steps(steps).unwrap();
        assert_eq!(refused(light), ConfigError::Steps { steps }.into());
    }
}
