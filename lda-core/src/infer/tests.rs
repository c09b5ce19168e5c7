//! The max step compared with all K weights in plain code, and limits of documents.

use std::ops::Range;

use proptest::prelude::*;

use super::argmax::{Infer, Token, by_scan, by_search};
use super::row::Row;
use super::tables::Tables;
use super::{Inferred, RtLda, RtLdaError, RtOptions, RtScratch};
use crate::counts::TopicIndex;
use crate::counts::{VisitRow, WordCounts};
use crate::model::TopicModel;
use crate::prior::{Alpha, PriorError};
use crate::random::Xoshiro256PlusPlus;
use crate::simd::{Isa, Lanes, SimdKernel};

/// Rows of C_w; the totals are their sums.
pub(super) struct Counts {
    pub topics: usize,
    pub words: Vec<Vec<(u32, u32)>>,
}

impl WordCounts for Counts {
    fn num_topics(&self) -> usize {
        self.topics
    }

    fn num_words(&self) -> usize {
        self.words.len()
    }

    fn topic_total(&self, topic: usize) -> u64 {
        let entries = self.words.iter().flatten();
        entries.filter(|entry| entry.0 as usize == topic).map(|entry| u64::from(entry.1)).sum()
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
        words.for_each(|word| visit(word, &self.words[word]));
    }
}

fn model(topics: usize, words: &[&[(u32, u32)]], alpha: impl Into<Alpha>, beta: f64) -> TopicModel {
    let words = words.iter().map(|row| row.to_vec()).collect();
    TopicModel::from_counts(&Counts { topics, words }, alpha.into(), beta)
}

/// A random model: `share` of C_w's entries are not zero. There are few distinct values, so that
/// weights are often equal.
fn random_model(topics: usize, share: f64, alpha: u32, beta: f64, seed: u64) -> TopicModel {
    let mut rng = Xoshiro256PlusPlus::from_seed(seed);
    let mut row = |word: u32| -> Vec<(u32, u32)> {
        // Some words never occur, some are in every topic.
        let share = [share, 0.0, 1.0][if word < 6 { 0 } else { rng.below(3) as usize }];
        let most = [3, 3, 1 << 30][rng.below(3) as usize];
        let mut row = Vec::new();
        for topic in 0..topics as u32 {
            if rng.next_f64() < share {
                row.push((topic, 1 + rng.below(most)));
            }
        }
        row
    };
    let words = (0..9).map(&mut row).collect();
    let alpha = match alpha {
        0 => Alpha::Symmetric(0.5),
        1 => Alpha::Symmetric(2e-38),
        2 => Alpha::Symmetric(1e35),
        3 => Alpha::from((0..topics).map(|_| f64::from(1 + rng.below(3))).collect::<Vec<_>>()),
        _ => Alpha::from((0..topics).map(|_| 0.01 + rng.next_f64()).collect::<Vec<_>>()),
    };
    TopicModel::from_counts(&Counts { topics, words }, alpha, beta)
}

/// Converts to `f32`, as the module's documentation states.
fn rounded(x: f64) -> f32 {
    (x as f32).clamp(f32::MIN_POSITIVE, f32::MAX)
}

/// Reference: RT-LDA by its definition, with the weights of all topics for every token.
fn plain(model: &TopicModel, words: &[u32], sweeps: u32) -> Vec<Token> {
    let mut counts = vec![0u64; model.num_topics()];
    let argmax = |counts: &[u64], word: u32| {
        let mut best = (f32::NEG_INFINITY, 0);
        for (k, &count) in counts.iter().enumerate() {
            let factor = count as f32 + rounded(model.alpha().get(k));
            let weight = factor * rounded(model.phi(k, word as usize));
            if weight > best.0 {
                best = (weight, k);
            }
        }
        best.1
    };
    let known = words.iter().filter(|&&word| model.knows(word));
    let mut tokens: Vec<Token> = known.map(|&word| (word, 0)).collect();
    for (word, topic) in &mut tokens {
        let new = argmax(&counts, *word);
        counts[new] += 1;
        *topic = new as u32;
    }
    for _ in 0..sweeps {
        for (word, topic) in &mut tokens {
            counts[*topic as usize] -= 1;
            let new = argmax(&counts, *word);
            counts[new] += 1;
            *topic = new as u32;
        }
    }
    tokens
}

fn tally(tokens: &[Token]) -> Vec<(u32, u64)> {
    let mut counts = std::collections::BTreeMap::new();
    tokens.iter().for_each(|&(_, topic)| *counts.entry(topic).or_insert(0) += 1);
    counts.into_iter().collect()
}

fn ready(model: &TopicModel, sweeps: u32, isa: Isa) -> RtLda {
    RtLda::with_options(model, &RtOptions { sweeps, isa: Some(isa) }).unwrap()
}

/// A copy of an answer.
fn said(answer: Inferred<'_>) -> (Vec<Token>, Vec<(u32, u64)>, u64, bool) {
    let Inferred { tokens, counts, unknown, settled, .. } = answer;
    (tokens.to_vec(), counts.to_vec(), unknown, settled)
}

