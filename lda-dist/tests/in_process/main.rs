//! Rounds in one process: counts are those of the topics, the order of shards does not matter, and
//! the law is the model's.

mod bounded;
mod hybrid;
mod priors;
mod pseudo_counts;
mod samplers;
mod staleness;

use std::collections::BTreeMap;
use std::sync::Arc;

use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_core::counts::{DocumentCounts, WordCounts};
use lda_core::eval::log_joint;
use lda_core::random::Xoshiro256PlusPlus;
use lda_core::train::{PseudoCounts, SamplerKind, Start, TrainOptions, Trainer};
use lda_dist::config::{Hybrid, Options, Routing};
use lda_dist::in_process::{Event, Exchange, InProcess, InProcessError};
use lda_dist::placement::Partitioner;
use lda_dist::request::Kind;
use lda_dist::spec::{ModelSpec, SpecError};
use lda_dist::stats::Bytes;
use lda_dist::sync::SyncMode;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Documents of a few topics each, words of very different frequency.
fn corpus(documents: usize, words: u32, mean: u32) -> Corpus {
    let mut rng = Xoshiro256PlusPlus::from_seed(3);
    let mut document = |_| {
        let theme = rng.below(8);
        let length = 1 + rng.below(2 * mean);
        let mut word = |_| {
            // The smaller of two numbers, so that low words are frequent.
            let word = rng.below(words).min(rng.below(words));
            if rng.below(4) == 0 { word } else { (word / 8 * 8 + theme).min(words - 1) }
        };
        (0..length).map(&mut word).collect::<Vec<_>>()
    };
    Corpus::from_tokens((0..documents).map(&mut document).collect::<Vec<_>>()).unwrap()
}

fn spec(corpus: &Corpus, topics: u32) -> ModelSpec {
    ModelSpec::new(topics, corpus.num_words() as u32, 0.2.into(), 0.02, 9).unwrap()
}

/// Topics of all tokens, sorted by document and word.
fn topics<T: TopicIndex>(run: &InProcess<T>) -> Vec<(u32, u32, u32)> {
    let mut tokens = Vec::new();
    run.for_each(|document, word, topic| tokens.push((document, word, topic)));
    tokens.sort_unstable();
    tokens
}

/// Checks that rows and totals are the counts of the topics, and that the tokens are those of the
/// corpus.
fn check_counts<T: TopicIndex>(run: &InProcess<T>, corpus: &Corpus) {
    let tokens = topics(run);
    let (mut words, mut documents) = (BTreeMap::new(), BTreeMap::new());
    let mut totals = vec![0u32; run.totals().len()];
    let mut pairs: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for &(document, word, topic) in &tokens {
        *words.entry((word, topic)).or_insert(0u32) += 1;
        *documents.entry((document, topic)).or_insert(0u32) += 1;
        totals[topic as usize] += 1;
        *pairs.entry((document, word)).or_default() += 1;
    }
    assert_eq!(run.totals(), totals);
    let mut found = BTreeMap::new();
    run.visit_words(0..corpus.num_words(), &mut |word, row| {
        found.extend(row.iter().map(|&(topic, count)| ((word as u32, topic), count)));
    });
    assert_eq!(found, words);
    let mut found = BTreeMap::new();
    run.visit_documents(0..corpus.num_documents(), &mut |document, row| {
        found.extend(row.iter().map(|&(topic, count)| ((document as u32, topic), count)));
    });
    assert_eq!(found, documents);
    let of_corpus = (0..).zip(corpus.documents()).flat_map(|(document, words)| {
        words.iter().map(move |(word, count)| ((document, word), count)).collect::<Vec<_>>()
    });
    assert!(pairs.into_iter().eq(of_corpus), "other tokens than the corpus has");
}

const PARTITIONERS: [Partitioner; 5] = [
    Partitioner::Balanced,
    Partitioner::SkewAware,
    Partitioner::Range,
    Partitioner::Hash,
    Partitioner::Rendezvous,
];

