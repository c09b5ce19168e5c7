//! Workers that change between two rounds of an epoch: the same bits as without a change, and no round twice.

use std::sync::Arc;

use lda_core::train::SamplerOptions;
use lda_dist::cluster::{CheckpointError, Phase};
use lda_dist::snapshot::{MidEpochId, SnapshotId};
use lda_dist::spec::Round;
use lda_dist::storage::{Memory, Storage};

use super::elastic::{Run, elastic};
use super::priors::{by_size, learnt};
use super::recovery::Full;
use super::*;

/// The round that is open, or the joining.
fn round(run: &Run) -> Round {
    match run.world.program(MASTER) {
        Some(Role::Master(master)) => master.round(),
        _ => panic!("there is no master"),
    }
}

/// Runs until a round of an epoch is sampled.
fn until_round(run: &mut Run, epoch: u32, number: u16) {
    run.until(|run| (round(run).epoch, round(run).number) == (epoch, number));
}

/// Objects within an epoch that are stored.
fn left_over(storage: &dyn Storage, setup: &Setup) -> Vec<String> {
    let names = (0..setup.epochs).flat_map(|epoch| {
        (1..setup.options.rounds).flat_map(move |rounds| {
            (0..7).map(move |shard| {
                MidEpochId { of: SnapshotId { run: 0, epoch, shard }, rounds }.name()
            })
        })
    });
    names.filter(|name| storage.has(name).unwrap()).collect()
}

/// Epochs that were reported, with the number of workers and the attempt.
fn found(reports: &[Report]) -> Vec<(u32, u32, u32)> {
    reports.iter().map(|report| (report.epoch, report.workers, report.attempt)).collect()
}

/// A worker leaves in one epoch, and another number of them takes part in the next ones.
#[test]
fn a_worker_leaves_at_the_end_of_the_round() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let bad = Network { loss: 0.05, duplication: 0.05, reordering: 0.2, ..Network::default() };
    let kinds = SAMPLERS.into_iter().map(SamplerOptions::from).enumerate();
    for (at, sampler) in kinds {
        for routing in [Routing::Pull, Routing::Push, Routing::Cheapest] {
            let mut setup = elastic(&corpus, 5);
            (setup.options.sampler, setup.options.routing) = (sampler, routing);
            let setup = [|setup| setup, learnt, by_size][at % 3](setup);
            let storage = Arc::new(Memory::default());
            let network = if at % 2 == 0 { bad } else { Network::default() };
            let mut run = Run::new(&setup, &stored, &storage, network, &[0, 1, 2, 3], at as u64);
            until_round(&mut run, 2, 2);
            run.stop(1);
            run.until(|run| run.has_ended(1));
            assert!(run.reports.len() < 2, "it does not wait for the epoch's end");
            until_round(&mut run, 4, 5);
            run.world.restart(setup.worker(1));
            run.stop(0);
            run.stop(3);
            run.until(|run| run.has_ended(0) && run.has_ended(3));
            assert!(run.reports.len() < 4);
            let reports = run.finish(&corpus, &stored, &format!("{sampler:?}, {routing:?}"));
            let found = found(&reports);
            assert_eq!(found[..3], [(1, 4, 1), (2, 3, 2), (3, 3, 2)], "{found:?}");
            assert_eq!(found.iter().map(|it| it.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
            assert!(reports.iter().all(|report| report.sampled == corpus.num_tokens()));
            assert_eq!(left_over(&*storage, &setup), [""; 0]);
        }
    }
}

/// Otherwise rows whose form depends on the epoch's history would be other ones after a change.
#[test]
fn rows_of_all_forms_move() {
    let mut rng = Xoshiro256PlusPlus::from_seed(5);
    let document = |at: u32| {
        let length = [9, 60, 400, 1500][at as usize % 4];
        (0..length).map(|_| rng.below(60)).collect::<Vec<_>>()
    };
    let corpus = Corpus::from_tokens((0..14).map(document).collect::<Vec<_>>()).unwrap();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    for topics in [300, 900] {
        let setup = elastic(&corpus, 4);
        let spec = ModelSpec::new(topics, 60, 0.1.into(), BETA, 3).unwrap();
        let setup = setup.spec(spec);
        let storage = Arc::new(Memory::default());
        let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], 1);
        for (epoch, number, worker) in [(1, 3, 2), (2, 1, 3), (3, 5, 0)] {
            until_round(&mut run, epoch, number);
            run.stop(worker);
            run.until(|run| run.has_ended(worker));
        }
        let reports = run.finish(&corpus, &stored, &format!("{topics} topics"));
        assert_eq!(found(&reports), [(1, 3, 2), (2, 2, 3), (3, 1, 4), (4, 1, 4)]);
    }
}

/// Workers that come share one change per epoch, as each costs a restart.
#[test]
fn workers_that_come_share_a_change() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let setup = elastic(&corpus, 4);
    let storage = Arc::new(Memory::default());
    let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0], 2);
    until_round(&mut run, 2, 1);
    run.world.restart(setup.worker(1));
    run.until(|run| round(run).attempt == 2);
    assert_eq!(run.reports.len(), 1);
    until_round(&mut run, 2, 5);
    run.world.restart(setup.worker(2));
    run.world.restart(setup.worker(3));
    let reports = run.finish(&corpus, &stored, "workers come");
    assert_eq!(found(&reports), [(1, 1, 1), (2, 2, 2), (3, 4, 3), (4, 4, 3)]);
}