fn models() -> impl Strategy<Value = TopicModel> {
    let topics = prop_oneof![1usize..=3, 1usize..=40, 1usize..=300];
    let share = prop_oneof![Just(0.0), Just(0.03), Just(0.3), Just(1.0)];
    // With the last two, φ of words with and without tokens rounds to the same value, or to 0.
    let beta = prop_oneof![Just(0.01), Just(1.0), Just(1e20), Just(2e-38)];
    (topics, share, 0u32..5, beta, any::<u64>()).prop_map(|(topics, share, alpha, beta, seed)| {
        random_model(topics, share, alpha, beta, seed)
    })
}

proptest! {
    #[test]
    fn finds_what_all_weights_give(
        model in models(),
        // Two word ids above V.
        words in prop::collection::vec(0u32..11, 0..90),
        sweeps in 0u32..5,
    ) {
        let expected = plain(&model, &words, sweeps);
        let further = plain(&model, &words, sweeps + 1);
        let mut scratch = RtScratch::default();
        for isa in Isa::available() {
            let rt = ready(&model, sweeps, isa);
            let (tokens, counts, unknown, settled) = said(rt.infer(words.clone(), &mut scratch));
            prop_assert_eq!(&tokens, &expected, "{}", isa);
            prop_assert_eq!(counts, tally(&expected));
            prop_assert_eq!(unknown as usize, words.len() - expected.len());
            prop_assert!(!settled || further == expected);

            let (wide, mut row) = (Tables::<u32>::new(&model), Row::default());
            row.begin(model.num_topics());
            let mut tokens: Vec<Token> = expected.iter().map(|&(word, _)| (word, 0)).collect();
            isa.run(Infer { tables: &wide, row: &mut row, tokens: &mut tokens, sweeps });
            prop_assert_eq!(&tokens, &expected, "{}, wide", isa);
        }
    }

    #[test]
    fn both_ways_find_the_same(
        model in models(),
        counts in prop::collection::vec(0u32..300, 0..60),
        taken in any::<prop::sample::Index>(),
    ) {
        let tables = Tables::<u16>::new(&model);
        let topics: Vec<u32> =
            counts.iter().map(|count| count % model.num_topics() as u32).collect();
        let taken = (!topics.is_empty()).then(|| topics[taken.index(topics.len())]);
        for isa in Isa::available() {
            let mut row = Row::default();
            row.begin(model.num_topics());
            topics.iter().for_each(|&topic| row.add(&tables, topic));
            if let Some(topic) = taken {
                row.take(&tables, topic);
            }
            for word in 0..tables.num_words() as u32 {
                let (by_search, by_scan) = isa.run(Both { tables: &tables, row: &row, word });
                prop_assert_eq!(by_search, by_scan, "{}", isa);
            }
        }
    }
}

/// One max step computed in both ways.
struct Both<'a, T> {
    tables: &'a Tables<T>,
    row: &'a Row,
    word: u32,
}

impl<T: TopicIndex> SimdKernel for Both<'_, T> {
    type Output = (u32, u32);

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> (u32, u32) {
        let word = self.tables.word(self.word);
        (by_search(word, self.row), by_scan(l, word, self.row))
    }
}

#[test]
fn rounding_keeps_phi_above_its_floor() {
    // β so large that a token is lost in rounding, so small that it is lost beside a token, and so
    // small that floors leave the range of f32; totals near and far above 2²⁴.
    for beta in [2e-38, 1e-30, 1e-3, 1.0, 1e8, 1e20, 1e37] {
        for count in [1, 2, 1 << 24, (1 << 24) + 1, u32::MAX] {
            let model = model(2, &[&[(0, count), (1, 1)], &[(1, u32::MAX)]], 0.1, beta);
            let tables = Tables::<u16>::new(&model);
            for word in 0..2 {
                let row = tables.word(word);
                for (&topic, phi) in row.topics.iter().zip(row.phi).take(row.len) {
                    let floor = tables.floor[usize::from(topic)];
                    assert!((f32::MIN_POSITIVE..=*phi).contains(&floor), "{beta} {count}");
                    assert_eq!(*phi, rounded(model.phi(usize::from(topic), word as usize)));
                }
            }
        }
    }
}

#[test]
fn ties_go_to_the_lowest_topic() {
    let mut scratch = RtScratch::default();
    // Topics 1, 2 and 20 are equal; word 1 never occurs.
    let rows: [&[(u32, u32)]; 2] = [&[(1, 4), (2, 4), (20, 4)], &[]];
    let model = model(21, &rows, 0.5, 0.1);
    for isa in Isa::available() {
        let rt = ready(&model, 5, isa);
        assert_eq!(rt.infer([0], &mut scratch).tokens(), [(0, 1)]);
        assert_eq!(rt.infer([1], &mut scratch).num_unknown(), 1);
    }
}

