//! A staleness that is only bounded: counts stay those of the topics, one shard has the bits of
//! bulk-synchronous rounds, and few rounds cost less likelihood than with exact staleness.

use lda_core::eval::log_joint;
use lda_dist::config::{Hybrid, Options, Routing, SAMPLERS};
use lda_dist::in_process::InProcess;
use lda_dist::spec::ModelSpec;
use lda_dist::sync::SyncMode;

use super::{check_counts, corpus, spec, topics};

const LONG: Hybrid = Hybrid { short_length: 20, mh_steps: 2 };
const ROUTINGS: [Routing; 3] = [Routing::Cheapest, Routing::Pull, Routing::Push];

#[test]
fn counts_are_those_of_the_topics() {
    let corpus = corpus(60, 50, 20);
    for (rounds, staleness, hybrid) in [(1, 0, LONG), (4, 1, Hybrid::default()), (8, 3, LONG)] {
        for (routing, passes) in ROUTINGS.into_iter().zip([1, 2, 1]) {
            for sampler in SAMPLERS {
                let sync = SyncMode::bounded(staleness);
                let cut = Options { shards: 4, partitions: 9, rounds, sync, ..Options::default() };
                let sampler = sampler.into();
                let options = Options { servers: 3, routing, passes, hybrid, sampler, ..cut };
                let spec = spec(&corpus, 40);
                let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
                for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]] {
                    run.epoch_in_order(&order).unwrap();
                    check_counts(&run, &corpus);
                }
            }
        }
    }
}

#[test]
fn one_shard_has_the_bits_of_bulk_synchronous_rounds() {
    let corpus = corpus(80, 60, 20);
    let spec = spec(&corpus, 50);
    for (routing, hybrid) in ROUTINGS.into_iter().zip([LONG, Hybrid::default(), LONG]) {
        for rounds in [1, 4] {
            let after = |sync| {
                let cut = Options { shards: 1, partitions: 9, rounds, sync, ..Options::default() };
                let options = Options { servers: 2, routing, hybrid, ..cut };
                let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
                let bytes = [0; 4].map(|_| run.epoch().unwrap());
                (topics(&run), bytes)
            };
            let expected = after(SyncMode::rounds(0));
            assert!(after(SyncMode::bounded(0)) == expected, "{routing:?}, {rounds} rounds");
        }
    }
}

#[test]
fn few_rounds_cost_less_than_with_exact_staleness() {
    let corpus = corpus(600, 300, 30);
    let mean = |sync, routing| {
        let run = |seed| {
            let spec = ModelSpec::new(20, 300, 0.2.into(), 0.02, seed).unwrap();
            let cut = Options { shards: 8, partitions: 32, rounds: 8, ..Options::default() };
            let options = Options { servers: 2, sync, routing, ..cut };
            let mut run = InProcess::<u16>::new(&spec, &corpus, &options).unwrap();
            (0..60).for_each(|_| {
                run.epoch().unwrap();
            });
            log_joint(&run, spec.alpha(), spec.beta()).unwrap().total()
        };
        (0..6).map(run).sum::<f64>() / 6.0
    };
    for routing in [Routing::Pull, Routing::Push] {
        let expected = mean(SyncMode::rounds(0), routing);
        let away = |sync| mean(sync, routing) / expected - 1.0;
        let (exact, bounded) = (away(SyncMode::rounds(6)), away(SyncMode::bounded(6)));
        assert!(exact > 0.01, "{routing:?}, exact staleness: {exact}");
        // It may even be better than a barrier, as shards read each other's changes within a round.
        assert!((-0.02..0.004).contains(&bounded), "{routing:?}, bounded staleness: {bounded}");
    }
}
