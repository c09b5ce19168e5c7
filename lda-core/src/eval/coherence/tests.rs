//! Coherence against gensim's numbers, and against sums written independently.

use super::*;
use crate::corpus::CorpusBuilder;

/// The corpus of `benches/baselines/coherence_reference.py`.
fn corpus(keep_order: bool) -> Corpus {
    let mut state = 42u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let mut builder = CorpusBuilder::new().num_words(41);
    if keep_order {
        builder = builder.keep_order();
    }
    for d in 0..120 {
        let length = next() % if d % 3 == 0 { 30 } else { 300 };
        let theme = next() % 4;
        let tokens: Vec<u32> = (0..length)
            .map(|_| match next() % 3 {
                0 => next() % 40,
                _ => {
                    let (a, b) = (next() % 10, next() % 10);
                    theme * 10 + a.min(b)
                }
            })
            .collect();
        builder.push_tokens(tokens).unwrap();
    }
    builder.build().unwrap()
}

fn topics() -> Vec<Vec<u32>> {
    vec![
        (0..10).collect(),
        (10..20).collect(),
        vec![0, 11, 22, 33, 5, 16, 27, 38],
        vec![3, 1],
        vec![20, 30, 39, 2, 9],
    ]
}

/// Values printed by gensim 4.4.0.
const GENSIM: [(Measure, Option<u32>, [f64; 5]); 7] = [
    (
        Measure::UMass,
        None,
        [-0.392970240951, -0.343654566359, -0.454334463555, -0.185403223329, -0.480236752271],
    ),
    (
        Measure::Uci,
        None,
        [0.513843741662, 0.426968325070, -0.270769027469, 0.702866516351, -0.218756278060],
    ),
    (
        Measure::Uci,
        Some(25),
        [0.255033340184, 0.241287541787, -0.075045392214, 0.295969583787, -0.065303454862],
    ),
    (
        Measure::Npmi,
        None,
        [0.156360505442, 0.129979299406, -0.058974069706, 0.241786900846, -0.053926219739],
    ),
    (
        Measure::Npmi,
        Some(25),
        [0.098663257064, 0.093082913825, -0.022038098971, 0.118824231158, -0.021399658047],
    ),
    (
        Measure::Cv,
        None,
        [0.352126839915, 0.370169912030, 0.360233876612, 0.755095657075, 0.469657294336],
    ),
    (
        Measure::Cv,
        Some(25),
        [0.569072803973, 0.556893969372, 0.294505365128, 0.785601607905, 0.407773485714],
    ),
];

#[test]
fn gensim_says_the_same() {
    let corpus = corpus(true);
    assert_eq!(corpus.num_tokens(), 11_613);
    for (measure, window, expected) in GENSIM {
        let window = window.map(Window::Tokens);
        let options = CoherenceOptions { measure, window, counting: Counting::AsGensim };
        let found = coherence(&corpus, &topics(), &options).unwrap();
        for (found, expected) in found.topics.iter().zip(expected) {
            let found = found.unwrap();
            assert!(
                (found - expected).abs() < 1e-9,
                "{measure:?} {window:?}: {found}, not {expected}"
            );
        }
        let mean = expected.iter().sum::<f64>() / 5.0;
        assert!((found.mean().unwrap() - mean).abs() < 1e-9);
        assert!(found.absent.is_empty());
    }
}

/// Shares of windows with one word, and with two, one window after the other.
fn shares(corpus: &Corpus, window: Window) -> impl Fn(u32, u32) -> f64 {
    let mut windows: Vec<Vec<u32>> = Vec::new();
    for d in 0..corpus.num_documents() {
        let Window::Tokens(size) = window else {
            windows.push(corpus.document(d).words.to_vec());
            continue;
        };
        let (tokens, size) = (corpus.tokens(d).unwrap().to_vec(), size as usize);
        match tokens.len() <= size {
            true => windows.push(tokens),
            false => windows.extend(tokens.windows(size).map(<[u32]>::to_vec)),
        }
    }
    move |a, b| {
        let both = windows.iter().filter(|window| window.contains(&a) && window.contains(&b));
        both.count() as f64 / windows.len() as f64
    }
}

