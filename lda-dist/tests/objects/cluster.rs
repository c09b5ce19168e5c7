//! A cluster whose documents and checkpoints are in an object store.

use std::thread;

use lda_core::Corpus;
use lda_core::random::Xoshiro256PlusPlus;
use lda_dist::cluster::{
    self, CollectedCounts, Patience, Peers, Role, Setup, SnapshotWriter, run_local,
};
use lda_dist::config::Options;
use lda_dist::documents::{InMemory, StoredDocuments, store};
use lda_dist::snapshot::{LATEST, Latest, encode_latest};
use lda_dist::spec::ModelSpec;
use lda_transport::rpc::Identity;
use lda_transport::{Transport, local};

use super::*;

const SHARDS: u16 = 4;

fn corpus() -> Corpus {
    let mut rng = Xoshiro256PlusPlus::from_seed(8);
    let document = |_| (0..20).map(|_| rng.below(60).min(rng.below(60))).collect::<Vec<_>>();
    Corpus::from_tokens((0..50).map(document).collect::<Vec<_>>()).unwrap()
}

fn setup(words: u32, fingerprint: u64) -> Setup {
    let spec = ModelSpec::new(20, words, 0.1.into(), 0.02, 3).unwrap();
    let cut = Options { shards: SHARDS, partitions: 6, rounds: 4, ..Options::default() };
    Setup::new(spec, fingerprint)
        .options(Options { servers: 2, ..cut })
        .workers(3)
        .epochs(8)
        .evaluate_every(0)
        .collect_model(true)
        .checkpoint_every(2)
}

/// Counts that the master has collected, errors of checkpoints, and reported epochs.
type Ended = (CollectedCounts, Vec<String>, Vec<u32>);

/// Runs all nodes, each on its own thread with its own client of the store, as if they were
/// processes.
fn run(setup: &Setup, server: &Server) -> Ended {
    let nodes = 1 + setup.options.servers + setup.workers;
    let transports = local::mesh(nodes, &local::Options::default());
    let node = |mut transport: local::Local| {
        let (mut troubles, mut epochs) = (Vec::new(), Vec::new());
        let storage = |prefix| {
            ObjectStore::open(&format!("s3://{BUCKET}/{prefix}"), &access(&server.address)).unwrap()
        };
        let documents = StoredDocuments::open(storage("documents")).unwrap();
        // Epochs are so short that writes in the background would be reported too late.
        let snapshot_writer = SnapshotWriter::now(Arc::new(storage("kept")));
        let role =
            Role::<u16, _>::new(setup.clone(), transport.id(), documents, Some(snapshot_writer));
        let configuration = setup.fingerprint();
        let identity = Identity { incarnation: 1, role: role.number(), run: 1, configuration };
        let watch = &mut |role: &mut Role<u16, _>, _: &Peers| match role {
            Role::Worker(worker) => {
                troubles.extend(worker.trouble().map(|trouble| trouble.to_string()));
            }
            Role::Master(master) => {
                epochs.extend(std::iter::from_fn(|| master.report()).map(|report| report.epoch));
            }
            Role::Server(_) => {}
        };
        let config = cluster::config(setup, identity);
        let ended = cluster::run(role, &mut transport, config, Patience::default(), None, watch);
        let counts = match ended.unwrap() {
            Role::Master(master) => master.counts().cloned(),
            _ => None,
        };
        (counts, troubles, epochs)
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            transports.into_iter().map(|transport| scope.spawn(|| node(transport))).collect();
        let (mut counts, mut troubles, mut epochs) = (None, Vec::new(), Vec::new());
        for ended in threads.into_iter().map(|thread| thread.join().unwrap()) {
            counts = counts.or(ended.0);
            troubles.extend(ended.1);
            epochs.extend(ended.2);
        }
        (counts.unwrap(), troubles, epochs)
    })
}

/// Rows of words.
fn rows(counts: &CollectedCounts) -> Vec<(usize, Vec<(u32, u32)>)> {
    use lda_core::counts::WordCounts;
    let mut rows = Vec::new();
    counts.visit_words(0..counts.num_words(), &mut |word, row| rows.push((word, row.to_vec())));
    rows
}

/// Counts of a run of threads with everything in memory.
fn expected(setup: &Setup, corpus: &Corpus) -> CollectedCounts {
    let documents = InMemory::new(corpus.clone(), SHARDS).unwrap();
    match run_local::<u16, _>(setup, &documents, None, None, |_| {}).unwrap().swap_remove(0) {
        Role::Master(master) => master.counts().unwrap().clone(),
        _ => panic!("the master is first"),
    }
}

#[test]
fn nodes_give_the_bits_of_one_process_and_continue_from_checkpoints() {
    let server = Server::start();
    let corpus = corpus();
    let documents = ObjectStore::open("s3://bucket/documents", &access(&server.address)).unwrap();
    store(&corpus, SHARDS, &documents).unwrap();
    let stored = StoredDocuments::open(documents).unwrap();
    assert_eq!(stored.num_tokens(), corpus.num_tokens());
    let whole = setup(stored.num_words(), stored.fingerprint());

    // One object cannot be written; the run continues to a later checkpoint.
    server.state().faults.push(("PUT /bucket/kept/topics-00000002-00001", 403));
    let short = whole.clone().epochs(4);
    let (counts, troubles, epochs) = run(&short, &server);
    assert_eq!(rows(&counts), rows(&expected(&short, &corpus)));
    assert_eq!(epochs, [1, 2, 3, 4]);
    let [trouble] = &troubles[..] else { panic!("{troubles:?}") };
    assert!(trouble.contains(": s3://bucket/kept/topics-00000002-00001: "), "{trouble}");
    let kept = || -> Vec<String> {
        let state = server.state();
        state
            .objects
            .keys()
            .filter_map(|name| name.strip_prefix("kept/").map(str::to_owned))
            .collect()
    };
    // The first checkpoint is not whole.
    let latest = encode_latest(short.run(), Latest { epoch: 4, before: 0 });
    assert_eq!(server.state().objects["kept/latest"], latest.as_bytes());
    let names = |epochs: &[u32]| {
        let of =
            |&epoch: &u32| (0..SHARDS).map(move |shard| format!("topics-{epoch:08}-{shard:05}"));
        let others = [LATEST.to_owned(), "options".to_owned()];
        let objects = others.into_iter().chain(epochs.iter().flat_map(of));
        objects.collect::<Vec<_>>()
    };
    assert_eq!(kept(), names(&[4]));

    let (counts, troubles, epochs) = run(&whole, &server);
    assert_eq!(rows(&counts), rows(&expected(&whole, &corpus)));
    assert_eq!(epochs, [5, 6, 7, 8]);
    assert_eq!(troubles, Vec::<String>::new());
    assert_eq!(kept(), names(&[6, 8]));
}

#[test]
fn missing_documents_are_reported() {
    let server = Server::start();
    let documents = ObjectStore::open("s3://bucket/documents", &access(&server.address)).unwrap();
    let said = StoredDocuments::open(documents).unwrap_err().to_string();
    assert!(said.starts_with("s3://bucket/documents/manifest: "), "{said}");
    assert!(
        said.ends_with("check that it was written there, and that the bucket exists"),
        "{said}"
    );
}
