//! Nodes that crash: the run restarts, and ends with the bits of one process.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use lda_dist::cluster::SnapshotWriter;
use lda_dist::snapshot::{LATEST, Latest, encode_latest};
use lda_dist::storage::{Memory, Storage, StorageError};
use lda_transport::sim::{Chaos, FaultWindow};

use super::*;

/// A run of eight epochs with a checkpoint every second epoch.
pub(super) fn spec(corpus: &Corpus, workers: u32) -> Setup {
    let options = Options { shards: 4, partitions: 5, rounds: 4, servers: 2, ..Options::default() };
    setup(corpus, workers, options).epochs(8).evaluate_every(1).checkpoint_every(2).prefetch(0)
}

/// A world of nodes with this storage.
pub(super) fn world(
    setup: &Setup,
    stored: &InMemory,
    storage: &Arc<impl Storage + 'static>,
    network: Network,
    seed: u64,
) -> World<Node> {
    world_with(setup, stored, storage, network, seed, |config| config)
}

/// As [`world`], with changed configurations of the endpoints.
pub(super) fn world_with(
    setup: &Setup,
    stored: &InMemory,
    storage: &Arc<impl Storage + 'static>,
    network: Network,
    seed: u64,
    change: impl Fn(Config) -> Config + Copy + 'static,
) -> World<Node> {
    let mut world = World::new(&SimOptions { seed, network, ..SimOptions::default() });
    for id in (0..1 + setup.options.servers + setup.workers).map(NodeId) {
        let setup = setup.clone().prefetch(setup.prefetch + (id.0 % 3) as u16);
        let (stored, storage) = (stored.clone(), Arc::clone(storage));
        world.add(id, move |birth| {
            let snapshot_writer = SnapshotWriter::now(Arc::clone(&storage) as Arc<dyn Storage>);
            let node = Role::new(setup.clone(), id, stored.clone(), Some(snapshot_writer));
            let (incarnation, configuration) = (birth.incarnation, setup.fingerprint());
            let identity = Identity { incarnation, role: node.number(), run: 1, configuration };
            let config = Config { queue: 3, ..Config::new(identity) };
            (change(Config { retry: Some(Duration::from_millis(50)), ..config }), node)
        });
    }
    world
}

/// Last report of each epoch.
fn last(reports: &[Report]) -> BTreeMap<u32, Report> {
    reports.iter().map(|report| (report.epoch, report.clone())).collect()
}

/// Checks the end of a run against one process, for the epochs that the master has reported.
pub(super) fn check(found: &End, expected: &End, what: &str) {
    assert!(found.tokens == expected.tokens, "{what}: topics");
    assert!(found.rows == expected.rows, "{what}: rows");
    check_master(found, expected, what);
}

/// Checks the state of the master.
fn check_master(found: &End, expected: &End, what: &str) {
    assert!(found.collected == expected.rows, "{what}: gathered rows");
    assert_eq!(found.totals, expected.totals, "{what}");
    assert_eq!(found.priors, expected.priors, "{what}");
    let all = last(&expected.reports);
    for (epoch, report) in last(&found.reports) {
        let of_epoch = &all[&epoch];
        let bytes = report.bytes;
        assert!(may_move(bytes, of_epoch, expected), "{what}: epoch {epoch}: {bytes:?}");
        assert_eq!(report.non_zeros, of_epoch.non_zeros, "{what}: epoch {epoch}");
        let (found, expected) = (report.log_joint.unwrap(), of_epoch.log_joint.unwrap());
        assert!((found / expected - 1.0).abs() < 1e-12, "{what}: epoch {epoch}");
    }
}

/// Runs with crashes for some time, and then without them to the end.
pub(super) fn survive(world: &mut World<Node>, chaos: Chaos, time: Duration) {
    world.set_chaos(chaos);
    let end = world.now() + time;
    while world.now() < end && !is_finished(world) {
        world.run_for(Duration::from_millis(1));
    }
    world.set_chaos(Chaos::default());
    world.heal();
    run(world);
}

/// Whether no node has crashed since the run finished, and so lost its state.
fn is_whole(world: &World<Node>, setup: &Setup) -> bool {
    let knows = |id| match world.program(id) {
        Some(Role::Server(server)) => server.rows().is_some(),
        Some(Role::Worker(worker)) => !worker.shards().is_empty(),
        Some(Role::Master(_)) => true,
        None => false,
    };
    (0..1 + setup.options.servers + setup.workers).map(NodeId).all(knows)
}