#[test]
fn windows_count_what_is_in_them() {
    let corpus = corpus(true);
    let topics = topics();
    for (measure, window) in [
        (Measure::Npmi, None),
        (Measure::Npmi, Some(Window::Tokens(25))),
        (Measure::Uci, Some(Window::Tokens(3))),
    ] {
        let options = CoherenceOptions { window, ..CoherenceOptions::new(measure) };
        let found = coherence(&corpus, &topics, &options).unwrap();
        let share = shares(&corpus, window.unwrap_or(measure.default_window()));
        for (topic, found) in topics.iter().zip(found.topics) {
            let mut values = Vec::new();
            for &a in topic {
                for &b in topic.iter().filter(|&&b| b != a) {
                    let pmi = ((share(a, b) + 1e-12) / (share(a, a) * share(b, b))).ln();
                    let npmi = pmi / -(share(a, b) + 1e-12).ln();
                    values.push(if measure == Measure::Npmi { npmi } else { pmi });
                }
            }
            let expected = values.iter().sum::<f64>() / values.len() as f64;
            assert!((found.unwrap() - expected).abs() < 1e-12, "{measure:?} {window:?}");
        }
    }
    // What gensim loses shows.
    let exact = coherence(&corpus, &topics, &CoherenceOptions::new(Measure::Cv)).unwrap();
    assert!((exact.topics[0].unwrap() - GENSIM[5].2[0]).abs() > 1e-3);
}

#[test]
fn windows_of_tokens_need_their_order() {
    let (ordered, bags) = (corpus(true), corpus(false));
    let topics = topics();
    for measure in Measure::ALL {
        let options = CoherenceOptions::new(measure);
        match measure.default_window() {
            Window::Documents => assert!(coherence(&bags, &topics, &options).is_ok()),
            Window::Tokens(tokens) => {
                let measure = measure.name();
                let error = CoherenceError::NoOrder { measure, tokens };
                assert_eq!(coherence(&bags, &topics, &options), Err(error));
            }
        }
        let options = CoherenceOptions { window: Some(Window::Documents), ..options };
        let of_bags = coherence(&bags, &topics, &options).unwrap();
        assert_eq!(of_bags.name, format!("{} in whole documents", measure.name()));
        let wide = CoherenceOptions { window: Some(Window::Tokens(1000)), ..options };
        let of_order = coherence(&ordered, &topics, &wide).unwrap();
        assert_eq!(of_order.name, format!("{} in windows of 1000", measure.name()));
        assert_eq!(of_order.topics, of_bags.topics);
    }
}

#[test]
fn words_that_are_nowhere_or_everywhere_have_numbers() {
    let mut builder = CorpusBuilder::new().num_words(9).keep_order();
    for d in 0..10u32 {
        builder.push_tokens([0, 1, 2 + d % 2]).unwrap();
    }
    let corpus = builder.build().unwrap();
    let topics = [vec![0, 1], vec![0, 8], vec![7, 8], vec![2, 3], vec![4], vec![]];
    for measure in Measure::ALL {
        let found = coherence(&corpus, &topics, &CoherenceOptions::new(measure)).unwrap();
        assert_eq!(found.absent, [4, 7, 8]);
        assert!(found.topics[..4].iter().all(|value| value.unwrap().is_finite()), "{found:?}");
        assert_eq!(found.topics[4..], [None, None]);
    }
    let npmi = coherence(&corpus, &topics, &CoherenceOptions::new(Measure::Npmi)).unwrap();
    assert_eq!((npmi.topics[0], npmi.topics[1]), (Some(1.0), Some(0.0)));
    assert!(npmi.topics[3].unwrap() < -0.9);
    let none: [Vec<u32>; 0] = [];
    assert_eq!(
        coherence(&corpus, &none, &CoherenceOptions::new(Measure::Cv)).unwrap().mean(),
        None
    );
}

#[test]
fn lists_are_checked() {
    let corpus = corpus(true);
    let options = CoherenceOptions::new(Measure::Cv);
    let refused = |topics: &[Vec<u32>], options| coherence(&corpus, topics, options).unwrap_err();
    assert_eq!(
        refused(&[vec![1, 2], vec![3, 1, 3]], &options),
        CoherenceError::Repeated { topic: 1, word: 3 }
    );
    assert_eq!(
        refused(&[vec![1, 41]], &options),
        CoherenceError::UnknownWord { topic: 0, word: 41, words: 41 }
    );
    let none = CoherenceOptions { window: Some(Window::Tokens(0)), ..options };
    assert_eq!(refused(&[vec![1, 2]], &none), CoherenceError::NoWindow);
}

#[test]
fn a_cancelled_evaluation_is_an_error() {
    use std::sync::atomic::{AtomicU32, Ordering};

    let corpus = Corpus::from_tokens((0..200u32).map(|d| [d % 3, d % 5, d % 7])).unwrap();
    let (topics, options) = ([[0, 1, 2]], CoherenceOptions::new(Measure::UMass));
    let asked = AtomicU32::new(0);
    let most = |documents: u32| {
        asked.store(0, Ordering::Relaxed);
        let go_on = || asked.fetch_add(1, Ordering::Relaxed) < documents;
        coherence_while(&corpus, &topics, &options, &go_on)
    };
    assert_eq!(most(200).unwrap().topics, coherence(&corpus, &topics, &options).unwrap().topics);
    for documents in [0, 1, 199] {
        assert!(matches!(most(documents), Err(CoherenceError::Cancelled)), "{documents}");
    }
}
