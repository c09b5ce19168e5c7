//! Runs over blocks: the same bits whatever stays in memory, counts that equal a recount, and errors that leave
//! the last complete epoch.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::loaded::{Loader, TopicSource};
use super::store::TopicStore;
use super::{BlockRunError, BlockTrainer};
use crate::Corpus;
use crate::corpus::CorpusBuilder;
use crate::corpus::blocks::{BlockDirectory, BlockView, Blocks, Manifest};
use crate::eval::{CoherenceOptions, CompletionOptions, DocumentCompletion, Measure, coherence};
use crate::layout::WordRanges;
use crate::prior::Alpha;
use crate::train::registry::SamplerSetup;
use crate::train::{
    Assignments, FirstTopics, HeldOut, Init, Learn, PseudoCounts, SamplerKind, SamplerOptions,
    Start, TrainOptions, Trainer,
};

/// A directory that is removed at the end of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("lda-blocks-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// 120 documents of different lengths, some empty, in an order that makes blocks differ.
fn corpus() -> Corpus {
    let length = |d: u32| if d.is_multiple_of(17) { 0 } else { 1 + (d * d) % 40 };
    let documents = (0..120u32).map(|d| (0..length(d)).map(move |i| (d / 30 + i * i + d * 7) % 53));
    Corpus::from_tokens(documents).unwrap()
}

fn cut(scratch: &Scratch, tokens: u64) -> BlockDirectory {
    BlockDirectory::cut(&corpus(), tokens, scratch.join("blocks")).unwrap()
}

/// Options of every sampler, and of what changes a run between epochs.
fn variants() -> Vec<(&'static str, TrainOptions)> {
    let base = || TrainOptions::new(7).seed(3).ranges(2).threads(2);
    let built_in = SamplerKind::ALL.into_iter().filter(|&kind| kind != SamplerKind::Custom);
    let mut all: Vec<(&str, TrainOptions)> =
        built_in.map(|kind| (kind.name(), base().sampler(kind))).collect();
    let hybrid = SamplerOptions::from(SamplerKind::Hybrid).with_short_length(12).unwrap();
    let excluding = SamplerOptions::from(SamplerKind::FPlus).with_exclusion(2).unwrap();
    let learn = Learn { burn_in: 1, every: 2, ..Learn::default() };
    all.extend([
        ("divided hybrid", base().sampler(hybrid)),
        ("exclusion", base().sampler(excluding)),
        ("learnt priors", base().sampler(SamplerKind::FPlus).learn(learn)),
        ("alpha by size", base().sampler(SamplerKind::FPlusDoc).alpha_by_size(3.0)),
        ("warm-up", base().sampler(SamplerKind::FPlusDoc).warm_up(2)),
        ("sparse start", base().sampler(SamplerKind::Sparse).start(Start::SparseWord)),
        ("wide", TrainOptions::new(70_000).sampler(SamplerKind::FPlus).ranges(2).threads(2)),
    ]);
    all
}

/// Topics after each of five epochs, of a run that keeps so many blocks in memory, and is resumed after some
/// epochs.
fn topics(
    blocks: &BlockDirectory,
    options: &TrainOptions,
    held: usize,
    resumed_after: &[u32],
) -> Vec<Vec<u32>> {
    let (scratch, mut options) = (Scratch::new(), options.clone());
    let memory = options.estimate_block_memory(blocks).unwrap();
    options = options.memory_limit(memory.total(held));
    let mut trainer = BlockTrainer::new(blocks, &options, scratch.join("run")).unwrap();
    // The last three blocks are in memory at once, whether or not they stay.
    let all = blocks.parts().len();
    assert_eq!(trainer.held_blocks(), if held + 3 < all { held } else { all });
    let mut all = vec![trainer.topics()];
    for epoch in 1..=5 {
        if resumed_after.contains(&(epoch - 1)) {
            drop(trainer);
            trainer = BlockTrainer::resume(blocks, &options, scratch.join("run")).unwrap();
        }
        let report = trainer.epoch().unwrap();
        assert_eq!(report.epoch, epoch);
        trainer.check().unwrap().unwrap();
        all.push(trainer.topics());
    }
    all
}

