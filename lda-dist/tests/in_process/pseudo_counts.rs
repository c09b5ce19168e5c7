//! Pseudo-counts: servers have them beside the counts of the tokens, and topics have the law of that prior.

use std::collections::BTreeMap;
use std::sync::Arc;

use lda_core::train::{PseudoCounts, SamplerKind};
use lda_dist::config::{Hybrid, Options, Routing, SAMPLERS};
use lda_dist::in_process::InProcess;
use lda_dist::spec::ModelSpec;

use super::{corpus, observed_with, p_value, posterior, posterior_with, topics};

#[test]
fn topics_have_the_law_of_the_posterior() {
    let tokens = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)];
    let corpus = lda_core::Corpus::from_tokens([vec![0, 1], vec![0, 1, 2]]).unwrap();
    let pseudo = PseudoCounts::new(3, 2, [(0, 0, 3), (1, 1, 2), (2, 0, 1)]).unwrap();
    let law = posterior_with(&[[3.0, 0.0], [0.0, 2.0], [1.0, 0.0]], &tokens);
    for kind in [SamplerKind::Exact, SamplerKind::FPlus, SamplerKind::FPlusDoc, SamplerKind::Sparse]
    {
        for routing in [Routing::Pull, Routing::Push] {
            let options = Options { routing, sampler: kind.into(), ..Options::default() };
            let seen = observed_with(Some(&pseudo), &corpus, &options, 240_000);
            // Rare patterns are one class.
            let classes = |weights: &[f64]| -> Vec<f64> {
                let (often, rare): (Vec<_>, Vec<_>) =
                    weights.iter().zip(&law).partition(|(_, share)| **share > 0.002);
                let rest = rare.iter().map(|it| it.0).sum();
                often.iter().map(|it| *it.0).chain([rest]).collect()
            };
            let counts: Vec<f64> = seen.iter().map(|&seen| seen as f64).collect();
            let seen: Vec<u64> = classes(&counts).iter().map(|&seen| seen as u64).collect();
            let p = p_value(&seen, &classes(&law));
            assert!(p > 1e-6, "{kind}, {routing:?}: p = {p}: {seen:?}");
            assert!(p_value(&seen, &classes(&posterior(&tokens, 3))) < 1e-9, "the prior matters");
        }
    }
}

#[test]
fn rows_are_those_of_the_tokens_and_the_pseudo_counts() {
    let corpus = corpus(60, 50, 20);
    // Of words with tokens and without, and more than the tokens of any word.
    let entries =
        (0..50u32).flat_map(|word| [(word, word % 7, 3), (word, 39, word % 3), (word, 2, 900)]);
    let pseudo = PseudoCounts::new(50, 40, entries).unwrap();
    let spec = ModelSpec::builder(40, 50).alpha(0.1).beta(0.05).seed(4);
    let spec = spec.pseudo_counts(Arc::new(pseudo.clone())).build().unwrap();
    for sampler in SAMPLERS {
        for (routing, short_length) in
            [(Routing::Cheapest, 15), (Routing::Pull, u32::MAX), (Routing::Push, u32::MAX)]
        {
            let hybrid = Hybrid { short_length, mh_steps: 2 };
            let cut = Options { shards: 4, partitions: 9, rounds: 4, ..Options::default() };
            let options = Options { servers: 3, routing, hybrid, sampler: sampler.into(), ..cut };
            let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
            let start = topics(&run);
            for _ in 0..3 {
                run.epoch().unwrap();
            }
            assert_ne!(topics(&run), start, "{sampler:?}");
            let mut expected = BTreeMap::new();
            run.for_each(|_, word, topic| *expected.entry((word, topic)).or_insert(0) += 1);
            for word in 0..50 {
                for &(topic, count) in pseudo.word(word as usize) {
                    *expected.entry((word, topic)).or_insert(0) += count;
                }
            }
            let mut found = BTreeMap::new();
            for server in run.servers() {
                server.for_each(|word, row| {
                    found.extend(row.iter().map(|&(topic, count)| ((word, topic), count)));
                });
            }
            assert!(found == expected, "{sampler:?}, {routing:?}");
            let totals: u64 = run.totals().iter().map(|&total| u64::from(total)).sum();
            assert_eq!(totals, corpus.num_tokens() + pseudo.sum());
        }
    }
}

#[test]
fn tokens_start_in_the_topics_of_their_words() {
    let corpus = corpus(60, 50, 20);
    let pseudo = PseudoCounts::new(50, 40, [(3, 7, 2), (4, 9, 1)]).unwrap();
    let spec = ModelSpec::builder(40, 50).pseudo_counts(Arc::new(pseudo)).build().unwrap();
    let run = InProcess::<u16>::new(&spec, &corpus, &Options::default()).unwrap();
    let mut seen = 0;
    run.for_each(|_, word, topic| {
        let expected = match word {
            3 => 7,
            4 => 9,
            _ => return,
        };
        seen += 1;
        assert_eq!(topic, expected);
    });
    assert!(seen > 5);
}
