//! Options beside the samplers: sparse starts, a prior that follows topic sizes, converged tokens
//! left out, and what is refused.

use std::collections::HashSet;

use crate::corpora::made;
use lda_core::Corpus;
use lda_core::prior::Alpha;
use lda_core::sampler::Proposals;
use lda_core::simd::Isa;
use lda_core::train::{
    Choice, EpochReport, Flow, LevelOff, OptionsError, SamplerKind, SamplerOptions, Start,
    TrainOptions, Trainer,
};

const TOPICS: u32 = 40;

fn corpus() -> Corpus {
    made(150, 200, 8, 40.0)
}

fn options(sampler: SamplerKind) -> TrainOptions {
    TrainOptions::new(TOPICS).sampler(sampler).ranges(4).seed(6)
}

fn trainer<'a>(corpus: &'a Corpus, options: &TrainOptions) -> Trainer<&'a Corpus> {
    Trainer::new(corpus, options).expect("the options are legal")
}

fn fingerprint(corpus: &Corpus, options: &TrainOptions, epochs: u32) -> u64 {
    let mut trainer = trainer(corpus, options);
    for _ in 0..epochs {
        trainer.epoch();
    }
    trainer.assignments().fingerprint()
}

#[test]
fn a_start_does_not_depend_on_sampler_or_grid() {
    let corpus = corpus();
    let mut starts = HashSet::new();
    for start in Start::ALL {
        let of = |sampler, ranges| {
            let options = options(sampler).start(start).ranges(ranges);
            fingerprint(&corpus, &options, 0)
        };
        let expected = of(SamplerKind::Exact, 1);
        for sampler in SamplerKind::ALL {
            for ranges in [1, 3] {
                assert_eq!(of(sampler, ranges), expected, "{start:?}, {sampler}, {ranges} ranges");
            }
        }
        starts.insert(expected);
    }
    assert_eq!(starts.len(), Start::ALL.len());
}

/// Distinct topics that the tokens of each word, or of each document, start with.
fn spread(corpus: &Corpus, start: Start, by_word: bool) -> Vec<usize> {
    // A tenth of 35 topics is four.
    let options = options(SamplerKind::FPlus).topics(35).start(start).start_degree(0.1);
    let trainer = trainer(corpus, &options);
    let assignments = trainer.assignments();
    let rows = if by_word { corpus.num_words() } else { corpus.num_documents() };
    let mut seen = vec![HashSet::new(); rows];
    for (d, document) in corpus.documents().enumerate() {
        let words = document.words.iter().zip(document.counts);
        let words = words.flat_map(|(&word, &count)| std::iter::repeat_n(word, count as usize));
        for (word, &topic) in words.zip(assignments.document(d)) {
            seen[if by_word { word as usize } else { d }].insert(topic);
        }
    }
    seen.into_iter().map(|topics| topics.len()).collect()
}

#[test]
fn sparse_starts_are_sparse_on_their_axis() {
    let corpus = corpus();
    for (start, by_word) in [(Start::SparseWord, true), (Start::SparseDocument, false)] {
        let own = spread(&corpus, start, by_word);
        assert!(own.iter().all(|&topics| topics <= 4), "{start:?}: {own:?}");
        assert!(own.contains(&4));
        // All topics are used, by one row or another.
        let other = spread(&corpus, start, !by_word);
        assert!(other.iter().any(|&topics| topics > 4), "{start:?}: {other:?}");
    }
}

/// The prior of an epoch is that of the sizes at its start, and the epoch is the one of a run that
/// was given this prior.
#[test]
fn the_prior_follows_topic_sizes() {
    let corpus = corpus();
    let (alpha, smoothing) = (0.7, 25.0);
    let sum = alpha * f64::from(TOPICS);
    for sampler in SamplerKind::ALL {
        let followed =
            options(sampler).alpha(alpha).alpha_by_size(smoothing).start(Start::SparseDocument);
        let mut run = trainer(&corpus, &followed);
        let sizes = run.model().counts().unwrap().totals().to_vec();
        run.epoch();
        let tokens = corpus.num_tokens() as f64;
        let expected: Vec<f64> = sizes
            .iter()
            .map(|&size| sum * (size as f64 + smoothing / f64::from(TOPICS)) / (tokens + smoothing))
            .collect();
        let used = run.model().alpha().clone();
        assert!((used.sum(TOPICS as usize) - sum).abs() < 1e-9 * sum, "{sampler}");
        for (k, &expected) in expected.iter().enumerate() {
            assert!((used.get(k) / expected - 1.0).abs() < 1e-12, "{sampler}, topic {k}");
        }
        let given = followed.clone().alpha(used).alpha_by_size(None);
        let mut other = trainer(&corpus, &given);
        other.epoch();
        assert_eq!(run.assignments(), other.assignments(), "{sampler}");
        assert_eq!(run.log_joint().total(), other.log_joint().total(), "{sampler}");
        // The next epoch has another prior.
        let before = run.model().alpha().clone();
        run.epoch();
        assert_ne!(*run.model().alpha(), before, "{sampler}");
        assert_eq!(run.model().num_topics(), TOPICS as usize);
    }
}