#[test]
fn bits_depend_neither_on_memory_nor_on_threads_nor_on_interruptions() {
    let scratch = Scratch::new();
    let blocks = cut(&scratch, 250);
    let n = blocks.parts().len();
    assert!(n > 6, "{n} blocks");
    for (name, options) in variants() {
        let all = topics(&blocks, &options, n, &[]);
        assert_ne!(all[4], all[5], "{name}");
        for (held, threads, resumed) in [(0, 1, &[][..]), (2, 3, &[0, 1, 2, 3, 4]), (n, 1, &[2])] {
            let found = topics(&blocks, &options.clone().threads(threads), held, resumed);
            assert!(found == all, "{name}, {held} blocks in memory, {threads} threads");
        }
    }
}

/// Exact Gibbs sampling has dense rows, so that the order in which tokens are counted does not matter.
#[test]
fn the_first_epoch_of_a_single_block_is_that_of_its_corpus() {
    let (scratch, corpus) = (Scratch::new(), corpus());
    let blocks = cut(&scratch, u64::MAX);
    let options = TrainOptions::new(9).sampler(SamplerKind::Exact).ranges(3);
    let mut whole = Trainer::new(&corpus, &options).unwrap();
    let mut of_blocks = BlockTrainer::new(&blocks, &options, scratch.join("run")).unwrap();
    assert_eq!(of_blocks.topics(), whole.assignments().as_slice());
    for _ in 0..3 {
        let (a, b) = (whole.epoch(), of_blocks.epoch().unwrap());
        assert_eq!(a.changed, b.changed);
        assert_eq!(of_blocks.topics(), whole.assignments().as_slice());
    }
}

/// Otherwise two blocks would draw the same random numbers.
#[test]
fn token_sets_of_all_blocks_have_different_numbers() {
    let scratch = Scratch::new();
    let blocks = cut(&scratch, 900);
    let hybrid = SamplerOptions::from(SamplerKind::Hybrid).with_short_length(12).unwrap();
    let options = TrainOptions::new(5).sampler(hybrid);
    let resolved = super::trainer::resolve(&blocks, &options, &None).unwrap();
    let words = WordRanges::new(blocks.statistics().word_frequencies(), resolved.ranges);
    let loader = Loader {
        blocks: &blocks,
        store: &TopicStore::create(&scratch.join("run")).unwrap(),
        setup: SamplerSetup { options: &resolved, custom: None },
        words: words.into(),
        handed_over: None,
    };
    let first = FirstTopics::new(5, Start::Random, 0.1, 1);
    let mut numbers = std::collections::BTreeSet::new();
    for block in 0..blocks.parts().len() {
        let loaded = loader.load::<u16>(block, TopicSource::Drawn(&first)).unwrap();
        assert!(loaded.sets.iter().all(|set| numbers.insert(set.shard)), "{numbers:?}");
    }
    assert_eq!(numbers.len(), 2 * blocks.parts().len());
}

/// Files have tokens in the order of their layout: another order needs another [`LAYOUT`].
#[test]
fn the_layout_of_files_is_pinned() {
    let scratch = Scratch::new();
    let blocks = cut(&scratch, 900);
    let kinds = [SamplerKind::FPlus, SamplerKind::FPlusDoc, SamplerKind::ZenHybrid];
    let found = kinds.map(|kind| {
        let options = TrainOptions::new(40).sampler(kind).ranges(3).seed(1);
        let run = scratch.join(kind.name());
        BlockTrainer::new(&blocks, &options, &run).unwrap();
        let file = fs::read(run.join("topics-0000000000-00001")).unwrap();
        format!("{:016x}", crate::container::checksum(&file))
    });
    assert_eq!(found, ["bbf188cd65087ac9", "4d1afc7083c9963e", "3ba9ac779362f249"]);
}

