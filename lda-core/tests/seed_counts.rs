//! Runs that begin with counts, or with topics: they draw from the right law, and go on like others.

mod common;

use std::io::Cursor;

use common::assert_law;
use lda_benches::synthetic::{Lengths, Spec};
use lda_core::Corpus;
use lda_core::eval::{CompletionOptions, Phi, held_out_perplexity};
use lda_core::infer::Translation;
use lda_core::model::{RemoveError, TopicModel};
use lda_core::random::Xoshiro256PlusPlus;
use lda_core::train::{
    EpochReport, Flow, Init, Lda, Learn, LearnAlpha, OptionsError, PseudoCounts, PseudoCountsError,
    SamplerKind, Snapshot, TrainOptions, Trainer, Weight,
};
use statrs::function::gamma::ln_gamma;

fn corpus(seed: u64) -> Corpus {
    let lengths = vec![Lengths { weight: 1.0, mean: 60.0, sigma: 0.5 }];
    let spec =
        Spec { num_documents: 300, num_words: 300, num_topics: 6, lengths, ..Spec::default() };
    spec.generate(seed).expect("the parameters are legal").corpus
}

fn options(sampler: SamplerKind) -> TrainOptions {
    TrainOptions::new(6).alpha(0.2).beta(0.05).sampler(sampler).seed(5).ranges(2)
}

fn init(counts: &PseudoCounts) -> Init<'static> {
    Init { pseudo_counts: Some(counts.clone()), topics: None }
}

fn trained<'a>(
    corpus: &'a Corpus,
    options: &TrainOptions,
    init: Init<'_>,
    n: u32,
) -> Trainer<&'a Corpus> {
    let mut trainer = Trainer::with_init(corpus, options, init).unwrap();
    for _ in 0..n {
        trainer.epoch();
        trainer.check().unwrap();
    }
    trainer
}

mod law {
    use super::*;

    const ALPHA: f64 = 0.5;
    const BETA: f64 = 0.3;
    /// (document, word)
    const TOKENS: [(usize, usize); 4] = [(0, 0), (0, 1), (1, 1), (1, 2)];
    /// (word, topic, count)
    const PSEUDO: [(u32, u32, u32); 4] = [(0, 0, 2), (1, 0, 1), (1, 1, 4), (2, 1, 1)];

    fn topics(state: usize) -> [usize; 4] {
        std::array::from_fn(|j| state >> j & 1)
    }

    /// log p(W, Z | B) by its definition: Γ functions of all counts, less those of B alone.
    fn log_joint(state: usize) -> f64 {
        let (mut documents, mut words) = ([[0.0; 2]; 2], [[0.0; 2]; 3]);
        for ((d, w), k) in TOKENS.into_iter().zip(topics(state)) {
            documents[d][k] += 1.0;
            words[w][k] += 1.0;
        }
        let mut sum = 0.0;
        for row in documents {
            sum += ln_gamma(2.0 * ALPHA) - ln_gamma(2.0 * ALPHA + row[0] + row[1]);
            sum += row.iter().map(|n| ln_gamma(ALPHA + n) - ln_gamma(ALPHA)).sum::<f64>();
        }
        for k in 0..2 {
            let mut prior = [BETA; 3];
            let own = PSEUDO.iter().filter(|entry| entry.1 == k as u32);
            own.for_each(|&(word, _, count)| prior[word as usize] += f64::from(count));
            let total: f64 = prior.iter().sum();
            let tokens: f64 = words.iter().map(|row| row[k]).sum();
            sum += ln_gamma(total) - ln_gamma(total + tokens);
            let word = |w: usize| ln_gamma(prior[w] + words[w][k]) - ln_gamma(prior[w]);
            sum += (0..3).map(word).sum::<f64>();
        }
        sum
    }

    fn toy() -> (Corpus, PseudoCounts) {
        let corpus = Corpus::from_tokens([[0, 1], [1, 2]]).unwrap();
        (corpus, PseudoCounts::new(3, 2, PSEUDO).unwrap())
    }