/// Otherwise a crash soon after a change would cost the rounds before it.
#[test]
fn a_crash_after_a_change_costs_no_round_before_it() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let setup = elastic(&corpus, 4);
    // A server, a worker that stays, and one that does not come back.
    for (seed, lost, comes_back) in [(0, 1, true), (1, 3, true), (2, 5, false)] {
        let storage = Arc::new(Memory::default());
        let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], seed);
        until_round(&mut run, 2, 3);
        run.stop(3);
        run.until(|run| round(run).attempt == 2);
        until_round(&mut run, 2, 5);
        let lost = NodeId(lost);
        run.world.crash(lost);
        if comes_back {
            run.world.restart(lost);
        } else {
            run.give_up(lost.0 - setup.worker(0).0);
        }
        run.until(|run| round(run).attempt == 3);
        let joining = round(&run);
        assert_eq!((joining.epoch, joining.joins_after()), (1, Some(4)), "{lost}");
        let reports = run.finish(&corpus, &stored, &format!("{lost} crashes"));
        let workers = if comes_back { 3 } else { 2 };
        assert_eq!(found(&reports)[..2], [(1, 4, 1), (2, workers, 3)]);
        assert_eq!(left_over(&*storage, &setup), [""; 0]);
    }
}

/// Options with which an epoch cannot go on at other workers.
#[test]
fn workers_change_at_the_end_of_an_epoch_that_cannot_go_on_elsewhere() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let options = elastic(&corpus, 4).options;
    let excluding = SamplerOptions::FPlus { exclude_from: Some(2) };
    for options in [
        Options { hybrid: Hybrid { short_length: 12, mh_steps: 2 }, ..options },
        Options { sampler: excluding, ..options },
        Options { sync: SyncMode::rounds(1), rounds: 7, ..options },
    ] {
        let setup = elastic(&corpus, 4).options(options);
        let storage = Arc::new(Memory::default());
        let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], 4);
        until_round(&mut run, 2, 2);
        run.stop(1);
        run.until(|run| run.has_ended(1));
        assert_eq!(run.reports.len(), 2, "it waits for the epoch's end");
        run.until(|run| is_finished(&run.world));
        assert_eq!(found(&run.reports), [(1, 4, 1), (2, 4, 1), (3, 3, 2), (4, 3, 2)]);
    }
    // The run waits when too few workers are left, and that is better after an epoch.
    let setup = elastic(&corpus, 4).min_workers(4);
    let storage = Arc::new(Memory::default());
    let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], 4);
    until_round(&mut run, 2, 2);
    run.stop(1);
    run.until(|run| run.has_ended(1));
    assert_eq!(run.reports.len(), 2);
    run.world.restart(setup.worker(1));
    run.finish(&corpus, &stored, "too few workers");
}

#[test]
fn workers_change_later_if_a_round_cannot_be_written() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let setup = elastic(&corpus, 4);
    // One shard of those of worker 1.
    let storage = Full { unwritten: &["rounds-00000001-00003-00002"], ..Full::default() };
    let storage = Arc::new(storage);
    let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], 4);
    until_round(&mut run, 2, 2);
    run.stop(3);
    until_round(&mut run, 2, 4);
    let trouble = [0, 1, 2, 3].map(|worker| {
        let worker = run.world.with(setup.worker(worker), |node, _| match node {
            Role::Worker(worker) => worker.trouble().map(|trouble| trouble.to_string()),
            _ => None,
        });
        worker.unwrap().unwrap_or_default()
    });
    assert!(trouble[1].contains("a checkpoint is not written"), "{trouble:?}");
    assert!([0, 2, 3].iter().all(|&worker| trouble[worker].is_empty()), "{trouble:?}");
    run.until(|run| run.has_ended(3));
    assert_eq!(run.reports.len(), 2);
    let reports = run.finish(&corpus, &stored, "a full storage");
    assert_eq!(found(&reports), [(1, 4, 1), (2, 4, 1), (3, 3, 2), (4, 3, 2)]);
    assert_eq!(left_over(&*storage, &setup), [""; 0], "nor is what the others have written left");
}

#[test]
fn the_run_goes_back_if_a_round_cannot_be_read() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let setup = elastic(&corpus, 6).checkpoint_every(2);
    let storage = Arc::new(Full { unread: &["rounds-00000003-00004-00002"], ..Full::default() });
    let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], 4);
    until_round(&mut run, 4, 3);
    run.stop(0);
    run.until(|run| round(run).attempt == 3);
    let trouble = run.world.with(MASTER, |node, _| match node {
        Role::Master(master) => master.trouble(),
        _ => None,
    });
    let trouble = trouble.flatten().unwrap();
    assert!(
        matches!(trouble, CheckpointError::MidEpoch { epoch: 4, rounds: 4, before: 2, .. }),
        "{trouble}"
    );
    let reports = run.finish(&corpus, &stored, "a round that cannot be read");
    let epochs: Vec<u32> = reports.iter().map(|report| report.epoch).collect();
    assert_eq!(epochs, [1, 2, 3, 3, 4, 5, 6]);
}

/// The master is stopped while workers write: the whole run stops at the epoch's end, from which it goes on.
#[test]
fn a_run_that_stops_meanwhile_loses_nothing() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let setup = elastic(&corpus, 6).checkpoint_every(0);
    let storage = Arc::new(Memory::default());
    let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], 4);
    until_round(&mut run, 3, 3);
    run.stop(1);
    run.until(|run| run.world.program(MASTER).map(Role::phase) == Some(Phase::Keeping));
    assert_eq!(round(&run).epoch, 3);
    run.world.with(MASTER, |node, cx| node.stop(cx)).unwrap();
    run.until(|run| is_finished(&run.world));
    let stopped = run.world.program(MASTER).and_then(Role::stopped);
    assert_eq!(stopped, Some(3));
}
