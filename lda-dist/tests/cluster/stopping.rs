//! Nodes that stop: the epoch ends, its checkpoint is written, and no epoch is repeated.

use std::sync::Arc;

use lda_dist::storage::{Memory, Storage};

use lda_transport::rpc::Window;

use super::recovery::{check, spec, world, world_with};
use super::*;

/// Runs until epoch `epoch` has begun.
fn run_until_epoch(world: &mut World<Node>, epoch: u32) {
    run_until(world, |world| match world.program(MASTER) {
        Some(Role::Master(master)) => master.round().epoch == epoch,
        _ => false,
    });
}

fn run_until(world: &mut World<Node>, is_so: impl Fn(&World<Node>) -> bool) {
    for _ in 0..1_000_000 {
        if is_so(world) {
            return;
        }
        world.run_for(Duration::from_micros(100));
    }
    panic!("it never is");
}

fn stopped(world: &World<Node>, id: NodeId) -> Option<u32> {
    world.program(id).and_then(Role::stopped)
}

fn all(setup: &Setup) -> impl Iterator<Item = NodeId> + use<> {
    (0..1 + setup.options.servers + setup.workers).map(NodeId)
}

/// Epochs of which the topics of shards 0 to 3 are stored.
fn kept(storage: &Memory, setup: &Setup) -> Vec<u32> {
    let has =
        |epoch: u32, shard: u16| storage.has(&format!("topics-{epoch:08}-{shard:05}")).unwrap();
    (0..=setup.epochs).filter(|&epoch| (0..4).any(|shard| has(epoch, shard))).collect()
}

#[test]
fn stopped_nodes_are_awaited_and_no_epoch_is_repeated() {
    let corpus = corpus();
    let setup = spec(&corpus, 3);
    let expected = expected(&corpus, &spec(&corpus, 1));
    let lossy = Network { loss: 0.05, duplication: 0.05, reordering: 0.2, ..Network::default() };
    for seed in 0..20 {
        let stored = InMemory::new(corpus.clone(), 4).unwrap();
        let storage = Arc::new(Memory::default());
        let network = if seed % 2 == 0 { Network::default() } else { lossy };
        let mut world = world(&setup, &stored, &storage, network, seed);
        let (id, epoch) = (NodeId(1 + seed as u32 % 5), 1 + seed as u32 % 7);
        run_until_epoch(&mut world, epoch);
        world.with(id, |node, cx| node.stop(cx)).unwrap();
        run_until(&mut world, |world| world.program(id).is_some_and(Role::is_finished));
        let what = format!("seed {seed}: {id} in epoch {epoch}");
        let at = stopped(&world, id).unwrap();
        assert!((epoch..8).contains(&at), "{what}");
        world.crash(id);
        world.run_for(Duration::from_millis(20));
        world.restart(id);
        run(&mut world);
        assert!(all(&setup).all(|id| stopped(&world, id).is_none()), "{what}");
        let found = of_world(&mut world, &setup, &stored);
        check(&found, &expected, &what);
        let epochs: Vec<u32> = found.reports.iter().map(|report| report.epoch).collect();
        assert_eq!(epochs, [1, 2, 3, 4, 5, 6, 7, 8], "{what}");
        assert_eq!(found.reports.last().unwrap().attempt, 2, "{what}");
        assert_eq!(kept(&storage, &setup), [at.max(6), 8], "{what}");
    }
}

#[test]
fn a_stopped_master_stops_all_nodes_and_the_run_continues_later() {
    let corpus = corpus();
    let setup = spec(&corpus, 2);
    let expected = expected(&corpus, &spec(&corpus, 1));
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    for epoch in 1..8 {
        let storage = Arc::new(Memory::default());
        let mut first = world(&setup, &stored, &storage, Network::default(), epoch.into());
        run_until_epoch(&mut first, epoch);
        first.with(MASTER, |node, cx| node.stop(cx)).unwrap();
        run_until(&mut first, |world| {
            all(&setup).all(|id| world.program(id).is_some_and(Role::is_finished))
        });
        for id in all(&setup) {
            assert_eq!(stopped(&first, id), Some(epoch), "{id}");
        }
        let mut second = world(&setup, &stored, &storage, Network::default(), 100);
        run(&mut second);
        let found = of_world(&mut second, &setup, &stored);
        check(&found, &expected, "gone on");
        assert_eq!(found.reports.first().unwrap().epoch, epoch + 1);
        assert_eq!(kept(&storage, &setup), [epoch.max(6), 8], "after {epoch}");
    }
}

#[test]
fn a_stopped_run_without_checkpoints_starts_over() {
    let corpus = corpus();
    let setup = setup(&corpus, 2, Options { shards: 2, ..Options::default() });
    let stored = InMemory::new(corpus, 2).unwrap();
    let mut world = super::world(&setup, &stored, Network::default(), 1);
    run_until_epoch(&mut world, 2);
    world.with(MASTER, |node, cx| node.stop(cx)).unwrap();
    run_until(&mut world, |world| {
        all(&setup).all(|id| world.program(id).is_some_and(Role::is_finished))
    });
    assert!(all(&setup).all(|id| stopped(&world, id) == Some(0)));
}