    fn options(sampler: SamplerKind, seed: u64) -> TrainOptions {
        TrainOptions::new(2).alpha(ALPHA).beta(BETA).sampler(sampler).seed(seed).ranges(1)
    }

    fn assignments(corpus: &Corpus, state: usize) -> lda_core::train::Assignments {
        // The topics of a run that has none yet, changed by a model that knows nothing: the only way in
        // is a run's own, so runs are begun until one has them.
        (0..)
            .map(|seed| {
                Trainer::new(corpus, &options(SamplerKind::Exact, seed)).unwrap().assignments()
            })
            .find(|drawn| drawn.as_slice() == topics(state).map(|k| k as u32))
            .expect("all states are drawn")
    }

    #[test]
    fn log_joint_takes_off_what_the_counts_alone_have() {
        let (corpus, pseudo) = toy();
        for state in 0..16 {
            let first = assignments(&corpus, state);
            let init = Init { pseudo_counts: Some(pseudo.clone()), topics: Some(&first) };
            let options = options(SamplerKind::FPlus, 1);
            let trainer = Trainer::with_init(&corpus, &options, init).unwrap();
            let (found, expected) = (trainer.log_joint().total(), log_joint(state));
            assert!((found - expected).abs() < 1e-9, "{state}: {found} {expected}");
        }
    }

    /// From the posterior every exact sampler goes to the posterior, and it does go.
    #[test]
    fn exact_samplers_keep_the_posterior() {
        let (corpus, pseudo) = toy();
        let states: Vec<_> = (0..16).map(|state| assignments(&corpus, state)).collect();
        let posterior: Vec<f64> = (0..16).map(|state| log_joint(state).exp()).collect();
        let sum: f64 = posterior.iter().sum();
        for sampler in
            [SamplerKind::Exact, SamplerKind::FPlus, SamplerKind::FPlusDoc, SamplerKind::Sparse]
        {
            let mut rng = Xoshiro256PlusPlus::from_seed(3);
            let (mut seen, mut moved) = ([0; 16], 0);
            for seed in 0..40_000 {
                let mut u = rng.next_f64() * sum;
                let from = posterior.iter().position(|p| {
                    u -= p;
                    u < 0.0
                });
                let from = from.unwrap_or(15);
                let topics = Some(&states[from]);
                let init = Init { pseudo_counts: Some(pseudo.clone()), topics };
                let options = options(sampler, seed);
                let mut trainer = Trainer::with_init(&corpus, &options, init).unwrap();
                trainer.epoch();
                let after = trainer.assignments();
                let to = after.as_slice().iter().rev().fold(0, |to, &k| 2 * to + k as usize);
                seen[to] += 1;
                moved += usize::from(to != from);
            }
            assert_law(&seen, &posterior);
            assert!(moved > 20_000, "{sampler}: {moved}");
        }
    }
}

/// The words that say most of each topic, by a run of its own.
fn seeds(corpus: &Corpus) -> PseudoCounts {
    let run = trained(corpus, &options(SamplerKind::FPlus), Init::default(), 60);
    let phi = run.model();
    let mut entries = Vec::new();
    for topic in 0..6 {
        let mut words: Vec<u32> = (0..corpus.num_words() as u32).collect();
        words.sort_by(|&a, &b| {
            phi.phi(topic, b as usize).total_cmp(&phi.phi(topic, a as usize)).then(a.cmp(&b))
        });
        // In the place of the next topic, so that nothing is right by chance.
        let place = (topic as u32 + 1) % 6;
        entries.extend(words[..8].iter().map(|&word| (word, place, 200)));
    }
    PseudoCounts::new(corpus.num_words(), 6, entries).unwrap()
}

