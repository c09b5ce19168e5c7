//! Master, servers and workers in a simulated network. A run must end with the bits of one process.

mod assignment;
mod bounds;
mod checkpoints;
mod collected;
mod coverage;
mod elastic;
mod exclusion;
mod held_rows;
mod history;
mod hot;
mod lost_workers;
mod mid_epoch;
mod own_aggregate;
mod priors;
mod pseudo_counts;
mod random_runs;
mod reachability;
mod recovery;
mod staleness;
mod stopping;
mod targeted_faults;
mod targeted_setup;
mod topics;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lda_core::Corpus;
use lda_core::counts::{DocumentCounts, WordCounts};
use lda_core::eval::{Ranking, log_joint, top_words};
use lda_core::random::Xoshiro256PlusPlus;
use lda_core::train::SamplerKind;
use lda_dist::cluster::{
    Documents, Failed, MASTER, Memory, NonZeros, Report, Role, Setup, Waited, run_local,
};
use lda_dist::config::{ConfigError, Hybrid, Options, Routing, SAMPLERS};
use lda_dist::documents::{InMemory, ReadShardError, Statistics};
use lda_dist::in_process::InProcess;
use lda_dist::priors::Priors;
use lda_dist::spec::ModelSpec;
use lda_dist::stats::Bytes;
use lda_dist::sync::SyncMode;
use lda_transport::NodeId;
use lda_transport::rpc::{Config, Identity};
use lda_transport::sim::{Network, Options as SimOptions, World};

type Node = Role<u16, InMemory>;

const BETA: f64 = 0.02;
/// So small that most topics have more words.
const TOP_WORDS: u32 = 3;

fn corpus() -> Corpus {
    let mut rng = Xoshiro256PlusPlus::from_seed(8);
    let document = |_| {
        let length = 1 + rng.below(30);
        (0..length).map(|_| rng.below(60).min(rng.below(60))).collect::<Vec<_>>()
    };
    Corpus::from_tokens((0..50).map(document).collect::<Vec<_>>()).unwrap()
}

fn setup(corpus: &Corpus, workers: u32, options: Options) -> Setup {
    let spec = ModelSpec::new(80, corpus.num_words() as u32, 0.1.into(), BETA, 3).unwrap();
    Setup::new(spec, 7)
        .options(options)
        .workers(workers)
        .epochs(3)
        .evaluate_every(2)
        .top_words(TOP_WORDS)
        .collect_model(true)
}

fn world(setup: &Setup, stored: &InMemory, network: Network, seed: u64) -> World<Node> {
    world_of(
        &vec![setup.clone(); 1 + (setup.options.servers + setup.workers) as usize],
        stored,
        network,
        seed,
    )
}

/// A world of nodes with these setups.
fn world_of(setups: &[Setup], stored: &InMemory, network: Network, seed: u64) -> World<Node> {
    let mut world = World::new(&SimOptions { seed, network, ..SimOptions::default() });
    for (id, setup) in (0..).map(NodeId).zip(setups) {
        // Nodes may differ in `prefetch` and `threads`; of `top_words` only the master's value counts.
        let (prefetch, mut top_words) = ((id.0 % 4) as u16, setup.top_words);
        let threads = 1 + (id.0 % 3) as usize;
        if id != MASTER {
            top_words += id.0;
        }
        let (setup, stored) = (
            setup.clone().prefetch(prefetch).threads(threads).top_words(top_words),
            stored.clone(),
        );
        world.add(id, move |birth| {
            let node = Role::new(setup.clone(), id, stored.clone(), None);
            let (incarnation, configuration) = (birth.incarnation, setup.fingerprint());
            let identity = Identity { incarnation, role: node.number(), run: 1, configuration };
            // A queue so short that peers are overloaded at times.
            let config = Config { queue: 3, ..Config::new(identity) };
            (Config { retry: Some(Duration::from_millis(50)), ..config }, node)
        });
    }
    world
}

