//! Top words of topics.

use std::cmp::Ordering;

use lda_core::model::TopicModel;

/// The most probable words of each topic, best first; at equal values, the lower id first.
///
/// Computed once per model, in one pass over its entries. [`top_words`](fn@lda_core::eval::top_words)
/// ranks counts; this ranks models with and without counts. Memory: 4 bytes per word kept, and 32 during
/// the computation.
#[derive(Debug)]
pub struct LeadingWords {
    words: Vec<Vec<u32>>,
    limit: usize,
}

impl LeadingWords {
    /// Finds at most `limit` words per topic, among the words with an entry for the topic.
    pub fn new(model: &TopicModel, limit: usize) -> Self {
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
        Self { words: lists.into_iter().map(finish).collect(), limit }
    }

    /// Top words of a topic, at most [`limit`](Self::limit).
    pub fn topic(&self, topic: usize) -> &[u32] {
        &self.words[topic]
    }

    /// Maximum number of words per topic.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

fn better(a: &(f64, u32), b: &(f64, u32)) -> Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use lda_core::model::Weights;

    use super::*;

    #[test]
    fn leading_words_equal_those_of_a_full_sort() {
        let words = 100;
        let row = |k: usize| (0..words).map(|w| ((w * (7 + k) + k) % 23) as f64).collect();
        let rows: Vec<Vec<f64>> = (0..3).map(row).collect();
        let weights = Weights::from_rows(&rows).unwrap();
        let model = TopicModel::from_weights(weights, 0.1.into());
        for limit in [0, 1, 7, 50, usize::MAX] {
            let leading = LeadingWords::new(&model, limit);
            for (topic, row) in rows.iter().enumerate() {
                let mut all: Vec<usize> = (0..words).filter(|&w| row[w] > 0.0).collect();
                all.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
                all.truncate(limit);
                let found: Vec<_> = leading.topic(topic).iter().map(|&w| w as usize).collect();
                assert_eq!(found, all, "topic {topic}, {limit}");
            }
        }
    }
}
