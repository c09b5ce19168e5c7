//! Rounds that overlap: the bits are those of any order, and counts as old as it says.

use lda_core::eval::log_joint;
use lda_dist::job::Job;
use lda_dist::placement::Partitioner;
use lda_dist::shard::Hybrid;
use lda_dist::together::{Options, Routing, Together, TogetherError};

use super::{check_counts, corpus, hash, job, topics};

const LONG: Hybrid = Hybrid { short_length: 20, mh_steps: 2 };

fn options(rounds: u16, slack: u16) -> Options {
    let partitions = u32::from(rounds).max(9);
    let cut = Options { shards: 4, partitions, rounds, servers: 3, ..Options::default() };
    Options { slack, ..cut }
}

#[test]
fn counts_are_those_of_the_topics() {
    let corpus = corpus(60, 50, 20);
    for (rounds, slack, hybrid) in
        [(8, 1, Hybrid::default()), (4, 1, LONG), (4, 3, Hybrid::default()), (12, 2, LONG)]
    {
        for routing in [Routing::Cheapest, Routing::Pull, Routing::Push] {
            let options = Options { routing, hybrid, ..options(rounds, slack) };
            for topics in [3, 300] {
                let job = job(&corpus, topics);
                let mut narrow = Together::<u16>::new(&job, &corpus, &options).unwrap();
                let mut wide = Together::<u32>::new(&job, &corpus, &options).unwrap();
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
fn no_order_of_shards_matters() {
    let corpus = corpus(80, 40, 15);
    let job = job(&corpus, 100);
    let run = |order: [usize; 4], options: &Options| {
        let mut run = Together::<u16>::new(&job, &corpus, options).unwrap();
        let bytes = [0; 3].map(|_| run.epoch_in_order(&order).unwrap());
        (topics(&run), bytes)
    };
    for (rounds, slack) in [(8, 1), (4, 2), (2, 1)] {
        for hybrid in [Hybrid::default(), LONG] {
            let options = Options { hybrid, ..options(rounds, slack) };
            let first = run([0, 1, 2, 3], &options);
            assert!(first == run([3, 2, 1, 0], &options) && first == run([1, 3, 0, 2], &options));
        }
    }
}

#[test]
fn bits_are_those_of_versions_before() {
    let corpus = corpus(200, 120, 25);
    let job = job(&corpus, 300);
    let ranges = |options| Options { partitioner: Partitioner::SkewAware, ..options };
    let after = |options: Options| {
        let mut run = Together::<u16>::new(&job, &corpus, &ranges(options)).unwrap();
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
    // Slack is no other number of rounds.
    assert_ne!(after(options(8, 1)), after(options(8, 0)));
}

#[test]
fn with_rounds_enough_the_likelihood_is_that_of_no_slack() {
    let corpus = corpus(600, 300, 30);
    let mean = |options: &Options| {
        let run = |seed| {
            let job = Job::new(20, 300, 0.2.into(), 0.02, seed).unwrap();
            let mut run = Together::<u16>::new(&job, &corpus, options).unwrap();
            (0..60).for_each(|_| {
                run.epoch().unwrap();
            });
            log_joint(&run, job.alpha(), job.beta()).unwrap().total()
        };
        (0..6).map(run).sum::<f64>() / 6.0
    };
    let of = |rounds, slack| {
        let cut = Options { shards: 8, partitions: 32, rounds, servers: 2, ..Options::default() };
        mean(&Options { slack, ..cut })
    };
    let expected = of(8, 0);
    let away = |rounds, slack| of(rounds, slack) / expected - 1.0;
    for (rounds, slack) in [(16, 1), (32, 3)] {
        let away = away(rounds, slack);
        assert!(away.abs() < 0.006, "{rounds} rounds, {slack}: {away}");
    }
    // What more rounds are for.
    let away = away(8, 6);
    assert!(away > 0.01, "too few rounds: {away}");
}

#[test]
fn more_slack_than_rounds_is_refused() {
    let corpus = corpus(20, 20, 5);
    let job = job(&corpus, 3);
    let refused =
        |rounds, slack| Together::<u16>::new(&job, &corpus, &options(rounds, slack)).unwrap_err();
    assert_eq!(refused(4, 4), TogetherError::Slack { slack: 4, rounds: 4 });
    assert_eq!(
        refused(2, 3).to_string(),
        "a slack of 3 rounds, of 2 an epoch: give less than there are"
    );
    assert_eq!(refused(1, 1), TogetherError::Slack { slack: 1, rounds: 1 });
}