fn is_finished(world: &World<Node>) -> bool {
    match world.program(MASTER) {
        Some(Role::Master(master)) => master.is_finished(),
        _ => false,
    }
}

fn run(world: &mut World<Node>) {
    for _ in 0..100_000 {
        if is_finished(world) {
            return;
        }
        world.run_for(Duration::from_millis(100));
        for id in world.living().collect::<Vec<_>>() {
            let failed = world.program(id).and_then(Role::failed);
            assert!(failed.is_none(), "{id}: {}", failed.unwrap());
        }
    }
    panic!("it does not end");
}

/// State at the end of a run.
#[derive(Debug, Default, PartialEq)]
struct End {
    /// (document, word, topic), sorted.
    tokens: Vec<(u32, u32, u32)>,
    rows: Vec<(u32, Vec<(u32, u32)>)>,
    /// Rows of C_d by document.
    documents: Vec<(u32, Vec<(u32, u32)>)>,
    /// Rows that the master has collected.
    collected: Vec<(u32, Vec<(u32, u32)>)>,
    totals: Vec<i64>,
    /// Priors of the last epoch.
    priors: Option<Priors>,
    /// Reports without times, memory and the bytes of C_k, which grow with the number of workers.
    reports: Vec<Report>,
    /// Whether rows may stay at workers, so that fewer bytes move if a worker has several shards.
    rows_may_stay: bool,
    /// Largest number of times that a row is pulled for a shard in an epoch: again after each change of workers,
    /// if rows stayed before.
    pulls: u64,
}

/// Whether these bytes can be those of a run that is `expected` to have others.
fn may_move(found: Bytes, report: &Report, expected: &End) -> bool {
    if !expected.rows_may_stay {
        return found == report.bytes;
    }
    // Deltas of one epoch may travel in another.
    let Bytes { sizes, pushed, answers, .. } = found;
    found.rows <= expected.pulls * report.bytes.rows && [sizes, pushed, answers] == [0; 3]
}

/// Removes from a report the values that depend on the division, and checks that they were there.
fn strip(report: &mut Report) {
    assert!(std::mem::take(&mut report.bytes.totals) > 0);
    let Memory { worker, server } = std::mem::take(&mut report.memory);
    assert!(worker > 0 && server > 0);
    assert!(std::mem::take(&mut report.workers) > 0);
    report.waited = Waited::default();
}

/// Sorts rows, and joins the parts of a row that lie on several servers.
fn bring_together(rows: &mut Vec<(u32, Vec<(u32, u32)>)>) {
    rows.sort_unstable();
    rows.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1.append(&mut next.1);
            kept.1.sort_unstable();
        }
        same
    });
}

impl End {
    /// Adds the state of a node.
    fn collect_model(&mut self, node: &mut Node, firsts: &[usize]) {
        match node {
            Role::Master(master) => {
                self.totals = master.totals().to_vec();
                self.priors = Some(master.priors());
                let counts = master.counts().unwrap();
                for (topic, &total) in self.totals.iter().enumerate() {
                    assert_eq!(counts.topic_total(topic), total as u64);
                }
                counts.visit_words(0..counts.num_words(), &mut |word, row| {
                    self.collected.push((word as u32, row.to_vec()));
                });
                // The servers' top words are those of all rows.
                let (ranking, most) = (Ranking::Probability, TOP_WORDS as usize);
                let expected = top_words(counts, master.priors().beta, most, ranking).unwrap();
                assert_eq!(master.topics().unwrap().words, expected);
                self.reports.extend(std::iter::from_fn(|| master.report()));
                self.reports.iter_mut().for_each(strip);
            }
            Role::Server(server) => {
                let rows = server.rows().unwrap();
                rows.for_each(|word, row| self.rows.push((word, row.to_vec())));
                bring_together(&mut self.rows);
            }
            Role::Worker(worker) => {
                for shard in worker.shards() {
                    let first = firsts[shard.number() as usize] as u32;
                    shard.tokens().for_each(|document, word, topic| {
                        self.tokens.push((document + first, word, topic));
                    });
                    for document in 0..shard.tokens().num_documents() {
                        let mut row = Vec::new();
                        shard.tokens().row(document, &mut row);
                        self.documents.push((document as u32 + first, row));
                    }
                }
                self.documents.sort_unstable();
                self.tokens.sort_unstable();
            }
        }
    }

