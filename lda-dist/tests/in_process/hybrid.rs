//! Long documents, which WarpLDA samples.

use lda_core::eval::log_joint;
use lda_core::train::{SamplerKind, SamplerOptions, TrainOptions, Trainer};
use lda_dist::config::Hybrid;
use lda_dist::config::{ConfigError, Options, Routing};
use lda_dist::in_process::InProcess;
use lda_dist::placement::{Partitioner, Placement};
use lda_dist::shard::{RestoreError, Shard, ShardDocuments, ShardState};
use lda_dist::spec::ModelSpec;

use super::{check_counts, corpus, hash, spec, topics};

const HYBRIDS: [Hybrid; 3] = [
    Hybrid { short_length: 25, mh_steps: 1 },
    Hybrid { short_length: 10, mh_steps: 3 },
    Hybrid { short_length: 0, mh_steps: 2 },
];

#[test]
fn counts_are_those_of_the_topics() {
    let corpus = corpus(60, 50, 20);
    let cut = Options { shards: 4, partitions: 9, rounds: 4, servers: 3, ..Options::default() };
    for hybrid in HYBRIDS {
        let routings = [(Routing::Cheapest, 1), (Routing::Pull, 2), (Routing::Push, 3)];
        for (routing, passes) in routings {
            let options = Options { routing, hybrid, passes, ..cut };
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
                    // Words of long documents are pulled.
                    let pushes = hybrid.short_length > 0 && routing == Routing::Push;
                    assert!(bytes.rows > 0 && (!pushes || bytes.pushed > 0), "{bytes:?}");
                }
                let moved =
                    start.iter().zip(&self::topics(&narrow)).filter(|(a, b)| a != b).count();
                assert!(moved * 4 > start.len(), "{moved} of {} tokens", start.len());
            }
        }
    }
}

#[test]
fn the_order_of_shards_does_not_matter() {
    let corpus = corpus(80, 40, 15);
    let spec = spec(&corpus, 100);
    let options = Options { shards: 5, partitions: 7, servers: 2, ..Options::default() };
    let run = |order: [usize; 5], hybrid, rounds| {
        let options = Options { rounds, hybrid, passes: 1 + rounds as u8 / 2, ..options };
        let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
        let bytes = [0; 3].map(|_| run.epoch_in_order(&order).unwrap());
        (topics(&run), bytes)
    };
    for (hybrid, rounds) in HYBRIDS.into_iter().zip([1, 3, 5]) {
        let first = run([0, 1, 2, 3, 4], hybrid, rounds);
        assert!(first == run([4, 3, 2, 1, 0], hybrid, rounds));
        assert!(first == run([2, 0, 4, 1, 3], hybrid, rounds));
    }
}

#[test]
fn bits_are_those_of_earlier_versions() {
    let corpus = corpus(200, 120, 25);
    let cut = Options { shards: 4, partitions: 9, rounds: 4, servers: 3, ..Options::default() };
    let cut = Options { partitioner: Partitioner::SkewAware, ..cut };
    let spec = spec(&corpus, 300);
    let again = |hybrid, passes| {
        let options = Options { hybrid, passes, ..cut };
        let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
        (0..3).for_each(|_| assert!(run.epoch().unwrap().total() > 0));
        hash(&run)
    };
    let after = |hybrid| again(hybrid, 1);
    let expected = [0xfcd03ca7775b5d25, 0x7f1d4f9757cb2485, 0x311b3cb01f2ced11];
    let found = HYBRIDS.map(after);
    assert_eq!(found, expected, "{found:#x?}");
    let found = [HYBRIDS[1], Hybrid::default()].map(|hybrid| again(hybrid, 3));
    assert_eq!(found, [0x3df1e2543ddeed2d, 0xca62da44dfd8ec75], "{found:#x?}");
    // Servers make as many passes as shards.
    let pushed = |passes| {
        let options = Options { routing: Routing::Push, passes, ..cut };
        let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
        let bytes = run.epoch().unwrap();
        assert!(bytes.pushed > 0 && bytes.rows == 0, "{bytes:?}");
        topics(&run)
    };
    assert_ne!(pushed(1), pushed(2));
    // Without long documents, the bits are those of a run without the hybrid.
    assert_eq!(after(Hybrid { short_length: 50, mh_steps: 2 }), after(Hybrid::default()));
}

