//! RT-LDA's argmax step, compiled for each instruction set.

use super::row::Row;
use super::tables::{Tables, WordRow};
use crate::counts::TopicIndex;
use crate::simd::{LANES, Lanes, SimdKernel};

/// A topic and its weight for a token. The weight is never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub weight: f32,
    pub topic: u32,
}

impl Candidate {
    /// Replaces `self` if `other` has a larger weight, or the same weight and a lower topic.
    #[inline(always)]
    pub fn challenge(&mut self, other: Self) {
        if other.weight > self.weight || (other.weight == self.weight && other.topic < self.topic) {
            *self = other;
        }
    }
}

/// A token of the document: (word, topic).
pub(super) type Token = (u32, u32);

/// Kernel that assigns a topic to every token of a document.
pub(super) struct Infer<'a, T> {
    pub tables: &'a Tables<T>,
    /// Topic counts of the document; empty at the start.
    pub row: &'a mut Row,
    /// Words below V; the kernel writes the topics.
    pub tokens: &'a mut [Token],
    /// Maximum number of sweeps.
    pub sweeps: u32,
}

impl<T: TopicIndex> SimdKernel for Infer<'_, T> {
    /// Whether the sweeps reached a state in which no token would move.
    type Output = bool;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> bool {
        let Self { tables, row, tokens, sweeps } = self;
        for (word, topic) in tokens.iter_mut() {
            *topic = argmax(l, tables.word(*word), row);
            row.add(tables, *topic);
        }
        // INVARIANT: `settled` is the number of consecutive tokens that would keep their topic. The
        // token that moved last counts as one: its topic was chosen with all others in place.
        let length = tokens.len();
        let mut settled = length.min(1);
        for _ in 0..sweeps {
            for (word, topic) in tokens.iter_mut() {
                if settled == length {
                    return true;
                }
                row.take(tables, *topic);
                let new = argmax(l, tables.word(*word), row);
                if new == *topic {
                    row.put_back(tables, new);
                    settled += 1;
                } else {
                    row.leave(*topic);
                    row.add(tables, new);
                    *topic = new;
                    settled = 1;
                }
            }
        }
        settled == length
    }
}

/// Topic of the largest (C_dk + α_k) φ_kw, the lowest of equals.
#[inline(always)]
fn argmax<L: Lanes, T: TopicIndex>(l: L, word: WordRow<'_, T>, row: &Row) -> u32 {
    // A search takes about as long as one step of the scan; loop bounds take about one more step.
    if row.len() <= word.len.div_ceil(LANES) + 1 {
        by_search(word, row)
    } else {
        by_scan(l, word, row)
    }
}

/// Looks up φ of each of the document's topics by binary search: O(K_d log K_w).
#[inline(always)]
pub(super) fn by_search<T: TopicIndex>(word: WordRow<'_, T>, row: &Row) -> u32 {
    let mut best = word.best;
    let (topics, factors, floors) = row.entries();
    for ((&topic, &factor), &floor) in topics.iter().zip(factors).zip(floors).take(row.len()) {
        let at = word.topics[..word.len].partition_point(|&t| t < T::new(topic));
        let phi =
            if at < word.len && word.topics[at] == T::new(topic) { word.phi[at] } else { floor };
        best.challenge(Candidate { weight: factor * phi, topic });
    }
    best.topic
}

/// Scans the word's topics, then the document's topics with their floors: O(K_w + K_d), sixteen at
/// a time.
#[inline(always)]
pub(super) fn by_scan<L: Lanes, T: TopicIndex>(l: L, word: WordRow<'_, T>, row: &Row) -> u32 {
    let mut best = Best::new(l, word.best);
    let (phi, _) = word.phi.as_chunks::<LANES>();
    let (topics, _) = word.topics.as_chunks::<LANES>();
    for (c, (topics, phi)) in topics.iter().zip(phi).enumerate() {
        let topics = T::load(l, topics);
        let weights = l.mul_f(l.gather_f(row.dense(), topics), l.load_f(phi));
        // Lanes past the end belong to the next word and get weight 0.
        let left = (word.len - c * LANES).min(LANES);
        let inside = (u32::MAX >> (32 - left)) as u16;
        best.challenge(l, l.select_f(inside, weights, l.splat_f(0.0)), topics);
    }
    let (topics, factors, floors) = row.entries();
    let (topics, _) = topics.as_chunks::<LANES>();
    let (factors, _) = factors.as_chunks::<LANES>();
    let (floors, _) = floors.as_chunks::<LANES>();
    for ((topics, factors), floors) in topics.iter().zip(factors).zip(floors) {
        let weights = l.mul_f(l.load_f(factors), l.load_f(floors));
        best.challenge(l, weights, l.load_u(topics));
    }
    best.of_all(l).topic
}

/// Best candidate of each lane.
struct Best<L: Lanes> {
    weights: L::F,
    topics: L::U,
}

impl<L: Lanes> Best<L> {
    #[inline(always)]
    fn new(l: L, first: Candidate) -> Self {
        Self { weights: l.splat_f(first.weight), topics: l.splat_u(first.topic) }
    }

    /// [`Candidate::challenge`] for each lane.
    #[inline(always)]
    fn challenge(&mut self, l: L, weights: L::F, topics: L::U) {
        let greater = l.gt_f(weights, self.weights);
        let less = l.gt_f(self.weights, weights);
        let lower = l.eq_u(l.min_u(topics, self.topics), topics);
        let wins = greater | (lower & !less);
        self.weights = l.select_f(wins, weights, self.weights);
        self.topics = l.select_u(wins, topics, self.topics);
    }

    #[inline(always)]
    fn of_all(self, l: L) -> Candidate {
        let (mut weights, mut topics) = ([0.0; LANES], [0; LANES]);
        l.store_f(&mut weights, self.weights);
        l.store_u(&mut topics, self.topics);
        let mut best = Candidate { weight: weights[0], topic: topics[0] };
        for (&weight, &topic) in weights.iter().zip(&topics) {
            best.challenge(Candidate { weight, topic });
        }
        best
    }
}
