//! An epoch of each sampler at K = 100, 1,000 and 10,000, names `epoch/SAMPLER/K`.
//!
//! `cargo bench -p lda-benches --bench epoch` takes some minutes; with `-- --test` every bench runs
//! once, with `-- f-plus` only those whose name contains it. The corpus is generated: 200,000
//! tokens in 2,000 documents, which fits the cache, so that the bench measures the sampler and not
//! the memory. Some epochs before the measurement let the counts settle. For speeds on real text
//! see the lab.
//!
//! `isa/SAMPLER/SET` compares instruction sets at K = 1,000.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lda_benches::synthetic::{Lengths, Spec};
use lda_core::Corpus;
use lda_core::simd::Isa;
use lda_core::train::{SamplerKind, TrainOptions, Trainer};

fn corpus() -> Corpus {
    let spec = Spec {
        num_documents: 2_000,
        num_words: 5_000,
        num_topics: 50,
        lengths: vec![Lengths { weight: 1.0, mean: 100.0, sigma: 0.7 }],
        ..Spec::default()
    };
    spec.generate(1).expect("the parameters are legal").corpus
}

/// A trainer whose counts have settled; with `--test`, one at its start.
fn settled<'a>(corpus: &'a Corpus, options: &TrainOptions) -> Trainer<&'a Corpus> {
    let mut trainer = Trainer::new(corpus, options).expect("the options are legal");
    if !std::env::args().any(|argument| argument == "--test") {
        // Samplers with slow epochs get fewer; their speed does not depend on the counts.
        let epochs = if trainer.resolved().sampler == SamplerKind::Exact { 3 } else { 30 };
        for _ in 0..epochs {
            trainer.epoch();
        }
    }
    trainer
}

fn epoch(c: &mut Criterion) {
    let corpus = corpus();
    let mut group = c.benchmark_group("epoch");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Elements(corpus.num_tokens()));
    for sampler in SamplerKind::ALL {
        for topics in [100, 1_000, 10_000] {
            let options = TrainOptions::new(topics).sampler(sampler).threads(1);
            // Created only if the name is selected.
            let mut trainer = None;
            group.bench_function(BenchmarkId::new(sampler.name(), topics), |b| {
                let trainer = trainer.get_or_insert_with(|| settled(&corpus, &options));
                b.iter(|| trainer.epoch());
            });
        }
    }
    group.finish();
}

fn isa(c: &mut Criterion) {
    let corpus = corpus();
    let mut group = c.benchmark_group("isa");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Elements(corpus.num_tokens()));
    for sampler in [SamplerKind::Exact, SamplerKind::FPlus, SamplerKind::Warp] {
        for isa in Isa::available() {
            let isa_name = isa.to_string();
            let isa = Some(isa);
            let options = TrainOptions::new(1_000).sampler(sampler).isa(isa).threads(1);
            let mut trainer = None;
            group.bench_function(BenchmarkId::new(sampler.name(), isa_name), |b| {
                let trainer = trainer.get_or_insert_with(|| settled(&corpus, &options));
                b.iter(|| trainer.epoch());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, epoch, isa);
criterion_main!(benches);