#[test]
fn counts_are_those_of_the_topics() {
    let corpus = corpus(60, 50, 20);
    let routings = [Routing::Cheapest, Routing::Pull, Routing::Push, Routing::Push];
    let max_pushed_len = [1000, 1000, 20, 1000];
    for ((partitioner, routing), max_pushed_len) in
        PARTITIONERS.into_iter().zip(routings).zip(max_pushed_len)
    {
        let cut = Options { shards: 4, partitions: 9, rounds: 4, servers: 3, ..Options::default() };
        // More ranges are merged into partitions.
        let ranges = if max_pushed_len == 20 { 0 } else { 30 };
        let options = Options { partitioner, routing, max_pushed_len, ranges, ..cut };
        for topics in [3, 40, 300] {
            let spec = spec(&corpus, topics);
            let mut narrow = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
            let mut wide = InProcess::<u32>::new(&spec, &corpus, &options).unwrap();
            check_counts(&narrow, &corpus);
            let start = self::topics(&narrow);
            for _ in 0..4 {
                let bytes = narrow.epoch().unwrap();
                wide.epoch().unwrap();
                check_counts(&narrow, &corpus);
                check_counts(&wide, &corpus);
                let pulls = routing != Routing::Push || max_pushed_len < 1000;
                // Rows with few topics are cheap to pull.
                let pushes = routing == Routing::Push || routing != Routing::Pull && topics == 300;
                let cheap = routing == Routing::Cheapest && topics < 300;
                assert!(cheap || (bytes.pushed > 0) == pushes, "{routing:?} {bytes:?}");
                assert_eq!((bytes.rows > 0, bytes.gained > 0), (pulls, pulls), "{bytes:?}");
            }
            assert_ne!(self::topics(&narrow), start);
        }
    }
}

#[test]
fn the_order_of_shards_does_not_matter() {
    let corpus = corpus(80, 40, 15);
    let spec = spec(&corpus, 100);
    let options = Options { shards: 5, partitions: 7, servers: 2, ..Options::default() };
    let run = |order: [usize; 5], rounds: u16| {
        let options = Options { rounds, ..options };
        let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
        let bytes = [0; 3].map(|_| run.epoch_in_order(&order).unwrap());
        (topics(&run), bytes)
    };
    for rounds in [1, 3, 5] {
        let first = run([0, 1, 2, 3, 4], rounds);
        assert!(first.1.iter().all(|bytes| bytes.pushed > 0 && bytes.rows > 0), "{:?}", first.1);
        assert!(first == run([4, 3, 2, 1, 0], rounds) && first == run([2, 0, 4, 1, 3], rounds));
    }
}

#[test]
fn a_run_starts_as_in_one_process() {
    let corpus = corpus(30, 40, 15);
    let cut = Options { shards: 3, partitions: 4, servers: 2, ..Options::default() };
    let long = Hybrid { short_length: 12, mh_steps: 1 };
    for start in Start::ALL {
        let options = TrainOptions::new(7).seed(9).sampler(SamplerKind::FPlus).start(start);
        let trainer = Trainer::new(&corpus, &options.start_degree(0.3)).unwrap();
        let assignments = trainer.assignments();
        let mut expected = Vec::new();
        for (document, words) in corpus.documents().enumerate() {
            let words = words.iter().flat_map(|(word, count)| vec![word; count as usize]);
            let topics = assignments.document(document);
            expected.extend(words.zip(topics).map(|(word, &topic)| (document as u32, word, topic)));
        }
        expected.sort_unstable();
        let words = corpus.num_words() as u32;
        let spec = ModelSpec::builder(7, words).seed(9).start(start, 0.3).build().unwrap();
        for hybrid in [Hybrid::default(), long] {
            let options = Options { hybrid, ..cut };
            let run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
            assert_eq!(topics(&run), expected, "{start:?}");
        }
    }
}

