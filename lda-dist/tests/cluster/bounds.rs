//! Memory of nodes under extreme skew stays below the bounds in the documentation of
//! `lda_dist::cluster`.

use std::collections::BTreeSet;

use lda_dist::in_process::Event;
use lda_dist::placement::{DocumentLengths, WordStats};
use lda_dist::plan::{cut, place};
use lda_dist::request::Kind;

use super::*;

const TOPICS: u32 = 300;
const WORDS: u32 = 400;
/// Bytes per topic id.
const T: u64 = 2;

/// Corpora of extreme skew, with the name of the skew.
fn skewed() -> Vec<(&'static str, Corpus)> {
    let mut rng = Xoshiro256PlusPlus::from_seed(5);
    let mut words = |number: u32| (0..number).map(|_| rng.below(WORDS)).collect::<Vec<u32>>();
    let hot: Vec<Vec<u32>> = (0..1500).map(|_| [vec![0; 6], words(3)].concat()).collect();
    let mut huge: Vec<Vec<u32>> = (0..100).map(|_| words(5)).collect();
    huge.push(words(20_000));
    let alike = words(12);
    let alike: Vec<Vec<u32>> = (0..1500).map(|_| alike.clone()).collect();
    let even: Vec<Vec<u32>> = (0..400).map(|_| words(30)).collect();
    // Every id below the vocabulary size is a word of some document.
    let corpus = |mut documents: Vec<Vec<u32>>| {
        documents.push(vec![WORDS - 1]);
        Corpus::from_tokens(documents).unwrap()
    };
    vec![
        ("a word in all documents", corpus(hot)),
        ("a document with most tokens", corpus(huge)),
        ("documents that are alike", corpus(alike)),
        ("nothing", corpus(even)),
    ]
}

fn divided(corpus: &Corpus, workers: u32, routing: Routing, staleness: u16) -> Setup {
    let cut = Options { shards: 4, partitions: 8, rounds: 8, servers: 2, ..Options::default() };
    let options =
        Options { routing, sync: SyncMode::rounds(staleness), max_pushed_len: 5000, ..cut };
    let spec = ModelSpec::new(TOPICS, corpus.num_words() as u32, 0.1.into(), BETA, 3).unwrap();
    setup(corpus, workers, options).spec(spec)
}

/// Bytes of a row of counts of this many tokens.
fn row(tokens: u64) -> u64 {
    4 * (tokens.min(TOPICS.into()) + 16) + 132
}

/// Bytes of the sampler for a shard's partition of this many tokens, whose words have rows of these
/// numbers of tokens.
fn bench(tokens: u64, rows: &[u64]) -> u64 {
    let of_row = |&tokens: &u64| 8 * tokens.min(TOPICS.into()) + row(tokens) + 16;
    2 * ((32 + 3 * T) * tokens + rows.iter().map(of_row).sum::<u64>()) + 40 * u64::from(TOPICS)
}

