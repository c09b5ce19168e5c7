//! Overlapping rounds in a cluster: when a slow worker delays the others, and the end of a run that
//! restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use lda_dist::spec::Round;
use lda_dist::storage::{Memory, Storage};
use lda_transport::sim::{Chaos, FaultWindow};

use super::recovery::{spec, world};
use super::*;

fn staleness(corpus: &Corpus, workers: u32, rounds: u16, sync: SyncMode) -> Setup {
    let mut setup = spec(corpus, workers);
    setup.options = Options { partitions: 8, rounds, sync, ..setup.options };
    setup
}

fn round(world: &World<Node>, id: NodeId) -> Round {
    world.program(id).unwrap().state().round
}

/// Number of rounds from one to another.
fn between(mut from: Round, to: Round, rounds: u16) -> u16 {
    let mut number = 0;
    while from < to {
        from = from.next(rounds);
        number += 1;
    }
    number
}

#[test]
fn a_slow_worker_delays_others_at_the_staleness_bound() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let exact =
        [(4, 0), (8, 1), (8, 3), (4, 3), (2, 1)].map(|(rounds, of)| (rounds, SyncMode::rounds(of)));
    let bounded = [(4, 0), (8, 3), (2, 1)].map(|(rounds, of)| (rounds, SyncMode::bounded(of)));
    for (rounds, sync) in exact.into_iter().chain(bounded) {
        let setup = staleness(&corpus, 2, rounds, sync);
        let storage = Arc::new(Memory::default());
        let mut world = world(&setup, &stored, &storage, Network::default(), 1);
        let (quick, slow, server) = (setup.worker(0), setup.worker(1), setup.server(1));
        let begun = |world: &World<Node>| {
            let has_begun = |id| round(world, id) >= Round::joining(0, 1).next(rounds);
            has_begun(quick) && has_begun(slow)
        };
        while !begun(&world) {
            world.run_for(Duration::from_micros(50));
        }
        // The worker receives no more rows from one server.
        world.silence(server, slow);
        world.run_for(Duration::from_secs(1));
        let (ahead, behind) = (round(&world, quick), round(&world, slow));
        assert_eq!(between(behind, ahead, rounds), sync.staleness(), "{ahead:?} {behind:?}");
        world.unsilence(server, slow);
        run(&mut world);
        let found = of_world(&mut world, &setup, &stored);
        if !sync.reads_newest() {
            assert!(found.is_like(&expected(&corpus, &setup)), "{rounds} rounds, {sync:?}");
        } else {
            check_counts(&found, &corpus, &format!("{rounds} rounds, {sync:?}"));
        }
    }
}

/// Checks that rows and totals are the counts of the topics, and that the tokens are those of the
/// corpus.
fn check_counts(found: &End, corpus: &Corpus, what: &str) {
    let (mut words, mut pairs) = (BTreeMap::new(), BTreeMap::new());
    let mut totals = vec![0; found.totals.len()];
    for &(document, word, topic) in &found.tokens {
        *words.entry((word, topic)).or_insert(0) += 1;
        *pairs.entry((document, word)).or_insert(0) += 1;
        totals[topic as usize] += 1;
    }
    assert_eq!(found.totals, totals, "{what}");
    let rows = found
        .rows
        .iter()
        .flat_map(|(word, row)| row.iter().map(move |&(topic, count)| ((*word, topic), count)));
    assert!(rows.eq(words), "{what}: rows");
    assert!(found.rows == found.collected, "{what}: gathered rows");
    let of_corpus = (0..).zip(corpus.documents()).flat_map(|(document, words)| {
        words.iter().map(move |(word, count)| ((document, word), count)).collect::<Vec<_>>()
    });
    assert!(pairs.into_iter().eq(of_corpus), "{what}: tokens");
}

#[test]
fn a_restarted_run_has_the_counts_of_its_topics() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let lossy = Network { loss: 0.05, duplication: 0.05, reordering: 0.2, ..Network::default() };
    let (mut attempts, mut checked) = (0, 0);
    for seed in 0..40 {
        let by = 1 + seed as u16 % 3;
        let sync = if seed % 5 < 2 { SyncMode::bounded(by) } else { SyncMode::rounds(by) };
        let mut setup = staleness(&corpus, 1 + seed as u32 % 4, 8, sync);
        if seed % 3 == 0 {
            setup.options.hybrid = Hybrid { short_length: 12, mh_steps: 2 };
        }
        let storage = Arc::new(Memory::default());
        let network = if seed % 2 == 0 { Network::default() } else { lossy };
        let mut world = world(&setup, &stored, &storage, network, seed);
        let every = Duration::from_millis(40 + 20 * (seed % 7));
        let crashes = Some(FaultWindow { every, lasting: Duration::from_millis(30) });
        world.set_chaos(Chaos { crashes, ..Chaos::default() });
        world.run_for(Duration::from_millis(400));
        world.set_chaos(Chaos::default());
        world.heal();
        run(&mut world);
        // A node that crashed after the end has no state.
        let knows = |id| match world.program(id) {
            Some(Role::Server(server)) => server.rows().is_some(),
            Some(Role::Worker(worker)) => !worker.shards().is_empty(),
            _ => true,
        };
        if (0..3 + setup.workers).map(NodeId).all(knows) {
            let found = of_world(&mut world, &setup, &stored);
            check_counts(&found, &corpus, &format!("seed {seed}"));
            attempts += found.reports.iter().map(|report| report.attempt).max().unwrap_or(1) - 1;
            checked += 1;
        }
    }
    assert!(checked > 20 && attempts > 40, "{checked} {attempts}");
}