#[test]
fn a_node_can_stop_before_all_are_ready() {
    let corpus = corpus();
    let setup = spec(&corpus, 2);
    let stored = InMemory::new(corpus, 4).unwrap();
    let storage = Arc::new(Memory::default());
    let mut world = world(&setup, &stored, &storage, Network::default(), 1);
    world.crash(NodeId(3));
    for id in [NodeId(1), NodeId(4), MASTER] {
        world.run_for(Duration::from_millis(100));
        world.with(id, |node, cx| node.stop(cx)).unwrap();
        run_until(&mut world, |world| stopped(world, id) == Some(0));
    }
}

#[test]
fn the_permission_to_end_passes_a_full_queue() {
    let corpus = corpus();
    let setup = spec(&corpus, 2);
    let stored = InMemory::new(corpus, 4).unwrap();
    let storage = Arc::new(Memory::default());
    let narrow = |config| Config { window: Window { requests: 2, bytes: 1 << 20 }, ..config };
    let mut world = world_with(&setup, &stored, &storage, Network::default(), 1, narrow);
    let (ends, crashes) = (NodeId(3), NodeId(4));
    run_until_epoch(&mut world, 1);
    let restart = |world: &mut World<Node>| {
        world.restart(crashes);
        world.run_for(Duration::from_millis(2));
    };
    // It takes no part in one attempt after another.
    world.silence(MASTER, ends);
    (0..10).for_each(|_| restart(&mut world));
    world.with(ends, |node, cx| node.stop(cx)).unwrap();
    (0..3).for_each(|_| restart(&mut world));
    world.unsilence(MASTER, ends);
    run_until(&mut world, |world| stopped(world, ends).is_some());
    world.restart(ends);
    run(&mut world);
}

#[test]
fn a_released_node_ignores_a_later_start() {
    let corpus = corpus();
    let setup = spec(&corpus, 2);
    let stored = InMemory::new(corpus, 4).unwrap();
    let (ends, crashes) = (NodeId(3), NodeId(4));
    for seed in 0..10 {
        let storage = Arc::new(Memory::default());
        let mut world = world(&setup, &stored, &storage, Network::default(), seed);
        run_until_epoch(&mut world, 1);
        // It receives the start of another attempt after the permission to end.
        let detour = Duration::from_millis(40);
        world.change_way(MASTER, ends, |way| (way.reordering, way.detour) = (1.0, detour));
        world.restart(crashes);
        world.run_for(Duration::from_millis(1));
        world.change_way(MASTER, ends, |way| way.reordering = 0.0);
        world.with(ends, |node, cx| node.stop(cx)).unwrap();
        world.run_for(Duration::from_millis(1));
        world.restart(crashes);
        run_until(&mut world, |world| stopped(world, ends).is_some());
        world.run_for(Duration::from_secs(1));
        assert!(stopped(&world, ends).is_some(), "seed {seed}");
        world.restart(ends);
        run(&mut world);
    }
}

#[test]
fn a_run_that_ends_early_has_the_bits_of_a_shorter_one_also_after_restarts() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let divided = |workers, routing| {
        let mut setup = spec(&corpus, workers);
        setup.options.routing = routing;
        // After the last epoch rows are needed that were not evaluated before.
        setup.evaluate_every(4)
    };
    // Whether an epoch is the last is known before its last round.
    let cases =
        [Routing::Cheapest, Routing::Pull].map(|routing| [(routing, 0, 5), (routing, 3, 6)]);
    for (seed, (routing, number, epochs)) in (0..16).zip(cases.into_iter().flatten().cycle()) {
        let setup = divided(2, routing);
        let expected = expected(&corpus, &divided(1, routing).epochs(epochs));
        let storage = Arc::new(Memory::default());
        let mut world = world(&setup, &stored, &storage, Network::default(), seed);
        run_until(&mut world, |world| match world.program(MASTER) {
            Some(Role::Master(master)) => {
                (master.round().epoch, master.round().number) == (5, number)
            }
            _ => false,
        });
        let end_early = |world: &mut World<Node>| {
            let ended = world.with(MASTER, |node, _| match node {
                Role::Master(master) => master.end_early(),
                _ => panic!("node {MASTER} is the master"),
            });
            ended.unwrap();
        };
        end_early(&mut world);
        // Epochs are sampled again, and another call does not end the run after one of them.
        world.restart(NodeId(1 + seed as u32 % 4));
        for _ in 0..200 {
            world.run_for(Duration::from_micros(100));
            end_early(&mut world);
        }
        run(&mut world);
        let found = of_world(&mut world, &setup, &stored);
        let what = format!("seed {seed}, {routing:?}, round {number}");
        assert!(found.tokens == expected.tokens && found.rows == expected.rows, "{what}");
        assert!(found.collected == expected.rows && found.totals == expected.totals, "{what}");
        assert_eq!(found.reports.last().unwrap().epoch, epochs, "{what}");
    }
}