/// Sums over some histories.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub attempts: u32,
    /// Histories that restarted from a checkpoint.
    pub further: u32,
    /// Histories at whose end all nodes have their state.
    pub whole: u32,
}

impl Tally {
    /// Runs a history with crashes of any node and, for even seeds only, a good network. It must
    /// end as one process does.
    pub fn add(&mut self, corpus: &Corpus, setup: &Setup, expected: &End, seed: u64) {
        let stored = InMemory::new(corpus.clone(), setup.options.shards).unwrap();
        let spell = |every, lasting| {
            let (every, lasting) = (Duration::from_millis(every), Duration::from_millis(lasting));
            Some(FaultWindow { every, lasting })
        };
        let lossy =
            Network { loss: 0.05, duplication: 0.05, reordering: 0.2, ..Network::default() };
        let storage = Arc::new(Memory::default());
        let network = if seed.is_multiple_of(2) { Network::default() } else { lossy };
        let mut world = world(setup, &stored, &storage, network, seed);
        let crashes = spell(40 + 20 * (seed % 7), 30);
        let cuts = spell(300, 50).filter(|_| seed.is_multiple_of(3));
        let silences = spell(300, 50).filter(|_| seed.is_multiple_of(5));
        survive(&mut world, Chaos { crashes, cuts, silences }, Duration::from_secs(1));
        let what = format!("seed {seed}");
        let mut found = End::default();
        if is_whole(&world, setup) {
            self.whole += 1;
            found = of_world(&mut world, setup, &stored);
            check(&found, expected, &what);
        } else {
            world.with(MASTER, |node, _| found.collect_model(node, stored.firsts())).unwrap();
            check_master(&found, expected, &what);
        }
        self.attempts += found.reports.iter().map(|report| report.attempt).max().unwrap_or(1) - 1;
        // Epochs before a checkpoint are not repeated.
        let further = |report: &Report| report.kept > 0 && report.attempt > 1;
        self.further += u32::from(found.reports.iter().any(further));
    }
}

#[test]
fn crashes_of_any_node_leave_no_trace() {
    let corpus = corpus();
    // Long documents have proposals, which are part of a checkpoint.
    let long = Hybrid { short_length: 12, mh_steps: 2 };
    for (routing, hybrid) in [
        (Routing::Cheapest, Hybrid::default()),
        (Routing::Cheapest, long),
        (Routing::Pull, Hybrid::default()),
    ] {
        let spec = |workers| {
            let mut setup = spec(&corpus, workers);
            (setup.options.routing, setup.options.hybrid) = (routing, hybrid);
            setup.options.passes = 2;
            setup
        };
        let expected = expected(&corpus, &spec(1));
        let mut tally = Tally::default();
        for seed in 0..40 {
            tally.add(&corpus, &spec(1 + seed as u32 % 4), &expected, seed);
        }
        assert!(tally.attempts > 40 && tally.further > 13 && tally.whole > 20, "{tally:?}");
    }
}

/// Runs until the master has reported an epoch; returns the reports.
pub(super) fn run_until(world: &mut World<Node>, epoch: u32) -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    for _ in 0..100_000 {
        world.run_for(Duration::from_micros(200));
        let more = world.with(MASTER, |node, _| match node {
            Role::Master(master) => std::iter::from_fn(|| master.report()).collect(),
            _ => Vec::new(),
        });
        let mut more: Vec<Report> = more.unwrap();
        more.iter_mut().for_each(strip);
        reports.append(&mut more);
        if reports.last().is_some_and(|report| report.epoch >= epoch) {
            return reports;
        }
    }
    panic!("epoch {epoch} does not end");
}

/// Workers have the topics of the last epoch in memory, so that a lost server or master costs no epoch,
/// even without storage.
#[test]
fn a_lost_server_or_master_costs_no_epoch() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let server = NodeId(2);
    let short = Hybrid::default();
    let long = Hybrid { short_length: 12, mh_steps: 2 };
    for (staleness, hybrid, lost, storage) in [
        (0, short, vec![server], false),
        (0, short, vec![MASTER], false),
        (0, short, vec![MASTER, server], false),
        (0, short, vec![server], true),
        (2, short, vec![server], false),
        // Long documents have proposals, which are part of a checkpoint.
        (0, long, vec![MASTER, server], false),
    ] {
        let mut setup = spec(&corpus, 3).epochs(6);
        setup.options.hybrid = hybrid;
        setup.options.sync = SyncMode::rounds(staleness);
        let what = format!("staleness {staleness}, {hybrid:?}, {lost:?}, {storage}");
        let storage = storage.then(|| Arc::new(Memory::default()));
        let mut world = match &storage {
            Some(storage) => world(&setup, &stored, storage, Network::default(), 5),
            None => super::world(&setup, &stored, Network::default(), 5),
        };
        let mut reports = Vec::new();
        for epoch in 1..5 {
            reports.extend(run_until(&mut world, epoch));
            // At another moment of the next epoch each time.
            world.run_for(Duration::from_micros(700) * epoch);
            lost.iter().for_each(|&node| world.restart(node));
        }
        run(&mut world);
        let mut found = of_world(&mut world, &setup, &stored);
        reports.append(&mut found.reports);
        let epochs: Vec<u32> = reports.iter().map(|report| report.epoch).collect();
        assert_eq!(epochs, [1, 2, 3, 4, 5, 6], "{what}");
        assert!(reports.last().unwrap().attempt >= 5, "{what}");
        if staleness == 0 {
            found.reports = reports;
            check(&found, &expected(&corpus, &setup), &what);
        }
    }
}

