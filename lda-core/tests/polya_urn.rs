//! The Pólya-urn sampler of the examples, which uses the public API alone: the law of one epoch, and
//! everything that the trainer gives to samplers.

#[path = "common/mod.rs"]
mod common;
#[path = "../examples/polya_urn/sampler.rs"]
mod sampler;

use std::io::Cursor;
use std::sync::Arc;

use common::{FALSE_ALARM, assert_law, p_value};
use lda_core::Corpus;
use lda_core::layout::WordRanges;
use lda_core::train::{Init, SamplerKind, Snapshot, TrainOptions, Trainer};
use sampler::PolyaUrn;

const ALPHA: [f64; 2] = [0.4, 0.9];
const BETA: f64 = 0.3;
/// Words of the tokens, documents in order: five tokens of two words.
const TOKENS: [(usize, usize); 5] = [(0, 0), (0, 0), (0, 1), (1, 0), (1, 1)];
const STATES: usize = 1 << TOKENS.len();
/// n* is enumerated up to here: at the largest rate, 3.3, more has probability 1e-7.
const MOST: usize = 16;

fn corpus() -> Corpus {
    Corpus::from_tokens([vec![0, 0, 1], vec![0, 1]]).unwrap()
}

fn start(corpus: &Corpus, seed: u64) -> Trainer<&Corpus> {
    let options = TrainOptions::new(2).alpha(ALPHA.to_vec()).beta(BETA).seed(seed).ranges(1);
    Trainer::with_sampler(corpus, &options, PolyaUrn::default(), Init::default()).unwrap()
}

/// The topics of all tokens as one number, a bit per token.
fn state(trainer: &Trainer<&Corpus>) -> usize {
    let assignments = trainer.assignments();
    assignments.as_slice().iter().enumerate().map(|(i, &topic)| (topic as usize) << i).sum()
}

fn poisson(rate: f64) -> [f64; MOST] {
    let mut p = [(-rate).exp(); MOST];
    for n in 1..MOST {
        p[n] = p[n - 1] * rate / n as f64;
    }
    p
}

/// Adds the law of `document` after its tokens were sampled in `order`, from `from`; other bits are 0.
/// `own` is the number of tokens that a token takes out of its document's counts: 1.
fn sample_document(
    document: usize,
    order: &[usize],
    phi: &[[f64; 2]; 2],
    from: (usize, f64),
    own: f64,
    law: &mut [f64],
) {
    let (z, probability) = from;
    let Some((&i, rest)) = order.split_first() else {
        law[z] += probability;
        return;
    };
    if TOKENS[i].0 != document {
        return sample_document(document, rest, phi, from, own, law);
    }
    let topic = |i: usize| z >> i & 1;
    let mut weights = [0.0; 2];
    for (k, weight) in weights.iter_mut().enumerate() {
        let tokens = (0..TOKENS.len()).filter(|&j| TOKENS[j].0 == document);
        let count = tokens.filter(|&j| topic(j) == k).count() as f64;
        let count = count - if topic(i) == k { own } else { 0.0 };
        *weight = (count + ALPHA[k]) * phi[TOKENS[i].1][k];
    }
    let total = weights[0] + weights[1];
    if total == 0.0 {
        return sample_document(document, rest, phi, from, own, law);
    }
    for (k, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        let next = (z & !(1 << i) | k << i, probability * weight / total);
        sample_document(document, rest, phi, next, own, law);
    }
}

/// Transition matrix of one epoch.
fn transitions(corpus: &Corpus, own: f64) -> Vec<Vec<f64>> {
    let words = WordRanges::new(&corpus.word_frequencies(), 1);
    let mut order: Vec<usize> = (0..TOKENS.len()).collect();
    order.sort_by_key(|&i| words.position(TOKENS[i].1 as u32));
    let mask = |document| -> usize {
        (0..TOKENS.len()).filter(|&i| TOKENS[i].0 == document).map(|i| 1 << i).sum()
    };
    (0..STATES)
        .map(|z| {
            let mut rates = [[BETA; 2]; 2];
            for (i, &(_, word)) in TOKENS.iter().enumerate() {
                rates[word][z >> i & 1] += 1.0;
            }
            let draws = rates.map(|row| row.map(poisson));
            let mut law = vec![0.0; STATES];
            for n in 0..MOST.pow(4) {
                let n = [n % MOST, n / MOST % MOST, n / MOST.pow(2) % MOST, n / MOST.pow(3)];
                let n = [[n[0], n[1]], [n[2], n[3]]];
                let mut probability = 1.0;
                let mut phi = [[0.0; 2]; 2];
                for word in 0..2 {
                    for k in 0..2 {
                        probability *= draws[word][k][n[word][k]];
                        let total = n[0][k] + n[1][k];
                        phi[word][k] = n[word][k] as f64 / total.max(1) as f64;
                    }
                }
                if probability < 1e-12 {
                    continue;
                }
                // Documents are independent given φ.
                let parts = [0, 1].map(|document| {
                    let mut law = [0.0; STATES];
                    let from = (z & mask(document), 1.0);
                    sample_document(document, &order, &phi, from, own, &mut law);
                    law
                });
                for (first, p) in parts[0].iter().enumerate().filter(|(_, p)| **p > 0.0) {
                    for (second, q) in parts[1].iter().enumerate().filter(|(_, q)| **q > 0.0) {
                        law[first | second] += probability * p * q;
                    }
                }
            }
            law
        })
        .collect()
}

