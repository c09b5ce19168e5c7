//! Encoded rows of C_w: size, and speed of encoding and decoding.
//!
//! The rows are those of a generated corpus (half a million tokens, words after Zipf) after 30
//! epochs of F+LDA at K = 1,000 and 8,000. Bytes per entry are compared with two plainer encodings:
//! compressed sparse rows of 32 bits, and the encoding of LDA* (section 5.1: a topic of 16 bits and
//! a count of 8, 16 or 32 bits, as the largest needs; dense if that is shorter; a length and a type
//! per row). Throughput is in (topic, count) pairs of 8 bytes, as they are in memory.
//!
//! `cargo bench -p lda-benches --bench wire` begins with a table of sizes; names `encode/K` and
//! `decode/K`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lda_benches::synthetic::{Lengths, Spec};
use lda_core::train::{EpochReport, Flow, Lda, SamplerKind};
use lda_dist::wire::RowCode;

const TOPICS: [u32; 2] = [1_000, 8_000];
const EPOCHS: u32 = 30;

/// Whether `--test` is given, so that everything runs once.
fn is_test() -> bool {
    std::env::args().any(|argument| argument == "--test")
}

type Row = Vec<(u32, u32)>;

fn rows(topics: u32) -> Vec<Row> {
    let spec = Spec {
        num_documents: 5_500,
        num_words: 20_000,
        num_topics: 100,
        zipf_exponent: 1.0,
        lengths: vec![Lengths { weight: 1.0, mean: 90.0, sigma: 0.4 }],
        ..Spec::default()
    };
    let corpus = spec.generate(1).expect("a law that makes sense").corpus;
    let epochs = if is_test() { 1 } else { EPOCHS };
    let lda = Lda::topics(topics).sampler(SamplerKind::FPlus).epochs(epochs).seed(1);
    let outcome = lda.train(&corpus, |_: &EpochReport| Flow::Continue).expect("it can be trained");
    let counts = outcome.model.counts().expect("it has counts").clone();
    (0..counts.num_words()).map(|word| counts.word(word).iter().collect()).collect()
}

/// Size in the encoding of LDA*.
fn plain_size(topics: u32, row: &Row) -> usize {
    let most = row.iter().map(|entry| entry.1).max().unwrap_or(0);
    let width = match most {
        0..256 => 1,
        256..65_536 => 2,
        _ => 4,
    };
    let sparse = row.len() * (2 + width);
    let dense = topics as usize * width;
    4 + 1 + sparse.min(dense)
}

#[expect(clippy::print_stdout, reason = "it is the result")]
fn table(all: &[(u32, Vec<Row>)]) {
    println!(
        "| K | rows | entries | tokens an entry | bytes an entry | LDA* | 32-bit rows | ratio |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (topics, rows) in all {
        let code = RowCode::new(*topics);
        let entries: usize = rows.iter().map(Vec::len).sum();
        let tokens: u64 = rows.iter().flatten().map(|entry| u64::from(entry.1)).sum();
        let each = |bytes: usize| bytes as f64 / entries as f64;
        let size = each(rows.iter().map(|row| code.size(row)).sum());
        let plain = each(rows.iter().map(|row| plain_size(*topics, row)).sum());
        // The end of each row is stored next to its entries.
        let whole = each(8 * entries + 4 * rows.len());
        println!(
            "| {topics} | {} | {entries} | {:.2} | {size:.2} | {plain:.2} | {whole:.2} | {:.2} |",
            rows.len(),
            tokens as f64 / entries as f64,
            whole / size
        );
    }
}

fn wire(c: &mut Criterion) {
    let all: Vec<(u32, Vec<Row>)> = TOPICS.iter().map(|&topics| (topics, rows(topics))).collect();
    table(&all);
    for (topics, rows) in &all {
        let code = RowCode::new(*topics);
        let entries: usize = rows.iter().map(Vec::len).sum();
        let mut bytes = Vec::new();
        rows.iter().for_each(|row| code.encode(row, &mut bytes));
        let mut group = c.benchmark_group("encode");
        group.throughput(Throughput::Bytes(8 * entries as u64));
        group.bench_function(BenchmarkId::from_parameter(topics), |b| {
            let mut to = Vec::with_capacity(bytes.len());
            b.iter(|| {
                to.clear();
                rows.iter().for_each(|row| code.encode(row, &mut to));
                black_box(to.len())
            });
        });
        group.finish();
        let mut group = c.benchmark_group("decode");
        group.throughput(Throughput::Bytes(8 * entries as u64));
        group.bench_function(BenchmarkId::from_parameter(topics), |b| {
            let mut row = Row::new();
            b.iter(|| {
                let mut from = &bytes[..];
                while !from.is_empty() {
                    code.decode(&mut from, &mut row).expect("as it was written");
                    black_box(&row);
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, wire);
criterion_main!(benches);
