//! RT-LDA: topics of queries and documents, names `infer/WORDS/SET` for a length and an instruction
//! set, at K = 1,000.
//!
//! `cargo bench -p lda-benches --bench infer` takes a minute and ends with a table: how long single
//! queries of 20 words take, at the median and at worse quantiles, each timed alone on a clock of
//! some 25 ns. With `-- --test` everything runs once, on a model of one epoch.
//!
//! The model is trained on a generated corpus of 2 M tokens. Queries are random words of documents
//! it has not seen; there are 10,000 of them, so that a query meets words that the cache has
//! forgotten, as in a service.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use lda_benches::synthetic::{Lengths, Spec};
use lda_core::corpus::{Corpus, CorpusBuilder};
use lda_core::infer::{RtLda, RtOptions, RtScratch};
use lda_core::model::TopicModel;
use lda_core::simd::Isa;
use lda_core::train::{SamplerKind, TrainOptions, Trainer};
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

const TOPICS: u32 = 1_000;
const QUERIES: usize = 10_000;
/// Words of a query, of an abstract, of an article.
const LENGTHS: [usize; 3] = [20, 200, 2_000];

fn is_test() -> bool {
    std::env::args().any(|argument| argument == "--test")
}

/// Documents to train on and documents to ask for.
fn corpora() -> (Corpus, Vec<Vec<u32>>) {
    let spec = Spec {
        num_documents: 22_000,
        num_words: 20_000,
        num_topics: TOPICS as usize,
        concentration: 500.0,
        alpha: 0.003,
        lengths: vec![Lengths { weight: 1.0, mean: 100.0, sigma: 0.7 }],
        ..Spec::default()
    };
    let corpus = spec.generate(1).expect("the parameters are legal").corpus;
    let mut train = CorpusBuilder::new();
    let mut others = Vec::new();
    for (d, document) in corpus.documents().enumerate() {
        if d < 20_000 {
            train.push_pairs(document.iter()).expect("as many as before");
        } else if !document.is_empty() {
            let tokens =
                document.iter().flat_map(|(word, n)| std::iter::repeat_n(word, n as usize));
            others.push(tokens.collect());
        }
    }
    (train.build().expect("as many as before"), others)
}

fn model(corpus: &Corpus) -> TopicModel {
    let sampler = Some(SamplerKind::FPlus);
    let options = TrainOptions::new(TOPICS).sampler(sampler);
    let mut trainer = Trainer::new(corpus, &options).expect("the options are legal");
    for _ in 0..if is_test() { 1 } else { 50 } {
        trainer.epoch();
    }
    trainer.model()
}

/// `count` documents of `length` words, each drawn from one of `documents`, or from several where
/// it is longer than they are.
fn queries(documents: &[Vec<u32>], count: usize, length: usize) -> Vec<Vec<u32>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(length as u64);
    let mut query = || {
        let sources = length.div_ceil(100);
        let sources: Vec<&Vec<u32>> =
            (0..sources).map(|_| &documents[rng.random_range(0..documents.len())]).collect();
        let mut word = || {
            let source = sources[rng.random_range(0..sources.len())];
            source[rng.random_range(0..source.len())]
        };
        (0..length).map(|_| word()).collect()
    };
    (0..count).map(|_| query()).collect()
}

fn ready(model: &TopicModel, isa: Isa) -> RtLda {
    let options = RtOptions { isa: Some(isa), ..RtOptions::default() };
    RtLda::with_options(model, &options).expect("a trained model is fit")
}

fn infer(c: &mut Criterion, model: &TopicModel, documents: &[Vec<u32>]) {
    let mut group = c.benchmark_group("infer");
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    for length in LENGTHS {
        let queries = queries(documents, QUERIES * 20 / length, length);
        group.throughput(Throughput::Elements(length as u64));
        for isa in Isa::available() {
            let rt = ready(model, isa);
            let mut scratch = RtScratch::default();
            let mut queries = queries.iter().cycle();
            group.bench_function(BenchmarkId::new(length.to_string(), isa), |b| {
                b.iter(|| {
                    let words = queries.next().expect("there are queries").iter().copied();
                    rt.infer(words, &mut scratch).counts().len()
                });
            });
        }
    }
    group.finish();
}

/// Times each query alone.
#[expect(clippy::print_stdout, reason = "it is the result")]
fn quantiles(model: &TopicModel, documents: &[Vec<u32>]) {
    let queries = queries(documents, QUERIES, 20);
    println!("a query of 20 words, K = {TOPICS}, {QUERIES} queries, 5 times each");
    println!("{:>8} {:>9} {:>9} {:>9} {:>9}", "set", "p50, us", "p90, us", "p99, us", "p99.9, us");
    for isa in Isa::available() {
        let rt = ready(model, isa);
        let mut scratch = RtScratch::default();
        let mut times: Vec<Duration> = Vec::new();
        for query in std::iter::repeat_n(&queries, 6).flatten() {
            let start = Instant::now();
            std::hint::black_box(rt.infer(query.iter().copied(), &mut scratch).counts().len());
            times.push(start.elapsed());
        }
        // The first round warms up.
        let times = &mut times[QUERIES..];
        times.sort_unstable();
        let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e6;
        let name = isa.to_string();
        let [p50, p90, p99, worst] = [0.5, 0.9, 0.99, 0.999].map(at);
        println!("{name:>8} {p50:>9.2} {p90:>9.2} {p99:>9.2} {worst:>9.2}");
    }
}

fn main() {
    let (corpus, documents) = corpora();
    let model = model(&corpus);
    let mut criterion = Criterion::default().configure_from_args();
    infer(&mut criterion, &model, &documents);
    criterion.final_summary();
    if std::env::args().any(|argument| argument == "--bench") && !is_test() {
        quantiles(&model, &documents);
    }
}