/// A hash of all topics.
fn hash<T: TopicIndex>(run: &InProcess<T>) -> u64 {
    let numbers = topics(run).into_iter().flat_map(|(d, w, k)| [d, w, k]);
    lda_core::container::checksum(&numbers.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
}

#[test]
fn bits_are_those_of_earlier_versions() {
    let corpus = corpus(200, 120, 25);
    let options = Options { shards: 4, partitions: 9, rounds: 4, servers: 3, ..Options::default() };
    let after = |topics, routing, partitioner| {
        let spec = spec(&corpus, topics);
        let options = Options { routing, partitioner, ..options };
        let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
        (0..3).for_each(|_| assert!(run.epoch().unwrap().total() > 0));
        hash(&run)
    };
    let found = [
        after(20, Routing::Pull, Partitioner::SkewAware),
        after(300, Routing::Pull, Partitioner::SkewAware),
        after(300, Routing::Cheapest, Partitioner::SkewAware),
        after(300, Routing::Push, Partitioner::SkewAware),
        after(300, Routing::Push, Partitioner::Balanced),
    ];
    let expected = [
        0xdfd1b8a09580cc0f,
        0xf42670883190cfa0,
        0x63f9b591fe406df1,
        0x641adcf9ecb34194,
        0x1b7b2af64e6e1555,
    ];
    assert_eq!(found, expected, "{found:#x?}");
}

/// Number of occurrences of every assignment in a long run.
fn observed(corpus: &Corpus, options: &Options, epochs: u32) -> Vec<u64> {
    observed_with(None, corpus, options, epochs)
}

/// The same with pseudo-counts.
fn observed_with(
    pseudo_counts: Option<&PseudoCounts>,
    corpus: &Corpus,
    options: &Options,
    epochs: u32,
) -> Vec<u64> {
    let spec = ModelSpec::builder(2, corpus.num_words() as u32).alpha(vec![0.5, 1.5]).beta(0.3);
    let spec = spec.seed(5).pseudo_counts(pseudo_counts.cloned().map(Arc::new)).build().unwrap();
    let mut run = InProcess::<u16>::new(&spec, corpus, options).unwrap();
    let mut seen = vec![0; 1 << corpus.num_tokens()];
    for epoch in 0..epochs {
        run.epoch().unwrap();
        // Epochs between two counted ones make these nearly independent.
        if epoch % 6 == 5 {
            let state = topics(&run).iter().fold(0, |code, &(_, _, topic)| code << 1 | topic);
            seen[state as usize] += 1;
        }
    }
    seen
}

/// p(z | w) of every assignment, by the definition; tokens are in the order of `topics`.
fn posterior(tokens: &[(usize, usize)], words: usize) -> Vec<f64> {
    posterior_with(&vec![[0.0; 2]; words], tokens)
}

/// The same with pseudo-counts of each word.
fn posterior_with(pseudo_counts: &[[f64; 2]], tokens: &[(usize, usize)]) -> Vec<f64> {
    let (alpha, beta, words) = ([0.5, 1.5], 0.3, pseudo_counts.len());
    let law = (0..1usize << tokens.len()).map(|code| {
        let mut documents = [[0.0; 2]; 4];
        let mut of_words = pseudo_counts.to_vec();
        let mut totals =
            [0, 1].map(|k| pseudo_counts.iter().map(|of_word| of_word[k]).sum::<f64>());
        let mut weight = 1.0;
        for (place, &(document, word)) in tokens.iter().enumerate() {
            let k = code >> (tokens.len() - 1 - place) & 1;
            weight *= (documents[document][k] + alpha[k]) * (of_words[word][k] + beta)
                / (totals[k] + beta * words as f64);
            documents[document][k] += 1.0;
            of_words[word][k] += 1.0;
            totals[k] += 1.0;
        }
        weight
    });
    let law: Vec<f64> = law.collect();
    let sum: f64 = law.iter().sum();
    law.iter().map(|weight| weight / sum).collect()
}

/// Probability of a deviation at least as large as this one.
fn p_value(seen: &[u64], law: &[f64]) -> f64 {
    let all: u64 = seen.iter().sum();
    let parts = seen.iter().zip(law).map(|(&seen, &share)| {
        let expected = share * all as f64;
        assert!(expected > 20.0, "too few for a test");
        (seen as f64 - expected).powi(2) / expected
    });
    1.0 - ChiSquared::new((seen.len() - 1) as f64).unwrap().cdf(parts.sum())
}

#[test]
fn with_one_shard_and_partition_the_law_is_the_posterior() {
    let tokens = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)];
    let corpus = Corpus::from_tokens([vec![0, 1], vec![0, 1, 2]]).unwrap();
    let law = posterior(&tokens, 3);
    for (routing, passes) in
        [(Routing::Pull, 1), (Routing::Push, 1), (Routing::Pull, 2), (Routing::Push, 3)]
    {
        let options = Options { routing, passes, ..Options::default() };
        let seen = observed(&corpus, &options, 120_000);
        let p = p_value(&seen, &law);
        assert!(p > 1e-6, "{routing:?}, {passes} passes: p = {p}: {seen:?}");
        // The test detects a law that differs a little.
        let other = posterior(&[(0, 0), (0, 1), (1, 0), (1, 1), (0, 2)], 3);
        assert!(p_value(&seen, &other) < 1e-6);
    }
}

#[test]
fn shards_reach_the_likelihood_of_one_process() {
    let corpus = corpus(600, 300, 30);
    let (topics, epochs, seeds) = (20, 60, 6);
    // Single runs differ by more than the ways of running do.
    let mean = |run: &dyn Fn(u64) -> f64| (0..seeds).map(run).sum::<f64>() / seeds as f64;
    let of_seed = |seed| ModelSpec::new(topics, 300, 0.2.into(), 0.02, seed).unwrap();
    let expected = mean(&|seed| {
        let spec = of_seed(seed);
        let options = TrainOptions::new(topics)
            .alpha(spec.alpha().clone())
            .beta(spec.beta())
            .seed(seed)
            .sampler(SamplerKind::FPlus)
            .ranges(1);
        let mut trainer = Trainer::new(&corpus, &options).unwrap();
        (0..epochs).for_each(|_| {
            trainer.epoch();
        });
        trainer.log_joint().total()
    });
    let away = |shards, rounds, routing| {
        let cut = Options { shards, partitions: 16, rounds, ..Options::default() };
        let options = Options { servers: 2, routing, ..cut };
        let found = mean(&|seed| {
            let spec = of_seed(seed);
            let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
            (0..epochs).for_each(|_| {
                run.epoch().unwrap();
            });
            log_joint(&run, spec.alpha(), spec.beta()).unwrap().total()
        });
        found / expected - 1.0
    };
    for (shards, routing) in
        [(1, Routing::Pull), (4, Routing::Pull), (4, Routing::Push), (16, Routing::Cheapest)]
    {
        let away = away(shards, shards, routing);
        assert!(away.abs() < 0.006, "{shards} shards, {routing:?}: {away}");
    }
    // The purpose of rounds.
    let away = away(16, 1, Routing::Pull);
    assert!(away > 0.012, "one round: {away}");
}