#[test]
fn evaluations_are_those_of_the_whole_corpus() {
    let (scratch, corpus) = (Scratch::new(), corpus());
    let blocks = cut(&scratch, 500);
    let seeds = PseudoCounts::new(53, 7, [(0, 1, 40), (5, 2, 30)]).unwrap();
    for (name, pseudo, kind) in
        [("plain", None, SamplerKind::FPlus), ("pseudo-counts", Some(seeds), SamplerKind::Warp)]
    {
        let options = TrainOptions::new(7).sampler(kind).epochs(4).evaluate_every(2);
        let run = scratch.join(name);
        let mut trainer =
            BlockTrainer::with_pseudo_counts(&blocks, &options, run, pseudo.clone()).unwrap();
        let held_out = HeldOut::new(Corpus::from_tokens([[0, 1, 2, 30], [5, 6, 7, 7]]).unwrap());
        trainer.early_stopping(held_out).unwrap();
        let mut evaluated = Vec::new();
        let last = trainer
            .run(
                |report: &crate::train::EpochReport| {
                    evaluated.push(report.log_joint.is_some());
                    crate::train::Flow::Continue
                },
                || false,
            )
            .unwrap();
        assert_eq!(evaluated, [false, true, false, true], "{name}");
        let assignments = Assignments::new(&corpus, trainer.topics()).unwrap();
        let init = Init { pseudo_counts: pseudo, topics: Some(&assignments) };
        let whole = Trainer::with_init(&corpus, &options, init).unwrap();
        let (expected, found) = (whole.log_joint(), trainer.log_joint().unwrap());
        for (expected, found) in [
            (expected.documents, found.documents),
            (expected.words, found.words),
            (expected.total(), last.log_joint.unwrap()),
        ] {
            assert!((expected / found - 1.0).abs() < 1e-12, "{name}: {expected} and {found}");
        }
        assert!(last.perplexity.is_some_and(f64::is_finite));
        assert_eq!(trainer.model().counts(), whole.model().counts(), "{name}");
        let (found, expected) = (trainer.diagnose(5).unwrap(), whole.diagnose(5));
        assert_eq!(found, expected, "{name}");
        // Within an epoch the same rows are there already.
        assert_eq!(trainer.epoch().unwrap().epoch, 5);
    }
}

#[test]
fn documents_are_visited_with_their_topics() {
    let scratch = Scratch::new();
    let (corpus, blocks) = (corpus(), cut(&scratch, 500));
    let mut trainer =
        BlockTrainer::new(&blocks, &TrainOptions::new(4), scratch.join("run")).unwrap();
    trainer.epoch().unwrap();
    let all = Assignments::new(&corpus, trainer.topics()).unwrap();
    let mut next = 0;
    let visited = trainer.visit_topics(|first, documents, topics| {
        assert_eq!(first, next);
        for d in 0..documents.num_documents() {
            let whole = (first as usize) + d;
            assert_eq!(documents.document(d), corpus.document(whole));
            assert_eq!(topics.document(d), all.document(whole));
        }
        next += documents.num_documents() as u64;
        Ok::<(), ()>(())
    });
    assert_eq!(visited.unwrap(), Ok(()));
    assert_eq!(next, 120);
    // An error of the caller ends the visit, and not the run.
    let mut blocks_seen = 0;
    let visited = trainer.visit_topics(|_, _, _| {
        blocks_seen += 1;
        if blocks_seen == 2 { Err("full") } else { Ok(()) }
    });
    assert_eq!((visited.unwrap(), blocks_seen), (Err("full"), 2));
    assert_eq!(trainer.epoch().unwrap().epoch, 2);
    trainer.check().unwrap().unwrap();
}

/// As those of [`eval::coherence`](crate::eval::coherence()) in all documents at once.
#[test]
fn coherence_is_that_of_the_whole_corpus() {
    let scratch = Scratch::new();
    let mut builder = CorpusBuilder::new().keep_order();
    for d in 0..90u32 {
        builder.push_tokens((0..d % 23).map(|i| (d / 30 + i * i) % 11)).unwrap();
    }
    let ordered = builder.build().unwrap();
    let topics = [vec![0, 1, 2, 4], vec![9, 5, 3], vec![7]];
    for (name, corpus) in [("ordered", ordered), ("pairs", corpus())] {
        let blocks = BlockDirectory::cut(&corpus, 200, scratch.join(name)).unwrap();
        assert!(blocks.parts().len() > 3);
        let run = scratch.join(&format!("run-{name}"));
        let trainer = BlockTrainer::new(&blocks, &TrainOptions::new(4), run).unwrap();
        for measure in Measure::ALL {
            let options = CoherenceOptions::fitting(measure, &corpus);
            let found = trainer.coherence(&topics, &options).unwrap();
            assert_eq!(found, coherence(&corpus, &topics, &options).unwrap());
            let windows = CoherenceOptions::new(measure);
            let found = trainer.coherence(&topics, &windows).map_err(|error| error.to_string());
            let expected = coherence(&corpus, &topics, &windows);
            assert_eq!(found, expected.map_err(|error| error.to_string()), "{name}");
        }
    }
}