    /// Whether both are equal; log joints may differ by rounding, because they are summed in
    /// another order.
    fn is_like(&self, other: &Self) -> bool {
        let near = |(a, b): (&Report, &Report)| {
            let joints = a.log_joint.zip(b.log_joint);
            (a.epoch, a.non_zeros, a.sampled) == (b.epoch, b.non_zeros, b.sampled)
                && may_move(a.bytes, b, other)
                && a.log_joint.is_some() == b.log_joint.is_some()
                && joints.is_none_or(|(a, b)| (a / b - 1.0).abs() < 1e-12)
        };
        (&self.tokens, &self.rows, &self.totals) == (&other.tokens, &other.rows, &other.totals)
            && self.priors == other.priors
            && self.rows == self.collected
            && self.reports.len() == other.reports.len()
            && self.reports.iter().zip(&other.reports).all(near)
    }
}

fn of_world(world: &mut World<Node>, setup: &Setup, stored: &InMemory) -> End {
    let mut end = End::default();
    let living: Vec<NodeId> = world.living().collect();
    assert_eq!(setup.options.servers + setup.workers + 1, living.len() as u32);
    for id in living {
        world.with(id, |node, _| end.collect_model(node, stored.firsts())).unwrap();
    }
    end
}

/// Non-zeros, counted by visiting rows.
fn non_zeros(run: &InProcess<u16>) -> NonZeros {
    let mut found = NonZeros::default();
    let words = 0..run.num_words();
    run.visit_words(words, &mut |_, row| found.words += row.len() as u64);
    let documents = 0..run.num_documents();
    run.visit_documents(documents, &mut |_, row| found.documents += row.len() as u64);
    found
}

/// State at the end of a run in one process.
fn expected(corpus: &Corpus, setup: &Setup) -> End {
    let mut run = InProcess::<u16>::new(&setup.spec, corpus, &setup.options).unwrap();
    let Options { shards, rounds, sync, routing, hybrid, .. } = setup.options;
    let is_apart = rounds >= shards * (sync.staleness() + 1);
    let rows_may_stay = is_apart && routing == Routing::Pull && hybrid == Hybrid::default();
    let pulls = if setup.min_workers.is_some() { u64::from(rounds) } else { 1 };
    let mut end = End { rows_may_stay, pulls, ..End::default() };
    for epoch in 1..=setup.epochs {
        let bytes = Bytes { totals: 0, ..run.epoch().unwrap() };
        let Priors { alpha, beta } = run.priors();
        // The part that depends on pseudo-counts alone is no part of it.
        let own = setup.spec.pseudo_counts().map_or(0.0, |counts| counts.word_part(beta));
        let log_joint =
            setup.evaluates(epoch).then(|| log_joint(&run, &alpha, beta).unwrap().total() - own);
        let non_zeros = setup.evaluates(epoch).then(|| non_zeros(&run));
        let mut report = Report::default();
        report.sampled = run.shards().iter().map(|shard| shard.num_sampled() as u64).sum();
        (report.epoch, report.attempt, report.bytes) = (epoch, 1, bytes);
        (report.log_joint, report.non_zeros) = (log_joint, non_zeros);
        report.priors = Some(Priors { alpha, beta });
        end.reports.push(report);
    }
    run.for_each(|document, word, topic| end.tokens.push((document, word, topic)));
    for server in run.servers() {
        server.for_each(|word, row| end.rows.push((word, row.to_vec())));
    }
    end.tokens.sort_unstable();
    bring_together(&mut end.rows);
    end.totals = run.totals().iter().map(|&total| total.into()).collect();
    end.priors = Some(run.priors());
    end
}

