//! Elastic runs: workers come and go, or are lost, and the bits are those of one process.

use std::ops::Range;
use std::sync::Arc;

use lda_dist::cluster::{Loss, LostPeer, Phase};
use lda_dist::storage::{Memory, Storage};
use lda_transport::sim::SplitMix64;

use super::recovery::{Full, check, world};
use super::*;

/// A run of up to four workers, and at least one.
pub(super) fn elastic(corpus: &Corpus, epochs: u32) -> Setup {
    let options = Options { shards: 7, partitions: 7, rounds: 7, servers: 2, ..Options::default() };
    let setup = setup(corpus, 4, options).epochs(epochs).evaluate_every(1).min_workers(1);
    setup.checkpoint_every(3)
}

/// A simulated run, with the epochs that the master has reported.
pub(super) struct Run {
    setup: Setup,
    pub world: World<Node>,
    pub reports: Vec<Report>,
}

impl Run {
    /// A run that starts with these workers.
    pub fn new(
        setup: &Setup,
        stored: &InMemory,
        storage: &Arc<impl Storage + 'static>,
        network: Network,
        workers: &[u32],
        seed: u64,
    ) -> Self {
        let mut world = world(setup, stored, storage, network, seed);
        for worker in (0..setup.workers).filter(|worker| !workers.contains(worker)) {
            world.crash(setup.worker(worker));
        }
        let mut run = Self { setup: setup.clone(), world, reports: Vec::new() };
        // The master waits for others as long as its patience.
        for worker in (0..setup.workers).filter(|worker| !workers.contains(worker)) {
            run.step();
            run.give_up(worker);
        }
        run
    }

    /// The master gives up a worker that is lost.
    pub fn give_up(&mut self, worker: u32) {
        let lost = self.setup.worker(worker);
        self.world.with(MASTER, |node, cx| {
            node.give_up(LostPeer::new(lost, Loss::Closed, Duration::ZERO, Duration::ZERO), cx);
        });
    }

    fn step(&mut self) {
        self.world.run_for(Duration::from_micros(200));
        let reports = &mut self.reports;
        self.world.with(MASTER, |node, _| {
            if let Role::Master(master) = node {
                reports.extend(std::iter::from_fn(|| master.report()));
            }
        });
        for id in self.world.living().collect::<Vec<_>>() {
            let failed = self.world.program(id).and_then(Role::failed);
            assert!(failed.is_none(), "{id}: {}", failed.unwrap());
        }
    }

    pub fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..1_000_000 {
            if is_so(self) {
                return;
            }
            self.step();
        }
        panic!("it does not happen: {:?}", self.reports.last().map(|it| (it.epoch, it.workers)));
    }

    /// The same for a worker that has crashed, if another one is taking part; else it comes back.
    fn give_up_if_enough(&mut self, worker: u32) {
        let nodes = (0..4).map(|other| self.setup.worker(other));
        let is_sampling =
            |id| self.world.program(id).is_some_and(|it| it.phase() == Phase::Sampling);
        if nodes.filter(|&id| is_sampling(id)).count() > 0 {
            self.give_up(worker);
        } else {
            self.world.restart(self.setup.worker(worker));
        }
    }

    /// Number of workers in the last epoch.
    fn workers(&self) -> u32 {
        self.reports.last().map_or(0, |report| report.workers)
    }

    pub fn stop(&mut self, worker: u32) {
        self.world.with(self.setup.worker(worker), |node, cx| node.stop(cx)).unwrap();
    }

    pub fn has_ended(&self, worker: u32) -> bool {
        let role = self.world.program(self.setup.worker(worker));
        role.is_some_and(|role| role.stopped().is_some())
    }

    /// Runs to the end, and checks the results against one process.
    pub fn finish(mut self, corpus: &Corpus, stored: &InMemory, what: &str) -> Vec<Report> {
        self.until(|run| is_finished(&run.world));
        let expected = expected(corpus, &self.setup);
        let mut end = End::default();
        let living: Vec<NodeId> = self.world.living().collect();
        for id in living {
            // Workers that have left still have shards.
            let is_over = self.world.program(id).is_some_and(|node| node.stopped().is_some());
            if !is_over {
                self.world.with(id, |node, _| end.collect_model(node, stored.firsts())).unwrap();
            }
        }
        let reports = self.reports.clone();
        self.reports.iter_mut().for_each(strip);
        end.reports = self.reports;
        check(&end, &expected, what);
        reports
    }
}

