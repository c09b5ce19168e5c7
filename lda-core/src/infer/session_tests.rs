//! Methods of inference against their definitions.

use std::sync::Arc;

use super::tests::Counts;
use super::*;
use crate::Corpus;
use crate::model::{TopicModel, Weights};
use crate::prior::Alpha;
use crate::random::Xoshiro256PlusPlus;
use crate::simd::Isa;
use crate::special::digamma;
use crate::train::Lda;

fn counts(topics: usize, words: usize, seed: u64) -> TopicModel {
    let mut rng = Xoshiro256PlusPlus::from_seed(seed);
    let row = |_| {
        let mut row: Vec<(u32, u32)> = Vec::new();
        for topic in 0..topics.min(400) as u32 {
            if rng.below(3) == 0 {
                row.push((topic, 1 + rng.below(20)));
            }
        }
        row
    };
    let words = (0..words).map(row).collect();
    let alpha: Vec<f64> = (0..topics).map(|k| 0.05 + 0.1 * (k % 3) as f64).collect();
    TopicModel::from_counts(&Counts { topics, words }, Alpha::from(alpha), 0.5)
}

/// Without floors: word 0 is in no topic, other words are in some topics only.
fn weights(topics: usize, words: usize, seed: u64) -> TopicModel {
    let mut rng = Xoshiro256PlusPlus::from_seed(seed);
    let mut value = |word: usize| match (word, rng.below(2)) {
        (0, _) | (_, 0) => 0.0,
        _ => 0.1 + rng.next_f64(),
    };
    let mut rows: Vec<Vec<f64>> =
        (0..topics).map(|_| (0..words).map(&mut value).collect()).collect();
    rows.iter_mut().enumerate().for_each(|(k, row)| row[1 + k % (words - 1)] = 1.0);
    TopicModel::from_weights(Weights::from_rows(&rows).unwrap(), Alpha::Symmetric(0.3))
}

const METHODS: [Method; 3] = [Method::FOLD_IN, Method::RT, Method::VARIATIONAL];

/// E[C_dk | words] by enumeration of all assignments.
fn enumerated(model: &TopicModel, words: &[u32]) -> Vec<f64> {
    let topics = model.num_topics();
    let mut mean = vec![0.0; topics];
    let mut total = 0.0;
    for code in 0..topics.pow(words.len() as u32) {
        let mut counts = vec![0.0; topics];
        let (mut rest, mut weight) = (code, 1.0);
        for &word in words {
            let k = rest % topics;
            rest /= topics;
            weight *= (counts[k] + model.alpha().get(k)) * model.phi(k, word as usize);
            counts[k] += 1.0;
        }
        total += weight;
        mean.iter_mut().zip(counts).for_each(|(mean, count)| *mean += weight * count);
    }
    mean.iter().map(|mean| mean / total).collect()
}

#[test]
fn fold_in_samples_the_posterior() {
    for (model, words) in [
        (counts(3, 5, 1), &[0u32, 1, 1, 4][..]),
        (counts(4, 5, 2), &[0, 0, 1, 2, 3, 4, 4]),
        (weights(3, 5, 3), &[1, 2, 3, 3]),
        // Few of the many topics have the words, so rows are searched.
        (counts(2, 4, 4), &[0, 1, 2, 3, 0, 1, 2, 3]),
    ] {
        let known: Vec<u32> = words.iter().copied().filter(|&word| model.knows(word)).collect();
        assert!(known.len() > 1, "too few for a test");
        let expected = enumerated(&model, &known);
        let samples = 200_000;
        let method = Method::FoldIn { burn_in: 100, samples };
        let inference = Inference::new(&model, method, 7).unwrap();
        let answer = inference.session().infer(words.iter().copied());
        for (topic, expected) in (0..).zip(expected) {
            let at = answer.counts.iter().find(|&&(k, _)| k == topic);
            let found = at.map_or(0.0, |&(_, count)| count);
            // Sweeps are correlated: the tolerance of 1e-2 per token is thirty times the error of
            // independent samples.
            assert!((found - expected).abs() < 0.02, "topic {topic}: {found}, not {expected}");
        }
    }
}

