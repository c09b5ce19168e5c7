//! Checkpoints: two of them are whole at any time, and a damaged one takes a run back to the one before.

use std::sync::Arc;
use std::sync::Mutex;

use lda_core::counts::DocumentCounts;
use lda_dist::cluster::{CheckpointError, SavedCounts, SavedTopics, run_local};
use lda_dist::config::Hybrid;
use lda_dist::snapshot::{LATEST, Latest, SnapshotId, decode, decode_latest, encode_latest};
use lda_dist::storage::{Memory, Storage, StorageError};
use lda_transport::sim::{Chaos, FaultWindow};

use super::recovery::{check, spec, survive, world};
use super::*;

/// A storage in which, whenever the latest epochs are recorded, all snapshots of both must be.
#[derive(Debug, Default)]
struct Checked {
    memory: Memory,
    run: u64,
    /// Time to write a shard's topics, for shard 0 after odd epochs, and for shard 3 after even ones.
    slowness: Duration,
    recorded: Mutex<Vec<Latest>>,
}

impl Checked {
    fn check(&self, latest: Latest) {
        let epochs = [latest.epoch, latest.before].into_iter().filter(|&epoch| epoch > 0);
        for (epoch, shard) in epochs.flat_map(|epoch| (0..4).map(move |shard| (epoch, shard))) {
            let id = SnapshotId { run: self.run, epoch, shard };
            let bytes = self.memory.read(&id.name());
            let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", id.name()));
            assert!(decode::<u16>(&id, &bytes).is_ok());
        }
    }
}

impl Storage for Checked {
    fn read(&self, name: &str) -> Result<Vec<u8>, StorageError> {
        self.memory.read(name)
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
        if name == LATEST {
            let latest = decode_latest(self.run, content).unwrap();
            self.check(latest);
            self.recorded.lock().unwrap().push(latest);
        } else if name != "options" {
            let epoch: u32 = name[7..15].parse().unwrap();
            let slow = if epoch % 2 == 1 { "-00000" } else { "-00003" };
            if name.ends_with(slow) {
                std::thread::sleep(self.slowness);
            }
        }
        self.memory.write(name, content)
    }

    fn has(&self, name: &str) -> Result<bool, StorageError> {
        self.memory.has(name)
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.memory.remove(name)
    }
}

/// A worker that still writes an earlier epoch leaves one out, and another worker a later one.
#[test]
fn a_recorded_epoch_is_whole_however_slowly_some_workers_write() {
    let corpus = corpus();
    let setup = spec(&corpus, 2).epochs(300).evaluate_every(0).checkpoint_every(1);
    let stored = InMemory::new(corpus, 4).unwrap();
    let slowness = Duration::from_millis(20);
    let checked = Arc::new(Checked { run: setup.run(), slowness, ..Checked::default() });
    let storage = Arc::clone(&checked) as Arc<dyn Storage>;
    run_local::<u16, _>(&setup, &stored, Some(&storage), None, |_| {}).unwrap();
    let recorded = checked.recorded.lock().unwrap();
    assert!(recorded.len() > 3, "{recorded:?}");
    assert!(recorded.windows(2).all(|pair| pair[1].before == pair[0].epoch), "{recorded:?}");
}

/// The same when nodes crash at any time, and write while the others wait.
#[test]
fn both_recorded_epochs_are_whole_after_crashes() {
    let corpus = corpus();
    let setup = spec(&corpus, 3).checkpoint_every(1);
    let stored = InMemory::new(corpus, 4).unwrap();
    let mut continued = 0;
    for seed in 0..20 {
        let storage = Arc::new(Checked { run: setup.run(), ..Checked::default() });
        let mut world = world(&setup, &stored, &storage, Network::default(), seed);
        let crashes =
            FaultWindow { every: Duration::from_millis(60), lasting: Duration::from_millis(30) };
        let chaos = Chaos { crashes: Some(crashes), ..Chaos::default() };
        survive(&mut world, chaos, Duration::from_secs(1));
        let latest = decode_latest(setup.run(), &storage.read(LATEST).unwrap()).unwrap();
        storage.check(latest);
        continued += u32::from(latest.before > 0);
    }
    assert!(continued > 15, "{continued}");
}