/// Otherwise topics of shards that move would be lost, or be those of another epoch.
#[test]
fn a_run_that_is_scaled_has_the_bits_of_one_that_is_not() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let bad = Network { loss: 0.05, duplication: 0.05, reordering: 0.2, ..Network::default() };
    for (seed, network) in [(1, Network::default()), (2, bad)] {
        let setup = elastic(&corpus, 24);
        let storage = Arc::new(Memory::default());
        let mut run = Run::new(&setup, &stored, &storage, network, &[0, 3], seed);
        run.until(|run| run.reports.len() >= 2);
        assert_eq!(run.workers(), 2);
        for worker in [1, 2] {
            run.world.restart(setup.worker(worker));
        }
        run.until(|run| run.workers() == 4);
        [0, 2, 3].into_iter().for_each(|worker| run.stop(worker));
        run.until(|run| run.workers() == 1 && [0, 2, 3].iter().all(|&it| run.has_ended(it)));
        for worker in [2, 3] {
            run.world.restart(setup.worker(worker));
        }
        run.until(|run| run.workers() == 3);
        let reports = run.finish(&corpus, &stored, &format!("seed {seed}"));
        // No epoch is sampled twice.
        let epochs: Vec<u32> = reports.iter().map(|report| report.epoch).collect();
        assert_eq!(epochs, (1..=24).collect::<Vec<_>>());
        let mut workers: Vec<u32> = reports.iter().map(|report| report.workers).collect();
        workers.dedup();
        assert!(workers.starts_with(&[2]) && workers.ends_with(&[1, 3]), "{workers:?}");
    }
}

/// Otherwise a worker that was out of reach meanwhile could take rounds of the new master for its own, and
/// servers could add its changes twice.
#[test]
fn attempts_of_different_masters_have_different_numbers() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let setup = elastic(&corpus, 30);
    let storage = Arc::new(Memory::default());
    let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], 3);
    run.until(|run| run.reports.len() >= 2);
    for start in 1..4 {
        let last = run.reports.last().map_or(0, |report| report.attempt);
        let nodes: Vec<NodeId> = run.world.living().collect();
        nodes.into_iter().for_each(|id| run.world.restart(id));
        run.until(|run| run.reports.last().is_some_and(|report| report.attempt != last));
        assert_eq!(run.reports.last().map(|report| report.attempt), Some(1 + start));
    }
    run.finish(&corpus, &stored, "several masters");
    // What cannot be read may be a larger number.
    storage.write("attempt", b"4x").unwrap();
    let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], 4);
    run.world.run_for(Duration::from_millis(1));
    let failed = run.world.program(MASTER).and_then(Role::failed).unwrap().to_string();
    assert!(failed.contains("snapshot attempt: it is not a number"), "{failed}");
}

/// Returns whether all epochs are done. A node that is restarted then has no state.
fn is_ending(world: &World<Node>) -> bool {
    let phase = world.program(MASTER).map(Role::phase);
    matches!(phase, Some(Phase::Collecting | Phase::Finishing | Phase::Finished))
}

#[test]
fn any_workers_at_any_time_give_the_same_bits() {
    let (changes, repeated) = come_and_go(0..40);
    assert!(changes > 100 && repeated > 10, "{changes} {repeated}");
}

#[test]
#[ignore = "minutes: .ci/extended runs it"]
fn any_workers_at_any_time_give_the_same_bits_in_a_thousand_runs() {
    let (changes, repeated) = come_and_go(40..1040);
    assert!(changes > 2500 && repeated > 250, "{changes} {repeated}");
}

/// Runs in which workers come, leave, crash and are lost at any time, one for each seed, and the master and
/// servers crash. Returns how often the number of workers changed, and how often epochs were repeated.
fn come_and_go(seeds: Range<u64>) -> (usize, usize) {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let bad = Network { loss: 0.05, duplication: 0.05, reordering: 0.2, ..Network::default() };
    let (mut changes, mut repeated) = (0, 0);
    for seed in seeds {
        let mut numbers = SplitMix64::new(seed);
        let mut setup = elastic(&corpus, 12);
        if seed % 3 == 0 {
            setup.options.hybrid = Hybrid { short_length: 12, mh_steps: 2 };
        }
        if seed % 4 == 1 {
            setup.options.routing = Routing::Pull;
        }
        let setup = setup.min_workers(1 + seed as u32 % 2);
        let storage = Arc::new(Memory::default());
        let network = if seed % 2 == 0 { Network::default() } else { bad };
        let mut run = Run::new(&setup, &stored, &storage, network, &[seed as u32 % 3, 3], seed);
        let until = run.world.now() + Duration::from_millis(300);
        while run.world.now() < until {
            run.step();
            if is_ending(&run.world) {
                break;
            }
            let worker = numbers.below(4) as u32;
            let id = setup.worker(worker);
            match (numbers.below(40), run.world.program(id)) {
                (0, Some(role)) if role.stopped().is_none() => run.stop(worker),
                (1, None) => run.world.restart(id),
                (1, Some(role)) if role.stopped().is_some() => run.world.restart(id),
                (2, Some(_)) if numbers.below(4) == 0 => run.world.restart(id),
                // It is lost, and may come back much later.
                (4, Some(role)) if seed % 2 == 0 && role.phase() == Phase::Sampling => {
                    run.world.crash(id);
                    run.give_up_if_enough(worker);
                }
                // The master, or a server.
                (3, _) if numbers.below(6) == 0 => {
                    run.world.restart(NodeId(numbers.below(3) as u32));
                }
                _ => {}
            }
        }
        // Those that have to stop may do so later.
        while !is_ending(&run.world) {
            for worker in 0..4 {
                if run.has_ended(worker) || run.world.program(setup.worker(worker)).is_none() {
                    run.world.restart(setup.worker(worker));
                }
            }
            run.step();
        }
        let reports = run.finish(&corpus, &stored, &format!("seed {seed}"));
        changes += reports.windows(2).filter(|pair| pair[0].workers != pair[1].workers).count();
        repeated += reports.windows(2).filter(|pair| pair[0].epoch >= pair[1].epoch).count();
    }
    (changes, repeated)
}