#[test]
fn a_checkpoint_restores_a_shard() {
    let corpus = corpus(40, 30, 20);
    let spec = spec(&corpus, 12);
    let costs = vec![1; 30];
    for hybrid in HYBRIDS {
        let shard = |partitions| {
            let placement = Placement::new(Partitioner::Range, &costs, partitions, 1).unwrap();
            let documents = ShardDocuments { corpus: &corpus, range: 5..35, first: 0 };
            Shard::<u16>::new(&spec, hybrid, &placement, 0, documents).unwrap()
        };
        let (mut one, mut other) = (shard(4), shard(7));
        // Topics follow from the documents, not from the placement of words.
        assert_eq!(one.tokens().topics(), other.tokens().topics());
        let (tokens, kept) = (one.tokens().num_tokens(), one.tokens().topics());
        let is_long = |length: &u64| *length > u64::from(hybrid.short_length);
        let long: u64 = (5..35).map(|d| corpus.doc_length(d)).filter(is_long).sum();
        assert!(one.has_long() && long > 0);
        assert_eq!(kept.len(), tokens + long as usize * usize::from(hybrid.mh_steps));
        let changed: Vec<u16> = (0..).zip(&kept).map(|(at, k)| (k + at % 5) % 12).collect();
        let state = |topics: &[u16]| ShardState { topics: topics.to_vec(), ages: Vec::new() };
        one.restore(&spec, &state(&changed)).unwrap();
        other.restore(&spec, &state(&changed)).unwrap();
        assert_eq!(one.tokens().topics(), changed);
        assert_eq!(other.tokens().topics(), changed);
        assert_eq!(
            one.tokens().log_joint(&spec).to_bits(),
            other.tokens().log_joint(&spec).to_bits()
        );
        // Each row has the counts of the document's tokens.
        let mut rows = vec![vec![0u32; 12]; 30];
        one.tokens().for_each(|document, _, topic| rows[document as usize][topic as usize] += 1);
        for (document, counts) in rows.iter().enumerate() {
            let mut row = Vec::new();
            one.tokens().row(document, &mut row);
            let expected: Vec<(u32, u32)> =
                (0..).zip(counts.iter().copied()).filter(|entry| entry.1 > 0).collect();
            assert_eq!(row, expected);
        }
        let short = RestoreError::Tokens { found: tokens, expected: kept.len() };
        assert_eq!(one.restore(&spec, &state(&kept[..tokens])), Err(short));
        let mut beyond = kept.clone();
        *beyond.last_mut().unwrap() = 12;
        assert_eq!(one.restore(&spec, &state(&beyond)), Err(RestoreError::Topic { topic: 12 }));
        assert_eq!(one.tokens().topics(), changed);
    }
}

#[test]
fn the_hybrid_reaches_the_likelihood_of_one_process() {
    let corpus = corpus(600, 300, 30);
    let (epochs, seeds) = (80, 8);
    let mean = |run: &dyn Fn(u64) -> f64| (0..seeds).map(run).sum::<f64>() / seeds as f64;
    let of_seed = |seed| ModelSpec::new(20, 300, 0.2.into(), 0.02, seed).unwrap();
    // With a larger cap, the reference would run WarpLDA's passes more often per epoch.
    let hybrid = |short_length, step_cap| SamplerOptions::Hybrid {
        steps: 1,
        step_cap,
        short_length: Some(short_length),
    };
    let expected = |sampler: SamplerOptions| {
        mean(&|seed| {
            let spec = of_seed(seed);
            let options = TrainOptions::new(20)
                .alpha(spec.alpha().clone())
                .beta(spec.beta())
                .seed(seed)
                .sampler(sampler);
            let mut trainer = Trainer::new(&corpus, &options).unwrap();
            (0..epochs).for_each(|_| {
                trainer.epoch();
            });
            trainer.log_joint().total()
        })
    };
    let found = |hybrid, passes| {
        mean(&|seed| {
            let spec = of_seed(seed);
            let cut = Options { shards: 4, partitions: 16, rounds: 4, ..Options::default() };
            let options = Options { servers: 2, hybrid, passes, ..cut };
            let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
            (0..epochs).for_each(|_| {
                run.epoch().unwrap();
            });
            log_joint(&run, spec.alpha(), spec.beta()).unwrap().total()
        })
    };
    let of = |short_length| Hybrid { short_length, mh_steps: 1 };
    let away = found(of(0), 1) / expected(SamplerKind::Warp.into()) - 1.0;
    // Over sixteen seeds it is half a per cent behind with any placement, and seeds differ by as
    // much.
    assert!(away.abs() < 0.01, "all are long: {away}");
    let away = found(of(30), 1) / expected(hybrid(30, 1)) - 1.0;
    assert!(away.abs() < 0.006, "half are: {away}");
    let away = found(of(0), 3) / expected(hybrid(0, 3)) - 1.0;
    assert!(away.abs() < 0.01, "all are, three passes: {away}");
}

#[test]
fn impossible_steps_and_passes_are_refused() {
    let corpus = corpus(5, 5, 5);
    for mh_steps in [0, 65] {
        let hybrid = Hybrid { short_length: 3, mh_steps };
        let options = Options { hybrid, ..Options::default() };
        let refused = InProcess::<u16>::new(&spec(&corpus, 3), &corpus, &options).unwrap_err();
        assert_eq!(refused, ConfigError::Steps { steps: mh_steps.into() }.into());
        assert_eq!(refused.to_string(), format!("{mh_steps} steps per token: give 1 to 64"));
    }
    for passes in [0, 65] {
        let options = Options { passes, ..Options::default() };
        let refused = InProcess::<u16>::new(&spec(&corpus, 3), &corpus, &options).unwrap_err();
        assert_eq!(refused, ConfigError::Passes { passes }.into());
        assert_eq!(refused.to_string(), format!("{passes} passes per epoch: give 1 to 64"));
    }
}
