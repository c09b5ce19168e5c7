//! Top words of each topic, by probability or by relevance.
//!
//! By **probability**, φ̂_kw = (C_wk + β) / (C_k + β̄): the most frequent words of
//! the topic, including words that are frequent everywhere. By **relevance**, λ ln φ̂_kw + (1 − λ)
//! ln(φ̂_kw / p(w)) with p(w) = C_w / T: words that are more frequent in the topic than elsewhere
//! (Sievert & Shirley 2014, LDAvis, section 3.1, who found λ = 0.6 best for telling topics apart).
//! λ = 1 is the order by probability; λ = 0 ranks words that occur in one topic only first, even
//! rare ones.
//!
//! Only words with tokens in the topic are listed, so a small topic may have fewer than requested.
//!
//! Cost: one pass over the non-zeros of C_w. Each is compared with the last word of its topic's
//! list and inserted in O(log n) if it is better. Memory: 24 bytes per listed word and 24 per
//! topic; neither the K × V matrix nor the non-zeros are stored. Single-threaded, since lists per
//! topic and thread would cost more than they save.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::counts::WordCounts;
use crate::model::TopicModel;
use crate::prior::{PriorError, check_beta};

/// Ranking of a topic's words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ranking {
    /// φ̂_kw.
    Probability,
    /// λ ln φ̂_kw + (1 − λ) ln(φ̂_kw / p(w)).
    Relevance {
        /// λ, the weight of the word's probability against its lift, from 0 to 1.
        lambda: f64,
    },
}

/// Error of [`top_words()`].
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TopWordsError {
    /// β is invalid.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// λ is not between 0 and 1.
    #[error("lambda is {0}: give a number from 0 to 1")]
    Lambda(f64),
}

/// A word of a topic's list.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopWord {
    /// The word's id.
    pub word: u32,
    /// Its tokens in the topic, C_wk.
    pub count: u32,
    /// φ̂_kw.
    pub probability: f64,
    /// Sort key of the list: the probability, or the relevance in nats.
    pub score: f64,
}

/// The `n` top words of every topic, best first; ties: lower id first.
///
/// # Errors
/// [`TopWordsError`], if β is not finite and positive or λ not between 0 and 1.
///
/// ```
/// use std::ops::Range;
/// use lda_core::counts::{VisitRow, WordCounts};
/// use lda_core::eval::{Ranking, top_words};
///
/// /// Word 0 is everywhere, word 1 in topic 0 and word 2 in topic 1.
/// struct Words;
/// impl WordCounts for Words {
///     fn num_topics(&self) -> usize { 2 }
///     fn num_words(&self) -> usize { 3 }
///     fn topic_total(&self, _: usize) -> u64 { 100 }
///     fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
///         let rows: [&[(u32, u32)]; 3] = [&[(0, 60), (1, 60)], &[(0, 40)], &[(1, 40)]];
///         words.for_each(|word| visit(word, rows[word]));
///     }
/// }
///
/// let first = |ranking| top_words(&Words, 0.01, 1, ranking).map(|lists| lists[1][0].word);
/// assert_eq!(first(Ranking::Probability)?, 0);
/// assert_eq!(first(Ranking::Relevance { lambda: 0.3 })?, 2);
/// # Ok::<(), lda_core::eval::TopWordsError>(())
/// ```
pub fn top_words<C>(
    counts: &C,
    beta: f64,
    n: usize,
    ranking: Ranking,
) -> Result<Vec<Vec<TopWord>>, TopWordsError>
where
    C: WordCounts + ?Sized,
{
    check_beta(beta, counts.num_words())?;
    if let Ranking::Relevance { lambda } = ranking
        && !(0.0..=1.0).contains(&lambda)
    {
        return Err(TopWordsError::Lambda(lambda));
    }
    let totals: Vec<u64> = (0..counts.num_topics()).map(|k| counts.topic_total(k)).collect();
    let tokens = totals.iter().sum::<u64>() as f64;
    let beta_sum = beta * counts.num_words() as f64;
    let probability =
        |topic: u32, count| (f64::from(count) + beta) / (totals[topic as usize] as f64 + beta_sum);
    let mut lists: Vec<List> = totals.iter().map(|_| List::default()).collect();
    counts.visit_words(0..counts.num_words(), &mut |word, row| {
        let frequency: u64 = row.iter().map(|entry| u64::from(entry.1)).sum();
        let log_frequency = (frequency as f64 / tokens).ln();
        for &(topic, count) in row {
            let score = match ranking {
                Ranking::Probability => probability(topic, count),
                Ranking::Relevance { lambda } => {
                    probability(topic, count).ln() - (1.0 - lambda) * log_frequency
                }
            };
            lists[topic as usize].offer(Ranked { score, word: word as u32, count }, n);
        }
    });
    let finish = |(topic, list): (usize, List)| {
        let ranked = list.0.into_sorted_vec().into_iter();
        let word = |Reverse(Ranked { score, word, count })| TopWord {
            word,
            count,
            probability: probability(topic as u32, count),
            score,
        };
        ranked.map(word).collect()
    };
    Ok(lists.into_iter().enumerate().map(finish).collect())
}

