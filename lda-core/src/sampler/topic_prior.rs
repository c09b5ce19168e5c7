//! Prior of topics: α_k, or β for every topic.

use crate::simd::{LANES, Lanes};

/// One number per topic, or one for all.
#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct TopicPrior<'a> {
    /// Weight of the first topic, or of every topic if `each` is `None`.
    first: f32,
    /// Prior of each topic, padded with zeros; `None` if all are equal.
    each: Option<&'a [[f32; LANES]]>,
}

impl<'a> TopicPrior<'a> {
    /// `prior` for every topic. There is no array, which would take space in the cache.
    pub fn symmetric(prior: f32) -> Self {
        Self { first: prior, each: None }
    }

    /// `padded[k]` for topic k; if `symmetric`, only the first is read.
    pub fn new(padded: &'a [f32], symmetric: bool) -> Self {
        let each = (!symmetric).then_some(padded.as_chunks().0);
        Self { first: padded[0], each }
    }

    /// The prior of `topic`.
    #[inline(always)]
    pub fn of(&self, topic: usize) -> f32 {
        self.each.map_or(self.first, |each| each[topic / LANES][topic % LANES])
    }

    /// The priors of the sixteen topics of chunk `c`; unspecified past K.
    #[inline(always)]
    pub fn chunk<L: Lanes>(&self, l: L, c: usize) -> L::F {
        match self.each {
            Some(each) => l.load_f(&each[c]),
            None => l.splat_f(self.first),
        }
    }

    /// The priors of the `N` chunks from `first` on.
    #[inline(always)]
    pub fn chunks<L: Lanes, const N: usize>(&self, l: L, first: usize) -> [L::F; N] {
        let mut chunks = [l.splat_f(self.first); N];
        if let Some(each) = self.each {
            let each = each[first..].first_chunk::<N>().expect("the chunks exist");
            for (chunk, each) in chunks.iter_mut().zip(each) {
                *chunk = l.load_f(each);
            }
        }
        chunks
    }
}