/// Ways to damage a snapshot.
const DAMAGE: [fn(&Memory, &str); 3] = [
    |storage, name| storage.remove(name).unwrap(),
    |storage, name| storage.write(name, &[]).unwrap(),
    |storage, name| {
        let mut bytes = storage.read(name).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        storage.write(name, &bytes).unwrap();
    },
];

/// A storage with the checkpoints of epochs 2 and 4.
fn stored_run(corpus: &Corpus, stored: &InMemory) -> Arc<Memory> {
    let storage = Arc::new(Memory::default());
    let short = spec(corpus, 2).epochs(4);
    run(&mut world(&short, stored, &storage, Network::default(), 1));
    storage
}

fn name(epoch: u32, shard: u16) -> String {
    SnapshotId { run: 0, epoch, shard }.name()
}

#[test]
fn a_damaged_snapshot_takes_a_run_one_checkpoint_back() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let setup = spec(&corpus, 3);
    let expected = expected(&corpus, &spec(&corpus, 1));
    for (seed, damage) in (0..12).zip(DAMAGE.into_iter().cycle()) {
        let storage = stored_run(&corpus, &stored);
        damage(&storage, &name(4, (seed % 4) as u16));
        let mut world = world(&setup, &stored, &storage, Network::default(), seed);
        run(&mut world);
        let trouble = world.with(MASTER, |node, _| match node {
            Role::Master(master) => master.trouble(),
            _ => None,
        });
        let trouble = trouble.flatten().unwrap();
        let is_said = matches!(trouble, CheckpointError::Unreadable { epoch: 4, before: 2, .. });
        assert!(is_said && trouble.to_string().contains(&name(4, (seed % 4) as u16)), "{trouble}");
        let found = of_world(&mut world, &setup, &stored);
        check(&found, &expected, "gone back");
        assert_eq!(found.reports.first().unwrap().epoch, 3);
        let has = |epoch| (0..4).all(|shard| storage.has(&name(epoch, shard)).unwrap());
        assert_eq!([2, 4, 6, 8].map(has), [false, false, true, true]);
    }
}

#[test]
fn a_run_that_goes_back_survives_crashes() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let setup = spec(&corpus, 3);
    let expected = expected(&corpus, &spec(&corpus, 1));
    let lossy = Network { loss: 0.05, duplication: 0.05, reordering: 0.2, ..Network::default() };
    for (seed, damage) in (0..30).zip(DAMAGE.into_iter().cycle()) {
        let storage = stored_run(&corpus, &stored);
        damage(&storage, &name(4, (seed % 4) as u16));
        let network = if seed % 2 == 0 { Network::default() } else { lossy };
        let mut world = world(&setup, &stored, &storage, network, seed);
        let every = Duration::from_millis(10 + 10 * (seed % 7));
        let crashes = FaultWindow { every, lasting: Duration::from_millis(5) };
        let chaos = Chaos { crashes: Some(crashes), ..Chaos::default() };
        survive(&mut world, chaos, Duration::from_millis(200));
        world.with(MASTER, |node, _| assert!(node.is_finished())).unwrap();
        let mut found = End::default();
        world.with(MASTER, |node, _| found.collect_model(node, stored.firsts())).unwrap();
        assert!(found.collected == expected.rows, "seed {seed}");
        assert_eq!(found.totals, expected.totals, "seed {seed}");
    }
}

#[test]
fn a_run_does_not_go_back_to_its_beginning() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let setup = spec(&corpus, 2);
    let storage = stored_run(&corpus, &stored);
    DAMAGE[0](&storage, &name(2, 1));
    DAMAGE[2](&storage, &name(4, 3));
    let mut world = world(&setup, &stored, &storage, Network::default(), 1);
    world.run_for(Duration::from_secs(2));
    let failed = |id| world.program(NodeId(id)).and_then(Role::failed);
    let first = (0..5).find_map(failed).unwrap().to_string();
    assert!(first.contains("snapshot topics-00000002-00001"), "{first}");
    assert!(!is_finished(&world));
}

