//! The draw structures: build, draw and change at K = 10^2 … 10^6, names `group/what/K`.
//!
//! `cargo bench -p lda-benches --bench discrete` takes about a minute; with `-- --test` every bench
//! runs once, with `-- fplus` only those whose name holds it. Weights are those of F+LDA's tree:
//! alpha beta / (C_k + V beta) with Zipfian topic sizes, and draws are random, so at large K they
//! miss the cache as a sampler's do.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lda_core::discrete::{
    AliasScratch, AliasTable, Cumulative, FPlusTree, IntegerAlias, SparseAlias, uniform_below,
};
use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};
use std::hint::black_box;
use std::time::Duration;

const TOPICS: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

fn weights(topics: usize) -> Vec<f64> {
    let size = |k: usize| 1e7 / (1 + (k * 7919) % topics) as f64;
    (0..topics).map(|k| 0.05 * 0.01 / (size(k) + 1e3)).collect()
}

fn counts(topics: usize) -> Vec<(u32, u32)> {
    (0..topics as u32).map(|k| (k, 1 + 4_000 / (1 + (k * 79) % topics as u32))).collect()
}

fn rng() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(1)
}

/// One element a weight, so that K weights a second are printed beside the time.
fn build(c: &mut Criterion) {
    let mut group = c.benchmark_group("build");
    for topics in TOPICS {
        let (weights, counts) = (weights(topics), counts(topics));
        group.throughput(Throughput::Elements(topics as u64));
        let mut scratch = AliasScratch::default();
        let mut dense = AliasTable::new(&weights).unwrap();
        group.bench_function(BenchmarkId::new("alias", topics), |b| {
            b.iter(|| dense.rebuild(black_box(&weights), &mut scratch));
        });
        let mut integer = IntegerAlias::new(counts.iter().copied()).unwrap();
        group.bench_function(BenchmarkId::new("integer_alias", topics), |b| {
            b.iter(|| integer.rebuild(black_box(&counts).iter().copied(), &mut scratch));
        });
        let mut cumulative = Cumulative::new(&weights).unwrap();
        group.bench_function(BenchmarkId::new("cumulative", topics), |b| {
            b.iter(|| cumulative.rebuild(black_box(&weights)));
        });
        let mut tree = FPlusTree::new(&weights).unwrap();
        group.bench_function(BenchmarkId::new("fplus", topics), |b| {
            b.iter(|| tree.rebuild(black_box(&weights)));
        });
    }
}

fn draw(c: &mut Criterion) {
    let mut group = c.benchmark_group("draw");
    for topics in TOPICS {
        let weights = weights(topics);
        let mut rng = rng();
        let dense = AliasTable::new(&weights).unwrap();
        group.bench_function(BenchmarkId::new("alias", topics), |b| {
            b.iter(|| dense.sample(&mut rng));
        });
        let pairs = weights.iter().enumerate().map(|(k, &w)| (k as u32, w));
        let sparse = SparseAlias::new(pairs).unwrap();
        group.bench_function(BenchmarkId::new("sparse_alias", topics), |b| {
            b.iter(|| sparse.sample(&mut rng));
        });
        let integer = IntegerAlias::new(counts(topics)).unwrap();
        group.bench_function(BenchmarkId::new("integer_alias", topics), |b| {
            b.iter(|| integer.sample(&mut rng));
        });
        let cumulative = Cumulative::new(&weights).unwrap();
        group.bench_function(BenchmarkId::new("cumulative", topics), |b| {
            b.iter(|| cumulative.sample(&mut rng));
        });
        let tree = FPlusTree::new(&weights).unwrap();
        group.bench_function(BenchmarkId::new("fplus", topics), |b| {
            b.iter(|| tree.sample(&mut rng));
        });
    }
}

fn change(c: &mut Criterion) {
    let mut group = c.benchmark_group("change");
    for topics in TOPICS {
        let weights = weights(topics);
        let mut rng = rng();
        let mut tree = FPlusTree::new(&weights).unwrap();
        group.bench_function(BenchmarkId::new("fplus", topics), |b| {
            b.iter(|| {
                let word = rng.next_u64();
                let k = ((u128::from(word) * topics as u128) >> 64) as usize;
                tree.set(k, (word as u32) as f64 * 1e-12)
            });
        });
        // What a token costs F+LDA: out of one topic, a draw, into another.
        group.bench_function(BenchmarkId::new("fplus_token", topics), |b| {
            b.iter(|| {
                let old = uniform_below(&mut rng, topics as u64) as usize;
                tree.set(old, weights[old] * 1.001).unwrap();
                let new = tree.sample(&mut rng).unwrap();
                tree.set(new, weights[new] * 0.999).unwrap();
                new
            });
        });
        // What entering a word with 64 topics costs, ascending.
        let word: Vec<usize> = (0..64).map(|n| (n * topics) / 64).collect();
        group.bench_function(BenchmarkId::new("fplus_set_many_64", topics), |b| {
            b.iter(|| tree.set_many(black_box(&word).iter().map(|&k| (k, weights[k]))));
        });
    }
}

criterion_group! {
    name = benches;
    // 55 benches of about a second each.
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .sample_size(20);
    targets = build, draw, change
}
criterion_main!(benches);