#[test]
fn seeded_topics_are_about_their_seeds() {
    let corpus = corpus(1);
    let seeds = seeds(&corpus);
    for sampler in SamplerKind::ALL {
        let run = trained(&corpus, &options(sampler), init(&seeds), 20);
        // Of the corpus's own tokens alone.
        let (assignments, mut own, mut all) = (run.assignments(), 0, 0);
        for d in 0..corpus.num_documents() {
            for (word, topic) in assignments.tokens(&corpus, d) {
                let [(seeded, _)] = *seeds.word(word as usize) else { continue };
                all += 1;
                own += usize::from(seeded == topic);
            }
        }
        assert!(all > 1000 && own * 10 > all * 8, "{sampler}: {own} of {all}");
        let counts = run.model();
        let totals: u64 = counts.counts().unwrap().totals().iter().sum();
        assert_eq!(totals, corpus.num_tokens() + seeds.sum(), "{sampler}");
    }
}

#[test]
fn seeds_are_found_by_name() {
    let corpus = Corpus::from_words([["a", "b"], ["c", "d"]]).unwrap();
    let seeds = [vec!["b", "nowhere"], vec![], vec!["a", "d"]];
    let counts = PseudoCounts::seeds(&corpus, 3, &seeds, 7).unwrap();
    assert_eq!(counts.word(0), [(2, 7)]);
    assert_eq!(counts.word(1), [(0, 7)]);
    assert_eq!(counts.sum(), 21);
    assert_eq!(PseudoCounts::unknown_seeds(&corpus, &seeds), ["nowhere"]);
    let none = PseudoCounts::seeds(&corpus, 3, &[vec!["x", "y"]], 7);
    let first = "x".to_owned();
    assert_eq!(none, Err(PseudoCountsError::UnknownSeeds { topic: 0, first }));
    let many = PseudoCounts::seeds(&corpus, 1, &seeds, 7);
    assert_eq!(many, Err(PseudoCountsError::TooManySeeds { seeded: 3, topics: 1 }));
    let unnamed = Corpus::from_tokens([[0, 1]]).unwrap();
    let none = PseudoCounts::seeds(&unnamed, 3, &seeds, 7);
    assert_eq!(none, Err(PseudoCountsError::NoVocabulary));
}

#[test]
fn interrupted_runs_go_on_with_their_counts() {
    let corpus = corpus(2);
    let seeds = seeds(&corpus);
    for sampler in SamplerKind::ALL {
        for warm_up in [0, 2] {
            let options =
                options(sampler).warm_up((sampler != SamplerKind::Warp).then_some(warm_up));
            let whole = trained(&corpus, &options, init(&seeds), 6);
            for at in [1, 2, 3, 5] {
                let half = trained(&corpus, &options, init(&seeds), at);
                let mut bytes = Cursor::new(Vec::new());
                half.snapshot().write_to(&mut bytes).unwrap();
                bytes.set_position(0);
                let snapshot = Snapshot::read_from(bytes).unwrap();
                assert_eq!(snapshot, half.snapshot());
                let mut again = Trainer::resume(&corpus, &snapshot, &options).unwrap();
                for _ in at..6 {
                    again.epoch();
                }
                assert_eq!(again.assignments(), whole.assignments(), "{sampler}, {at}");
                assert_eq!(again.log_joint(), whole.log_joint(), "{sampler}, {at}");
            }
        }
    }
}

fn perplexity(model: &TopicModel, corpus: &Corpus) -> f64 {
    let phi = Phi::from_model(model).unwrap();
    let options = CompletionOptions::default();
    held_out_perplexity(corpus, &phi, model.alpha(), &options).unwrap().perplexity()
}