/// ln p(z | w) up to a constant.
fn log_posterior(z: usize) -> f64 {
    let rising = |x: f64, n: usize| (0..n).map(|j| (x + j as f64).ln()).sum::<f64>();
    let count = |test: &dyn Fn(usize) -> bool| (0..TOKENS.len()).filter(|&i| test(i)).count();
    let mut log = 0.0;
    for (k, alpha) in ALPHA.into_iter().enumerate() {
        let is_k = |i: usize| z >> i & 1 == k;
        for document in 0..2 {
            log += rising(alpha, count(&|i| is_k(i) && TOKENS[i].0 == document));
        }
        for word in 0..2 {
            log += rising(BETA, count(&|i| is_k(i) && TOKENS[i].1 == word));
        }
        log -= rising(2.0 * BETA, count(&is_k));
    }
    log
}

/// One epoch from a uniform start, over (start, end), against the enumerated chain; and a chain that
/// leaves the token in its document's counts is rejected by the same draws.
#[test]
fn an_epoch_has_the_enumerated_law() {
    let corpus = corpus();
    let draws = 40_000;
    let mut seen = vec![0; STATES * STATES];
    for seed in 0..draws {
        let mut trainer = start(&corpus, seed);
        let before = state(&trainer);
        trainer.epoch();
        seen[before * STATES + state(&trainer)] += 1;
    }
    let matrix = transitions(&corpus, 1.0);
    assert!(matrix.iter().all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-6));
    assert_law(&seen, &matrix.concat());
    let wrong = transitions(&corpus, 0.0).concat();
    assert!(p_value(&seen, &wrong) < FALSE_ALARM, "the token's own count is not tested");
}

/// The stationary law of the enumerated chain is not the posterior: with five tokens it is .273 away in
/// total variation, as the example states.
#[test]
fn the_stationary_law_is_not_the_posterior() {
    let matrix = transitions(&corpus(), 1.0);
    let mut law = vec![1.0 / STATES as f64; STATES];
    for _ in 0..2000 {
        let mut next = vec![0.0; STATES];
        for (p, row) in law.iter().zip(&matrix) {
            next.iter_mut().zip(row).for_each(|(next, q)| *next += p * q);
        }
        let total: f64 = next.iter().sum();
        law = next.into_iter().map(|p| p / total).collect();
    }
    let weights: Vec<f64> = (0..STATES).map(|z| log_posterior(z).exp()).collect();
    let total: f64 = weights.iter().sum();
    let distance: f64 = law.iter().zip(&weights).map(|(p, w)| (p - w / total).abs()).sum();
    let distance = distance / 2.0;
    assert!((distance - 0.273).abs() < 0.001, "{distance}");
}

/// The trainer gives an outside sampler the same bits at any thread count, correct counts, evaluation,
/// a warm-up, and checkpoints. The trainer may own its corpus.
#[test]
fn the_trainer_serves_an_outside_sampler() {
    let documents = (0..120u32).map(|d| (0..5 + d % 40).map(move |i| (d * 7 + i * i) % 90));
    let corpus = Arc::new(Corpus::from_tokens(documents).unwrap());
    let options = TrainOptions::new(30).alpha(0.1).ranges(4).seed(3).warm_up(2);
    let run = |threads: usize| {
        let options = options.clone().threads(threads);
        let sampler = PolyaUrn::default();
        Trainer::with_sampler(Arc::clone(&corpus), &options, sampler, Init::default()).unwrap()
    };
    let (mut one, mut three) = (run(1), run(3));
    let mut snapshot = None;
    for epoch in 1..=8 {
        let report = one.epoch();
        three.epoch();
        let sampler = if epoch <= 2 { SamplerKind::Warp } else { SamplerKind::Custom };
        assert_eq!((report.epoch, report.sampler), (epoch, sampler));
        one.check().unwrap();
        assert_eq!(one.assignments(), three.assignments(), "epoch {epoch}");
        if epoch == 5 {
            let mut bytes = Cursor::new(Vec::new());
            one.snapshot().write_to(&mut bytes).unwrap();
            bytes.set_position(0);
            snapshot = Some(Snapshot::read_from(bytes).unwrap());
        }
    }
    assert!(one.log_joint().total().is_finite());
    let snapshot = snapshot.unwrap();
    let options = snapshot.options();
    assert!(Trainer::resume(&*corpus, &snapshot, &options).is_err(), "the sampler is not given");
    let sampler = PolyaUrn::default();
    let mut resumed = Trainer::resume_with_sampler(&*corpus, &snapshot, &options, sampler).unwrap();
    (0..3).for_each(|_| {
        resumed.epoch();
    });
    assert_eq!(resumed.assignments(), one.assignments());
}