#[test]
fn stopped_nodes_end_after_an_epoch() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    for (seed, node) in (0..12).zip([0, 1, 4, 3].into_iter().cycle()) {
        let setup = staleness(&corpus, 3, 8, SyncMode::rounds(1 + seed as u16 % 3));
        let storage = Arc::new(Memory::default());
        let mut world = world(&setup, &stored, &storage, Network::default(), seed);
        let until = |world: &mut World<Node>, is_so: &dyn Fn(&World<Node>) -> bool| {
            let is_over = (0..1_000_000).any(|_| {
                world.run_for(Duration::from_micros(30));
                is_so(world)
            });
            assert!(is_over, "seed {seed}");
        };
        // At any time within two epochs, so that some nodes have begun the next one.
        let at = Round { epoch: 3, number: (seed * 5 % 8) as u16, attempt: 1 };
        until(&mut world, &|world| round(world, MASTER) >= at);
        let id = NodeId(node);
        world.with(id, |node, cx| node.stop(cx)).unwrap();
        until(&mut world, &|world| world.program(id).is_some_and(Role::is_finished));
        let epoch = world.program(id).and_then(Role::stopped).unwrap();
        assert!((3..=4).contains(&epoch), "seed {seed}: {epoch}");
        // All workers have a checkpoint of it, even if none was due.
        let has = |shard: u16| storage.has(&format!("topics-{epoch:08}-{shard:05}")).unwrap();
        assert!((0..4).all(has), "seed {seed}");
        world.restart(id);
        if id == MASTER {
            (1..6).for_each(|id| world.restart(NodeId(id)));
        }
        run(&mut world);
        let found = of_world(&mut world, &setup, &stored);
        check_counts(&found, &corpus, &format!("seed {seed}"));
        let epochs: Vec<u32> = found.reports.iter().map(|report| report.epoch).collect();
        let first = if id == MASTER { epoch + 1 } else { 1 };
        assert_eq!(epochs, (first..=8).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn one_shard_with_a_bound_has_the_bits_of_bulk_synchronous_rounds() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 1).unwrap();
    let bad = Network { loss: 0.1, duplication: 0.1, reordering: 0.3, ..Network::default() };
    for routing in [Routing::Cheapest, Routing::Pull, Routing::Push] {
        let cut = Options { shards: 1, partitions: 7, rounds: 3, routing, ..Options::default() };
        let options = Options { servers: 3, ..cut };
        let expected = expected(&corpus, &setup(&corpus, 1, options));
        let options = Options { sync: SyncMode::bounded(0), ..options };
        let setup = setup(&corpus, 1, options);
        let mut world = super::world(&setup, &stored, bad, 3);
        run(&mut world);
        let found = of_world(&mut world, &setup, &stored);
        assert!(found.is_like(&expected), "{routing:?}");
    }
}

#[test]
fn a_bound_keeps_the_counts_of_all_routes_and_samplers() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 5).unwrap();
    let bad = Network { loss: 0.1, duplication: 0.1, reordering: 0.3, ..Network::default() };
    for (seed, sampler) in (0..).zip(SAMPLERS) {
        for (routing, rounds, staleness) in [
            (Routing::Cheapest, 2, 1),
            (Routing::Pull, 7, 3),
            (Routing::Pull, 1, 0),
            (Routing::Push, 4, 2),
        ] {
            let (sampler, sync) = (sampler.into(), SyncMode::bounded(staleness));
            let cut = Options { shards: 5, partitions: 7, rounds, sampler, ..Options::default() };
            let options = Options { servers: 2, routing, sync, ..cut };
            let setup = setup(&corpus, 1 + seed % 4, options);
            let mut world = super::world(&setup, &stored, bad, u64::from(seed));
            run(&mut world);
            let found = of_world(&mut world, &setup, &stored);
            check_counts(&found, &corpus, &format!("{options:?}"));
        }
    }
}