/// The documented bounds for the largest worker and the largest server.
fn bounds(corpus: &Corpus, setup: &Setup) -> Memory {
    let Setup { options, spec, .. } = setup;
    let frequencies = corpus.word_frequencies();
    let placement =
        place(spec, options, &WordStats::of(corpus), DocumentLengths::of(corpus)).unwrap();
    let firsts = cut(corpus, options.shards).unwrap();
    let (topics, rounds) = (u64::from(TOPICS), u64::from(options.sync.staleness()) + 1);
    // Tokens of the largest partition of a shard, and the largest part of them in one request.
    let (mut largest, mut requested) = (0, 0);
    let mut of_shards = Vec::new();
    for ends in firsts.windows(2) {
        let lengths: Vec<u64> = (ends[0]..ends[1]).map(|d| corpus.doc_length(d)).collect();
        let (mut by_partition, mut words) = (vec![0; placement.num_partitions()], BTreeSet::new());
        for (word, count) in (ends[0]..ends[1]).flat_map(|d| corpus.document(d).iter()) {
            by_partition[placement.partition(word) as usize] += u64::from(count);
            words.insert(word);
        }
        let of_partition = by_partition.into_iter().max().unwrap();
        largest = largest.max(of_partition);
        let read = lengths.iter().map(|&length| 64 + 16 * length.min(topics) + row(length));
        requested = requested.max(read.sum::<u64>() + 48 * of_partition);
        let rows: u64 = lengths.iter().map(|&length| row(length)).sum();
        let (tokens, words) = (lengths.iter().sum::<u64>(), words.len() as u64);
        let numbers = 20 * lengths.len() as u64 + 8 * words + 4 * topics * (3 + rounds);
        of_shards.push((4 + 3 * T) * tokens + rows + numbers + 256);
    }
    let rows_of = |partition: u32| -> Vec<u64> {
        placement.words(partition).map(|word| frequencies[word as usize]).collect()
    };
    let partitions = 0..placement.num_partitions() as u32;
    let on_bench = partitions.clone().map(|of| bench(largest, &rows_of(of))).max().unwrap();
    let of_worker = |worker: u32| -> u64 {
        setup.shards(worker).into_iter().map(|shard| of_shards[usize::from(shard)]).sum()
    };
    let of_server = |server: u32| -> u64 {
        let own = partitions.clone().filter(|&of| placement.server(of) == server);
        let rows: Vec<u64> = own.flat_map(rows_of).collect();
        let entries: u64 = rows.iter().map(|&tokens| tokens.min(topics)).sum();
        let (words, shards) = (rows.len() as u64, u64::from(options.shards));
        let version = 16 * entries + 9 * words;
        (1 + rounds) * version + 4 * (3 + shards) * words + 16 * entries
    };
    let at_once = u64::from(options.partitions.div_ceil(options.rounds.into()));
    let sampled = u64::from(options.shards) * at_once * largest;
    let threads = setup.threads as u64;
    let worker = (0..setup.workers).map(of_worker).max().unwrap();
    let server = (0..options.servers).map(of_server).max().unwrap();
    Memory {
        worker: worker + threads * (on_bench + (1 + u64::from(setup.prefetch)) * requested),
        server: server + threads * (on_bench + requested) + rounds * (64 * sampled + 4 * topics),
    }
}

#[test]
fn memory_stays_below_the_documented_bounds() {
    for (what, corpus) in skewed() {
        for (workers, routing, staleness) in [
            (1, Routing::Cheapest, 0),
            (3, Routing::Cheapest, 1),
            (2, Routing::Pull, 0),
            (4, Routing::Push, 3),
        ] {
            let threads = if staleness == 1 { 2 } else { 1 };
            let setup = divided(&corpus, workers, routing, staleness).threads(threads);
            let stored = InMemory::new(corpus.clone(), setup.options.shards).unwrap();
            let mut reports = Vec::new();
            let watch = |node: &mut Node| {
                if let Role::Master(master) = node {
                    reports.extend(std::iter::from_fn(|| master.report()));
                }
            };
            run_local::<u16, _>(&setup, &stored, None, None, watch).unwrap();
            let bounds = bounds(&corpus, &setup);
            let heaviest = |of: fn(&Memory) -> u64| {
                reports.iter().map(|report| of(&report.memory)).max().unwrap()
            };
            let (worker, server) = (heaviest(|it| it.worker), heaviest(|it| it.server));
            assert!(worker <= bounds.worker, "{what}: {worker} of {}", bounds.worker);
            assert!(server <= bounds.server, "{what}: {server} of {}", bounds.server);
            // A bound far above the memory would not test anything.
            let threads = threads as u64;
            let are_near = bounds.worker < 6 * threads * worker;
            assert!(are_near && bounds.server < 50 * threads * server, "{what}");
        }
    }
}

#[test]
fn a_push_takes_no_more_bytes_than_rows() {
    for (what, corpus) in skewed() {
        let setup = divided(&corpus, 1, Routing::Cheapest, 0);
        let mut run = InProcess::<u16>::new(&setup.spec, &corpus, &setup.options).unwrap();
        for _ in 0..3 {
            // Of all partitions, to include the one that was requested.
            let rows = run.servers().iter().flat_map(|server| {
                (0..8).filter_map(|partition| {
                    let mut bytes = Vec::new();
                    server.rows(partition, &mut bytes).ok().map(|()| bytes.len() as u64)
                })
            });
            let largest = rows.max().unwrap();
            let mut most = 0;
            run.epoch_watched(&mut |happening| {
                if let Event::Exchange(seen) = happening
                    && seen.kind == Kind::Push
                {
                    most = most.max(seen.request + seen.reply);
                }
            })
            .unwrap();
            // Sizes are rounded, and those of tokens are estimates.
            assert!(most <= 2 * largest + largest / 2 + 64, "{what}: {most} of {largest}");
        }
    }
}