#[test]
fn more_topics_than_sixteen_bits_can_name() {
    let rows: [&[(u32, u32)]; 3] =
        [&[(3, 5), (70_003, 9)], &[(70_003, 2), (70_010, 2)], &[(70_010, 1)]];
    let model = model(70_011, &rows, 0.01, 0.01);
    let words = [0, 1, 2, 0, 7, 1, 2];
    for isa in Isa::available() {
        let rt = ready(&model, 3, isa);
        let mut scratch = RtScratch::default();
        let (tokens, counts, unknown, settled) = said(rt.infer(words, &mut scratch));
        assert_eq!(tokens, plain(&model, &words, 3));
        assert_eq!((counts, unknown, settled), (vec![(3, 2), (70_010, 4)], 1, true));
    }
}

#[test]
fn documents_of_nothing_known_are_answered() {
    let model = model(2, &[&[(0, 3)], &[(1, 3)]], vec![1.0, 3.0], 0.1);
    let rt = RtLda::new(&model).unwrap();
    let mut scratch = RtScratch::default();
    for (words, unknown) in [(vec![], 0), (vec![2, u32::MAX], 2)] {
        let answer = rt.infer(words, &mut scratch);
        assert_eq!((answer.num_tokens(), answer.num_unknown()), (0, unknown));
        assert_eq!((answer.theta(0), answer.theta(1)), (0.25, 0.75));
        assert!(answer.counts().is_empty() && answer.settled());
    }
    let answer = rt.infer([1, 9, 1, 1, 1], &mut scratch);
    assert_eq!((answer.theta(0), answer.theta(1)), (1.0 / 8.0, 7.0 / 8.0));
}

#[test]
fn used_scratch_and_other_models_change_nothing() {
    let models = [random_model(40, 0.3, 4, 0.01, 1), random_model(300, 0.1, 3, 0.1, 2)];
    let mut rng = Xoshiro256PlusPlus::from_seed(3);
    let mut used = RtScratch::default();
    for round in 0..200 {
        let words: Vec<u32> = (0..rng.below(200)).map(|_| rng.below(10)).collect();
        let rt = RtLda::new(&models[round % 2]).unwrap();
        let fresh = said(rt.infer(words.clone(), &mut RtScratch::default()));
        assert_eq!(said(rt.infer(words, &mut used)), fresh);
    }
}

#[test]
fn a_million_tokens() {
    let model = random_model(300, 0.5, 4, 0.01, 7);
    let rt = RtLda::new(&model).unwrap();
    let mut scratch = RtScratch::default();
    // Every one of these words has tokens.
    let answer = rt.infer((0..1_000_000).map(|i| i % 6), &mut scratch);
    assert_eq!(answer.counts().iter().map(|count| count.1).sum::<u64>(), 1_000_000);
    assert_eq!(tally(answer.tokens()), answer.counts());
    let total: f64 = (0..300).map(|topic| answer.theta(topic)).sum();
    assert!((total - 1.0).abs() < 1e-12, "{total}");
}

#[test]
fn a_model_without_words_knows_none() {
    let rt = RtLda::new(&model(3, &[], 0.1, 0.1)).unwrap();
    let mut scratch = RtScratch::default();
    assert_eq!(rt.infer([0, 1], &mut scratch).num_unknown(), 2);
}

#[test]
fn refuses_models_that_are_none() {
    let refused = |model: &TopicModel| RtLda::new(model).unwrap_err();
    assert_eq!(refused(&model(0, &[], 0.1, 0.1)), RtLdaError::NoTopics);
    let ragged = PriorError::WrongLength { found: 1, num_topics: 2 };
    assert_eq!(refused(&model(2, &[], vec![0.1], 0.1)), RtLdaError::Prior(ragged));
    let zero = PriorError::NotPositive { parameter: "beta".into(), value: 0.0 };
    assert_eq!(refused(&model(2, &[], 0.1, 0.0)), RtLdaError::Prior(zero));

    super::rt::check_topics(i32::MAX as usize).unwrap();
    let message = super::rt::check_topics(1 << 31).unwrap_err().to_string();
    assert!(message.contains("2147483648 topics, above the limit of 2147483647"), "{message}");
}

#[test]
#[should_panic(expected = "topic 2 of a model of 2 topics")]
fn theta_of_no_topic_panics() {
    let rt = RtLda::new(&model(2, &[&[(0, 1)]], 0.1, 0.1)).unwrap();
    rt.infer([0], &mut RtScratch::default()).theta(2);
}

#[test]
fn memory_is_as_documented() {
    let model = random_model(300, 0.5, 4, 0.01, 7);
    let entries: usize = (0..9).map(|word| model.topics(word).len()).sum();
    let rt = RtLda::new(&model).unwrap();
    let promised = 6 * entries + 16 * 9 + (8 + 8) * 300;
    assert!((promised..promised + 512).contains(&rt.memory()), "{} {promised}", rt.memory());

    let mut scratch = RtScratch::default();
    rt.infer((0..1000).map(|i| i % 9), &mut scratch);
    let memory = scratch.memory();
    assert!(memory >= 8 * 300 + 8 * 1000, "{memory}");
    rt.infer((0..1000).map(|i| i % 7), &mut scratch);
    assert_eq!(scratch.memory(), memory);
}

#[test]
fn threads_share_one() {
    fn shared<T: Send + Sync>() {}
    shared::<RtLda>();
}
