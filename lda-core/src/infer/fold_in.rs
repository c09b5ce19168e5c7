//! Gibbs sampling of a document's topics with fixed φ (fold-in).
//!
//! The weights of a token's topics are split into three parts; two of them are constant and need
//! only their sums (the buckets of SparseLDA, Yao et al. 2009, with φ fixed):
//!
//! ```text
//! (C_dk + α_k) φ_kw = C_dk φ_kw            the K_d topics of the document, summed for each token
//!                   + α_k excess_kw        cached sum per word; its K_w topics are read if it is hit
//!                   + α_k floor_k          cached sum of the model; binary search in K sums if it is hit
//! ```
//!
//! φ of the document's topics is looked up in the word's row by search if that takes fewer steps,
//! else by a scan of the row: O(min(K_d log K_w, K_w + K_d)) per token, and O(K_w) if the second
//! part is hit.

use super::frozen_phi::{FrozenPhi, Query};
use crate::counts::TopicIndex;
use crate::model::{Rows, Value};
use crate::random::Xoshiro256PlusPlus;

/// State of one document; the memory is reused for the next.
#[derive(Clone, Debug, Default)]
pub(super) struct FoldIn {
    /// C_dk by topic; zero except for the topics in `present`.
    counts: Vec<u32>,
    /// Topics whose count is not zero.
    present: Vec<u32>,
    /// Topic of each token.
    topics: Vec<u32>,
    /// Running sums of the document's part.
    sums: Vec<f64>,
    /// Σ of C_dk over samples, by topic; zero except for the topics in `seen`.
    total: Vec<u64>,
    seen: Vec<u32>,
}

impl FoldIn {
    /// Samples topics for `words`, all of them known, and appends the mean counts of the samples to
    /// `means`, topics ascending. Calls `go_on` before each sweep; if it returns false, `run` stops
    /// and returns false, and `means` is then unspecified.
    pub fn run<T: TopicIndex, V: Value>(
        &mut self,
        query: &Query<'_, '_, T, V>,
        burn_in: u32,
        samples: u32,
        stream: &mut Xoshiro256PlusPlus,
        go_on: &mut dyn FnMut() -> bool,
        means: &mut Vec<(u32, f64)>,
    ) -> bool {
        let &Query { frozen, rows, words } = query;
        let topics = frozen.floors.len();
        if self.counts.len() < topics {
            self.counts.resize(topics, 0);
            self.total.resize(topics, 0);
        }
        for &word in words {
            let topic = self.draw(frozen, rows, word, stream.next_f64());
            self.topics.push(topic);
            self.add(topic);
        }
        let finished = (0..u64::from(burn_in) + u64::from(samples)).all(|sweep| {
            if !go_on() {
                return false;
            }
            for (token, &word) in words.iter().enumerate() {
                self.remove(self.topics[token]);
                let topic = self.draw(frozen, rows, word, stream.next_f64());
                self.topics[token] = topic;
                self.add(topic);
            }
            if sweep >= u64::from(burn_in) {
                self.sample();
            }
            true
        });
        self.seen.sort_unstable();
        for &topic in &self.seen {
            let total = std::mem::take(&mut self.total[topic as usize]);
            means.push((topic, total as f64 / f64::from(samples)));
        }
        self.seen.clear();
        for topic in self.present.drain(..) {
            self.counts[topic as usize] = 0;
        }
        self.topics.clear();
        finished
    }

    /// Topic at `unit`, in [0, 1), of the mass of (C_dk + α_k) φ_kw.
    #[inline]
    fn draw<T: TopicIndex, V: Value>(
        &mut self,
        frozen: &FrozenPhi,
        rows: &Rows<'_, T, V>,
        word: u32,
        unit: f64,
    ) -> u32 {
        let (topics, values) = rows.word(word);
        self.sums.clear();
        let steps = topics.len().checked_ilog2().map_or(0, |log| log as usize + 1);
        let by_search = self.present.len() * steps <= topics.len() + self.present.len();
        let mut sum = 0.0;
        if by_search {
            for &topic in &self.present {
                let k = topic as usize;
                let excess = topics
                    .binary_search(&T::new(topic))
                    .map_or(0.0, |at| values[at].excess(frozen.scales[k]));
                sum += f64::from(self.counts[k]) * (frozen.floors[k] + excess);
                self.sums.push(sum);
            }
        } else {
            for (topic, value) in topics.iter().zip(values) {
                let k = topic.get() as usize;
                sum += f64::from(self.counts[k]) * value.excess(frozen.scales[k]);
                self.sums.push(sum);
            }
            for &topic in &self.present {
                let k = topic as usize;
                sum += f64::from(self.counts[k]) * frozen.floors[k];
                self.sums.push(sum);
            }
        }
        let of_word = frozen.word_sum(rows, word);
        let mark = unit * (sum + of_word + frozen.prior_sum());
        if mark < sum {
            let at = self.sums.partition_point(|&sum| sum <= mark);
            return match by_search {
                true => self.present[at],
                false => match topics.get(at) {
                    Some(topic) => topic.get(),
                    None => self.present[at - topics.len()],
                },
            };
        }
        let mark = mark - sum;
        if mark < of_word || frozen.prior_sum() == 0.0 {
            return frozen.word_topic(rows, word, mark);
        }
        frozen.prior_topic(mark - of_word)
    }

    fn add(&mut self, topic: u32) {
        let count = &mut self.counts[topic as usize];
        *count += 1;
        if *count == 1 {
            self.present.push(topic);
        }
    }

    fn remove(&mut self, topic: u32) {
        let count = &mut self.counts[topic as usize];
        *count -= 1;
        if *count == 0 {
            let at = self.present.iter().position(|&other| other == topic);
            self.present.swap_remove(at.expect("a topic with tokens is in the list"));
        }
    }

    fn sample(&mut self) {
        for &topic in &self.present {
            let total = &mut self.total[topic as usize];
            if *total == 0 {
                self.seen.push(topic);
            }
            *total += u64::from(self.counts[topic as usize]);
        }
    }

    pub fn memory(&self) -> usize {
        4 * (self.counts.capacity()
            + self.present.capacity()
            + self.topics.capacity()
            + self.seen.capacity())
            + 8 * (self.sums.capacity() + self.total.capacity())
    }
}