#[test]
fn impossible_divisions_are_refused() {
    let corpus = Corpus::from_tokens((0..5).map(|d| vec![d, d + 5])).unwrap();
    let spec = spec(&corpus, 4);
    let refused =
        |options: Options| InProcess::<u16>::new(&spec, &corpus, &options).unwrap_err().to_string();
    let options = Options::default();
    assert_eq!(
        refused(Options { shards: 6, ..options }),
        "6 shards of 5 documents: use at least 1 shard, and at most one per document"
    );
    assert_eq!(
        refused(Options { servers: 11, partitions: 11, ..options }),
        "10 words for 11 servers: use at most 10 servers"
    );
    assert!(refused(Options { partitions: 1 << 16, ..options }).starts_with("65536 partitions"));
    assert_eq!(
        refused(Options { rounds: 4, partitions: 3, ..options }),
        "4 rounds of 3 partitions: use at least 1 round, at most one per partition, and at most 32,768"
    );
    let other = ModelSpec::new(4, 11, 0.1.into(), 0.1, 0).unwrap();
    let refused = InProcess::<u16>::new(&other, &corpus, &options).unwrap_err();
    assert!(matches!(refused, InProcessError::Shard(_)));
    assert_eq!(
        refused.to_string(),
        "the corpus has 10 words, but the run 11: use the vocabulary of the run"
    );
    assert_eq!(
        ModelSpec::new(0, 1, 0.1.into(), 0.1, 0).unwrap_err(),
        SpecError::Topics { topics: 0 }
    );
    assert!(ModelSpec::new(2, 1, 0.1.into(), -1.0, 0).is_err());
}

#[test]
fn watchers_see_all_bytes() {
    let corpus = corpus(80, 60, 20);
    let spec = spec(&corpus, 300);
    let options = Options { shards: 3, partitions: 6, rounds: 2, servers: 2, ..Options::default() };
    let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
    let mut seen = Bytes::default();
    let (mut ends, mut asked, mut pushed, mut rows, mut entries) = (0, 0, 0, [0; 2], [0; 2]);
    let mut at_work = None;
    let bytes = run
        .epoch_watched(&mut |happening| {
            let exchange = match happening {
                Event::Exchange(exchange) => exchange,
                Event::Begins { server } => {
                    assert!(server < 2 && at_work.replace(server).is_none());
                    return;
                }
                Event::Ends { server } => {
                    assert_eq!(at_work.take(), Some(server));
                    ends += 1;
                    return;
                }
                _ => panic!("{happening:?}"),
            };
            let Exchange { kind, request, reply, documents, .. } = exchange;
            asked += 1;
            match kind {
                Kind::Sizes => seen.sizes += request + reply,
                Kind::Push => {
                    (seen.pushed, seen.answers) = (seen.pushed + request, seen.answers + reply);
                    pushed += documents.iter().map(|it| it.tokens.len()).sum::<usize>();
                }
                Kind::Pull => {
                    (seen.routes, seen.rows) = (seen.routes + request, seen.rows + reply);
                    (rows[0], entries[0]) =
                        (rows[0] + exchange.rows, entries[0] + exchange.entries);
                }
                Kind::PushDeltas | Kind::PushRows => {
                    seen.gained += request;
                    (rows[1], entries[1]) =
                        (rows[1] + exchange.rows, entries[1] + exchange.entries);
                }
                Kind::Join => panic!("it has begun"),
            }
        })
        .unwrap();
    assert_eq!(
        (Bytes { totals: bytes.totals, ..seen }, ends - asked),
        (bytes, 4),
        "two rounds of two servers"
    );
    // Every token is pushed, or belongs to a row that was pulled.
    assert!(pushed > 0 && pushed < corpus.num_tokens() as usize);
    assert!(rows[0] == rows[1] && entries[0] >= rows[0] && entries[1] > 0, "{rows:?} {entries:?}");
    assert!(bytes.rows >= rows[0] && bytes.rows < 8 * entries[0]);
}
