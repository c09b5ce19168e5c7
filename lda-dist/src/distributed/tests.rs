use std::cell::Cell;

use lda_core::counts::{DocumentCounts, VisitRow, WordCounts};
use lda_core::eval::log_joint;
use lda_core::infer::Translation;
use lda_core::model::TopicModel;
use lda_core::random::Xoshiro256PlusPlus;
use lda_core::train::{Assignments, Weight};

use super::*;
use crate::config::Hybrid;
use crate::documents::InMemory;

fn corpus() -> Corpus {
    let mut rng = Xoshiro256PlusPlus::from_seed(8);
    let document = |_| {
        let length = 1 + rng.below(40);
        (0..length).map(|_| rng.below(30).min(rng.below(60))).collect::<Vec<_>>()
    };
    Corpus::from_tokens((0..60).map(document).collect::<Vec<_>>()).unwrap()
}

/// A run that goes on from a model has its counts, and the likelihood of the tokens alone.
#[test]
fn a_run_goes_on_from_a_model() {
    let corpus = corpus();
    let first = small().train(&corpus, ()).unwrap().model;
    let translation = Translation::new(&corpus, &first).unwrap();
    let counts =
        PseudoCounts::from_model(&first, &translation, &corpus, 7, Weight::Share(1.0)).unwrap();
    let run = small().seed(9).pseudo_counts(counts.clone());
    let trained = run.train(&corpus, ()).unwrap();
    let of_model = trained.model.counts().unwrap();
    assert_eq!(of_model.totals().iter().sum::<u64>(), 2 * corpus.num_tokens());
    assert_eq!(trained.model.provenance().pseudo_counts, Some(counts.fingerprint()));
    let recount = Recount { corpus: &corpus, assignments: &trained.assignments, topics: 7 };
    let documents = log_joint(&recount, &Alpha::from(0.2), 0.05).unwrap().documents;
    let all =
        PseudoCounts::from_model(&trained.model, &translation, &corpus, 7, Weight::Share(1.0));
    let words = all.unwrap().word_part(0.05) - counts.word_part(0.05);
    let found = trained.last.log_joint.unwrap();
    assert!((found / (documents + words) - 1.0).abs() < 1e-9, "{found} {documents} {words}");
    // Other dimensions, and a prior that belongs to the counts.
    let other = PseudoCounts::new(29, 7, [(0, 0, 1)]).unwrap();
    let refused = |run: Distributed| run.train(&corpus, ()).unwrap_err().to_string();
    assert!(
        refused(small().pseudo_counts(other)).contains("29 words and 7 topics for a run of 30")
    );
    let learn = Learn { beta: true, ..Learn::default() };
    assert!(refused(small().pseudo_counts(counts).learn(learn)).contains("β cannot be learnt"));
}

fn small() -> Distributed {
    Distributed::topics(7).alpha(0.2).beta(0.05).servers(2).shards(4).epochs(6).seed(3)
}

/// Counts of assignments.
struct Recount<'a> {
    corpus: &'a Corpus,
    assignments: &'a Assignments,
    topics: usize,
}

impl Recount<'_> {
    fn row(topics: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
        let mut row = std::collections::BTreeMap::new();
        topics.for_each(|topic| *row.entry(topic).or_insert(0) += 1);
        row.into_iter().collect()
    }

    fn tokens(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.corpus.num_documents()).flat_map(|d| self.assignments.tokens(self.corpus, d))
    }
}

impl DocumentCounts for Recount<'_> {
    fn num_topics(&self) -> usize {
        self.topics
    }

    fn num_documents(&self) -> usize {
        self.corpus.num_documents()
    }

    fn visit_documents(&self, documents: std::ops::Range<usize>, visit: &mut VisitRow<'_>) {
        for d in documents {
            visit(d, &Self::row(self.assignments.document(d).iter().copied()));
        }
    }
}