/// Held-out documents in blocks are evaluated as those of one corpus, up to the order of additions.
#[test]
fn held_out_documents_may_be_blocks() {
    let (scratch, corpus) = (Scratch::new(), corpus());
    let blocks = Arc::new(cut(&scratch, 500));
    let is_held_out = |d: u64| d % 5 == 2;
    let (train, held) = BlockView::split(Arc::clone(&blocks), is_held_out).unwrap();
    let options = TrainOptions::new(5).epochs(40).evaluate_every(1).level_off(None);
    let mut trainer = BlockTrainer::new(train, &options, scratch.join("run")).unwrap();
    let completion = CompletionOptions { seed: 7, burn_in: 2, samples: 3 };
    let mut whole = corpus.select_tokens_of(|d| is_held_out(d as u64));
    let expected = trainer.perplexity_of(&whole, &completion).unwrap();
    let found = trainer.perplexity_of_blocks(&held, &completion).unwrap();
    assert!((expected.log_probability / found.log_probability - 1.0).abs() < 1e-12);
    assert_eq!(
        DocumentCompletion { log_probability: 0.0, ..expected },
        DocumentCompletion { log_probability: 0.0, ..found }
    );
    let held_out = HeldOut::new(held.clone()).completion(completion.clone()).patience(2);
    trainer.early_stopping_with_blocks(held_out).unwrap();
    let last = trainer.run((), || false).unwrap();
    assert!(last.epoch < 40, "{}", last.epoch);
    let again = trainer.perplexity_of_blocks(&held, &completion).unwrap().perplexity();
    assert_eq!(last.perplexity, Some(again));

    let none =
        HeldOut::new(held.clone()).completion(CompletionOptions { samples: 0, ..completion });
    let error = trainer.early_stopping_with_blocks(none).unwrap_err().to_string();
    assert_eq!(error, "held-out documents: samples is 0: give at least 1");
    whole = corpus.select([]);
    assert!(trainer.early_stopping(HeldOut::new(whole)).is_err());
    // A block of the held-out documents that is gone is an error of its file.
    fs::remove_file(scratch.join("blocks").join(Manifest::part_name(1))).unwrap();
    let error = trainer.perplexity_of_blocks(&held, &CompletionOptions::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("part-00001"), "{error}");
}

/// The model is that of the topics, and its provenance that of the documents.
#[test]
fn a_model_knows_where_it_comes_from() {
    let scratch = Scratch::new();
    let words: Vec<[String; 3]> =
        (0..30).map(|d| [d % 5, d % 3, d % 7].map(|w| format!("w{w}"))).collect();
    let corpus = Corpus::from_words(words).unwrap();
    let blocks = BlockDirectory::cut(&corpus, 20, scratch.join("blocks")).unwrap();
    let options = TrainOptions::new(3).sampler(SamplerKind::FPlus).epochs(3);
    let mut trainer = BlockTrainer::new(&blocks, &options, scratch.join("run")).unwrap();
    trainer.run((), || false).unwrap();
    let model = trainer.model();
    assert_eq!(model.vocabulary(), corpus.vocabulary());
    let provenance = model.provenance();
    assert_eq!(
        (provenance.documents, provenance.tokens, provenance.epochs),
        (Some(30), Some(90), Some(3))
    );
    assert_eq!(trainer.priors().0, Alpha::Symmetric(TrainOptions::default_alpha(3, 3.0).get(0)));
    trainer.remove_files().unwrap();
    assert!(fs::read_dir(scratch.join("run")).unwrap().next().is_none());
}