#[test]
fn a_run_goes_on_from_a_model() {
    let all = corpus(3);
    let (old, new) = (all.select(0..200), all.select(200..220));
    let held_out = all.select(220..300);
    let first = trained(&old, &options(SamplerKind::FPlus), Init::default(), 60).model();
    let translation = Translation::new(&new, &first).unwrap();
    for sampler in SamplerKind::ALL {
        let alone = trained(&new, &options(sampler), Init::default(), 60).model();
        let counts =
            PseudoCounts::from_model(&first, &translation, &new, 6, Weight::Share(1.0)).unwrap();
        assert_eq!(counts.sum(), old.num_tokens());
        let on = trained(&new, &options(sampler), init(&counts), 20).model();
        let totals: u64 = on.counts().unwrap().totals().iter().sum();
        assert_eq!(totals, old.num_tokens() + new.num_tokens());
        let [alone, on] = [alone, on].map(|model| perplexity(&model, &held_out));
        assert!(on < 0.9 * alone, "{sampler}: {on} {alone}");
    }
    // More topics than the model has, and a part of its counts.
    let counts =
        PseudoCounts::from_model(&first, &translation, &new, 9, Weight::Share(0.3)).unwrap();
    let expected = (old.num_tokens() as f64 * 0.3).round() as u64;
    assert_eq!(counts.sum(), expected);
    let options = options(SamplerKind::FPlus).topics(9);
    assert_eq!(trained(&new, &options, init(&counts), 5).model().num_topics(), 9);
    let spread = Weight::TokensPerTopic(1000.0);
    let counts = PseudoCounts::from_model(&first, &translation, &new, 6, spread).unwrap();
    // What φ has above its floor, and a fraction of a token.
    assert!(counts.totals().iter().all(|total| (900..=1001).contains(total)), "{counts:?}");
}

#[test]
fn new_words_stand_behind_those_of_the_model() {
    let old = Corpus::from_words([["tree", "leaf", "tree"], ["sea", "wave", "sea"]]).unwrap();
    let lda = Lda::topics(2).epochs(20).seed(1).alpha(0.1);
    let model = lda.train(&old, |_: &EpochReport| Flow::Continue).unwrap().model;
    let mut new = Corpus::from_words([["foam", "sea", "foam"]]).unwrap();
    assert_eq!(new.add_words(model.vocabulary().unwrap()), Ok(3));
    let translation = Translation::new(&new, &model).unwrap();
    let counts = PseudoCounts::from_model(&model, &translation, &new, 2, Weight::Share(1.0));
    let counts = counts.unwrap();
    assert_eq!(counts.sum(), 6);
    let lda = Lda::topics(2).epochs(20).alpha(0.1).pseudo_counts(counts);
    let on = lda.train(&new, |_: &EpochReport| Flow::Continue).unwrap().model;
    let id = |word| on.vocabulary().unwrap().id(word).unwrap() as usize;
    let sea = (0..2).max_by(|&a, &b| on.phi(a, id("sea")).total_cmp(&on.phi(b, id("sea"))));
    let tree = (0..2).max_by(|&a, &b| on.phi(a, id("tree")).total_cmp(&on.phi(b, id("tree"))));
    assert_ne!(sea, tree);
    assert!(on.phi(sea.unwrap(), id("foam")) > 0.2);
}

#[test]
fn a_document_leaves_by_its_tokens() {
    let corpus = corpus(4);
    let run = trained(&corpus, &options(SamplerKind::FPlus), Init::default(), 10);
    let (model, assignments) = (run.model(), run.assignments());
    let kept = (0..300).filter(|d| d % 7 != 3).collect::<Vec<_>>();
    let gone = (0..300).filter(|d| d % 7 == 3);
    let tokens = gone.flat_map(|d| assignments.tokens(&corpus, d));
    let less = model.without(tokens).unwrap();

    // The same from the documents that are left, and from there training goes on.
    let (rest, topics) = (corpus.select(kept.iter().copied()), assignments.select(kept));
    let init = Init { topics: Some(&topics), pseudo_counts: None };
    let mut run = Trainer::with_init(&rest, &options(SamplerKind::Sparse), init).unwrap();
    run.check().unwrap();
    assert_eq!(run.model().counts(), less.counts());
    run.epoch();
    run.check().unwrap();

    let everything = || (0..300).flat_map(|d| assignments.tokens(&corpus, d));
    let empty = model.without(everything()).unwrap();
    assert_eq!(empty.counts().unwrap().num_entries(), 0);
    let (word, topic) = everything().next().unwrap();
    let expected = |word, topic| RemoveError::NotThere { word, topic, asked: 1, counted: 0 };
    assert_eq!(empty.without([(word, topic)]), Err(expected(word, topic)));
    assert_eq!(model.without([(9999, 0)]), Err(expected(9999, 0)));
    let entry = model.counts().unwrap().word(7).iter().next();
    let (topic, counted) = entry.expect("the word has tokens");
    let more = vec![(7, topic); counted as usize + 1];
    let expected = RemoveError::NotThere { word: 7, topic, asked: counted + 1, counted };
    assert_eq!(model.without(more), Err(expected));
}