#[test]
fn any_number_of_workers_gives_the_bits_of_one_process() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 5).unwrap();
    let bad = Network { loss: 0.1, duplication: 0.1, reordering: 0.3, ..Network::default() };
    let (short, long) = (Hybrid::default(), Hybrid { short_length: 15, mh_steps: 2 });
    let f_plus = SamplerKind::FPlus;
    for (routing, rounds, staleness, hybrid, sampler) in [
        (Routing::Cheapest, 5, 0, short, f_plus),
        (Routing::Pull, 2, 0, short, f_plus),
        (Routing::Pull, 5, 0, short, f_plus),
        (Routing::Push, 1, 0, short, f_plus),
        (Routing::Cheapest, 5, 0, long, f_plus),
        (Routing::Push, 2, 0, Hybrid { short_length: 0, ..long }, f_plus),
        (Routing::Cheapest, 5, 1, short, f_plus),
        (Routing::Pull, 7, 6, short, f_plus),
        (Routing::Push, 3, 1, short, f_plus),
        (Routing::Cheapest, 7, 2, long, f_plus),
        (Routing::Pull, 5, 0, short, SamplerKind::Exact),
        (Routing::Push, 5, 1, short, SamplerKind::FPlusDoc),
        (Routing::Cheapest, 3, 0, long, SamplerKind::Sparse),
        (Routing::Cheapest, 4, 0, short, SamplerKind::Alias),
        (Routing::Pull, 5, 2, long, SamplerKind::Light),
        (Routing::Push, 2, 0, short, SamplerKind::Zen),
        (Routing::Cheapest, 5, 1, long, SamplerKind::ZenDoc),
        (Routing::Cheapest, 3, 0, short, SamplerKind::ZenHybrid),
    ] {
        let sampler = sampler.into();
        let cut =
            Options { shards: 5, partitions: 7, rounds, sampler, hybrid, ..Options::default() };
        // With a staleness, ranges are merged into partitions.
        let ranges = 20 * u32::from(staleness > 0);
        let passes = 1 + rounds as u8 % 2;
        let sync = SyncMode::rounds(staleness);
        let options = Options { servers: 3, routing, sync, ranges, passes, ..cut };
        let expected = expected(&corpus, &setup(&corpus, 1, options));
        let mut reports = None;
        for (workers, network) in
            [(1, Network::default()), (2, bad), (3, Network::default()), (5, bad)]
        {
            let setup = setup(&corpus, workers, options);
            let mut world = world(&setup, &stored, network, u64::from(workers));
            run(&mut world);
            assert_eq!(world.faults() > 0, network.loss > 0.0);
            let found = of_world(&mut world, &setup, &stored);
            assert!(found.is_like(&expected), "{workers} workers, {setup:?}");
            // The bits of the sums do not depend on the number of workers.
            let mut sums = found.reports;
            if expected.rows_may_stay {
                sums.iter_mut().for_each(|report| report.bytes = Bytes::default());
            }
            assert_eq!(sums, *reports.get_or_insert(sums.clone()));
        }
    }
}

#[test]
fn nodes_with_other_options_are_refused() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 2).unwrap();
    let options = Options { shards: 2, partitions: 2, ..Options::default() };
    let same = setup(&corpus, 1, options);
    let mut others = [(); 5].map(|()| same.clone());
    others[0].epochs = 4;
    others[1].spec = ModelSpec::new(80, corpus.num_words() as u32, 0.1.into(), 0.03, 3).unwrap();
    others[2].options.max_pushed_len = 7;
    others[3].corpus = 8;
    others[4].options.sampler = SamplerKind::Light.into();
    assert!(others.iter().all(|other| other.fingerprint() != same.fingerprint()));
    for other in others {
        let setups = [same.clone(), same.clone(), other];
        let mut world = world_of(&setups, &stored, Network::default(), 1);
        world.run_for(Duration::from_secs(5));
        assert!(!is_finished(&world));
        let failed = |id| world.program(NodeId(id)).and_then(Role::failed);
        let incompatible = failed(2).unwrap();
        assert!(matches!(incompatible, Failed::IncompatiblePeer { .. }), "{incompatible}");
        // The right worker may still come.
        assert_eq!((failed(0), failed(1)), (None, None));
    }
}