/// Best words of a topic so far, as a heap with the worst of them on top.
#[derive(Default)]
struct List(BinaryHeap<Reverse<Ranked>>);

impl List {
    #[inline]
    fn offer(&mut self, candidate: Ranked, n: usize) {
        if self.0.len() < n {
            self.0.push(Reverse(candidate));
        } else if let Some(mut worst) = self.0.peek_mut()
            && candidate > worst.0
        {
            *worst = Reverse(candidate);
        }
    }
}

/// Ordered by quality: a higher score is greater, and for equal scores the lower id.
#[derive(Clone, Copy)]
struct Ranked {
    score: f64,
    word: u32,
    count: u32,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.word.cmp(&self.word))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// The `limit` most probable words of each topic, best first; ties: lower id first. For every kind of model,
/// where [`top_words`] ranks counts; among the words with an [entry](TopicModel::topics) for the topic.
///
/// One pass over the entries. Memory: 32 bytes per listed word.
///
/// ```
/// use lda_core::eval::leading_words;
/// use lda_core::model::{TopicModel, Weights};
///
/// let weights = Weights::from_rows(&[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])?;
/// let model = TopicModel::from_weights(weights, 0.1.into());
/// assert_eq!(leading_words(&model, 2), [[0, 1], [2, 1]]);
/// # Ok::<(), lda_core::model::WeightsError>(())
/// ```
pub fn leading_words(model: &TopicModel, limit: usize) -> Vec<Vec<u32>> {
    let better = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let mut lists: Vec<Vec<(f64, u32)>> = vec![Vec::new(); model.num_topics()];
    for word in 0..if limit == 0 { 0 } else { model.num_words() } {
        model.for_each_phi(word, |topic, phi| {
            let list = &mut lists[topic as usize];
            if list.len() == limit.saturating_mul(2) {
                list.select_nth_unstable_by(limit, better);
                list.truncate(limit);
            }
            list.push((phi, word as u32));
        });
    }
    let finish = |mut list: Vec<(f64, u32)>| {
        list.sort_unstable_by(better);
        list.truncate(limit);
        list.into_iter().map(|(_, word)| word).collect()
    };
    lists.into_iter().map(finish).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counts::VisitRow;

    /// Counts by word and topic.
    #[derive(Debug)]
    struct Table {
        num_topics: usize,
        rows: Vec<Vec<u32>>,
    }

    impl WordCounts for Table {
        fn num_topics(&self) -> usize {
            self.num_topics
        }
        fn num_words(&self) -> usize {
            self.rows.len()
        }
        fn topic_total(&self, topic: usize) -> u64 {
            self.rows.iter().map(|row| u64::from(row[topic])).sum()
        }
        fn visit_words(&self, words: std::ops::Range<usize>, visit: &mut VisitRow<'_>) {
            for word in words {
                let row = (0..).zip(self.rows[word].iter().copied()).filter(|entry| entry.1 > 0);
                visit(word, &row.collect::<Vec<_>>());
            }
        }
    }

    /// Reference: evaluates the formula for all words and sorts them.
    fn plain(table: &Table, beta: f64, n: usize, lambda: f64) -> Vec<Vec<u32>> {
        let tokens: f64 = table.rows.iter().flatten().map(|&count| f64::from(count)).sum();
        let list = |topic: usize| {
            let total = table.topic_total(topic) as f64 + beta * table.rows.len() as f64;
            let mut words: Vec<(f64, u32)> = Vec::new();
            for (word, row) in table.rows.iter().enumerate().filter(|(_, row)| row[topic] > 0) {
                let phi = (f64::from(row[topic]) + beta) / total;
                let frequency = row.iter().sum::<u32>() as f64 / tokens;
                words.push((
                    lambda * phi.ln() + (1.0 - lambda) * (phi / frequency).ln(),
                    word as u32,
                ));
            }
            words.sort_by(|a, b| b.0.total_cmp(&a.0));
            words.into_iter().map(|word| word.1).take(n).collect()
        };
        (0..table.num_topics).map(list).collect()
    }

    fn words(lists: &[Vec<TopWord>]) -> Vec<Vec<u32>> {
        lists.iter().map(|list| list.iter().map(|top| top.word).collect()).collect()
    }

    #[test]
    fn leading_words_equal_those_of_a_full_sort() {
        let words = 100;
        let row = |k: usize| (0..words).map(|w| ((w * (7 + k) + k) % 23) as f64).collect();
        let rows: Vec<Vec<f64>> = (0..3).map(row).collect();
        let weights = crate::model::Weights::from_rows(&rows).unwrap();
        let model = TopicModel::from_weights(weights, 0.1.into());
        for limit in [0, 1, 7, 50, usize::MAX] {
            let leading = leading_words(&model, limit);
            for (topic, row) in rows.iter().enumerate() {
                let mut all: Vec<usize> = (0..words).filter(|&w| row[w] > 0.0).collect();
                all.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
                all.truncate(limit);
                let found: Vec<_> = leading[topic].iter().map(|&w| w as usize).collect();
                assert_eq!(found, all, "topic {topic}, {limit}");
            }
        }
    }

    #[test]
    fn ties_go_to_the_lower_id_and_short_topics_have_short_lists() {
        let rows = vec![vec![3, 0], vec![5, 0], vec![3, 1], vec![0, 0], vec![3, 0], vec![5, 0]];
        let table = Table { num_topics: 2, rows };
        let lists = top_words(&table, 0.1, 4, Ranking::Probability).unwrap();
        assert_eq!(words(&lists), [vec![1, 5, 0, 2], vec![2]]);
        assert_eq!(lists[0][1].count, 5);
        assert!((lists[0][1].probability - 5.1 / 19.6).abs() < 1e-15);
        let none = top_words(&table, 0.1, 0, Ranking::Probability).unwrap();
        assert!(none.iter().all(Vec::is_empty));
        let all = top_words(&table, 0.1, usize::MAX, Ranking::Probability).unwrap();
        assert_eq!(all[0].len(), 5);
    }

    #[test]
    fn parameters_are_checked() {
        let table = Table { num_topics: 1, rows: vec![vec![1]] };
        for lambda in [-0.1, 1.1, f64::NAN] {
            let error = top_words(&table, 0.1, 1, Ranking::Relevance { lambda }).unwrap_err();
            assert!(error.to_string().starts_with("lambda is "), "{error}");
        }
        assert!(top_words(&table, -1.0, 1, Ranking::Probability).is_err());
    }

    proptest! {
        #[test]
        fn lists_are_those_of_a_full_sort(
            rows in prop::collection::vec(prop::collection::vec(0u32..50, 3), 1..40),
            n in 1usize..12,
            lambda in 0.0f64..1.0,
        ) {
            let table = Table { num_topics: 3, rows };
            prop_assume!(table.rows.iter().flatten().any(|&count| count > 0));
            let by_probability = top_words(&table, 0.1, n, Ranking::Probability).unwrap();
            prop_assert_eq!(words(&by_probability), plain(&table, 0.1, n, 1.0));
            let relevance = top_words(&table, 0.1, n, Ranking::Relevance { lambda }).unwrap();
            let expected = plain(&table, 0.1, n, lambda);
            for (topic, (found, expected)) in words(&relevance).iter().zip(&expected).enumerate() {
                // Words of equal counts tie in one formula and may differ in the last digit of
                // the other: compare what they stand for.
                let class = |&word: &u32| {
                    let row = &table.rows[word as usize];
                    (row[topic], row.iter().sum::<u32>())
                };
                let found: Vec<_> = found.iter().map(class).collect();
                prop_assert_eq!(found, expected.iter().map(class).collect::<Vec<_>>());
            }
        }
    }
}