/// C_d of a checkpoint, by shard.
#[test]
fn a_checkpoint_has_the_topics_of_its_documents() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    for hybrid in [Hybrid::default(), Hybrid { short_length: 12, mh_steps: 2 }] {
        let mut setup = spec(&corpus, 2).epochs(5);
        setup.options.hybrid = hybrid;
        let storage = Arc::new(Memory::default()) as Arc<dyn Storage>;
        let mut in_process = InProcess::<u16>::new(&setup.spec, &corpus, &setup.options).unwrap();
        run_local::<u16, _>(&setup, &stored, Some(&storage), None, |_| {}).unwrap();
        let epoch = SavedTopics::last_epoch(&setup, &*storage).unwrap();
        assert_eq!(epoch, 5, "after every second epoch, and after the last");
        for _ in 0..epoch {
            in_process.epoch().unwrap();
        }
        let mut documents = 0;
        for shard in 0..4 {
            let saved = SavedTopics::read(&setup, &stored, &*storage, (epoch, shard)).unwrap();
            assert_eq!(saved.first(), documents as u64);
            let mut rows = saved.rows();
            let own = documents..documents + saved.documents().num_documents();
            in_process.visit_documents(own.clone(), &mut |document, row| {
                assert_eq!(rows.next(), Some(row), "document {document} of shard {shard}");
            });
            assert!(rows.next().is_none());
            documents = own.end;
            assert_eq!(saved.priors(), &setup.spec.priors());
        }
        assert_eq!(documents, corpus.num_documents());
        let later = SavedTopics::read(&setup, &stored, &*storage, (epoch + 1, 0)).unwrap_err();
        assert!(later.to_string().contains("topics-0000000"), "{later}");
        let words = corpus.num_words() as u32;
        let other = setup.clone().spec(ModelSpec::new(80, words, 0.2.into(), BETA, 3).unwrap());
        let refused = SavedTopics::read(&other, &stored, &*storage, (epoch, 0)).unwrap_err();
        assert!(refused.to_string().contains("belongs to run"), "{refused}");
    }
}

/// C_w of a checkpoint, with the fallback and the errors.
#[test]
fn a_checkpoint_has_the_counts_of_its_epoch() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let hybrid = Hybrid { short_length: 12, mh_steps: 2 };
    for hybrid in [Hybrid::default(), hybrid] {
        let setup = |epochs: u32| {
            let mut setup = spec(&corpus, 2).epochs(epochs);
            setup.options.hybrid = hybrid;
            setup
        };
        let collected = |epochs: u32| {
            let memory = Arc::new(Memory::default());
            let storage = Arc::clone(&memory) as Arc<dyn Storage>;
            let nodes = run_local::<u16, _>(&setup(epochs), &stored, Some(&storage), None, |_| {});
            let nodes = nodes.unwrap();
            let master = nodes.iter().find_map(|role| match role {
                Role::Master(master) => master.counts().cloned(),
                _ => None,
            });
            (master.unwrap(), memory)
        };
        let (four, storage) = collected(4);
        // Other workers and rounds of the same run.
        let setup = setup(100).workers(3);
        let read = || SavedCounts::read(&setup, &stored, &*storage);
        let saved = read().unwrap();
        // A slow worker leaves out a checkpoint.
        if saved.epoch == 4 {
            assert!(saved.counts == four && saved.damaged.is_none());
        } else {
            assert!(saved.epoch == 2 && saved.counts == collected(2).0);
        }
        let id = |epoch| SnapshotId { run: setup.run(), epoch, shard: 3 };
        let recorded = encode_latest(setup.run(), Latest { epoch: 4, before: 2 });
        storage.write(LATEST, recorded.as_bytes()).unwrap();
        storage.write(&id(4).name(), b"damaged").unwrap();
        if storage.has(&id(2).name()).unwrap() {
            let saved = read().unwrap();
            assert_eq!(saved.epoch, 2);
            assert!(saved.counts == collected(2).0);
            let damaged = saved.damaged.unwrap().to_string();
            assert!(damaged.contains(&id(4).name()), "{damaged}");
        }
        storage.remove(&id(2).name()).unwrap();
        let refused =
            |setup: &Setup| SavedCounts::read(setup, &stored, &*storage).unwrap_err().to_string();
        assert!(refused(&setup).contains(&id(2).name()), "{}", refused(&setup));
        let other = setup.clone().spec(ModelSpec::new(80, 60, 0.2.into(), BETA, 3).unwrap());
        assert!(refused(&other).contains("belongs to run"), "{}", refused(&other));
        storage.remove(LATEST).unwrap();
        assert!(refused(&setup).contains("it does not exist"), "{}", refused(&setup));
    }
}