impl WordCounts for Recount<'_> {
    fn num_topics(&self) -> usize {
        self.topics
    }

    fn num_words(&self) -> usize {
        self.corpus.num_words()
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.tokens().filter(|token| token.1 as usize == topic).count() as u64
    }

    fn visit_words(&self, words: std::ops::Range<usize>, visit: &mut VisitRow<'_>) {
        for w in words {
            let of_word = self.tokens().filter(|token| token.0 as usize == w);
            visit(w, &Self::row(of_word.map(|token| token.1)));
        }
    }
}

fn recount<'a>(corpus: &'a Corpus, trained: &'a Trained) -> Recount<'a> {
    Recount { corpus, assignments: &trained.assignments, topics: 7 }
}

#[test]
fn any_number_of_workers_gives_the_same_bits() {
    let corpus = corpus();
    let long = small().short_length(20).sync(SyncMode::rounds(1)).passes(2);
    let light = small().sampler(SamplerKind::Light).short_length(20);
    let zen = small().sampler(SamplerKind::ZenHybrid).routing(Routing::Push);
    for run in [small(), long, light, zen] {
        let one = run.clone().train(&corpus, ()).unwrap();
        for (workers, threads) in [(1, 1), (1, 2), (1, 16), (2, 1), (3, 3)] {
            let other = run.clone().workers(workers).threads(threads).prefetch(workers as u16);
            let other = other.train(&corpus, ()).unwrap();
            assert_eq!(one.assignments, other.assignments);
            assert_eq!(one.model, other.model);
            assert_eq!(one.resolved, other.resolved);
            let joint = |run: &Trained| {
                [run.last.log_joint, run.last.log_joint_doc, run.last.log_joint_word]
                    .map(|part| part.unwrap().to_bits())
            };
            assert_eq!(joint(&one), joint(&other));
        }
    }
}

#[test]
fn model_assignments_and_log_joint_are_of_one_state() {
    let corpus = corpus();
    let run = small().workers(2);
    let trained = run.train(&corpus, ()).unwrap();
    let counts = recount(&corpus, &trained);
    let (alpha, beta) = (trained.resolved.alpha.clone(), trained.resolved.beta);
    let expected = log_joint(&counts, &alpha, beta).unwrap();
    let near = |found: Option<f64>, expected: f64| (found.unwrap() / expected - 1.0).abs() < 1e-12;
    assert!(near(trained.last.log_joint, expected.total()));
    assert!(near(trained.last.log_joint_doc, expected.documents));
    assert!(near(trained.last.log_joint_word, expected.words));
    let model = TopicModel::from_counts(&counts, alpha.clone(), beta);
    assert_eq!(trained.model.counts(), model.counts());

    // The rows that a master collects in a run with the same setup.
    let setup = run.setup_for(&corpus).unwrap().collect_model(true);
    let documents = InMemory::new(corpus.clone(), setup.options.shards).unwrap();
    let nodes = run_local::<u16, _>(&setup, &documents, None, None, |_| {}).unwrap();
    let Role::Master(master) = &nodes[0] else { panic!("the first node is the master") };
    let model = TopicModel::from_counts(master.counts().unwrap(), alpha, beta);
    assert_eq!(trained.model.counts(), model.counts());
}

#[test]
fn topics_beyond_16_bits_are_trained() {
    let corpus = corpus();
    let run = Distributed::topics(70_000).alpha(0.01).epochs(1).shards(2);
    let trained = run.train(&corpus, ()).unwrap();
    assert_eq!(trained.model.num_topics(), 70_000);
    assert!(trained.assignments.as_slice().iter().any(|&topic| topic > 0xffff));
}

#[test]
fn a_stopped_run_equals_a_shorter_one() {
    let corpus = corpus();
    let reported = Cell::new(0);
    let observer = |epoch: &EpochReport| {
        reported.set(epoch.epoch);
        if epoch.epoch == 2 { Flow::Stop } else { Flow::Continue }
    };
    let stopped = small().epochs(1_000).workers(2).train(&corpus, observer).unwrap();
    let epochs = stopped.last.epoch;
    assert!((2..1_000).contains(&epochs), "{epochs}");
    assert_eq!(reported.get(), epochs);
    let shorter = small().epochs(epochs).train(&corpus, ()).unwrap();
    assert_eq!(stopped.assignments, shorter.assignments);
    assert_eq!(stopped.model.counts(), shorter.model.counts());

    let cancelled = small().epochs(1_000).cancel_when(Arc::new(AtomicBool::new(true)));
    let epochs = cancelled.train(&corpus, ()).unwrap().last.epoch;
    assert!((1..1_000).contains(&epochs), "{epochs}");
}