/// A lost worker takes its topics with it.
#[test]
fn a_lost_worker_costs_the_epochs_since_the_checkpoint() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let (worker, server) = (NodeId(3), NodeId(1));
    for (storage, again) in [(true, vec![4, 5, 6, 7, 8]), (false, (1..9).collect())] {
        let setup = spec(&corpus, 2).checkpoint_every(3);
        let memory = Arc::new(Memory::default());
        let mut world = match storage {
            true => world(&setup, &stored, &memory, Network::default(), 5),
            false => super::world(&setup, &stored, Network::default(), 5),
        };
        run_until(&mut world, 5);
        world.restart(worker);
        // During the joining of the next attempt, whose topics all workers have.
        world.run_for(Duration::from_millis(3));
        world.restart(server);
        run(&mut world);
        let found = of_world(&mut world, &setup, &stored);
        let epochs: Vec<u32> = found.reports.iter().map(|report| report.epoch).collect();
        assert_eq!(epochs, again, "{storage}");
        check(&found, &expected(&corpus, &setup), &format!("{storage}"));
    }
}

#[test]
fn a_run_continues_from_its_checkpoint() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let storage = Arc::new(Memory::default());
    let short = spec(&corpus, 2).epochs(4);
    run(&mut world(&short, &stored, &storage, Network::default(), 1));
    assert_eq!(
        storage.read(LATEST).unwrap(),
        encode_latest(short.run(), Latest { epoch: 4, before: 2 }).as_bytes()
    );
    // With other numbers of workers and servers, on which a checkpoint does not depend.
    let mut long = spec(&corpus, 3);
    long.options.servers = 3;
    let mut world = world(&long, &stored, &storage, Network::default(), 2);
    run(&mut world);
    let found = of_world(&mut world, &long, &stored);
    assert_eq!(found.reports.iter().map(|report| report.epoch).collect::<Vec<_>>(), [5, 6, 7, 8]);
    check(&found, &expected(&corpus, &spec(&corpus, 1)), "gone on");
    // Checkpoints of earlier epochs than the last two are removed.
    let kept = |epoch: u32| {
        (0..4)
            .filter(|shard| storage.has(&format!("topics-{epoch:08}-{shard:05}")).unwrap())
            .count()
    };
    assert_eq!([2, 4, 6, 8].map(kept), [0, 0, 4, 4]);
}

#[test]
fn a_snapshot_of_another_run_is_refused() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let setup = spec(&corpus, 1);
    let failed = |storage: &Arc<Memory>| {
        let mut world = world(&setup, &stored, storage, Network::default(), 1);
        world.run_for(Duration::from_secs(2));
        let failed = |id| world.program(NodeId(id)).and_then(Role::failed);
        let first = (0..4).find_map(failed).unwrap().to_string();
        assert!(!is_finished(&world));
        first
    };
    let storage = Arc::new(Memory::default());
    storage
        .write(LATEST, encode_latest(setup.run() ^ 1, Latest { epoch: 4, before: 2 }).as_bytes())
        .unwrap();
    assert!(failed(&storage).contains("with other topics, priors, seed, documents or shards"));
    storage.write(LATEST, b"lda-dist").unwrap();
    assert!(failed(&storage).contains("snapshot latest: it is damaged, or not a snapshot"));
    storage
        .write(LATEST, encode_latest(setup.run(), Latest { epoch: 4, before: 0 }).as_bytes())
        .unwrap();
    assert!(failed(&storage).contains("snapshot topics-00000004-00000"));
}

