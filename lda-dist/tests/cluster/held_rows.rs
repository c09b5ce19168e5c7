//! Rows that stay at a worker while its shards sample them: the same bits, and fewer bytes.

use lda_dist::cluster::Assignment;
use lda_dist::config::SAMPLERS;
use lda_dist::placement::Partitioner;

use super::*;

/// Options with which rows may stay, also with rounds that overlap and rounds without visits.
fn divisions() -> Vec<Options> {
    let cut = Options { shards: 4, servers: 3, routing: Routing::Pull, ..Options::default() };
    let divide = |(partitions, rounds, staleness)| {
        let sync = SyncMode::rounds(staleness);
        Options { partitions, rounds, sync, ..cut }
    };
    [(4, 4, 0), (13, 6, 0), (13, 12, 2)].map(divide).to_vec()
}

/// The default assignment, and one in which shards that take turns are at different workers.
fn assignments(workers: u32) -> Vec<Assignment> {
    let apart: Vec<u32> = (0..4).map(|shard| shard % workers).collect();
    vec![Assignment::default(), apart.into()]
}

#[test]
fn rows_that_stay_leave_no_trace() {
    let corpus = corpus();
    let bad = Network { loss: 0.1, duplication: 0.1, reordering: 0.3, ..Network::default() };
    let samplers = [SamplerKind::FPlus, SamplerKind::Alias, SamplerKind::ZenHybrid];
    for (options, sampler) in divisions().into_iter().zip(samplers) {
        for partitioner in [Partitioner::Balanced, Partitioner::Range] {
            let options = Options { partitioner, sampler: sampler.into(), ..options };
            let of = |workers| setup(&corpus, workers, options).epochs(4).evaluate_every(1);
            let expected = expected(&corpus, &of(1));
            let stored = InMemory::new(corpus.clone(), options.shards).unwrap();
            for (workers, network) in [(1, Network::default()), (2, bad), (3, bad), (4, bad)] {
                for assignment in assignments(workers) {
                    let mut setup = of(workers);
                    setup.assignment = assignment;
                    let mut world = world(&setup, &stored, network, u64::from(workers));
                    run(&mut world);
                    let found = of_world(&mut world, &setup, &stored);
                    assert!(found.is_like(&expected), "{workers} workers, {setup:?}");
                }
            }
        }
    }
}

/// Rows of many topics are lists, and the order of a list decides between draws. Pulled lists are sorted.
#[test]
fn lists_that_stay_have_the_order_of_pulled_ones() {
    let mut rng = Xoshiro256PlusPlus::from_seed(5);
    let mut corpus = |documents, length, words| {
        let document = |_| (0..length).map(|_| rng.below(words)).collect::<Vec<_>>();
        Corpus::from_tokens((0..documents).map(document).collect::<Vec<_>>()).unwrap()
    };
    let frequent_words = corpus(80, 40, 25);
    // F+LDA visits these by document.
    let rare_words = corpus(16, 200, 400);
    for (corpus, sampler) in SAMPLERS
        .into_iter()
        .map(|sampler| (&frequent_words, sampler))
        .chain([(&rare_words, SamplerKind::FPlus)])
    {
        let stored = InMemory::new(corpus.clone(), 4).unwrap();
        let cut = Options { shards: 4, partitions: 4, rounds: 4, ..Options::default() };
        let options = Options { routing: Routing::Pull, sampler: sampler.into(), ..cut };
        let mut setup = setup(corpus, 1, options);
        let words = corpus.num_words() as u32;
        setup.spec = ModelSpec::new(3000, words, 0.05.into(), BETA, 3).unwrap();
        let expected = expected(corpus, &setup);
        let mut world = world(&setup, &stored, Network::default(), 1);
        run(&mut world);
        assert!(of_world(&mut world, &setup, &stored).is_like(&expected), "{sampler}");
    }
}

/// A worker with many shards moves about the rows of a worker with one.
#[test]
fn the_rows_of_several_shards_travel_once() {
    let documents = (0..400).map(|d: u32| (0..20).map(move |t| (d * 7 + t * t * 3) % 300));
    let corpus = Corpus::from_tokens(documents).unwrap();
    let moved = |shards, workers| {
        let cut = Options { shards, partitions: 16, rounds: shards, ..Options::default() };
        let options = Options { routing: Routing::Pull, ..cut };
        let setup = setup(&corpus, workers, options).epochs(3).evaluate_every(0);
        let stored = InMemory::new(corpus.clone(), shards).unwrap();
        let mut world = world(&setup, &stored, Network::default(), 1);
        run(&mut world);
        let found = of_world(&mut world, &setup, &stored);
        // In the first epoch, shards begin in the middle of a turn.
        let Bytes { rows, gained, .. } = found.reports[1].bytes;
        (rows as f64, gained as f64)
    };
    let (rows, deltas) = moved(2, 2);
    let (rows_of_eight, deltas_of_eight) = moved(8, 2);
    let (rows_of_all, deltas_of_all) = moved(8, 8);
    let all = [rows, rows_of_eight, rows_of_all, deltas, deltas_of_eight, deltas_of_all];
    assert!(rows_of_eight < 1.1 * rows && deltas_of_eight < 1.1 * deltas, "{all:?}");
    assert!(rows_of_all > 3.0 * rows && deltas_of_all > 1.5 * deltas, "{all:?}");
    // The only worker pulls them once for the whole run, and pushes at its end.
    assert_eq!(moved(8, 1), (0.0, 0.0));
}