fn excluding(sampler: SamplerKind) -> TrainOptions {
    let excluding = SamplerOptions::from(sampler).with_exclusion(4).expect("it can");
    options(sampler).sampler(excluding)
}

fn samplers_that_exclude() -> impl Iterator<Item = SamplerKind> {
    let can = |&kind: &SamplerKind| SamplerOptions::from(kind).with_exclusion(1).is_ok();
    SamplerKind::ALL.into_iter().filter(can)
}

#[test]
fn converged_tokens_are_left_out_from_an_epoch_on() {
    let corpus = corpus();
    for sampler in samplers_that_exclude() {
        let mut run = trainer(&corpus, &excluding(sampler));
        let mut all = trainer(&corpus, &options(sampler));
        let epochs: Vec<EpochReport> = (1..=12)
            .map(|epoch| {
                let report = run.epoch();
                run.check().unwrap_or_else(|wrong| panic!("{sampler}, epoch {epoch}: {wrong}"));
                all.epoch();
                // In epoch 4 every token is new to it.
                assert_eq!(
                    run.assignments() == all.assignments(),
                    epoch <= 4,
                    "{sampler}, {epoch}"
                );
                report
            })
            .collect();
        let sampled: Vec<f64> =
            epochs.iter().map(|epoch| epoch.sampled.expect("asked for")).collect();
        assert!(sampled[..4].iter().all(|&share| share == 1.0), "{sampler}: {sampled:?}");
        assert!(sampled[4..].iter().all(|&share| share < 1.0), "{sampler}: {sampled:?}");
        assert!(sampled[11] < 0.95, "{sampler}: {sampled:?}");
        assert!(sampled[11] > 0.05, "{sampler}: {sampled:?}");
    }
}

#[test]
fn what_is_left_out_does_not_depend_on_the_machine() {
    let corpus = corpus();
    for sampler in samplers_that_exclude() {
        let run = |options: TrainOptions| fingerprint(&corpus, &options, 8);
        let alone = run(excluding(sampler).threads(1));
        assert_eq!(run(excluding(sampler).threads(3)), alone, "{sampler}");
        for isa in Isa::available() {
            assert_eq!(run(excluding(sampler).isa(isa)), alone, "{sampler}");
        }
    }
}

#[test]
fn illegal_options_are_refused() {
    let corpus = corpus();
    let refused = |options: TrainOptions| match Trainer::new(&corpus, &options) {
        Ok(_) => panic!("{options:?} was not refused"),
        Err(error) => error.to_string(),
    };
    // Each option against each sampler: set, or refused with the samplers that have it.
    type With = fn(SamplerOptions) -> Result<SamplerOptions, OptionsError>;
    let exclusion = "exact, f-plus, f-plus-doc, sparse, alias, light, zen, zen-doc, zen-hybrid";
    let own: [(&str, &str, With); 5] = [
        ("mh-steps", "alias, light, warp, hybrid", |sampler| sampler.with_steps(2)),
        ("exclude-converged-from", exclusion, |sampler| sampler.with_exclusion(30)),
        ("proposals", "light", |sampler| sampler.with_proposals(Proposals::Word)),
        ("short-length", "hybrid", |sampler| sampler.with_short_length(5)),
        ("mh-steps-cap", "hybrid", |sampler| sampler.with_step_cap(5)),
    ];
    for (option, able, with) in own {
        let able: Vec<&str> = able.split(", ").collect();
        for kind in SamplerKind::ALL {
            let sampler = SamplerOptions::from(kind);
            match with(sampler) {
                Ok(given) => assert!(able.contains(&kind.name()) && given != sampler, "{kind}"),
                Err(error) => {
                    assert!(!able.contains(&kind.name()), "{kind}: {error}");
                    let (one, many) = (format!("sampler {}", able[0]), able[0].to_owned() + ", ");
                    let first = if able.len() == 1 { one } else { format!("samplers {many}") };
                    let start = format!("{option} applies to the {first}");
                    let end = format!("not to {kind}: leave it out, or choose another sampler");
                    let error = error.to_string();
                    assert!(error.starts_with(&start) && error.ends_with(&end), "{error}");
                    assert!(able.iter().all(|name| error.contains(name)), "{error}");
                }
            }
        }
    }
    for steps in [0, 65] {
        let said = refused(options(SamplerKind::Warp).sampler(SamplerOptions::Warp { steps }));
        assert!(said.starts_with(&format!("mh-steps is {steps}: give ")), "{said}");
    }
    for (what, bad) in [
        ("start-degree", TrainOptions::default().start_degree(1.5)),
        ("start-degree", TrainOptions::default().start_degree(f64::NAN)),
        ("alpha-by-size", TrainOptions::default().alpha_by_size(0.0)),
        ("alpha-by-size", TrainOptions::default().alpha_by_size(f64::NAN)),
        (
            "alpha-by-size",
            TrainOptions::new(2).alpha_by_size(1.0).alpha(Alpha::PerTopic(vec![0.1, 0.2])),
        ),
        (
            "exclude-converged-from",
            options(SamplerKind::Exact).sampler(SamplerOptions::Exact { exclude_from: Some(0) }),
        ),
    ] {
        let said = refused(bad);
        assert!(said.starts_with(what), "{said}");
    }
}