fn refused<T>(result: Result<T, BlockRunError>) -> String {
    match result {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn other_runs_and_documents_are_refused() {
    let scratch = Scratch::new();
    let blocks = cut(&scratch, 500);
    let options = TrainOptions::new(5).sampler(SamplerKind::FPlus);
    let run = scratch.join("run");
    let absent = refused(BlockTrainer::resume(&blocks, &options, &run));
    assert!(absent.contains("run") && absent.contains("check that the file exists"), "{absent}");
    let mut trainer = BlockTrainer::new(&blocks, &options, &run).unwrap();
    trainer.epoch().unwrap();
    drop(trainer);
    let occupied = refused(BlockTrainer::new(&blocks, &options, &run));
    assert!(occupied.contains("of another run"), "{occupied}");
    let other = refused(BlockTrainer::resume(&blocks, &TrainOptions::new(6), &run));
    assert!(other.contains("topics 5") && other.contains("6"), "{other}");
    let coarser = BlockDirectory::cut(&corpus(), 900, scratch.join("coarser")).unwrap();
    let other = refused(BlockTrainer::resume(&coarser, &options, &run));
    assert!(other.contains("another corpus"), "{other}");
    let little = options.clone().memory_limit(10_000);
    let low = refused(BlockTrainer::resume(&blocks, &little, &run));
    assert!(low.contains("memory limit is 10000"), "{low}");
    assert_eq!(BlockTrainer::<&BlockDirectory>::options_of(&run).unwrap().topics, 5);
    assert_eq!(BlockTrainer::resume(&blocks, &options, &run).unwrap().epochs(), 1);
}

/// An error names the file, and the run goes on from the last complete epoch when the file is back.
#[test]
fn errors_of_files_leave_the_last_epoch() {
    let scratch = Scratch::new();
    let blocks = cut(&scratch, 500);
    let options = TrainOptions::new(5).sampler(SamplerKind::FPlusDoc);
    let run = scratch.join("run");
    let mut trainer = BlockTrainer::new(&blocks, &options, &run).unwrap();
    trainer.epoch().unwrap();
    let after_one = trainer.topics();
    trainer.epoch().unwrap();
    let expected = trainer.topics();
    drop(trainer);
    let begin = || {
        fs::remove_dir_all(&run).unwrap();
        let mut trainer = BlockTrainer::new(&blocks, &options, &run).unwrap();
        trainer.epoch().unwrap();
        trainer
    };
    for name in ["layout-00002", "topics-0000000001-00002"] {
        let path = run.join(name);
        // Missing, torn, with a changed bit, of another block.
        for damage in 0..4 {
            let mut trainer = begin();
            let whole = fs::read(&path).unwrap();
            match damage {
                0 => fs::remove_file(&path).unwrap(),
                1 => fs::write(&path, &whole[..whole.len() / 2]).unwrap(),
                2 => {
                    let mut changed = whole.clone();
                    *changed.last_mut().unwrap() ^= 1;
                    fs::write(&path, changed).unwrap();
                }
                _ => {
                    let other = run.join(name.replace("-00002", "-00001"));
                    fs::write(&path, fs::read(other).unwrap()).unwrap();
                }
            }
            if damage == 0 && name.starts_with("layout") {
                // The block is laid out again.
                trainer.epoch().unwrap();
                assert_eq!(trainer.topics(), expected);
                continue;
            }
            let error = refused(trainer.epoch());
            assert!(error.starts_with(&path.display().to_string()), "{error}");
            assert!(matches!(trainer.epoch(), Err(BlockRunError::Failed)));
            let error = refused(BlockTrainer::resume(&blocks, &options, &run));
            assert!(error.starts_with(&path.display().to_string()), "{error}");
            fs::write(&path, &whole).unwrap();
            let mut again = BlockTrainer::resume(&blocks, &options, &run).unwrap();
            assert_eq!((again.epochs(), again.topics()), (1, after_one.clone()));
            again.epoch().unwrap();
            assert_eq!(again.topics(), expected, "{} {damage}", path.display());
        }
    }
    // Blocks are read when a run begins.
    fs::remove_file(blocks.path().join(Manifest::part_name(2))).unwrap();
    let error = refused(BlockTrainer::new(&blocks, &options, scratch.join("other")));
    assert!(error.contains("part-00002: "), "{error}");
}

/// The exact sampler's law over blocks is Gibbs sampling's: its curve ends where that of one corpus does.
#[test]
fn the_likelihood_over_blocks_reaches_that_of_one_corpus() {
    let scratch = Scratch::new();
    let themes = [[0u32, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]];
    let documents = (0..300).map(|d| (0..12).map(move |i| themes[d % 3][(i * 7 + d) % 4]));
    let corpus = Corpus::from_tokens(documents).unwrap();
    let blocks = BlockDirectory::cut(&corpus, 600, scratch.join("blocks")).unwrap();
    for kind in [SamplerKind::FPlus, SamplerKind::FPlusDoc, SamplerKind::Warp, SamplerKind::Light] {
        let options = TrainOptions::new(3).alpha(0.1).sampler(kind).epochs(60).evaluate_every(0);
        let mut whole = Trainer::new(&corpus, &options).unwrap();
        whole.run((), || false);
        let mut of_blocks =
            BlockTrainer::new(&blocks, &options, scratch.join(kind.name())).unwrap();
        of_blocks.run((), || false).unwrap();
        let (a, b) = (whole.log_joint().total(), of_blocks.log_joint().unwrap().total());
        assert!((a / b - 1.0).abs() < 0.01, "{kind}: {a} and {b}");
    }
}
