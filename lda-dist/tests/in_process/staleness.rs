//! Overlapping rounds: the bits do not depend on the order of shards, and counts are exactly as
//! stale as configured.

use lda_core::eval::log_joint;
use lda_dist::config::Hybrid;
use lda_dist::config::{ConfigError, Options, Routing};
use lda_dist::in_process::InProcess;
use lda_dist::placement::Partitioner;
use lda_dist::spec::ModelSpec;
use lda_dist::sync::SyncMode;

use super::{check_counts, corpus, hash, spec, topics};

const LONG: Hybrid = Hybrid { short_length: 20, mh_steps: 2 };

fn options(rounds: u16, staleness: u16) -> Options {
    let partitions = u32::from(rounds).max(9);
    let cut = Options { shards: 4, partitions, rounds, servers: 3, ..Options::default() };
    Options { sync: SyncMode::rounds(staleness), ..cut }
}

#[test]
fn counts_are_those_of_the_topics() {
    let corpus = corpus(60, 50, 20);
    for (rounds, staleness, hybrid) in
        [(8, 1, Hybrid::default()), (4, 1, LONG), (4, 3, Hybrid::default()), (12, 2, LONG)]
    {
        for routing in [Routing::Cheapest, Routing::Pull, Routing::Push] {
            let options = Options { routing, hybrid, ..options(rounds, staleness) };
            for topics in [3, 300] {
                let spec = spec(&corpus, topics);
                let mut narrow = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
                let mut wide = InProcess::<u32>::new(&spec, &corpus, &options).unwrap();
                let start = self::topics(&narrow);
                for _ in 0..4 {
                    narrow.epoch().unwrap();
                    wide.epoch().unwrap();
                    check_counts(&narrow, &corpus);
                    check_counts(&wide, &corpus);
                }
                assert_ne!(self::topics(&narrow), start);
            }
        }
    }
}

#[test]
fn the_order_of_shards_does_not_matter() {
    let corpus = corpus(80, 40, 15);
    let spec = spec(&corpus, 100);
    let run = |order: [usize; 4], options: &Options| {
        let mut run = InProcess::<u16>::new(&spec, &corpus, options).unwrap();
        let bytes = [0; 3].map(|_| run.epoch_in_order(&order).unwrap());
        (topics(&run), bytes)
    };
    for (rounds, staleness) in [(8, 1), (4, 2), (2, 1)] {
        for hybrid in [Hybrid::default(), LONG] {
            let options = Options { hybrid, ..options(rounds, staleness) };
            let first = run([0, 1, 2, 3], &options);
            assert!(first == run([3, 2, 1, 0], &options) && first == run([1, 3, 0, 2], &options));
        }
    }
}

#[test]
fn bits_are_those_of_earlier_versions() {
    let corpus = corpus(200, 120, 25);
    let spec = spec(&corpus, 300);
    let ranges = |options| Options { partitioner: Partitioner::SkewAware, ..options };
    let after = |options: Options| {
        let mut run = InProcess::<u16>::new(&spec, &corpus, &ranges(options)).unwrap();
        (0..3).for_each(|_| assert!(run.epoch().unwrap().total() > 0));
        hash(&run)
    };
    let push = Routing::Push;
    let found = [
        after(options(8, 1)),
        after(Options { routing: push, ..options(4, 2) }),
        after(Options { routing: Routing::Pull, ..options(4, 2) }),
        after(Options { hybrid: LONG, ..options(12, 2) }),
    ];
    let expected = [0x2baeff902121f968, 0x720817c0aad61b33, 0xfa069eaa45f5db28, 0xb089e384f2f6aab3];
    assert_eq!(found, expected, "{found:#x?}");
    // Staleness is not equivalent to another number of rounds.
    assert_ne!(after(options(8, 1)), after(options(8, 0)));
}

#[test]
fn with_enough_rounds_staleness_does_not_cost_likelihood() {
    let corpus = corpus(600, 300, 30);
    let mean = |options: &Options| {
        let run = |seed| {
            let spec = ModelSpec::new(20, 300, 0.2.into(), 0.02, seed).unwrap();
            let mut run = InProcess::<u16>::new(&spec, &corpus, options).unwrap();
            (0..60).for_each(|_| {
                run.epoch().unwrap();
            });
            log_joint(&run, spec.alpha(), spec.beta()).unwrap().total()
        };
        (0..6).map(run).sum::<f64>() / 6.0
    };
    let of = |rounds, staleness| {
        let cut = Options { shards: 8, partitions: 32, rounds, servers: 2, ..Options::default() };
        mean(&Options { sync: SyncMode::rounds(staleness), ..cut })
    };
    let expected = of(8, 0);
    let away = |rounds, staleness| of(rounds, staleness) / expected - 1.0;
    for (rounds, staleness) in [(16, 1), (32, 3)] {
        let away = away(rounds, staleness);
        assert!(away.abs() < 0.006, "{rounds} rounds, {staleness}: {away}");
    }
    // The purpose of more rounds.
    let away = away(8, 6);
    assert!(away > 0.01, "too few rounds: {away}");
}

#[test]
fn staleness_beyond_the_rounds_is_refused() {
    let corpus = corpus(20, 20, 5);
    let spec = spec(&corpus, 3);
    let refused = |rounds, staleness| {
        InProcess::<u16>::new(&spec, &corpus, &options(rounds, staleness)).unwrap_err()
    };
    assert_eq!(refused(4, 4), ConfigError::Staleness { staleness: 4, rounds: 4 }.into());
    assert_eq!(
        refused(2, 3).to_string(),
        "staleness of 3 rounds with 2 rounds per epoch: set it below the number of rounds"
    );
    assert_eq!(refused(1, 1), ConfigError::Staleness { staleness: 1, rounds: 1 }.into());
}