#[test]
fn the_sampler_is_that_of_one_process() {
    let corpus = corpus();
    let of = |run: Distributed| {
        let options = run.setup_for(&corpus).unwrap().options;
        let trained = run.epochs(1).train(&corpus, ()).unwrap();
        let Hybrid { short_length, .. } = options.hybrid;
        let note = &trained.model.provenance().notes[0].1;
        let named = note.contains(&format!("warp above {short_length} tokens"));
        assert_eq!(named, (1..u32::MAX).contains(&short_length), "{note}");
        (options.sampler, options.hybrid, trained.resolved.sampler)
    };
    let f_plus = SamplerOptions::from(SamplerKind::FPlus);
    let long = |short_length, mh_steps| Hybrid { short_length, mh_steps };
    assert_eq!(of(small()), (f_plus, Hybrid::default(), SamplerKind::FPlus));
    let auto = small().sampler(SamplerOptions::default());
    assert_eq!(of(auto), (f_plus, Hybrid::default(), SamplerKind::FPlus));
    let warp = SamplerOptions::Warp { steps: 3 };
    assert_eq!(of(small().sampler(warp)), (f_plus, long(0, 3), SamplerKind::Warp));
    assert_eq!(of(small().short_length(0)), (f_plus, long(0, 1), SamplerKind::Warp));
    assert_eq!(of(small().short_length(20)), (f_plus, long(20, 1), SamplerKind::Hybrid));
    let hybrid = small().sampler(SamplerKind::Hybrid);
    assert_eq!(of(hybrid.clone().short_length(20)), (f_plus, long(20, 1), SamplerKind::Hybrid));
    // As `Lda` chooses for 7 topics.
    assert_eq!(of(hybrid), (f_plus, long(0, 1), SamplerKind::Hybrid));
    let light = SamplerOptions::from(SamplerKind::Light).with_steps(2).unwrap();
    assert_eq!(of(small().sampler(light)), (light, Hybrid::default(), SamplerKind::Light));
    let both = small().sampler(light).short_length(20);
    assert_eq!(of(both), (light, long(20, 1), SamplerKind::Light));
}

#[test]
fn an_observer_that_panics_ends_all_nodes() {
    let corpus = corpus();
    let observer = |_: &EpochReport| -> Flow { panic!("the observer's own message") };
    let run = || small().workers(2).train(&corpus, observer);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
}

#[test]
fn wrong_options_are_refused_before_work() {
    let corpus = corpus();
    let refused = |run: Distributed| run.train(&corpus, ()).unwrap_err().to_string();
    assert!(refused(small().epochs(0)).contains("epochs"));
    assert!(refused(small().beta(-1.0)).contains("-1"));
    assert!(refused(small().workers(5)).contains("5 workers for 4 shards"));
    assert!(refused(small().shards(61)).contains("61 shards of 60 documents"));
    assert!(refused(small().sync(SyncMode::rounds(9)).rounds(4)).contains("staleness of 9"));
    small().servers(0).train(&corpus, ()).unwrap_err();
    let warp = small().sampler(SamplerKind::Warp).short_length(20);
    assert!(refused(warp).starts_with("warp samples all documents, also those of 20 tokens"));
    let excluding = SamplerOptions::Zen { exclude_from: Some(0) };
    assert!(refused(small().sampler(excluding)).contains("exclude-converged-from is 0"));
    let light = SamplerOptions::from(SamplerKind::Light);
    assert!(refused(small().sampler(light.with_steps(65).unwrap())).contains("mh-steps"));
    let empty = Corpus::from_tokens([[0u32; 0]]);
    if let Ok(empty) = empty {
        small().train(&empty, ()).unwrap_err();
    }
}