/// A machine that never returns costs no more than the epochs since the last checkpoint.
#[test]
fn a_run_goes_on_without_a_worker_that_is_lost() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    for least in [1, 2, 4] {
        let setup = elastic(&corpus, 10).min_workers(least);
        let storage = Arc::new(Memory::default());
        let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], 5);
        run.until(|run| run.reports.len() >= 4);
        let lost = setup.worker(2);
        run.world.crash(lost);
        run.world.run_for(Duration::from_millis(50));
        let needs = run.world.with(MASTER, |node, _| node.needs(lost)).unwrap();
        assert!(needs, "it takes part");
        run.give_up(2);
        if least == 4 {
            let failed = run.world.program(MASTER).and_then(Role::failed).unwrap().to_string();
            assert!(failed.contains("worker 2 has ended"), "{failed}");
            continue;
        }
        run.until(|run| run.workers() == 3);
        assert!(!run.world.with(MASTER, |node, _| node.needs(lost)).unwrap());
        if least == 2 {
            // It may come back, as another process.
            run.world.restart(lost);
            run.until(|run| run.workers() == 4);
            assert!(!run.has_ended(2));
        }
        run.finish(&corpus, &stored, &format!("at least {least}"));
    }
}

/// Otherwise a worker that comes back with the state of an earlier attempt would wait for ever.
#[test]
fn a_worker_that_was_out_of_reach_ends_and_may_be_started_again() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let setup = elastic(&corpus, 40);
    let storage = Arc::new(Memory::default());
    let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2, 3], 6);
    run.until(|run| run.reports.len() >= 4);
    let lost = setup.worker(2);
    run.world.cut(MASTER, lost);
    run.give_up(2);
    run.until(|run| run.workers() == 3);
    let failed = |run: &Run| run.world.program(lost).and_then(Role::failed).cloned();
    assert_eq!(failed(&run), None, "it does not know yet");
    run.world.mend(MASTER, lost);
    for _ in 0..100 {
        run.world.run_for(Duration::from_micros(100));
    }
    assert_eq!(failed(&run), Some(Failed::LeftBehind));
    run.world.restart(lost);
    run.until(|run| run.workers() == 4);
    assert!(!run.has_ended(2), "what was meant for the other process is no concern of this one");
    run.finish(&corpus, &stored, "out of reach");
}

/// Otherwise each epoch would end with an attempt to let a worker take part, and without progress.
#[test]
fn a_worker_is_left_out_if_topics_cannot_be_written() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let setup = elastic(&corpus, 6).min_workers(3).checkpoint_every(0);
    let storage = Arc::new(Full { unwritten: &["topics", "rounds"], ..Full::default() });
    let mut run = Run::new(&setup, &stored, &storage, Network::default(), &[0, 1, 2], 5);
    run.until(|run| run.reports.len() >= 2);
    run.world.restart(setup.worker(3));
    let reports = run.finish(&corpus, &stored, "a full storage");
    let found: Vec<(u32, u32)> =
        reports.iter().map(|report| (report.epoch, report.workers)).collect();
    assert_eq!(found, [(1, 3), (2, 3), (3, 3), (4, 3), (5, 3), (6, 3)]);
}

#[test]
fn an_elastic_run_without_storage_is_refused() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 7).unwrap();
    let setup = elastic(&corpus, 3);
    let failed = run_local::<u16, _>(&setup, &stored, None, None, |_| {}).unwrap_err().to_string();
    assert!(failed.contains("needs a storage for checkpoints"), "{failed}");
    assert_eq!(
        setup.clone().min_workers(0).check(),
        Err(ConfigError::MinWorkers { least: 0, workers: 4 })
    );
    assert_eq!(setup.min_workers(5).check(), Err(ConfigError::MinWorkers { least: 5, workers: 4 }));
}
