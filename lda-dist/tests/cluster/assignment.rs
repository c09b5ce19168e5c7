//! Assignments of shards to workers other than runs of consecutive shards.

use std::sync::Arc;

use lda_dist::locality::{ShardLocation, assign};
use lda_dist::snapshot::{LATEST, Latest, encode_latest};
use lda_dist::storage::{Memory, Storage};

use super::recovery::{check, spec, world as world_that_keeps};
use super::*;

fn assigned(of: &[u32], setup: &Setup) -> Setup {
    let setup = setup.clone().assignment(of.to_vec());
    assert_eq!(setup.check(), Ok(()));
    setup
}

#[test]
fn any_assignment_gives_the_bits_of_one_process() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 5).unwrap();
    let long = Hybrid { short_length: 15, mh_steps: 2 };
    for (rounds, staleness, hybrid) in
        [(5, 0, Hybrid::default()), (5, 1, Hybrid::default()), (2, 0, long)]
    {
        let sync = SyncMode::rounds(staleness);
        let cut = Options { shards: 5, partitions: 7, rounds, sync, ..Options::default() };
        let options = Options { servers: 2, hybrid, ..cut };
        let expected = expected(&corpus, &setup(&corpus, 1, options));
        for (workers, of) in
            [(1, [0; 5]), (2, [1, 0, 1, 0, 1]), (3, [2, 2, 0, 1, 2]), (5, [4, 2, 0, 1, 3])]
        {
            let setup = assigned(&of, &setup(&corpus, workers, options));
            let mut world = world(&setup, &stored, Network::default(), u64::from(workers));
            run(&mut world);
            let found = of_world(&mut world, &setup, &stored);
            assert!(found.is_like(&expected), "{of:?}, {options:?}");
        }
    }
}

#[test]
fn run_local_uses_the_assignment() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let cut = Options { shards: 4, partitions: 6, rounds: 4, ..Options::default() };
    let whole = setup(&corpus, 1, cut);
    let expected = expected(&corpus, &whole);
    let host = |host: &str| host.to_owned();
    let held = |shard: usize| {
        let tokens = stored.read(shard as u16).unwrap().0.num_tokens();
        ShardLocation { tokens, hosts: vec![host(["a", "b"][shard % 2])] }
    };
    let held: Vec<ShardLocation> = (0..4).map(held).collect();
    let of = assign(&held, &[Some(host("b")), Some(host("a"))]).unwrap();
    assert_eq!(of, [1, 0, 1, 0]);
    let setup = assigned(&of, &whole.workers(2));
    let mut end = End::default();
    let mut reports = Vec::new();
    let watch = |node: &mut Node| {
        if let Role::Master(master) = node {
            reports.extend(std::iter::from_fn(|| master.report()));
        }
    };
    let nodes = run_local::<u16, _>(&setup, &stored, None, None, watch).unwrap();
    for (mut node, shards) in nodes.into_iter().zip([&[][..], &[], &[1, 3], &[0, 2]]) {
        if let Role::Worker(worker) = &node {
            assert!(worker.shards().iter().map(|shard| shard.number()).eq(shards.iter().copied()));
        }
        end.collect_model(&mut node, stored.firsts());
    }
    reports.iter_mut().for_each(strip);
    end.reports = reports;
    assert!(end.is_like(&expected));
}

#[test]
fn a_run_continues_with_another_assignment() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let storage = Arc::new(Memory::default());
    let short = spec(&corpus, 2).epochs(4);
    run(&mut world_that_keeps(&short, &stored, &storage, Network::default(), 1));
    assert_eq!(
        storage.read(LATEST).unwrap(),
        encode_latest(short.run(), Latest { epoch: 4, before: 2 }).as_bytes()
    );
    let long = assigned(&[2, 0, 1, 0], &spec(&corpus, 3));
    let mut world = world_that_keeps(&long, &stored, &storage, Network::default(), 2);
    world.run_for(Duration::from_millis(20));
    // A restarted worker has the same shards.
    world.restart(long.worker(0));
    run(&mut world);
    let found = of_world(&mut world, &long, &stored);
    check(&found, &expected(&corpus, &spec(&corpus, 1)), "another assignment");
    assert_eq!(found.reports.last().unwrap().epoch, 8);
}

#[test]
fn an_assignment_is_checked_and_part_of_the_fingerprint() {
    let corpus = corpus();
    let same = setup(&corpus, 2, Options { shards: 3, ..Options::default() });
    let with = |of: &[u32]| same.clone().assignment(of.to_vec());
    for of in [&[0, 1][..], &[0, 1, 2], &[1, 1, 1], &[]] {
        with(of).check().unwrap_err();
        let stored = InMemory::new(corpus.clone(), 3).unwrap();
        assert!(run_local::<u16, _>(&with(of), &stored, None, None, |_| {}).is_err());
    }
    let fingerprints =
        [same.fingerprint(), with(&[0, 1, 1]).fingerprint(), with(&[0, 0, 1]).fingerprint()];
    assert!((0..3).all(|at| fingerprints[at] != fingerprints[(at + 1) % 3]));
    // Checkpoints belong to shards, whichever worker has them.
    assert_eq!(same.run(), with(&[0, 1, 1]).run());
}
