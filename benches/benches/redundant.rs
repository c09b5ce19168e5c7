//! Time saved by ZenLDA's elimination of redundant computation (Zhao et al., 2015, section 5.2,
//! algorithm 5; its figure 10): the document part of a token's weights,
//!
//! ```text
//! C_dk (C_wk + β) / (C_k + Vβ)        over the K_d topics of the document
//! ```
//!
//! computed for all tokens of a word, in three ways:
//!
//! | bench | cached | per topic of a token |
//! |---|---|---|
//! | `division` | nothing | a division, C_k and C_wk looked up |
//! | `reciprocal` | t1 = 1 / (C_k + Vβ), once per epoch | two products, t1 and C_wk looked up |
//! | `word` | t6 = (C_wk + β) t1 of the word's topics too | a product, t6 looked up |
//!
//! Our samplers use the last one: they always cache the reciprocals and spread the word's b_k by
//! topic. Its time includes spreading and clearing over the word's K_w topics. Names are
//! `redundant/what/K_d`; the paper's counts are dense by topic within a word, as here. Everything
//! fits the cache and is plain Rust without wide instructions, so this is the saving of the formula
//! alone.
//!
//! `cargo bench -p lda-benches --bench redundant` takes half a minute; with `-- --test` every bench
//! runs once.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use std::hint::black_box;
use std::time::Duration;

const TOPICS: usize = 1000;
/// Number of topics of a short document, of an abstract, and of a long document.
const DOCUMENT_TOPICS: [usize; 3] = [10, 40, 160];
const WORD_TOPICS: usize = 60;
const TOKENS_OF_WORD: usize = 100;
const BETA: f64 = 0.01;
const WORDS: f64 = 30_000.0;

/// A word, the documents of its tokens, and the sizes of topics.
struct Word {
    /// C_k.
    totals: Vec<f64>,
    /// C_wk, 0 if the word does not have the topic.
    dense: Vec<f64>,
    /// The word's topics, with C_wk.
    row: Vec<(u32, f64)>,
    /// A row of C_d for each token.
    documents: Vec<Vec<(u32, f64)>>,
    /// Scratch for the weights of a token.
    weights: Vec<f64>,
}

impl Word {
    fn new(document_topics: usize) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        // Distinct topics in random order, with counts of 1 to 9.
        let mut row = |length: usize| -> Vec<(u32, f64)> {
            let mut topics: Vec<u32> = (0..TOPICS as u32).collect();
            for i in 0..length {
                topics.swap(i, rng.random_range(i..TOPICS));
            }
            topics[..length].iter().map(|&k| (k, f64::from(rng.random_range(1..10u32)))).collect()
        };
        let documents = (0..TOKENS_OF_WORD).map(|_| row(document_topics)).collect();
        let row = row(WORD_TOPICS);
        let mut dense = vec![0.0; TOPICS];
        row.iter().for_each(|&(k, count)| dense[k as usize] = count);
        Self {
            totals: (0..TOPICS).map(|k| 1e6 / (1 + (k * 7919) % TOPICS) as f64).collect(),
            dense,
            row,
            documents,
            weights: Vec::with_capacity(document_topics),
        }
    }

    /// Computes the weights of every token; returns the sum of all of them.
    fn tokens(&mut self, weight: impl Fn(&Self, usize, f64) -> f64) -> f64 {
        let mut weights = std::mem::take(&mut self.weights);
        let mut sum = 0.0;
        for document in &self.documents {
            weights.clear();
            weights.extend(document.iter().map(|&(k, n)| weight(self, k as usize, n)));
            sum += black_box(&weights).iter().sum::<f64>();
        }
        self.weights = weights;
        sum
    }

    fn by_division(&mut self) -> f64 {
        let beta_sum = WORDS * BETA;
        self.tokens(|word, k, n| n * (word.dense[k] + BETA) / (word.totals[k] + beta_sum))
    }

    fn by_reciprocals(&mut self, reciprocals: &[f64]) -> f64 {
        self.tokens(|word, k, n| n * (word.dense[k] + BETA) * reciprocals[k])
    }

    /// INVARIANT: `kept` holds β / (C_k + Vβ) before and after.
    fn by_word(&mut self, reciprocals: &[f64], kept: &mut [f64]) -> f64 {
        for &(k, count) in &self.row {
            kept[k as usize] = (count + BETA) * reciprocals[k as usize];
        }
        let sum = self.tokens(|_, k, n| n * kept[k]);
        for &(k, _) in &self.row {
            kept[k as usize] = BETA * reciprocals[k as usize];
        }
        sum
    }
}

/// One element per topic of a token.
fn redundant(c: &mut Criterion) {
    let mut group = c.benchmark_group("redundant");
    for document_topics in DOCUMENT_TOPICS {
        let mut word = Word::new(document_topics);
        let reciprocals: Vec<f64> =
            word.totals.iter().map(|total| 1.0 / (total + WORDS * BETA)).collect();
        let mut kept: Vec<f64> = reciprocals.iter().map(|x| BETA * x).collect();
        // The three ways give the same weights.
        let expected = word.by_division();
        let others = [word.by_reciprocals(&reciprocals), word.by_word(&reciprocals, &mut kept)];
        assert!(others.iter().all(|sum| (sum - expected).abs() < 1e-12 * expected), "{others:?}");

        group.throughput(Throughput::Elements((TOKENS_OF_WORD * document_topics) as u64));
        let id = |name| BenchmarkId::new(name, document_topics);
        group.bench_function(id("division"), |b| b.iter(|| black_box(&mut word).by_division()));
        group.bench_function(id("reciprocal"), |b| {
            b.iter(|| black_box(&mut word).by_reciprocals(black_box(&reciprocals)));
        });
        group.bench_function(id("word"), |b| {
            b.iter(|| black_box(&mut word).by_word(black_box(&reciprocals), black_box(&mut kept)));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = redundant
}
criterion_main!(benches);