/// By default, the same sampler is chosen everywhere, and it can train.
#[test]
fn a_sampler_is_picked() {
    let corpus = corpus();
    for topics in [1, 100, 1000, 70_000] {
        let options = TrainOptions::new(topics);
        let mut trainer = trainer(&corpus, &options);
        let resolved = trainer.resolved();
        let choice = Choice { sampler: resolved.sampler, warm_up: resolved.warm_up };
        assert_eq!(choice, Choice::auto(topics, &corpus));
        trainer.epoch();
        trainer.check().expect("counts equal a recount");
    }
}

/// A run that warms up is WarpLDA's as long as it does; its sampler then goes on from there.
#[test]
fn a_warm_up_hands_its_topics_over() {
    let corpus = corpus();
    let warm = |sampler| options(sampler).warm_up(3);
    let warp = fingerprint(&corpus, &options(SamplerKind::Warp), 3);
    let mut ends = HashSet::new();
    for sampler in SamplerKind::ALL.into_iter().filter(|&kind| kind != SamplerKind::Warp) {
        let options = warm(sampler);
        let mut trainer = trainer(&corpus, &options);
        for epoch in 1..=3 {
            let report = trainer.epoch();
            assert_eq!((report.epoch, report.sampler), (epoch, SamplerKind::Warp));
        }
        let before = trainer.assignments();
        assert_eq!(before.fingerprint(), warp, "{sampler}");
        let report = trainer.epoch();
        assert_eq!((report.epoch, report.sampler), (4, sampler));
        trainer.check().unwrap_or_else(|wrong| panic!("{sampler}: {wrong}"));
        // What the sampler says it has changed is counted from what it began with.
        let after = trainer.assignments();
        let moved = before.as_slice().iter().zip(after.as_slice()).filter(|(a, b)| a != b).count();
        let share = moved as f64 / corpus.num_tokens() as f64;
        if sampler != SamplerKind::Hybrid {
            assert!((report.changed - share).abs() < 1e-12, "{sampler}: {share} moved");
        }
        ends.insert(after.fingerprint());
    }
    assert!(ends.len() >= 5, "samplers differ once it is their turn");
}

#[test]
fn a_warm_up_gives_the_same_bits_at_any_thread_count() {
    let corpus = corpus();
    let of = |threads| {
        let options = options(SamplerKind::FPlus)
            .warm_up(4)
            .threads(threads)
            .sampler(SamplerOptions::FPlus { exclude_from: Some(6) });
        fingerprint(&corpus, &options, 9)
    };
    assert_eq!(of(1), of(3));
}

/// A limit of seconds is meant for the sampler, too, and the record of the run gives the same bits.
#[test]
fn a_default_warm_up_takes_at_most_half_of_the_seconds() {
    let corpus = corpus();
    let base = || TrainOptions::new(30).evaluate_every(0);
    let limited = base().seconds(0.3);
    let mut timed = trainer(&corpus, &limited);
    assert_eq!(timed.resolved().warm_up, 640);
    let last = timed.run(|_: &EpochReport| Flow::Continue, || false);
    let warm_up = timed.resolved().warm_up;
    assert!(warm_up < last.epoch && last.sampler != SamplerKind::Warp, "{warm_up} {}", last.epoch);
    let counted = base().warm_up(warm_up);
    assert_eq!(fingerprint(&corpus, &counted, last.epoch), timed.assignments().fingerprint());
    // A length that was asked for stays, and a model says how many epochs WarpLDA had.
    let asked = base().warm_up(1_000_000).seconds(0.01);
    let mut warm = trainer(&corpus, &asked);
    let last = warm.run(|_: &EpochReport| Flow::Continue, || false);
    assert_eq!((last.sampler, warm.resolved().warm_up), (SamplerKind::Warp, 1_000_000));
    let known =
        lda_core::train::Resolved::from_provenance(warm.model().provenance()).unwrap().unwrap();
    assert_eq!(known.warm_up, last.epoch);
}

/// Likelihoods of a warm-up say nothing of where the sampler will level off.
#[test]
fn no_run_ends_because_its_warm_up_has_levelled_off() {
    let corpus = corpus();
    let mut epochs = 0;
    let options = options(SamplerKind::FPlus)
        .warm_up(20)
        .evaluate_every(1)
        // Levelled off as soon as there are two windows to compare.
        .level_off(LevelOff { window: 2, tolerance: 1e3 });
    trainer(&corpus, &options).run(
        |report: &EpochReport| {
            epochs = report.epoch;
            Flow::Continue
        },
        || false,
    );
    assert_eq!(epochs, 24);
}