#[test]
fn a_word_leaves_by_its_tokens() {
    let corpus = corpus(5);
    let run = trained(&corpus, &options(SamplerKind::FPlusDoc), Init::default(), 5);
    let kept = |word: u32| word % 5 != 2;
    let less = run.model().without_words(|word| !kept(word)).unwrap();
    let rest = corpus.select_words(kept);
    let topics = run.assignments().select_words(&corpus, kept);
    let init = Init { topics: Some(&topics), pseudo_counts: None };
    let run = Trainer::with_init(&rest, &options(SamplerKind::FPlus), init).unwrap();
    run.check().unwrap();
    assert_eq!(run.model().counts(), less.counts());
    assert!(rest.num_tokens() < corpus.num_tokens());
}

#[test]
fn what_does_not_fit_is_refused() {
    let corpus = corpus(6);
    let refused = |options: &TrainOptions, init| {
        Trainer::with_init(&corpus, options, init).unwrap_err().to_string()
    };
    let plain = options(SamplerKind::FPlus);
    let words = corpus.num_words();
    let narrow = PseudoCounts::new(9, 6, []).unwrap();
    assert_eq!(
        refused(&plain, init(&narrow)),
        format!(
            "the pseudo-counts are of 9 words and 6 topics, the run of {words} words and 6 topics: \
             make them for this one"
        )
    );
    let counts = PseudoCounts::new(words, 6, [(0, 0, u32::MAX - 10)]).unwrap();
    let too_many = Trainer::with_init(&corpus, &plain, init(&counts));
    assert!(matches!(too_many, Err(OptionsError::TooManyTokens { .. })));
    let learn = Learn { alpha: LearnAlpha::Fixed, beta: true, burn_in: 1, every: 1 };
    let learning = plain.clone().learn(learn);
    let few = PseudoCounts::new(words, 6, [(0, 0, 1)]).unwrap();
    assert_eq!(
        refused(&learning, init(&few)),
        "learn-beta is set beside pseudo-counts: leave one of them out"
    );

    let run = trained(&corpus, &plain, Init::default(), 1);
    let part = run.assignments().select(0..299);
    let short = Init { topics: Some(&part), pseudo_counts: None };
    assert_eq!(
        refused(&plain, short),
        "the topics to begin with do not fit: they are for 299 documents, the corpus has 300"
    );
    let all = run.assignments();
    let fewer = plain.clone().topics(3);
    let above = refused(&fewer, Init { topics: Some(&all), pseudo_counts: None });
    assert!(above.ends_with("but the run has topics below 3"), "{above}");

    let model = run.model();
    let translation = Translation::new(&corpus, &model).unwrap();
    let from = |topics, weight| {
        PseudoCounts::from_model(&model, &translation, &corpus, topics, weight).unwrap_err()
    };
    let fewer = PseudoCountsError::FewerTopics { model: 6, topics: 5 };
    assert_eq!(from(5, Weight::Share(1.0)), fewer);
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let message = from(6, Weight::Share(weight)).to_string();
        assert!(message.ends_with("give a number above 0, and 1e9 at most"), "{message}");
    }
    assert!(matches!(from(6, Weight::Share(1e9)), PseudoCountsError::TooMany { .. }));
}