#[test]
fn a_worker_that_learns_last_of_a_restarted_server_restarts_too() {
    let corpus = corpus();
    let setup = spec(&corpus, 2);
    let expected = expected(&corpus, &spec(&corpus, 1));
    let stored = InMemory::new(corpus, 4).unwrap();
    let (server, worker) = (NodeId(1), NodeId(3));
    for seed in 0..5 {
        let storage = Arc::new(Memory::default());
        let mut world = world(&setup, &stored, &storage, Network::default(), seed);
        world.run_for(Duration::from_millis(10));
        // The others restart with the new server, while the worker still sends requests to the old
        // one.
        world.change_way(worker, server, |way| way.detection_delay = Duration::from_secs(1));
        world.cut(worker, server);
        world.restart(server);
        world.run_for(Duration::from_millis(10));
        world.mend(worker, server);
        run(&mut world);
        let found = of_world(&mut world, &setup, &stored);
        check(&found, &expected, &format!("seed {seed}"));
        assert_eq!(found.reports.last().unwrap().attempt, 3, "seed {seed}");
    }
}

/// A storage that refuses to write objects whose names begin in one way, and to read those of another.
#[derive(Debug, Default)]
pub(super) struct Full {
    pub(super) storage: Memory,
    pub(super) unwritten: &'static [&'static str],
    pub(super) unread: &'static [&'static str],
}

/// An error if the name begins like one of these.
fn refuse(name: &str, refused: &[&str]) -> Result<(), StorageError> {
    if !refused.iter().any(|refused| name.starts_with(refused)) {
        return Ok(());
    }
    let error = io::Error::from(io::ErrorKind::StorageFull);
    Err(StorageError::Io { place: name.to_owned(), error })
}

impl Storage for Full {
    fn read(&self, name: &str) -> Result<Vec<u8>, StorageError> {
        refuse(name, self.unread).and_then(|()| self.storage.read(name))
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
        refuse(name, self.unwritten).and_then(|()| self.storage.write(name, content))
    }

    fn has(&self, name: &str) -> Result<bool, StorageError> {
        self.storage.has(name)
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.storage.remove(name)
    }
}

#[test]
fn an_incomplete_checkpoint_is_not_used() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let setup = spec(&corpus, 3);
    // Topics of shard 1 after epoch 4.
    let storage = Arc::new(Full { unwritten: &["topics-00000004-00001"], ..Full::default() });
    let mut world = world(&setup, &stored, &storage, Network::default(), 1);
    run(&mut world);
    let found = of_world(&mut world, &setup, &stored);
    check(&found, &expected(&corpus, &setup), "full");
    // Workers report the checkpoint of an epoch with its last round.
    let kept: Vec<u32> = found.reports.iter().map(|report| report.kept).collect();
    assert_eq!(kept, [0, 2, 2, 2, 2, 6, 6, 8]);
    let trouble = |id| match world.with(id, |node, _| match node {
        Role::Worker(worker) => worker.trouble(),
        _ => None,
    }) {
        Some(Some(trouble)) => trouble.to_string().contains("topics-00000004-00001"),
        _ => false,
    };
    assert_eq!((0..6).map(NodeId).map(trouble).filter(|it| *it).count(), 1);
}

/// Runs 16 histories with crashes of any node, with one to four workers. `setup` makes the setup of a number of
/// workers; all runs must end as one process does.
pub(super) fn survive_crashes(corpus: &Corpus, setup: impl Fn(u32) -> Setup) {
    let expected = expected(corpus, &setup(1));
    let mut tally = Tally::default();
    for seed in 0..16 {
        tally.add(corpus, &setup(1 + seed as u32 % 4), &expected, seed);
    }
    assert!(tally.attempts > 16 && tally.further > 4 && tally.whole > 8, "{tally:?}");
}

/// Runs eight epochs of two workers, of which one is lost in the fifth and reads the checkpoint of the third.
/// The run must end as one process does. Returns the storage.
pub(super) fn survive_a_lost_worker(corpus: &Corpus, setup: impl Fn(u32) -> Setup) -> Arc<Memory> {
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let setup = |workers| setup(workers).checkpoint_every(3);
    let storage = Arc::new(Memory::default());
    let mut world = world(&setup(2), &stored, &storage, Network::default(), 5);
    let mut reports = run_until(&mut world, 5);
    world.restart(setup(2).worker(0));
    run(&mut world);
    let mut found = of_world(&mut world, &setup(2), &stored);
    assert!(found.reports.iter().any(|report| report.attempt > 1 && report.epoch == 4));
    reports.append(&mut found.reports);
    found.reports = reports;
    check(&found, &expected(corpus, &setup(1)), "a lost worker");
    storage
}
