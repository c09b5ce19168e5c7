//! A model in the layout of the argmax step: φ in `f32`, by word, and the best initial topic of
//! each word.
//!
//! Values are computed in `f64` and rounded once. INVARIANT: floor_k ≤ φ_kw also holds in `f32`,
//! because rounding preserves order; the argmax step relies on nothing else. Values below the
//! smallest normal `f32` are raised to it, so that no weight is 0 · ∞.

use super::argmax::Candidate;
use crate::counts::TopicIndex;
use crate::model::TopicModel;
use crate::simd::LANES;

/// Start of a word's row. The row ends at the start of the next one.
#[derive(Clone, Copy, Debug)]
struct Word {
    start: usize,
    /// argmax of α_k φ_kw over all K.
    best: Candidate,
}

/// φ and α of a model.
#[derive(Clone, Debug)]
pub(super) struct Tables<T> {
    /// α_k.
    pub alpha: Vec<f32>,
    /// floor_k = β / (C_k + Vβ): φ_kw of every word without a token in topic k.
    pub floor: Vec<f32>,
    /// Whether a word without an entry may still have a known probability: in a model of weights.
    floors_are_weights: bool,
    /// V words and the end of the last row.
    words: Vec<Word>,
    /// Topics of each word, ascending; padded by [`LANES`] entries, so that a vector can be read at
    /// any position.
    topics: Vec<T>,
    /// φ_kw of each entry of `topics`.
    phi: Vec<f32>,
}

/// One word: its non-zero topics and their φ.
#[derive(Clone, Copy)]
pub(super) struct WordRow<'a, T> {
    pub best: Candidate,
    /// Number of topics of the row.
    pub len: usize,
    /// The row's topics, then entries of the next rows up to a whole vector.
    pub topics: &'a [T],
    /// φ_kw of each entry of `topics`.
    pub phi: &'a [f32],
}

impl<T: TopicIndex> Tables<T> {
    /// O(K + V + non-zeros of C_w).
    pub fn new(model: &TopicModel) -> Self {
        let words = model.num_words();
        let alpha: Vec<f32> =
            (0..model.num_topics()).map(|topic| rounded(model.alpha().get(topic))).collect();
        let floor: Vec<f32> =
            (0..model.num_topics()).map(|topic| rounded(model.floor(topic))).collect();
        let mut without_tokens = Candidate { weight: alpha[0] * floor[0], topic: 0 };
        for (topic, (alpha, floor)) in (0..).zip(alpha.iter().zip(&floor)) {
            without_tokens.challenge(Candidate { weight: alpha * floor, topic });
        }

        let entries = (0..words).map(|word| model.topics(word).len()).sum::<usize>() + LANES;
        let (mut topics, mut phi) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        let mut places = Vec::with_capacity(words + 1);
        for word in 0..words {
            let mut best = without_tokens;
            let start = topics.len();
            model.for_each_phi(word, |topic, value| {
                let value = rounded(value);
                best.challenge(Candidate { weight: alpha[topic as usize] * value, topic });
                topics.push(T::new(topic));
                phi.push(value);
            });
            places.push(Word { start, best });
        }
        let floors_are_weights = model.knows_words_at_the_floor();
        places.push(Word { start: topics.len(), best: without_tokens });
        topics.resize(entries, T::default());
        phi.resize(entries, 0.0);
        Self { alpha, floor, floors_are_weights, words: places, topics, phi }
    }

    pub fn num_topics(&self) -> usize {
        self.alpha.len()
    }

    pub fn num_words(&self) -> usize {
        self.words.len() - 1
    }

    /// Whether the model knows the word ([`TopicModel::knows`]).
    #[inline]
    pub fn knows(&self, word: u32) -> bool {
        let word = word as usize;
        let is_there = word < self.num_words();
        is_there && (self.floors_are_weights || self.words[word].start < self.words[word + 1].start)
    }

    #[inline(always)]
    pub fn word(&self, word: u32) -> WordRow<'_, T> {
        let Word { start, best } = self.words[word as usize];
        let len = self.words[word as usize + 1].start - start;
        let end = start + len.next_multiple_of(LANES);
        WordRow { best, len, topics: &self.topics[start..end], phi: &self.phi[start..end] }
    }

    /// Memory in bytes.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.alpha)
            + size_of_val(&*self.floor)
            + size_of_val(&*self.words)
            + size_of_val(&*self.topics)
            + size_of_val(&*self.phi)
    }
}

/// Rounds to the nearest normal, finite `f32`.
fn rounded(x: f64) -> f32 {
    (x as f32).clamp(f32::MIN_POSITIVE, f32::MAX)
}
