//! Results of training: likelihood curves of the samplers against the exact sampler's, and recovery of
//! known topics.

use crate::corpora::{made, real, with_short_length};
use lda_benches::synthetic::Spec;
use lda_core::Corpus;
use lda_core::train::{SamplerKind, TrainOptions, Trainer};

/// Epochs at which curves are compared.
const AT: [u32; 4] = [3, 8, 15, 30];

/// Log joint a token at the epochs of [`AT`], for each seed.
fn curves(
    corpus: &Corpus,
    sampler: SamplerKind,
    topics: u32,
    seeds: std::ops::Range<u64>,
) -> Vec<[f64; AT.len()]> {
    let curve = |seed| {
        let options = TrainOptions::new(topics).sampler(sampler).seed(seed).ranges(1);
        let mut trainer = Trainer::new(corpus, &options).expect("the options are legal");
        AT.map(|epoch| {
            while trainer.epochs() < epoch {
                trainer.epoch();
            }
            trainer.log_joint().per_token(corpus.num_tokens())
        })
    };
    seeds.map(curve).collect()
}

fn mean_and_deviation(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let squares: f64 = values.map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// A sampler of the exact one's law has its curve, but for noise: means over
/// `runs` seeds differ by at most five standard errors. On the same seeds the two would be more
/// alike than noise, even equal in all bits where every row is dense; so they run on different ones.
fn curves_meet(corpus: &Corpus, topics: u32, runs: u64) {
    let exact = curves(corpus, SamplerKind::Exact, topics, 0..runs);
    for sampler in [SamplerKind::FPlus, SamplerKind::FPlusDoc, SamplerKind::Sparse] {
        let other = curves(corpus, sampler, topics, runs..2 * runs);
        meet(&exact, &other, &format!("{sampler}, K = {topics}"));
    }
}

fn meet(exact: &[[f64; AT.len()]], other: &[[f64; AT.len()]], what: &str) {
    let runs = exact.len();
    for (i, epoch) in AT.into_iter().enumerate() {
        let (mean, spread) = mean_and_deviation(exact.iter().map(|c| c[i]));
        let (other, other_spread) = mean_and_deviation(other.iter().map(|c| c[i]));
        let error = ((spread.powi(2) + other_spread.powi(2)) / runs as f64).sqrt();
        // Noise is a hundredth of the value at most; a curve that is off by more cannot hide in it.
        assert!(error < 0.01 * mean.abs(), "epoch {epoch}: standard error {error}");
        let apart = (mean - other).abs() / error;
        assert!(apart < 5.0, "{what}, epoch {epoch}: {mean} and {other}, {apart:.1} errors");
    }
}

#[test]
fn exact_samplers_follow_the_exact_curve() {
    let corpus = made(600, 400, 12, 30.0);
    curves_meet(&corpus, 20, 8);
    // Most rows are sparse.
    curves_meet(&corpus, 200, 8);
}

#[test]
#[ignore = "reads real corpora; .ci/extended runs it"]
fn exact_samplers_follow_the_exact_curve_on_kos() {
    curves_meet(&real("kos"), 50, 3);
}

/// WarpLDA is slower by the epoch and settles elsewhere, but not far from there.
#[test]
fn warp_arrives_near_the_exact_level() {
    let corpus = made(600, 400, 12, 30.0);
    let settled = |sampler, epochs| {
        let options = TrainOptions::new(20).sampler(with_short_length(sampler, 25)).ranges(2);
        let mut trainer = Trainer::new(&corpus, &options).expect("the options are legal");
        let mut sum = 0.0;
        for epoch in 1..=epochs {
            trainer.epoch();
            if epoch > epochs - 20 {
                sum += trainer.log_joint().per_token(corpus.num_tokens());
            }
        }
        sum / 20.0
    };
    let level = settled(SamplerKind::Exact, 1500);
    for (sampler, epochs) in [(SamplerKind::Warp, 4000), (SamplerKind::Hybrid, 400)] {
        let found = settled(sampler, epochs);
        assert!((found / level - 1.0).abs() < 0.01, "{sampler}: {found} and {level}");
    }
}

/// The better of each pair first: how alike are the trained topics and the true ones?
fn matched_cosine(found: &[Vec<f64>], truth: &[Vec<f64>]) -> f64 {
    let cosine = |a: &[f64], b: &[f64]| {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (i, f) in found.iter().enumerate() {
        pairs.extend(truth.iter().enumerate().map(|(j, t)| (cosine(f, t), i, j)));
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut used, mut matched) = (vec![false; found.len()], vec![None; truth.len()]);
    for (cosine, i, j) in pairs {
        if !used[i] && matched[j].is_none() {
            used[i] = true;
            matched[j] = Some(cosine);
        }
    }
    matched.iter().map(|cosine| cosine.unwrap_or(0.0)).sum::<f64>() / truth.len() as f64
}

/// Every sampler finds the topics that made the corpus. A chain can settle with two topics in one;
/// so of three runs the one of the best likelihood counts, as it would for a user.
#[test]
fn known_topics_are_recovered() {
    let spec = Spec { num_documents: 600, ..Spec::default() };
    let made = spec.generate(1).expect("the law is a legal one");
    let corpus = made.corpus;
    let row = |topic: &Vec<(u32, f64)>| {
        let mut row = vec![0.0; corpus.num_words()];
        topic.iter().for_each(|&(word, p)| row[word as usize] = p);
        row
    };
    let truth: Vec<Vec<f64>> = made.topics.iter().map(row).collect();
    let train = |sampler, seed| {
        let options = TrainOptions::new(truth.len() as u32)
            .alpha(0.1)
            .beta(0.02)
            .sampler(with_short_length(sampler, 100))
            .ranges(2)
            .seed(seed);
        let mut trainer = Trainer::new(&corpus, &options).expect("the options are legal");
        for _ in 0..100 {
            trainer.epoch();
        }
        (trainer.log_joint().total(), trainer.model())
    };
    for sampler in SamplerKind::ALL {
        let runs = (0..3).map(|seed| train(sampler, seed));
        let (_, model) = runs.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are three");
        let phi: Vec<Vec<f64>> = (0..model.num_topics())
            .map(|k| (0..model.num_words()).map(|w| model.phi(k, w)).collect())
            .collect();
        let cosine = matched_cosine(&phi, &truth);
        assert!(cosine >= 0.9, "{sampler}: matched topics' mean cosine is {cosine:.3}");
    }
}
