//! Alias tables: build and draw at K = 10^2 … 10^6, names `group/table/K`.
//!
//! `cargo bench -p lda-benches --bench discrete` takes about 20 seconds; with `-- --test` every
//! bench runs once, with `-- sparse` only those whose name contains it. Weights are those of a
//! smoothing bucket, alpha beta / (C_k + V beta) with Zipfian topic sizes. Draws are random, so at
//! large K they miss the cache as a sampler's do.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lda_core::discrete::{AliasScratch, AliasTable, SparseAlias};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
use std::hint::black_box;
use std::time::Duration;

const TOPICS: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

fn weights(topics: usize) -> Vec<f64> {
    let size = |k: usize| 1e7 / (1 + (k * 7919) % topics) as f64;
    (0..topics).map(|k| 0.05 * 0.01 / (size(k) + 1e3)).collect()
}

fn rng() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(1)
}

/// One element per weight, so that weights per second are printed next to the time.
fn build(c: &mut Criterion) {
    let mut group = c.benchmark_group("build");
    for topics in TOPICS {
        let weights = weights(topics);
        group.throughput(Throughput::Elements(topics as u64));
        let mut scratch = AliasScratch::default();
        let mut dense = AliasTable::new(&weights).unwrap();
        group.bench_function(BenchmarkId::new("alias", topics), |b| {
            b.iter(|| dense.rebuild(black_box(&weights), &mut scratch));
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
    }
}

criterion_group! {
    name = benches;
    // 15 benches of about a second each.
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .sample_size(20);
    targets = build, draw
}
criterion_main!(benches);