#[test]
fn a_worker_without_documents_is_refused() {
    let corpus = corpus();
    let setup = |workers| setup(&corpus, workers, Options { shards: 2, ..Options::default() });
    assert_eq!(setup(2).check(), Ok(()));
    for workers in [0, 3] {
        let refused = ConfigError::Workers { workers, shards: 2 };
        assert_eq!(setup(workers).check(), Err(refused));
    }
}

#[test]
fn threads_give_the_bits_of_one_process() {
    let corpus = corpus();
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    let cut = Options { shards: 4, partitions: 6, rounds: 4, ..Options::default() };
    let options = Options { servers: 2, ..cut };
    let expected = expected(&corpus, &setup(&corpus, 1, options));
    for workers in [1, 3] {
        let setup = setup(&corpus, workers, options);
        let (mut end, mut reports) = (End::default(), Vec::new());
        let watch = |node: &mut Node| {
            if let Role::Master(master) = node {
                reports.extend(std::iter::from_fn(|| master.report()));
            }
        };
        let nodes = run_local::<u16, _>(&setup, &stored, None, None, watch).unwrap();
        for mut node in nodes {
            end.collect_model(&mut node, stored.firsts());
        }
        reports.iter_mut().for_each(strip);
        end.reports = reports;
        assert!(end.is_like(&expected), "{workers} workers");
    }
}

/// A worker reads its documents once if their word counts are known, and twice if not; the bits are the same.
#[test]
fn documents_are_read_once_if_their_words_are_counted() {
    #[derive(Clone, Debug)]
    struct Counting {
        stored: InMemory,
        statistics: Option<Arc<Statistics>>,
        reads: Arc<AtomicUsize>,
    }
    impl Documents for Counting {
        fn read(&self, shard: u16) -> Result<(Corpus, u64), ReadShardError> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.stored.read(shard)
        }

        fn statistics(&self) -> Option<&Statistics> {
            self.statistics.as_deref()
        }
    }
    let corpus = corpus();
    let options = Options { shards: 4, partitions: 6, rounds: 4, ..Options::default() };
    let setup = setup(&corpus, 2, options);
    let expected = expected(&corpus, &setup);
    let stored = InMemory::new(corpus.clone(), 4).unwrap();
    for statistics in [None, Some(Arc::new(Statistics::of(&corpus)))] {
        let (reads, known) = (Arc::new(AtomicUsize::new(0)), statistics.is_some());
        let documents = Counting { stored: stored.clone(), statistics, reads: Arc::clone(&reads) };
        let nodes = run_local::<u16, _>(&setup, &documents, None, None, |_| {}).unwrap();
        assert_eq!(reads.load(Ordering::Relaxed), if known { 4 } else { 8 });
        let mut tokens = Vec::new();
        for role in &nodes {
            let Role::Worker(worker) = role else { continue };
            for shard in worker.shards() {
                let first = stored.firsts()[shard.number() as usize] as u32;
                shard.tokens().for_each(|document, word, topic| {
                    tokens.push((document + first, word, topic));
                });
            }
        }
        tokens.sort_unstable();
        assert!(tokens == expected.tokens);
    }
}

#[test]
fn a_worker_that_cannot_read_ends_the_run() {
    #[derive(Clone, Debug)]
    struct Torn(InMemory);
    impl Documents for Torn {
        fn read(&self, shard: u16) -> Result<(Corpus, u64), ReadShardError> {
            if shard == 1 { Err(ReadShardError::new("no file")) } else { self.0.read(shard) }
        }
    }
    let corpus = corpus();
    let setup = setup(&corpus, 2, Options { shards: 2, ..Options::default() });
    let stored = InMemory::new(corpus, 2).unwrap();
    let failed = run_local::<u16, _>(&setup, &Torn(stored), None, None, |_| {}).unwrap_err();
    assert_eq!(failed.to_string(), "shard 1: no file");
}