#[test]
fn rows_are_searched_and_walked_to_the_same_weights() {
    // Many topics and a short document: search. Few topics and a long one: walk. Both in one.
    let model = counts(300, 40, 5);
    let mut rng = Xoshiro256PlusPlus::from_seed(1);
    let words: Vec<u32> = (0..400).map(|_| rng.below(40)).collect();
    let inference = Inference::new(&model, Method::FOLD_IN, 0).unwrap();
    let mut session = inference.session();
    for len in [1, 2, 3, 10, 50, 400] {
        let answer = session.infer(words[..len].iter().copied());
        let sum: f64 = answer.counts.iter().map(|&(_, count)| count).sum();
        assert!((sum - len as f64).abs() < 1e-9, "{sum}");
        assert!(answer.counts.is_sorted_by(|a, b| a.0 < b.0));
        let theta = inference.distribution(&answer);
        assert!((theta.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}

/// γ by the definition, over all K × V.
fn plain_variational(model: &TopicModel, words: &[u32], iterations: u32) -> Vec<f64> {
    let topics = model.num_topics();
    let alpha = |k: usize| model.alpha().get(k);
    let mut gamma: Vec<f64> =
        (0..topics).map(|k| alpha(k) + words.len() as f64 / topics as f64).collect();
    for _ in 0..iterations {
        let weights: Vec<f64> = gamma.iter().map(|&gamma| digamma(gamma).exp()).collect();
        let mut new: Vec<f64> = (0..topics).map(alpha).collect();
        for &word in words {
            let r: Vec<f64> =
                (0..topics).map(|k| weights[k] * model.phi(k, word as usize)).collect();
            let sum: f64 = r.iter().sum();
            new.iter_mut().zip(r).for_each(|(new, r)| *new += r / sum);
        }
        gamma = new;
    }
    gamma
}

#[test]
fn variational_is_the_e_step() {
    // With the last one nearly all topics are left out during the iterations.
    let many = counts(40, 30, 4);
    let sparse = TopicModel::from_counts(many.counts().unwrap(), Alpha::Symmetric(0.02), 0.01);
    for model in [counts(5, 30, 1), counts(40, 30, 2), weights(6, 30, 3), sparse] {
        let words = [1, 2, 2, 5, 7, 7, 7, 29, 3];
        let expected = plain_variational(&model, &words, 500);
        let method = Method::Variational { iterations: 500, tolerance: 0.0 };
        let inference = Inference::new(&model, method, 0).unwrap();
        let answer = inference.session().infer(words);
        let mut left_out = 0.0;
        for (topic, gamma) in (0..).zip(expected) {
            let count = gamma - model.alpha().get(topic as usize);
            match answer.counts.iter().find(|&&(k, _)| k == topic) {
                Some(&(_, found)) => assert!((found - count).abs() < 1e-2, "{found}, not {count}"),
                None => left_out += count,
            }
        }
        assert!(left_out < 1e-4 * model.num_topics() as f64, "{left_out}");
        let sum: f64 = answer.counts.iter().map(|&(_, count)| count).sum();
        assert!((sum - 9.0).abs() < 1e-9);
    }
}

#[test]
fn the_e_step_has_the_same_bits_by_all_instructions() {
    let many = counts(300, 60, 6);
    let uneven: Vec<f64> = (1..=300).map(|k| 0.01 * f64::from(k % 7 + 1)).collect();
    let models = [
        TopicModel::from_counts(many.counts().unwrap(), Alpha::Symmetric(0.02), 0.01),
        TopicModel::from_counts(many.counts().unwrap(), Alpha::from(uneven), 0.01),
        weights(60, 60, 4),
    ];
    let mut rng = Xoshiro256PlusPlus::from_seed(5);
    let words: Vec<u32> = (0..150).map(|_| rng.below(60)).collect();
    for model in models {
        let answers = Isa::available().map(|isa| {
            let inference = Inference::new(&model, Method::VARIATIONAL, 0).unwrap().with_isa(isa);
            inference.session().infer(words.iter().copied())
        });
        let answers: Vec<Answer> = answers.collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    }
}

#[test]
fn a_small_prior_does_not_underflow() {
    let model = counts(50, 20, 3);
    let tiny = TopicModel::from_counts(model.counts().unwrap(), Alpha::Symmetric(1e-5), 0.01);
    let inference = Inference::new(&tiny, Method::VARIATIONAL, 0).unwrap();
    let answer = inference.session().infer([1, 2, 3, 4, 5]);
    assert!(inference.distribution(&answer).iter().all(|theta| theta.is_finite()));
    assert!(!answer.counts.is_empty());
}

#[test]
fn answers_follow_from_the_document_alone() {
    let models = [counts(20, 60, 1), counts(70_000, 60, 2), weights(20, 60, 3)];
    let mut rng = Xoshiro256PlusPlus::from_seed(2);
    let documents: Vec<Vec<u32>> =
        (0..50).map(|d| (0..d).map(|_| rng.below(62)).collect()).collect();
    let corpus = Corpus::from_tokens(documents.clone()).unwrap();
    for model in models.map(Arc::new) {
        for method in METHODS {
            let inference = Inference::new(Arc::clone(&model), method, 3).unwrap();
            let all = inference.infer_corpus(&corpus);
            let alone = || {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
                pool.install(|| inference.infer_corpus(&corpus))
            };
            assert_eq!(alone(), all);
            let mut session = inference.session();
            let mut used = Answer { unknown: 9, counts: vec![(1, 1.0)], tokens: 4 };
            for d in (0..50).rev() {
                assert_eq!(session.infer_document(corpus.document(d)), all[d]);
                session.infer_into(documents[d].iter().copied(), &mut used);
                // RT-LDA depends on the order of the tokens.
                assert!(method == Method::RT || used == all[d], "{method:?}");
            }
            let other = Inference::new(Arc::clone(&model), method, 4).unwrap();
            let differs = other.infer_corpus(&corpus) != all;
            assert_eq!(differs, matches!(method, Method::FoldIn { .. }));
        }
    }
}

#[test]
fn odd_documents_are_answered() {
    for model in [counts(10, 60, 1), weights(10, 60, 2)] {
        for method in METHODS {
            let inference = Inference::new(&model, method, 0).unwrap();
            let mut session = inference.session();
            for words in [&[][..], &[60, 61, u32::MAX]] {
                let answer = session.infer(words.iter().copied());
                assert_eq!((answer.tokens, answer.unknown), (0, words.len() as u64));
                assert!(answer.counts.is_empty());
                let prior = model.alpha().get(3) / model.alpha().sum(10);
                assert!((inference.theta(&answer, 3) - prior).abs() < 1e-12);
            }
            let words = (0..1_000_000u32).map(|i| 1 + i % 59);
            let answer = session.infer(words);
            assert_eq!(answer.tokens, 1_000_000);
            let sum: f64 = inference.distribution(&answer).iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{method:?} {sum}");
        }
    }
    // A word with probability 0 in all topics is unknown.
    let model = weights(10, 60, 2);
    for method in [Method::FOLD_IN, Method::VARIATIONAL] {
        let answer = Inference::new(&model, method, 0).unwrap().session().infer([0, 1]);
        assert_eq!((answer.tokens, answer.unknown), (1, 1));
    }
}

/// Such a word has its floor as φ in each topic, and would lead to the smallest topic.
#[test]
fn words_without_a_token_in_training_are_unknown() {
    let corpus = Corpus::from_tokens([vec![0, 0, 1], vec![3, 3, 3, 3, 3, 3]]).unwrap();
    let lda = Lda::topics(2).alpha(0.1).epochs(20).seed(1);
    let model = lda.train(&corpus, ()).unwrap().model;
    assert_eq!([0, 1, 2, 3, 4].map(|word| model.knows(word)), [true, true, false, true, false]);
    for method in METHODS {
        let inference = Inference::new(&model, method, 0).unwrap();
        let answer = inference.session().infer([2; 8]);
        assert_eq!((answer.tokens, answer.unknown, answer.counts.len()), (0, 8, 0), "{method:?}");
        assert_eq!(inference.session().infer([0, 2, 3]).unknown, 1, "{method:?}");
    }
}

#[test]
fn methods_agree_where_topics_are_clear() {
    let rows = [vec![0.5, 0.5, 0.0, 0.0], vec![0.0, 0.0, 0.5, 0.5]];
    let model = TopicModel::from_weights(Weights::from_rows(&rows).unwrap(), 0.1.into());
    for method in METHODS {
        let inference = Inference::new(&model, method, 0).unwrap();
        let answer = inference.session().infer([2, 3, 0, 2]);
        assert!((inference.theta(&answer, 1) - 3.1 / 4.2).abs() < 0.02, "{method:?}");
        assert_eq!(inference.leading(&answer)[0].0, 1);
    }
}

#[test]
fn senseless_options_are_refused() {
    let model = counts(3, 4, 1);
    for (method, what) in [
        (Method::FoldIn { burn_in: 1, samples: 0 }, "samples is 0"),
        (Method::Variational { iterations: 0, tolerance: 0.1 }, "iterations is 0"),
        (Method::Variational { iterations: 1, tolerance: f64::NAN }, "tolerance is NaN"),
    ] {
        let error = Inference::new(&model, method, 0).unwrap_err().to_string();
        assert!(error.starts_with(what), "{error}");
    }
    let none = TopicModel::from_counts(&Counts { topics: 0, words: Vec::new() }, 0.1.into(), 0.1);
    for method in METHODS {
        assert!(Inference::new(&none, method, 0).is_err());
    }
}

#[test]
fn words_are_translated() {
    let corpus = Corpus::from_words([["a", "b", "c"]]).unwrap();
    let model = crate::train::Lda::topics(2).epochs(1).train(&corpus, ()).unwrap().model;
    let other = Corpus::from_words([vec!["c", "x", "y", "c", "a"], vec![], vec!["x"]]).unwrap();
    let translated = Translation::new(&other, &model).unwrap().apply(&other).unwrap();
    assert_eq!(translated.num_documents(), 3);
    assert_eq!(translated.document(0).words, [0, 2, 3]);
    assert_eq!(translated.document(0).counts, [1, 2, 2]);
    let inference = Inference::new(&model, Method::FOLD_IN, 0).unwrap();
    let answers = inference.infer_corpus(&translated);
    assert_eq!((answers[0].tokens, answers[0].unknown), (3, 2));
    assert_eq!((answers[2].tokens, answers[2].unknown), (0, 1));

    // A query of unknown words gets an answer; a corpus of unknown words belongs to another model.
    let few = Corpus::from_words([["x", "y"]]).unwrap();
    assert_eq!(Translation::new(&few, &model).unwrap().word(1), None);
    let strangers = Corpus::from_words([(0..100).map(|i| format!("x{i}"))]).unwrap();
    let error = Translation::new(&strangers, &model).unwrap_err().to_string();
    assert!(
        error.contains("none of the corpus's 100 words is the model's, as in \"x0\""),
        "{error}"
    );
    let numbers = Corpus::from_tokens([[0, 1]]).unwrap();
    let error = Translation::new(&numbers, &model).unwrap_err().to_string();
    assert!(error.contains("the model names its words and the corpus, of 2 words,"), "{error}");
    let nameless = model.clone().with_vocabulary(None);
    assert_eq!(Translation::new(&numbers, &nameless).unwrap().apply(&numbers).unwrap(), numbers);
    assert!(Translation::new(&corpus, &nameless).is_err());
    let wider = Corpus::from_tokens([[0, 3]]).unwrap();
    let error = Translation::new(&wider, &nameless).unwrap_err().to_string();
    assert!(error.contains("4 words without names and the model 3"), "{error}");
}

#[test]
fn what_is_given_up_leaves_no_trace() {
    let model = counts(300, 40, 5);
    let mut rng = Xoshiro256PlusPlus::from_seed(3);
    let words: Vec<u32> = (0..200).map(|_| rng.below(41)).collect();
    let tolerance = 0.0;
    for (method, asks) in [
        (Method::FoldIn { burn_in: 3, samples: 4 }, 7),
        (Method::Variational { iterations: 6, tolerance }, 6),
        (Method::RT, 0),
    ] {
        let inference = Inference::new(&model, method, 0).unwrap();
        let expected = inference.session().infer(words.iter().copied());
        let mut session = inference.session();
        let mut answer = expected.clone();
        for patience in 0..=asks {
            let mut asked = 0;
            let finished = session.infer_while(words.iter().copied(), &mut answer, || {
                asked += 1;
                asked <= patience
            });
            assert_eq!((finished, asked), (patience == asks, asks.min(patience + 1)));
            assert_eq!(answer, if finished { expected.clone() } else { Answer::default() });
            assert_eq!(
                session.infer(words.iter().rev().take(9).copied()).tokens
                    + session.infer(words[..191].iter().copied()).tokens,
                expected.tokens
            );
        }
        assert_eq!(session.infer(words.iter().copied()), expected);
    }
}
